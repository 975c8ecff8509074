"""The official `openai` SDK, and `litellm`, against a live server."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from engine.api.served import Served
from engine.api.server import Server
from engine.config import ServerConfig
from tests.engine.api.scripted import TOOL, ScriptedEngine, says, slowly

HELLO: Any = [{"role": "user", "content": "hello"}]
CALL = '<tool_call>\n{"name": "look", "arguments": {"where": "here"}}\n</tool_call>'


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
def sdk(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture
def scripted() -> Iterator[tuple[ScriptedEngine, openai.OpenAI]]:
    """An engine whose answers a test decides, and a client of it."""
    engine = ScriptedEngine(says("x"))
    server = Server(ServerConfig(port=0), [Served(engine, "scripted")])
    server.start()
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        yield engine, client
    server.stop()


def test_a_chat_and_its_stream(sdk: openai.OpenAI) -> None:
    ask: Any = {"model": "tiny", "messages": HELLO, "temperature": 0, "max_tokens": 8}
    whole = sdk.chat.completions.create(**ask)
    text = whole.choices[0].message.content
    assert text and whole.usage and whole.usage.completion_tokens == 8
    stream = sdk.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True})
    found = list(stream)
    assert "".join(c.choices[0].delta.content or "" for c in found if c.choices) == text
    assert found[-1].usage and found[-1].usage.completion_tokens == 8


def test_log_probabilities_join_to_the_text(sdk: openai.OpenAI) -> None:
    answer = sdk.chat.completions.create(
        model="tiny", messages=HELLO, temperature=0, max_tokens=8, logprobs=True, top_logprobs=3
    )
    [choice] = answer.choices
    assert choice.logprobs and choice.logprobs.content
    joined = b"".join(bytes(row.bytes or ()) for row in choice.logprobs.content)
    assert joined.decode("utf-8", "replace") == choice.message.content
    for row in choice.logprobs.content:
        assert row.logprob <= 0 and len(row.top_logprobs) == 3
        assert row.logprob == pytest.approx(max(other.logprob for other in row.top_logprobs))


def test_streamed_log_probabilities_are_the_same(sdk: openai.OpenAI) -> None:
    ask: Any = {"model": "tiny", "messages": HELLO, "temperature": 0, "max_tokens": 8}
    whole = sdk.chat.completions.create(**ask, logprobs=True).choices[0]
    rows = [
        row
        for chunk in sdk.chat.completions.create(**ask, logprobs=True, stream=True)
        if (told := chunk.choices[0].logprobs) and told.content
        for row in told.content
    ]
    assert whole.logprobs and rows == whole.logprobs.content


def test_the_form_of_an_answer_is_kept(sdk: openai.OpenAI) -> None:
    class Place(BaseModel):
        city: str
        days: int

    answer = sdk.chat.completions.parse(
        model="tiny", messages=HELLO, response_format=Place, max_tokens=300, seed=1
    )
    assert isinstance(answer.choices[0].message.parsed, Place)
    plain = sdk.chat.completions.create(
        model="tiny", messages=HELLO, response_format={"type": "json_object"}, max_tokens=300,
        seed=1, temperature=0.5,
    )  # fmt: skip
    if plain.choices[0].finish_reason == "stop":
        assert isinstance(json.loads(plain.choices[0].message.content or ""), dict)


def test_a_required_call_is_made(sdk: openai.OpenAI) -> None:
    tool: Any = {
        "type": "function",
        "function": {
            "name": "look",
            "parameters": {
                "type": "object",
                "properties": {"deep": {"type": "boolean"}},
                "required": ["deep"],
            },
        },
    }
    answer = sdk.chat.completions.create(
        model="tiny", messages=HELLO, tools=[tool], tool_choice="required", max_tokens=300, seed=1,
        parallel_tool_calls=False,
    )  # fmt: skip
    [choice] = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.tool_calls
    call: Any = choice.message.tool_calls[0]
    assert call.function.name == "look"
    assert isinstance(json.loads(call.function.arguments)["deep"], bool)


def test_text_completions(sdk: openai.OpenAI) -> None:
    ask: Any = {"model": "tiny", "temperature": 0, "max_tokens": 8}
    whole = sdk.completions.create(**ask, prompt="hello", logprobs=2)
    [choice] = whole.choices
    assert choice.text and choice.logprobs and choice.logprobs.tokens
    assert "".join(choice.logprobs.tokens) == choice.text
    assert choice.logprobs.text_offset and choice.logprobs.text_offset[0] == 0
    found = sdk.completions.create(**ask, prompt="hello", stream=True)
    assert "".join(chunk.choices[0].text for chunk in found) == choice.text
    echoed = sdk.completions.create(**ask, prompt="hello", echo=True)
    assert echoed.choices[0].text == "hello" + choice.text
    several = sdk.completions.create(**ask, prompt=["hello", "other"], n=2)
    assert [c.index for c in several.choices] == [0, 1, 2, 3]
    assert several.choices[0].text == several.choices[1].text == choice.text


def test_models_and_errors(sdk: openai.OpenAI) -> None:
    assert [model.id for model in sdk.models.list()] == ["tiny"]
    assert sdk.models.retrieve("tiny").id == "tiny"
    with pytest.raises(openai.NotFoundError):
        sdk.models.retrieve("other")
    with pytest.raises(openai.BadRequestError, match="no embeddings"):
        sdk.embeddings.create(model="tiny", input="hello")
    with pytest.raises(openai.BadRequestError, match="maximum context length") as told:
        sdk.chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": "word " * 3000}], stream=True
        )
    assert told.value.code == "context_length_exceeded"


def test_a_key_is_asked_for(tiny_engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.api.server.api_key", lambda: "sk-right")
    server = Server(ServerConfig(port=0, require_key=True), [Served(tiny_engine, "tiny")])
    server.start()
    try:
        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="sk-wrong") as client:
            with pytest.raises(openai.AuthenticationError):
                client.models.list()
            client.api_key = "sk-right"
            assert [model.id for model in client.models.list()] == ["tiny"]
    finally:
        server.stop()


def test_streamed_calls_are_put_together(
    scripted: tuple[ScriptedEngine, openai.OpenAI],
) -> None:
    engine, client = scripted
    engine._reply = slowly("So: ", CALL[:25], CALL[25:50], CALL[50:])
    tools: Any = [TOOL]
    with client.chat.completions.stream(model="x", messages=HELLO, tools=tools) as stream:
        kinds = {event.type for event in stream}
        message = stream.get_final_completion().choices[0].message
    assert "tool_calls.function.arguments.delta" in kinds
    assert (message.content or "").strip() == "So:"
    assert message.tool_calls
    call = message.tool_calls[0]
    assert json.loads(call.function.arguments) == {"where": "here"}
    back: Any = [
        *HELLO,
        message.to_dict(),
        {"role": "tool", "tool_call_id": call.id, "content": "x"},
    ]
    engine._reply = says("done")
    assert client.chat.completions.create(model="x", messages=back, tools=tools).choices
    sent = engine.requests[-1].messages
    assert sent and [m["role"] for m in sent] == ["user", "assistant", "tool"]
    assert sent[1]["tool_calls"][0]["function"]["name"] == "look"


def test_litellm(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    ask: Any = {
        "model": "openai/tiny", "api_base": f"{server.url}/v1", "api_key": "none",
        "messages": HELLO, "temperature": 0, "max_tokens": 8,
    }  # fmt: skip
    text = litellm.completion(**ask).choices[0].message.content
    assert text
    found = litellm.completion(**ask, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in found) == text
