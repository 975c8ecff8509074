"""Full-text search over all chats: what a query means, and the line of text shown for a hit."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

# The index holds groups of three letters, so that parts of words are found in scripts without spaces.
INDEXED_LENGTH = 3
BEFORE, AFTER = 24, 90


@dataclass(frozen=True, slots=True)
class Hit:
    """A message (or, with no `message`, a title) that a query found; `marks` are ranges of `snippet`."""

    chat: str
    message: str | None
    snippet: str
    marks: tuple[tuple[int, int], ...]


def normal(text: str) -> str:
    """Composed letters, as a keyboard gives them, whatever way a file spelled them."""
    return unicodedata.normalize("NFC", text)


def terms_of(query: str) -> list[str]:
    """The words of a query; a part in double quotes is one term. All must occur."""
    terms: list[str] = []
    for i, part in enumerate(normal(query).replace("\0", " ").split('"')):
        terms += [" ".join(part.split())] if i % 2 else part.split()
    return [t for t in terms if t]


def condition(terms: list[str], column: str, index: str) -> tuple[str, list[str]]:
    """SQL that is true for rows of `column` (indexed as `index`) that hold all terms, and its values."""
    parts: list[str] = []
    values: list[str] = []
    long = [t for t in terms if len(t) >= INDEXED_LENGTH]
    if long:
        quoted = ('"' + t.replace('"', '""') + '"' for t in long)
        parts.append(f"{index} MATCH ?")
        values.append(" AND ".join(quoted))
    for term in terms:
        if len(term) < INDEXED_LENGTH:
            parts.append(f"{column} LIKE ? ESCAPE '\\'")
            values.append(f"%{like(term)}%")
    return " AND ".join(parts) or "0", values


def like(term: str) -> str:
    """A term with the wildcards of LIKE taken literally."""
    return term.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def snippet(text: str, terms: list[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """One line around the first match, and the ranges of it that match."""
    # lower() may change lengths ("İ"); then marks would be off, so such text is matched as it stands.
    low = text.lower()
    if len(low) != len(text):
        low = text
    wanted = [t.lower() for t in terms]
    first = min((p for t in wanted if (p := low.find(t)) >= 0), default=0)
    start = max(0, first - BEFORE)
    if start and (space := text.find(" ", start, first)) >= 0:
        start = space + 1
    line = "".join(" " if c.isspace() else c for c in text[start : first + AFTER])
    lead = "…" if start else ""
    tail = "…" if first + AFTER < len(text) else ""
    shown = lead + line + tail
    low = shown.lower()
    if len(low) != len(shown):
        low = shown
    marks: list[tuple[int, int]] = []
    for term in wanted:
        at = low.find(term)
        while at >= 0:
            marks.append((at, at + len(term)))
            at = low.find(term, at + len(term))
    return shown, tuple(sorted(marks))
