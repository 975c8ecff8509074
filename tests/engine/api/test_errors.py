"""A request that is wrong is told what is wrong with which of its fields."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
HELLO = [{"role": "user", "content": "hello"}]


def refusal(client: httpx.Client, path: str, body: Any) -> str:
    answer = client.post(path, json=body)
    assert answer.status_code == 400
    message: str = answer.json()["error"]["message"]
    return message


@pytest.mark.parametrize(
    ("path", "body", "name"),
    [
        (CHAT, {"messages": HELLO, "bogus": 1}, "bogus"),
        (CHAT, {"messages": [{**HELLO[0], "bogus": 1}]}, "messages.0.bogus"),
        (CHAT, {"messages": HELLO, "stop": ["a", 7]}, "stop.1"),
        (CHAT, {"messages": HELLO, "tool_choice": "any"}, "tool_choice"),
        (CHAT, {"messages": [{"role": "user", "content": ["hello"]}]}, "messages.0.content.0"),
        (RESPONSES, {"input": [{**HELLO[0], "bogus": 1}]}, "input.0.bogus"),
        (RESPONSES, {"input": [*HELLO, {"role": "boss", "content": "a"}]}, "input.1.role"),
        (MESSAGES, {"max_tokens": 1}, "messages"),
        (
            MESSAGES,
            {"max_tokens": 1, "messages": [{"role": "user", "content": [{"type": "text", "a": 1}]}]},
            "messages.0.content.0.text",
        ),
        (
            MESSAGES,
            {"max_tokens": 1, "messages": HELLO, "system": [{"type": "text", "text": "a", "b": 1}]},
            "system.0.b",
        ),
    ],
)  # fmt: skip
def test_a_field_is_named_however_deep_it_lies(
    client: httpx.Client, path: str, body: Any, name: str
) -> None:
    assert refusal(client, path, body).startswith(f"{name}: ")


def test_a_field_of_several_kinds_tells_all_of_them(client: httpx.Client) -> None:
    found = refusal(client, CHAT, {"messages": HELLO, "stop": 7})
    assert found == "stop: Input should be a valid string, or a valid list."


def test_a_parameter_of_the_address_is_named(client: httpx.Client) -> None:
    kept = client.post(RESPONSES, json={"input": "hello", "max_output_tokens": 1}).json()["id"]
    answer = client.get(f"{RESPONSES}/{kept}/input_items", params={"limit": 0})
    assert answer.json()["error"]["param"] == "limit"
