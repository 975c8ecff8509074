"""Rows of float32 that stay on the card between steps: what `Ops.hidden` and `Ops.join` give."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.ops.cuda_device import Card


class Spare:
    """Memory for rows that comes back when nobody uses it, so that joining rows seldom allocates."""

    def __init__(self, card: Card) -> None:
        self.card = card
        self._free: dict[int, list[int]] = {}

    def take(self, size: int) -> int:
        """Memory of `size` bytes."""
        free = self._free.setdefault(size, [])
        return free.pop() if free else self.card.allocate(size, {"rows of drafts": size})

    def give(self, address: int, size: int) -> None:
        """What was taken is not used any more."""
        self._free[size].append(address)


class DeviceRows:
    """(n, width) float32 rows at `address`; `rows[a:b]` is a view, `rows[[2, 0]]` and `joined` are copies."""

    def __init__(
        self, spare: Spare, address: int, n: int, width: int, owner: _Owner | None = None
    ) -> None:
        self._spare, self.address, self._owner = spare, address, owner
        self.shape = (n, width)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def _row_bytes(self) -> int:
        return 4 * self.shape[1]

    def __getitem__(self, which: slice | Seq[int]) -> DeviceRows:
        n, width = self.shape
        if isinstance(which, slice):
            first, last, step = which.indices(n)
            if step != 1:
                raise ValueError("Rows on a card are taken one after the other.")
            address = self.address + first * self._row_bytes
            return DeviceRows(self._spare, address, max(0, last - first), width, self._owner)
        runs: list[list[int]] = []  # of rows that lie one behind the other
        for i in which:
            if runs and runs[-1][1] == i:
                runs[-1][1] += 1
            else:
                runs.append([i, i + 1])
        return joined(self._spare, [self[a:b] for a, b in runs], width)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = np.empty(self.shape, np.float32)
        card = self._spare.card
        card.use()
        card.copy(values.ctypes.data, self.address, values.nbytes)
        card.stream.synchronize()
        return values if dtype is None else values.astype(dtype)


class _Owner:
    """Gives memory back with the last rows that lie in it."""

    def __init__(self, spare: Spare, address: int, size: int) -> None:
        self._spare, self._address, self._size = spare, address, size

    def __del__(self) -> None:
        self._spare.give(self._address, self._size)


def joined(spare: Spare, parts: Seq[Any], width: int | None = None) -> DeviceRows:
    """Rows one after the other in memory of their own; parts may be arrays of NumPy."""
    width = parts[0].shape[1] if width is None else width
    n = sum(len(part) for part in parts)
    size = max(256, 1 << (4 * n * width - 1).bit_length()) if n else 256
    address = spare.take(size)
    rows = DeviceRows(spare, address, n, width, _Owner(spare, address, size))
    spare.card.use()
    for part in parts:
        fill(spare.card, address, part)
        address += 4 * len(part) * width
    return rows


def fill(card: Card, address: int, rows: Any) -> None:
    """Copy rows, of a card or of NumPy, to an address."""
    if not len(rows):
        return
    if isinstance(rows, DeviceRows):
        card.copy(address, rows.address, 4 * rows.shape[0] * rows.shape[1])
        return
    values = np.ascontiguousarray(rows, np.float32)
    card.copy(address, values.ctypes.data, values.nbytes)
    card.stream.synchronize()  # the array may go away
