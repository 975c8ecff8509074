"""What an answer is made of once reasoning, text and tool calls are told apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby


class Part(StrEnum):
    """Where in an answer its last text belongs."""

    REASONING = "reasoning"
    CONTENT = "content"
    TOOL_CALL = "tool_call"


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Text that the model thinks before it answers."""

    text: str


@dataclass(frozen=True, slots=True)
class Content:
    """Text that is meant for the reader."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallStart:
    """A call begins; `index` counts the calls of an answer from 0, and `name` is a declared tool."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolCallArguments:
    """More of a call's arguments; its fragments joined are the JSON text of an object."""

    index: int
    fragment: str


@dataclass(frozen=True, slots=True)
class ToolCallEnd:
    """A call ended; not `complete` where it was cut off or its arguments are no JSON object."""

    index: int
    complete: bool = True


Piece = Reasoning | Content | ToolCallStart | ToolCallArguments | ToolCallEnd


def merged(pieces: Iterable[Piece]) -> list[Piece]:
    """`pieces` with neighbours of one kind joined, and without empty ones."""
    out: list[Piece] = []
    for kind, group in groupby(filter(_is_more, pieces), _kind):
        first, *others = group
        if not others or kind is None:
            out += (first, *others)
        elif isinstance(first, ToolCallArguments):
            fragments = (p.fragment for p in others if isinstance(p, ToolCallArguments))
            out.append(ToolCallArguments(first.index, first.fragment + "".join(fragments)))
        elif isinstance(first, (Reasoning, Content)):
            texts = (p.text for p in others if isinstance(p, (Reasoning, Content)))
            out.append(type(first)(first.text + "".join(texts)))
    return out


def _is_more(piece: Piece) -> bool:
    match piece:
        case Reasoning(text) | Content(text) | ToolCallArguments(_, text):
            return bool(text)
    return True


def _kind(piece: Piece) -> type[Piece] | int | None:
    """The same for pieces that can be joined; None for what cannot."""
    match piece:
        case Reasoning() | Content():
            return type(piece)
        case ToolCallArguments(index):
            return index
    return None
