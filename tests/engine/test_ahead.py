"""Steps that are launched before the tokens of those before them are known: nothing of the text changes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import engine.engine as engine_module
from engine.config import EngineConfig, Precision, SamplingParams, Spec
from engine.engine import Engine
from engine.errors import BadRequest, NumericError, OutOfMemory
from engine.prepare import Prepared
from engine.steering import only
from engine.types import Event, Failed, Finished, FinishReason, Request, Started, TextDelta
from tests.engine.ahead_ops import AheadOps, ahead, go_ahead
from tests.engine.engines import generate, greedy, ids, running, started
from tests.engine.listener import Listener
from tests.engine.oracle import model_path

__all__ = ["ahead"]

MODELS = ("llama", "qwen35")
CONFIG = EngineConfig(
    device="cpu", threads=1, precision=Precision.EXACT, max_ctx=256, prefill_chunk=64,
    max_concurrency=3, spec=Spec.OFF,
)  # fmt: skip


@pytest.fixture(params=MODELS)
def engine(request: pytest.FixtureRequest, ahead: type[AheadOps]) -> Iterator[Engine]:
    with running(model_path(request.param), CONFIG) as engine:
        yield engine


def reused(listener: Listener) -> int:
    return next(e.reused_tokens for e in listener.events if isinstance(e, Started))


def check(engine: Engine) -> None:
    """The pages and states of an idle engine are sound, and nobody holds any."""

    def look(model: object) -> None:
        scheduler = model.scheduler  # type: ignore[attr-defined]
        scheduler.cache.check()
        assert not scheduler.running and scheduler.pool.n_used == 0

    engine.use(look)


@dataclass(frozen=True)
class Job:
    request: Request
    cancel_after: int | None
    wait: int  # tokens of the one before that it waits for


def jobs(seed: int) -> list[Job]:
    """Requests that share beginnings, end in all ways, and come and go while others are written."""
    rng = random.Random(seed)
    roots = [ids(90, seed=s) for s in range(2)]
    found = []
    for i in range(8):
        prompt = roots[rng.randrange(2)][: rng.choice((20, 64, 70, 90))] + ids(
            rng.randrange(1, 40), seed=i
        )
        sampling = greedy(rng.choice((1, 2, 3, 20, 60, 120)))
        kind = rng.randrange(12)
        if kind in (0, 5, 6):
            sampling = replace(
                sampling, temperature=0.9, seed=i, top_k=rng.choice((0, 20, 20, 200))
            )
        if kind in (1, 5, 7):
            sampling = replace(
                sampling, presence_penalty=0.5, frequency_penalty=0.2, repetition_penalty=1.2,
                penalty_last_n=rng.choice((-1, 1, 5)), logit_bias=dict.fromkeys(range(100, 200), -2.0),
            )  # fmt: skip
        if kind in (2, 3):
            sampling = replace(sampling, stop=(rng.choice("aeiost"),))
        request = Request(
            ids=prompt, sampling=sampling, logprobs=1 if kind == 4 else None,
            prefix_cache=rng.random() < 0.8, agent_turn_cache=rng.random() < 0.8,
        )  # fmt: skip
        cancel = rng.randrange(1, 25) if rng.random() < 0.25 else None
        found.append(Job(request, cancel, rng.randrange(12)))
    return found


def play(engine: Engine, work: list[Job]) -> list[list[int]]:
    """All of it at once; the tokens of each, up to where it was cancelled."""
    listeners: list[Listener] = []
    ends = []
    numbers = []
    for job in work:
        if listeners:
            before = listeners[-1]
            while len(before.tokens) < job.wait and not isinstance(
                (before.events or [None])[-1], (Finished, Failed)
            ):
                before.next()
        listeners.append(Listener())
        numbers.append(engine.submit(job.request, listeners[-1]))
    for job, listener, number in zip(work, listeners, numbers, strict=True):
        while not isinstance((listener.events or [None])[-1], (Finished, Failed)):
            listener.next()
            if job.cancel_after is not None and len(listener.tokens) >= job.cancel_after:
                engine.cancel(number)
        ends.append(listener.events[-1])
    for job, end in zip(work, ends, strict=True):
        assert isinstance(end, Finished)
        assert job.cancel_after is not None or end.reason is not FinishReason.CANCELLED
    return [listener.tokens for listener in listeners]


@pytest.mark.parametrize("architecture", MODELS)
@pytest.mark.parametrize("spec", (Spec.OFF, Spec.CHAIN))
def test_whatever_comes_and_goes_the_texts_are_the_same(
    architecture: str, spec: Spec, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = started(model_path(architecture), CONFIG)
    works = [jobs(seed) for seed in range(3)]
    texts = [[generate_of(plain, job.request) for job in work] for work in works]
    assert plain.close()
    go_ahead(monkeypatch)
    engine = started(model_path(architecture), replace(CONFIG, spec=spec))
    for work, expected in zip(works, texts, strict=True):
        for job, got, want in zip(work, play(engine, work), expected, strict=True):
            cut = len(got) if job.cancel_after is not None else len(want)
            assert got == want[:cut] and (
                job.cancel_after is None or cut >= min(job.cancel_after, len(want))
            )
        check(engine)
    assert AheadOps.ahead > 20
    assert engine.close()


def generate_of(engine: Engine, request: Request) -> list[int]:
    listener = Listener()
    engine.submit(request, listener)
    assert isinstance(listener.end(), Finished)
    return listener.tokens


class Steered:
    """Lets only some tokens come now and then; which it is depends on the last token."""

    thinking_cut, whole = False, True

    def __init__(self) -> None:
        self.last, self.n = 0, 0

    @property
    def is_free(self) -> bool:
        return (self.last + self.n) % 4 > 0

    def mask(self) -> NDArray[np.float32] | None:
        return None if self.is_free else only(512, range(self.last % 7, 512, 7))

    def chose(self, token: int) -> None:
        self.last, self.n = token, self.n + 1


@pytest.mark.parametrize("architecture", MODELS)
@pytest.mark.parametrize("params", [greedy(120), greedy(120, temperature=0.9, seed=3)])
def test_what_steers_an_answer_is_heeded_at_once(
    architecture: str, params: SamplingParams, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = ids(20, seed=1)
    monkeypatch.setattr(
        engine_module,
        "prepared",
        lambda *_: Prepared(list(prompt), "", steering=Steered()),  # type: ignore[arg-type]
    )
    texts = []
    for go in (lambda patch: None, go_ahead):
        go(monkeypatch)
        engine = started(model_path(architecture), CONFIG)
        texts.append(generate(engine, prompt, params).tokens)
        assert engine.close()
    assert texts[0] == texts[1] and AheadOps.ahead > 40


def test_a_single_answer_is_ahead_nearly_always(engine: Engine) -> None:
    generate(engine, ids(10), greedy(100))
    # 99 steps of one token: the first is planned, and hybrid models stop where a page is full.
    assert AheadOps.ahead >= 94


def test_listeners_hear_while_the_device_computes(
    ahead: type[AheadOps], monkeypatch: pytest.MonkeyPatch
) -> None:
    log: list[str] = []
    for name in ("launch", "collect"):
        monkeypatch.setattr(ahead, name, told(log, name, getattr(ahead, name)))
    engine, listener = started(model_path("llama"), CONFIG), Listener()
    log.clear()

    def listen(event: Event) -> None:
        if isinstance(event, TextDelta) and event.tokens:
            log.append("text")
        listener(event)

    engine.submit(Request(ids=ids(20), sampling=greedy(8)), listen)
    assert isinstance(listener.end(), Finished)
    decoded = ["launch", "text", "collect"] * 6
    assert log == ["launch", "collect", "launch", *decoded, "text", "collect", "text"]
    assert engine.close()


def told(log: list[str], name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that says when it is called."""

    def call(*args: Any) -> Any:
        log.append(name)
        return method(*args)

    return call


def test_an_answers_end_is_known_with_it(engine: Engine) -> None:
    prompt = ids(40, seed=3)
    text = generate(engine, prompt, greedy(60)).tokens
    for n in (23, 24, 30):  # of 64, with and without the end
        end = text[n]
        cut = text[: text.index(end)]
        assert engine.tokenizer is not None
        engine.tokenizer.eos_ids = frozenset({end})  # type: ignore[misc]
        engine.clear_cache()
        assert generate(engine, prompt, greedy(60, ignore_eos=False)).tokens == cut
        more = [*prompt, *cut, end, *ids(7, seed=4)]
        second = generate(engine, more, greedy(40))
        assert reused(second) == len(prompt) + len(cut) + 1
        engine.clear_cache()
        assert generate(engine, more, greedy(40)).tokens == second.tokens
        check(engine)


def test_a_cancelled_answer_is_gone_on_with(engine: Engine) -> None:
    prompt, listener = ids(30, seed=5), Listener()
    number = engine.submit(Request(ids=prompt, sampling=greedy(200)), listener)
    while len(listener.tokens) < 10:
        listener.next()
    engine.cancel(number)
    assert isinstance(listener.end(), Finished)
    check(engine)
    more = [*prompt, *listener.tokens, *ids(5, seed=6)]
    second = generate(engine, more, greedy(40))
    assert reused(second) >= len(prompt) + len(listener.tokens) - 1
    engine.clear_cache()
    assert generate(engine, more, greedy(40)).tokens == second.tokens


def test_other_work_between_steps_changes_nothing(engine: Engine) -> None:
    prompt = ids(20, seed=7)
    want = generate(engine, prompt, greedy(150)).tokens
    engine.clear_cache()
    listener = Listener()
    engine.submit(Request(ids=prompt, sampling=greedy(150)), listener)

    def probe(model: object) -> None:
        ops, pool = model.ops, model.scheduler.pool  # type: ignore[attr-defined]
        (page,) = pool.alloc(1)
        from engine.ops.base import StepInput

        zero = np.zeros(1, np.int32)
        slot = model.scheduler.cache.states.take() if model.scheduler.cache.states else 0  # type: ignore[attr-defined]
        ops.run(StepInput(zero, zero, zero, zero[None] + page, zero, zero + slot))
        pool.release([page])
        if model.scheduler.cache.states:  # type: ignore[attr-defined]
            model.scheduler.cache.states.give(slot)  # type: ignore[attr-defined]

    while len(listener.tokens) < 100:
        listener.next()
        engine.use(probe)
    assert isinstance(listener.end(), Finished) and listener.tokens == want


def test_numeric_failures_fail_their_answer_only(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = [ids(12, seed=8), ids(15, seed=9)]
    want = generate(engine, prompts[1], greedy(60)).tokens
    engine.clear_cache()
    launch, n = AheadOps.launch, [0]

    def failing(self: AheadOps, step):  # type: ignore[no-untyped-def]
        number, found = launch(self, step)
        n[0] += len(found) == 2
        if n[0] == 9 and len(found) == 2:
            found[0] = -1
        return number, found

    monkeypatch.setattr(AheadOps, "launch", failing)
    listeners = [Listener(), Listener()]
    for prompt, listener in zip(prompts, listeners, strict=True):
        engine.submit(Request(ids=prompt, sampling=greedy(60)), listener)
    failed, other = (listener.end() for listener in listeners)
    assert isinstance(failed, Failed) and isinstance(failed.error, NumericError)
    assert isinstance(other, Finished) and listeners[1].tokens == want
    check(engine)


def test_a_launch_that_fails_ends_its_answers_and_the_next_ones_are_served(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = AheadOps.launch
    with monkeypatch.context() as patch:

        def failing(self: AheadOps, step):  # type: ignore[no-untyped-def]
            if (step.tokens < 0).any() and step.positions[0] > 30:
                raise OutOfMemory("The card ran out of memory.")
            return launch(self, step)

        patch.setattr(AheadOps, "launch", failing)
        listener = Listener()
        engine.submit(Request(ids=ids(10), sampling=greedy(60)), listener)
        end = listener.end()
        assert isinstance(end, Failed) and isinstance(end.error, OutOfMemory)
    check(engine)
    assert len(generate(engine, ids(10), greedy(60)).tokens) == 60


def test_unloading_ends_what_is_on_its_way(engine: Engine) -> None:
    listener = Listener()
    engine.submit(Request(ids=ids(10), sampling=greedy(200)), listener)
    while len(listener.tokens) < 20:
        listener.next()
    engine.unload()
    end = listener.end()
    assert isinstance(end, Finished) and end.reason is FinishReason.CANCELLED
    with pytest.raises(BadRequest):
        engine.use(lambda model: None)


@pytest.mark.parametrize("architecture", MODELS)
def test_prompt_lookup_still_guesses_where_the_text_repeats_itself(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(CONFIG, spec=Spec.CHAIN, max_ctx=512)
    prompts = [ids(20, seed=1), ids(7, seed=2) * 12]
    found = []
    for go in (lambda patch: None, go_ahead):
        go(monkeypatch)
        engine = started(model_path(architecture), config)
        texts = [generate(engine, prompt, greedy(300)).tokens for prompt in prompts]
        metrics = engine.metrics().speculation
        assert metrics is not None
        found.append((texts, metrics.drafted_total, metrics.accepted_total))
        assert engine.close()
    (want, _, usual), (got, drafted, accepted) = found
    assert got == want and drafted > 0 and accepted >= usual // 2
    assert AheadOps.ahead > 20
