"""The scheduler with a runner that only counts: order, fairness, sharing, pre-emption."""

from __future__ import annotations

import pytest

from engine.config import SamplingParams
from engine.errors import ContextOverflow
from engine.pages import PagePool
from engine.scheduler import Scheduler
from engine.types import Sequence, Step


def make(pages: int = 64, concurrency: int = 4, chunk: int = 16, max_ctx: int = 200) -> Scheduler:
    return Scheduler(PagePool(pages, 4), concurrency, chunk, max_ctx)


def sequence(i: int, tokens: list[int]) -> Sequence:
    return Sequence(i, list(tokens), len(tokens), SamplingParams())


def run(scheduler: Scheduler, step: Step) -> None:
    """What the engine does after a step; the sampled token is 1000 + the number of tokens so far."""
    scheduler.computed(step.spans)
    for span in step.spans:
        if span.want_logits:
            span.sequence.tokens.append(1000 + len(span.sequence.tokens))
    scheduler.pool.check()


def plan(scheduler: Scheduler) -> Step:
    step = scheduler.plan()
    assert step is not None
    return step


def test_nothing_to_do() -> None:
    assert make().plan() is None


def test_a_prompt_is_read_in_chunks_and_then_decoded() -> None:
    scheduler = make()
    scheduler.add(sequence(1, list(range(40))))
    sizes, wants = [], []
    for _ in range(5):
        step = plan(scheduler)
        sizes.append(step.n_tokens)
        wants.append(step.spans[0].want_logits)
        run(scheduler, step)
    assert sizes == [16, 16, 8, 1, 1]
    assert wants == [False, False, True, True, True]


def test_decodes_ride_along_and_prompts_share_the_room() -> None:
    scheduler = make()
    scheduler.add(sequence(1, [1, 2, 3]))
    run(scheduler, plan(scheduler))
    scheduler.add(sequence(2, list(range(100, 150))))
    scheduler.add(sequence(3, list(range(200, 250))))
    step = plan(scheduler)
    assert [(s.sequence.request_id, len(s.tokens)) for s in step.spans] == [(1, 1), (2, 8), (3, 8)]


def test_room_that_a_short_prompt_leaves_goes_to_the_long_one() -> None:
    scheduler = make()
    scheduler.add(sequence(1, [1, 2]))
    scheduler.add(sequence(2, list(range(100, 150))))
    assert [len(s.tokens) for s in plan(scheduler).spans] == [2, 14]


def test_more_requests_than_places_wait_in_order() -> None:
    scheduler = make(concurrency=2)
    for i in range(4):
        scheduler.add(sequence(i, [10 * i, 10 * i + 1]))
    step = plan(scheduler)
    assert [s.sequence.request_id for s in step.spans] == [0, 1]
    run(scheduler, step)
    scheduler.remove(step.spans[0].sequence)
    assert [s.sequence.request_id for s in plan(scheduler).spans] == [1, 2]


def test_a_prefix_that_is_being_read_is_waited_for_and_shared() -> None:
    scheduler = make()
    scheduler.add(sequence(1, list(range(30))))
    scheduler.add(sequence(2, [*range(28), 99, 98]))
    first = plan(scheduler)
    assert [s.sequence.request_id for s in first.spans] == [1]
    run(scheduler, first)
    run(scheduler, plan(scheduler))
    step = plan(scheduler)
    second = next(s for s in step.spans if s.sequence.request_id == 2)
    assert second.sequence.n_reused == 28
    assert second.tokens == (99, 98)
    assert second.sequence.pages[:7] == step.spans[0].sequence.pages[:7]


def test_a_finished_prompt_is_reused_by_the_next_turn() -> None:
    scheduler = make()
    turn = sequence(1, list(range(30)))
    scheduler.add(turn)
    run(scheduler, plan(scheduler))
    run(scheduler, plan(scheduler))
    answer = list(turn.tokens)
    scheduler.remove(turn)
    assert scheduler.pool.n_used == 0
    after = sequence(2, [*answer, 5, 6, 7])
    scheduler.add(after)
    plan(scheduler)
    assert after.n_reused == 28


def test_the_youngest_gives_way_and_comes_back_with_its_text() -> None:
    scheduler = make(pages=50, chunk=64)
    old, young = sequence(1, list(range(90))), sequence(2, list(range(500, 580)))
    scheduler.add(old)
    scheduler.add(young)
    text: list[int] = []
    for _ in range(120):
        step = plan(scheduler)
        run(scheduler, step)
        if len(old.tokens) >= 199:
            scheduler.remove(old)
        if young in scheduler.waiting and not text:
            text = list(young.tokens)
    assert text, "the young one was never pre-empted"
    assert young.tokens[: len(text)] == text
    assert young.tokens == [*range(500, 580), *range(1080, 1000 + len(young.tokens))]


def test_a_lone_sequence_may_fill_the_whole_context() -> None:
    scheduler = make(pages=50)
    alone = sequence(1, [1])
    scheduler.add(alone)
    while len(alone.tokens) < 200:
        run(scheduler, plan(scheduler))
    assert alone in scheduler.running


def test_a_prompt_as_long_as_the_context_is_refused_with_both_numbers() -> None:
    with pytest.raises(ContextOverflow, match=r"1,200 .* 200"):
        make().add(sequence(1, list(range(1200))))


def test_pace_makes_slow_steps_smaller_and_fast_ones_large_again() -> None:
    scheduler = Scheduler(PagePool(64, 64), 4, 512, 4000)
    scheduler.add(sequence(1, list(range(3000))))
    step = plan(scheduler)
    assert step.n_tokens == 512
    run(scheduler, step)
    scheduler.pace(step, seconds=5.12)
    step = plan(scheduler)
    assert step.n_tokens == 32
    run(scheduler, step)
    scheduler.pace(step, seconds=0.001)
    assert plan(scheduler).n_tokens == 512
