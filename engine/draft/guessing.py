"""Guessing token after token, for drafters that are asked again with each of their own guesses."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.draft.tree import grow, likeliest
from engine.sampling import draw
from engine.types import Draft, Likely, Sequence

Logits = NDArray[np.float32]


def guess(
    sequence: Sequence,
    depth: int,
    nodes: int,
    first: Logits,
    follow: Callable[[int, int], Logits],
) -> Draft:
    """A draft of up to `depth` tokens in a row and `nodes` in all.

    `first` are the scores (V,) of the first guess, `follow(token, i)` those after guess number i. A tree has
    the likeliest chain and what else was likely beside it; a chain's tokens are drawn as the target draws.
    """
    tree = nodes > depth
    tokens: list[int] = []
    drawn: list[Likely] = []
    said: list[Logits] = []
    logits = first
    for i in range(depth):
        if not np.isfinite(logits).all():
            break
        if tree:
            said.append(logits.copy())
            token, likely = int(np.argmax(logits)), None
        else:
            place = len(sequence.tokens) + i
            token, likely = draw(logits, sequence.sampling, sequence.seed, place)
        tokens.append(token)
        if likely is not None:
            drawn.append(likely)
        if i + 1 < depth:
            logits = follow(token, i)
    if not tree or not said:
        return Draft.chain(tokens, drawn)
    heat = sequence.sampling.temperature or 1.0
    return grow(likeliest(np.stack(said), nodes, heat), nodes)[0]
