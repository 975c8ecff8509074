"""experts_short.cu run on the processor, thread by thread, against NumPy on the same activations."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.ops.cuda_buffers import Int, Pass, Pointer
from engine.ops.cuda_device import Weight
from engine.ops.cuda_experts import GROUP, ExpertOps, Routes, Stack
from engine.ops.two_level import two_level
from engine.quants import by_name, dequantize
from kernels.variants import F16, INT8
from tests.kernels.cuda.conftest import compiled
from tests.kernels.cuda.test_cuda_unit_on_host import f16_blocks, int8_blocks
from tests.reference.blocks import random_tensor
from tests.reference.packing import pack

M, GROUPS, EXPERTS, USED, NAME = 11, 2, 3, 2, "Q4_K"
ROWS = 48
"""Of an expert's matrix: row tiles for several turns of a block."""


class Launcher:
    """Runs what `ExpertOps` launches; its matrices and what it knows of them."""

    def __init__(self, rng: np.random.Generator, form: int, folder: Path) -> None:
        self.rng, self.folder = rng, folder
        self.p = Pass(M, form, 1, 1)
        self.keep: list[np.ndarray] = []
        self.card = SimpleNamespace(arch=90, kernel=lambda variant, name, *rest: (variant, name))

    def _launch(self, kernel: Any, grid: Any, threads: int, args: Any) -> None:
        variant, name = kernel
        pointers = (ctypes.c_void_p * len(args))(*map(ctypes.addressof, args))
        run = getattr(compiled(variant, self.folder), f"run_{name}")
        run(pointers, (ctypes.c_int * 3)(*grid), threads)

    def product(self, *args: Any) -> None:
        ExpertOps._short_product(self, *args)  # type: ignore[arg-type]

    def at(self, values: np.ndarray) -> int:
        """Where values lie that stay."""
        self.keep.append(np.ascontiguousarray(values))
        return int(self.keep[-1].ctypes.data)

    def matrix(self, n: int, rows: int, columns: int) -> tuple[Weight, np.ndarray]:
        """Weights of n experts, packed and as numbers."""
        tensor = random_tensor(self.rng, NAME, n * rows, columns)
        address = self.at(pack(tensor.data, NAME, columns))
        weight = Weight(address, n * rows, columns, by_name(NAME).id, 0)
        values = dequantize(tensor.data, tensor.type).astype(np.float64)
        return weight, values.reshape(n, rows, columns)

    def seen(self, x: np.ndarray) -> np.ndarray:
        """Activations as their form has them."""
        return two_level(x) if self.p.form_of(by_name(NAME).id) == INT8 else x.astype(np.float16)


def routes(
    rng: np.random.Generator, on: Launcher, factors: np.ndarray
) -> tuple[np.ndarray, Routes]:
    """What a row's places (M, USED + 1) have, the last one the shared expert, and the tiles of that."""
    taken = np.stack([rng.permutation(EXPERTS)[:USED] for _ in range(M)])
    expert = np.full((GROUPS, EXPERTS), -1, np.int32)
    places = np.full((GROUPS, EXPERTS, GROUP), 255, np.uint8)
    for group in range(GROUPS):
        rows = taken[GROUP * group : GROUP * (group + 1)]
        for tile, one in enumerate(np.unique(rows)):
            expert[group, tile] = one
            for row, place in np.argwhere(rows == one):
                places[group, tile, row] = place
    every = np.concatenate([taken, np.full((M, 1), EXPERTS)], axis=1)
    return every, Routes(on.at(expert), on.at(places), None, on.at(factors), USED, EXPERTS)


@pytest.mark.parametrize("form", (INT8, F16))
@pytest.mark.parametrize("superblocks", (1, 2, 3, 6, 9))
def test_up_equals_numpy(folder: Path, superblocks: int, form: int) -> None:
    """Columns that 1, 2 or 4 warps share; activations of up to eight superblocks are kept."""
    rng = np.random.default_rng()
    on = Launcher(rng, form, folder)
    x = np.zeros((GROUP * GROUPS, 256 * superblocks), np.float32)
    x[:M] = rng.standard_normal((M, 256 * superblocks))
    make = int8_blocks if form == INT8 else f16_blocks
    blocks = np.stack([make(x[:, 256 * s : 256 * s + 256]) for s in range(superblocks)])
    every, table = routes(rng, on, np.ones(M, np.float32))
    (gate, w_gate), (up, w_up) = (on.matrix(EXPERTS, ROWS, x.shape[1]) for _ in range(2))
    (one_gate, w_one_gate), (one_up, w_one_up) = (on.matrix(1, ROWS, x.shape[1]) for _ in range(2))
    y = np.full((M, USED + 1, 2 * ROWS), np.nan, np.float32)
    on.product(
        "experts_up", gate, (gate, Stack.of(EXPERTS, gate, up), 0),
        (one_gate, Stack.of(1, one_gate, one_up), 0), table, on.p,
        (Pointer(on.at(blocks)), Int(GROUPS), Pointer(y.ctypes.data), Int(2 * ROWS)),
    )  # fmt: skip
    w = np.hstack([np.concatenate([w_gate, w_one_gate]), np.concatenate([w_up, w_one_up])])
    seen = np.repeat(on.seen(x[:M])[:, None], USED + 1, axis=1)
    assert error(y, w[every], seen) < (1e-6 if form == INT8 else 2e-3)


@pytest.mark.parametrize("form", (INT8, F16))
@pytest.mark.parametrize(("superblocks", "shared"), ((1, 2), (2, 3), (3, 1), (6, 9), (9, 2)))
def test_down_equals_numpy(folder: Path, superblocks: int, shared: int, form: int) -> None:
    """The same, where each block makes its activations; a shared expert may have more of them, or fewer."""
    rng = np.random.default_rng()
    on = Launcher(rng, form, folder)
    inner, shared_inner, widest = 256 * superblocks, 256 * shared, 512 * max(superblocks, shared)
    factors = rng.uniform(0.5, 2, M).astype(np.float32)
    every, table = routes(rng, on, factors)
    gate_up = rng.standard_normal((M, USED + 1, widest)).astype(np.float32)
    (down, w_down), (one_down, w_one) = (
        on.matrix(EXPERTS, ROWS, inner),
        on.matrix(1, ROWS, shared_inner),
    )
    y = np.full((M, USED + 1, ROWS), np.nan, np.float32)
    on.product(
        "experts_down", down, (down, Stack.of(EXPERTS, down), 0),
        (one_down, Stack.of(1, one_down), 0), table, on.p,
        (Pointer(on.at(gate_up)), Int(widest), Int(inner), Int(shared_inner),
         Pointer(y.ctypes.data), Int(ROWS)),
    )  # fmt: skip
    gate_up *= factors[:, None, None]
    for places, w in (
        (slice(USED), w_down[every[:, :USED]]),
        (slice(USED, None), w_one[every[:, USED:] * 0]),
    ):
        n = w.shape[3]
        gate, up = gate_up[:, places, :n], gate_up[:, places, n : 2 * n]
        h = gate / (1 + np.exp(-gate)) * up
        seen = on.seen(h.reshape(-1, n)).reshape(h.shape)
        assert error(y[:, places], w, seen) < (1e-4 if form == INT8 else 2e-3)


def error(got: np.ndarray, w: np.ndarray, x: np.ndarray) -> float:
    """Of products of weights (M, places, rows, columns) with x (M, places, columns)."""
    x = x.astype(np.float64)
    want, scale = (np.einsum("mprc,mpc->mpr", *pair) for pair in ((w, x), (np.abs(w), np.abs(x))))
    return float(np.abs(got - want).max() / scale.max())
