"""A drafter that is in the device's memory only while somebody's text is written.

Between requests it is closed, its weights are read again from its file at the next one, and what it knows of
texts that may be gone on with waits in RAM.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.draft.base import Drafter, Paged
from engine.ops.base import Rows
from engine.types import Draft, Sequence

Blob = NDArray[np.uint8]


class ParkedDrafter:
    """A `Drafter` that opens another one when it is needed; its pages are where that one's are, or in RAM."""

    def __init__(self, open_drafter: Callable[[], Drafter]) -> None:
        """Opens it once, so that what is wrong with it is told at once; raises as `open_drafter`."""
        self._open = open_drafter
        self._inner: Drafter | None = (first := open_drafter())
        self.name, self.needs = first.name, first.needs
        self.depth, self.branches, self.reach = first.depth, first.branches, first.reach
        self.warnings: tuple[str, ...] = getattr(first, "warnings", ())
        self.paged: Paged | None = None
        self._page_bytes = 0
        if first.paged is not None:
            self.paged, self._page_bytes = self, first.paged.page_bytes()
        self._written: set[int] = set()  # pages that may hold something
        self._kept: dict[int, Blob] = {}
        self._texts: set[int] = set()

    @property
    def parked(self) -> bool:
        """Whether it holds none of the device's memory."""
        return self._inner is None

    def propose(self, sequence: Sequence, depth: int, nodes: int) -> Draft:
        return self._awake(sequence).propose(sequence, depth, nodes)

    def observe(self, sequence: Sequence, start: int, n: int, hidden: Rows | None) -> None:
        self._awake(sequence).observe(sequence, start, n, hidden)

    def release(self, sequence: Sequence) -> None:
        if self._inner is not None:
            self._inner.release(sequence)
        self._texts.discard(sequence.request_id)
        if not self._texts:
            self._park()

    def memory(self) -> int:
        return self._inner.memory() if self._inner is not None else 0

    def close(self) -> None:
        if self._inner is not None:
            self._inner.close()
        self._inner = None
        self._kept.clear()

    # Its pages

    def page_bytes(self) -> int:
        """As `Ops.page_bytes`."""
        return self._page_bytes

    def read_page(self, page: int, to: Blob) -> None:
        """As `Ops.read_page`; zeros for a page that was never written."""
        if self._inner is not None and self._inner.paged is not None:
            self._inner.paged.read_page(page, to)
        else:
            to[:] = self._kept.get(page, 0)

    def write_page(self, page: int, data: Blob) -> None:
        """As `Ops.write_page`."""
        self._written.add(page)
        if self._inner is not None and self._inner.paged is not None:
            self._inner.paged.write_page(page, data)
        else:
            self._kept[page] = data.copy()

    def copy_page(self, source: int, target: int) -> None:
        """As `Ops.copy_page`."""
        if self._inner is not None and self._inner.paged is not None:
            self._written.add(target)
            self._inner.paged.copy_page(source, target)
        elif source in self._kept:
            self.write_page(target, self._kept[source])

    def settle(self) -> None:
        """As `Ops.settle`."""
        if self._inner is not None and self._inner.paged is not None:
            self._inner.paged.settle()

    def _awake(self, sequence: Sequence) -> Drafter:
        """The drafter itself, opened if need be."""
        self._texts.add(sequence.request_id)
        self._written.update(sequence.pages)
        if self._inner is None:
            self._inner = self._open()
            if self._inner.paged is not None:
                for page, data in self._kept.items():
                    self._inner.paged.write_page(page, data)
            self._kept.clear()
        return self._inner

    def _park(self) -> None:
        """Give the memory back, and keep what is known of all pages."""
        if self._inner is None:
            return
        if (paged := self._inner.paged) is not None:
            for page in self._written:
                self._kept[page] = np.empty(self._page_bytes, np.uint8)
                paged.read_page(page, self._kept[page])
            paged.settle()
        self._inner.close()
        self._inner = None
