"""Tensors of a model file -> panels for the CPU kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import psutil
from numpy.typing import NDArray

from engine import quants
from engine.errors import OutOfMemory, UnsupportedModel
from engine.gguf import Tensor
from kernels.cpu.formats import FORMATS
from kernels.cpu.panels import DENSE, PANEL, Interleave, pack_dense
from kernels.cpu.runtime import Arena

_STORED = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16}


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """An uploaded tensor: a float32 vector, or panels of `kind`; the matrices of a stack follow each other.

    `count` is what product kernels take as the length: blocks, or inputs of a dense kind.
    """

    kind: str
    shape: tuple[int, ...]
    data: NDArray[np.uint8]
    count: int = 0

    @property
    def address(self) -> int:
        """Where the data start."""
        return int(self.data.ctypes.data)


def padded(width: int) -> int:
    """The next multiple of 32."""
    return -(-width // 32) * 32


def pack(tensor: Tensor, fallback: str, arena: Arena, interleave: Interleave) -> Weight:
    """Repack a tensor into `arena`; types without kernels of their own become `fallback`, a dense kind.

    Raises `MemoryError`, and `UnsupportedModel` for a type that nothing here can read.
    """
    kind = tensor.type.name
    if len(tensor.shape) == 1:
        values = quants.dequantize(tensor.data, tensor.type)
        data = arena.take(4 * padded(len(values)))
        data.view(np.float32)[: len(values)] = values
        return Weight("vector", tensor.shape, data)
    *outer, k = tensor.shape
    if len(outer) > 1 and outer[-1] % PANEL:
        raise UnsupportedModel(
            f"{tensor.name}: found {outer[-1]} outputs an expert, expected a multiple of {PANEL}."
        )
    n = math.prod(outer)
    raw = tensor.data.reshape(n, -1)
    if kind in FORMATS:
        form = FORMATS[kind]
        blocks = k // form.block
        data = _panels(arena, tensor, form.panel_bytes(blocks))
        form.pack(raw, data, interleave)
        return Weight(kind, tensor.shape, data, blocks)
    stored = kind in DENSE
    kind = kind if stored else fallback
    data = _panels(arena, tensor, k * PANEL * DENSE[kind])
    rows = max(PANEL, (1 << 24) // (4 * k) // PANEL * PANEL)
    for at in range(0, n, rows):
        part = raw[at : at + rows]
        if not stored:
            part = quants.dequantize(part, tensor.type).astype(_STORED[kind])
        pack_dense(part.view(_STORED[kind]), data[at // PANEL :], interleave)
    return Weight(kind, tensor.shape, data, k)


def _panels(arena: Arena, tensor: Tensor, panel_bytes: int) -> NDArray[np.uint8]:
    panels = -(-math.prod(tensor.shape[:-1]) // PANEL)
    return arena.take(panels * panel_bytes).reshape(panels, panel_bytes)


def short_of_memory(what: str) -> OutOfMemory:
    """An error that says what found no room, and how much there is."""
    free = psutil.virtual_memory().available
    return OutOfMemory(
        f"CPU: {what} and {free:,} bytes are free. Close other programs or use a smaller model."
    )
