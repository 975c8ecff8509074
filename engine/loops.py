"""Answers that only repeat themselves."""

from __future__ import annotations

LONGEST = 80
"""The longest repeated part that is looked for, in tokens."""

_TOKENS = 600  # that much repetition is no table and no list any more
_COPIES = 4  # after thinking was cut off, which often ends in a loop
_SHORTEST = 12
_EVERY = 8
_KEPT = _TOKENS + LONGEST


class LoopWatch:
    """Tells, every few tokens, when the end of a growing text consists of copies of one short part.

    `strict` after thinking that was cut off: then some copies of a part of 12 tokens or more are enough.
    """

    def __init__(self) -> None:
        self.strict = False
        self._tokens: list[int] = []

    def push(self, token: int) -> bool:
        """Take one more token; whether the text is in a loop."""
        tokens = self._tokens
        tokens.append(token)
        if len(tokens) % _EVERY:
            return False
        if len(tokens) >= 4 * _KEPT:
            del tokens[: len(tokens) - _KEPT // _EVERY * _EVERY]
        last = tokens[-_EVERY:]
        return any(
            last == tokens[-_EVERY - n : -n] and self._repeats(n) for n in range(1, LONGEST + 1)
        )

    def be_strict(self) -> None:
        """Look for short loops from here on; what came before does not count."""
        self.strict = True
        self._tokens.clear()

    def _repeats(self, n: int) -> bool:
        """Whether enough tokens at the end equal those `n` before them."""
        enough = _TOKENS
        if self.strict and n >= _SHORTEST:
            enough = min(enough, (_COPIES - 1) * n)
        tokens = self._tokens
        return len(tokens) >= enough + n and tokens[-enough:] == tokens[-enough - n : -n]
