"""A row of choices of which one is on."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QButtonGroup, QHBoxLayout, QWidget

from app.theme import theme

_PAD = 12


class _Chip(QAbstractButton):
    """One choice; the chosen one is a raised plate with a stronger word."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.setText(text)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        theme().changed.connect(self.updateGeometry)

    def sizeHint(self) -> QSize:
        width = self.fontMetrics().horizontalAdvance(self.text()) + 2 * _PAD
        return QSize(width, theme().size("controlCompact") - 4)

    def paintEvent(self, event: QPaintEvent) -> None:
        look = theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        color = "text.primary" if self.isChecked() or self.underMouse() else "text.muted"
        if self.isChecked():
            painter.setPen(QPen(look.color("line.strong"), 1))
            painter.setBrush(look.color("surface.raised"))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        painter.setFont(look.font("small", "medium" if self.isChecked() else "regular"))
        painter.setPen(look.color(color))
        painter.drawText(self.rect(), int(Qt.AlignmentFlag.AlignCenter), self.text())


class Chips(QWidget):
    """Exclusive choices by key; Left and Right move between them.

    Signals:
        chosen: the key of the choice.
    """

    chosen = Signal(str)

    def __init__(self, choices: Sequence[tuple[str, str]], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._group = QButtonGroup(self)
        self._buttons: dict[str, _Chip] = {}
        row = QHBoxLayout(self)
        row.setContentsMargins(3, 3, 3, 3)
        row.setSpacing(2)
        for key, text in choices:
            chip = _Chip(text)
            chip.setChecked(not self._buttons)
            self._buttons[key] = chip
            self._group.addButton(chip)
            row.addWidget(chip)
        self._group.buttonClicked.connect(self._on_clicked)

    @property
    def current(self) -> str:
        """The key of the choice that is on."""
        return next(k for k, b in self._buttons.items() if b.isChecked())

    def choose(self, key: str) -> None:
        """Turn one choice on."""
        self._buttons[key].setChecked(True)
        self.chosen.emit(key)

    def set_shown(self, key: str, shown: bool) -> None:
        """Show or hide one choice."""
        self._buttons[key].setVisible(shown)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()))
        if step is None:
            super().keyPressEvent(event)
            return
        keys = [k for k, b in self._buttons.items() if not b.isHidden()]
        key = keys[(keys.index(self.current) + step) % len(keys)]
        self._buttons[key].setFocus()
        self.choose(key)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme().color("line.strong"), 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)

    def _on_clicked(self, chip: QAbstractButton) -> None:
        self.chosen.emit(next(k for k, b in self._buttons.items() if b is chip))
