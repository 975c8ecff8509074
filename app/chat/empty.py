"""What an empty chat shows: a word of welcome and some ways to begin."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.theme import theme
from app.widgets import button, label


class EmptyChat(QWidget):
    """Signals: `chosen(text)`: a starter was picked."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        title = label(self.tr("What would you like to know?"), "title")
        title.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        note = label(self.tr("Everything stays on this PC."), "muted")
        note.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        self.starters = [
            self.tr("Explain how a hash table works, with a small example"),
            self.tr("Write a polite reply that declines an invitation"),
            self.tr("Give me three ideas for dinner with rice and eggs"),
        ]
        column = QVBoxLayout(self)
        column.setSpacing(theme().space(2))
        column.addStretch(3)
        column.addWidget(title)
        column.addWidget(note)
        column.addSpacing(theme().space(4))
        for text in self.starters:
            row = QHBoxLayout()
            row.addStretch(1)
            row.addWidget(button(text, partial(self.chosen.emit, text)))
            row.addStretch(1)
            column.addLayout(row)
        column.addStretch(4)
