"""Mixtures of experts on the card against NumPy, and a row's bits in steps of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from engine.config import Precision
from engine.gguf import Tensor
from engine.ops.base import Limits, Shape, StepInput
from engine.ops.numpy_ops import NumpyOps
from engine.quants import TYPES
from tests.reference.blocks import random_tensor

N_TOKENS = 80
LIMITS = Limits(rows=128, sequences=1, pages=2, page_tokens=64, pages_per_sequence=2)


@dataclass(frozen=True)
class Mixture:
    """Experts: formats of gate, up and down, of the shared expert's, and of the router."""

    formats: tuple[str, str, str]
    shared: tuple[str, str, str]
    router: str = "F32"
    n: int = 20
    used: int = 5
    embd: int = 1536
    inner: int = 512
    shared_inner: int = 512


MIXTURES = {
    "alike": Mixture(("Q4_K",) * 3, ("Q4_K",) * 3),
    "mixed": Mixture(("Q8_0", "Q4_K", "Q6_K"), ("F16", "Q8_0", "Q8_0"), shared_inner=768),
    "packed router": Mixture(("Q5_0",) * 3, ("Q5_0",) * 3, router="F16"),
    "many": Mixture(("Q4_0",) * 3, ("Q8_0",) * 3, "F32", 300, 8, 256, 64, 96),
    "numbers": Mixture(("Q4_K",) * 3, ("F32",) * 3),
}


def build(ops: Any, mixture: Mixture, seed: int) -> None:
    """Two layers of nothing but experts, whose sums are the logits."""
    rng = np.random.default_rng(seed)
    n, embd = mixture.n, mixture.embd

    def numbers(*shape: int) -> Any:
        values = (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        return ops.upload(Tensor("f", shape, TYPES[0], values.view(np.uint8)))

    def matrix(name: str, rows: int, columns: int, stacked: int = 0) -> Any:
        if name == "F32":
            return numbers(rows, columns)
        flat = random_tensor(rng, name, max(1, stacked) * rows, columns)
        shape = (stacked, rows, columns) if stacked else (rows, columns)
        return ops.upload(Tensor("e", shape, flat.type, flat.data.reshape(*shape[:-1], -1)))

    def sides(inner: int) -> list[tuple[int, int]]:
        return [(inner, embd), (inner, embd), (embd, inner)]

    stacks = [
        matrix(name, *side, n)
        for name, side in zip(mixture.formats, sides(mixture.inner), strict=True)
    ]
    shared = [
        matrix(name, *side)
        for name, side in zip(mixture.shared, sides(mixture.shared_inner), strict=True)
    ]
    router, gate = matrix(mixture.router, n, embd), numbers(1, embd)
    table, ones = numbers(N_TOKENS, embd), np.ones(embd, np.float32)
    norm = ops.upload(Tensor("n", (embd,), TYPES[0], ones.view(np.uint8)))
    same = np.eye(embd, dtype=np.float32)
    one = ops.upload(Tensor("i", same.shape, TYPES[0], same.view(np.uint8)))
    ops.allocate(Shape(2, embd, embd, 4, 1, 64), LIMITS)
    with ops.recording():
        x = ops.embed(table)
        h = ops.norm(x, norm, 1e-6)
        for _ in range(2):
            y = ops.experts(h, router, *stacks, mixture.used, shared, gate)
            h = ops.add_norm(x, y, norm, 1e-6)
        ops.head(h, one)


def step(tokens: np.ndarray) -> StepInput:
    index = np.arange(len(tokens), dtype=np.int32)
    table = np.arange(2, dtype=np.int32)[None]
    return StepInput(tokens.astype(np.int32), index, np.zeros_like(index), table, index)


def error(got: np.ndarray, want: np.ndarray) -> float:
    """Of the median row: a router's near ties go either way."""
    return float(np.median(np.linalg.norm(got - want, axis=1) / np.linalg.norm(want, axis=1)))


@pytest.mark.parametrize("name", MIXTURES)
@pytest.mark.parametrize("precision", Precision)
def test_experts_equal_numpy_and_do_not_depend_on_the_batch(
    make_ops: Any, name: str, precision: Precision
) -> None:
    seed = int(np.random.default_rng().integers(1 << 30))
    ops, reference = make_ops(precision), NumpyOps()
    for each in (ops, reference):
        build(each, MIXTURES[name], seed)
    tokens = np.random.default_rng(seed).permutation(N_TOKENS)
    want = reference.run(step(tokens))
    assert error(ops.run(step(tokens)), want) < 3e-3, seed
    whole = ops.run(step(tokens[:32])).copy()
    assert error(whole, want[:32]) < (3e-3 if precision is Precision.EXACT else 3e-2), seed
    for m in (1, 2, 3, 4, 5, 8, 9, 16, 17, 31):
        np.testing.assert_array_equal(ops.run(step(tokens[:m])), whole[:m], f"{m} rows, {seed}")
