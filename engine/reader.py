"""Reading text that is still being written as if it were whole."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Reading: TypeAlias = Generator[None, None, T]
"""A function that reads: it pauses where it needs text that is not there yet."""


class Reader:
    """Text with a place in it, `at`; what is decided depends on the text alone, not on how it comes.

    `keep` is the place to which a reader may go back; text before it, or before `at` where there is none,
    is forgotten.
    """

    def __init__(self) -> None:
        self.text = ""
        self.at = 0
        self.keep: int | None = None
        self.ended = False

    def feed(self, text: str) -> None:
        """Add text at the end."""
        start = self.at if self.keep is None else self.keep
        self.text = self.text[start:] + text
        self.at -= start
        self.keep = None if self.keep is None else 0

    def more(self) -> Reading[bool]:
        """Wait for text; False when no more will come."""
        if self.ended:
            return False
        yield
        return True

    def peek(self, n: int) -> Reading[str]:
        """The next `n` characters, fewer at the end."""
        while len(self.text) - self.at < n and (yield from self.more()):
            pass
        return self.text[self.at : self.at + n]

    def take(self, literal: str) -> Reading[bool]:
        """Whether the text goes on with `literal`, which is then read."""
        found = yield from self.which((literal,))
        if found is not None:
            self.at += len(literal)
        return found is not None

    def closes(self, literal: str) -> Reading[bool]:
        """Whether `literal` comes next, perhaps behind white space; both are then read.

        A part of it at the end of the text counts too: it was cut off.
        """
        at, self.keep = self.keep, self.at
        assert at is None, "only where nothing else is kept"
        yield from self.space()
        found = yield from self.take(literal)
        rest = self.text[self.at :]
        if not found and rest and self.ended and literal.startswith(rest):
            self.at, found = len(self.text), True
        if not found:
            self.at = self.keep
        self.keep = None
        return found

    def cut_off(self, *marks: str) -> bool:
        """Whether the text ends here, or in the middle of one of `marks`; what there is of it is read."""
        rest = self.text[self.at :]
        found = self.ended and (not rest or any(m.startswith(rest) for m in marks))
        if found:
            self.at = len(self.text)
        return found

    def which(self, literals: Iterable[str]) -> Reading[str | None]:
        """The one of `literals` that comes next, none of which begins another."""
        candidates = tuple(literals)
        while True:
            for literal in candidates:
                if self.text.startswith(literal, self.at):
                    return literal
            rest = self.text[self.at :] if self.at + 64 > len(self.text) else "\0"
            if not any(c.startswith(rest) for c in candidates) or not (yield from self.more()):
                return None

    def space(self) -> Reading[str]:
        """The white space that comes next."""
        end = self.at
        while True:
            while end < len(self.text) and self.text[end].isspace():
                end += 1
            done = end - self.at
            if end < len(self.text) or not (yield from self.more()):
                break
            end = self.at + done
        found = self.text[self.at : end]
        self.at = end
        return found

    def upto(self, stop: str, limit: int = 1 << 30) -> Reading[str | None]:
        """The text before `stop`, which is read too; None where it does not come within `limit`."""
        seen = 0
        while True:
            end = self.text.find(stop, self.at + seen)
            if end >= 0 and end - self.at <= limit:
                found = self.text[self.at : end]
                self.at = end + len(stop)
                return found
            seen = max(0, len(self.text) - self.at - len(stop) + 1)
            if end >= 0 or seen > limit or not (yield from self.more()):
                return None


def begun(text: str, literals: Iterable[str], start: int = 0) -> int:
    """How many characters at the end of `text` may begin one of `literals`."""
    longest = 0
    for literal in literals:
        for n in range(min(len(literal) - 1, len(text) - start), longest, -1):
            if text.endswith(literal[:n]):
                longest = n
                break
    return longest
