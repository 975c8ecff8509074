"""The scheduler with a runner that only counts: order, fairness, sharing, pre-emption."""

from __future__ import annotations

from dataclasses import replace

import pytest

from engine.cache.host import HostPool
from engine.cache.prefix import PrefixCache
from engine.config import SamplingParams
from engine.errors import ContextOverflow
from engine.pages import PagePool
from engine.scheduler import Guesser, Scheduler
from engine.types import Draft, Sequence, Step
from tests.engine.cache.shadow import Shadow, ShadowMemory, next_token


def make(
    pages: int = 64,
    concurrency: int = 4,
    chunk: int = 16,
    max_ctx: int = 200,
    guesser: Guesser | None = None,
    alike: int | None = None,
) -> Scheduler:
    cache = PrefixCache(PagePool(pages, 4), None, HostPool(0), ShadowMemory(pages, 0))
    return Scheduler(cache, concurrency, chunk, max_ctx, guesser, alike)


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


def slices(*prompts: list[int], alike: int | None = 2, pages: int = 64) -> dict[int, list[int]]:
    """How many tokens of each prompt each step reads that all want at once, each to write 12 tokens."""
    shadow = Shadow(pages=pages, concurrency=5, alike=alike)
    found: dict[int, list[int]] = {i: [] for i in range(len(prompts))}
    made = [shadow.add(i, prompt, cached=False) for i, prompt in enumerate(prompts)]
    for _ in range(500):
        step = shadow.step()
        reads = [span for span in step.spans if len(span.tokens) > 1] if step else []
        assert not reads or step is None or len(step.spans) == 1 or alike is None
        assert alike is None or reads or step is None or step.n_tokens <= alike
        for span in reads:
            found[span.sequence.request_id].append(len(span.tokens))
        for sequence in made:
            if (
                len(sequence.tokens) >= sequence.n_prompt + 12
                and sequence in shadow.scheduler.running
            ):
                shadow.scheduler.remove(sequence)
        if not (shadow.scheduler.running or shadow.scheduler.waiting):
            return found
    raise AssertionError("somebody waits forever")


def test_where_bits_depend_on_rows_a_prompt_is_read_as_if_it_were_alone() -> None:
    prompts = [list(range(1000 * i, 1000 * i + n)) for i, n in enumerate((40, 1, 2, 17, 63))]
    alone = {i: slices(prompt)[0] for i, prompt in enumerate(prompts)}
    assert alone[0] == [16, 16, 8] and alone[1] == []
    assert slices(*prompts) == alone
    assert slices(*prompts, alike=None) != alone  # or nothing is shown


def test_where_bits_depend_on_rows_decodes_and_prompts_take_turns() -> None:
    scheduler = make(concurrency=5, alike=2)
    for i in range(3):
        scheduler.add(sequence(i, [i]))
    for i in (3, 4):
        scheduler.add(sequence(i, list(range(100 * i, 100 * i + 50))))
    seen = []
    for _ in range(8):
        step = plan(scheduler)
        seen.append([s.sequence.request_id for s in step.spans])
        run(scheduler, step)
        if len(seen) == 1:
            assert scheduler.ahead(step.spans, [0] * len(step.spans)) is None
    assert seen == [[3], [0, 1], [4], [2, 0], [3], [1, 2], [4], [0, 1]]


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
    assert second.sequence.n_given == 28
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
    assert after.n_given == 30  # the last full page ends at 28


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
    cache = PrefixCache(PagePool(64, 64), None, HostPool(0), ShadowMemory(64, 0))
    scheduler = Scheduler(cache, 4, 512, 4000)
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


def test_a_state_is_reused_at_the_end_of_the_prompts_last_full_page() -> None:
    shadow = Shadow(slots=6)
    shadow.add(1, list(range(30)))
    sizes = [step.n_tokens for _ in range(4) if (step := shadow.step())]
    assert sizes == [16, 12, 2, 1]
    second = shadow.add(2, [*range(28), 99])
    shadow.step()
    assert second.n_given == 28


def test_a_step_leaves_states_on_its_way_where_the_device_can() -> None:
    shadow = Shadow(slots=20, chunk=64, spacing=16)
    shadow.memory.least_kept = 4
    shadow.add(1, list(range(46)))
    (span,) = shadow.step().spans  # type: ignore[union-attr]
    assert [n for n, _ in span.keeps] == [16, 32, 44] and len(span.tokens) == 46
    for n in (16, 32, 44):
        second = shadow.add(n, [*range(n), 99])
        shadow.step()
        assert second.n_given == n
        shadow.scheduler.remove(second)
    shadow.memory.least_kept = 30  # the first is too near, so that the span ends there
    shadow.add(3, list(range(1000, 1046)))
    assert [len(s.tokens) for s in shadow.step().spans] == [1, 16]  # type: ignore[union-attr]


def test_the_next_turn_goes_on_from_the_answers_very_end() -> None:
    shadow = Shadow(slots=6)
    turn = shadow.add(1, list(range(10)))
    for _ in range(20):
        shadow.step()
    shadow.scheduler.remove(turn)
    after = shadow.add(2, [*turn.tokens, 7, 7, 7])
    shadow.step()
    assert after.n_given == len(turn.tokens) - 1


def test_a_third_prompt_goes_on_where_the_second_left_the_first() -> None:
    shadow = Shadow(slots=6)
    for i, given in enumerate((0, 0, 20)):
        turn = shadow.add(i, [*range(20), *range(100 * i + 100, 100 * i + 120)])
        while len(turn.tokens) == turn.n_prompt:
            shadow.step()
        shadow.scheduler.remove(turn)
        assert turn.n_given == given


class Guess:
    """Guesses as many tokens as it may."""

    places = 2

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.released: list[int] = []

    def propose(self, sequence: Sequence, most: int) -> Draft:
        self.asked.append(most)
        assert len(sequence.pages) * 4 >= len(sequence.tokens) + most
        return Draft.chain(range(500, 500 + most))

    def release(self, sequence: Sequence) -> None:
        self.released.append(sequence.request_id)


def guessing(pages: int, max_ctx: int = 200) -> Scheduler:
    return make(pages, max_ctx=max_ctx, guesser=Guess())


def verified(scheduler: Scheduler, step: Step, accepted: int) -> None:
    """As the engine does when so many tokens of each draft are right."""
    tokens = [
        (*s.tokens[1 : 1 + accepted], 900) if s.draft else (900,) if s.want_logits else ()
        for s in step.spans
    ]
    scheduler.computed(step.spans, tokens)
    for span, more in zip(step.spans, tokens, strict=True):
        span.sequence.tokens.extend(more)
    scheduler.pool.check()


def test_a_draft_follows_the_token_that_decodes_and_what_stands_is_computed() -> None:
    scheduler = guessing(64)
    scheduler.add(one := sequence(1, [1, 2, 3]))
    first = plan(scheduler)
    assert first.spans[0].draft is None  # a prompt is not guessed
    verified(scheduler, first, 0)
    step = plan(scheduler)
    (span,) = step.spans
    assert span.draft is not None and span.tokens == (900, *span.draft.tokens)
    assert len(span.tokens) == 32 and span.start == 3
    verified(scheduler, step, 6)
    assert one.n_computed == 10 and len(one.tokens) == 11
    # The pages that are full by now serve others.
    scheduler.add(two := sequence(2, [1, 2, 3, 900, 500, 501, 502, 503, 9, 9]))
    plan(scheduler)
    assert two.n_given == 8


def test_drafts_share_the_rows_of_a_pass_and_keep_within_the_context() -> None:
    scheduler = guessing(64, max_ctx=20)
    for i in range(2):
        scheduler.add(sequence(i, [10 * i + 1, 10 * i + 2]))
    verified(scheduler, plan(scheduler), 0)
    sizes = [len(span.tokens) for span in plan(scheduler).spans]
    assert sizes == [16, 16]
    scheduler.running[0].n_most = 3  # which it has
    assert [len(span.tokens) for span in plan(scheduler).spans] == [1, 16]
    scheduler.running[1].tokens.extend([7] * 16)
    scheduler.running[1].n_computed += 16
    assert [len(span.tokens) for span in plan(scheduler).spans] == [1, 1]


def test_nobody_loses_pages_for_a_draft() -> None:
    scheduler = guessing(6, max_ctx=20)
    for i in range(2):
        scheduler.add(sequence(i, [10 * i + k for k in range(7)]))
    verified(scheduler, plan(scheduler), 0)
    step = plan(scheduler)
    # Two pages each are full, and of the two others one is for the second sequence to grow into.
    assert [len(span.tokens) for span in step.spans] == [5, 1]
    assert len(scheduler.running) == 2
    guess = scheduler.guesser
    assert isinstance(guess, Guess) and guess.released == []
    scheduler.remove(scheduler.running[0])
    assert guess.released == [0]


def test_a_state_inside_a_draft_is_kept_where_its_page_ends() -> None:
    shadow = Shadow(slots=6, guesser=None)
    one = shadow.add(1, [1, 2, 3, 4, 5, 6])
    while len(one.tokens) == 6:
        shadow.step()
    text = list(one.tokens)
    for _ in range(8):
        text.append(next_token(text))
    shadow.scheduler.guesser = Knowing(text)
    step = shadow.step()
    assert step is not None and len(step.spans[0].tokens) == 9 and one.n_computed == 15
    assert shadow.scheduler.stays(step.spans[0], 9) == 6
    two = shadow.add(2, [*text[:12], 99, 99])
    shadow.step()
    assert two.n_given == 12


class Knowing(Guess):
    """Guesses what is right."""

    def __init__(self, text: list[int]) -> None:
        super().__init__()
        self.text = text

    def propose(self, sequence: Sequence, most: int) -> Draft:
        n = len(sequence.tokens)
        return Draft.chain(self.text[n : min(n + most, len(self.text))])


def decoding(scheduler: Scheduler, *lengths: int) -> Step:
    """A step that decodes texts of these lengths, their prompts read."""
    for i, n in enumerate(lengths):
        scheduler.add(sequence(i, list(range(100 * i, 100 * i + n))))
    run(scheduler, plan(scheduler))
    return plan(scheduler)


def test_the_step_after_decodes_is_known_but_for_its_tokens() -> None:
    scheduler = make()
    step = decoding(scheduler, 5, 3)
    ahead = scheduler.ahead(step.spans, (0, 1))
    assert ahead is not None
    assert [(s.start, s.tokens, s.want_logits) for s in ahead.spans] == [
        (6, (-1,), True), (4, (-2,), True),
    ]  # fmt: skip
    assert [len(s.sequence.pages) for s in ahead.spans] == [2, 2]  # one was taken for place 4
    run(scheduler, step)
    assert [s.sequence.n_computed for s in ahead.spans] == [s.start for s in ahead.spans]
    # One of them ends with this step, by its length.
    ahead.spans[1].sequence.n_most = 6
    after = scheduler.ahead(ahead.spans, (0, 1))
    assert after is not None and [s.sequence.request_id for s in after.spans] == [0]


def test_nothing_goes_ahead_of_other_work() -> None:
    scheduler = make(concurrency=3)
    step = decoding(scheduler, 5, 3)
    rows = (0, 1)
    assert scheduler.ahead(step.spans, rows) is not None
    assert scheduler.ahead(step.spans[:1], rows[:1]) is None  # the other one is to be planned for
    drafted = replace(step.spans[0], tokens=(1, 2), draft=Draft.chain([2]))
    assert scheduler.ahead((drafted, step.spans[1]), rows) is None
    reading = replace(step.spans[0], want_logits=False)
    assert scheduler.ahead((reading, step.spans[1]), rows) is None
    scheduler.add(sequence(7, [1, 2]))
    assert scheduler.ahead(step.spans, rows) is None  # there is room for it
    scheduler.max_concurrency = 2
    assert scheduler.ahead(step.spans, rows) is not None


def test_nobody_gives_a_page_for_a_step_ahead() -> None:
    scheduler = make(pages=6, max_ctx=24, concurrency=2)
    step = decoding(scheduler, 6, 6)
    while step.spans[0].start < 11:
        assert scheduler.ahead(step.spans, (0, 1)) is not None
        run(scheduler, step)
        step = plan(scheduler)
    assert scheduler.pool.n_available == 0
    assert scheduler.ahead(step.spans, (0, 1)) is None
    assert len(scheduler.running) == 2


def test_a_state_that_is_to_be_kept_is_not_moved_on_ahead() -> None:
    shadow = Shadow(pages=64, slots=4)
    shadow.add(1, [1, 2, 3, 4, 5])
    ends = []
    for _ in range(12):
        step = plan(shadow.scheduler)
        (span,) = step.spans
        if len(span.tokens) == 1 and shadow.scheduler.ahead(step.spans, (0,)) is None:
            ends.append(span.start + 1)
        shadow.finish(step)
    assert ends == [8, 12]  # where pages of four are full
