"""Attention over pages against the NumPy reference, and that its cutting changes no bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from engine.config import Precision
from engine.ops.base import Limits, Rope, Shape, StepInput
from engine.ops.cpu import CpuOps
from engine.ops.numpy_ops import NumpyOps
from tests.kernels.cpu.helpers import F32, floats, make, rows

N_TOKENS = 700
FACTORS = np.linspace(1, 8, 16).astype(np.float32)
CASES = {
    "llama": (Shape(1, 32, N_TOKENS, 9, 3, 64), Rope(64, 1e5, True), False),
    "qwen3": (Shape(1, 32, N_TOKENS, 4, 2, 128), Rope(128, 1e6, False), True),
    "partial, scaled": (
        Shape(1, 32, N_TOKENS, 2, 2, 80), Rope(32, 1e4, False, 0.25, 1.2, FACTORS), False,
    ),
    "pairs of an odd half": (Shape(1, 32, N_TOKENS, 8, 1, 96), Rope(36, 1e4, True), True),
    "gated": (Shape(1, 32, N_TOKENS, 4, 2, 256), Rope(64, 1e7, False), True),
    "gated, heads of half blocks": (Shape(1, 32, N_TOKENS, 4, 2, 48), Rope(16, 1e4, False), False),
}  # fmt: skip


def table(shape: Shape, gated: bool) -> F32:
    """q|k|v of each token; a few keys are large, so that the maximum moves from page to page."""
    rng = np.random.default_rng(7)
    n_q = shape.n_heads * (2 if gated else 1)
    width = (n_q + 2 * shape.n_kv_heads) * shape.head_dim
    x = rng.standard_normal((N_TOKENS, width)).astype(np.float32)
    x[::97, n_q * shape.head_dim :] *= 4
    return x


def record(ops, case: str):  # type: ignore[no-untyped-def]
    """Attention straight on embedded rows; works on the reference too."""
    shape, rope, normed = CASES[case]
    weight = np.linspace(0.5, 1.5, shape.head_dim).astype(np.float32)
    norms = [ops.upload(floats(weight)), ops.upload(floats(weight[::-1]))] if normed else []
    gated = case.startswith("gated")
    x = ops.embed(ops.upload(floats(table(shape, gated))))
    return ops.attend(x, 0, rope, *norms, eps=1e-6, gated=gated)


def attention(case: str, precision: Precision = Precision.EXACT, threads: int = 2):  # type: ignore[no-untyped-def]
    return make(
        lambda ops: record(ops, case),
        precision=precision, threads=threads, shape=CASES[case][0], n_rows=N_TOKENS, pages=40,
    )  # fmt: skip


def span(start: int, n: int, pages: list[int]) -> StepInput:
    number = np.arange(start, start + n, dtype=np.int32)
    return rows(n, tokens=number, positions=number, page_table=np.array([pages], np.int32),
                logit_rows=number[:0])  # fmt: skip


def several(parts: list[tuple[int, int, list[int]]]) -> StepInput:
    """Spans of several sequences in one step: (start, rows, pages) each."""
    number = np.concatenate([np.arange(s, s + n) for s, n, _ in parts]).astype(np.int32)
    sequence = np.repeat(np.arange(len(parts)), [n for _, n, _ in parts]).astype(np.int32)
    longest = max(len(pages) for *_, pages in parts)
    pages = [pages + [-1] * (longest - len(pages)) for *_, pages in parts]
    return StepInput(number, number, sequence, np.array(pages, np.int32), number[:0])


def reference(case: str) -> F32:
    ops = NumpyOps()
    ops.allocate(CASES[case][0], Limits(N_TOKENS, 4, 40, 64, 40))
    with ops.recording():
        out = record(ops, case)
    ops.run(span(0, N_TOKENS, list(range(20, 40))))
    return out.value


@pytest.mark.parametrize("case", CASES)
def test_attention_equals_the_reference_however_it_is_cut(case: str) -> None:
    truth = reference(case)
    pages = [3, 1, 4, 15, 9, 2, 6, 5, 35, 8, 7, 20]
    for precision, allowed in ((Precision.EXACT, 2e-5), (Precision.FAST, 2e-3)):
        ops, out = attention(case, precision)
        ops.run(span(0, N_TOKENS, pages))
        whole = out.values(N_TOKENS).copy()
        assert np.abs(whole - truth).max() < allowed * np.abs(truth).max()
        start = 0
        # Over borders of pages (64) and chunks (512), in small and large steps.
        for n in (1, 62, 1, 1, 2, 61, 70, 4, 3, 306, 1, 1, 2, 9, 176):
            ops.run(span(start, n, pages))
            np.testing.assert_array_equal(out.values(n), whole[start : start + n])
            start += n
        assert start == N_TOKENS
        ops.close()


def test_sequences_do_not_touch_each_other() -> None:
    ops, out = attention("llama")
    pages = [[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [20, 21], [30, 31, 32]]
    ops.run(span(0, N_TOKENS, pages[0]))
    whole = out.values(N_TOKENS).copy()
    for p in pages[1:]:
        ops.run(span(0, 100, p))
    for parts in (
        [(640, 1, pages[0]), (100, 1, pages[1]), (100, 1, pages[2])],
        [(641, 30, pages[0]), (101, 1, pages[1]), (101, 25, pages[2])],
    ):
        ops.run(several(parts))
        got = out.values(sum(n for _, n, _ in parts))
        truth = np.concatenate([whole[s : s + n] for s, n, _ in parts])
        np.testing.assert_array_equal(got, truth)
    ops.close()


@pytest.mark.parametrize("precision", list(Precision))
def test_what_others_left_in_pages_does_no_harm(precision: Precision) -> None:
    """Pages hold NaN at first and another sequence's numbers later; both are never read."""
    ops, out = attention("llama", precision)
    ops.run(span(0, 30, [5]))
    first = out.values(30).copy()
    assert np.isfinite(first).all()
    ops.run(span(100, 64, [4, 3, 5]))
    ops.run(span(0, 30, [5]))
    np.testing.assert_array_equal(out.values(30), first)
    ops.close()


def test_a_copied_page_serves_like_its_source() -> None:
    ops, out = attention("qwen3")
    ops.run(span(0, 129, [0, 1, 2]))
    last = out.values(129)[128:].copy()
    ops.copy_page(0, 11)
    ops.copy_page(1, 12)
    ops.run(span(128, 1, [11, 12, 13]))
    np.testing.assert_array_equal(out.values(1), last)
    ops.close()


def test_the_number_of_threads_changes_no_bit() -> None:
    results = []
    for threads in (1, 2, 3):
        ops, out = attention("llama", threads=threads)
        ops.run(span(0, N_TOKENS - 1, list(range(11))))
        ops.run(span(N_TOKENS - 1, 1, list(range(11))))
        results.append(out.values(1).copy())
        ops.close()
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.parametrize("case", ["llama", "gated", "gated, heads of half blocks"])
def test_the_int8_form_is_that_of_the_float_form(case: str) -> None:
    from tests.kernels.cpu.helpers import tensor
    from tests.reference.coded import coded

    shape = CASES[case][0]
    weight = tensor("Q4_0", (16, shape.n_heads * shape.head_dim))

    def with_head(ops: CpuOps):  # type: ignore[no-untyped-def]
        out = record(ops, case)
        ops.head(out, ops.upload(weight))
        return out

    ops, out = make(with_head, precision=Precision.FAST, shape=shape, n_rows=N_TOKENS)
    logits = ops.run(rows(70))
    truth = coded(out.values(70)).astype(np.float64) @ weight.dequantize().astype(np.float64).T
    np.testing.assert_allclose(logits, truth, rtol=1e-5, atol=1e-5)
    ops.close()


@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize("case", ["llama", "gated"])
def test_a_guess_that_overflows_spoils_no_row_but_those_that_see_it(
    case: str, precision: Precision
) -> None:
    shape, rope, _ = CASES[case]
    bad = N_TOKENS - 1

    def overflowing(ops):  # type: ignore[no-untyped-def]
        x = table(shape, case == "gated")
        x[bad, -shape.n_kv_heads * shape.head_dim :] = np.inf
        return ops.attend(
            ops.embed(ops.upload(floats(x))), 0, rope, eps=1e-6, gated=case == "gated"
        )

    ops, out = make(
        overflowing, precision=precision, shape=shape, n_rows=N_TOKENS, pages=10, tried=8
    )
    pages = list(range(10))
    for start, n, at in ((60, 8, 2), (60, 8, 5), (10, 21, 17), (127, 2, 1), (520, 5, 4)):
        ops.run(span(0, start, pages))
        ops.run(span(start, at, pages))
        before = out.values(at).copy()
        tokens = np.arange(start, start + n, dtype=np.int32)
        tokens[at] = bad
        ops.run(replace(span(start, n, pages), tokens=tokens))
        np.testing.assert_array_equal(out.values(n)[:at], before)
        assert not np.isfinite(out.values(n)[at:]).any()
    # A tree, whose second branch overflows.
    for start in (20, 61, 62, 63):
        ops.run(span(0, start, pages))
        ops.run(span(start, 4, pages))
        before = out.values(4).copy()
        tokens = np.arange(start, start + 6, dtype=np.int32)
        tokens[4] = bad
        ops.run(
            replace(
                span(start, 6, pages),
                tokens=tokens,
                positions=start + np.array([0, 1, 2, 3, 1, 2], np.int32),
                parents=np.array([-1, 0, 1, 2, 0, 4], np.int32),
                tried=np.ones(1, np.int32),
            )
        )
        np.testing.assert_array_equal(out.values(6)[:4], before)
        assert not np.isfinite(out.values(6)[4:]).any()
    ops.close()
