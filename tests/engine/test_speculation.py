"""Speculation end to end: the text never changes, whatever is guessed, asked for, and running beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.cli import main
from engine.config import EngineConfig, Precision, SamplingParams, Spec
from engine.draft.ngram import NgramDrafter
from engine.draft.policy import Policy
from engine.engine import Engine
from engine.ops.base import Rows
from engine.types import (
    Draft,
    Finished,
    Format,
    Request,
    Sequence,
    Started,
    Switch,
    Switched,
    TextDelta,
    TokenLogprob,
    Verified,
)
from tests.engine.engines import ids, started, submit
from tests.engine.listener import Listener
from tests.engine.oracle import ARCHITECTURES, model_path

CONFIG = EngineConfig(threads=2, precision=Precision.FAST, max_ctx=512, prefill_chunk=64)
TRICKY = (
    {},
    {"repetition_penalty": 1.3, "frequency_penalty": 0.2, "presence_penalty": 0.4},
    {"logit_bias": {17: 4.0, 400: -100.0}},
    {"penalty_last_n": 8, "repetition_penalty": 0.6},
    {"stop": ("e", "zq")},
    {"temperature": 0.9, "top_k": 20, "seed": 5},
    {"temperature": 1.3, "top_p": 0.8, "min_p": 0.02, "seed": 6},
    {"ignore_eos": False},
)


def loaded(architecture: str, **changes: object) -> Engine:
    return started(model_path(architecture), replace(CONFIG, **changes))  # type: ignore[arg-type]


def repeating(n: int, seed: int) -> list[int]:
    """A prompt whose parts come again, as in code and lists."""
    rng = np.random.default_rng(seed)
    part = rng.integers(3, 500, 7).tolist()
    return [t for _ in range(n // 9 + 1) for t in (*part, *rng.integers(3, 500, 2).tolist())][:n]


def sampling(number: int, n: int = 24) -> SamplingParams:
    values = {"temperature": 0, "max_tokens": n, "ignore_eos": True, **TRICKY[number % len(TRICKY)]}
    return SamplingParams(**values)  # type: ignore[arg-type]


def texts(engine: Engine, prompts: list[list[int]], n: int = 24) -> list[tuple[list[int], str]]:
    """Tokens and text of many prompts, all at once; every one has another kind of sampling."""
    listeners = [submit(engine, p, sampling(i, n)) for i, p in enumerate(prompts)]
    for listener in listeners:
        assert isinstance(listener.end(), Finished), listener.end()
    return [(listener.tokens, listener.text) for listener in listeners]


def judged(listener: Listener) -> list[tuple[int, int]]:
    return [(e.drafted, e.accepted) for e in listener.events if isinstance(e, Verified)]


class Babbler:
    """A drafter that guesses right, wrong, and in trees, by what it knows of the truth."""

    name = "babbler"
    needs: tuple[int, ...] = (0, 4)
    depth = 8
    branches = True
    reach = 0
    paged = None

    def __init__(self, truth: dict[int, list[int]]) -> None:
        self.truth = truth
        self.seen: dict[int, int] = {}
        self.released: list[int] = []

    def propose(self, sequence: Sequence, depth: int, nodes: int) -> Draft:
        assert self.seen[sequence.request_id] == len(sequence.tokens) - 1
        rng = np.random.default_rng(len(sequence.tokens) + 1000 * sequence.request_id)
        known = self.truth.get(sequence.request_id, [])
        ahead = known[len(sequence.tokens) :][:depth]
        tokens: list[int] = []
        parents: list[int] = []
        spine = -1
        for token in ahead:
            for _ in range(int(rng.integers(0, 3))):  # siblings, and children of siblings
                if len(tokens) < nodes - 1:
                    tokens.append((token + 1 + len(tokens)) % 500)
                    parents.append(
                        spine if rng.random() < 0.6 or not tokens[:-1] else len(tokens) - 2
                    )
            if len(tokens) >= nodes or rng.random() < 0.1:
                break
            tokens.append(token if rng.random() < 0.8 else (token + 1) % 500)
            parents.append(spine)
            spine = len(tokens) - 1
        taken: set[tuple[int, int]] = set()
        for i, pair in enumerate(zip(parents, tokens, strict=True)):
            while pair in taken:
                tokens[i] = (tokens[i] + 3) % 500
                pair = (parents[i], tokens[i])
            taken.add(pair)
        return Draft(tuple(tokens), tuple(parents))

    def observe(self, sequence: Sequence, start: int, n: int, hidden: Rows | None) -> None:
        assert hidden is not None and np.isfinite(np.asarray(hidden)).all() and len(hidden) == n
        if sequence.request_id in self.seen:
            assert start in (self.seen[sequence.request_id], 0) or start % 64 == 0
        self.seen[sequence.request_id] = start + n

    def release(self, sequence: Sequence) -> None:
        self.seen.pop(sequence.request_id, None)
        self.released.append(sequence.request_id)

    def memory(self) -> int:
        return 0

    def close(self) -> None: ...


class Early(Babbler):
    """One that begins before the tokens are there."""

    def __init__(self, truth: dict[int, list[int]]) -> None:
        super().__init__(truth)
        self.begun: dict[int, tuple[int, int]] = {}
        self.asked = self.foreseen = 0

    def begin(self, sequence: Sequence, place: int, token: int) -> None:
        assert self.seen[sequence.request_id] == place >= len(sequence.tokens)
        self.begun[sequence.request_id] = place, token

    def propose(self, sequence: Sequence, depth: int, nodes: int) -> Draft:
        begun = self.begun.pop(sequence.request_id, None)
        self.asked += 1
        self.foreseen += begun == (len(sequence.tokens) - 1, sequence.tokens[-1])
        return super().propose(sequence, depth, nodes)


@pytest.fixture(params=ARCHITECTURES)
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Engine, Engine]]:
    """The same model without and with drafts."""
    plain, guessing = loaded(request.param, spec=Spec.OFF), loaded(request.param, spec=Spec.CHAIN)
    yield plain, guessing
    assert plain.close() and guessing.close()


def test_prompt_lookup_never_changes_a_text(pair: tuple[Engine, Engine]) -> None:
    plain, guessing = pair
    for block in range(5):
        prompts = [
            (repeating if i % 2 else ids)(12 + 17 * i, seed=100 * block + i) for i in range(10)
        ]
        assert texts(guessing, prompts) == texts(plain, prompts)
    metrics = guessing.metrics().speculation
    assert metrics is not None and metrics.drafter == "ngram"
    assert metrics.drafted_total > 0
    assert plain.metrics().speculation is None


def with_babbler(  # type: ignore[no-untyped-def]
    monkeypatch: pytest.MonkeyPatch,
    architecture: str,
    kind: type[Babbler] = Babbler,
    **changes: object,
):
    babbler = kind({})
    monkeypatch.setattr("engine.draft.choosing.open_drafter", lambda *_: babbler)
    return loaded(architecture, **{"spec": Spec.TREE, "budget": 14, **changes}), babbler


@pytest.mark.parametrize("kind", [Babbler, Early])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_trees_never_change_a_text(
    architecture: str, kind: type[Babbler], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = loaded(architecture, spec=Spec.OFF)
    guessing, babbler = with_babbler(monkeypatch, architecture, kind)
    prompts = [ids(12 + 17 * i, seed=i) for i in range(8)]
    truth = texts(plain, prompts, 70)
    for i, prompt in enumerate(prompts):
        babbler.truth[i + 1] = prompt + truth[i][0]
    assert texts(guessing, prompts, 70) == truth
    metrics = guessing.metrics().speculation
    assert metrics is not None and metrics.acceptance_length is not None
    assert metrics.state == "on" and metrics.acceptance_length > 1.5
    assert sorted(babbler.released) == list(range(1, 9))
    if isinstance(babbler, Early):  # what it began is what it is asked for
        assert babbler.foreseen == babbler.asked > 50
    assert plain.close() and guessing.close()


@pytest.mark.parametrize("architecture", ["llama", "qwen35"])
def test_the_next_turn_goes_on_where_drafts_ended(
    architecture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = loaded(architecture, spec=Spec.OFF)
    guessing, babbler = with_babbler(monkeypatch, architecture)
    first = ids(150, seed=1)
    how = sampling(0, 60)
    answer = submit(plain, first, how)
    answer.end()
    babbler.truth[1] = first + answer.tokens
    second = first + answer.tokens + ids(30, seed=2)
    for engine in (plain, guessing):
        again = submit(engine, first, how)
        assert isinstance(again.end(), Finished)
        assert again.tokens == answer.tokens
    rest = [submit(engine, second, how) for engine in (plain, guessing)]
    assert all(isinstance(listener.end(), Finished) for listener in rest)
    assert rest[0].tokens == rest[1].tokens
    for listener in rest:
        started = next(e for e in listener.events if isinstance(e, Started))
        # The last token is computed where it was guessed.
        assert started.reused_tokens in (209, 210)
    assert plain.close() and guessing.close()


def test_events_tell_what_was_drafted(monkeypatch: pytest.MonkeyPatch) -> None:
    guessing, _ = with_babbler(monkeypatch, "llama", spec=Spec.CHAIN)
    prompt = repeating(60, seed=3)
    listener = submit(guessing, prompt, sampling(0, 40))
    end = listener.end()
    assert isinstance(end, Finished)
    found = judged(listener)
    assert end.usage.drafted_tokens == sum(d for d, _ in found)
    assert end.usage.accepted_tokens == sum(a for _, a in found)
    assert end.usage.completion_tokens == 40 == len(listener.tokens)
    assert guessing.close()


def test_a_failing_drafter_only_costs_its_drafts(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = loaded("llama", spec=Spec.OFF)
    guessing = loaded("llama", spec=Spec.CHAIN)
    calls = []

    def fail(*args: object) -> Draft:
        calls.append(args)
        raise RuntimeError("out of order")

    monkeypatch.setattr(NgramDrafter, "propose", fail)
    prompts = [repeating(40, seed=4)]
    assert texts(guessing, prompts) == texts(plain, prompts)
    metrics = guessing.metrics().speculation
    assert len(calls) == 1 and metrics is not None
    assert metrics.state == "failed" and "out of order" in metrics.problem
    assert plain.close() and guessing.close()


def test_a_pause_is_told_while_the_answer_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    paused = Switch("paused", 0.904, 64)
    switches = iter([None, paused])
    monkeypatch.setattr(Policy, "saw", lambda *_: next(switches, None))
    guessing = loaded("llama", spec=Spec.CHAIN)
    listener = submit(guessing, repeating(60, seed=8), sampling(0, 60))
    end = listener.end()
    assert isinstance(end, Finished) and end.usage.switches == (paused,)
    told = [e.switch for e in listener.events if isinstance(e, Switched)]
    assert told == [paused] and paused.text == "Speculation paused: measured 0.90x over 64 steps."
    assert listener.events.index(next(e for e in listener.events if isinstance(e, Switched))) > 3
    metrics = guessing.metrics().speculation
    assert metrics is not None and (metrics.pauses_total, metrics.switch) == (1, paused)
    assert guessing.close()


@pytest.mark.parametrize(
    "form",
    [
        Format("regex", r"([a-f]{2}-){3,30}[0-9]+"),
        Format("json_schema", {"type": "array", "items": {"enum": ["ab", "abc"]}, "minItems": 9}),
    ],
    ids=lambda form: form.kind,
)
@pytest.mark.parametrize("guesser", ["ngram", "babbler"])
def test_a_form_and_log_probabilities_are_the_same_with_drafts(
    form: Format, guesser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = loaded("llama", spec=Spec.OFF)
    if guesser == "babbler":
        guessing, babbler = with_babbler(monkeypatch, "llama")
    else:
        guessing, babbler = loaded("llama", spec=Spec.CHAIN), Babbler({})

    def ask(engine: Engine, how: SamplingParams) -> Listener:
        listener = Listener()
        engine.submit(Request(ids=ids(40, 1), sampling=how, format=form, logprobs=3), listener)
        assert isinstance(listener.end(), Finished), listener.end()
        return listener

    for number, temperature in enumerate((0.0, 1.0), 1):
        how = SamplingParams(temperature=temperature, max_tokens=60, seed=3)
        want = ask(plain, how)
        babbler.truth[number] = ids(40, 1) + want.tokens
        got = ask(guessing, how)
        assert (got.tokens, got.text) == (want.tokens, want.text)
        assert logprobs(got) == logprobs(want)
    metrics = guessing.metrics().speculation
    assert metrics is not None and metrics.accepted_total >= 5
    assert plain.close() and guessing.close()


def logprobs(listener: Listener) -> list[TokenLogprob]:
    return [one for e in listener.events if isinstance(e, TextDelta) for one in e.logprobs]


def test_the_command_line_tells_what_drafts_were_worth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ids.json"
    file.write_text(json.dumps(repeating(60, seed=8)))
    found = {}
    for spec in ("off", "chain"):
        how = f"--temperature 0 --max-tokens 60 --ignore-eos --json --spec {spec} --budget 4"
        model = ["generate", str(model_path("llama")), "--ids", str(file)]
        code = main([*model, *how.split(), "--threads", "2", "--max-ctx", "256"])
        assert code == 0
        found[spec] = json.loads(capsys.readouterr().out)
    off, chain = found["off"], found["chain"]
    assert chain["tokens"] == chain["ids"] == off["tokens"]
    assert chain["text"] == off["text"]
    assert (off["drafter"], off["steps"], off["acceptance_length"], off["speedup"]) == (
        None, [], None, None,
    )  # fmt: skip
    assert off["speculation"] == []
    assert chain["drafter"] == "ngram" and chain["speedup"] > 0
    assert all(0 <= s["accepted"] <= s["drafted"] <= 4 for s in chain["steps"])
    accepted = [s["accepted"] for s in chain["steps"]]
    assert chain["acceptance_length"] == pytest.approx(1 + np.mean(accepted))
    # Every pass gives what was accepted and one more token; those without drafts one.
    assert sum(accepted) + len(accepted) <= 60
