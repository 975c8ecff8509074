"""Labels, buttons and lines with the names that the style sheet knows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtGui import QCursor, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QToolTip,
    QWidget,
)

from app.theme import theme

LabelKind = Literal[
    "",
    "title",
    "hero",
    "lead",
    "section",
    "muted",
    "small",
    "micro",
    "strong",
    "good",
    "warn",
    "bad",
    "tag",
]
ButtonKind = Literal["plain", "main", "quiet"]


def label(text: str = "", kind: LabelKind = "", wrap: bool = False) -> QLabel:
    """A label of plain text in one of the style sheet's kinds."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    if kind:
        made.setProperty("kind", kind)
    if wrap:
        made.setWordWrap(True)
        made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Minimum)
    return made


class ElidedLabel(QLabel):
    """One line that ends in an ellipsis where there is no room for all of it."""

    def __init__(self, text: str = "", kind: LabelKind = "") -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("kind", kind)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def event(self, event: QEvent) -> bool:
        if (
            event.type() == QEvent.Type.ToolTip
            and not self.toolTip()
            and self._shown() != self.text()
        ):
            QToolTip.showText(QCursor.pos(), self.text(), self)
            return True
        return super().event(event)

    def _shown(self) -> str:
        mode = Qt.TextElideMode.ElideRight
        return self.fontMetrics().elidedText(self.text(), mode, self.contentsRect().width())

    def paintEvent(self, event: QPaintEvent) -> None:
        place = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        role = self.foregroundRole()
        self.style().drawItemText(
            QPainter(self),
            self.contentsRect(),
            place,
            self.palette(),
            self.isEnabled(),
            self._shown(),
            role,
        )


def button(
    text: str,
    on_click: Callable[[], object] | None = None,
    kind: ButtonKind = "plain",
    icon: str = "",
    large: bool = False,
) -> QPushButton:
    """A push button; one "main" button per page at most."""
    made = QPushButton(text)
    made.setProperty("kind", kind)
    # Qt lets Enter press only such buttons, and only in dialogs by itself.
    made.setAutoDefault(True)
    if large:
        made.setProperty("large", True)
    if icon:
        color = {"plain": "text.primary", "main": "accent.on", "quiet": "text.muted"}[kind]
        theme().tint(made, icon, color, theme().size("iconSmall"))
    if on_click is not None:
        made.clicked.connect(lambda _checked=False, call=on_click: call())
    return made


class IconButton(QToolButton):
    """A button that is only an icon; `name` is what a screen reader says, and the tooltip's start."""

    def __init__(
        self,
        icon: str,
        name: str,
        tooltip: str = "",
        parent: QWidget | None = None,
        size: Literal["control", "controlCompact", "controlLarge"] = "control",
    ) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setToolTip(tooltip or name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._size = size
        self.set_icon(icon)
        self._fit()
        theme().changed.connect(self._fit)

    def set_icon(self, icon: str, color: str = "text.muted") -> None:
        """Show another icon."""
        theme().tint(
            self,
            icon,
            color,
            theme().size("iconSmall" if self._size == "controlCompact" else "icon"),
        )

    def set_name(self, name: str, tooltip: str = "") -> None:
        """Change what the button is called."""
        self.setAccessibleName(name)
        self.setToolTip(tooltip or name)

    def _fit(self) -> None:
        edge = theme().size(self._size)
        self.setFixedSize(edge, edge)


def scrolling(body: QWidget) -> QScrollArea:
    """A place in which `body` scrolls up and down; it never has the keyboard focus itself."""
    made = QScrollArea()
    made.setWidgetResizable(True)
    made.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    made.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    made.setWidget(body)
    return made


class Hairline(QFrame):
    """A one-pixel line between parts."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "hair")
        self.setFixedHeight(1)
