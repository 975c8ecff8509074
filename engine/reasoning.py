"""The reasoning part of an answer: its marks, and how it is told from the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Marks:
    """What stands around reasoning; `anywhere` where it may begin in the middle of an answer.

    Marks that a model may quote open reasoning at the start of an answer only.
    """

    open: str
    close: str
    anywhere: bool = False


THINK = Marks("<think>", "</think>")
MARKS = (
    THINK,  # Qwen, DeepSeek, Laguna, Ling
    Marks("<|channel>thought", "<channel|>", anywhere=True),  # Gemma 4
    Marks("[THINK]", "[/THINK]"),  # Mistral
)


@dataclass(frozen=True, slots=True)
class Thinking:
    """How much a request lets the model think; None leaves it to the model and its card.

    `effort` is one of `EFFORTS`; `budget` and `reply_budget` are tokens for thinking and for the answer
    behind it. Any of the three makes the engine end thinking in time.
    """

    enabled: bool | None = None
    effort: str | None = None
    budget: int | None = None
    reply_budget: int | None = None


class Parts(NamedTuple):
    """An answer in two parts; `open` while the thinking has not ended; `at` is where the answer starts."""

    thinking: str
    answer: str
    open: bool
    at: int


def opened_by(prompt: str) -> Marks | None:
    """The marks whose opening one ends a prompt, so that the answer begins inside reasoning."""
    tail = prompt.rstrip()
    return next((marks for marks in MARKS if tail.endswith(marks.open)), None)


def split_thinking(text: str) -> Parts:
    """Split a whole text; a closing mark alone ends thinking that the prompt's template began.

    Only a mark at the start of the text opens thinking, so an answer may write about the marks.
    """
    body = text.lstrip()
    lead = len(text) - len(body)
    marks = next((m for m in MARKS if body.startswith(m.open)), None)
    if marks is not None:
        start = lead + len(marks.open)
        end = text.find(marks.close, start)
        if end < 0:
            return Parts(text[start:], "", True, len(text))
    else:
        marks, start = THINK, lead
        end = text.find(marks.close, start)
        if end < 0 or _quoted(text, end):
            return Parts("", text, False, 0)
    at = end + len(marks.close)
    return Parts(text[start:end], text[at:], False, at)


def _quoted(text: str, at: int) -> bool:
    """Whether a mark stands inside code, where it is part of what the answer talks about."""
    line = text.rfind("\n", 0, at) + 1
    return text.count("```", 0, at) % 2 == 1 or text.count("`", line, at) % 2 == 1
