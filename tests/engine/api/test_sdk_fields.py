"""Each field that the official SDKs know is honoured, or refused with a reason of its own."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_create_params as beta_params
from openai.types import completion_create_params as text_params
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import response_create_params as responses_params

from engine.api.anthropic import CountBody, MessagesBody
from engine.api.openai_chat import ChatBody
from engine.api.openai_responses import ResponsesBody
from engine.api.openai_text import CompletionBody
from engine.api.schemas import Body

HEADERS = {"betas", "user_profile_id", "workspace_id"}  # which the SDK sends as such


@pytest.mark.parametrize(
    ("params", "body"),
    [
        (chat_params.CompletionCreateParamsStreaming, ChatBody),
        (text_params.CompletionCreateParamsStreaming, CompletionBody),
        (responses_params.ResponseCreateParamsStreaming, ResponsesBody),
        (message_create_params.MessageCreateParamsStreaming, MessagesBody),
        (beta_params.MessageCreateParamsStreaming, MessagesBody),
        (message_count_tokens_params.MessageCountTokensParams, CountBody),
    ],
)
def test_every_field_of_the_sdks_is_known(params: Any, body: type[Body]) -> None:
    asked = params.__required_keys__ | params.__optional_keys__
    known = {field.alias or name for name, field in body.model_fields.items()}
    assert "model" in asked and not asked - known - HEADERS


CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}
PART = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    ("path", "more", "named"),
    [
        *(
            ("chat/completions", {"prefix_cache": {"scope": scope}}, "prefix_cache.scope: expected off")
            for scope in ("banana", "", "OFF", "auto:", "auto:0", "auto:1000001", 0, -1, 1000001, True, [])
        ),
        ("chat/completions", {"reasoning": {"context": "all_turns"}}, "reasoning.context"),
        ("chat/completions", {"messages": [{"role": "user", "content": [{**PART, "x": 1}]}]}, "0.x"),
        (
            "chat/completions",
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "x": 1}}},
            "json_schema.x",
        ),
        ("messages", {"thread": {"type": "create"}}, "thread"),
        ("messages", {"fallbacks": "default"}, "fallbacks"),
    ],
)  # fmt: skip
def test_what_cannot_be_honoured_is_refused_by_name(
    client: httpx.Client, path: str, more: dict[str, Any], named: str
) -> None:
    answer = client.post(f"/v1/{path}", json={**CHAT, **more})
    assert answer.status_code == 400 and named in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "more",
    [
        {"prefix_cache": {"scope": "auto:30", "window": 30}, "session_id": "one"},
        {"prompt_cache_options": {"mode": "explicit", "ttl": "30m"}, "service_tier": "fast"},
        {"messages": [{"role": "user", "content": [{**PART, "cache_control": {"type": "ephemeral"}}]}]},
    ],
)  # fmt: skip
def test_what_holds_anyway_is_accepted(client: httpx.Client, more: dict[str, Any]) -> None:
    assert client.post("/v1/chat/completions", json={**CHAT, **more}).status_code == 200
