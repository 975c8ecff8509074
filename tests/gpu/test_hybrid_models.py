"""Recurrent layers, gated attention and experts of quantised matrices on the card, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.config import Precision
from engine.gguf import Tensor
from engine.ops.base import DeltaShape, Limits, Rope, Shape, StepInput
from engine.ops.numpy_ops import NumpyOps
from engine.quants import TYPES
from tests.reference.blocks import random_tensor

LIMITS = Limits(rows=256, sequences=3, pages=15, page_tokens=64, pages_per_sequence=5, slots=4)
DELTA = DeltaShape(n_layers=2, n_k_heads=2, n_v_heads=6, head_dim=128, conv_kernel=4)
EMBD, HEADS, KV_HEADS, HEAD_DIM, VOCABULARY, FF, EXPERTS, USED = 512, 6, 2, 256, 333, 256, 12, 3
MIXES = (
    ("Q4_K", "Q6_K", "Q5_K"), ("Q8_0", "Q8_0", "Q8_0"), ("F16", "Q4_0", "BF16"),
    ("IQ4_XS", "Q3_K", "Q2_K"), ("MXFP4", "IQ4_NL", "MXFP4"),
    ("IQ2_XXS", "IQ3_S", "IQ2_S"), ("IQ1_M", "TQ1_0", "IQ3_XXS"), ("IQ1_S", "IQ2_XS", "TQ2_0"),
)  # fmt: skip
NMSE = {Precision.FAST: (1e-3, 1e-2), Precision.EXACT: (1e-5, 1e-5)}
"""Of steps longer than 32 rows and of shorter ones, the median row: a router's near ties go either way."""
MARGINS = {Precision.FAST: (2e-3, 4e-2, 2e-3), Precision.EXACT: (2e-3, 2e-3, 2e-3)}
"""By which each row's last expert must be ahead of the next one in steps of 200, 2 and 32 rows: several times
what activations of f16 change scores by, and of 8 bits, which are those of fast short steps. Few seeds would
have all of 32 rows so far from a tie; a flip in some of them does not move the median row."""


def build(ops: Any, rng: np.random.Generator, mix: tuple[str, str, str]) -> None:
    """A recurrent layer with experts, one with gated attention, one recurrent and dense."""
    first, second, third = mix

    def vector(n: int, low: float = 0.5, high: float = 1.5) -> Any:
        values = rng.uniform(low, high, n).astype(np.float32)
        return ops.upload(Tensor("n", (n,), TYPES[0], values.view(np.uint8)))

    def matrix(name: str, rows: int, columns: int) -> Any:
        return ops.upload(random_tensor(rng, name, rows, columns))

    def floats(*shape: int) -> Any:
        values = (rng.standard_normal(shape) / np.sqrt(shape[-1])).astype(np.float32)
        return ops.upload(Tensor("f", shape, TYPES[0], values.view(np.uint8)))

    def stack(name: str, rows: int, columns: int) -> Any:
        flat = random_tensor(rng, name, EXPERTS * rows, columns)
        data = flat.data.reshape(EXPERTS, rows, -1)
        return ops.upload(Tensor("e", (EXPERTS, rows, columns), flat.type, data))

    inner = DELTA.n_v_heads * DELTA.head_dim
    q, kv = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM

    def recurrent() -> dict[str, Any]:
        return {
            "in": [
                matrix(first, DELTA.qkv, EMBD), matrix(second, inner, EMBD),
                matrix(second, DELTA.n_v_heads, EMBD), floats(DELTA.n_v_heads, EMBD),
            ],
            "rest": [
                floats(DELTA.qkv, DELTA.conv_kernel), vector(DELTA.n_v_heads),
                vector(DELTA.n_v_heads, -0.5, -0.01), vector(DELTA.head_dim),
            ],
            "out": matrix(third, EMBD, inner),
        }  # fmt: skip

    layers = [recurrent(), recurrent()]
    attention = [matrix(first, 2 * q, EMBD), matrix(first, kv, EMBD), matrix(second, kv, EMBD)]
    head_norms, back = [vector(HEAD_DIM), vector(HEAD_DIM)], matrix(third, EMBD, q)
    norms = [vector(EMBD) for _ in range(5)]
    router, shared_gate = floats(EXPERTS, EMBD), floats(1, EMBD)
    gate, up, down = stack(first, FF, EMBD), stack(second, FF, EMBD), stack(third, EMBD, FF)
    shared = (matrix(first, FF, EMBD), matrix(first, FF, EMBD), matrix(second, EMBD, FF))
    embedding, output = floats(VOCABULARY, EMBD), matrix(second, VOCABULARY, EMBD)
    ops.allocate(Shape(3, EMBD, VOCABULARY, HEADS, KV_HEADS, HEAD_DIM, DELTA), LIMITS)
    rope = Rope(64, 1e6, interleaved=False)
    with ops.recording():
        x = ops.embed(embedding)
        h = ops.norm(x, norms[0], 1e-6)
        mixed = ops.linear(h, *layers[0]["in"])
        o = ops.linear(ops.delta(mixed, 0, *layers[0]["rest"], 1e-6), layers[0]["out"])
        h = ops.add_norm(x, o, norms[1], 1e-6)
        y = ops.experts(h, router, gate, up, down, USED, shared, shared_gate)
        h = ops.add_norm(x, y, norms[2], 1e-6)
        ops.end_layer(0, x)
        qkv = ops.linear(h, *attention)
        o = ops.linear(ops.attend(qkv, 0, rope, *head_norms, 1e-6, gated=True), back)
        h = ops.add_norm(x, o, norms[3], 1e-6)
        ops.end_layer(1, x)
        mixed = ops.linear(h, *layers[1]["in"])
        o = ops.linear(ops.delta(mixed, 1, *layers[1]["rest"], 1e-6), layers[1]["out"])
        h = ops.add_norm(x, o, norms[4], 1e-6)
        ops.end_layer(2, x)
        ops.head(h, output)


def step(tokens: np.ndarray, start: int, sequence: int = 0) -> StepInput:
    index = np.arange(len(tokens), dtype=np.int32)
    table = np.stack([np.arange(5 * i, 5 * i + 5) for i in range(3)]).astype(np.int32)
    slots = np.array([2, 0, 3], np.int32)
    return StepInput(
        tokens.astype(np.int32), start + index, np.full_like(index, sequence), table, index, slots
    )


class Watched(NumpyOps):
    """Notes of each step by how much its nearest choice of experts is decided."""

    def __init__(self) -> None:
        super().__init__()
        self.margins: list[float] = []

    def experts(self, h: Any, router: np.ndarray, *rest: Any) -> Any:
        def look(_: StepInput) -> None:
            scores = np.sort(h.value @ router.T, axis=1)
            self.margins.append(float((scores[:, -USED] - scores[:, -USED - 1]).min()))

        self._program.append(look)
        return super().experts(h, router, *rest)


def decided(mix: tuple[str, str, str], precision: Precision) -> tuple[int, list[np.ndarray]]:
    """A seed where no router is so near a tie that rows, or states and with them all rows behind, hang on
    it; and the logits of a prompt of 200 tokens and of the steps of 2 and of 32 behind it."""
    while True:
        seed, ops = int(np.random.default_rng().integers(1 << 30)), Watched()
        build(ops, np.random.default_rng(seed), mix)
        tokens = np.random.default_rng(seed).integers(0, VOCABULARY, 234)
        parts = ((0, 200), (200, 202), (202, 234))
        logits = [ops.run(step(tokens[a:b], a)).copy() for a, b in parts]
        if all(a > b for a, b in zip(ops.margins, MARGINS[precision], strict=True)):
            return seed, logits


def nmse(got: np.ndarray, want: np.ndarray) -> float:
    return float(np.median(((got - want) ** 2).mean(axis=1)) / (want**2).mean())


@pytest.mark.parametrize("mix", MIXES, ids="-".join)
@pytest.mark.parametrize("precision", Precision)
def test_hybrid_models_equal_numpy(
    make_ops: Any, mix: tuple[str, str, str], precision: Precision
) -> None:
    seed, want = decided(mix, precision)
    ops = make_ops(precision)
    build(ops, np.random.default_rng(seed), mix)
    tokens = np.random.default_rng(seed).integers(0, VOCABULARY, 234)
    assert nmse(ops.run(step(tokens[:200], 0)), want[0]) < NMSE[precision][0], seed
    ops.copy_state(2, 1)
    assert nmse(ops.run(step(tokens[200:202], 200)), want[1]) < NMSE[precision][1], seed
    ops.copy_state(2, 3)
    whole = ops.run(step(tokens[202:], 202)).copy()
    assert nmse(whole, want[2]) < NMSE[precision][1], seed
    ops.copy_state(3, 2)
    done = 0
    for size in (1, 2, 7, 16, 6):
        got = ops.run(step(tokens[202 + done : 202 + done + size], 202 + done))
        np.testing.assert_array_equal(got, whole[done : done + size])
        done += size
    assert done == 32
    memory = ops.memory()
    assert memory["model"] > 0 and ops.first_bad_layer(step(tokens[:40], 0)) is None
    ops.copy_state(1, 2)
    got = ops.run(step(tokens[200:202], 200))
    assert np.isfinite(got).all()
