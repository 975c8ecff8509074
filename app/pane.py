"""The right pane: a page's inspector under a header, foldable to a strip of 48 px."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.theme import theme
from app.widgets import ElidedLabel, IconButton

STRIP, _USUAL_CONTROL = 48, 32
LEAST, MOST = 264, 560


class Pane(QFrame):
    """Holds inspectors; the header shows their `windowTitle()` and, if set, their `header_tools`.

    Attributes:
        fold_button: folds and unfolds it.

    Signals:
        toggle_wanted: the fold button was pressed.
    """

    toggle_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "pane")
        self.wanted_width = theme().size("inspector")
        self._folded = False
        self._narrow = False
        self._before = False
        self.fold_button = IconButton("panel", self.tr("Fold the pane"))
        self.fold_button.clicked.connect(self.toggle_wanted)
        self._title = ElidedLabel("", "section")
        self._tools = QHBoxLayout()
        self._tools.setContentsMargins(0, 0, 0, 0)
        self._header = QFrame()
        self._header.setProperty("kind", "header")
        row = self._row = QHBoxLayout(self._header)
        row.setSpacing(4)
        row.addWidget(self._title)
        row.addStretch(1)
        row.addLayout(self._tools)
        row.addWidget(self.fold_button)
        self._stack = QStackedWidget()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._header)
        column.addWidget(self._stack, 1)
        column.addStretch(0)
        theme().changed.connect(self._fit)
        self._fit()
        self.hide()

    @property
    def folded(self) -> bool:
        """Whether only the strip shows."""
        return self._folded

    @property
    def narrow(self) -> bool:
        """Whether the window folded the pane for want of room."""
        return self._narrow

    @property
    def strip(self) -> int:
        """The width in px when folded: the button, which grows with the text, and a margin around it."""
        return theme().size("control") + STRIP - _USUAL_CONTROL

    def forget(self, widget: QWidget | None) -> None:
        """Let go of an inspector whose page goes away."""
        if widget is None:
            return
        tools = getattr(widget, "header_tools", None)
        if isinstance(tools, QWidget):
            self._tools.removeWidget(tools)
            tools.deleteLater()
        self._stack.removeWidget(widget)
        widget.deleteLater()

    def hold(self, widget: QWidget) -> None:
        """Take an inspector in, which is shown later."""
        if self._stack.indexOf(widget) < 0:
            self._stack.addWidget(widget)
            widget.windowTitleChanged.connect(self._on_title)
            tools = getattr(widget, "header_tools", None)
            if isinstance(tools, QWidget):
                self._tools.addWidget(tools)
                tools.hide()

    def show_inspector(self, widget: QWidget | None) -> None:
        """Show a page's inspector; None hides the pane."""
        self.setVisible(widget is not None)
        if widget is None:
            return
        self.hold(widget)
        self._stack.setCurrentWidget(widget)
        self._show_header()

    def set_folded(self, folded: bool) -> None:
        """Fold to the strip, or unfold."""
        self._folded = folded
        self._stack.setVisible(not folded)
        self._show_header()
        self._fit()

    def set_narrow(self, narrow: bool) -> None:
        """The window became narrow or wide: fold, or give back what was there before."""
        if narrow and not self._narrow:
            self._before = self._folded
        folded = True if narrow else self._before
        self._narrow = narrow
        self.set_folded(folded)

    def focus_first(self) -> None:
        """Focus the first thing in the pane."""
        widget = None if self._folded else self._stack.currentWidget()
        first = widget
        while first is not None and first is not self.fold_button:
            if first.focusPolicy() & Qt.FocusPolicy.TabFocus and first.isVisible():
                first.setFocus(Qt.FocusReason.TabFocusReason)
                return
            first = first.nextInFocusChain()
            if widget is not None and first is not None and not self.isAncestorOf(first):
                break
        self.fold_button.setFocus(Qt.FocusReason.TabFocusReason)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.LanguageChange:
            self._show_header()
        super().changeEvent(event)

    def sizeHint(self) -> QSize:
        return QSize(self.strip if self._folded else self.wanted_width, 400)

    def _on_title(self) -> None:
        self._show_header()

    def _show_header(self) -> None:
        widget = self._stack.currentWidget()
        title = widget.windowTitle() if widget is not None else ""
        self._title.setText(title)
        self._title.setToolTip(title)
        self._title.setVisible(not self._folded)
        mine = getattr(widget, "header_tools", None)
        for i in range(self._tools.count()):
            item = self._tools.itemAt(i)
            tool = item.widget() if item is not None else None
            if tool is not None:
                tool.setVisible(tool is mine and not self._folded)
        self.fold_button.set_name(
            self.tr("Unfold the pane") if self._folded else self.tr("Fold the pane"), ""
        )

    def _fit(self) -> None:
        self._header.setFixedHeight(theme().size("header"))
        margin = (STRIP - _USUAL_CONTROL) // 2
        self._row.setContentsMargins(margin if self._folded else 16, 0, margin - 1, 0)
        # Half as fast as the text: the page beside it needs room too.
        least = max(LEAST, round(LEAST * (1 + theme().scale) / 2))
        self.setMinimumWidth(self.strip if self._folded else least)
        self.setMaximumWidth(self.strip if self._folded else MOST)
