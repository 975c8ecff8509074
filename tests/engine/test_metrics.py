"""The meter: rates over the last second, by kind of step."""

from __future__ import annotations

from engine.config import SamplingParams
from engine.metrics import Meter
from engine.types import Sequence, Span, Step, StepResult


def span(start: int, n: int, n_prompt: int = 10) -> Span:
    sequence = Sequence(1, list(range(n_prompt)), n_prompt, SamplingParams())
    return Span(sequence, start, tuple(range(n)), want_logits=True)


def count(meter: Meter, *spans: Span, seconds: float, now: float, tokens: int = 1) -> None:
    """A step in which each span ends with so many tokens."""
    result = StepResult(tuple((7,) * tokens for _ in spans), seconds=seconds)
    meter.step(Step(spans), result, now)


def test_rates_count_only_the_time_of_their_own_steps() -> None:
    meter = Meter()
    count(meter, span(0, 10), seconds=0.5, now=100.5)
    count(meter, span(10, 1), seconds=0.1, now=100.6)
    count(meter, span(11, 1), seconds=0.1, now=100.7)
    metrics = meter.snapshot(now=100.8)
    assert metrics.prefill_rate == 20.0
    assert metrics.decode_rate == 10.0
    assert (metrics.prompt_tokens_total, metrics.completion_tokens_total) == (10, 2)
    assert (metrics.steps, metrics.step_ms, metrics.context_used) == (3, 100.0, 12)


def test_all_tokens_of_a_verified_draft_count() -> None:
    meter = Meter()
    count(meter, span(10, 1), seconds=0.1, now=10.0, tokens=4)
    metrics = meter.snapshot(now=10.0)
    assert (metrics.decode_rate, metrics.completion_tokens_total) == (40.0, 4)


def test_rates_end_a_second_after_the_last_step() -> None:
    meter = Meter()
    count(meter, span(10, 1), seconds=0.1, now=10.0)
    assert meter.snapshot(now=10.9).decode_rate > 0
    assert meter.snapshot(now=11.1).decode_rate == 0
    assert meter.snapshot(now=11.1).completion_tokens_total == 1


def test_steps_that_nobody_asks_about_are_not_kept() -> None:
    meter = Meter()
    for n in range(1000):
        count(meter, span(10, 1), seconds=0.01, now=n / 100)
    assert len(meter._steps) <= 102
    assert meter.snapshot(now=10.0).completion_tokens_total == 1000


def test_a_mixed_step_counts_as_prefill_time() -> None:
    meter = Meter()
    count(meter, span(12, 1), span(0, 9), seconds=0.5, now=1.0)
    metrics = meter.snapshot(now=1.0)
    assert metrics.prefill_rate == 18.0 and metrics.decode_rate == 0.0
    assert metrics.completion_tokens_total == 1


def test_reset_forgets_the_former_model() -> None:
    meter = Meter()
    meter.set(context_max=99)
    count(meter, span(10, 1), seconds=0.1, now=1.0)
    meter.reset()
    metrics = meter.snapshot(now=1.0)
    assert (metrics.steps, metrics.context_max, metrics.decode_rate) == (0, 0, 0.0)
