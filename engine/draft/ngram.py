"""Prompt lookup: what followed the last time that the text read like this. Needs no file and no model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.draft.base import Paged, Target
from engine.ops.base import Rows
from engine.types import Draft, Sequence

_LEAST = 3  # shorter repetitions say little
_MOST = 16  # longer ones say no more
_LATEST = 64  # earlier places that are compared


class NgramDrafter:
    """Copies from the latest of those places whose text before agrees longest with the end."""

    name = "ngram"
    needs: tuple[int, ...] = ()
    depth = 15
    branches = False
    reach = 0
    paged: Paged | None = None

    def __init__(self) -> None:
        self._texts: dict[int, _Text] = {}

    def propose(self, sequence: Sequence, depth: int, nodes: int) -> Draft:
        return Draft.chain(self._text(sequence).continuation(min(depth, nodes)))

    def expects(self, sequence: Sequence) -> bool:
        return bool(self._text(sequence).continuation(1))

    def _text(self, sequence: Sequence) -> _Text:
        text = self._texts.setdefault(sequence.request_id, _Text())
        text.update(sequence.tokens)
        return text

    def observe(self, sequence: Sequence, start: int, n: int, hidden: Rows | None) -> None:
        """All it needs is in the sequence."""

    def release(self, sequence: Sequence) -> None:
        self._texts.pop(sequence.request_id, None)

    def memory(self) -> int:
        return sum(text.tokens.nbytes for text in self._texts.values())

    def close(self) -> None:
        self._texts.clear()


class _Text:
    """A growing sequence of tokens as an array."""

    def __init__(self) -> None:
        self.tokens: NDArray[np.int32] = np.zeros(1024, np.int32)
        self.n = 0

    def update(self, tokens: list[int]) -> None:
        """Take what is new; tokens that were once seen do not change."""
        if len(tokens) > len(self.tokens):
            self.tokens = np.concatenate([self.tokens, np.zeros(len(tokens), np.int32)])
        self.tokens[self.n : len(tokens)] = tokens[self.n :]
        self.n = len(tokens)

    def continuation(self, n: int) -> list[int]:
        """Up to `n` tokens that followed where the text read most like its end; none if it never did."""
        text = self.tokens[: self.n]
        if self.n <= _LEAST:
            return []
        alike = text[_LEAST - 1 : -1] == text[-1]
        for back in range(1, _LEAST):
            alike &= text[_LEAST - 1 - back : -1 - back] == text[-1 - back]
        ends = np.flatnonzero(alike)[-_LATEST:] + _LEAST - 1
        if not len(ends):
            return []
        best, longest = 0, 0
        for end in ends[::-1].tolist():
            length = self._alike(end)
            if length > longest:
                best, longest = end, length
            if longest == _MOST:
                break
        # A place just before the end is the beginning of a repetition, which goes on.
        period = self.n - 1 - best
        return [int(text[best + 1 + i % period]) for i in range(n)]

    def _alike(self, end: int) -> int:
        """How many tokens up to place `end` equal the last ones."""
        n = 0
        while n < min(_MOST, end + 1) and self.tokens[end - n] == self.tokens[self.n - 1 - n]:
            n += 1
        return n


def open_drafter(target: Target, path: Path | None) -> NgramDrafter:
    """It fits every target."""
    return NgramDrafter()
