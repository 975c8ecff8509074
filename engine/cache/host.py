"""Copies of pages and states in RAM, within a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from engine.cache.snapshot import Blob
from engine.pages import Node


@dataclass(slots=True, eq=False)
class Copy:
    """What a node had on the device: keys and values, or the state after them."""

    node: Node
    blob: Blob
    is_state: bool = False


class HostPool:
    """Copies, of which the least recently used go first when others need their room.

    Who uses a prefix touches its copies from the end to the beginning, so the end goes first.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.n_bytes = self.n_pages = self.n_states = 0
        self.on_drop: Callable[[Copy], None] | None = None
        self._loose = 0  # bytes of copies that may go
        self._copies: OrderedDict[Copy, None] = OrderedDict()

    @property
    def room(self) -> int:
        """Bytes that `reserve` could give."""
        return self.limit - self.n_bytes + self._loose

    def reserve(self, n_bytes: int) -> bool:
        """Count `n_bytes` as held, for which copies give way; False where they would not be enough."""
        if n_bytes > self.room:
            return False
        while self.n_bytes + n_bytes > self.limit:
            self.drop(next(iter(self._copies)))
        self.n_bytes += n_bytes
        return True

    def free(self, n_bytes: int) -> None:
        """Give up bytes that were reserved."""
        self.n_bytes -= n_bytes

    def keep(self, copy: Copy) -> None:
        """Hold a copy whose bytes are reserved, until others need them."""
        self._copies[copy] = None
        self._count(copy, 1)

    def touch(self, copy: Copy) -> None:
        """The copy is used now."""
        self._copies.move_to_end(copy)

    def drop(self, copy: Copy) -> None:
        """Give a copy up; `on_drop` hears of it."""
        del self._copies[copy]
        self._count(copy, -1)
        self.n_bytes -= copy.blob.nbytes
        if self.on_drop is not None:
            self.on_drop(copy)

    def _count(self, copy: Copy, n: int) -> None:
        self._loose += n * copy.blob.nbytes
        if copy.is_state:
            self.n_states += n
        else:
            self.n_pages += n
