"""A whole answer from a turn's events, and the numbers that go with it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from engine.api.logprobs import Row
from engine.api.turn import Delta, Ended, Turn
from engine.pieces import Content, Piece, Reasoning, ToolCallArguments, ToolCallStart


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call; `arguments` is JSON text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Answer:
    """One choice, whole; `parts` are its reasoning, texts and calls in the order they came."""

    parts: tuple[Reasoning | Content | Call, ...]
    end: Ended
    logprobs: tuple[Row, ...] = ()

    @property
    def content(self) -> str:
        """All text meant for the reader."""
        return "".join(p.text for p in self.parts if isinstance(p, Content))

    @property
    def reasoning(self) -> str:
        """All thinking."""
        return "".join(p.text for p in self.parts if isinstance(p, Reasoning))

    @property
    def calls(self) -> list[Call]:
        """All tool calls."""
        return [p for p in self.parts if isinstance(p, Call)]


async def gather(turn: Turn) -> list[Answer]:
    """All choices of a turn once they are whole."""
    deltas: list[list[Delta]] = [[] for _ in turn.choices]
    ends: dict[int, Ended] = {}
    async for event in turn.events():
        if isinstance(event, Delta):
            deltas[event.choice].append(event)
        elif isinstance(event, Ended):
            ends[event.choice] = event
    return [
        Answer(
            tuple(_parts(found)), ends[i], tuple(row for delta in found for row in delta.logprobs)
        )
        for i, found in enumerate(deltas)
    ]


def _parts(deltas: list[Delta]) -> Iterator[Reasoning | Content | Call]:
    """Pieces put together: neighbouring ones of a kind, and all of one call."""
    for kind, group in itertools.groupby((d.piece for d in deltas), _kind):
        pieces = list(group)
        if kind is Reasoning or kind is Content:
            yield kind("".join(p.text for p in pieces if isinstance(p, (Reasoning, Content))))
            continue
        start = next(p for p in pieces if isinstance(p, ToolCallStart))
        fragments = (p.fragment for p in pieces if isinstance(p, ToolCallArguments))
        yield Call(start.id, start.name, "".join(fragments))


def _kind(piece: Piece) -> Any:
    return type(piece) if isinstance(piece, (Reasoning, Content)) else piece.index


def timings(turn: Turn) -> dict[str, Any]:
    """Times of a turn that has ended, under Lucebox Hub's names; milliseconds and tokens a second."""
    usage = turn.usage()
    first = usage.first_token_s
    found: dict[str, Any] = {
        "prefill_ms": round(usage.prefill_s * 1e3, 1),
        "decode_ms": round(usage.decode_s * 1e3, 1),
        "first_token_ms": round(first * 1e3, 1) if first is not None else None,
        "prefill_tokens_per_sec": _rate(usage.prefill_rate),
        "decode_tokens_per_sec": _rate(usage.decode_rate),
        "cache_hit": usage.reused_tokens > 0,
        "agent_turn_cache_hit": usage.reused_answer,
        "cached_prefix_tokens": usage.reused_tokens,
        "prefilled_tokens": usage.prompt_tokens - usage.reused_tokens,
        "effective_prompt_tokens": usage.prompt_tokens,
    }
    if usage.drafted_tokens:
        # Each pass writes the accepted tokens and one more.
        passes = max(1, usage.completion_tokens - usage.accepted_tokens)
        found["acceptance_length"] = round(usage.completion_tokens / passes, 2)
        found["accept_rate"] = round(usage.accepted_tokens / usage.drafted_tokens, 4)
    if usage.switches:
        found["speculation"] = [switch.text for switch in usage.switches]
    return found


def finish_details(turn: Turn, ended: Ended) -> dict[str, Any] | None:
    """How thinking ended, where a budget was asked for, and whether the model only repeated itself."""
    usage, thinking = ended.end.usage, turn.choices[ended.choice].ask.thinking
    asked = (thinking.effort, thinking.budget, thinking.reply_budget) != (None, None, None)
    if not asked and not ended.end.loop:
        return None
    found = {
        "close_kind": "hard" if ended.end.thinking_cut else "natural",
        "thinking_tokens": usage.reasoning_tokens,
        "content_tokens": usage.completion_tokens - usage.reasoning_tokens,
        "total_tokens": usage.completion_tokens,
    }
    return {**found, "degenerate_decode": True} if ended.end.loop else found


def openai_usage(turn: Turn) -> dict[str, Any]:
    """`usage` of a turn that has ended, in the form of chat and text completions."""
    usage = turn.usage()
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.reused_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "timings": timings(turn),
    }


def _rate(value: float | None) -> float | None:
    return round(value, 1) if value is not None else None
