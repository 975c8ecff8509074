"""`/v1/chat/completions`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import Field

from engine.api import logprobs
from engine.api.errors import ApiError, openai_body, refused
from engine.api.gather import Answer, finish_details, gather, openai_usage
from engine.api.messages import Message, Tool, plain_messages, plain_tools, tool_choice
from engine.api.schemas import (
    MOST_ALTERNATIVES,
    MOST_CHOICES,
    Body,
    Many,
    Number,
    PromptCacheOptions,
    SamplingFields,
    Stop,
    Tier,
    biases,
    refuse_all,
    stops,
)
from engine.api.turn import STREAMS, Ask, Delta, Ended, Turn, respond
from engine.api.wire import DONE, frame, json_bytes
from engine.pieces import Content, Piece, Reasoning, ToolCallArguments, ToolCallStart
from engine.types import Format

router = APIRouter()

_REFUSED = {
    "audio": "this server makes no sound",
    "functions": "it was replaced by tools; send tools",
    "function_call": "it was replaced by tool_choice; send tool_choice",
    "web_search_options": "this server does not search the web",
    "prediction": "predicted outputs are not supported; leave it out, the answer is the same",
    "moderation": "this server moderates nothing",
}


class StreamOptions(Body):
    """What a stream holds besides the answer."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = None


class JsonSchema(Body):
    """The schema of an answer; it is followed to the letter, also where `strict` is false."""

    name: str | None = None
    description: str | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    strict: bool | None = None


class ResponseFormat(Body):
    """The form of an answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class ChatBody(SamplingFields):
    """A request for a chat completion."""

    model: str = ""
    messages: Many[Message] = Field(min_length=1)
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = Field(1, ge=1, le=MOST_CHOICES)
    max_tokens: int | None = Field(None, ge=-1, le=16_777_216)
    max_output_tokens: int | None = Field(None, ge=-1, le=16_777_216)
    max_completion_tokens: int | None = Field(None, ge=-1, le=16_777_216)
    stop: Stop = None
    stop_sequences: list[str] | None = None
    logit_bias: dict[str, Number] | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=MOST_ALTERNATIVES)
    response_format: ResponseFormat | None = None
    tools: Many[Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    user: str | None = None
    metadata: dict[str, Any] | None = None
    service_tier: Tier | None = None
    store: bool | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: PromptCacheOptions | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    modalities: list[Literal["text", "audio"]] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    prediction: dict[str, Any] | None = None
    audio: dict[str, Any] | None = None
    functions: list[dict[str, Any]] | None = None
    function_call: str | dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None
    moderation: dict[str, Any] | None = None

    def ask(self) -> Ask:
        """What is asked for; `ApiError` for what cannot be honoured."""
        refuse_all(self.__dict__, _REFUSED)
        if self.store:
            raise refused("store", "this server keeps no chat completions; use /v1/responses")
        if "audio" in (self.modalities or ()):
            raise refused("modalities", "this server makes text only")
        if self.verbosity in ("low", "high"):
            raise refused("verbosity", "local models have no such setting; say it in the prompt")
        if self.top_logprobs is not None and not self.logprobs:
            raise refused("top_logprobs", "it needs logprobs: true")
        check_stream(self.stream_options, self.stream)
        if self.thinking is not None and self.thinking.display == "omitted":
            raise refused("thinking.display", "thinking is always told in reasoning_content")
        tools = plain_tools(self.tools)
        return Ask(
            model=self.model,
            messages=plain_messages(self.messages),
            sampling=self._sampling(),
            tools=tools,
            tool_choice=tool_choice(self.tool_choice, tools),
            parallel_tool_calls=self.parallel_tool_calls is not False,
            format=_format(self.response_format),
            thinking=self.thought(),
            template_kwargs=self.chat_template_kwargs or {},
            n=self.n,
            logprobs=(self.top_logprobs or 0) if self.logprobs else None,
            **self.caching(),
        )

    def _sampling(self) -> dict[str, Any]:
        found = self.sampling()
        limits = (self.max_tokens, self.max_output_tokens, self.max_completion_tokens)
        most = next((n for n in limits if n is not None), None)
        if most is not None and most >= 0:
            found["max_tokens"] = most
        if ends := stops(self.stop) + stops(self.stop_sequences, "stop_sequences"):
            found["stop"] = ends
        if self.logit_bias:
            found["logit_bias"] = biases(self.logit_bias)
        return found


@router.post("/v1/chat/completions", responses=STREAMS)
async def create_chat_completion(body: ChatBody, request: Request) -> Response:
    """Write the next message of a chat."""

    async def whole(turn: Turn) -> dict[str, Any]:
        answers = await gather(turn)
        return {
            **_head(turn, "chat.completion", body),
            "choices": [_choice(turn, answer, body) for answer in answers],
            "usage": openai_usage(turn),
        }

    return await respond(
        request, [body.ask()], body.stream, whole, lambda turn: _frames(turn, body), failure
    )


def check_stream(options: StreamOptions | None, stream: bool) -> None:
    """Refuse options of a stream that cannot be honoured."""
    if options is not None and not stream:
        raise refused("stream_options", "it needs stream: true")
    if options is not None and options.include_obfuscation:
        raise refused("stream_options.include_obfuscation", "streams are not padded")


def failure(error: ApiError) -> bytes:
    """The end of a stream that failed."""
    return frame(openai_body(error)) + DONE


def _format(given: ResponseFormat | None) -> Format | None:
    if given is None or given.type == "text":
        return None
    if given.type == "json_object":
        return Format("json_object")
    if given.json_schema is None or given.json_schema.schema_ is None:
        raise refused("response_format.json_schema.schema", "expected a JSON schema, an object")
    return Format("json_schema", given.json_schema.schema_)


def _head(turn: Turn, kind: str, body: ChatBody) -> dict[str, Any]:
    head: dict[str, Any] = {
        "id": f"chatcmpl-{turn.id}",
        "object": kind,
        "created": turn.created,
        "model": turn.model,
        "system_fingerprint": turn.fingerprint,
    }
    if body.service_tier is not None:
        head["service_tier"] = "default"
    return head


def _choice(turn: Turn, answer: Answer, body: ChatBody) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": answer.content if answer.content or not answer.calls else None,
        "refusal": None,
    }
    if answer.reasoning:
        message["reasoning_content"] = message["reasoning"] = answer.reasoning
        message["reasoning_details"] = [{"type": "reasoning.text", "text": answer.reasoning}]
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in answer.calls
        ]
    return {
        "index": answer.end.choice,
        "message": message,
        "logprobs": logprobs.of_chat(answer.logprobs) if body.logprobs else None,
        **_finish(turn, answer.end),
    }


async def _frames(turn: Turn, body: ChatBody) -> AsyncIterator[bytes]:
    head = _head(turn, "chat.completion.chunk", body)
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    none: dict[str, Any] = {"usage": None} if with_usage else {}

    def chunk(index: int, delta: dict[str, Any], rows: Any = (), **finish: Any) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": None, **finish}
        if body.logprobs and rows:
            choice["logprobs"] = logprobs.of_chat(rows)
        return frame({**head, "choices": [choice], **none})

    for index in range(len(turn.choices)):
        yield chunk(index, {"role": "assistant", "content": ""})
    # Around the text of a choice all is the same each time.
    around = [chunk(i, {"content": ""}).split(b'"content":""') for i in range(len(turn.choices))]
    async for event in turn.events():
        if isinstance(event, Delta) and isinstance(event.piece, Content) and not event.logprobs:
            start, end = around[event.choice]
            yield b'%s"content":%s%s' % (start, json_bytes(event.piece.text), end)
        elif isinstance(event, Delta):
            if (delta := _delta(event.piece)) is not None:
                yield chunk(event.choice, delta, rows=event.logprobs)
        elif isinstance(event, Ended):
            yield chunk(event.choice, {}, **_finish(turn, event))
    if with_usage:
        yield frame({**head, "choices": [], "usage": openai_usage(turn)})
    yield DONE


def _finish(turn: Turn, ended: Ended) -> dict[str, Any]:
    details = finish_details(turn, ended)
    return {
        "finish_reason": ended.reason,
        **({"finish_details": details} if details is not None else {}),
    }


def _delta(piece: Piece) -> dict[str, Any] | None:
    match piece:
        case Content(text):
            return {"content": text}
        case Reasoning(text):
            return {"reasoning_content": text}
        case ToolCallStart(index=index, id=call_id, name=name):
            function = {"name": name, "arguments": ""}
            call = {"index": index, "id": call_id, "type": "function", "function": function}
            return {"tool_calls": [call]}
        case ToolCallArguments(index=index, fragment=fragment):
            return {"tool_calls": [{"index": index, "function": {"arguments": fragment}}]}
    return None
