"""Attention of the shapes that models have against NumPy, and rows' bits in any batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from engine.config import Precision
from engine.gguf import Tensor
from engine.ops import cuda_attention
from engine.ops.base import Limits, Rope, Shape, StepInput
from engine.ops.numpy_ops import NumpyOps
from engine.quants import TYPES
from tests.reference.blocks import random_tensor

SHAPES = (
    (32, 8, 128, False),
    (16, 8, 128, False),
    (24, 4, 256, True),
    (16, 2, 256, True),
    (9, 3, 64, False),
    (40, 1, 64, False),
)
"""Heads, key/value heads, dims, whether there are gates."""

SPLITS = 3
"""So that a split has several pages of a short text."""

N_TOKENS, WIDTH, N_OUT, PAGES = 90, 512, 80, 6
LIMITS = Limits(rows=256, sequences=3, pages=3 * PAGES, page_tokens=64, pages_per_sequence=PAGES)
LONG = ((64, 0, 0), (33, 0, 0), (70, 40, 131), (1, 90, 17), (100, 0, 60))
PROMPT, SIZES = 200, (1, 2, 3, 4, 7, 16, 32, 1, 5)


VIEWS: tuple[dict[str, Any], ...] = (
    {},
    {"window": 40},
    {"causal": False, "window": 70},
    {"causal": False, "window": 9, "window_per_row": False},
)
PARENTS = (-1, 0, 0, 1, 1, 2, 5, 3, 0, 8, -1, 10, 11, 12, 11, 3, 15, 16, 16, 5)


def attention(
    ops: Any, shape: tuple[int, int, int, bool], seed: int, **options: Any
) -> Callable[..., np.ndarray]:
    """A function: (tokens, start, sequence), .. -> products with rows of attention's result."""
    heads, kv_heads, dim, gated = shape
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((N_TOKENS, WIDTH)).astype(np.float32)
    norms = rng.uniform(0.5, 1.5, (2, dim)).astype(np.float32)
    rows = (heads * (1 + gated) + 2 * kv_heads) * dim
    w = random_tensor(rng, "Q8_0", rows, WIDTH)
    width = heads * dim
    out = rng.standard_normal((N_OUT, width)).astype(np.float32)
    ops.allocate(Shape(1, WIDTH, N_OUT, heads, kv_heads, dim), LIMITS)
    if hasattr(ops, "_splits"):
        ops._splits = SPLITS
    if hasattr(ops, "_kv"):  # NaN where nothing was stored
        ops.card.runtime.memset(ops._kv, 0xFF, 2 * ops._layer_bytes)

    def numbers(values: np.ndarray) -> Any:
        return ops.upload(Tensor("x", values.shape, TYPES[0], values.view(np.uint8)))

    with ops.recording():
        ones = numbers(np.ones(WIDTH, np.float32))
        qkv = ops.linear(ops.norm(ops.embed(numbers(table)), ones, 1e-5), ops.upload(w))
        rope = Rope(dim // 2, 1e4, interleaved=False)
        a = ops.attend(
            qkv, 0, rope, numbers(norms[0]), numbers(norms[1]), 1e-5, gated=gated, **options
        )
        ops.head(a, numbers(out))

    def run(*spans: tuple[np.ndarray, int, int], parents: Sequence[int] = ()) -> np.ndarray:
        tokens = np.concatenate([t for t, _, _ in spans]).astype(np.int32)
        positions = np.concatenate([start + np.arange(len(t)) for t, start, _ in spans])
        if parents:
            depth: list[int] = []
            for parent in parents:
                depth.append(depth[parent] + 1 if parent >= 0 else 0)
            positions = spans[0][1] + np.array(depth)
        sequence = np.repeat(
            np.array([s for *_, s in spans], np.int32), [len(t) for t, *_ in spans]
        )
        pages = np.arange(3 * PAGES, dtype=np.int32).reshape(3, PAGES)[::-1]
        every = np.arange(len(tokens), dtype=np.int32)
        step = StepInput(
            tokens,
            positions.astype(np.int32),
            sequence,
            pages,
            every,
            parents=np.array(parents, np.int32),
        )
        return ops.run(step).copy()

    return run


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_short_steps_equal_numpy_and_single_rows(
    make_ops: Any, shape: tuple[int, int, int, bool]
) -> None:
    seed = int(np.random.default_rng().integers(1 << 30))
    run, reference = (
        attention(ops, shape, seed) for ops in (make_ops(Precision.EXACT), NumpyOps())
    )
    rng = np.random.default_rng(seed)
    text = rng.integers(0, N_TOKENS, PROMPT + sum(SIZES))
    prompt, rest = text[:PROMPT], text[PROMPT:]
    for sequence in range(2):
        run((prompt, 0, sequence))
    reference((prompt, 0, 0))
    done = 0
    for size in SIZES:
        tokens, start = rest[done : done + size], PROMPT + done
        got = run((tokens, start, 0))
        want = reference((tokens, start, 0))
        assert ((got - want) ** 2).mean() < 1e-5 * (want**2).mean(), (seed, size)
        for i in range(size):
            one = run((tokens[i : i + 1], start + i, 1))
            np.testing.assert_array_equal(one[0], got[i], f"{seed}, row {i} of {size}")
        done += size


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("sizes", ((1, 1, 1), (1, 2, 1), (4, 9, 1), (17, 1, 14)), ids=str)
def test_sequences_together_equal_each_alone(
    make_ops: Any, shape: tuple[int, int, int, bool], sizes: tuple[int, int, int]
) -> None:
    run = attention(make_ops(), shape, 1)
    rng = np.random.default_rng(2)
    lengths = (130, 3, 250)
    for sequence, length in enumerate(lengths):
        run((rng.integers(0, N_TOKENS, length), 0, sequence))
    spans = [
        (rng.integers(0, N_TOKENS, size), length, sequence)
        for sequence, (size, length) in enumerate(zip(sizes, lengths, strict=True))
    ]
    together = run(*spans)
    alone = np.concatenate([run(span) for span in spans])
    assert np.isfinite(together).all()
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(
    "options",
    (
        {},
        {"window": 70},
        {"causal": False},
        {"window": 90, "window_per_row": False, "causal": False},
    ),
    ids=str,
)
def test_long_steps_equal_numpy(
    make_ops: Any,
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, int, int, bool],
    options: dict[str, Any],
) -> None:
    monkeypatch.setattr(
        cuda_attention, "_LEAST_SEEN", 64 if options else 512
    )  # blocks share, or not
    seed = int(np.random.default_rng().integers(1 << 30))
    run, reference = (
        attention(ops, shape, seed, **options) for ops in (make_ops(Precision.EXACT), NumpyOps())
    )
    rng = np.random.default_rng(seed)
    lengths = [0, 0, 0]
    for sizes in LONG:
        spans = []
        for sequence, size in enumerate(sizes):
            if size:
                spans.append((rng.integers(0, N_TOKENS, size), lengths[sequence], sequence))
            lengths[sequence] += size
        got, want = run(*spans), reference(*spans)
        assert ((got - want) ** 2).mean() < 1e-5 * (want**2).mean(), (seed, sizes)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_trees_and_windows_equal_numpy(
    make_ops: Any, shape: tuple[int, int, int, bool], view: dict[str, Any]
) -> None:
    run, reference = (
        attention(ops, shape, 3, **view) for ops in (make_ops(Precision.EXACT), NumpyOps())
    )
    text = np.random.default_rng(4).integers(0, N_TOKENS, 400)
    done = 0
    for size in (30, 32, 32, 32, 32, 32, 1, 5, 32, 17):
        span = text[done : done + size], done, 0
        close(run(span), reference(span))
        done += size
    if view.get("causal", True):
        span = text[done : done + len(PARENTS)], done, 0
        close(run(span, parents=PARENTS), reference(span, parents=PARENTS))


def close(got: np.ndarray, want: np.ndarray) -> None:
    assert ((got - want) ** 2).mean() < 1e-5 * (want**2).mean()
