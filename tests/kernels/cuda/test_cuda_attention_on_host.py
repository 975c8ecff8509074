"""rope.cu, attention.cu and flash.cu, launched as `attend` does, thread by thread, against NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gguf import Tensor
from engine.ops import cuda_attention
from engine.ops.base import Limits, Rope, Shape, StepInput
from engine.ops.cuda import BUCKETS, CudaOps
from engine.ops.cuda_buffers import MOST_ROWS, Pass
from engine.ops.numpy_ops import NumpyOps
from engine.quants import TYPES
from kernels.variants import F16
from tests.kernels.cuda.test_cuda_ops_without_card import Notes

LIMITS = Limits(rows=64, sequences=2, pages=10, page_tokens=64, pages_per_sequence=5)
TEXT = 300


class Both:
    """One layer of attention here and in NumPy, on the same rows."""

    def __init__(
        self, shape: tuple[int, int, int], splits: int, gated: bool = False, **options: Any
    ) -> None:
        heads, kv_heads, dim = shape
        rng = np.random.default_rng()
        self.rng = rng
        columns, width = (heads * (1 + gated) + 2 * kv_heads) * dim, heads * dim
        self.table = rng.standard_normal((TEXT, columns)).astype(np.float32)
        norms = rng.uniform(0.5, 1.5, (2, dim)).astype(np.float32)
        rope = Rope(dim // 2, 1e4, interleaved=bool(rng.integers(2)))
        self.ops, self.truth = CudaOps(), NumpyOps()

        def numbers(ops: Any, values: np.ndarray) -> Any:
            return ops.upload(Tensor("x", values.shape, TYPES[0], values.view(np.uint8)))

        for ops in (self.ops, self.truth):
            ops.allocate(Shape(1, columns, width, heads, kv_heads, dim), LIMITS)
            with ops.recording():
                qkv = ops.embed(numbers(ops, self.table))
                if ops is self.ops:
                    qkv = self.qkv = ops.linear(
                        qkv, numbers(ops, np.ones((columns, 8), np.float32))
                    )
                q, k = (numbers(ops, n) for n in norms)
                out = ops.attend(qkv, 0, rope, q, k, 1e-5, gated=gated, **options)
                ops.head(out, numbers(ops, np.eye(width, dtype=np.float32)))
        self.out = out_of(self.ops, self.qkv)
        self.ops._splits = splits

    def step(self, *spans: tuple[int, int, int], parents: list[int] | None = None) -> StepInput:
        """Spans of (sequence, start, tokens)."""
        positions = np.concatenate([start + np.arange(n) for _, start, n in spans])
        sequence = np.repeat([s for s, *_ in spans], [n for *_, n in spans])
        if parents:
            depth: list[int] = []
            for parent in parents:
                depth.append(depth[parent] + 1 if parent >= 0 else 0)
            positions = spans[0][1] + np.array(depth)
        m = len(positions)
        return StepInput(
            self.rng.integers(0, TEXT, m).astype(np.int32), positions.astype(np.int32),
            sequence.astype(np.int32), np.array([[7, 2, 9, 0, 4], [1, 3, 5, 6, 8]], np.int32),
            np.arange(m, dtype=np.int32), parents=np.array(parents or [], np.int32),
        )  # fmt: skip

    def here(self, step: StepInput) -> np.ndarray:
        m = len(step.tokens)
        rows = m if m > MOST_ROWS else next(b for b in BUCKETS if b >= m)
        tiles = self.ops._step.send(step, rows)
        y = np.full((rows, self.table.shape[1]), np.nan, np.float32)
        y[:m] = self.table[step.tokens]
        out = np.full((rows, self.out.buffers[1].width), np.nan, np.float32)
        ctypes.memmove(self.qkv.at("y"), y.ctypes.data, y.nbytes)
        there = self.out.buffers[1].at("32")
        ctypes.memmove(there, out.ctypes.data, out.nbytes)
        self.out.launch(Pass(rows, F16, tiles, rows))
        ctypes.memmove(out.ctypes.data, there, out.nbytes)
        assert not out[m:].any()
        return out[:m]

    def check(self, step: StepInput) -> np.ndarray:
        got, want = self.here(step), self.truth.run(step)
        assert np.linalg.norm(got - want) < 1e-3 * np.linalg.norm(want)
        return got

    def read(
        self, text: np.ndarray, sequence: int, sizes: tuple[int, ...],
        run: Callable[[StepInput], np.ndarray],
    ) -> np.ndarray:  # fmt: skip
        """All rows of a text that a sequence reads in steps of these sizes."""
        rows, at = [], 0
        for size in sizes:
            step = self.step((sequence, at, size))
            step.tokens[:] = text[at : at + size]
            rows.append(run(step))
            at += size
        return np.concatenate(rows)


def out_of(ops: CudaOps, qkv: Any) -> Any:
    """The node of `attend`."""
    return next(n for n in ops._tapes[0].nodes if n.buffers[0] is qkv)


@pytest.mark.parametrize(
    ("arch", "shape", "gated"),
    ((90, (8, 2, 128), False), (75, (6, 1, 256), True), (86, (9, 3, 64), False)),
    ids=str,
)
def test_short_steps_equal_numpy_and_single_rows(
    card: Notes, arch: int, shape: tuple[int, int, int], gated: bool
) -> None:
    card.capability = arch
    both = Both(shape, 2, gated)
    prompts = [[(s, 30 * i, 30) for i in range(4)] for s in range(2)]
    for span in prompts[0]:
        step = both.step(span)
        both.check(step)
        step.sequence[:] = 1
        both.here(step)
    at = 120
    for size in (1, 3, 4, 9, 17):
        step = both.step((0, at, size))
        got = both.check(step)
        for i in range(size):
            one = both.step((1, at + i, 1))
            one.tokens[:] = step.tokens[i]
            np.testing.assert_array_equal(both.here(one)[0], got[i])
        at += size


def test_sequences_trees_and_many_heads(card: Notes) -> None:
    both = Both((36, 1, 64), 3)
    for at in range(0, 120, 30):
        both.check(both.step((0, at, 30)))
    both.check(both.step((1, 0, 5)))
    both.check(both.step((0, 120, 2), (1, 5, 1)))
    both.check(both.step((0, 122, 9), (1, 6, 8)))
    both.check(both.step((1, 14, 4), parents=[-1, 0, 0, 1]))
    both.check(both.step((0, 131, 12), parents=[-1, 0, 0, 1, 1, 2, 5, 3, 0, 8, -1, 10]))


@pytest.mark.parametrize(
    "options",
    (
        {"causal": False, "window": 9},
        {"causal": False, "window": 70, "window_per_row": False},
        {"window": 40},
    ),
    ids=str,
)
def test_windows_and_blocks_that_see_themselves_whole(card: Notes, options: dict[str, Any]) -> None:
    both = Both((4, 2, 64), 2, **options)
    for at in range(0, 150, 30):
        both.check(both.step((0, at, 30)))
    both.check(both.step((0, 150, 4)))
    both.check(both.step((0, 154, 11)))


@pytest.mark.parametrize("shape", ((6, 2, 64), (4, 2, 128), (4, 2, 256)), ids=str)
@pytest.mark.parametrize("arch", (86, 90))
def test_short_and_long_steps_weigh_alike(
    card: Notes, arch: int, shape: tuple[int, int, int]
) -> None:
    """Weights are rounded to f16: to others wherever they are relative to what is no power of two."""
    card.capability = arch
    both = Both(shape, 3)
    text = both.rng.integers(0, TEXT, 170).astype(np.int32)
    long = both.read(text, 0, (60, 50, 60), both.here)
    short = both.read(text, 1, (32, 28, 30, 20, 11, 32, 17), both.here)
    assert np.linalg.norm(long - short) < 6e-5 * np.linalg.norm(long)


@pytest.mark.parametrize(
    ("arch", "shape", "options"),
    (
        (90, (8, 2, 128), {}),
        (90, (3, 1, 128), {"window": 50}),
        (80, (8, 1, 128), {"gated": True}),
        (86, (4, 2, 128), {"causal": False, "window": 70, "window_per_row": False}),
        (75, (4, 1, 128), {}),
        (90, (6, 1, 256), {"gated": True}),
        (86, (2, 1, 256), {"window": 75}),
        (90, (9, 3, 64), {"causal": False}),
        (120, (36, 1, 64), {"window": 33}),
    ),
    ids=str,
)
def test_long_steps_equal_numpy_and_other_pieces(
    card: Notes, arch: int, shape: tuple[int, int, int], options: dict[str, Any]
) -> None:
    card.capability = arch
    both = Both(shape, 5, **options)
    ctypes.memset(both.ops._kv, 0xFF, 2 * both.ops._layer_bytes)  # NaN where nothing was stored
    text = both.rng.integers(0, TEXT, 250).astype(np.int32)

    whole = both.read(text, 0, (64, 63, 50), both.check)
    pieces = both.read(text, 1, (33, 51, 58), both.check)
    if options.get("causal", True):
        np.testing.assert_array_equal(whole[:142], pieces)
    both.check(both.step((0, 177, 41), (1, 142, 20)))
    both.check(both.step((0, 218, 33)))
    both.check(both.step((1, 162, 20), (0, 251, 35)))


def test_a_tree_in_a_long_step(card: Notes) -> None:
    both = Both((36, 1, 64), 4)
    both.check(both.step((0, 0, 64)))
    both.check(both.step((1, 0, 61)))
    step = both.step((0, 64, 40), (1, 61, 12))
    parents = [-1, 0, 0, 1, 1, 2, 5, 3, 0, 8, -1, 10]
    depth: list[int] = []
    for i, parent in enumerate(parents):
        depth.append(depth[parent] + 1 if parent >= 0 else 0)
        step.positions[40 + i] = 61 + depth[i]
    chain = [-1, *range(39)]
    tree = [p + 40 if p >= 0 else -1 for p in parents]
    both.check(replace(step, parents=np.array(chain + tree, np.int32)))


@pytest.mark.parametrize(
    ("arch", "shape", "options", "whole"),
    (
        (90, (8, 2, 128), {}, True),
        (90, (6, 1, 256), {"gated": True, "window": 100}, True),
        (86, (4, 2, 64), {"causal": False}, False),
    ),
    ids=str,
)
def test_blocks_share_what_few_rows_see(
    card: Notes,
    monkeypatch: pytest.MonkeyPatch,
    arch: int,
    shape: tuple[int, int, int],
    options: dict[str, Any],
    whole: bool,
) -> None:
    card.capability = arch
    monkeypatch.setattr(cuda_attention, "_LEAST_SEEN", 40)
    monkeypatch.setattr(cuda_attention, "is_whole", lambda product: whole)
    monkeypatch.setattr(f"{__name__}.LIMITS", replace(LIMITS, rows=128))
    both = Both(shape, 5, **options)
    ctypes.memset(both.ops._kv, 0xFF, 2 * both.ops._layer_bytes)  # NaN where nothing was stored
    both.check(both.step((0, 0, 64)))
    both.check(both.step((1, 0, 117)))
    both.check(both.step((0, 64, 64)))
    together = both.step((0, 128, 40), (1, 117, 63))
    tiles = [both.ops._shares(40, 168), both.ops._shares(63, 180)]
    assert min(tiles) > 1
    got = both.check(together)
    for sequence, (begin, end) in enumerate(((0, 40), (40, 103))):
        alone = both.step((sequence, (128, 117)[sequence], end - begin))
        alone.tokens[:] = together.tokens[begin:end]
        np.testing.assert_array_equal(both.check(alone), got[begin:end])


@pytest.mark.parametrize(
    ("shape", "splits", "options"),
    (
        ((4, 2, 128), 5, {}),
        ((12, 2, 128), 2, {}),
        ((16, 2, 128), 2, {}),
        ((12, 2, 256), 3, {"gated": True}),
        ((8, 2, 64), 1, {"window": 70}),
        ((4, 1, 64), 3, {"window": 70, "window_per_row": False, "causal": False}),
    ),
    ids=str,
)
def test_a_single_row_has_a_kernel_of_its_own(
    card: Notes, shape: tuple[int, int, int], splits: int, options: dict[str, Any]
) -> None:
    both = Both(shape, splits, **options)
    for at in range(0, 252, 28):
        both.check(both.step((0, at, 28)))
    for at in (252, 254, 256):
        step = both.step((0, at, 1))
        card.launches.clear()
        got = both.check(step)
        assert [name for name, *_ in card.launches] == ["attention_row", "combine"]
        twice = both.step((0, at, 2))
        twice.tokens[0] = step.tokens[0]
        if options.get("causal", True):
            np.testing.assert_array_equal(both.here(twice)[0], got[0])
        both.check(twice)
