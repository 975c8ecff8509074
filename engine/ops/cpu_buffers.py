"""The memory of activations on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.ops.cpu_weights import padded
from kernels.cpu.products import CODED_BLOCK


@dataclass(slots=True, eq=False)
class Area:
    """Memory of one activation in both forms, for all rows that a step may hold."""

    width: int
    floats: NDArray[np.uint8]
    coded: NDArray[np.uint8]

    def trim(self, addresses: NDArray[np.int64]) -> None:
        """Give back the forms into which none of the sorted `addresses` points."""
        for form in ("floats", "coded"):
            memory = getattr(self, form)
            start = memory.ctypes.data
            first = np.searchsorted(addresses, start)
            if first == len(addresses) or addresses[first] >= start + len(memory):
                setattr(self, form, memory[:0].copy())


class Buffer:
    """A (M, width) activation: float32 rows, and the same coded as int8 if anyone asks.

    `wanted` are the forms that the producing instruction writes only on demand, and how to demand them.
    `line` is that instruction where each thread computes a single row for itself, see
    `kernels.cpu.instructions`. `products` are the instructions of a `linear`.
    """

    __slots__ = (
        "__weakref__", "area", "coded", "coded_stride", "floats", "line", "products", "stride", "wanted",
        "width",
    )  # fmt: skip

    def __init__(self, width: int, area: Area) -> None:
        self.width, self.area = width, area
        self.floats: int = area.floats.ctypes.data
        self.coded: int = area.coded.ctypes.data
        self.stride = 4 * padded(width)
        self.coded_stride = padded(width) // 32 * CODED_BLOCK
        self.wanted: dict[str, Callable[[], None]] = {}
        self.line: list[int] | None = None
        self.products: list[list[int]] = []

    def values(self, n_rows: int) -> NDArray[np.float32]:
        """The float32 rows (n_rows, width) that the last run left here; see `CpuOps.keep`."""
        rows = self.area.floats[: n_rows * self.stride].view(np.float32)
        return rows.reshape(n_rows, -1)[:, : self.width]
