"""Products of every weight type against float64; a row never depends on its neighbours."""

from __future__ import annotations

import numpy as np
import pytest

from engine import quants
from engine.config import Precision
from kernels.cpu.formats import FORMATS
from kernels.cpu.panels import DENSE
from tests.kernels.cpu.helpers import F32, VARIANTS, floats, make, rows, tensor
from tests.reference.coded import coded

KINDS = [*FORMATS, *DENSE, "IQ3_S", "TQ2_0"]
SIZES = (1, 2, 3, 7, 8, 13, 70)


def table(k: int, outliers: bool = True) -> F32:
    """Activations: normal, with a few large channels and one row of zeros."""
    x = np.random.default_rng(k).standard_normal((70, k)).astype(np.float32)
    if outliers:
        x[:, 3] *= 30
        x[5] = 0
    return x


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("precision", list(Precision))
def test_linear_and_head_equal_the_reference(kind: str, precision: Precision) -> None:
    k = 512 if quants.by_name(kind).block == 256 else 96
    x = table(k)
    weights = [tensor(kind, (n, k), seed=n) for n in (41, 16, 3)]

    def record(ops):  # type: ignore[no-untyped-def]
        e = ops.embed(ops.upload(floats(x)))
        y = ops.linear(e, *(ops.upload(w) for w in weights))
        ops.head(e, ops.upload(weights[0]))
        return y

    ops, y = make(record, precision=precision)
    fast = precision is Precision.FAST and kind in FORMATS
    seen = (coded(x) if fast else x).astype(np.float64)
    truth = np.concatenate([seen @ w.dequantize().astype(np.float64).T for w in weights], axis=1)
    # Types without kernels of their own become f16 in fast precision.
    rounded = precision is Precision.FAST and kind not in FORMATS and kind not in DENSE
    allowed = (3e-3 if rounded else 1e-5) * truth.std()
    logits = ops.run(rows(70)).copy()
    whole = y.values(70).copy()
    assert np.abs(whole - truth).max() < allowed
    np.testing.assert_array_equal(logits, whole[:, :41])
    for m in SIZES:
        ops.run(rows(m))
        np.testing.assert_array_equal(y.values(m), whole[:m])
    np.testing.assert_array_equal(ops.logits(np.array([69, 0, 69], np.int32)[:0]), logits[:0])
    ops.close()


@pytest.mark.parametrize("kind", ["Q4_1", "Q5_0", "Q8_0", "Q2_K", "Q5_K", "Q6_K", "IQ4_XS", "F16"])
@pytest.mark.parametrize("precision", list(Precision))
def test_all_instruction_sets_give_the_same_bits(kind: str, precision: Precision) -> None:
    x, weight = table(512), tensor(kind, (33, 512))

    def record(ops):  # type: ignore[no-untyped-def]
        ops.head(ops.embed(ops.upload(floats(x))), ops.upload(weight))

    results = []
    for target in (None, *VARIANTS.values()):
        ops, _ = make(record, precision=precision, target=target)
        results.append(ops.run(rows(70)).copy())
        ops.close()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("precision", list(Precision))
def test_the_number_of_threads_changes_no_bit(precision: Precision) -> None:
    x, weight = table(256), tensor("Q4_1", (200, 256))

    def record(ops):  # type: ignore[no-untyped-def]
        e = ops.embed(ops.upload(floats(x)))
        y = ops.linear(e, ops.upload(tensor("Q4_0", (16, 256))))  # fewer panels than threads
        ops.head(e, ops.upload(weight))
        return y

    results = []
    for threads in (1, 2, 3, 5):
        ops, y = make(record, precision=precision, threads=threads)
        logits = ops.run(rows(70)).copy()
        results.append(np.concatenate([logits, y.values(70)], axis=1))
        ops.close()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_saturating_codes_stay_exact() -> None:
    """The largest u8 and s8 numbers side by side overflow 16 bits on AVX2 if added carelessly."""
    k = 256
    x = np.where(np.arange(k) % 2, -1.0, 1.0).astype(np.float32) * np.ones((4, 1), np.float32)
    results = {}
    for kind in ("Q8_0", "Q6_K", "Q5_0"):
        weight = tensor(kind, (16, k))
        weight.data.reshape(16, -1)[:, 2:200] = 0xFF

        def record(ops, weight=weight):  # type: ignore[no-untyped-def]
            ops.head(ops.embed(ops.upload(floats(x))), ops.upload(weight))

        for name, target in (("best", None), *VARIANTS.items()):
            ops, _ = make(record, precision=Precision.FAST, target=target)
            results[name] = ops.run(rows(4)).copy()
            ops.close()
        truth = x.astype(np.float64) @ weight.dequantize().astype(np.float64).T
        for result in results.values():
            np.testing.assert_allclose(result, truth, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_embedding_rows_are_the_dequantised_weights_to_the_bit(kind: str) -> None:
    weight = tensor(kind, (50, 512))
    ops, x = make(lambda ops: ops.embed(ops.upload(weight)))
    tokens = np.array([0, 49, 17, 16, 15, 17], np.int32)
    ops.run(rows(6, tokens=tokens, logit_rows=tokens[:0]))
    np.testing.assert_array_equal(x.values(6), weight.dequantize()[tokens])
    ops.close()
