"""Mixture of experts against the NumPy reference, and that rows do not depend on each other."""

from __future__ import annotations

import numpy as np
import pytest

from engine.config import Precision
from engine.errors import UnsupportedModel
from engine.ops.base import Limits, Shape
from engine.ops.cpu import CpuOps
from engine.ops.numpy_ops import NumpyOps
from engine.quants import by_name
from tests.kernels.cpu.helpers import F32, floats, make, rows, tensor

N_TOKENS = 90
EMBD, INNER, N = 256, 256, 8
SHAPE = Shape(1, EMBD, N_TOKENS, 2, 1, 64)


def numbers(n: int, width: int, seed: int = 1) -> F32:
    return np.random.default_rng(seed).standard_normal((n, width)).astype(np.float32)


def record(  # type: ignore[no-untyped-def]
    ops, kinds: tuple[str, str, str] = ("F32",) * 3, router: F32 | None = None, used: int = 2,
    inner: int = INNER,
):  # fmt: skip
    """The experts on normed rows, as in a model; works on the reference too."""
    gate, up, down = (
        ops.upload(tensor(kind, shape, seed))
        for seed, (kind, shape) in enumerate(
            zip(kinds, ((N, inner, EMBD), (N, inner, EMBD), (N, EMBD, inner)), strict=True)
        )
    )
    ones = ops.upload(floats(np.ones(EMBD, np.float32)))
    h = ops.norm(ops.embed(ops.upload(floats(numbers(N_TOKENS, EMBD)))), ones, 1e-6)
    shared = [
        ops.upload(tensor(kinds[2], shape, 7 + i))
        for i, shape in enumerate(((inner, EMBD), (inner, EMBD), (EMBD, inner)))
    ]
    router = numbers(N, EMBD, 3) if router is None else router
    weight, shared_gate = (ops.upload(floats(x)) for x in (router, numbers(1, EMBD, 4)))
    return ops.experts(h, weight, gate, up, down, used, shared, shared_gate)


def reference(**options: object) -> F32:
    ops = NumpyOps()
    ops.allocate(SHAPE, Limits(N_TOKENS, 4, 4, 64, 4))
    with ops.recording():
        out = record(ops, **options)  # type: ignore[arg-type]
    ops.run(rows(N_TOKENS))
    return out.value


def experts(precision: Precision = Precision.EXACT, threads: int = 2, **options: object):  # type: ignore[no-untyped-def]
    return make(
        lambda ops: record(ops, **options),  # type: ignore[arg-type]
        precision=precision, threads=threads, shape=SHAPE, n_rows=N_TOKENS,
    )  # fmt: skip


def run(ops: CpuOps, first: int, n: int) -> None:
    number = np.arange(first, first + n, dtype=np.int32)
    ops.run(rows(n, tokens=number, logit_rows=number[:0]))


MIXES = [
    ("F32", "F32", "F32"),
    ("Q4_K", "Q4_K", "Q6_K"),
    ("Q8_0", "Q5_1", "Q4_0"),
    ("Q4_K", "F16", "BF16"),
    ("BF16", "Q8_0", "Q5_K"),
]


@pytest.mark.parametrize("kinds", MIXES, ids="-".join)
@pytest.mark.parametrize("used", [1, 3, N])
def test_they_equal_the_reference(kinds: tuple[str, str, str], used: int) -> None:
    truth = reference(kinds=kinds, used=used)
    for precision, allowed in ((Precision.EXACT, 2e-5), (Precision.FAST, 3e-2)):
        ops, out = experts(precision, kinds=kinds, used=used)
        run(ops, 0, N_TOKENS)
        whole = out.values(N_TOKENS).copy()
        assert np.abs(whole - truth).max() < allowed * np.abs(truth).max()
        start = 0
        for n in (1, 2, 7, 1, 33, 15, 31):
            run(ops, start, n)
            np.testing.assert_array_equal(out.values(n), whole[start : start + n])
            start += n
        assert start == N_TOKENS
        ops.close()


@pytest.mark.parametrize("inner", [16, 48, 96])
def test_inner_widths_of_odd_blocks(inner: int) -> None:
    truth = reference(inner=inner)
    ops, out = experts(inner=inner)
    run(ops, 0, N_TOKENS)
    assert np.abs(out.values(N_TOKENS) - truth).max() < 2e-5 * np.abs(truth).max()
    ops.close()


def test_the_number_of_threads_changes_no_bit() -> None:
    results = []
    for threads in (1, 2, 5):
        ops, out = experts(threads=threads, kinds=("Q4_K", "Q4_K", "Q6_K"))
        run(ops, 0, N_TOKENS)
        results.append(out.values(N_TOKENS).copy())
        run(ops, 8, 1)
        np.testing.assert_array_equal(out.values(1), results[0][8:9])
        ops.close()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_of_equal_scores_the_lower_number_is_chosen() -> None:
    router = numbers(N, EMBD, 3)
    router[6] = router[4] = router[1] = router.sum(axis=0)
    truth = reference(router=router)
    ops, out = experts(router=router)
    run(ops, 0, N_TOKENS)
    assert np.abs(out.values(N_TOKENS) - truth).max() < 2e-5 * np.abs(truth).max()
    ops.close()


def test_scores_without_numbers_choose_something_and_show() -> None:
    ops, out = experts(router=np.full((N, EMBD), np.nan, np.float32), used=N)
    run(ops, 0, N_TOKENS)
    assert np.isnan(out.values(N_TOKENS)).all()
    ops.close()


def test_experts_that_are_not_whole_panels_are_refused() -> None:
    ops = CpuOps(1, Precision.EXACT)
    with pytest.raises(UnsupportedModel, match="24 outputs"):
        ops.upload(tensor("F32", (2, 24, 32)))
    ops.close()


def test_a_stack_keeps_its_bytes() -> None:
    ops = CpuOps(1, Precision.EXACT)
    weight = ops.upload(tensor("Q8_0", (N, 32, 64)))
    assert weight.data.nbytes == N * 32 * 64 // 32 * by_name("Q8_0").bytes
    ops.close()
