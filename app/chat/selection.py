"""Selected text, from one place in one message to another place in the same or another message."""

from __future__ import annotations

from typing import NamedTuple

from app.chat.laid import END, Place


class Spot(NamedTuple):
    """A place in the list: which row, which of its texts, where in that."""

    row: int
    text: int
    place: Place


class Selection:
    """Where the selection began and where it is now; `rows` says which row a message is in."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.anchor: Spot | None = None
        self.head: Spot | None = None

    def clear(self) -> None:
        """Select nothing."""
        self.anchor = self.head = None

    @property
    def ends(self) -> tuple[Spot, Spot] | None:
        """The two ends in order; None if nothing is selected."""
        if self.anchor is None or self.head is None or self.anchor == self.head:
            return None
        return min(self.anchor, self.head), max(self.anchor, self.head)

    def within(self, message_id: str, text: int) -> tuple[Place, Place] | None:
        """The selected stretch of one text of one message."""
        if (ends := self.ends) is None or (row := self.rows.get(message_id)) is None:
            return None
        start, end = ends
        here = (row, text)
        if here < start[:2] or here > end[:2]:
            return None
        first = start.place if start[:2] == here else Place()
        return first, end.place if end[:2] == here else END
