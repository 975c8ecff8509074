"""The memory of activations on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import psutil
from numpy.typing import NDArray

from engine.errors import OutOfMemory
from engine.ops.base import Limits, Rope, Shape
from engine.ops.cpu_weights import padded
from kernels.cpu.layout import WIDTH
from kernels.cpu.products import CODED_BLOCK
from kernels.cpu.rowwise import PAGE
from kernels.cpu.runtime import aligned


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


@dataclass(slots=True, eq=False)
class Tape:
    """One recording.

    `code` are instructions as they are written, `program` when all are; `operands` are those that have
    arrays of their own, `redone` those of recurrent layers over the log, and `redo` is their program.
    `marks` are (layer, instructions up to its end, residual), `ropes` the tables of angles, `given` the
    buffers that a step brings. `hidden` are the rows after the layers `capture`.
    """

    capture: tuple[int, ...] = ()
    code: list[list[int]] = field(default_factory=list)
    operands: list[NDArray[np.int64]] = field(default_factory=list)
    redone: list[NDArray[np.int64]] = field(default_factory=list)
    marks: list[tuple[int, int, Buffer]] = field(default_factory=list)
    ropes: list[tuple[Rope, NDArray[np.float32]]] = field(default_factory=list)
    given: list[Buffer] = field(default_factory=list)
    hidden: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    logits: NDArray[np.float32] = field(default_factory=lambda: np.zeros((0, 1), np.float32))
    logits_from: int = 0
    program: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, WIDTH), np.int64))
    redo: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, WIDTH), np.int64))
    counters: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))


def lines(code: list[list[int]]) -> NDArray[np.int64]:
    """Instructions as the threads read them."""
    padded_out = [line + [0] * (WIDTH - len(line)) for line in code]
    return np.array(padded_out, np.int64).reshape(-1, WIDTH)


def key_value_pages(
    shape: Shape, limits: Limits, number_bytes: int, states: int = 0
) -> NDArray[np.uint8]:
    """Memory (n_kv_layers, 2, pages, page bytes); raises `OutOfMemory` with the addends, `states` bytes of
    recurrent state that must fit beside it among them.
    """
    page = shape.n_kv_heads * PAGE * shape.head_dim * number_bytes
    need = shape.n_kv_layers * 2 * limits.pages * page
    free = psutil.virtual_memory().available
    more = f", recurrent states {states:,} ({limits.slots} slots)" if states else ""
    short = OutOfMemory(
        f"CPU: keys and values need {need:,} bytes ({shape.n_kv_layers} layers x 2 x {limits.pages} "
        f"pages x {page:,} bytes){more} and {free:,} are free. Use a shorter context or fewer sequences "
        "at once."
    )
    if need + states > free:
        raise short
    try:
        return aligned(need).reshape(shape.n_kv_layers, 2, limits.pages, page)
    except MemoryError as e:
        raise short from e
