"""Matrix products of every format against the same quantised activations in NumPy."""

from __future__ import annotations

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

    def run(tokens: np.ndarray) -> np.ndarray:
        index = np.arange(len(tokens), dtype=np.int32)
        zero = np.zeros(len(tokens), np.int32)
        return ops.run(
            StepInput(tokens.astype(np.int32), index, zero, np.zeros((1, 1), np.int32), index)
        ).copy()

    return run


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
