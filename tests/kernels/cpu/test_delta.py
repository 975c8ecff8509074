"""Gated DeltaNet against the NumPy reference, and that its cutting changes no bit."""

from __future__ import annotations

import numpy as np
import pytest

from engine.config import Precision
from engine.errors import KernelError, OutOfMemory, UnsupportedModel
from engine.ops.base import DeltaShape, Limits, Shape, StepInput
from engine.ops.cpu import CpuOps
from engine.ops.numpy_ops import NumpyOps
from kernels.cpu.emit import Target
from tests.kernels.cpu.helpers import F32, VARIANTS, floats, make, tensor
from tests.reference.coded import coded

N_TOKENS = 150
EPS = 1e-6
SHAPES = {
    "three value heads a key head": DeltaShape(1, 2, 6, 128, 4),
    "one to one": DeltaShape(1, 3, 3, 64, 4),
    "small heads, short kernel": DeltaShape(1, 1, 2, 32, 2),
}


def whole(d: DeltaShape) -> Shape:
    return Shape(2, 32, N_TOKENS, 2, 1, 64, d)


def table(d: DeltaShape) -> F32:
    """q|k|v|z|alpha|beta of each token; some decays are almost 0 and some almost 1."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((N_TOKENS, d.qkv + d.n_v_heads * (d.head_dim + 2)))
    x[:, -2 * d.n_v_heads :] *= 3
    x[::7, -2 * d.n_v_heads :] *= 20
    return x.astype(np.float32)


def record(ops, d: DeltaShape, conv: str = "F32"):  # type: ignore[no-untyped-def]
    """The recurrent layer straight on embedded rows; works on the reference too."""
    rng = np.random.default_rng(4)
    weights = (
        ops.upload(tensor(conv, (d.qkv, d.conv_kernel))),
        *(ops.upload(floats(x.astype(np.float32))) for x in (
            rng.standard_normal(d.n_v_heads), -np.exp(rng.uniform(-3, 2, d.n_v_heads)),
            rng.uniform(0.5, 1.5, d.head_dim),
        )),
    )  # fmt: skip
    return ops.delta(ops.embed(ops.upload(floats(table(d)))), 0, *weights, EPS)


def delta(  # type: ignore[no-untyped-def]
    d: DeltaShape, threads: int = 2, target: Target | None = None, conv: str = "F32"
):
    def kept(ops: CpuOps):  # type: ignore[no-untyped-def]
        out = record(ops, d, conv)
        ops.keep(out)
        return out

    return make(kept, threads=threads, target=target, shape=whole(d), n_rows=N_TOKENS)


def several(*parts: tuple[int, int, int]) -> StepInput:
    """A step from (first token, rows, slot) of each sequence."""
    number = np.concatenate([np.arange(s, s + n) for s, n, _ in parts]).astype(np.int32)
    sequence = np.repeat(np.arange(len(parts)), [n for _, n, _ in parts]).astype(np.int32)
    pages = np.zeros((len(parts), 32), np.int32)
    slots = np.array([slot for *_, slot in parts], np.int32)
    return StepInput(number, number, sequence, pages, number[:0], slots)


def reference(d: DeltaShape, conv: str = "F32") -> F32:
    ops = NumpyOps()
    ops.allocate(whole(d), Limits(N_TOKENS, 4, 4, 64, 4, slots=1))
    with ops.recording():
        out = record(ops, d, conv)
    ops.run(several((0, N_TOKENS, 0)))
    return out.value


@pytest.mark.parametrize("name", SHAPES)
def test_it_equals_the_reference_however_it_is_cut(name: str) -> None:
    d = SHAPES[name]
    truth = reference(d)
    ops, out = delta(d)
    ops.run(several((0, N_TOKENS, 3)))
    at_once = out.values(N_TOKENS).copy()
    np.testing.assert_allclose(at_once, truth, atol=2e-5 * np.abs(truth).max(), rtol=0)
    start = 0
    for n in (1, 1, 1, 2, 5, 16, 17, 40, 1, 33, 33):
        ops.run(several((start, n, 1)))
        np.testing.assert_array_equal(out.values(n), at_once[start : start + n])
        start += n
    assert start == N_TOKENS
    ops.close()


def test_sequences_do_not_touch_each_other_and_begin_from_nothing() -> None:
    d = SHAPES["three value heads a key head"]
    ops, out = delta(d)
    ops.run(several((0, N_TOKENS, 0)))
    truth = out.values(N_TOKENS).copy()
    for slot, n in ((0, 60), (2, 1), (4, 17)):
        ops.run(several((0, n, slot)))
    for parts in (((60, 1, 0), (1, 1, 2), (17, 1, 4)), ((61, 20, 0), (2, 1, 2), (0, 30, 3))):
        ops.run(several(*parts))
        got = out.values(sum(n for _, n, _ in parts))
        np.testing.assert_array_equal(got, np.concatenate([truth[s : s + n] for s, n, _ in parts]))
    ops.close()


def test_a_copied_state_goes_on_like_its_source() -> None:
    d = SHAPES["one to one"]
    ops, out = delta(d)
    ops.run(several((0, 50, 0)))
    ops.copy_state(0, 4)
    ops.run(several((50, 9, 0)))
    truth = out.values(9).copy()
    ops.run(several((50, 9, 4)))
    np.testing.assert_array_equal(out.values(9), truth)
    ops.close()


@pytest.mark.parametrize("variant", VARIANTS)
def test_instruction_sets_and_threads_give_the_same_bits(variant: str) -> None:
    d = SHAPES["three value heads a key head"]
    results = []
    for threads, target in ((1, None), (3, VARIANTS[variant])):
        ops, out = delta(d, threads, target)
        ops.run(several((0, 40, 0)))
        ops.run(several((40, 1, 0)))
        results.append(out.values(1).copy())
        ops.close()
    np.testing.assert_array_equal(*results)


def test_a_convolution_of_another_type() -> None:
    d = SHAPES["one to one"]
    for kind in ("F16", "BF16"):
        ops, out = delta(d, conv=kind)
        ops.run(several((0, N_TOKENS, 0)))
        truth = reference(d, kind)
        atol = 2e-5 * np.abs(truth).max()
        np.testing.assert_allclose(out.values(N_TOKENS), truth, atol=atol, rtol=0)
        ops.close()


def test_the_int8_form_is_that_of_the_float_form() -> None:
    d = SHAPES["one to one"]
    weight = tensor("Q8_0", (16, d.n_v_heads * d.head_dim))

    def with_head(ops: CpuOps):  # type: ignore[no-untyped-def]
        out = record(ops, d)
        ops.keep(out)
        ops.head(out, ops.upload(weight))
        return out

    ops, out = make(with_head, precision=Precision.FAST, shape=whole(d), n_rows=N_TOKENS)
    step = several((0, 70, 0))
    logits = ops.run(StepInput(step.tokens, step.positions, step.sequence, step.page_table,
                               step.tokens, step.slots))  # fmt: skip
    truth = coded(out.values(70)).astype(np.float64) @ weight.dequantize().astype(np.float64).T
    np.testing.assert_allclose(logits, truth, rtol=1e-5, atol=1e-5)
    ops.close()


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (((0, 1, 5),), "0 to 4"),
        (((0, 1, -1),), "0 to 4"),
        (((0, 1, 2), (0, 1, 2)), "of its own"),
    ],
)
def test_wrong_slots_are_refused(parts: tuple[tuple[int, int, int], ...], words: str) -> None:
    ops, _ = delta(SHAPES["one to one"])
    with pytest.raises(KernelError, match=words):
        ops.run(several(*parts))
    step = several((0, 1, 0), (0, 1, 1))
    mixed = np.array([0, 1, 0], np.int32)
    with pytest.raises(KernelError, match="together"):
        ops.run(StepInput(mixed, mixed, mixed, step.page_table, mixed[:0], step.slots))
    ops.close()


def test_what_cannot_be_held_is_refused_with_its_numbers() -> None:
    limits = Limits(8, 1, 4, 64, 4, slots=1 << 40)
    ops = CpuOps(1, Precision.EXACT)
    with pytest.raises(OutOfMemory, match="recurrent states"):
        ops.allocate(whole(SHAPES["one to one"]), limits)
    for d in (DeltaShape(1, 1, 1, 48, 4), DeltaShape(1, 1, 1, 64, 9)):
        with pytest.raises(UnsupportedModel, match="recurrent heads"):
            ops.allocate(whole(d), Limits(8, 1, 4, 64, 4, slots=1))
    ops.close()


def test_states_are_counted() -> None:
    d = SHAPES["three value heads a key head"]
    held = []
    for slots in (1, 3):
        ops = CpuOps(1, Precision.EXACT)
        ops.allocate(whole(d), Limits(8, 1, 4, 64, 4, slots=slots))
        held.append(ops.memory())
        ops.close()
    assert held[1]["work"] - held[0]["work"] == 2 * 4 * (6 * 128 * 128 + 3 * d.qkv)
    assert held[0]["kv"] == held[1]["kv"] == 1 * 2 * 4 * 64 * 64 * 4
