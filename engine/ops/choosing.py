"""How a backend chooses tokens itself, and the reference for it in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_CANDIDATES = 256
"""Tokens that a backend can draw from."""

UNDECIDED = -2
"""In the place of a token that could be one beyond the candidates."""

MOST_CHANGES = 2048
"""Tokens of a row whose logits a backend can change."""

Logits = NDArray[np.float32]
Ids = NDArray[np.int32]
Bits = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Penalties:
    """For tokens that occurred: `repetition` divides positive logits and multiplies negative ones (Keskar et
    al. 2019); `presence`, and `frequency` for each time, are subtracted, by OpenAI's formula."""

    repetition: float = 1.0
    presence: float = 0.0
    frequency: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What is done to logits before a token is chosen: tokens `ids`, each once, occurred `counts` times
    (0: have no penalty), and have a `bias`. A `newest` token occurred once more; -1 - m is that of row m.
    """

    ids: Ids
    counts: Ids
    bias: NDArray[np.float64]
    penalties: Penalties = Penalties()
    newest: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """How the token of a row is chosen from the first `n_vocab`: without `top_k` the likeliest, else one of
    that many, at most `MOST_CANDIDATES`, which pass top-p and min-p, by `u` in [0, 1).

    With `whole` all tokens count for top-p, and where `top_k` candidates do not reach as far as top-p or
    min-p allows the token is `UNDECIDED`. With `changes`, of at most `MOST_CHANGES` ids below `n_vocab`,
    `top_k` is at least 1, and so it is with a `mask`, which is asked for once, when the step has been
    started: a bit for each token, set where it may come, the lowest one of a byte first; None for all.
    """

    n_vocab: int
    top_k: int = 0
    temperature: float = 1.0
    top_p: float = 1.0
    min_p: float = 0.0
    u: float = 0.0
    changes: Changes | None = None
    mask: Callable[[], Bits | None] | None = None
    whole: bool = False


def chosen(logits: Logits, choices: Seq[Choice], tokens: Ids | None = None) -> Ids:
    """The token of each row (R,) of `logits` (R, n_vocab): of equals the lowest id is the likeliest.

    `tokens` are those of the step. -1 where a logit is NaN or plus infinity, and where all of those to choose
    from are minus infinity.
    """
    found = np.full(len(choices), -1, np.int32)
    for row, choice in enumerate(choices):
        among = logits[row, : choice.n_vocab]
        if choice.changes is not None:
            among = changed(among, choice.changes, tokens)
        if choice.mask is not None and (bits := choice.mask()) is not None:
            may = np.unpackbits(bits, count=len(among), bitorder="little")
            among = np.where(may, among, -np.inf)
        if np.max(logits[row]) < np.inf and np.max(among) > -np.inf:
            found[row] = drawn(among, choice) if choice.top_k else np.argmax(among)
    return found


def changed(logits: Logits, changes: Changes, tokens: Ids | None = None) -> Logits:
    """Logits (V,) after penalties and bias."""
    out = logits.copy()
    ids, counts, bias = changes.ids, changes.counts, changes.bias
    newest = changes.newest
    if newest is not None and newest < 0:
        assert tokens is not None
        newest = int(tokens[-1 - newest])
    if newest is not None and newest < len(logits):
        if newest not in ids:
            ids, counts, bias = np.append(ids, newest), np.append(counts, 0), np.append(bias, 0.0)
        counts = counts + (ids == newest)
    seen = ids[counts > 0]
    out[seen] = penalised(out[seen], counts[counts > 0], changes.penalties)
    out[ids] += bias
    return out


def penalised(logits: Logits, counts: NDArray[np.integer], penalties: Penalties) -> Logits:
    """Logits of tokens that occurred so often: the repetition's part in float32, the others' in float64."""
    by = penalties.repetition
    values = np.where(logits > 0, logits / by, logits * by)
    values -= penalties.presence + penalties.frequency * counts
    return values


def drawn(logits: Logits, choice: Choice) -> int:
    """A token of `logits` (V,), in float64 and added up from the likeliest on.

    Another backend's exp and a sum in pieces differ from this in the 16th digit: the token only where `u`,
    which has as many, falls between the two.
    """
    ids = np.argsort(-logits, kind="stable")[: choice.top_k]
    all_of = (logits if choice.whole else logits[ids]).astype(np.float64)
    with np.errstate(over="ignore"):  # a temperature near 0 makes minus infinity, rightly
        everything = np.exp((all_of - float(logits[ids[0]])) / choice.temperature)
    weights = everything[ids] if choice.whole else everything
    sums = np.cumsum(weights)
    kept, mass = len(ids), choice.top_p * (everything.sum() if choice.whole else sums[-1])
    least = choice.min_p * weights[0]
    beyond = (choice.top_p < 1 and sums[-1] >= mass) or weights[-1] < least
    complete = kept == len(logits) or logits[ids[-1]] == -np.inf
    if choice.whole and not beyond and not complete:
        return UNDECIDED
    if choice.top_p < 1:
        kept = 1 + int(np.count_nonzero(sums[:-1] < mass))
    if choice.min_p > 0:
        kept = max(1, int(np.count_nonzero(weights[:kept] >= least)))
    sums = sums[:kept]
    ends = (sums > choice.u * sums[-1]) | (sums >= sums[-1])
    return int(ids[np.argmax(ends)])
