"""How a backend ranks tokens for a drafter, and the reference for it in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.types import Draft

MOST_RANKED = 8
"""Tokens of a row that a backend ranks."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Of each row the likeliest tokens, of equals the lower id first: `ids` (R, k), -1 for none, their
    `logits` (R, k), and the logarithm of the sum of exp(logit) over all tokens, `totals` (R,).
    """

    ids: NDArray[np.integer]
    logits: NDArray[np.floating]
    totals: NDArray[np.floating]

    @property
    def log_p(self) -> NDArray[np.float64]:
        """Log-probabilities (R, k), falling."""
        return self.logits.astype(np.float64) - self.totals[:, None]

    def first(self, n: int, k: int) -> Ranked:
        """Of the first `n` rows the first `k` tokens."""
        return Ranked(self.ids[:n, :k], self.logits[:n, :k], self.totals[:n])


@dataclass(frozen=True, slots=True)
class Late:
    """The likeliest token of each row that a backend is still to rank, see `Ranks`; `read` waits for them."""

    launched: Any
    read: Callable[[Any], Ranked]

    def told(self, draft: Draft) -> Draft:
        """A draft with its tokens, those of the first rows."""
        ids = self.read(self.launched).ids[: len(draft.tokens), 0]
        return replace(draft, tokens=tuple(ids.tolist()), late=None)


def ranked(logits: NDArray[np.floating], k: int) -> Ranked:
    """The `k` likeliest of each row of `logits` (R, V)."""
    values = logits.astype(np.float64)
    top = values.max(axis=1, keepdims=True)
    totals = (top + np.log(np.exp(values - top).sum(axis=1, keepdims=True)))[:, 0]
    if k == 1:
        ids = values.argmax(axis=1)[:, None]
    else:
        some = np.argpartition(-values, k - 1, axis=1)[:, :k]
        some.sort(axis=1)  # of equals the lower id first
        order = np.argsort(-np.take_along_axis(values, some, axis=1), axis=1, kind="stable")
        ids = np.take_along_axis(some, order, axis=1)
    return Ranked(ids, np.take_along_axis(values, ids, axis=1), totals)
