"""Norms, SwiGLU, logits and faults, against float64."""

from __future__ import annotations

import numpy as np
import pytest

from engine.config import Precision
from engine.errors import KernelError, OutOfMemory, UnsupportedModel
from engine.ops.base import Limits, Shape
from engine.ops.cpu import CpuOps
from tests.kernels.cpu.helpers import F32, floats, make, rows, tensor
from tests.reference.coded import coded

WIDTHS = (33, 64, 576)


def numbers(n: int, width: int, seed: int = 1) -> F32:
    return np.random.default_rng(seed).standard_normal((n, width)).astype(np.float32) * 3


def rms(x: F32, weight: F32, eps: float) -> np.ndarray:
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(-1, keepdims=True) + eps) * weight


@pytest.mark.parametrize("width", WIDTHS)
def test_norms_equal_the_reference(width: int) -> None:
    x, y, weight = numbers(70, width), numbers(70, width, 2), numbers(1, width, 3)[0]

    def record(ops: CpuOps):  # type: ignore[no-untyped-def]
        w = ops.upload(floats(weight))
        a = ops.embed(ops.upload(floats(x)))
        b = ops.embed(ops.upload(floats(y)))
        first = ops.norm(a, w, 1e-5)
        second = ops.add_norm(a, b, w, 1e-3)
        for h in (first, second):
            ops.keep(h)
        return a, first, second

    ops, (a, first, second) = make(record)
    for m in (70, 1, 9):
        ops.run(rows(m, logit_rows=np.zeros(0, np.int32)))
        np.testing.assert_array_equal(a.values(m), x[:m] + y[:m])
        np.testing.assert_allclose(first.values(m), rms(x[:m], weight, 1e-5), rtol=2e-6, atol=1e-6)
        truth = rms(x[:m] + y[:m], weight, 1e-3)
        np.testing.assert_allclose(second.values(m), truth, rtol=2e-6, atol=1e-6)
    ops.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_swiglu_equals_the_reference(width: int) -> None:
    x = numbers(70, 2 * width) * 4
    x[3], x[4, :width] = 200, -200

    def record(ops: CpuOps):  # type: ignore[no-untyped-def]
        h = ops.swiglu(ops.embed(ops.upload(floats(x))))
        ops.keep(h)
        return h

    ops, h = make(record)
    ops.run(rows(70, logit_rows=np.zeros(0, np.int32)))
    gate, up = np.split(x.astype(np.float64), 2, axis=1)
    with np.errstate(over="ignore"):
        truth = gate / (1 + np.exp(-gate)) * up
    np.testing.assert_allclose(h.values(70), truth, rtol=2e-6, atol=1e-6)
    ops.close()


@pytest.mark.parametrize("source", ["norm", "swiglu"])
def test_producers_code_their_results(source: str) -> None:
    """The int8 form that norm and SwiGLU write is that of their float form."""
    x, weight = numbers(70, 128), numbers(1, 128, 3)[0]

    def record(ops: CpuOps):  # type: ignore[no-untyped-def]
        e = ops.embed(ops.upload(floats(x)))
        one = ops.upload(floats(weight))
        h = ops.norm(e, one, 1e-5) if source == "norm" else ops.swiglu(e)
        ops.keep(h)
        ops.head(h, ops.upload(w))
        return h

    w = tensor("Q4_0", (16, 128 if source == "norm" else 64))
    ops, h = make(record, precision=Precision.FAST)
    logits = ops.run(rows(70))
    truth = coded(h.values(70)).astype(np.float64) @ w.dequantize().astype(np.float64).T
    np.testing.assert_allclose(logits, truth, rtol=1e-5, atol=1e-5)
    ops.close()


def test_logits_of_chosen_rows() -> None:
    x, w = numbers(70, 64), tensor("F32", (37, 64))
    ops, _ = make(lambda ops: ops.head(ops.embed(ops.upload(floats(x))), ops.upload(w)))
    every = ops.run(rows(70)).copy()
    some = np.array([69, 0, 7, 7], np.int32)
    np.testing.assert_array_equal(ops.run(rows(70, logit_rows=some)), every[some])
    np.testing.assert_array_equal(ops.logits(some[::-1]), every[some[::-1]])
    assert ops.run(rows(70, logit_rows=some[:0])).shape == (0, 37)
    np.testing.assert_array_equal(ops.logits(np.arange(70, dtype=np.int32)), every)
    ops.close()


@pytest.mark.parametrize("precision", list(Precision))
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("layer", [-1, 0, 1, 2, None])
def test_first_bad_layer(precision: Precision, bad: float, layer: int | None) -> None:
    """A number that is not finite is never rounded away, and its layer is found."""
    x = numbers(70, 64)
    weights = [tensor("F32", (64, 64), i).dequantize() * 0.3 for i in range(3)]
    if layer == -1:
        x[20, 5] = bad
    elif layer is not None:
        weights[layer][3, 60] = bad
    good = tensor("Q4_0", (64, 64))

    def record(ops: CpuOps) -> None:
        e = ops.embed(ops.upload(floats(x)))
        one = ops.upload(floats(np.ones(64, np.float32)))
        h = ops.norm(e, one, 1e-5)
        for i in range(2):
            y = ops.linear(ops.linear(h, ops.upload(good)), ops.upload(floats(weights[i])))
            h = ops.add_norm(e, y, one, 1e-5)
            ops.end_layer(i, e)
        ops.head(ops.linear(h, ops.upload(good)), ops.upload(floats(weights[2])))

    shape = Shape(2, 64, 512, 4, 2, 64)
    ops, _ = make(record, precision=precision, shape=shape)
    finite = np.isfinite(ops.run(rows(70))).all()
    assert finite == (layer is None)
    assert ops.first_bad_layer(rows(70)) == layer
    ops.close()


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": [0, 512]}, {"tokens": [0, -1]}, {"positions": [0, 2048]}, {"positions": [-1, 0]},
        {"sequence": [0, 1]}, {"sequence": [-1, 0]}, {"page_table": [[32]]}, {"page_table": [[-1]]},
        {"logit_rows": [2]}, {"logit_rows": [-1]},
    ],
)  # fmt: skip
def test_a_bad_step_is_refused(changes: dict[str, list[int]]) -> None:
    w = tensor("F16", (512, 32))
    ops, _ = make(lambda ops: ops.head(ops.embed(ops.upload(w)), ops.upload(w)))
    arrays = {name: np.array(value, np.int32) for name, value in changes.items()}
    with pytest.raises(KernelError, match="out of its range"):
        ops.run(rows(2, **arrays))
    assert np.isfinite(ops.run(rows(2))).all()
    with pytest.raises(KernelError, match="81 rows, expected 1 to 80"):
        ops.run(rows(81))
    ops.close()


def test_memory_is_counted_and_short_memory_is_explained() -> None:
    ops = CpuOps(1, Precision.FAST)
    w = ops.upload(tensor("Q8_0", (512, 64)))
    assert ops.memory()["model"] == 512 * 64 * 34 // 32
    shape = Shape(2, 64, 512, 4, 2, 64)
    with pytest.raises(OutOfMemory, match=r"2 layers x 2 x 1000000000 pages"):
        ops.allocate(shape, Limits(8, 1, 10**9, 64, 8))
    with pytest.raises(UnsupportedModel, match="heads of 40"):
        ops.allocate(Shape(2, 64, 512, 4, 2, 40), Limits(8, 1, 8, 64, 8))
    ops.allocate(shape, Limits(8, 1, 8, 64, 8))
    assert ops.memory()["kv"] == 2 * 2 * 8 * 2 * 64 * 64 * 2
    before = ops.memory()["work"]
    with ops.recording():
        ops.head(ops.embed(w), w)
    assert ops.memory()["work"] > before
    ops.close()


def test_dropped_buffers_are_used_again() -> None:
    w = tensor("F16", (64, 64))

    def record(ops: CpuOps) -> None:
        x = ops.embed(ops.upload(w))
        weight = ops.upload(w)
        for _ in range(20):
            x = ops.linear(x, weight)

    ops, _ = make(record)
    assert len(ops._areas) == 3  # the residual stream stays, two take turns
    ops.close()


def test_a_tensor_without_room_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(*_: object) -> None:
        raise MemoryError

    ops = CpuOps(1, Precision.FAST)
    monkeypatch.setattr(ops._arena, "take", take)
    for shape in ((512, 64), (64,)):
        with pytest.raises(OutOfMemory, match=r"t of [\d,]+ bytes finds no room"):
            ops.upload(tensor("F32", shape))
    ops.close()
