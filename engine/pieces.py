"""What an answer is made of once reasoning, text and tool calls are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


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


def merged(pieces: list[Piece]) -> list[Piece]:
    """`pieces` with neighbours of one kind joined, and without empty ones."""
    out: list[Piece] = []
    for piece in pieces:
        match out[-1] if out else None, piece:
            case _, Reasoning("") | Content("") | ToolCallArguments(_, ""):
                pass
            case Reasoning(a), Reasoning(b):
                out[-1] = Reasoning(a + b)
            case Content(a), Content(b):
                out[-1] = Content(a + b)
            case ToolCallArguments(i, a), ToolCallArguments(j, b) if i == j:
                out[-1] = ToolCallArguments(i, a + b)
            case _:
                out.append(piece)
    return out
