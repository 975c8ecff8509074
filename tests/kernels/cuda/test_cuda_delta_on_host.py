"""Kernels of recurrent layers, launched as `delta` does, on the processor thread by thread, against NumPy."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gguf import Tensor
from engine.ops.base import MOST_KEPT, DeltaShape, Limits, Shape, StepInput, no_numbers
from engine.ops.cuda import BUCKETS, CudaOps
from engine.ops.cuda_buffers import MOST_ROWS, Pass
from engine.ops.numpy_ops import NumpyOps
from engine.quants import TYPES
from kernels.variants import F16
from tests.kernels.cuda.test_cuda_ops_without_card import Notes

LIMITS = Limits(
    rows=256, sequences=2, pages=16, page_tokens=64, pages_per_sequence=8, slots=5, tried=40
)
TEXT = 60
Span = tuple[int, int, int]


class Both:
    """One recurrent layer here and in NumPy, on the same rows."""

    def __init__(self, n_k: int, n_v: int, taps: int = 4) -> None:
        self.rng = rng = np.random.default_rng()
        delta = DeltaShape(1, n_k, n_v, 128, taps)
        self.inner = inner = 128 * n_v
        self.width = width = delta.qkv + inner + 2 * n_v
        self.table = rng.standard_normal((TEXT, width)).astype(np.float32)
        vectors = [
            rng.standard_normal((delta.qkv, taps)) / 2, rng.uniform(0.5, 1.5, n_v),
            rng.uniform(-1, -0.01, n_v), rng.uniform(0.5, 1.5, 128),
        ]  # fmt: skip
        self.ops, self.truth = CudaOps(), NumpyOps()

        def numbers(ops: Any, values: np.ndarray) -> Any:
            values = values.astype(np.float32)
            return ops.upload(Tensor("x", values.shape, TYPES[0], values.view(np.uint8)))

        for ops in (self.ops, self.truth):
            ops.allocate(Shape(2, width, inner, 4, 2, 64, delta), LIMITS)
            with ops.recording():
                if ops is self.truth:
                    mixed = ops.embed(numbers(ops, self.table))
                else:  # `here` fills the product in
                    x, w = numbers(ops, np.ones((TEXT, 8))), numbers(ops, np.ones((width, 8)))
                    mixed = self.mixed = ops.linear(ops.embed(x), w)
                out = ops.delta(mixed, 0, *(numbers(ops, v) for v in vectors), 1e-6)
                ops.head(out, numbers(ops, np.eye(inner)))
        self.out = next(n for n in self.ops._tapes[0].nodes if n.buffers[0] is self.mixed)

    def step(
        self, *spans: Span, parents: list[int] | None = None, tried: tuple[int, ...] = (0, 0)
    ) -> StepInput:
        """Spans of (sequence, start, tokens); `parents` are those of the first, a tree."""
        positions = np.concatenate([start + np.arange(n) for _, start, n in spans])
        sequence = np.repeat([s for s, *_ in spans], [n for *_, n in spans])
        before: list[int] = []
        for _, _, n in spans:
            before += [-1, *range(len(before), len(before) + n - 1)]
        if parents:
            before[: len(parents)] = parents
            depth: list[int] = []
            for parent in parents:
                depth.append(depth[parent] + 1 if parent >= 0 else 0)
            positions[: len(parents)] = spans[0][1] + np.array(depth)
        m = len(positions)
        return StepInput(
            self.rng.integers(0, TEXT, m).astype(np.int32), positions.astype(np.int32),
            sequence.astype(np.int32), np.arange(16, dtype=np.int32).reshape(2, 8),
            np.arange(m, dtype=np.int32), np.array([2, 0], np.int32), np.array(before, np.int32),
            np.array(tried, np.int32),
        )  # fmt: skip

    def here(self, step: StepInput) -> np.ndarray:
        m = len(step.tokens)
        rows = m if m > MOST_ROWS else next(b for b in BUCKETS if b >= m)
        tiles = self.ops._step.send(step, rows)
        self.ops._last = self.ops._tapes[0], step
        y = np.full((rows, self.width), np.nan, np.float32)
        y[:m] = self.table[step.tokens]
        out = np.full((rows, self.inner), np.nan, np.float32)
        there = self.out.buffers[1].at("32")
        ctypes.memmove(self.mixed.at("y"), y.ctypes.data, y.nbytes)
        ctypes.memmove(there, out.ctypes.data, out.nbytes)
        sequences = min(rows, LIMITS.sequences) if m <= MOST_ROWS else LIMITS.sequences + MOST_KEPT
        self.out.launch(Pass(rows, F16, tiles, rows, 0, sequences))
        ctypes.memmove(out.ctypes.data, there, out.nbytes)
        assert not out[m:].any()
        return out[:m]

    def check(self, step: StepInput) -> np.ndarray:
        got, want = self.here(step), self.truth.run(step)
        assert np.linalg.norm(got - want) < 1e-5 * np.linalg.norm(want)
        self.check_states()
        return got

    def check_states(self) -> None:
        for slot in range(LIMITS.slots):
            state = np.zeros(self.ops.state_bytes(), np.uint8)
            self.ops.read_state(slot, state)
            self.ops.settle()
            want = self.truth.state[0, slot].transpose(0, 2, 1).ravel()
            want = np.concatenate([want, self.truth.tail[0, slot].ravel()])
            if np.isfinite(want).all():
                got = state.view(np.float32)
                assert np.linalg.norm(got - want) < 1e-5 * np.linalg.norm(want)

    def accept(self, sequence: int, rows: list[int]) -> None:
        for ops in (self.ops, self.truth):
            ops.accept(sequence, rows)
        self.check_states()


@pytest.mark.parametrize("arch", (75, 90))
def test_prompts_in_chunks_and_short_steps_equal_numpy(card: Notes, arch: int) -> None:
    card.capability = arch
    both, at = Both(1, 2), 0
    for size, kernels in ((1, 1), (70, 5), (1, 1), (3, 2), (6, 3), (33, 5), (1, 1)):
        card.launches.clear()
        both.check(both.step((0, at, size)))
        assert len(card.launches) == kernels
        at += size
    both.check(both.step((0, at, 1), (1, 0, 40)))
    if arch == 90:
        both.check(both.step((0, at + 1, 17), (1, 40, 16)))


def test_a_prompt_behind_more_taps_is_gone_through_token_by_token(card: Notes) -> None:
    both = Both(1, 2, taps=5)
    both.check(both.step((0, 0, 75)))
    assert [name for name, *_ in card.launches] == ["convolve", "recur", "gate_rows"]
    both.check(both.step((0, 75, 90), (1, 0, 33)))


@pytest.mark.parametrize("arch", (75, 90))
def test_states_are_kept_on_the_way(card: Notes, arch: int) -> None:
    card.capability = arch
    both = Both(1, 2)
    for keeps, *spans in (
        (((0, 64, 1),), (0, 0, 70)),
        (((0, 70, 3),), (0, 70, 86)),
        (((1, 64, 4), (1, 130, 1)), (0, 156, 3), (1, 0, 150)),
        (((0, 64, 3), (1, 65, 4)), (0, 159, 66), (1, 150, 100)),
    ):
        both.check(replace(both.step(*spans), keeps=keeps, parents=no_numbers()))
    both.check(both.step((0, 225, 1), (1, 250, 1)))


def test_rows_do_not_depend_on_their_batch(card: Notes) -> None:
    both = Both(2, 4)
    step = both.step((0, 0, 12))
    got, at = both.check(step), 0
    for size in (1, 2, 1, 3, 5):
        part = both.step((1, at, size))
        part.tokens[:] = step.tokens[at : at + size]
        np.testing.assert_array_equal(both.here(part), got[at : at + size])
        at += size
    first, second = (np.zeros(both.ops.state_bytes(), np.uint8) for _ in range(2))
    both.ops.read_state(2, first)
    both.ops.read_state(0, second)
    both.ops.settle()
    assert (first == second).all()


def test_what_is_tried_is_moved_on_by_its_path(card: Notes) -> None:
    both = Both(2, 4)
    both.check(both.step((0, 0, 2), (1, 0, 5)))
    both.check(both.step((0, 2, 1), tried=(1, 0)))
    both.accept(0, [0])
    both.check(both.step((0, 3, 7), (1, 5, 1), parents=[-1, 0, 0, 1, 2, 4, -1], tried=(1, 0)))
    both.accept(0, [0, 2, 4, 5])
    both.check(both.step((0, 7, 4), (1, 6, 30), tried=(1, 0)))
    both.accept(0, [0, 1])
    both.check(both.step((0, 9, 20), tried=(1, 0)))
    both.accept(0, list(range(19)))
    both.check(both.step((0, 28, 1)))


@pytest.mark.parametrize("heads", [(1, 2), (2, 6), (2, 2), (1, 4)])
def test_a_tree_gives_each_path_what_it_gives_alone(card: Notes, heads: tuple[int, int]) -> None:
    both = Both(*heads)
    both.check(both.step((0, 0, 2)))
    for size, near in ((32, 3), (32, 32), (20, 6), (5, 2)):
        parents = [-1, *(int(both.rng.integers(max(-1, r - near), r)) for r in range(1, size))]
        step = both.step((0, 2, size), parents=parents, tried=(1, 0))
        got = both.check(step)
        for row in {size - 1, *both.rng.integers(0, size, 3).tolist()}:
            path = [row]
            while parents[path[0]] >= 0:
                path.insert(0, parents[path[0]])
            alone = both.step((0, 2, len(path)), tried=(1, 0))
            alone.tokens[:] = step.tokens[path]
            np.testing.assert_array_equal(both.here(alone), got[path])
