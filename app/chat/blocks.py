"""The pieces of a text that is still growing: only its open end is ever read again."""

from __future__ import annotations

import re
from dataclasses import replace

from app.chat.markdown import Kind, Markdown, Piece, Span, clean, linked

_FENCED = re.compile(
    r"^(?P<mark>```+|~~~+)(?P<info>[^\n`]*)\n(?P<code>.*?)(?:^(?P<end>(?P=mark))[ \t]*$\n?|\Z)",
    re.MULTILINE | re.DOTALL,
)
_PARAGRAPH = re.compile(r"(?:[^\n]|\n(?![ \t]*(?:\n|\Z)))+")

_Found = list[tuple[int, list[Piece]]]


class Blocks:
    """The pieces of a text that may still grow.

    Blocks that nothing behind them can change any more are kept. A paragraph without end is cut at
    `LONGEST` characters, so that reading the open end stays cheap. With `plain`, the text is shown as
    it was typed, and only fenced code is told apart. `starts` has for each piece where its block begins.
    """

    LONGEST = 8192

    def __init__(self, plain: bool = False) -> None:
        self.pieces: list[Piece] = []
        self.starts: list[int] = []
        self._plain = plain
        self._clear()

    def _clear(self) -> None:
        self._markdown = Markdown()
        self._text = ""
        self._at = 0
        self._kept = 0
        self._fence = ""

    def update(self, text: str) -> int:
        """Take the whole text as it is now; returns the index of the first piece that may differ."""
        if self._fence and text.startswith(self._text) and self._extend(text):
            return self._kept
        if not text.startswith(self._text[: self._at]):
            self._clear()
        kept = self._kept
        self._text = text
        found = self._read(len(text))
        while len(text) - self._at > self.LONGEST and found and _endless(found[-1][1]):
            self._advance(found)
            if len(text) - self._at <= self.LONGEST:
                break
            end = self._cut(text)
            found = self._read(end)
            self._keep([p for _, pieces in found for p in pieces], self._at, end)
            found = self._read(len(text))
        self._advance(found)
        self._put(found[-1][1] if found else [], self._at)
        self._note_fence()
        return kept

    def _note_fence(self) -> None:
        """Remember the marks of code that is being written at the end."""
        tail = self._text[self._at :]
        last = self.pieces[-1] if self.pieces else None
        opened = last is not None and last.kind is Kind.CODE and not last.closed
        single = len(self.pieces) == self._kept + 1 and tail[:3] in ("```", "~~~")
        self._fence = tail[:3] if opened and single and "\n" in tail else ""

    def _extend(self, text: str) -> bool:
        """Put new lines to open code without reading it again; false if they may end it."""
        line = self._text.rfind("\n") + 1
        if self._fence in text[line:] or "\r" in text[line:]:
            return False
        self._text = text
        code = clean(text[text.index("\n", self._at) + 1 :]).removesuffix("\n")
        self.pieces[-1] = replace(self.pieces[-1], code=code)
        return True

    def _advance(self, found: _Found) -> None:
        """Keep all blocks but the last, which may still grow."""
        start = self._at
        for offset, pieces in found[:-1]:
            self._keep(pieces, start + offset, self._at)
        if found:
            self._at = start + found[-1][0]
            self._markdown.keep(found[-1][0])

    def _put(self, pieces: list[Piece], start: int) -> None:
        self.pieces[self._kept :] = pieces
        self.starts[self._kept :] = [start] * len(pieces)

    def _keep(self, pieces: list[Piece], start: int, at: int) -> None:
        self._put(pieces, start)
        self._kept = len(self.pieces)
        self._at = at

    def _cut(self, text: str) -> int:
        end = self._at + self.LONGEST
        space = max(text.rfind(" ", self._at, end), text.rfind("\n", self._at, end)) + 1
        return space if space > end - self.LONGEST // 4 else end

    def _read(self, end: int) -> _Found:
        text = clean(self._text[self._at : end])
        return _plain(text) if self._plain or _heavy(text) else self._markdown.read(text)


def _heavy(text: str) -> bool:
    """Whether marks repeat as in a model that loops; reading them takes time that grows as a square."""
    return text.count("[") > 256 or text.count("*") + text.count("_") > 1024


def _endless(pieces: list[Piece]) -> bool:
    return len(pieces) == 1 and pieces[0].kind is Kind.TEXT and not pieces[0].depth


def _plain(text: str) -> _Found:
    found: _Found = []
    at = 0
    for match in _FENCED.finditer(text):
        found += _paragraphs(text, at, match.start())
        code = match["code"].removesuffix("\n")
        words = match["info"].split()
        piece = Piece(
            Kind.CODE, code=code, language=words[0] if words else "", closed=bool(match["end"])
        )
        found.append((match.start(), [piece]))
        at = match.end()
    return found + _paragraphs(text, at, len(text))


def _paragraphs(text: str, start: int, end: int) -> _Found:
    found: _Found = []
    for match in _PARAGRAPH.finditer(text, start, end):
        if words := match[0].strip("\n"):
            found.append((match.start(), [Piece(Kind.TEXT, tuple(linked(words, Span(""))))]))
    return [f for f in found if f[1][0].text.strip()]
