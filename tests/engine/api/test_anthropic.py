"""Anthropic's dialect: its own SDK against a live server, and what goes into the prompt."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import httpx2
import pytest

from engine.api.server import Server
from engine.types import ToolChoice
from tests.engine.api.scripted import PROMPT_TOKENS, ScriptedEngine, says, slowly

HELLO = [{"role": "user", "content": "hello"}]
LOOK: dict[str, Any] = {
    "name": "look",
    "description": "Looks somewhere.",
    "input_schema": {"type": "object", "properties": {"where": {"type": "string"}}},
}
CALL = '<tool_call>\n{"name": "look", "arguments": {"where": "here"}}\n</tool_call>'

Scripted = Callable[..., tuple[anthropic.Anthropic, ScriptedEngine]]


def sdk(server: Server) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        base_url=server.url,
        api_key="none",
        max_retries=0,
        http_client=httpx2.Client(trust_env=False),
    )


@pytest.fixture
def scripted(scripted_server: Callable[..., tuple[Server, ScriptedEngine]]) -> Scripted:
    def start(*script: Any) -> tuple[anthropic.Anthropic, ScriptedEngine]:
        server, engine = scripted_server(*script)
        return sdk(server), engine

    return start


def test_a_message_and_its_stream_are_the_same(server: Server) -> None:
    client = sdk(server)
    asked: dict[str, Any] = {
        "model": "tiny", "messages": HELLO, "max_tokens": 12, "extra_body": {"temperature": 0},
    }  # fmt: skip
    whole = client.messages.create(**asked)
    assert whole.id.startswith("msg_") and whole.type == "message" and whole.role == "assistant"
    assert whole.stop_reason == "max_tokens" and whole.usage.output_tokens == 12
    with client.messages.stream(**asked) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_message()
    assert final.content[0].text == whole.content[0].text  # type: ignore[union-attr]
    assert final.stop_reason == "max_tokens" and final.usage.output_tokens == 12
    assert kinds[0] == "message_start" and kinds[-1] == "message_stop"
    # Cached and read tokens are counted apart, and are the prompt together.
    counted = client.messages.count_tokens(model="tiny", messages=HELLO)  # type: ignore[arg-type]
    usage = final.usage
    assert usage.input_tokens + (usage.cache_read_input_tokens or 0) == counted.input_tokens


def test_thinking_text_and_calls_are_blocks_in_order(scripted: Scripted) -> None:
    client, _ = scripted(
        slowly("Let me", " think</think>", "I look. ", CALL[:30], CALL[30:]), "<think>\n"
    )
    asked: dict[str, Any] = {
        "model": "scripted", "messages": HELLO, "max_tokens": 50, "tools": [LOOK],
        "thinking": {"type": "enabled", "budget_tokens": 1024},
    }  # fmt: skip
    with client.messages.stream(**asked) as stream:
        events = list(stream)
        streamed = stream.get_final_message()
    whole = client.messages.create(**asked)
    for message in (streamed, whole):
        thinking, text, call = message.content
        assert thinking.type == "thinking" and thinking.thinking == "Let me think"
        assert thinking.signature
        assert text.type == "text" and text.text.strip() == "I look."
        assert call.type == "tool_use" and call.name == "look" and call.input == {"where": "here"}
        assert message.stop_reason == "tool_use"
    opened = [e.index for e in events if e.type == "content_block_start"]
    closed = [e.index for e in events if e.type == "content_block_stop"]
    assert opened == closed == [0, 1, 2]


def test_a_conversation_comes_to_the_template_whole(scripted: Scripted) -> None:
    client, engine = scripted(says("done"))
    client.messages.create(
        model="scripted",
        max_tokens=5,
        system=[
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=ab12"},
            {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
        ],
        messages=[
            {"role": "user", "content": "look here"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "I should look.", "signature": "x"},
                    {"type": "text", "text": "Looking."},
                    {
                        "type": "tool_use",
                        "id": "call_1",
                        "name": "look",
                        "input": {"where": "here"},
                    },
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_1",
                        "content": [{"type": "text", "text": "a chair"}],
                    },
                    {"type": "text", "text": "and now?"},
                ],
            },
        ],
        tools=[LOOK],  # type: ignore[list-item]
        tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        metadata={"user_id": "u"},
    )
    [request] = engine.requests
    function = {"name": "look", "arguments": {"where": "here"}}
    assert request.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "look here"},
        {
            "role": "assistant",
            "content": "Looking.",
            "reasoning_content": "I should look.",
            "tool_calls": [{"id": "call_1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "a chair"},
        {"role": "user", "content": "and now?"},
    ]
    assert request.tools is not None
    assert request.tools[0]["function"]["parameters"] == LOOK["input_schema"]
    assert not request.parallel_tool_calls


@pytest.mark.parametrize(
    ("choice", "mode", "names"),
    [
        ({"type": "auto"}, "auto", None),
        ({"type": "any"}, "required", None),
        ({"type": "tool", "name": "look"}, "required", ("look",)),
        ({"type": "none"}, "none", None),
    ],
)
def test_a_choice_of_tools_leaves_out_only_what_it_says(
    scripted: Scripted, choice: Any, mode: str, names: tuple[str, ...] | None
) -> None:
    client, engine = scripted(says("x"))
    client.messages.create(
        model="any", max_tokens=9, messages=HELLO, tools=[LOOK], tool_choice=choice  # type: ignore
    )  # fmt: skip
    assert engine.requests[0].tool_choice == ToolChoice(mode, names)


def test_a_required_call_is_written_by_a_real_model(server: Server) -> None:
    look = {**LOOK, "input_schema": {"type": "object", "properties": {"at": {"enum": ["a"]}}}}
    answer = sdk(server).messages.create(
        model="any", max_tokens=200, messages=HELLO, tools=[look],  # type: ignore
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        extra_body={"temperature": 0},
    )  # fmt: skip
    assert answer.stop_reason == "tool_use" and answer.content[-1].type == "tool_use"


def test_only_the_last_answers_keep_their_thinking_where_that_is_asked(scripted: Scripted) -> None:
    client, engine = scripted(says("done"))
    turns: list[dict[str, Any]] = []
    for n in range(3):
        thought = {"type": "thinking", "thinking": f"thought {n}", "signature": "x"}
        turns += [
            {"role": "user", "content": f"q{n}"},
            {"role": "assistant", "content": [thought, {"type": "text", "text": f"a{n}"}]},
        ]
    edit = {"type": "clear_thinking_20251015", "keep": {"type": "thinking_turns", "value": 1}}
    answer = client.messages.create(
        model="scripted",
        max_tokens=5,
        messages=[*turns, *HELLO],  # type: ignore[list-item]
        extra_body={"context_management": {"edits": [edit]}},
    )
    [request] = engine.requests
    assert request.messages is not None
    found = [m.get("reasoning_content") for m in request.messages if m["role"] == "assistant"]
    assert found == [None, None, "thought 2"]
    assert answer.to_dict()["context_management"] == {"applied_edits": []}


def test_a_stop_sequence_is_told(server: Server) -> None:
    client = sdk(server)
    asked: dict[str, Any] = {"model": "tiny", "messages": HELLO, "extra_body": {"temperature": 0}}
    text = client.messages.create(**asked, max_tokens=30).content[0].text  # type: ignore[union-attr]
    stop = text[len(text) // 2 :][:4]
    answer = client.messages.create(**asked, max_tokens=30, stop_sequences=[stop])
    assert answer.stop_reason == "stop_sequence" and answer.stop_sequence == stop
    assert answer.content[0].text == text[: text.index(stop)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("more", "named"),
    [
        ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "messages.0.content.0"),
        ({"messages": [*HELLO, {"role": "assistant", "content": "{"}]}, "messages.1"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools.0"),
        ({"tool_choice": {"type": "tool", "name": "gone"}, "tools": [LOOK]}, "tool_choice.name"),
        ({"tool_choice": {"type": "any"}}, "tool_choice"),
        ({"mcp_servers": [{"type": "url", "url": "http://x", "name": "x"}]}, "mcp_servers"),
        ({"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}, "context_management"),
        ({"surprise": 1}, "surprise"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused_by_name(
    server: Server, more: dict[str, Any], named: str
) -> None:
    body = {"model": "tiny", "messages": HELLO, "max_tokens": 5, **more}
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        answer = client.post("/v1/messages", json=body)
    assert answer.status_code == 400, answer.text
    error = answer.json()
    assert error["type"] == "error" and error["error"]["type"] == "invalid_request_error"
    assert named in error["error"]["message"]


def test_the_sdk_raises_its_own_errors(server: Server) -> None:
    client = sdk(server)
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        client.messages.create(
            model="tiny", max_tokens=5, messages=[{"role": "user", "content": "word " * 2000}]
        )


def test_the_form_of_an_answer_is_kept(server: Server) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    answer = sdk(server).messages.create(
        model="tiny",
        messages=HELLO,  # type: ignore[arg-type]
        max_tokens=40,
        extra_body={"output_config": {"format": {"type": "json_schema", "schema": schema}}},
    )
    text = answer.content[0].text  # type: ignore[union-attr]
    assert text.lstrip().startswith("{")
    if answer.stop_reason == "end_turn":
        assert isinstance(json.loads(text)["n"], int)


def test_a_prompt_is_counted_as_it_is_read(scripted: Scripted) -> None:
    client, _ = scripted(says("x"))
    answer = client.messages.create(model="scripted", messages=HELLO, max_tokens=5)  # type: ignore[arg-type]
    assert answer.usage.input_tokens == PROMPT_TOKENS
