"""What an empty chat shows: a word of welcome and some ways to begin."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.theme import theme
from app.widgets import Shrinkable, button, label

_PAD = 40


class EmptyChat(Shrinkable):
    """Signals: `chosen(text)`: a starter was picked."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        inside = QWidget()
        inside.setProperty("scroll", True)
        super().__init__(inside, parent)
        # What stands above it, as the card of a failure, needs the room first.
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self._buttons: list[QPushButton] = []
        title = label(self.tr("What would you like to know?"), "title")
        title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        note = label(self.tr("Everything stays on this PC."), "muted")
        note.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.starters = [
            self.tr("Explain how a hash table works, with a small example"),
            self.tr("Write a polite reply that declines an invitation"),
            self.tr("Give me three ideas for dinner with rice and eggs"),
        ]
        column = QVBoxLayout(inside)
        column.setSpacing(theme().space(2))
        column.addStretch(3)
        column.addWidget(title)
        column.addWidget(note)
        column.addSpacing(theme().space(4))
        for text in self.starters:
            row = QHBoxLayout()
            row.addStretch(1)
            made = button(text, partial(self.chosen.emit, text))
            made.setAccessibleName(text)
            self._buttons.append(made)
            row.addWidget(made)
            row.addStretch(1)
            column.addLayout(row)
        column.addStretch(4)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = event.size().width() - 2 * _PAD
        for made, text in zip(self._buttons, self.starters, strict=True):
            elided = made.fontMetrics().elidedText(text, Qt.TextElideMode.ElideRight, room)
            made.setText(elided)
            made.setToolTip(text if elided != text else "")
