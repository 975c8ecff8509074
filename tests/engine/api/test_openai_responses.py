"""The Responses dialect: the openai SDK against a live server, and what goes into the prompt."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import openai
import pytest

from engine.api.responses_store import MOST_BYTES, ResponseStore
from engine.api.server import Server
from engine.types import Request
from tests.engine.api.scripted import ScriptedEngine, says, slowly

LOOK: dict[str, Any] = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {"where": {"type": "string"}}},
    "strict": False,
}
CALL = '<tool_call>\n{"name": "look", "arguments": {"where": "here"}}\n</tool_call>'

Scripted = Callable[..., tuple[openai.OpenAI, ScriptedEngine]]


def sdk(server: Server) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)


@pytest.fixture
def scripted(scripted_server: Callable[..., tuple[Server, ScriptedEngine]]) -> Scripted:
    def start(*script: Any) -> tuple[openai.OpenAI, ScriptedEngine]:
        server, engine = scripted_server(*script)
        return sdk(server), engine

    return start


def ask(server: Server, **more: Any) -> Any:
    body = {"model": "tiny", "input": "hello", "temperature": 0, "max_output_tokens": 12, **more}
    return sdk(server).responses.create(**body)


def test_a_response_and_its_stream_are_the_same(server: Server) -> None:
    whole = ask(server)
    assert whole.id.startswith("resp_") and whole.status == "incomplete"
    assert whole.incomplete_details.reason == "max_output_tokens"
    assert whole.usage.output_tokens == 12
    assert whole.usage.total_tokens == whole.usage.input_tokens + 12
    events = list(ask(server, stream=True))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:2]] == ["response.created", "response.in_progress"]
    assert events[-1].type == "response.incomplete"
    streamed = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    assert streamed == events[-1].response.output_text == whole.output_text


def test_thinking_text_and_calls_are_items_in_order(scripted: Scripted) -> None:
    client, engine = scripted(
        slowly("Let me", " think</think>", "I look. ", CALL[:30], CALL[30:]), "<think>\n"
    )
    asked: dict[str, Any] = {
        "model": "scripted", "input": "hello", "tools": [LOOK],
        "include": ["reasoning.encrypted_content"],
    }  # fmt: skip
    with client.responses.stream(**asked) as stream:
        events = list(stream)
        streamed = stream.get_final_response()
    whole = client.responses.create(**asked)
    for response in (streamed, whole):
        reasoning, message, call = response.output
        assert reasoning.type == "reasoning" and reasoning.content[0].text == "Let me think"
        assert reasoning.encrypted_content
        assert message.type == "message" and message.content[0].text.strip() == "I look."
        assert call.type == "function_call" and json.loads(call.arguments) == {"where": "here"}
        assert response.status == "completed"
    added = [e.output_index for e in events if e.type == "response.output_item.added"]
    done = [e.output_index for e in events if e.type == "response.output_item.done"]
    assert added == done == [0, 1, 2]
    kinds = [e.type for e in events]
    assert kinds.index("response.function_call_arguments.done") < len(kinds) - 2
    # What the client brings back unread is read again.
    kept = whole.output[0].encrypted_content
    back = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": kept}
    now = {"role": "user", "content": "and now?"}
    client.responses.create(model="scripted", input=[back, now])  # type: ignore[list-item]
    messages = engine.requests[-1].messages
    assert messages is not None and messages[0]["reasoning_content"] == "Let me think"


def test_a_conversation_goes_on_from_a_kept_response(scripted: Scripted) -> None:
    client, engine = scripted(says("I look. ", CALL))
    first = client.responses.create(
        model="scripted", input="look here", instructions="Be brief.", tools=[LOOK], store=True
    )
    call = first.output[-1]
    client.responses.create(
        model="scripted",
        previous_response_id=first.id,
        instructions="Be kind.",
        tools=[LOOK],
        input=[{"type": "function_call_output", "call_id": call.call_id, "output": "a chair"}],
    )
    function = {"name": "look", "arguments": '{"where": "here"}'}
    messages = engine.requests[-1].messages
    assert messages is not None
    said = messages[2]["content"]
    assert said.strip() == "I look."
    assert messages == [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "look here"},
        {
            "role": "assistant",
            "content": said,
            "tool_calls": [{"id": call.call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call.call_id, "content": "a chair"},
    ]


def test_a_kept_response_can_be_read_and_deleted(server: Server) -> None:
    client = sdk(server)
    kept, gone = ask(server), ask(server, store=False)
    assert client.responses.retrieve(kept.id).output_text == kept.output_text
    [item] = client.responses.input_items.list(kept.id).data
    assert item.to_dict()["content"] == [{"type": "input_text", "text": "hello"}]
    client.responses.delete(kept.id)
    for missing in (kept.id, gone.id):
        with pytest.raises(openai.NotFoundError):
            client.responses.retrieve(missing)
    with pytest.raises(openai.NotFoundError, match="not found"):
        ask(server, previous_response_id=kept.id)


def test_input_items_are_told_in_pages_of_both_orders(server: Server) -> None:
    client = sdk(server)
    said = [{"role": "user", "content": f"word {n}"} for n in range(3)]
    kept = ask(server, input=said)
    for order, texts in (
        ("asc", ["word 0", "word 1", "word 2"]),
        ("desc", ["word 2", "word 1", "word 0"]),
    ):
        pages = client.responses.input_items.list(kept.id, order=order, limit=2)  # type: ignore[call-overload]
        assert [item.content[0].text for item in pages] == texts


def test_an_item_of_a_kept_response_can_be_named_in_the_next_input(server: Server) -> None:
    kept = ask(server)
    named = {"type": "item_reference", "id": kept.output[0].id}
    asked = [{"role": "user", "content": "hello"}, named, {"role": "user", "content": "more"}]
    told = [{**asked[0]}, {"role": "assistant", "content": kept.output_text}, {**asked[2]}]
    assert ask(server, input=asked).output_text == ask(server, input=told).output_text
    with pytest.raises(openai.NotFoundError, match="msg_unknown"):
        ask(server, input=[{"type": "item_reference", "id": "msg_unknown"}])


def test_a_store_forgets_the_oldest_first() -> None:
    store = ResponseStore()
    large = "x" * (MOST_BYTES // 5)
    for n in range(4):
        store.keep({"id": f"resp_{n}", "output": [{"text": large}]}, [], [])
    with pytest.raises(Exception, match="not found"):
        store.find("resp_0")
    assert store.find("resp_3").response["id"] == "resp_3"


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"background": True}, "background"),
        ({"conversation": "conv_1"}, "conversation"),
        ({"truncation": "auto"}, "truncation"),
        ({"include": ["file_search_call.results"]}, "include.0"),
        ({"tools": [{"type": "web_search"}]}, "tools.0"),
        ({"input": [{"type": "web_search_call", "id": "x"}]}, "input.0"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, "input.0.content.0"),
        ({"input": []}, "input"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
        ({"text": {"verbosity": "high"}}, "text.verbosity"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(
    client: httpx.Client, more: dict[str, Any], named: str
) -> None:
    answer = client.post("/v1/responses", json={"model": "tiny", "input": "hello", **more})
    assert answer.status_code == 400, answer.text
    assert named in answer.json()["error"]["message"]


def test_a_failed_stream_ends_in_a_failed_response(scripted: Scripted) -> None:
    def breaks(request: Request) -> Iterator[str]:
        yield "so far"
        engine.cancel(len(engine.requests))
        yield "never"

    client, engine = scripted(breaks)
    events = list(client.responses.create(model="scripted", input="hello", stream=True))
    assert events[-1].type == "response.failed"
    assert events[-1].response.error is not None and events[-1].response.error.message


def test_log_probabilities_are_told(server: Server) -> None:
    answer = ask(server, top_logprobs=2, max_output_tokens=4)
    rows = answer.output[0].content[0].logprobs
    assert len(rows) == 4 and all(len(row.top_logprobs) == 2 for row in rows)
