"""`/v1/responses`: OpenAI's Responses dialect."""

from __future__ import annotations

import itertools
import time
from collections.abc import AsyncIterator
from typing import Any, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field

from engine.api.errors import ApiError, as_api_error, openai_body, refused
from engine.api.gather import finish_details, timings
from engine.api.messages import tool_choice
from engine.api.responses_input import (
    InputItem,
    ResponsesTool,
    chat_messages,
    chat_tools,
    listed,
)
from engine.api.responses_output import Output
from engine.api.responses_store import ResponseStore
from engine.api.schemas import (
    MOST_ALTERNATIVES,
    Body,
    Many,
    PromptCacheOptions,
    SamplingFields,
    Tier,
    refuse_all,
)
from engine.api.turn import LENGTH, STREAMS, Ask, Delta, Ended, Turn, respond
from engine.api.wire import JsonResponse, frame
from engine.types import Format

router = APIRouter()

_REFUSED = {
    "background": "this server answers at once; leave it out",
    "conversation": "this server keeps no conversations; use previous_response_id",
    "prompt": "this server keeps no prompts",
    "max_tool_calls": "this server runs no tools of its own",
    "context_management": "this server compacts nothing",
    "background_options": "this server answers at once; leave it out",
    "moderation": "this server moderates nothing",
    "access_programs": "this server has none",
    "image": "models read text only",
}
_REASONING = "reasoning.encrypted_content"
_LOGPROBS = "message.output_text.logprobs"


class TextFormat(Body):
    """The form of an answer."""

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    description: str | None = None
    strict: bool | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")


class TextField(Body):
    """How the text of an answer shall be."""

    format: TextFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class StreamOptions(Body):
    """Of a stream; there is nothing to obfuscate here."""

    include_obfuscation: bool | None = None


class ResponsesBody(SamplingFields):
    """A request for a response."""

    model: str = ""
    input: str | Many[InputItem] = ""
    instructions: str | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    max_output_tokens: int | None = Field(None, ge=1, le=16_777_216)
    tools: Many[ResponsesTool] | None = None
    tool_choice: Literal["auto", "none", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    text: TextField | None = None
    previous_response_id: str | None = None
    store: bool | None = None
    include: list[str] | None = None
    top_logprobs: int | None = Field(None, ge=0, le=MOST_ALTERNATIVES)
    truncation: Literal["auto", "disabled"] | None = None
    metadata: dict[str, str] | None = None
    client_metadata: dict[str, Any] | None = None
    user: str | None = None
    service_tier: Tier | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: PromptCacheOptions | None = None
    prompt_cache_retention: str | None = None
    background: bool | None = None
    conversation: str | dict[str, Any] | None = None
    prompt: dict[str, Any] | None = None
    max_tool_calls: int | None = None
    context_management: list[dict[str, Any]] | None = None
    background_options: dict[str, Any] | None = None
    moderation: dict[str, Any] | None = None
    access_programs: dict[str, Any] | None = None
    image: dict[str, Any] | None = None

    def own_input(self) -> list[dict[str, Any]]:
        """The items of this request alone."""
        if isinstance(self.input, str):
            return (
                [{"type": "message", "role": "user", "content": self.input}] if self.input else []
            )
        return [item.model_dump(exclude_none=True) for item in self.input]

    def ask(self, items: list[dict[str, Any]]) -> Ask:
        """What is asked for, with all items of the conversation; `ApiError` for what cannot be honoured."""
        refuse_all({k: v or None for k, v in self.__dict__.items()}, _REFUSED)
        if self.truncation == "auto":
            raise refused("truncation", "nothing is cut silently here; shorten the input")
        if self.text is not None and self.text.verbosity in ("low", "high"):
            raise refused(
                "text.verbosity", "local models have no such setting; say it in the prompt"
            )
        for n, name in enumerate(self.include or ()):
            if name not in (_REASONING, _LOGPROBS):
                raise refused(f"include.{n}", f"{name[:60]!r} is not known here")
        tools = chat_tools(self.tools)
        sampling = self.sampling()
        if self.max_output_tokens is not None:
            sampling["max_tokens"] = self.max_output_tokens
        wants_rows = self.top_logprobs is not None or _LOGPROBS in (self.include or ())
        return Ask(
            model=self.model,
            messages=chat_messages(self.instructions, items),
            sampling=sampling,
            tools=tools,
            tool_choice=tool_choice(self.tool_choice, tools),
            parallel_tool_calls=self.parallel_tool_calls is not False,
            format=_format(self.text.format if self.text else None),
            thinking=self.thought(),
            template_kwargs=self.chat_template_kwargs or {},
            logprobs=(self.top_logprobs or 0) if wants_rows else None,
            **self.caching(),
        )


@router.post("/v1/responses", responses=STREAMS)
async def create_response(body: ResponsesBody, request: Request) -> Response:
    """Write a response."""
    store: ResponseStore = request.app.state.responses
    own = [
        store.item(item, f"input.{n}.id") if item["type"] == "item_reference" else item
        for n, item in enumerate(body.own_input())
    ]
    before: list[dict[str, Any]] = []
    if body.previous_response_id is not None:
        before = store.find(body.previous_response_id, "previous_response_id").conversation

    async def written(turn: Turn) -> AsyncIterator[dict[str, Any]]:
        """All events; the last one holds the response."""
        output = Output(turn.id, _REASONING in (body.include or ()))
        opened = _response(turn, body, "in_progress", [])
        yield {"type": "response.created", "response": opened}
        yield {"type": "response.in_progress", "response": opened}
        try:
            async for event in turn.events():
                if isinstance(event, Delta):
                    for told in output.take(event.piece, event.logprobs):
                        yield told
                elif isinstance(event, Ended):
                    status = "incomplete" if event.reason == LENGTH else "completed"
                    for told in output.finish(status):
                        yield told
                    response = _response(turn, body, status, output.items, event)
                    if body.store is not False:
                        store.keep(response, own, before)
                    yield {"type": f"response.{status}", "response": response}
        except Exception as error:
            if not body.stream:
                raise
            request.state.visit.fault = "failed"
            failed = _response(turn, body, "failed", output.items)
            facts = openai_body(as_api_error(error))["error"]
            failed["error"] = {"code": facts["code"] or "server_error", "message": facts["message"]}
            yield {"type": "response.failed", "response": failed}

    async def whole(turn: Turn) -> dict[str, Any]:
        events = [event async for event in written(turn)]
        response: dict[str, Any] = events[-1]["response"]
        return response

    async def frames(turn: Turn) -> AsyncIterator[bytes]:
        numbers = itertools.count()
        async for event in written(turn):
            yield frame({**event, "sequence_number": next(numbers)}, event["type"])

    return await respond(request, [body.ask([*before, *own])], body.stream, whole, frames, _failure)


@router.get("/v1/responses/{response_id}")
async def get_response(response_id: str, request: Request, stream: bool = False) -> Response:
    """A response that was kept."""
    if stream:
        raise refused("stream", "a response that is kept is told whole")
    return JsonResponse(request.app.state.responses.find(response_id).response)


@router.get("/v1/responses/{response_id}/input_items")
async def list_input_items(
    response_id: str,
    request: Request,
    order: Literal["asc", "desc"] = "desc",
    limit: int = Query(20, ge=1, le=100),
    after: str | None = None,
) -> Response:
    """What a kept response answered; the newest first, as OpenAI's server has it."""
    items = [
        {"id": f"in_{response_id[5:]}{n:02x}", **listed(item)}
        for n, item in enumerate(request.app.state.responses.find(response_id).own_input)
    ]
    if order == "desc":
        items.reverse()
    begin = next((n for n, item in enumerate(items, 1) if item["id"] == after), 0)
    page = items[begin : begin + limit]
    ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {}
    more = begin + limit < len(items)
    return JsonResponse({"object": "list", "data": page, "has_more": more, **ends})


@router.delete("/v1/responses/{response_id}")
async def delete_response(response_id: str, request: Request) -> Response:
    """Forget a response."""
    request.app.state.responses.delete(response_id)
    return JsonResponse({"id": response_id, "object": "response", "deleted": True})


def _failure(error: ApiError) -> bytes:
    facts = openai_body(error)["error"]
    return frame({**facts, "type": "error", "sequence_number": 0}, "error")


def _format(given: TextFormat | None) -> Format | None:
    if given is None or given.type == "text":
        return None
    if given.type == "json_object":
        return Format("json_object")
    if given.schema_ is None:
        raise refused("text.format.schema", "expected a JSON schema, an object")
    return Format("json_schema", given.schema_)


def _response(
    turn: Turn,
    body: ResponsesBody,
    status: str,
    items: list[dict[str, Any]],
    ended: Ended | None = None,
) -> dict[str, Any]:
    sampling = body.sampling()
    text = {"format": {"type": "text"}}
    if body.text is not None and body.text.format is not None:
        text["format"] = body.text.format.model_dump(by_alias=True, exclude_none=True)
    found: dict[str, Any] = {
        "id": f"resp_{turn.id}",
        "object": "response",
        "created_at": turn.created,
        "completed_at": int(time.time()) if ended else None,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "metadata": body.metadata or {},
        "model": turn.model,
        "output": items,
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": body.previous_response_id,
        "reasoning": {
            "effort": body.reasoning.effort if body.reasoning else None,
            "summary": None,
        },
        "service_tier": "default",
        "store": body.store is not False,
        "temperature": sampling.get("temperature", turn.usual.temperature),
        "text": text,
        "tool_choice": body.tool_choice or "auto",
        "tools": [tool.model_dump() for tool in body.tools or ()],
        "top_logprobs": body.top_logprobs or 0,
        "top_p": sampling.get("top_p", turn.usual.top_p),
        "truncation": "disabled",
        "usage": _usage(turn) if ended else None,
        "user": body.user,
    }
    details = finish_details(turn, ended) if ended else None
    return {**found, "finish_details": details} if details is not None else found


def _usage(turn: Turn) -> dict[str, Any]:
    usage = turn.usage()
    return {
        "input_tokens": usage.prompt_tokens,
        "input_tokens_details": {"cached_tokens": usage.reused_tokens},
        "output_tokens": usage.completion_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "timings": timings(turn),
    }
