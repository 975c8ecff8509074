"""The notes across the window's top, each until the user closes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.widgets import Banner

Kind = Literal["good", "warn", "bad"]
Words = Callable[[], str]
Action = tuple[Words, Callable[[], object]]


@dataclass(frozen=True, slots=True)
class _Said:
    """What a note says, in whatever language there is when it is asked."""

    kind: Kind
    words: Words
    details: str
    about: str
    action: Action | None


class Notes(QWidget):
    """Says things once; `renew` says them in the language that is the window's now."""

    def __init__(self) -> None:
        super().__init__()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(1)
        self._said: dict[Banner, _Said] = {}

    def say(
        self,
        kind: Kind,
        words: Words,
        details: str = "",
        about: str = "",
        action: Action | None = None,
    ) -> None:
        """Add a note, unless one has these words already; `details` can be copied, `action` has a button."""
        if all(note.text != words() for note in self._said):
            self._add(_Said(kind, words, details, about, action))

    def say_about(self, thing: str, texts: Sequence[Words]) -> None:
        """Warnings about a thing, such as the loaded model, in the place of its former ones."""
        for note in [n for n, said in self._said.items() if said.about == thing]:
            self._take(note)
        for words in texts:
            self.say("warn", words, about=thing)

    def renew(self) -> None:
        """Say all that is not closed again."""
        for note, said in list(self._said.items()):
            self._take(note)
            self._add(said)

    def _add(self, said: _Said) -> None:
        action = (said.action[0](), said.action[1]) if said.action else None
        note = Banner(said.kind, said.words(), said.details, action)
        note.closed.connect(self._on_closed)
        self._said[note] = said
        self._column.addWidget(note)

    def _take(self, note: Banner) -> None:
        del self._said[note]
        note.setParent(None)
        note.deleteLater()

    def _on_closed(self) -> None:
        note = self.sender()
        assert isinstance(note, Banner)
        self._take(note)
