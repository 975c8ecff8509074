"""The left rail: one item per page, the Expert switch, Settings at the bottom."""

from __future__ import annotations

import itertools

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QFrame, QVBoxLayout, QWidget

from app.theme import theme
from app.widgets import Switch, label

_GAP = 4


class RailButton(QAbstractButton):
    """A page's item: icon over word, a 2-px accent mark when chosen, a count when there is one.

    One of those in the rail is chosen: Tab comes to that one, arrows choose another. A screen reader calls
    them so too, which it would not do with a `QToolButton`.
    """

    def __init__(self, icon: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon = icon
        self._count = ""
        self.setCheckable(True)
        self.setAutoExclusive(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._fit()
        self.toggled.connect(self._fit)
        theme().changed.connect(self._fit)

    def set_count(self, text: str) -> None:
        """Show a short count at the icon; "" hides it."""
        self._count = text
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(theme().size("rail") - 1, theme().size("railItem"))

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()

    def leaveEvent(self, event: QEvent) -> None:
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = theme()
        painter = QPainter(self)
        size, words = self.iconSize(), self.fontMetrics()
        top = (self.height() - size.height() - _GAP - words.height()) // 2
        self.icon().paint(
            painter, (self.width() - size.width()) // 2, top, size.width(), size.height()
        )
        bright = self.isChecked() or self.underMouse()
        painter.setPen(look.color("text.primary" if bright else "text.muted"))
        painter.drawText(
            QRect(0, top + size.height() + _GAP, self.width(), words.height()),
            Qt.AlignmentFlag.AlignCenter,
            words.elidedText(self.text(), Qt.TextElideMode.ElideRight, self.width()),
        )
        if self.isChecked():
            painter.fillRect(
                0, self.height() // 5, 2, self.height() * 3 // 5, look.color("accent.base")
            )
        if self._count:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setFont(look.font("micro", "medium"))
            width = max(16, painter.fontMetrics().horizontalAdvance(self._count) + 8)
            badge = QRectF(self.width() / 2 + 4, 2, width, 16)
            painter.setPen(look.color("line.strong"))
            painter.setBrush(look.color("surface.raised"))
            painter.drawRoundedRect(badge, 8, 8)
            painter.setPen(look.color("text.primary"))
            painter.drawText(badge, Qt.AlignmentFlag.AlignCenter, self._count)

    def _fit(self) -> None:
        color = "accent.text" if self.isChecked() else "text.muted"
        theme().tint(self, self._icon, color, theme().size("icon"))
        self.setFixedSize(self.sizeHint())
        self.setFont(theme().font("micro", "medium" if self.isChecked() else "regular"))


class Rail(QFrame):
    """Signals: `chosen(page name)`, `expert_changed(bool)`."""

    chosen = Signal(str)
    expert_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "rail")
        self._buttons: dict[str, RailButton] = {}
        self._top = QVBoxLayout()
        self._top.setSpacing(0)
        self._expert = Switch()
        self._expert_word = label("", "micro")
        self._expert_word.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self._expert.toggled.connect(self._show_items)
        self._expert.toggled.connect(self.expert_changed)
        self._bottom = QVBoxLayout()
        self._bottom.setSpacing(0)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 8)
        column.setSpacing(0)
        column.addLayout(self._top)
        column.addStretch(1)
        column.addWidget(self._expert, 0, Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(6)
        column.addWidget(self._expert_word)
        column.addSpacing(12)
        column.addLayout(self._bottom)
        self._fit()
        theme().changed.connect(self._fit)
        self.retranslate()

    def add(self, name: str, icon: str, bottom: bool = False, expert: bool = False) -> None:
        """Add an item for a page; its word comes with `set_title`."""
        item = RailButton(icon)
        item.setProperty("page", name)
        item.setProperty("expert", expert)
        self._buttons[name] = item
        item.clicked.connect(lambda: self.chosen.emit(name))
        (self._bottom if bottom else self._top).addWidget(item)
        item.setVisible(not expert or self.expert)
        above = [b for b in self._buttons.values() if self._top.indexOf(b) >= 0]
        below = [b for b in self._buttons.values() if b not in above]
        for before, after in itertools.pairwise([*above, self._expert, *below]):
            QWidget.setTabOrder(before, after)

    def set_title(self, name: str, title: str, shortcut: str = "") -> None:
        """The word below the icon, which is also its accessible name."""
        item = self._buttons[name]
        item.setText(title)
        item.setAccessibleName(title)
        item.setToolTip(f"{title} ({shortcut})" if shortcut else title)

    def select(self, name: str) -> None:
        """Mark a page as the shown one."""
        self._buttons[name].setChecked(True)
        self._show_items()

    def set_count(self, name: str, text: str) -> None:
        """A short count at a page's icon."""
        self._buttons[name].set_count(text)

    @property
    def expert(self) -> bool:
        """The state of the Expert switch."""
        return self._expert.isChecked()

    def set_expert(self, on: bool) -> None:
        """Show the state of the Expert switch."""
        self._expert.setChecked(on)

    def focus_first(self) -> None:
        """Focus the shown page's item."""
        shown = next((item for item in self._buttons.values() if item.isChecked()), None)
        if shown is not None:
            shown.setFocus(Qt.FocusReason.TabFocusReason)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)

    def retranslate(self) -> None:
        """Take the words of the current language."""
        self._expert_word.setText(self.tr("Expert"))
        self._expert.setAccessibleName(self.tr("Expert"))
        self._expert.setToolTip(self.tr("Show the pages for tuning, devices and serving"))

    @Slot()
    def _show_items(self) -> None:
        for item in self._buttons.values():
            item.setVisible(not item.property("expert") or self.expert or item.isChecked())

    def _fit(self) -> None:
        self.setFixedWidth(theme().size("rail"))
