"""The reasoning part of an answer, folded to a line."""

from __future__ import annotations

SUMMARY_LENGTH = 120


def summary(thinking: str) -> str:
    """One line for the folded state: the last line with words, its marks of Markdown taken off."""
    lines = (line.strip("#>*`- \t") for line in reversed(thinking[-2000:].splitlines()))
    line = next((s for s in lines if any(c.isalnum() for c in s)), "")
    return line if len(line) <= SUMMARY_LENGTH else line[: SUMMARY_LENGTH - 1] + "…"
