"""Slots of recurrent state: who holds which, and which prefixes they remember. Integers only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence as Seq

CHECKPOINT_TOKENS = 1024


class StateSlots:
    """A running sequence holds one slot; the others keep checkpoints of prefixes.

    A checkpoint is the state after the last token of a full page, found by that page. The least recently
    used one goes when a slot is needed.
    """

    def __init__(self, n_slots: int) -> None:
        self._free = list(range(n_slots - 1, -1, -1))
        self._checkpoints: OrderedDict[int, int] = OrderedDict()

    def take(self) -> int | None:
        """A slot with undefined content, or None when all are held by sequences."""
        if self._free:
            return self._free.pop()
        if not self._checkpoints:
            return None
        _, slot = self._checkpoints.popitem(last=False)
        return slot

    def give(self, slot: int) -> None:
        """A sequence's slot is not needed any more."""
        assert slot not in self._free and slot not in self._checkpoints.values()
        self._free.append(slot)

    def remember(self, page: int) -> int | None:
        """A slot to copy the state after `page` into; None when it is known or there is no room."""
        if page in self._checkpoints:
            self._checkpoints.move_to_end(page)
            return None
        slot = self.take()
        if slot is not None:
            self._checkpoints[page] = slot
        return slot

    def find(self, pages: Seq[int]) -> tuple[int, int]:
        """How many of `pages` the deepest checkpoint covers, and its slot; (0, -1) without one."""
        for n in range(len(pages), 0, -1):
            if (slot := self._checkpoints.get(pages[n - 1])) is not None:
                self._checkpoints.move_to_end(pages[n - 1])
                return n, slot
        return 0, -1

    def forget(self, page: int) -> None:
        """The page holds other tokens from now on, or its checkpoint is superseded."""
        if (slot := self._checkpoints.pop(page, None)) is not None:
            self._free.append(slot)
