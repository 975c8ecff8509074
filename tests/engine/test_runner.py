"""A backend that finds the likeliest tokens itself is asked for logits only where they matter."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.config import SamplingParams
from engine.errors import NumericError
from engine.ops.base import Limits, Shape, StepInput
from engine.ops.choosing import chosen
from engine.runner import Runner
from engine.sampling import Sampler
from engine.types import Draft, Sequence, Span, Step

V = 16
GREEDY = SamplingParams(temperature=0)
LIMITS = Limits(rows=64, sequences=4, pages=8, page_tokens=64, pages_per_sequence=2, tried=32)


class ChoosingOps:
    """Gives `rows` as logits, and counts who asks for what."""

    def __init__(self, rows: NDArray[np.float32]) -> None:
        self.rows = rows
        self.steps: list[StepInput] = []
        self.fetched = 0

    def run(self, step: StepInput) -> NDArray[np.float32]:
        self.steps.append(step)
        return self.rows[: len(step.logit_rows)]

    def launch(self, step: StepInput) -> NDArray[np.int32]:
        self.steps.append(step)
        return chosen(self.rows, step.choices, step.tokens)

    def collect(self, launched: NDArray[np.int32]) -> NDArray[np.int32]:
        return launched

    def logits(self) -> NDArray[np.float32]:
        self.fetched += 1
        return self.rows

    def first_bad_layer(self, step: StepInput) -> int | None:
        return 0


def run(rows: NDArray[np.float32], draft: Draft | None = None, *params: SamplingParams):  # type: ignore[no-untyped-def]
    """A step of one decode row for each of `params`, the first with `draft`."""
    ops = ChoosingOps(rows)
    spans, samplers = [], {}
    for i, of_one in enumerate(params):
        sequence = Sequence(i, [1, 2, 3], 3, of_one, pages=[i])
        mine = draft if i == 0 else None
        tokens = (3, *(mine.tokens if mine else ()))
        spans.append(Span(sequence, 2, tokens, True, mine))
        samplers[i] = Sampler(of_one, V, 0)
    runner = Runner(ops, LIMITS, Shape(1, 8, V, 1, 1, 8))  # type: ignore[arg-type]
    return ops, runner.run(Step(tuple(spans)), samplers)


def test_greedy_answers_need_no_logits() -> None:
    rows = np.random.default_rng(1).standard_normal((5, V)).astype(np.float32)
    rows[2, [4, 9]] = 7  # the lower id among equals
    best = rows.argmax(axis=1).tolist()
    draft = Draft((best[0], best[1], 99), (-1, 0, 1))
    ops, result = run(rows, draft, GREEDY, SamplingParams(top_k=1, temperature=0.8))
    assert result.tokens == ((best[0], best[1], 4), (best[4],))
    assert result.paths == ((0, 1, 2), (0,))
    assert ops.fetched == 0 and len(ops.steps[0].choices) == 5


@pytest.mark.parametrize(
    "params",
    (
        SamplingParams(temperature=1.0, seed=5, top_k=0, top_p=1.0, min_p=0.0),
        SamplingParams(temperature=1.0, seed=5, top_k=5, typical_p=0.9),
    ),
)
def test_others_get_the_logits(params: SamplingParams) -> None:
    rows = np.random.default_rng(1).standard_normal((2, V)).astype(np.float32)
    ops, result = run(rows, None, params, GREEDY)
    assert not ops.steps[0].choices
    want = Sampler(params, V, 0).sample(rows[0], [1, 2, 3])
    assert result.tokens == ((want,), (int(rows[1].argmax()),))


def test_a_row_beyond_the_vocabulary_has_no_token() -> None:
    rows = np.zeros((1, V + 4), np.float32)
    rows[0, V + 1], rows[0, 6] = 3, 2
    ops, result = run(rows, None, GREEDY)
    assert result.tokens == ((6,),) and ops.fetched == 0


@pytest.mark.parametrize("bad", (np.nan, np.inf))
def test_numeric_failures_are_told(bad: float) -> None:
    rows = np.zeros((2, V), np.float32)
    rows[0, 3] = bad
    _, result = run(rows, None, GREEDY, GREEDY)
    assert isinstance(result.errors[0], NumericError) and result.tokens == ((), (0,))
