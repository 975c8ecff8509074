"""Drawn texts keep the target's distribution, whatever is guessed: exact cases and chi-square tests."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.config import SamplingParams
from engine.runner import choose
from engine.sampling import Sampler, draw, take_or_replace, uniform
from engine.types import Draft, Likely, Sequence, Span
from tests.engine.oracle import FIXTURES

PLAIN = SamplingParams(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0)
N = 2500
LEAST_P = 1e-4


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FIXTURES / f"draft/sampling_{name}.json").read_text())
    return found


def logits_of(p: list[float]) -> NDArray[np.float32]:
    with np.errstate(divide="ignore"):
        return np.log(np.array(p)).astype(np.float32)


def likely(p: list[float]) -> Likely:
    return Likely(np.arange(len(p)), np.array(p))


def chi_square(seen: Counter[str], expected: dict[str, float]) -> float:
    """The chance of so large a deviation (Wilson and Hilferty 1931)."""
    total = sum(seen.values())
    assert not [key for key in seen if expected.get(key, 0) == 0], "an impossible outcome"
    possible = {key: p for key, p in expected.items() if p > 0}
    chi = sum((seen[key] - total * p) ** 2 / (total * p) for key, p in possible.items())
    df = len(possible) - 1
    if df == 0:
        return 1.0
    z = ((chi / df) ** (1 / 3) - (1 - 2 / (9 * df))) / math.sqrt(2 / (9 * df))
    return 0.5 * math.erfc(z / math.sqrt(2))


def test_decisions_driven_by_given_numbers() -> None:
    known = {case["name"]: case for case in cases("single_token")}
    for case in cases("uniform_driven"):
        p, q = known[case["case"]]["p"], known[case["case"]]["q"]
        got = take_or_replace(
            likely(p), likely(q), case["draft"], case["u_accept"], case["u_residual"]
        )
        assert got == case["output"], case


@pytest.mark.parametrize("case", cases("single_token"), ids=lambda c: c["name"])
def test_one_token_is_drawn_from_the_target(case: dict[str, Any]) -> None:
    seen: Counter[str] = Counter()
    for seed in range(N):
        guess, drawn = draw(logits_of(case["q"]), PLAIN, seed, 1)
        assert drawn is not None
        token = Sampler(PLAIN, len(case["p"]), seed).verify(logits_of(case["p"]), [0], guess, drawn)
        seen[str(token)] += 1
    expected = {str(i): p for i, p in enumerate(case["output_dist"])}
    assert chi_square(seen, expected) > LEAST_P


def outcomes(rule: Callable[[int], Span], logits: Callable[[Span], Any], v: int) -> Counter[str]:
    """What comes of N drafts: how many tokens were accepted, and all tokens."""
    seen: Counter[str] = Counter()
    for seed in range(N):
        span = rule(seed)
        tokens, path = choose(span, logits(span), Sampler(PLAIN, v, seed))
        assert len(tokens) == len(path)
        seen[f"{len(tokens) - 1}|{','.join(map(str, tokens))}"] += 1
    return seen


@pytest.mark.parametrize("rule", ["ratio", "match"])
@pytest.mark.parametrize("case", cases("chains"), ids=lambda c: c["name"])
def test_chains_come_out_as_often_as_they_should(case: dict[str, Any], rule: str) -> None:
    def key(tokens: list[int]) -> str:
        return ",".join(map(str, tokens))

    def span(seed: int) -> Span:
        tokens: list[int] = []
        drawn: list[Likely] = []
        for i in range(case["gamma"]):
            q = case["q"][key(tokens)]
            if rule == "match":
                # Sampled guesses, but nobody is told from what they were drawn.
                u = uniform(seed, 1000 + i)
                tokens.append(int(np.searchsorted(np.cumsum(q), u, side="right")))
            else:
                token, known = draw(logits_of(q), PLAIN, seed, 1 + i)
                assert known is not None
                tokens.append(token)
                drawn.append(known)
        sequence = Sequence(1, [0], 1, PLAIN, seed=seed)
        return Span(sequence, 0, (0, *tokens), True, Draft.chain(tokens, drawn))

    def logits(span: Span) -> Any:
        guesses = list(span.tokens[1:])
        return np.stack([logits_of(case["p"][key(guesses[:i])]) for i in range(len(guesses) + 1)])

    seen = outcomes(span, logits, case["V"])
    assert chi_square(seen, case[rule]["outcomes"]) > LEAST_P


@pytest.mark.parametrize("case", cases("tree_sampling"), ids=lambda c: c["name"])
def test_trees_come_out_as_often_as_they_should(case: dict[str, Any]) -> None:
    draft = Draft(tuple(case["tokens"][1:]), tuple(p - 1 for p in case["parents"][1:]))
    logits = np.stack([logits_of(p) for p in case["p"]])

    def span(seed: int) -> Span:
        return Span(Sequence(1, [0], 1, PLAIN), 0, (0, *draft.tokens), True, draft)

    seen = outcomes(span, lambda _: logits, case["V"])
    assert chi_square(seen, case["outcomes"]) > LEAST_P


def test_the_chi_square_test_can_fail() -> None:
    assert chi_square(Counter({"a": 550, "b": 450}), {"a": 0.5, "b": 0.5}) < 0.01
    assert chi_square(Counter({"a": 505, "b": 495}), {"a": 0.5, "b": 0.5}) > 0.5


def test_a_greedy_drafter_needs_no_distribution() -> None:
    token, drawn = draw(np.array([0, 3, 1], np.float32), SamplingParams(temperature=0), 1, 5)
    assert (token, drawn) == (1, None)


def test_numbers_of_one_seed_and_place_are_independent_by_stream() -> None:
    drawn = {uniform(9, 4, stream) for stream in range(3)}
    assert len(drawn) == 3 and uniform(9, 4) == uniform(9, 4, 0)
