"""A small pane over the page, above the button that opened it; Esc or a click beside it closes it."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QFrame, QVBoxLayout, QWidget

from app.theme import theme


class Popover(QFrame):
    """Holds one widget."""

    def __init__(self, content: QWidget, owner: QWidget) -> None:
        super().__init__(owner, Qt.WindowType.Popup | Qt.WindowType.FramelessWindowHint)
        self.content = content
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 1, 1, 1)
        column.addWidget(content)

    def show_above(self, button: QWidget) -> None:
        """Open with the lower left corner at the top of a button, inside the window."""
        self.adjustSize()
        window = button.window()
        room = QRect(window.mapToGlobal(QPoint(0, 0)), window.size()).adjusted(8, 8, -8, -8)
        size = self.sizeHint().boundedTo(room.size())
        at = button.mapToGlobal(QPoint(-8, -size.height() - 8))
        x = max(room.left(), min(at.x(), room.right() - size.width()))
        y = max(room.top(), min(at.y(), room.bottom() - size.height()))
        self.setGeometry(QRect(QPoint(x, y), size))
        self.show()
        self.content.setFocus(Qt.FocusReason.OtherFocusReason)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        # A see-through window would have black corners where no compositor runs.
        painter.fillRect(event.rect(), theme().color("surface.bg"))
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme().color("line.strong"), 1))
        painter.setBrush(theme().color("surface.panel"))
        radius = theme().radius("panel")
        painter.drawRoundedRect(
            self.rect().toRectF().adjusted(0.5, 0.5, -0.5, -0.5), radius, radius
        )
