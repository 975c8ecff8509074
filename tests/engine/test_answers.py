"""What the engine's answers must be, end to end on a tiny model that writes at random."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from engine.chat import ChatTemplate
from engine.config import EngineConfig, Precision, SamplingParams, Spec
from engine.engine import Engine
from engine.errors import BadRequest, ContextOverflow, NoModel
from engine.output import Content, Reasoning
from engine.pieces import Piece, merged
from engine.reasoning import Thinking
from engine.types import (
    Failed,
    Finished,
    FinishReason,
    Format,
    Request,
    TextDelta,
    TokenLogprob,
    ToolChoice,
)
from tests.engine.engines import running
from tests.engine.listener import Listener
from tests.engine.oracle import model_path
from tests.engine.test_grammar import SCHEMA, TOOLS
from tests.engine.test_output import calls, content

TEMPLATE = (
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    '{% if tools %}{{ tools | tojson }} <tool_call>{"name"}</tool_call>{% endif %}'
    "{% if add_generation_prompt %}assistant: {% if enable_thinking %}<think>\n"
    "{% else %}<think>\n\n</think>\n\n{% endif %}{% endif %}"
)
HELLO = [{"role": "user", "content": "Hello"}]
WILD = SamplingParams(temperature=1.5, top_p=1.0, top_k=0, min_p=0.0, max_tokens=400)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    template = tmp_path_factory.mktemp("template") / "chat.jinja"
    template.write_text(TEMPLATE)
    config = EngineConfig(
        threads=2, precision=Precision.EXACT, max_ctx=1024, chat_template_file=str(template)
    )
    with running(model_path("llama"), config) as engine:
        yield engine


def answer(engine: Engine, request: Request) -> tuple[list[Piece], Finished, list[TextDelta]]:
    listener = Listener()
    engine.submit(request, listener)
    end = listener.end()
    if isinstance(end, Failed):
        raise end.error
    deltas = [e for e in listener.events if isinstance(e, TextDelta)]
    return merged([p for d in deltas for p in d.pieces]), end, deltas


def seeded(seed: int, **changes: Any) -> SamplingParams:
    return replace(WILD, seed=seed, **changes)


@pytest.mark.parametrize("seed", range(4))
def test_a_random_model_writes_json_of_the_schema(engine: Engine, seed: int) -> None:
    form = Format("json_schema", SCHEMA)
    for request in (
        Request(messages=HELLO, sampling=seeded(seed), format=form),
        Request(text="Once", sampling=seeded(seed, repetition_penalty=1.3), format=form),
    ):
        pieces, end, _ = answer(engine, request)
        assert end.reason is FinishReason.STOP
        assert list(json.loads(content(pieces))) == ["name", "age", "tags", "more"]


def test_forms_beside_free_text_change_neither(engine: Engine) -> None:
    form = Format("regex", "[a-d]{30}")
    requests = [
        Request(messages=HELLO, sampling=seeded(n, max_tokens=40), format=form if n % 2 else None)
        for n in range(4)
    ]
    alone = [content(answer(engine, r)[0]) for r in requests]
    listeners = [Listener() for _ in requests]
    for request, listener in zip(requests, listeners, strict=True):
        engine.submit(request, listener)
    together = [(listener.end(), listener.text)[1].strip("\n") for listener in listeners]
    assert together == [t.strip("\n") for t in alone]
    assert re.fullmatch("[a-d]{30}", alone[1])


def test_a_required_call_is_made(engine: Engine) -> None:
    for parallel in (True, False):
        request = Request(
            messages=HELLO,
            sampling=seeded(3, max_tokens=900, temperature=0.9, top_p=0.8),
            tools=TOOLS,
            tool_choice=ToolChoice("required", ("get_weather",)),
            parallel_tool_calls=parallel,
        )
        pieces, end, _ = answer(engine, request)
        assert content(pieces) == ""
        if end.reason is FinishReason.STOP:
            found = calls(pieces)
            assert {name for name, _ in found} == {"get_weather"}
            assert len(found) == 1 or parallel


def test_a_form_waits_for_the_end_of_thinking(engine: Engine) -> None:
    request = Request(
        messages=HELLO,
        sampling=seeded(5),
        format=Format("json_schema", SCHEMA),
        thinking=Thinking(budget=20),
    )
    pieces, end, deltas = answer(engine, request)
    assert isinstance(pieces[0], Reasoning)
    assert json.loads(content(pieces))
    assert end.thinking_cut
    assert 20 <= end.usage.reasoning_tokens <= 20 + len("</think>")
    assert "</think>" in "".join(d.text for d in deltas)


@pytest.mark.parametrize("tools", [[], TOOLS])
def test_an_end_in_the_middle_of_thinking_leaves_the_form_out(
    engine: Engine, tools: list[Any]
) -> None:
    form = None if tools else Format("json_schema", SCHEMA)
    assert engine.tokenizer is not None
    ends = dict.fromkeys(engine.tokenizer.eos_ids, 100.0)
    request = Request(
        messages=HELLO,
        sampling=seeded(1, logit_bias=ends),
        format=form,
        tools=tools,
        tool_choice=ToolChoice("required" if tools else "auto"),
        thinking=Thinking(True),
    )
    _, end, _ = answer(engine, request)
    assert (end.reason, end.form_cut) == (FinishReason.STOP, True)
    _, end, _ = answer(engine, replace(request, format=None, tools=None, tool_choice=ToolChoice()))
    assert (end.reason, end.form_cut) == (FinishReason.STOP, False)


def test_thinking_is_content_for_nobody(engine: Engine) -> None:
    request = Request(
        messages=HELLO, sampling=seeded(1, max_tokens=30, ignore_eos=True), thinking=Thinking(True)
    )
    pieces, end, _ = answer(engine, request)
    assert [type(p) for p in pieces] == [Reasoning]
    assert end.usage.reasoning_tokens == end.usage.completion_tokens == 30
    off, end, _ = answer(engine, replace(request, thinking=Thinking(False)))
    assert {type(p) for p in off} == {Content}
    assert end.usage.reasoning_tokens == 0


def test_log_probabilities_are_of_the_raw_distribution(engine: Engine) -> None:
    def told(**changes: Any) -> list[TokenLogprob]:
        sampling = SamplingParams(temperature=0, max_tokens=6, ignore_eos=True)
        request = Request(text="Hello", sampling=replace(sampling, **changes), logprobs=5)
        deltas = answer(engine, request)[2]
        return [one for d in deltas for one in d.logprobs]

    greedy = told()
    assert len(greedy) == 6
    for one in greedy:
        values = [t.logprob for t in one.top]
        assert values == sorted(values, reverse=True)
        assert one.token == one.top[0].token
        assert one.logprob == values[0] <= 0
    banned = told(logit_bias={greedy[0].token: -100.0})
    # The bias changes what is chosen and not what is told.
    assert banned[0].top == greedy[0].top
    assert banned[0].token == greedy[0].top[1].token
    assert banned[0].logprob == greedy[0].top[1].logprob


def test_no_logprobs_unless_asked_and_none_beside_the_token(engine: Engine) -> None:
    base = Request(text="Hello", sampling=SamplingParams(temperature=0, max_tokens=3))
    assert not [one for d in answer(engine, base)[2] for one in d.logprobs]
    zero = answer(engine, replace(base, logprobs=0))[2]
    assert [one.top for d in zero for one in d.logprobs] == [()] * 3


def test_a_loop_is_cut_and_told(engine: Engine) -> None:
    sampling = SamplingParams(temperature=0, max_tokens=900)
    bias = SamplingParams(temperature=0, max_tokens=900, logit_bias={65: 100.0})
    end = answer(engine, Request(text="Hello", sampling=bias))[1]
    assert (end.reason, end.loop) == (FinishReason.LENGTH, True)
    assert 600 <= end.usage.completion_tokens <= 700
    kept = replace(bias, ignore_eos=True, max_tokens=800)
    end = answer(engine, Request(text="Hello", sampling=kept))[1]
    assert (end.loop, end.usage.completion_tokens) == (False, 800)
    assert sampling.max_tokens == 900


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"format": Format("json_schema", {"type": "strin"})}, "strin"),
        ({"tool_choice": ToolChoice("required")}, "has no tools"),
        ({"tools": TOOLS, "tool_choice": ToolChoice("auto", ("other",))}, "'other'"),
        ({"tools": TOOLS, "tool_choice": ToolChoice("perhaps")}, "'perhaps'"),
        ({"logprobs": 1000}, "1000"),
        (
            {"format": Format("json_object"), "sampling": SamplingParams(ignore_eos=True)},
            "ignore_eos",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(
    engine: Engine, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadRequest, match=words):
        answer(engine, replace(Request(messages=HELLO, sampling=WILD), **changes))


def test_a_large_schema_holds_up_nobody(engine: Engine) -> None:
    schema = {"enum": [f"{i:0>12}" for i in range(9000)]}
    slow, quick = Listener(), Listener()
    engine.submit(Request(messages=HELLO, format=Format("json_schema", schema)), slow)
    engine.submit(Request(messages=HELLO, sampling=replace(WILD, max_tokens=1)), quick)
    first: list[str] = []

    def wait(listener: Listener, name: str) -> None:
        listener.end()
        first.append(name)

    waits = [
        threading.Thread(target=wait, args=(slow, "slow")),
        threading.Thread(target=wait, args=(quick, "quick")),
    ]
    for thread in waits:
        thread.start()
    for thread in waits:
        thread.join(60)
    assert first == ["quick", "slow"]


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_guessed_tokens_keep_to_the_form_and_their_log_probabilities(temperature: float) -> None:
    found = {}
    for spec in (Spec.OFF, Spec.CHAIN):
        config = EngineConfig(threads=2, precision=Precision.EXACT, max_ctx=512, spec=spec)
        request = Request(
            text="ab cd ab cd ab cd",
            sampling=SamplingParams(temperature=temperature, seed=7, max_tokens=200),
            format=Format("regex", "( ab cd){12}!"),
            logprobs=2,
        )
        with running(model_path("llama"), config) as engine:
            pieces, end, deltas = answer(engine, request)
        told = [one for d in deltas for one in d.logprobs]
        assert content(pieces) == " ab cd" * 12 + "!"
        assert b"".join(one.data for one in told).decode() == content(pieces)
        found[spec] = [(o.token, o.top[0].token) for o in told], end.usage.accepted_tokens
    if temperature == 0:
        assert found[Spec.OFF][0] == found[Spec.CHAIN][0]
    assert found[Spec.CHAIN][1] > 0


def test_a_giant_is_refused_before_it_is_encoded(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = engine.tokenizer
    assert tokenizer is not None
    n = 1024 * tokenizer.longest

    def failure(**given: Any) -> Exception:
        listener = Listener()
        engine.submit(Request(**given), listener)
        end = listener.end()
        assert isinstance(end, Failed)
        return end.error

    with monkeypatch.context() as patched:
        patched.delattr(type(tokenizer), "encode")
        for content in ("a" * n, [{"type": "text", "text": "a" * (n // 2)}] * 2):
            error = failure(messages=[{"role": "user", "content": content}])
            assert isinstance(error, ContextOverflow)
            assert (error.prompt_tokens, error.max_ctx) == (1024, 1024)
        assert isinstance(failure(text="a" * n), ContextOverflow)
    # One that may fit is encoded and counted.
    error = failure(text="a" * (n - 1024))
    assert isinstance(error, ContextOverflow) and error.prompt_tokens > 1024


def test_a_request_whose_model_goes_before_it_begins_may_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    release, listener, engine = threading.Event(), Listener(), Engine()
    engine.start()
    engine.load(model_path("llama"), EngineConfig(threads=1, max_ctx=256))
    monkeypatch.setattr(ChatTemplate, "encode", lambda *_, **__: release.wait(30) and [1, 2])
    engine.submit(Request(messages=HELLO), listener)
    engine.unload()
    release.set()
    end = listener.end()
    assert isinstance(end, Failed) and isinstance(end.error, NoModel)
    assert engine.close()
