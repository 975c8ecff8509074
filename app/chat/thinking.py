"""The reasoning part of an answer, told from the answer by its marks."""

from __future__ import annotations

from typing import NamedTuple

OPEN = "<think>"
CLOSE = "</think>"
SUMMARY_LENGTH = 120


class Parts(NamedTuple):
    """An answer in two parts; `open` while the thinking has not ended; `at` is where the answer starts."""

    thinking: str
    answer: str
    open: bool
    at: int


def split_thinking(text: str) -> Parts:
    """Split at the marks; a closing mark alone ends thinking that the prompt's template began.

    Only a mark at the start of the text opens thinking, so an answer may write about the marks.
    """
    body = text.lstrip()
    lead = len(text) - len(body)
    begins = body.startswith(OPEN)
    start = lead + len(OPEN) if begins else lead
    end = text.find(CLOSE, start)
    if begins and end < 0:
        return Parts(text[start:], "", True, len(text))
    if end < 0 or (not begins and _quoted(text, end)):
        return Parts("", text, False, 0)
    return Parts(text[start:end], text[end + len(CLOSE) :], False, end + len(CLOSE))


def _quoted(text: str, at: int) -> bool:
    """Whether a mark stands inside code, where it is part of what the answer talks about."""
    line = text.rfind("\n", 0, at) + 1
    return text.count("```", 0, at) % 2 == 1 or text.count("`", line, at) % 2 == 1


def summary(thinking: str) -> str:
    """One line for the folded state: the last line with words, its marks of Markdown taken off."""
    lines = (line.strip("#>*`- \t") for line in reversed(thinking[-2000:].splitlines()))
    line = next((s for s in lines if any(c.isalnum() for c in s)), "")
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1] + "…"
