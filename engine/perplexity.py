"""How well a model predicts a text."""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import BadRequest, NumericError
from engine.loading import LoadedModel

_ROWS = 64


@dataclass(frozen=True, slots=True)
class Perplexity:
    """`nll` is the sum of -ln p of `n_scored` tokens, in windows of `window` tokens."""

    nll: float
    n_scored: int
    n_tokens: int
    window: int

    @property
    def value(self) -> float:
        """exp of the mean -ln p; infinite where that overflows."""
        mean = self.nll / self.n_scored
        return math.exp(mean) if mean < 700 else math.inf


def measure(
    model: LoadedModel,
    text: str,
    window: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> Perplexity:
    """Score a text in windows that know nothing of each other; every token but a window's first counts.

    A model that begins its texts with BOS gets it at the front of each window, counted in the window's
    tokens. `on_progress` gets tokens done and in all. Raises `BadRequest` for a text of fewer than two
    tokens, `NumericError` for logits that are not finite.
    """
    tokenizer = model.tokenizer
    ids = tokenizer.encode(text, add_bos=False)
    bos = [tokenizer.bos_id] if tokenizer.add_bos and tokenizer.bos_id is not None else []
    step = window - len(bos)
    if step < 2:
        raise BadRequest(f"A window of {window} tokens is too small; expected at least 3.")
    if len(ids) + len(bos) < 2:
        raise BadRequest(f"The text has {len(ids)} tokens, expected at least 2.")
    total, scored = 0.0, 0
    for start in range(0, len(ids), step):
        piece = bos + ids[start : start + step]
        if len(piece) < 2:
            break
        total += _window_nll(model, piece)
        scored += len(piece) - 1
        if on_progress:
            on_progress(min(start + step, len(ids)), len(ids))
    return Perplexity(total, scored, len(ids), window)


def _window_nll(model: LoadedModel, ids: Seq[int]) -> float:
    """Sum of -ln p of every token but the first."""
    total, at = 0.0, 0
    for logits in model.logits(ids):
        targets = np.asarray(ids[at + 1 : at + 1 + len(logits)])
        for row in range(0, len(targets), _ROWS):
            some = targets[row : row + _ROWS]
            total += nll(logits[row : row + len(some)], some)
        at += len(logits)
    if not math.isfinite(total):
        raise NumericError(
            "The model's logits hold NaN or infinity, so there is no perplexity. "
            "Try --precision exact; if it stays, the file is damaged."
        )
    return total


def nll(logits: NDArray[np.float32], targets: NDArray[np.int64]) -> float:
    """Sum of -ln softmax(logits)[target] over rows; logits (n, vocab), targets (n,)."""
    rows = logits.astype(np.float64)
    rows -= rows.max(axis=1, keepdims=True)
    chosen = rows[np.arange(len(targets)), targets]
    return float((np.log(np.exp(rows).sum(axis=1)) - chosen).sum())
