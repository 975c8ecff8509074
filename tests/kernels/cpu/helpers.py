"""What the tests of the CPU kernels share: random tensors of every type, small recordings, steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import quants
from engine.config import Precision
from engine.gguf import Tensor
from engine.ops.base import Limits, Shape, StepInput
from engine.ops.cpu import CpuOps
from engine.ops.cpu_weights import padded
from kernels.cpu.compiler import detect
from kernels.cpu.emit import Target

F32 = NDArray[np.float32]
NUMBERS = {"F32": "<f4", "F16": "<f2"}
SCALES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q4_K": (0, 2),
    "Q5_K": (0, 2), "Q6_K": (208,), "Q2_K": (80, 82), "Q3_K": (108,), "IQ4_NL": (0,),
    "IQ4_XS": (0,), "MXFP4": (), "IQ3_S": (0,), "TQ2_0": (64,),
}  # fmt: skip
"""Where the f16 scales of a block are; all other bits may be anything."""

_DOTS = ("plain", "avx2", "avxvnni", "avx512vnni")
VARIANTS = {
    name: target
    for name, target in {
        "vnni256": Target("avxvnni", 8, f16=True, fma=True),
        "avx2": Target("avx2", 8, f16=True, fma=True),
        "plain": Target("plain", 8, f16=False, fma=True),
    }.items()
    if _DOTS.index(target.dot) <= _DOTS.index(detect().dot)
}
"""What this processor can run besides its best."""


def tensor(kind: str, shape: tuple[int, ...], seed: int = 0) -> Tensor:
    """Random weights of a type, of the size that a model's have."""
    rng = np.random.default_rng(seed)
    form = quants.by_name(kind)
    size = 1 / np.sqrt(shape[-1])
    if kind in NUMBERS:
        data = (rng.standard_normal(shape) * size).astype(NUMBERS[kind]).view(np.uint8)
    elif kind == "BF16":
        numbers = (rng.standard_normal(shape) * size).astype(np.float32).view(np.uint32)
        data = (numbers >> 16).astype(np.uint16).view(np.uint8)
    else:
        blocks = rng.integers(0, 256, (*shape[:-1], shape[-1] // form.block, form.bytes), np.uint8)
        for at in SCALES[kind]:
            scale = rng.uniform(0.2, 1.0, blocks.shape[:-1]) * size / 64
            blocks[..., at : at + 2] = scale.astype(np.float16)[..., None].view(np.uint8)
        if kind == "MXFP4":
            blocks[..., 0] = rng.integers(118, 122, blocks.shape[:-1])
        data = blocks.reshape(*shape[:-1], -1)
    return Tensor("t", shape, form, data)


def floats(values: F32) -> Tensor:
    """Given float32 numbers as a tensor."""
    return Tensor(
        "t", values.shape, quants.by_name("F32"), np.ascontiguousarray(values).view(np.uint8)
    )


def rows(m: int, **changes: NDArray[Any]) -> StepInput:
    """A step of one sequence: tokens 0 .. m - 1 at positions 0 .. m - 1, every logit wanted."""
    number = np.arange(m, dtype=np.int32)
    parts = {
        "tokens": number, "positions": number, "sequence": np.zeros(m, np.int32),
        "page_table": np.arange(32, dtype=np.int32)[None], "logit_rows": number,
    }  # fmt: skip
    return StepInput(**{**parts, **changes})


def make(
    record: Callable[[CpuOps], Any],
    *,
    precision: Precision = Precision.EXACT,
    threads: int = 2,
    target: Target | None = None,
    shape: Shape | None = None,
    n_rows: int = 80,
    pages: int = 32,
    tried: int = 0,
) -> tuple[CpuOps, Any]:
    """Operations with one recording, and what `record` returned; every byte is NaN before the first run."""
    ops = CpuOps(threads, precision, target=target)
    limits = Limits(n_rows, 4, pages, 64, pages, slots=5, tried=tried)
    ops.allocate(shape or Shape(1, 32, 512, 4, 2, 64), limits)
    with ops.recording():
        result = record(ops)
    poison(ops)
    return ops, result


def poison(ops: CpuOps) -> None:
    """Fill all memory with NaN, paddings excepted: whoever reads what nobody wrote is found out."""
    ops._kv[:] = 0xFF
    ops._states[:] = ops._tails[:] = np.nan
    for area in ops._areas:
        if area.floats.size:
            n = ops._limits.rows * padded(area.width)
            numbers = area.floats[: 4 * n].view(np.float32).reshape(-1, padded(area.width))
            numbers[:, : area.width] = np.nan
        area.coded[:] = 0xFF
