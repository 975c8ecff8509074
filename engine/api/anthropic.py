"""`/v1/messages` and `/v1/messages/count_tokens`, Anthropic's dialect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from engine.api.anthropic_messages import (
    AnthropicChoice,
    AnthropicTool,
    CacheControl,
    Message,
    TextBlock,
    chat_choice,
    chat_messages,
    chat_tools,
)
from engine.api.errors import ANTHROPIC_RESPONSES, ApiError, anthropic_body, refused
from engine.api.gather import finish_details, gather, timings
from engine.api.schemas import Body, Many, SamplingFields, refuse_all, stops
from engine.api.turn import (
    LENGTH,
    STREAMS,
    TOOL_CALLS,
    Ask,
    Delta,
    Ended,
    Opened,
    Turn,
    respond,
    thinking_of,
)
from engine.api.wire import JsonResponse, frame
from engine.pieces import Content, Piece, Reasoning, ToolCallArguments, ToolCallEnd, ToolCallStart
from engine.reasoning import Thinking
from engine.types import Format

router = APIRouter(responses=ANTHROPIC_RESPONSES)

_REFUSED = {
    "mcp_servers": "this server connects to no MCP servers; let the client call their tools",
    "container": "this server runs no code",
    "compaction": "this server compacts nothing",
    "thread": "this server keeps no conversations; send all messages",
    "fallbacks": "this server declines nothing",
    "fallback_credit_token": "this server declines nothing",
    "billing_policy": "this server bills nobody",
    "diagnostics": "usage tells what was read from the cache; it is not compared with other requests",
}
_CLEAR_THINKING = "clear_thinking_20251015"


class Metadata(Body):
    """What a client tells of its user; used for nothing here."""

    user_id: str | None = None


class OutputFormat(Body):
    """The form of an answer."""

    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfig(Body):
    """How much effort an answer gets, and its form."""

    effort: Literal["low", "medium", "high", "xhigh", "max"] | None = None
    format: OutputFormat | None = None


class KeepTurns(Body):
    """How many answers keep their thinking."""

    type: Literal["thinking_turns"]
    value: int = Field(ge=1)


class ContextEdit(Body):
    """One edit of the conversation before it is read."""

    type: str
    keep: Literal["all"] | KeepTurns | dict[str, Any] | None = None
    trigger: dict[str, Any] | None = None
    clear_at_least: dict[str, Any] | None = None
    clear_tool_inputs: bool | list[str] | None = None
    exclude_tools: list[str] | None = None
    instructions: str | None = None
    pause_after_compaction: bool | None = None


class ContextManagement(Body):
    """Edits of the conversation before it is read."""

    edits: list[ContextEdit] = Field(default_factory=list)


class PromptFields(SamplingFields):
    """What makes a prompt."""

    model: str = ""
    messages: Many[Message] = Field(min_length=1)
    system: str | Many[TextBlock] | None = None
    tools: Many[AnthropicTool] | None = None
    tool_choice: AnthropicChoice | None = None
    output_config: OutputConfig | None = None
    output_format: OutputFormat | None = None
    context_management: ContextManagement | None = None
    mcp_servers: list[Any] | None = Field(None, max_length=64)
    container: str | dict[str, Any] | None = None
    compaction: dict[str, Any] | None = None
    thread: dict[str, Any] | None = None
    fallbacks: str | list[Any] | None = Field(None, max_length=64)
    fallback_credit_token: str | dict[str, Any] | None = None
    billing_policy: dict[str, Any] | None = None
    diagnostics: dict[str, Any] | None = None
    cache_control: CacheControl | None = None
    speed: Literal["standard", "fast"] | None = None

    def ask(self) -> Ask:
        """What is asked for; `ApiError` for what cannot be honoured."""
        given = {name: value or None for name, value in self.__dict__.items()}
        refuse_all(given, _REFUSED)
        tools = chat_tools(self.tools)
        choice, parallel = chat_choice(self.tool_choice, tools)
        wanted = self.output_format or (self.output_config and self.output_config.format)
        return Ask(
            model=self.model,
            messages=chat_messages(self.system, self.messages, self._thoughts()),
            sampling=self.sampling(),
            tools=tools,
            tool_choice=choice,
            parallel_tool_calls=parallel,
            format=Format("json_schema", wanted.schema_) if wanted else None,
            thinking=self._thinking(),
            template_kwargs=self.chat_template_kwargs or {},
            **self.caching(),
        )

    def _thinking(self) -> Thinking:
        """As in `thought`; an effort alone switches no thinking on in this dialect."""
        found = self.thought()
        effort = self.output_config.effort if self.output_config else None
        if effort is None or not found.enabled or found.budget is not None:
            return found
        return replace(found, effort="x-high" if effort == "xhigh" else effort)

    def _thoughts(self) -> int | None:
        """How many answers keep their thinking, None for all."""
        keep = None
        for n, edit in enumerate(self.context_management.edits if self.context_management else ()):
            if edit.type != _CLEAR_THINKING:
                raise refused(
                    f"context_management.edits.{n}.type",
                    f"{edit.type[:60]!r} is not supported, only {_CLEAR_THINKING!r}",
                )
            keep = edit.keep.value if isinstance(edit.keep, KeepTurns) else None
            if edit.keep is None:
                keep = 1
        return keep


class MessagesBody(PromptFields):
    """A request for a message."""

    max_tokens: int = Field(ge=1, le=16_777_216)
    stream: bool = False
    stop_sequences: list[str] | None = None
    metadata: Metadata | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    inference_geo: str | None = None

    def sampling(self) -> dict[str, Any]:
        """The fields of `SamplingParams` that were given."""
        found = {**super().sampling(), "max_tokens": self.max_tokens}
        if ends := stops(self.stop_sequences, "stop_sequences"):
            found["stop"] = ends
        return found


class CountBody(PromptFields):
    """A question for how many tokens a prompt has."""


@router.post("/v1/messages", responses=STREAMS)
async def create_message(body: MessagesBody, request: Request) -> Response:
    """Write the assistant's next message."""

    async def whole(turn: Turn) -> dict[str, Any]:
        [answer] = await gather(turn)
        blocks: list[dict[str, Any]] = []
        for part in answer.parts:
            if isinstance(part, Content):
                blocks.append({"type": "text", "text": part.text})
            elif isinstance(part, Reasoning):
                shown = "" if _omitted(body) else part.text
                blocks.append({"type": "thinking", "thinking": shown, "signature": turn.id})
            else:
                called = {"id": part.id, "name": part.name, "input": _object(part.arguments)}
                blocks.append({"type": "tool_use", **called})
        return {
            **_head(turn),
            "content": [block for block in blocks if block != {"type": "text", "text": ""}],
            **_stop(turn, answer.end, body),
            "usage": _usage(turn),
            **_extras(body),
        }

    return await respond(
        request, [body.ask()], body.stream, whole, lambda turn: _frames(turn, body), _failure
    )


@router.post("/v1/messages/count_tokens")
async def count_tokens(body: CountBody, request: Request) -> Response:
    """How many tokens the prompt of such a message has."""
    models, ask = request.app.state.models, body.ask()
    _, template = models.look(ask.model).texts()
    kwargs = {**thinking_of(ask, models.config).template_kwargs, **ask.template_kwargs}
    ids = await asyncio.to_thread(
        template.encode, ask.messages, list(ask.tools) or None, True, **kwargs
    )
    return JsonResponse({"input_tokens": len(ids), **_extras(body)})


async def _frames(turn: Turn, body: MessagesBody) -> AsyncIterator[bytes]:
    blocks = _Blocks(turn.id, _omitted(body))
    async for event in turn.events():
        match event:
            case Opened(prompt_tokens=prompt, reused_tokens=reused):
                usage = {**_counts(prompt, reused), "output_tokens": 0}
                head = {**_head(turn), "content": [], "stop_reason": None, "stop_sequence": None}
                yield _event("message_start", message={**head, "usage": usage})
                yield _event("ping")
            case Delta(piece=piece):
                for found in blocks.take(piece):
                    yield found
            case Ended():
                for found in blocks.close():
                    yield found
                yield _event(
                    "message_delta",
                    delta=_stop(turn, event, body),
                    usage=_usage(turn),
                    **_extras(body),
                )
                yield _event("message_stop")


class _Blocks:
    """The content blocks of a stream: opened, filled and closed one after the other."""

    def __init__(self, signature: str, omitted: bool) -> None:
        self._signature, self._omitted = signature, omitted
        self._index = -1
        self._open: str | None = None

    def take(self, piece: Piece) -> list[bytes]:
        """The events that a piece makes."""
        match piece:
            case Content(text):
                return [*self._enter("text", text=""), *self._delta("text_delta", text=text)]
            case Reasoning(text):
                opened = self._enter("thinking", thinking="", signature="")
                text = "" if self._omitted else text
                return [*opened, *self._delta("thinking_delta", thinking=text)]
            case ToolCallStart(id=call_id, name=name):
                block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
                return [*self.close(), *self._start(block)]
            case ToolCallArguments(fragment=fragment):
                return self._delta("input_json_delta", partial_json=fragment)
            case ToolCallEnd():
                return self.close()

    def close(self) -> list[bytes]:
        """The events that end the block that is open."""
        if self._open is None:
            return []
        found = []
        if self._open == "thinking":
            found += self._delta("signature_delta", signature=self._signature)
        self._open = None
        return [*found, _event("content_block_stop", index=self._index)]

    def _enter(self, kind: str, **empty: str) -> list[bytes]:
        if self._open == kind:
            return []
        return [*self.close(), *self._start({"type": kind, **empty})]

    def _start(self, block: dict[str, Any]) -> list[bytes]:
        self._index += 1
        self._open = block["type"]
        return [_event("content_block_start", index=self._index, content_block=block)]

    def _delta(self, kind: str, **fields: str) -> list[bytes]:
        if not any(fields.values()):
            return []
        return [_event("content_block_delta", index=self._index, delta={"type": kind, **fields})]


def _event(kind: str, **fields: Any) -> bytes:
    return frame({"type": kind, **fields}, kind)


def _failure(error: ApiError) -> bytes:
    return frame(anthropic_body(error), "error")


def _head(turn: Turn) -> dict[str, Any]:
    return {"id": f"msg_{turn.id}", "type": "message", "role": "assistant", "model": turn.model}


def _stop(turn: Turn, ended: Ended, body: MessagesBody) -> dict[str, Any]:
    stop = ended.end.stop if ended.end.stop in (body.stop_sequences or ()) else None
    reason = "end_turn" if stop is None else "stop_sequence"
    if ended.reason == TOOL_CALLS:
        reason = "tool_use"
    elif ended.reason == LENGTH:
        reason = "model_context_window_exceeded" if ended.end.context_full else "max_tokens"
    details = finish_details(turn, ended)
    return {
        "stop_reason": reason,
        "stop_sequence": stop,
        **({"finish_details": details} if details is not None else {}),
    }


def _usage(turn: Turn) -> dict[str, Any]:
    usage = turn.usage()
    return {
        **_counts(usage.prompt_tokens, usage.reused_tokens),
        "output_tokens": usage.completion_tokens,
        "timings": timings(turn),
    }


def _counts(prompt: int, reused: int) -> dict[str, Any]:
    return {
        "input_tokens": prompt - reused,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": reused,
        "service_tier": "standard",
    }


def _extras(body: PromptFields) -> dict[str, Any]:
    return {"context_management": {"applied_edits": []}} if body.context_management else {}


def _omitted(body: PromptFields) -> bool:
    return body.thinking is not None and body.thinking.display == "omitted"


def _object(arguments: str) -> dict[str, Any]:
    """A call's input; what is no JSON object, where the answer was cut, is empty as in a stream."""
    try:
        found = json.loads(arguments or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
