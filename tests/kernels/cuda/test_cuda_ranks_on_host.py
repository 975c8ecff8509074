"""Ranks of tokens by the kernels on the processor, against NumPy's."""

from __future__ import annotations

import ctypes
from dataclasses import replace

import numpy as np
import pytest

from engine.ops.choosing import Choice
from engine.ops.cuda import CudaOps
from engine.ops.cuda_buffers import Pass
from engine.ops.cuda_device import Card
from engine.ops.cuda_ranks import RANKED, Ranking, Ranks
from engine.ops.cuda_step import TOKENS
from engine.ops.cuda_trust import Distrust
from engine.ops.ranking import MOST_RANKED, ranked
from tests.kernels.cuda.test_cuda_ops_without_card import Notes, record, step


def launched(ranks: Ranks, logits: int, rows: int, scale: float, cap: float) -> Ranking:
    ranks.look(logits, rows, scale, cap)
    return ranks.send(rows, scale, cap)


def found(
    logits: np.ndarray, scale: float, cap: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    card = Card(0, None, None)
    ranks = Ranks(card, lambda owner, size: card.allocate(size, {}), logits.shape[1])
    there = card.put(logits)
    got = ranks.read(launched(ranks, there, len(logits), scale, cap))
    return got.ids, got.logits, got.totals


@pytest.mark.parametrize(
    ("width", "scale", "cap"), [(1000, 1.0, 0.0), (5003, 0.5, 0.0), (777, 1.0, 3.0)]
)
def test_ranks_are_those_of_numpy(card: Notes, width: int, scale: float, cap: float) -> None:
    rng = np.random.default_rng(width)
    logits = np.round(rng.standard_normal((3, width)) * 4, 1).astype(np.float32)  # with many equals
    if cap:  # rounded, what a cap makes of two logits may be one
        logits = (rng.permutation(3 * width).reshape(3, width) / width - 1.5).astype(np.float32)
    values = scale * logits.astype(np.float64)
    values = cap * np.tanh(values / cap) if cap else values
    ids, got, totals = found(logits, scale, cap)
    order = np.argsort(-values, axis=1, kind="stable")[:, :MOST_RANKED]
    assert ids.tolist() == order.tolist()
    wanted = ranked(values, MOST_RANKED)
    np.testing.assert_allclose(got, wanted.logits, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(totals, wanted.totals, rtol=1e-5)


def test_nan_is_nobody_and_few_tokens_leave_places(card: Notes) -> None:
    logits = np.array([[np.nan, 2, 1, -np.inf, 3], [-1, 0, -0.0, np.nan, 0]], np.float32)
    ids, got, totals = found(logits, 1.0, 0.0)
    assert ids.tolist() == [[4, 1, 2, 3, -1, -1, -1, -1], [1, 2, 4, 0, -1, -1, -1, -1]]
    assert got[0, :3].tolist() == [3, 2, 1]
    assert totals == pytest.approx(np.log([np.exp([3, 2, 1]).sum(), 3 + np.exp(-1)]), rel=1e-5)


def test_what_was_found_keeps_its_place(card: Notes) -> None:
    cuda = Card(0, None, None)
    ranks = Ranks(cuda, lambda owner, size: cuda.allocate(size, {}), 50)
    logits = np.random.default_rng(2).standard_normal((4, 50)).astype(np.float32)
    at = cuda.put(logits)
    rankings = [launched(ranks, at + 200 * i, 1, 1.0, 0.0) for i in range(4)]
    assert [ranks.read(one).ids[0, 0] for one in rankings] == logits.argmax(axis=1).tolist()


def test_rows_are_as_the_kernel_writes_them() -> None:
    class Row(ctypes.Structure):
        _fields_ = (
            ("id", ctypes.c_int * 8),
            ("logit", ctypes.c_float * 8),
            ("total", ctypes.c_float),
        )

    assert ctypes.sizeof(Row) == RANKED.itemsize
    assert [RANKED.fields[n][1] for n in ("id", "logit", "total")] == [  # type: ignore[index]
        Row.id.offset, Row.logit.offset, Row.total.offset,
    ]  # fmt: skip


@pytest.mark.parametrize("rows", [5, 40])
def test_a_step_takes_tokens_that_were_only_ranked(card: Notes, rows: int) -> None:
    """Where the step's own tokens lie on the card, before anything of it runs."""
    ops = CudaOps(distrust=Distrust())
    record(ops, ("Q4_K", "Q4_K", "Q4_K"))
    logits = np.random.default_rng(rows).standard_normal((3, 99)).astype(np.float32)
    ranking = launched(ops._ranks, ops.card.put(logits), 3, 1.0, 0.0)
    tried = replace(step(rows, 3), late=[(1, 2, ranking)])
    ops.launch(replace(tried, choices=[Choice(99)] * 3))
    at = ops._step.at(TOKENS, Pass(rows, 8, 1, 0))
    found = np.frombuffer((ctypes.c_int * rows).from_address(at), np.int32)
    best = logits.argmax(axis=1)
    assert found.tolist() == [tried.tokens[0], *best[:2], *tried.tokens[3:]]
