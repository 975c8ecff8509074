"""Answers that only repeat themselves."""

from __future__ import annotations

import numpy as np

LONGEST = 80
"""The longest repeated part that is looked for, in tokens."""

_TOKENS = 600  # that much repetition is no table and no list any more
_COPIES = 4  # after thinking was cut off, which often ends in a loop
_SHORTEST = 12


class LoopWatch:
    """Tells when the end of a growing text consists of copies of one short part.

    `strict` after thinking that was cut off: then some copies of a part of 12 tokens or more are enough.
    """

    def __init__(self) -> None:
        self.strict = False
        self._last = np.full(LONGEST, -1, np.int64)
        # How many tokens at the end equal the one that many places before them.
        self._run = np.zeros(LONGEST, np.int64)
        self._periods = np.arange(1, LONGEST + 1)

    def push(self, token: int) -> bool:
        """Take one more token; whether the text is in a loop."""
        self._run = (self._run + 1) * (self._last == token)
        self._last = np.roll(self._last, 1)
        self._last[0] = token
        if bool((self._run >= _TOKENS).any()):
            return True
        if not self.strict:
            return False
        copies = self._run >= (_COPIES - 1) * self._periods
        return bool(copies[_SHORTEST - 1 :].any())

    def be_strict(self) -> None:
        """Look for short loops from here on; what came before does not count."""
        self.strict = True
        self._run[:] = 0
