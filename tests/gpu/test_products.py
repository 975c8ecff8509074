"""Matrix products of every format against the same quantised activations in NumPy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.config import Precision
from engine.gguf import Tensor
from engine.ops.base import Limits, Shape, StepInput
from engine.ops.two_level import two_level
from engine.quants import TYPES, dequantize
from tests.reference.blocks import extreme, random_tensor
from tests.reference.packing import FORMATS

NUMBERS = ("F16", "BF16", "F32")
AS_F16 = ("F16", "BF16", "NVFP4")
TYPE_NAMES = (*FORMATS, *NUMBERS, "NVFP4")
SHAPES = ((48, 256), (4096, 1024), (200, 576), (51, 2048), (1024, 4096))
N_TOKENS = 64
LIMITS = Limits(rows=64, sequences=1, pages=1, page_tokens=64, pages_per_sequence=1)


def product_of(ops: Any, w: Tensor, x: np.ndarray) -> Any:
    """A function: rows of x -> rows of x W^T through `head`."""
    rows, columns = w.shape
    table = Tensor("x", x.shape, TYPES[0], x.view(np.uint8))
    ops.allocate(Shape(1, columns, rows, 4, 1, 64), LIMITS)
    weight, embedding = ops.upload(w), ops.upload(table)
    with ops.recording():
        ops.head(ops.embed(embedding), weight)

    return lambda tokens: logits_of(ops, tokens)


def logits_of(ops: Any, tokens: np.ndarray) -> np.ndarray:
    """Of a step of these tokens."""
    index = np.arange(len(tokens), dtype=np.int32)
    zero = np.zeros(len(tokens), np.int32)
    step = StepInput(tokens.astype(np.int32), index, zero, np.zeros((1, 1), np.int32), index)
    return np.array(ops.run(step))


@pytest.mark.parametrize("name", TYPE_NAMES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_products_equal_numpy_and_do_not_depend_on_the_batch(
    make_ops: Any, name: str, shape: tuple[int, int]
) -> None:
    rng = np.random.default_rng()
    w = random_tensor(rng, name, *shape)
    x = rng.standard_normal((N_TOKENS, w.shape[1])).astype(np.float32)
    x[:, rng.integers(0, w.shape[1], 3)] *= 50
    run = product_of(make_ops(), w, x)
    with_f16 = name in AS_F16
    quantised = x.astype(np.float64) if with_f16 or name == "F32" else two_level(x)
    weights = dequantize(w.data, w.type).astype(np.float64)
    want = quantised @ weights.T
    tolerance = 1e-3 if with_f16 else 1e-5
    tokens = rng.permutation(N_TOKENS)[:32]
    whole = run(tokens)
    for m in (1, 2, 5, 8, 9, 16, 17, 32):
        got = run(tokens[:m])
        assert got.shape == (m, shape[0])
        np.testing.assert_array_equal(got, whole[:m])
    error = np.linalg.norm(whole - want[tokens]) / np.linalg.norm(want[tokens])
    assert error < tolerance


@pytest.mark.parametrize("name", TYPE_NAMES)
def test_embeddings_equal_numpy(make_ops: Any, name: str) -> None:
    table = random_tensor(np.random.default_rng(), name, N_TOKENS, 512)
    ops = make_ops(Precision.EXACT)
    one = Tensor("one", (512, 512), TYPES[0], np.eye(512, dtype=np.float32).view(np.uint8))
    ops.allocate(Shape(1, 512, 512, 4, 1, 64), LIMITS)
    embedding, identity = ops.upload(table), ops.upload(one)
    with ops.recording():
        ops.head(ops.embed(embedding), identity)
    index = np.arange(32, dtype=np.int32)
    tokens = np.random.default_rng().permutation(N_TOKENS)[:32].astype(np.int32)
    got = ops.run(StepInput(tokens, index, 0 * index, np.zeros((1, 1), np.int32), index))
    want = table.dequantize()[tokens]
    # f16 has steps of 2^-24 near zero.
    rtol, atol = (1e-3, 2.0**-24) if name in AS_F16 else (1e-6, 0.0)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


@pytest.mark.parametrize(
    "names",
    (("Q5_K", "Q4_K", "Q4_K"), ("Q4_K", "Q6_K"), ("Q8_0", "F16", "Q5_0"), ("Q4_K", "F32")),
    ids=str,
)
def test_formats_in_one_launch_equal_those_apart(make_ops: Any, names: tuple[str, ...]) -> None:
    """Products of one x, in several buffers, at a model's width; the results as one row of logits."""
    rng = np.random.default_rng()
    heights, width = (1024, 64, 48), 2048
    matrices = [random_tensor(rng, n, h, width) for n, h in zip(names, heights, strict=False)]
    x = rng.standard_normal((N_TOKENS, width)).astype(np.float32)
    table = Tensor("x", x.shape, TYPES[0], x.view(np.uint8))
    ones = Tensor("n", (width,), TYPES[0], np.ones(width, np.float32).view(np.uint8))
    total = sum(w.shape[0] for w in matrices)
    one = np.eye(total, dtype=np.float32)
    tokens = rng.permutation(N_TOKENS)[:32]
    found = []
    for apart in (False, True):
        ops = make_ops()
        ops.distrust = replace(ops.distrust, apart=apart)
        ops.allocate(Shape(1, width, total, 4, 1, 64), LIMITS)
        with ops.recording():
            h = ops.norm(ops.embed(ops.upload(table)), ops.upload(ones), 1e-6)
            uploaded = [ops.upload(w) for w in matrices]
            parts = [ops.linear(h, *uploaded[:2]), *(ops.linear(h, w) for w in uploaded[2:])]
            ops.head(
                ops.concat(*parts),
                ops.upload(Tensor("one", one.shape, TYPES[0], one.view(np.uint8))),
            )
        whole = logits_of(ops, tokens)
        for m in (1, 3, 8, 9, 17):
            np.testing.assert_array_equal(logits_of(ops, tokens[:m]), whole[:m])
        found.append(whole)
    scale = np.sqrt((x.astype(np.float64) ** 2).mean(axis=1, keepdims=True) + 1e-6)
    exact, rounded = x.astype(np.float64), two_level(x)
    want = np.hstack(
        [
            (exact if w.type.name in ("F16", "F32") else rounded)
            @ dequantize(w.data, w.type).astype(np.float64).reshape(w.shape).T
            for w in matrices
        ]
    )
    want = (want / scale)[tokens]
    for got in found:
        assert np.linalg.norm(got - want) / np.linalg.norm(want) < 1e-3
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4 * np.abs(want).max())


def test_extreme_codes_do_not_overflow(make_ops: Any) -> None:
    """Every code, scale and activation at its limit: integer sums are the largest that can be."""
    for name in FORMATS:
        for fill in (0x00, 0x7F, 0x80, 0xFF):
            w = extreme(random_tensor(np.random.default_rng(), name, 32, 512), fill)
            x = np.ones((N_TOKENS, 512), np.float32)
            x[1::2] = -1
            run = product_of(make_ops(), w, x)
            want = two_level(x) @ dequantize(w.data, w.type).astype(np.float64).T
            tokens = np.arange(32)
            np.testing.assert_allclose(
                run(tokens), want[tokens], rtol=1e-5, atol=1e-6 * np.abs(want).max()
            )
