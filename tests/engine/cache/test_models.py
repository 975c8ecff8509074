"""Real models: what they write from the cache is what they write from a cold start, token for token."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from engine.cache.metrics import CacheMetrics
from engine.config import EngineConfig, Precision, SamplingParams
from engine.engine import Engine
from engine.passes import pass_costs
from engine.types import Event, Finished, Request, Usage
from tests.engine.engines import running
from tests.engine.listener import Listener
from tests.engine.oracle import ARCHITECTURES, model_path

CONFIG = EngineConfig(
    threads=2, precision=Precision.EXACT, max_ctx=256, prefill_chunk=96, prefix_cache_mib=5
)


@pytest.fixture(params=ARCHITECTURES)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with running(model_path(request.param), CONFIG) as engine:
        yield engine


def submit(
    engine: Engine, prompt: list[int], n: int, listener: Listener | None = None, **wishes: bool
) -> Listener:
    listener = listener or Listener()
    sampling = SamplingParams(temperature=0, max_tokens=n, ignore_eos=True)
    engine.submit(Request(ids=prompt, sampling=sampling, **wishes), listener)
    return listener


def ended(listener: Listener) -> Usage:
    end = listener.end()
    assert isinstance(end, Finished), end
    return end.usage


def ids(random: Random, n: int) -> list[int]:
    return [random.randrange(3, 500) for _ in range(n)]


def test_turns_branches_and_neighbours_change_no_text(engine: Engine) -> None:
    """More conversations than the pages and RAM hold, several at once, so that all of it gives way."""
    random = Random(1)
    history: list[list[int]] = [ids(random, 130)]
    asked: list[tuple[list[int], int, list[int]]] = []
    for n_running, n in ((2, 15), (4, 60), (3, 8)):
        running = []
        for i in range(n_running):
            text = history[1 + i] if n_running == 3 else random.choice(history)
            prompt = text[: random.randint(70, min(len(text), 150))] + ids(
                random, random.randint(1, 30)
            )
            kept = random.random() < 0.8
            running.append((prompt, submit(engine, prompt, n, agent_turn_cache=kept)))
        for prompt, listener in running:
            ended(listener)
            asked.append((prompt, n, listener.tokens))
            history.append(prompt + listener.tokens)
    cache = engine.metrics().cache
    assert cache.hits and cache.moved_out_total and cache.preempted_total
    assert 0 < cache.ram_bytes <= cache.ram_limit == 5 << 20
    engine.use(lambda model: model.scheduler.cache.check())
    for prompt, n, tokens in asked:
        cold = submit(engine, prompt, n, prefix_cache=False)
        assert ended(cold).reused_tokens == 0
        assert cold.tokens == tokens


def test_the_next_turn_reads_only_what_is_new(engine: Engine) -> None:
    random = Random(2)
    prompt = ids(random, 150)
    answer = submit(engine, prompt, 30)
    assert ended(answer).reused_tokens == 0
    turn = [*prompt, *answer.tokens, *ids(random, 20)]
    for kept, known in ((True, (179, 180)), (False, (128,))):
        usage = ended(submit(engine, turn, 5, agent_turn_cache=kept))
        assert usage.reused_tokens in known and usage.reused_answer is kept
    assert ended(submit(engine, turn, 5, prefix_cache=False)).reused_tokens == 0


def test_what_another_prompt_pushed_out_comes_back_from_ram(engine: Engine) -> None:
    random = Random(6)
    prompt = ids(random, 150)
    answer = submit(engine, prompt, 20)
    ended(answer)
    for _ in range(2):
        ended(submit(engine, ids(random, 250), 2))  # both together need all pages
    turn = [*prompt, *answer.tokens, 8, 9]
    again = submit(engine, turn, 10)
    usage = ended(again)
    assert usage.reused_tokens in (169, 170) and usage.reused_answer
    assert engine.metrics().cache.read_back_total >= 3
    cold = submit(engine, turn, 10, prefix_cache=False)
    assert ended(cold).reused_tokens == 0 and cold.tokens == again.tokens


def test_what_is_not_to_be_kept_leaves_nothing(engine: Engine) -> None:
    random = Random(3)
    prompt = ids(random, 150)
    first = submit(engine, prompt, 30, prefix_cache=False)
    ended(first)
    cache = engine.metrics().cache
    assert (cache.kept_pages, cache.ram_pages, cache.hits, cache.misses) == (0, 0, 0, 0)
    second = submit(engine, prompt, 30, agent_turn_cache=False)
    ended(second)
    again = ended(submit(engine, [*prompt, *second.tokens, 7], 2))
    assert again.reused_tokens == 128 and not again.reused_answer


def test_prompts_with_one_beginning_hold_it_once(engine: Engine) -> None:
    random = Random(4)
    system = ids(random, 128)
    seen: list[CacheMetrics] = []

    class Watcher(Listener):
        """Looks while the engine waits."""

        def __call__(self, event: Event) -> None:
            assert engine._model is not None
            seen.append(engine._model.scheduler.cache.metrics())
            super().__call__(event)

    listeners = [
        submit(engine, [*system, *ids(random, 5)], 30, listener=Watcher()) for _ in range(4)
    ]
    reused = [ended(listener).reused_tokens for listener in listeners]
    assert sorted(reused) == [0, 128, 128, 128]
    # Three pages each would not fit the seven that there are.
    assert max(m.shared_pages for m in seen) == 2 and seen[-1].preempted_total == 0


def test_a_snapshot_is_brought_back_after_the_cache_is_cleared(engine: Engine) -> None:
    random = Random(5)
    prompt = ids(random, 100)
    answer = submit(engine, prompt, 20)
    ended(answer)
    text = [*prompt, *answer.tokens]
    snapshot = engine.snapshot(text)
    assert snapshot is not None and len(snapshot.tokens) in (119, 120)
    more = submit(engine, [*text, 9, 9], 20)
    ended(more)
    engine.clear_cache()
    assert ended(submit(engine, [*text, 9, 9], 20, agent_turn_cache=False)).reused_tokens == 0
    engine.clear_cache()
    n = engine.restore(snapshot)
    assert n == len(snapshot.tokens)
    again = submit(engine, [*text, 9, 9], 20)
    assert ended(again).reused_tokens == n and again.tokens == more.tokens


def test_what_is_measured_in_between_writes_over_nothing_that_is_kept(engine: Engine) -> None:
    random = Random(7)
    prompt = ids(random, 130)
    first = submit(engine, prompt, 8)
    ended(first)
    engine.use(lambda model: pass_costs(model, 0, (1, 2), repeats=1))
    engine.use(lambda model: model.scheduler.cache.check())
    turn = [*prompt, *first.tokens, 8, 9]
    again, cold = submit(engine, turn, 15), submit(engine, turn, 15, prefix_cache=False)
    assert ended(again).reused_tokens >= 137 and ended(cold).reused_tokens == 0
    assert again.tokens == cold.tokens
