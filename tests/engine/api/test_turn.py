"""Turns over HTTP with a scripted engine: routing, leaving, waiting, slow readers, tools and thinking."""

from __future__ import annotations

import itertools
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest

from engine.api import channel, turn, wire
from engine.api.served import Served
from engine.api.server import Server
from engine.config import ServerConfig
from engine.errors import NoModel
from engine.pieces import Content, Piece, Reasoning
from engine.types import (
    Event,
    Failed,
    Finished,
    OnEvent,
    Request,
    Started,
    TextDelta,
    TokenLogprob,
    Usage,
)
from tests.engine.api.scripted import PROMPT_TOKENS, TOOL, ScriptedEngine, says, slowly

CHAT = "/v1/chat/completions"
HELLO: dict[str, Any] = {"messages": [{"role": "user", "content": "hello"}]}
Start = Callable[..., Server]


def forever(request: Request) -> Iterator[str]:
    for n in itertools.count():
        time.sleep(0.001)
        yield f"{n} "


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers over engines, by name; they are stopped in the end."""
    servers: list[Server] = []

    def go(config: ServerConfig | None = None, **engines: ScriptedEngine) -> Server:
        served = [Served(engine, name) for name, engine in engines.items()]
        servers.append(Server(config or ServerConfig(port=0), served))
        servers[-1].start()
        return servers[-1]

    yield go
    for server in servers:
        assert server.stop()


def post(server: Server, path: str = CHAT, **body: Any) -> httpx.Response:
    with httpx.Client(base_url=server.url, timeout=30, trust_env=False) as client:
        return client.post(path, json=body)


def until(holds: Callable[[], bool], seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def chunks(answer: httpx.Response) -> list[Any]:
    lines = [x[6:] for x in answer.text.splitlines() if x.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


def opened(server: Server, **body: Any) -> socket.socket:
    """A connection that has sent a request and has read nothing."""
    data = json.dumps({**HELLO, **body}).encode()
    head = (
        f"POST {CHAT} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
    connection.sendall(head.encode() + data)
    return connection


def test_models_are_chosen_by_name_and_the_answer_names_its_writer(start: Start) -> None:
    server = start(a=ScriptedEngine(says("I am a")), b=ScriptedEngine(says("I am b")))
    for name in ("a", "b"):
        answer = post(server, model=name, **HELLO).json()
        assert answer["model"] == name
        assert answer["choices"][0]["message"]["content"] == f"I am {name}"
    error = post(server, model="gpt-5", **HELLO)
    assert error.status_code == 404
    assert error.json()["error"]["code"] == "model_not_found"
    assert "a, b" in error.json()["error"]["message"]


def test_one_model_answers_to_any_name_unless_told_otherwise(start: Start) -> None:
    assert post(start(a=ScriptedEngine(says("x"))), model="gpt-5", **HELLO).json()["model"] == "a"
    strict = ServerConfig(port=0, unknown_model="refuse")
    server = start(strict, a=ScriptedEngine(says("x")))
    assert post(server, model="gpt-5", **HELLO).status_code == 404
    assert post(server, model="auto", **HELLO).status_code == 200


def test_the_load_is_shared_and_the_queue_is_bounded(start: Start) -> None:
    engines = {name: ScriptedEngine(says("x"), max_concurrency=1) for name in "ab"}
    for engine in engines.values():
        engine.hold.set()
    config = ServerConfig(port=0, load_balancing=True, routing_queue_limit=1)
    server = start(config, **engines)
    answers: list[httpx.Response] = []

    def ask() -> None:
        answers.append(post(server, model="whatever", **HELLO))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for i, thread in enumerate(threads):
        thread.start()
        until(lambda i=i: sum(len(e.requests) for e in engines.values()) == min(i + 1, 2))  # type: ignore[misc]
    until(lambda: server.models.waiting == 1)
    refused = post(server, **HELLO)
    assert refused.status_code == 503 and int(refused.headers["retry-after"]) > 0
    for engine in engines.values():
        engine.hold.clear()
    for thread in threads:
        thread.join()
    assert [answer.status_code for answer in answers] == [200] * 3
    assert {answer.json()["model"] for answer in answers} == {"a", "b"}
    assert all(one.in_flight == 0 for one in server.models.all)


def test_one_models_own_queue_is_bounded_too(start: Start) -> None:
    engine = ScriptedEngine(says("x"), max_concurrency=1)
    engine.hold.set()
    server = start(ServerConfig(port=0, routing_queue_limit=1), a=engine)
    held = [opened(server, stream=True) for _ in range(2)]
    until(lambda: len(engine.requests) == 2)
    assert post(server, **HELLO).status_code == 503
    for connection in held:
        connection.close()
    until(lambda: server.models.all[0].in_flight == 0)
    engine.hold.clear()
    assert post(server, **HELLO).status_code == 200


@pytest.mark.parametrize("stream", [False, True])
def test_work_stops_when_the_client_leaves(start: Start, stream: bool) -> None:
    engine = ScriptedEngine(forever)
    server = start(a=engine)
    connection = opened(server, stream=stream)
    if stream:
        assert connection.recv(1000)
    until(lambda: len(engine.requests) == 1)
    until(lambda: bool(server.requests()) and server.requests()[0].prompt_tokens == PROMPT_TOKENS)
    assert (server.requests()[0].path, server.requests()[0].model) == (CHAT, "a")
    said = str(HELLO["messages"][-1]["content"])
    assert (server.requests()[0].text, server.requests(texts=True)[0].text) == ("", said)
    connection.close()
    until(lambda: engine.cancelled == [1])
    until(lambda: server.models.all[0].in_flight == 0)
    until(lambda: server.requests()[0].ended)
    [ended] = server.requests(texts=True)
    assert (ended.fault, ended.text, ended.prompt_tokens) == ("left", "", PROMPT_TOKENS)


def test_a_client_that_leaves_the_queue_makes_room(start: Start) -> None:
    engines = {name: ScriptedEngine(says("x"), max_concurrency=1) for name in "ab"}
    server = start(ServerConfig(port=0, load_balancing=True), **engines)
    for engine in engines.values():
        engine.hold.set()
    held = [opened(server) for _ in range(3)]
    until(lambda: server.models.waiting == 1)
    held[-1].close()
    until(lambda: server.models.waiting == 0)
    for engine in engines.values():
        engine.hold.clear()
    for connection in held[:2]:
        connection.close()


def test_nothing_to_say_is_said_now_and_then(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "KEEP_ALIVE_S", 0.05)
    engine = ScriptedEngine(says("late"))
    engine.hold.set()
    server = start(a=engine)
    with (
        httpx.Client(base_url=server.url, timeout=30, trust_env=False) as client,
        client.stream("POST", CHAT, json={**HELLO, "stream": True}) as answer,
    ):
        lines = answer.iter_lines()
        for _ in range(3):
            assert ": keep-alive" in lines
        engine.hold.clear()
        assert any('"late"' in line for line in lines)


@pytest.mark.parametrize(("stopping", "told"), [(False, '"late"'), (True, '"stopping"')])
def test_a_stream_that_waits_for_a_model_is_kept_alive_too(
    start: Start, monkeypatch: pytest.MonkeyPatch, stopping: bool, told: str
) -> None:
    monkeypatch.setattr(wire, "KEEP_ALIVE_S", 0.05)
    engines = {name: ScriptedEngine(says("late"), max_concurrency=1) for name in "ab"}
    for engine in engines.values():
        engine.hold.set()
    server = start(ServerConfig(port=0, load_balancing=True), **engines)
    busy = [opened(server) for _ in engines]
    until(lambda: all(one.in_flight == 1 for one in server.models.all))
    with (
        httpx.Client(base_url=server.url, timeout=30, trust_env=False) as client,
        client.stream("POST", CHAT, json={**HELLO, "stream": True}) as answer,
    ):
        assert answer.status_code == 200 and server.models.waiting == 1
        lines = answer.iter_lines()
        for _ in range(2):
            assert ": keep-alive" in lines
        if stopping and server._loop is not None:
            server._loop.call_soon_threadsafe(server.models.close)
        for engine in engines.values():
            engine.hold.clear()
        rest = list(lines)
    assert any(told in line for line in rest) and "data: [DONE]" in rest
    until(lambda: all(one.in_flight == 0 for one in server.models.all))
    for connection in busy:
        connection.close()


def test_a_reader_that_takes_nothing_is_left_and_holds_up_nobody(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "MOST_BYTES", 200_000)
    engine = ScriptedEngine(lambda request: (str(n) * 1000 for n in itertools.count()))
    server = start(a=engine)
    stuck = opened(server, stream=True)
    until(lambda: engine.cancelled == [1])
    engine._reply = says("quick")
    assert post(server, **HELLO).json()["choices"][0]["message"]["content"] == "quick"
    stuck.close()
    until(lambda: server.models.all[0].in_flight == 0)


class Unloads(ScriptedEngine):
    """Its model goes before any request begins."""

    def submit(self, request: Request, on_event: OnEvent) -> int:
        on_event(Failed(1, NoModel("The model was changed."), Usage()))
        return 1

    def cancel(self, request_id: int) -> None:
        """Nothing runs."""


@pytest.mark.parametrize("stream", [True, False])
def test_who_comes_as_the_model_goes_may_come_again(start: Start, stream: bool) -> None:
    answer = post(start(a=Unloads(says("x"))), stream=stream, **HELLO)
    assert answer.status_code == 503 and answer.headers["retry-after"]
    assert answer.json()["error"]["code"] == "no_model"


def test_text_that_waits_for_its_reader_is_joined() -> None:
    def delta(*pieces: Piece) -> TextDelta:
        text = "".join(p.text for p in pieces if isinstance(p, (Content, Reasoning)))
        return TextDelta(1, text, (len(text),), pieces, (TokenLogprob(len(text), b"", 0.0),))

    items: list[tuple[int, Event]] = [
        (0, Started(1, 2, 0)), (0, delta(Reasoning("hm"))), (0, delta(Reasoning("m"))),
        (0, delta(Content("a"))), (0, delta(Content("b"), Content("c"))), (1, delta(Content("other"))),
        (0, delta(Content("d"))), (0, delta(Content("e"))),
    ]  # fmt: skip
    found = turn._joined(items)
    assert [index for index, _ in found] == [0, 0, 1, 0] and found[0] == items[0]
    assert found[2] == items[5]
    assert found[3] == (
        0,
        replace(delta(Content("de")), tokens=(1, 1), logprobs=(TokenLogprob(1, b"", 0.0),) * 2),
    )
    first = found[1][1]
    assert isinstance(first, TextDelta)
    assert (first.text, first.tokens) == ("hmmabc", (2, 1, 1, 2)) and len(first.logprobs) == 4
    assert first.pieces == (Reasoning("hmm"), Content("abc"))


def test_stopping_ends_answers_with_an_error_and_starting_serves_again(start: Start) -> None:
    engine = ScriptedEngine(forever)
    server = start(a=engine)
    seen: list[str] = []
    thread = threading.Thread(target=lambda: seen.append(post(server, stream=True, **HELLO).text))
    thread.start()
    until(lambda: len(engine.requests) == 1)
    assert server.stop()
    thread.join(10)
    assert "The server is stopping" in seen[0]
    engine._reply = says("again")
    server.start()
    assert post(server, **HELLO).status_code == 200


def test_calls_are_streamed_as_they_are_written(start: Start) -> None:
    text = '<tool_call>\n{"name": "look", "arguments": {"where": "here"}}\n</tool_call>'
    pieces = ["I ", "look.\n", *(text[i : i + 5] for i in range(0, len(text), 5))]
    server = start(a=ScriptedEngine(slowly(*pieces)))
    found = chunks(post(server, stream=True, tools=[TOOL], **HELLO))
    deltas = [c["choices"][0]["delta"] for c in found]
    calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert calls[0]["id"] and calls[0]["function"] == {"name": "look", "arguments": ""}
    fragments = [call["function"]["arguments"] for call in calls]
    assert len(fragments) > 3 and json.loads("".join(fragments)) == {"where": "here"}
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"
    assert "".join(d.get("content", "") for d in deltas).strip() == "I look."

    [choice] = post(server, tools=[TOOL], **HELLO).json()["choices"]
    [call] = choice["message"]["tool_calls"]
    assert call["function"]["name"] == "look" and choice["finish_reason"] == "tool_calls"
    assert json.loads(call["function"]["arguments"]) == {"where": "here"}


def test_thinking_is_told_apart(start: Start) -> None:
    server = start(a=ScriptedEngine(says("hm", "m</think>", "\n\nYes"), prompt_end="<think>\n"))
    message = post(server, **HELLO).json()["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("hmm", "Yes")
    deltas = [c["choices"][0]["delta"] for c in chunks(post(server, stream=True, **HELLO))]
    assert "".join(d.get("reasoning_content", "") for d in deltas) == "hmm"
    assert "".join(d.get("content", "") for d in deltas) == "Yes"


@pytest.mark.parametrize(
    ("body", "enabled", "effort", "budget"),
    [
        ({}, False, None, None),
        ({"reasoning_effort": "low"}, True, "low", None),
        ({"reasoning_effort": "none"}, False, None, None),
        ({"reasoning_effort": "xhigh"}, True, "x-high", None),
        ({"reasoning": {"effort": "high"}}, True, "high", None),
        ({"thinking": {"type": "enabled", "budget_tokens": 64}}, True, None, 64),
        ({"thinking": {"type": "disabled"}}, False, None, None),
        ({"chat_template_kwargs": {"enable_thinking": True}}, True, None, None),
        (
            {"chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "max"},
            False,
            None,
            None,
        ),
    ],
)
def test_thinking_is_asked_for_in_many_ways(
    start: Start, body: dict[str, Any], enabled: bool, effort: str | None, budget: int | None
) -> None:
    engine = ScriptedEngine(says("x"))
    assert post(start(a=engine), **HELLO, **body).status_code == 200
    thinking = engine.requests[0].thinking
    assert (thinking.enabled, thinking.effort, thinking.budget) == (enabled, effort, budget)


def test_the_servers_limit_is_the_usual_and_the_most(start: Start) -> None:
    engine = ScriptedEngine(says("x"))
    server = start(ServerConfig(port=0, max_tokens=100), a=engine)
    for given in ({}, {"max_tokens": 500}, {"max_tokens": 7}, {"max_tokens": -1}):
        post(server, **HELLO, **given)
    assert [r.sampling.max_tokens for r in engine.requests] == [100, 100, 7, 100]


@pytest.mark.parametrize(
    ("server", "body", "prefix", "turn", "disk"),
    [
        (True, {}, True, True, None),
        (True, {"prefix_cache": {"scope": "auto:30"}, "session_id": "a"}, True, True, None),
        (True, {"prefix_cache": {"scope": "full"}}, True, True, None),
        (True, {"prefix_cache": {"scope": "off"}}, False, True, None),
        (True, {"prefix_cache": {"scope": "1000"}}, True, True, 1000),
        (True, {"prefix_cache": {"scope": 1_000_000}}, True, True, 1_000_000),
        (True, {"agent_turn_cache": False}, True, False, None),
        (False, {"agent_turn_cache": True}, True, False, None),
    ],
)
def test_what_may_be_kept_of_a_request_reaches_the_engine(
    start: Start, server: bool, body: dict[str, Any], prefix: bool, turn: bool, disk: int | None
) -> None:
    engine = ScriptedEngine(says("x"))
    running = start(ServerConfig(port=0, agent_turn_cache=server), a=engine)
    chat, text = HELLO, {"prompt": "Hello"}
    for path, wanted in (("chat/completions", chat), ("completions", text), ("messages", chat)):
        more = {"max_tokens": 5} if path == "messages" else {}
        sent = httpx.post(f"{running.url}/v1/{path}", json={**wanted, **more, **body}, timeout=30)
        assert sent.status_code == 200, sent.text
    kept = [(r.prefix_cache, r.agent_turn_cache, r.disk_tokens) for r in engine.requests]
    assert kept == [(prefix, turn, disk)] * 3


class Remembers(ScriptedEngine):
    """Says that it goes on from the end of an earlier answer, if it is to."""

    def submit(self, request: Request, on_event: OnEvent) -> int:
        def hear(event: Event) -> None:
            if isinstance(event, Finished) and request.agent_turn_cache:
                event = replace(event, usage=replace(event.usage, reused_answer=True))
            on_event(event)

        return super().submit(request, hear)


@pytest.mark.parametrize("kept", [True, False])
def test_usage_tells_whether_the_state_of_an_answer_was_used(start: Start, kept: bool) -> None:
    answer = post(start(a=Remembers(says("x"))), **HELLO, agent_turn_cache=kept).json()
    assert answer["usage"]["timings"]["agent_turn_cache_hit"] is kept


class Unfinished(ScriptedEngine):
    """Ends itself before its answer has the form that was asked for."""

    def submit(self, request: Request, on_event: OnEvent) -> int:
        def hear(event: Event) -> None:
            on_event(replace(event, form_cut=True) if isinstance(event, Finished) else event)

        return super().submit(request, hear)


def test_an_answer_without_its_form_is_no_answer_that_stopped(start: Start) -> None:
    server = start(a=Unfinished(says("x")))
    form = {"response_format": {"type": "json_object"}}
    assert post(server, **HELLO, **form).json()["choices"][0]["finish_reason"] == "length"
    last = post(server, **HELLO, **form, stream=True).text.split("\n\n")[-3]
    assert '"finish_reason":"length"' in last
