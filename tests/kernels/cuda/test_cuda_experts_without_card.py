"""What a card is told of a mixture of experts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.config import Precision
from engine.gguf import Tensor
from engine.ops.base import Shape
from engine.ops.cuda import CudaOps
from kernels.variants import ARCHITECTURES, F16, INT8, PACKED, experts_short
from tests.kernels.cuda.test_cuda_ops_without_card import (
    LIMITS,
    N_LAYERS,
    Notes,
    notes,
    parameters,
    step,
    vector,
)
from tests.reference.blocks import random_tensor

__all__ = ["notes"]


def record_experts(ops: CudaOps, formats: tuple[str, str, str], shared: str, router: str) -> None:
    """Layers of nothing but 12 experts, of which a row takes 3."""
    rng, n, embd, inner = np.random.default_rng(1), 12, 512, 256

    def matrix(name: str, rows: int, columns: int, n: int = 1) -> Any:
        flat = random_tensor(rng, name, n * rows, columns)
        shape = (rows, columns) if n == 1 else (n, rows, columns)
        return ops.upload(Tensor("w", shape, flat.type, flat.data.reshape(*shape[:-1], -1)))

    sides = ((inner, embd), (inner, embd), (embd, inner))
    stacks = [matrix(name, *side, n) for name, side in zip(formats, sides, strict=True)]
    of_shared = [matrix(shared, *side) for side in sides]
    table, norm = matrix("Q8_0", 99, embd), ops.upload(vector(embd))
    of_router, gate = matrix(router, n, embd), matrix("F32", 1, embd)
    ops.allocate(Shape(N_LAYERS, embd, 99, 8, 2, 64), LIMITS)
    with ops.recording():
        x = ops.embed(table)
        h = ops.norm(x, norm, 1e-5)
        for _ in range(N_LAYERS):
            y = ops.experts(h, of_router, *stacks, 3, of_shared, gate)
            h = ops.add_norm(x, y, norm, 1e-5)
        ops.head(h, table)


@pytest.mark.parametrize("precision", (Precision.FAST, Precision.EXACT))
@pytest.mark.parametrize(
    ("formats", "shared", "router", "nodes"),
    (
        (("Q4_K", "Q4_K", "Q6_K"), "Q4_K", "F32", ("router", 1, 2)),
        (("Q4_K", "Q4_K", "Q4_K"), "Q4_K", "F32", ("router", 1, 1)),
        (("Q4_K", "Q5_0", "Q8_0"), "Q8_0", "F32", ("router", 3, 1)),
        (("Q4_K", "Q4_K", "Q4_K"), "Q4_K", "F16", ("route", 1, 1)),
        (("Q4_K", "Q4_K", "Q4_K"), "F32", "F32", ("route", 0, 0)),
    ),
)
def test_experts_of_short_steps_are_few_nodes(
    notes: Notes,
    formats: tuple[str, str, str],
    shared: str,
    router: str,
    nodes: tuple[str, int, int],
    precision: Precision,
) -> None:
    ops = CudaOps(precision=precision)
    record_experts(ops, formats, shared, router)
    expected = parameters()
    for m in (1, 7, 9, 32, 33, 100):
        notes.launches.clear()
        ops.run(step(m, 1))
        names = [name for name, *_ in notes.launches]
        assert all(n == expected[name] for name, _, _, n in notes.launches)
        few = m <= 32 and nodes[1] > 0
        found = names.count("experts_up"), names.count("experts_down"), names.count("plan")
        assert found == ((N_LAYERS * nodes[1], N_LAYERS * nodes[2], 0) if few else (0, 0, N_LAYERS))
        assert names.count(nodes[0] if few else "route") == N_LAYERS
        if few and nodes == ("router", 1, 1):
            groups, of_group = {1: (1, 3), 7: (1, 12), 9: (2, 12), 32: (4, 12)}[m]
            tiles = {grid[1] for name, grid, *_ in notes.launches if name.startswith("experts_")}
            assert tiles == {groups * (1 + of_group)}
            assert set(names) & {"swiglu", "weigh", "gather_rows", "matmul_float_short"} == set()
    ops.close()
    assert not notes.memory


@pytest.mark.parametrize("arch", (*ARCHITECTURES, 87, 103, 121))
def test_experts_of_every_format_fit_every_card(arch: int) -> None:
    most = (64 if arch == 75 else 163 if arch == 80 else 227 if arch in (90, 100) else 99) << 10
    for type_id in PACKED:
        for form in (INT8, F16):
            build = experts_short(type_id, form, arch)
            assert build.stages >= 1
            for slots in (8, 4 * build.stages):
                assert build.shared(slots, 9) <= build.most <= most - 4096
            assert build.shared(2, 1) < build.shared(8, 1) <= build.shared(8, 2)
