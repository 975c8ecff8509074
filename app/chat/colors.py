"""Which parts of a program text are keywords, strings, numbers, comments and names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType

# A range of one colour: start, length (in characters), name of the colour.
Mark = tuple[int, int, str]
_PLAIN = frozenset({"", "text", "plain", "plaintext", "txt", "output", "console", "none"})


class Lexers(QObject):
    """Knows a language by its name; a language's rules are made ready on a thread, which takes a while.

    Signals:
        ready: a language that was asked for can be used now.
    """

    ready = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = ThreadPoolExecutor(1, "lexers")
        self._known: dict[str, Lexer | None] = {}
        self._asked: set[str] = set()

    def get(self, language: str) -> Lexer | None:
        """The lexer of a language; None if there is none, or not yet (then `ready` follows)."""
        name = language.lower()
        if name in _PLAIN:
            return None
        if name not in self._known and name not in self._asked:
            self._asked.add(name)
            self._pool.submit(self._load, name)
        return self._known.get(name)

    def _load(self, name: str) -> None:
        try:
            self._known[name] = _make(name)
        except Exception:
            self._known[name] = None
        if self._known[name] is not None:
            self.ready.emit(name)


def _make(name: str) -> Lexer | None:
    from pygments.lexers import find_lexer_class, get_all_lexers

    # Plugins are left out: looking for them reads all installed packages.
    titles = {alias: row[0] for row in get_all_lexers(plugins=False) for alias in row[1]}
    found = find_lexer_class(titles[name]) if name in titles else None
    if found is None:
        return None
    lexer: Lexer = found(stripnl=False, ensurenl=False)
    list(lexer.get_tokens_unprocessed("x = 1\n"))
    return lexer


class Coloring:
    """Marks of one text in order, made only as far as they are asked for."""

    def __init__(self, lexer: Lexer, text: str) -> None:
        self._tokens: Iterator[tuple[int, _TokenType, str]] = lexer.get_tokens_unprocessed(text)
        self._ahead: tuple[int, int, str] | None = None

    def until(self, end: int) -> list[Mark]:
        """The marks before `end` not given yet; one that reaches past `end` is given in two parts."""
        marks: list[Mark] = []
        while (mark := self._ahead or self._next()) is not None:
            start, length, name = mark
            if start >= end:
                self._ahead = mark
                break
            self._ahead = None
            if start + length > end:
                self._ahead = (end, start + length - end, name)
                length = end - start
            marks.append((start, length, name))
        return marks

    def _next(self) -> Mark | None:
        for start, token, value in self._tokens:
            if value and (name := _color(token)):
                return start, len(value), name
        return None


def open_from(marks: Sequence[Mark], end: int) -> int:
    """Where the stretch of one colour begins that reaches `end`; `end` if none does."""
    color = marks[-1][2] if marks else ""
    for start, length, name in reversed(marks):
        if name != color or start + length != end:
            break
        end = start
    return end


def _color(token: _TokenType) -> str:
    """The colour of a kind of token, "" for none; the longest prefix that fits counts."""
    for length in range(len(token), 0, -1):
        if (name := _COLORS.get(tuple(token[:length]))) is not None:
            return name
    return ""


_COLORS: Mapping[tuple[str, ...], str] = {
    ("Comment",): "comment",
    ("Comment", "Preproc"): "",
    ("Keyword",): "keyword",
    ("Operator", "Word"): "keyword",
    ("Name", "Tag"): "keyword",
    ("Literal", "String"): "string",
    ("Literal", "Number"): "number",
    ("Name", "Function"): "name",
    ("Name", "Class"): "name",
    ("Name", "Builtin"): "name",
    ("Name", "Decorator"): "name",
    ("Name", "Attribute"): "name",
}
