"""Trees of guesses and what is accepted of them, against exact cases."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from engine.config import SamplingParams
from engine.draft.tree import Candidates, grow, likeliest
from engine.runner import choose
from engine.sampling import Sampler
from engine.types import Draft, Sequence, Span
from tests.engine.oracle import FIXTURES


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FIXTURES / f"draft/tree_{name}.json").read_text())
    return found


def named(draft: Draft) -> tuple[list[int], list[int]]:
    """As the cases count: the root is node 0."""
    return [-1, *draft.tokens], [-1, *(p + 1 for p in draft.parents)]


@pytest.mark.parametrize("case", cases("build_cases"), ids=lambda c: c["name"])
def test_trees_grow_as_the_reference_grows_them(case: dict[str, Any]) -> None:
    log_p = np.array([[float(x) for x in row] for row in case["logprobs"]])
    found = Candidates(np.array(case["ids"]), log_p)
    draft, weights = grow(found, case["budget"], case["chain_seed"])
    assert named(draft) == (case["tokens"], case["parents"])
    assert [0.0, *weights.tolist()] == [float(w) for w in case["weights"]]
    assert [0, *draft.depths] == case["depths"]
    seen = []
    for node in range(len(case["tokens"])):
        row, at = ["0"] * len(case["tokens"]), node
        while at >= 0:
            row[at] = "1"
            at = case["parents"][at]
        seen.append("".join(row))
    assert seen == case["visibility_rows"]


@pytest.mark.parametrize("case", cases("from_logits_cases"), ids=lambda c: str(c["logits_seed"]))
def test_trees_come_from_logits(case: dict[str, Any]) -> None:
    with np.load(FIXTURES / "draft/tree_logits_cases.npz") as data:
        logits = data[f"logits_{case['logits_seed']}"]
    found = likeliest(logits, case["budget"], case["temp"])
    assert found.ids.shape[1] == case["K"]
    draft, weights = grow(found, case["budget"], case["chain_seed"])
    np.testing.assert_allclose([0.0, *weights], case["weights"], atol=1e-5)
    if case["min_weight_gap"] > 1e-5:
        assert named(draft) == (case["tokens"], case["parents"])


@pytest.mark.parametrize("number", range(len(cases("verify_cases"))))
def test_the_longest_path_is_accepted(number: int) -> None:
    case = cases("verify_cases")[number]
    parents = case["parents"]
    draft = Draft(tuple(case["tokens"][1:]), tuple(p - 1 for p in parents[1:]))
    sequence = Sequence(1, [3], 1, SamplingParams(temperature=0))
    span = Span(sequence, case["P"], (3, *draft.tokens), True, draft)
    logits = np.zeros((len(parents), 512), np.float32)
    logits[np.arange(len(parents)), case["target_argmax"]] = 1
    tokens, path = choose(span, logits, Sampler(sequence.sampling, 512, 0))
    assert list(path) == case["accepted_nodes"]
    assert list(tokens) == [*case["accepted_tokens"], case["bonus"]]
    assert list(span.positions) == case["positions"]
    moves = [[case["P"] + row, case["P"] + i] for i, row in enumerate(path) if row != i]
    assert moves == case["kv_moves"]


def test_nothing_follows_the_end_of_a_text() -> None:
    sequence = Sequence(1, [3], 1, SamplingParams(temperature=0), ends=frozenset({7}))
    draft = Draft.chain([5, 7, 9])
    logits = np.zeros((4, 16), np.float32)
    logits[[0, 1, 2, 3], [5, 7, 9, 2]] = 1
    span = Span(sequence, 0, (3, 5, 7, 9), True, draft)
    assert choose(span, logits, Sampler(sequence.sampling, 16, 0)) == ((5, 7), (0, 1))


def test_a_draft_of_no_nodes_and_one_of_no_positions() -> None:
    empty = Candidates(np.zeros((0, 1), np.intp), np.zeros((0, 1)))
    assert grow(empty, 5)[0] == Draft()
    some = Candidates(np.array([[4], [5]]), np.array([[-0.1], [-0.2]]))
    assert grow(some, 0)[0] == Draft()
    assert grow(some, 9)[0] == Draft.chain([4, 5])
