"""Pages and states of a loaded model as plain bytes: its own, and those of a draft that go with them."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Protocol

import numpy as np

from engine.cache.snapshot import Blob
from engine.draft.base import Paged
from engine.ops.base import LEAST_KEPT, Ops


class Memory(Protocol):
    """Moves pages and states, in order with what is computed; `None` of a read tells that RAM is short.

    What is read may come later: others than its own `write_page` and `write_state` look at it behind
    `settle`.
    """

    page_bytes: int
    state_bytes: int
    least_kept: int  # how many rows apart a step can leave states on its way; 0: not at all

    def read_page(self, page: int) -> Blob | None:
        """A copy of a page."""
        ...

    def write_page(self, page: int, blob: Blob) -> None:
        """Give a page the content of a blob."""
        ...

    def copy_page(self, source: int, target: int) -> None:
        """Copy a page to another one."""
        ...

    def read_state(self, slot: int) -> Blob | None:
        """A copy of a state."""
        ...

    def write_state(self, slot: int, blob: Blob) -> None:
        """Give a slot the state in a blob."""
        ...

    def copy_state(self, source: int, target: int) -> None:
        """Copy a state to another slot."""
        ...

    def settle(self) -> None:
        """Wait until all that was read is there."""
        ...


class DeviceMemory:
    """The `Memory` of a model on any device."""

    def __init__(self, ops: Ops, draft: Paged | None = None) -> None:
        """`draft` has pages with the model's numbers; its states stay where they are."""
        self._ops = ops
        self._all: Seq[Paged] = (ops,) if draft is None else (ops, draft)
        sizes = [each.page_bytes() for each in self._all]
        self._ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        self.page_bytes = sum(sizes)
        self.state_bytes = ops.state_bytes()
        self.least_kept = LEAST_KEPT if ops.keeps() else 0

    def read_page(self, page: int) -> Blob | None:
        if (blob := _room(self.page_bytes)) is not None:
            for ops, part in zip(self._all, self._parts(blob), strict=True):
                ops.read_page(page, part)
        return blob

    def write_page(self, page: int, blob: Blob) -> None:
        self.settle()
        for ops, part in zip(self._all, self._parts(blob), strict=True):
            ops.write_page(page, part)

    def copy_page(self, source: int, target: int) -> None:
        for ops in self._all:
            ops.copy_page(source, target)

    def read_state(self, slot: int) -> Blob | None:
        if (blob := _room(self.state_bytes)) is not None:
            self._ops.read_state(slot, blob)
        return blob

    def write_state(self, slot: int, blob: Blob) -> None:
        self.settle()
        self._ops.write_state(slot, blob)

    def copy_state(self, source: int, target: int) -> None:
        self._ops.copy_state(source, target)

    def settle(self) -> None:
        for ops in self._all:
            ops.settle()

    def _parts(self, blob: Blob) -> list[Blob]:
        return [blob[a:b] for a, b in zip([0, *self._ends], self._ends, strict=False)]


def _room(n_bytes: int) -> Blob | None:
    try:
        return np.empty(n_bytes, np.uint8)
    except MemoryError:
        return None
