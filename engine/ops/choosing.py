"""How a backend chooses tokens itself, and the reference for it in NumPy."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CHOICE = np.dtype([("n_vocab", np.int32), ("top_k", np.int32), ("rest", np.float64, 4)])
"""A `Choice` as kernels/include/choice.cuh has it."""


@dataclass(frozen=True, slots=True)
class Choice:
    """How the token of a row is chosen: the likeliest of the first `n_vocab` tokens."""

    n_vocab: int


def chosen(logits: NDArray[np.float32], choices: Seq[Choice]) -> NDArray[np.int32]:
    """The token of each row (R,) of `logits` (R, n_vocab): of equals the lowest id.

    -1 where a logit is NaN or plus infinity, and where all of those to choose from are minus infinity.
    """
    found = np.full(len(choices), -1, np.int32)
    for row, choice in enumerate(choices):
        among = logits[row, : choice.n_vocab]
        if np.max(logits[row]) < np.inf and np.max(among) > -np.inf:
            found[row] = np.argmax(among)
    return found
