"""`lucebox generate`: what its flags ask of the engine, and how its answer is written."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from engine.arguments import read_json, read_text
from engine.config import SamplingParams
from engine.engine import Engine
from engine.errors import BadRequest, EngineError
from engine.follow import follow
from engine.pieces import Content, Piece, Reasoning, ToolCallArguments, ToolCallStart, merged
from engine.reasoning import Thinking
from engine.toolcalls.calls import declared
from engine.types import (
    Finished,
    FinishReason,
    Format,
    ModelInfo,
    Request,
    Switched,
    TextDelta,
    TokenLogprob,
    ToolChoice,
    Usage,
    Verified,
)

if TYPE_CHECKING:
    from engine.cli import Console


def wishes(args: argparse.Namespace) -> dict[str, Any]:
    """Fields of `Request` from the flags; `BadRequest` where they do not fit each other."""
    if args.logprobs is not None and not args.json:
        raise BadRequest("--logprobs are part of the JSON output; add --json.")
    thinking = Thinking(effort=args.reasoning_effort, budget=args.thinking_budget)
    tools = _tools(args.tools) if args.tools is not None else None
    for flag, given in (
        ("--tools", tools),
        ("--reasoning-effort", args.reasoning_effort),
        ("--thinking-budget", args.thinking_budget),
    ):
        if given is not None and not args.chat:
            raise BadRequest(f"{flag} is for chats; add --chat.")
    if args.tool_choice is not None and tools is None:
        raise BadRequest("--tool-choice chooses among tools; add --tools.")
    choice = args.tool_choice or "auto"
    named = choice not in ("auto", "none", "required")
    return {
        "format": _format(args),
        "tools": tools,
        "tool_choice": ToolChoice("required", (choice,)) if named else ToolChoice(choice),
        "thinking": thinking,
        "logprobs": args.logprobs,
    }


def _format(args: argparse.Namespace) -> Format | None:
    if args.json_schema is not None:
        return Format("json_schema", read_json(args.json_schema))
    if args.regex is not None:
        return Format("regex", args.regex)
    if args.grammar is not None:
        return Format("lark", read_text(args.grammar))
    return None


def _tools(source: str) -> list[Any]:
    found = read_json(source)
    if not isinstance(found, list) or len(declared(found)) != len(found):
        raise BadRequest(
            f'{source}: expected a JSON list of tools with names of their own, such as {{"type": "function",'
            ' "function": {"name": "add", "parameters": {"type": "object"}}}.'
        )
    return [
        tool if "function" in tool else {"type": "function", "function": tool} for tool in found
    ]


def request_of(
    args: argparse.Namespace, prompt: str | None, ids: list[int] | None, sampling: SamplingParams
) -> Request:
    """The request that a command line makes."""
    if not args.chat:
        return Request(text=prompt, ids=ids, sampling=sampling, **wishes(args))
    messages = [{"role": "system", "content": args.system}] if args.system else []
    messages.append({"role": "user", "content": prompt or ""})
    return Request(messages=messages, sampling=sampling, **wishes(args))


def write_answer(
    engine: Engine, request: Request, info: ModelInfo, as_json: bool, console: Console
) -> None:
    """Run a request and write what comes; its text as the model writes it, or one JSON object.

    `EngineError`, behind all of it, where that is not of the form that was asked for.
    """
    text: list[str] = []
    ids: list[int] = []
    pieces: list[Piece] = []
    logprobs: list[TokenLogprob] = []
    drafts: list[Verified] = []
    for event in follow(engine, request):
        if isinstance(event, Verified):
            drafts.append(event)
        if isinstance(event, Switched):
            console.say(event.switch.text)
        if isinstance(event, TextDelta):
            text.append(event.text)
            ids.extend(event.tokens)
            pieces.extend(event.pieces)
            logprobs.extend(event.logprobs)
            if not as_json and event.text:
                console.data(event.text, end="")
        if isinstance(event, Finished):
            end = event
    usage = end.usage
    if as_json:
        facts: dict[str, Any] = {
            "text": "".join(text),
            "ids": ids,
            "finish_reason": end.reason.value,
            "stop": end.stop,
            "context_full": end.context_full,
            "loop": end.loop,
            "form_cut": end.form_cut,
            "prompt_tokens": usage.prompt_tokens,
            "reused_tokens": usage.reused_tokens,
            "completion_tokens": usage.completion_tokens,
            "first_token_s": usage.first_token_s,
            "prefill_tok_s": usage.prefill_rate,
            "decode_tok_s": usage.decode_rate,
            "tokens": ids,
            **_drafting(engine, drafts, usage),
            "model": info.name,
        }
        if request.messages is not None:
            facts |= _meaning(merged(pieces))
            facts["reasoning_tokens"] = usage.reasoning_tokens
        if request.logprobs is not None:
            facts["logprobs"] = [_row(one) for one in logprobs]
        console.json(facts)
    elif sys.stdout.isatty():
        console.data("")
    rate = f", {usage.decode_rate:.1f} tok/s" if usage.decode_rate else ""
    first = f", first after {usage.first_token_s:.2f} s" if usage.first_token_s else ""
    console.say(
        f"[{usage.prompt_tokens} tokens read, {usage.completion_tokens} written{rate}{first}{_cut(end)}.]"
    )
    if end.form_cut:
        raise EngineError(f"The answer lacks a part of the form that was asked for{_cut(end)}.")


def _drafting(engine: Engine, drafts: list[Verified], usage: Usage) -> dict[str, Any]:
    """What drafts were worth for one answer."""
    metrics = engine.metrics().speculation
    accepted = sum(d.accepted for d in drafts)
    return {
        "drafter": metrics.drafter if metrics else None,
        "acceptance_length": 1 + accepted / len(drafts) if drafts else None,
        "steps": [{"drafted": d.drafted, "accepted": d.accepted} for d in drafts],
        "speedup": metrics.speedup if metrics else None,
        "speculation": [{**asdict(s), "text": s.text} for s in usage.switches],
    }


def _cut(end: Finished) -> str:
    """What ended an answer that did not end itself."""
    if end.stop is not None:
        return f"; the stop string {end.stop!r} ended it"
    if end.loop:
        return "; it only repeated itself and was ended, which a --repetition-penalty may avoid"
    if end.reason is not FinishReason.LENGTH:
        return "; it ended in the middle of its thinking" if end.form_cut else ""
    if end.context_full:
        return "; the context is full, which a higher --max-ctx may avoid"
    return "; the length limit ended it, which a higher --max-tokens avoids"


def _meaning(pieces: list[Piece]) -> dict[str, Any]:
    """Content, reasoning and tool calls, as OpenAI's chats name them."""
    names = {p.index: p for p in pieces if isinstance(p, ToolCallStart)}
    arguments = dict.fromkeys(names, "")
    for piece in pieces:
        if isinstance(piece, ToolCallArguments):
            arguments[piece.index] += piece.fragment
    return {
        "content": "".join(p.text for p in pieces if isinstance(p, Content)),
        "reasoning_content": "".join(p.text for p in pieces if isinstance(p, Reasoning)),
        "tool_calls": [
            {"id": p.id, "name": p.name, "arguments": arguments[i]} for i, p in names.items()
        ],
    }


def _row(one: TokenLogprob) -> dict[str, Any]:
    row = dict(_entry(one))
    row["part"] = one.part.value
    return row | {"top": [dict(_entry(other)) for other in one.top]}


def _entry(one: TokenLogprob) -> Iterator[tuple[str, Any]]:
    yield "id", one.token
    yield "token", one.data.decode("utf-8", "replace")
    yield "bytes", list(one.data)
    yield "logprob", max(one.logprob, -9999.0)
