"""Oracle models on the card: logits of transformers, greedy tokens, chunks and batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.cache.memory import DeviceMemory
from engine.ops.base import Ops
from engine.ops.numpy_ops import NumpyOps
from tests.engine import oracle
from tests.engine.oracle import ARCHITECTURES, expected, record, step

NMSE = {"llama": 1e-5, "qwen3": 1e-5, "qwen35": 1e-5, "qwen35moe": 5e-4}
"""A router's near ties go either way, and another expert changes a row."""

TIE = 3e-3
"""Of the logits' standard deviation: two tokens so near to each other may change places."""


@pytest.fixture(params=ARCHITECTURES)
def loaded(request: pytest.FixtureRequest, make_ops: Any) -> tuple[str, Ops]:
    ops = make_ops()
    record(ops, request.param)
    return request.param, ops


def nmse(got: np.ndarray, want: np.ndarray) -> float:
    return float(((got - want) ** 2).mean() / (want**2).mean())


def test_logits_equal_transformers(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    truth = expected(architecture)
    for n in (1, 7, 64, 200):
        got = ops.run(step((truth[f"ids_{n}"].tolist(), 0, [3, 1, 0, 2])))
        assert got.shape == truth[f"logits_{n}"].shape
        assert nmse(got, truth[f"logits_{n}"]) < NMSE[architecture]


def test_greedy_tokens_equal_transformers(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    truth = expected(architecture)
    ids = truth["ids_7"].tolist()
    start, new = 0, ids
    for want in truth["greedy"].tolist():
        logits = ops.run(step((new, start, [5, 6]), all_logits=False))[0]
        assert logits.max() - logits[want] < TIE * logits.std()
        start, new = start + len(new), [want]


def test_steps_up_to_32_rows_give_the_same_bits(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    ids = expected(architecture)["ids_200"].tolist()
    single = np.concatenate(
        [ops.run(step(([token], i, [0, 1, 2, 3]))).copy() for i, token in enumerate(ids)]
    )
    done = 0
    for size in (2, 8, 16, 32, 5, 31, 9, 32, 27, 32, 6):
        got = ops.run(step((ids[done : done + size], done, [4, 5, 6, 7])))
        np.testing.assert_array_equal(got, single[done : done + size])
        done += size
    assert done == len(ids)


def test_batch_rows_equal_single_rows(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    truth = expected(architecture)
    texts = [truth["ids_64"].tolist()[:20], truth["ids_7"].tolist(), truth["ids_1"].tolist()]
    alone = [ops.run(step((ids, 0, [9, 10]))).copy() for ids in texts]
    together = ops.run(step(*((ids, 0, [2 * i]) for i, ids in enumerate(texts))))
    np.testing.assert_array_equal(together, np.concatenate(alone))


def test_chunked_prefill_is_near_whole(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    ids = expected(architecture)["ids_200"].tolist()
    whole = ops.run(step((ids, 0, [0, 1, 2, 3]))).copy()
    done = 0
    for size in (1, 63, 1, 70, 65):
        got = ops.run(step((ids[done : done + size], done, [4, 5, 6, 7])))
        assert nmse(got, whole[done : done + size]) < NMSE[architecture]
        done += size


def test_a_copied_page_is_the_same_page(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    ids = expected(architecture)["ids_64"].tolist()
    ops.run(step((ids, 0, [2])))
    ops.copy_page(2, 7)
    if ops.shape.delta is not None:  # type: ignore[attr-defined]
        ops.copy_state(2, 7)
    want = ops.run(step((ids[:1], 64, [2, 3]))).copy()
    np.testing.assert_array_equal(ops.run(step((ids[:1], 64, [7, 8]))), want)


def test_a_page_and_a_state_go_to_the_host_and_come_back(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    ids = expected(architecture)["ids_64"].tolist()
    ops.run(step((ids, 0, [2])))
    kept = DeviceMemory(ops)
    page, state = kept.read_page(2), kept.read_state(2) if kept.state_bytes else None
    want = ops.run(step((ids[:1], 64, [2, 3]))).copy()
    ops.run(step((ids[::-1], 0, [2])))
    kept.settle()
    assert page is not None and page.any()
    kept.write_page(7, page)
    if state is not None:
        kept.write_state(7, state)
    np.testing.assert_array_equal(ops.run(step((ids[:1], 64, [7, 8]))), want)


def test_the_first_bad_layer_is_found(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    ids = expected(architecture)["ids_7"].tolist()
    assert ops.first_bad_layer(step((ids, 0, [0]))) is None


def test_memory_is_told_by_owner(loaded: tuple[str, Ops]) -> None:
    memory = loaded[1].memory()
    assert set(memory) == {"model", "kv", "work"} and all(n > 0 for n in memory.values())


@pytest.mark.parametrize("pages", (1, 2, 3, 5))
def test_any_number_of_pages_and_rows(
    make_ops: Any, monkeypatch: pytest.MonkeyPatch, pages: int
) -> None:
    limits = replace(
        oracle.LIMITS, rows=64 * pages, sequences=1, pages=pages, pages_per_sequence=pages
    )
    monkeypatch.setattr(oracle, "LIMITS", limits)
    ops, reference = make_ops(), NumpyOps()
    record(ops, "qwen3")
    record(reference, "qwen3")
    ids = expected("qwen3")["ids_200"].tolist()[: 64 * pages - 1]
    for first, size in ((0, len(ids) // 2), (len(ids) // 2, len(ids) - len(ids) // 2)):
        span = (ids[first : first + size], first, list(range(pages)))
        assert nmse(ops.run(step(span)), reference.run(step(span))) < NMSE["qwen3"]
