"""A switch: on or off, at once."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QEnterEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.theme import theme


class Switch(QAbstractButton):
    """A checkable button drawn as a switch; give it an accessible name."""

    def __init__(self, name: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setCheckable(True)
        self.setAccessibleName(name)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setProperty("ringRadius", 12)
        self.setFixedSize(self.sizeHint())
        theme().changed.connect(self._fit)

    def sizeHint(self) -> QSize:
        height = round(theme().size("control") * 18 / 32)
        return QSize(round(height * 32 / 18), height)

    def enterEvent(self, event: QEnterEvent) -> None:
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        look = theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        track = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        radius = track.height() / 2
        hot = self.underMouse() and self.isEnabled()
        if not self.isEnabled():
            line, fill, knob = "line.hair", "", "text.disabled"
        elif self.isChecked():
            line = fill = "accent.hover" if hot else "accent.base"
            knob = "accent.on"
        else:
            line, fill = ("text.primary" if hot else "line.control"), "surface.field"
            knob = "text.muted" if hot else "line.control"
        painter.setPen(QPen(look.color(line), 1))
        painter.setBrush(look.color(fill) if fill else Qt.BrushStyle.NoBrush)
        painter.drawRoundedRect(track, radius, radius)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(look.color(knob))
        on = self.isChecked() != (self.layoutDirection() == Qt.LayoutDirection.RightToLeft)
        x = track.right() - radius if on else track.left() + radius
        painter.drawEllipse(QPointF(x, track.center().y()), radius - 4, radius - 4)

    def _fit(self) -> None:
        self.setFixedSize(self.sizeHint())
        self.update()
