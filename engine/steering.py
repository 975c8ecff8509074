"""What a request forces upon its tokens: thinking that ends in time, a form, a well-made tool call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engine.output import OutputParser
from engine.pieces import Part
from engine.tokenizer import Detokenizer

Mask = NDArray[np.float32]
"""What is added to the logits (V,): 0 for tokens that may come next, minus infinity for others."""

NEVER = np.float32(-np.inf)


class Constraint(Protocol):
    """Which tokens an answer may go on with, from behind its thinking."""

    @property
    def is_free(self) -> bool:
        """Whether all may: then there is no mask, and nobody waits to learn it."""

    @property
    def whole(self) -> bool:
        """Whether the answer may end here."""

    def mask(self) -> Mask | None:
        """The tokens that may come next, None for all; `BadRequest` where that cannot be told."""

    def take(self, token: int, text: str) -> None:
        """The token that came, and the text that it completed."""


def only(vocab_size: int, tokens: Iterable[int]) -> Mask:
    """No other tokens may come next."""
    mask = np.full(vocab_size, NEVER)
    mask[list(tokens)] = 0
    return mask


class Steering:
    """Decides, token by token, what one answer may go on with; the serving thread alone uses it."""

    def __init__(
        self,
        vocab_size: int,
        detokenizer: Detokenizer,
        parser: OutputParser,
        constraint: Constraint | None = None,
        think_until: int | None = None,
        closing: Sequence[int] = (),
        opening: Sequence[int] = (),
    ) -> None:
        """`parser` tells thinking from the rest.

        After `think_until` tokens a model that still thinks is made to write `closing`. `opening` are the
        tokens with which an answer may begin to think, whatever the constraint says.
        """
        self.thinking_cut = False
        self._vocab_size = vocab_size
        self._detokenizer = detokenizer
        self._parser = parser
        self._constraint = constraint
        self._think_until = think_until
        self._closing = closing
        self._opening = opening
        self._entering = False
        self._forced: list[int] = []
        self._n = 0
        self._watch()

    def mask(self) -> Mask | None:
        """The tokens that may come next, None for all."""
        if self._forced:
            return only(self._vocab_size, self._forced[:1])
        if self._constraint is None or self.is_free:
            return None
        found = self._constraint.mask()
        if found is not None and self._opening:
            found[self._opening[0]] = 0
        return found

    @property
    def is_free(self) -> bool:
        """Whether all tokens may come next: then there is no mask."""
        if self._forced:
            return False
        constraint = self._constraint
        return constraint is None or constraint.is_free or self._parser.part is Part.REASONING

    @property
    def whole(self) -> bool:
        """Whether the answer has all that it must have."""
        return self._constraint is None or self._constraint.whole

    def chose(self, token: int) -> None:
        """The token that the answer goes on with."""
        self._n += 1
        if self._forced:
            self._forced.pop(0)
        text = self._detokenizer.push(token)
        before = self._parser.part
        self._parser.push(text)
        after = self._parser.part
        if self._opening and token == self._opening[0]:
            self._forced.extend(self._opening[1:])
            self._entering = True
        self._entering = self._entering and after is not Part.REASONING
        thinking = self._entering or Part.REASONING in (before, after)
        if self._constraint is not None and not thinking:
            self._constraint.take(token, text)
        if text.strip():
            self._opening = ()
        self._watch()

    def _watch(self) -> None:
        late = self._think_until is not None and self._n >= self._think_until
        if late and not self.thinking_cut and self._parser.part is Part.REASONING:
            self.thinking_cut = True
            self._forced.extend(self._closing)
