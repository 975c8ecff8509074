"""Choosing the next token from logits.

In order: repetition penalty, presence and frequency penalties, logit bias, temperature, top-k, typical,
top-p, min-p; each filter sees the probabilities that the one before it left, scaled to a sum of 1.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.config import SamplingParams
from engine.errors import BadRequest, EngineError, NumericError
from engine.ops.choosing import (
    MOST_CANDIDATES,
    MOST_CHANGES,
    Bits,
    Changes,
    Choice,
    Penalties,
    penalised,
)
from engine.steering import Steering
from engine.types import Likely, TokenLogprob

Logits = NDArray[np.float32]
Floats = NDArray[np.float64]
Ids = NDArray[np.intp]

MAX_BIAS = 100.0
"""Largest logit bias either way, as in OpenAI's API."""

_DRAFT, _ACCEPT = 1, 2  # streams of random numbers beside the one that draws tokens
_BLOCK = 64
_FIRST_GUESS = 256


def has_bad(logits: Logits) -> bool:
    """Whether any logit is NaN or plus infinity, which only a numeric failure makes."""
    return not bool(np.max(logits) < np.inf)


class Sampler:
    """Chooses the tokens of one request; the same seed gives the same tokens whatever else runs."""

    def __init__(
        self,
        params: SamplingParams,
        vocab_size: int,
        seed: int,
        steering: Steering | None = None,
        logprobs: int | None = None,
    ) -> None:
        """`seed` counts where `params.seed` is None; for `logprobs` see `Request`.

        `BadRequest` for a logit bias out of range.
        """
        self._params = params
        self._steering = steering
        self._masked = False  # whether a backend has the mask of the next token
        self._problem: EngineError | None = None
        self._n_logprobs = logprobs
        self._logprobs: deque[TokenLogprob] = deque()
        self._vocab_size = vocab_size
        self._seed = (seed if params.seed is None else params.seed) % 2**64
        self._bias = check_bias(params.logit_bias, vocab_size)
        self._counts = (
            TokenCounts(vocab_size, params.penalty_last_n) if _penalises(params) else None
        )
        # Of all tokens but the newest, which a backend may know sooner than we.
        known = params.penalty_last_n - (params.penalty_last_n > 0)
        self._recent = TokenCounts(vocab_size, known) if _penalises(params) else None

    def sample(self, logits: Logits, previous: Sequence[int]) -> int:
        """The next token, for `logits` (V,) and all tokens before it, the prompt's too.

        NaN counts as impossible, and so do tokens beyond the vocabulary, where a model has more rows.
        `NumericError` if no token is possible.
        """
        ready = self._prepared(logits, previous)
        if self._is_greedy:
            return self._chose(_likeliest(ready), logits)
        ids, weights = _candidates(ready, self._params)
        return self._chose(int(ids[_pick(weights, self._uniform(previous))]), logits)

    @property
    def is_told(self) -> bool:
        """Whether a backend can choose tokens that nothing steers, as `choice` tells."""
        params = self._params
        narrow = params.top_p < 1 or params.min_p > 0
        drawn = params.typical_p >= 1 and (self._is_few or (self._is_whole and narrow))
        return self._n_logprobs is None and (self._is_greedy or drawn)

    @property
    def is_sure(self) -> bool:
        """Whether a backend then surely decides, without our help."""
        return self._is_greedy or self._is_few

    def choice(
        self, tokens: Sequence[int], end: int, newest: int, next_one: bool = False
    ) -> Choice | None:
        """How a backend is to choose the token behind the first `end` of `tokens` and a `newest` one.

        That is an id, or -1 - m for the one of row m of the step. What steers the answer is heeded for the
        `next_one` alone, the one behind all that are known. None where it would be too much to tell.
        """
        params = self._params
        changes = self._changes(tokens, end, newest)
        if changes is not None and len(changes.ids) > MOST_CHANGES:
            return None
        mask = self._bits if next_one and not self.is_free else None
        if self._is_greedy:
            plain = changes is None and mask is None
            return Choice(self._vocab_size, 0 if plain else 1, changes=changes, mask=mask)
        whole = self._is_whole
        return Choice(
            self._vocab_size, MOST_CANDIDATES if whole else params.top_k, params.temperature, params.top_p,
            params.min_p, uniform(self._seed, end + 1), changes, mask, whole,
        )  # fmt: skip

    def _bits(self) -> Bits | None:
        """The mask of the next token, as a backend takes it; what goes wrong is told with the token."""
        assert self._steering is not None
        self._masked = True
        try:
            mask = self._steering.mask()
        except EngineError as problem:
            self._problem, mask = problem, None
        return None if mask is None else np.packbits(mask == 0, bitorder="little")

    @property
    def counts_tokens(self) -> bool:
        """Whether what is chosen depends on the tokens before it."""
        return self._counts is not None

    def _changes(self, tokens: Sequence[int], end: int, newest: int) -> Changes | None:
        ids, values = self._bias
        if self._recent is None and not len(ids):
            return None
        counts = self._recent.update(tokens, end) if self._recent is not None else {}
        bias = dict(zip(ids.tolist(), values.tolist(), strict=True))
        both = [*counts, *(token for token in bias if token not in counts)]
        return Changes(
            np.array(both, np.int32),
            np.array([counts.get(token, 0) for token in both], np.int32),
            np.array([bias.get(token, 0.0) for token in both], np.float64),
            _penalties(self._params),
            None if self._recent is None else newest,
        )

    @property
    def _is_few(self) -> bool:
        return 0 < self._params.top_k <= min(MOST_CANDIDATES, self._vocab_size - 1)

    @property
    def _is_whole(self) -> bool:
        return not 0 < self._params.top_k < self._vocab_size

    @property
    def _is_greedy(self) -> bool:
        return self._params.temperature == 0 or self._params.top_k == 1

    @property
    def is_free(self) -> bool:
        """Whether nothing steers the next token, so that a backend's is taken."""
        return self._steering is None or self._steering.is_free

    def take(self, chosen: int) -> int | None:
        """As `sample` where a backend has `chosen` as `choice` says; None where the token is steered."""
        if self._problem is not None:
            raise self._problem
        if self._steering is not None:
            masked, self._masked = self._masked, False
            if not masked and self._steering.mask() is not None:
                return None
            self._steering.chose(chosen)
        return chosen

    def verify(self, logits: Logits, previous: Sequence[int], guess: int, drawn: Likely) -> int:
        """As `sample`, and distributed as it, but as often as possible the `guess` drawn from `drawn`.

        Rejection sampling (Leviathan et al., arXiv 2211.17192): the guess is taken with probability
        min(1, p / q), else a token is drawn from what p has more than q.
        """
        ready = self._prepared(logits, previous)
        if self._is_greedy:
            return self._chose(_likeliest(ready), logits)
        ids, weights = _candidates(ready, self._params)
        p = Likely(ids, weights / weights.sum())
        chance = uniform(self._seed, len(previous), _ACCEPT)
        token = take_or_replace(p, drawn, guess, chance, self._uniform(previous))
        return self._chose(token, logits)

    @property
    def thinking_cut(self) -> bool:
        """Whether a budget has ended the thinking."""
        return self._steering is not None and self._steering.thinking_cut

    @property
    def whole(self) -> bool:
        """Whether the answer has all that it must have."""
        return self._steering is None or self._steering.whole

    def take_logprob(self) -> TokenLogprob | None:
        """What is to be told of the oldest token that was chosen and not yet asked for."""
        return self._logprobs.popleft() if self._logprobs else None

    def _chose(self, token: int, logits: Logits) -> int:
        self._masked = False
        if self._n_logprobs is not None:
            row = logits[: self._vocab_size]
            self._logprobs.append(logprob_of(row, token, self._n_logprobs))
        if self._steering is not None:
            self._steering.chose(token)
        return token

    def _uniform(self, previous: Sequence[int]) -> float:
        return uniform(self._seed, len(previous))

    def _prepared(self, logits: Logits, previous: Sequence[int]) -> Logits:
        logits = logits[: self._vocab_size]
        if self._counts is not None:
            logits = _penalised(logits, self._counts.update(previous), self._params)
        logits = _biased(logits, self._bias)
        mask = self._steering.mask() if self._steering is not None else None
        return logits if mask is None else logits + mask


def logprob_of(logits: Logits, token: int, n_top: int) -> TokenLogprob:
    """What to tell of a token and of the `n_top` likeliest, for `logits` (V,) as the model gave them."""
    logits, top = _without_nan(logits)
    total = top + math.log(float(np.exp(logits - np.float32(top)).sum()))
    likeliest = _top(logits, min(n_top, len(logits))) if n_top else ()
    return TokenLogprob(
        token, b"", float(logits[token]) - total,
        tuple(TokenLogprob(int(i), b"", float(logits[i]) - total) for i in likeliest),
    )  # fmt: skip


def draw(
    logits: Logits, params: SamplingParams, seed: int, index: int
) -> tuple[int, Likely | None]:
    """A drafter's guess for the token number `index` of a text, and what it was drawn from.

    The likeliest token, and None, where the target takes its likeliest too.
    """
    if params.temperature == 0 or params.top_k == 1:
        return _likeliest(logits), None
    ids, weights = _candidates(logits, params)
    place = _pick(weights, uniform(seed, index, _DRAFT))
    return int(ids[place]), Likely(ids, weights / weights.sum())


def take_or_replace(p: Likely, q: Likely, guess: int, chance: float, u: float) -> int:
    """`guess`, drawn from q, if `chance` in [0, 1) allows it, else what `u` chooses from max(p - q, 0)."""
    if chance * q.of(guess) < p.of(guess):
        return guess
    rest = np.maximum(p.p - q.at(p.ids), 0.0)
    return int(p.ids[_pick(rest if rest.any() else p.p, u)])


class TokenCounts:
    """How often each token occurred within the last `last_n` (-1: all) of a growing sequence."""

    def __init__(self, vocab_size: int, last_n: int) -> None:
        self._vocab_size = vocab_size
        self._last_n = last_n
        self._counts: dict[int, int] = {}
        self._start = self._end = 0
        self._last: int | None = None

    def update(self, tokens: Sequence[int], end: int | None = None) -> Mapping[int, int]:
        """The counts for `tokens` up to `end`; only what is new since the last call is looked at."""
        end = len(tokens) if end is None else end
        start = 0 if self._last_n < 0 else max(0, end - self._last_n)
        # Tokens may have been taken back, after a draft was refused.
        if end < self._end or (self._end and tokens[self._end - 1] != self._last):
            self._counts.clear()
            self._start = self._end = start
        self._add(tokens[max(self._end, start) : end], 1)
        self._add(tokens[self._start : min(start, self._end)], -1)
        self._start, self._end, self._last = start, end, tokens[end - 1] if end else None
        return self._counts

    def _add(self, tokens: Sequence[int], by: int) -> None:
        counts = self._counts
        for token in tokens:
            if 0 <= token < self._vocab_size:
                counts[token] = counts.get(token, 0) + by
                if not counts[token]:
                    del counts[token]


def uniform(seed: int, index: int, stream: int = 0) -> float:
    """A number in [0, 1) that depends on its arguments only (Philox, 53 bits)."""
    counter = index + (stream << 64)
    return int(np.random.Philox(key=seed, counter=counter).random_raw() >> 11) * 2.0**-53


def check_bias(bias: Mapping[int, float], vocab_size: int) -> tuple[Ids, Floats]:
    """Ids and values of a logit bias; `BadRequest` for an unknown token or a value beyond `MAX_BIAS`."""
    for token, value in bias.items():
        if not 0 <= token < vocab_size:
            raise BadRequest(
                f"Logit bias for token {token}, expected a token id from 0 to {vocab_size - 1}."
            )
        if not -MAX_BIAS <= value <= MAX_BIAS:
            raise BadRequest(
                f"Logit bias {value} for token {token}, expected -{MAX_BIAS:g} to {MAX_BIAS:g}."
            )
    return np.array(list(bias), np.intp), np.array(list(bias.values()), np.float64)


def apply_penalties(logits: Logits, previous: Sequence[int], params: SamplingParams) -> Logits:
    """`logits` (V,) with the repetition, presence and frequency penalties for `previous` tokens.

    Repetition divides positive logits and multiplies negative ones (Keskar et al. 2019); presence and
    frequency subtract, by OpenAI's formula.
    """
    if not _penalises(params):
        return logits
    return _penalised(
        logits, TokenCounts(len(logits), params.penalty_last_n).update(previous), params
    )


def probabilities(logits: Logits, params: SamplingParams, previous: Sequence[int] = ()) -> Floats:
    """The distribution (V,) that `Sampler` draws from; one token has it all at temperature 0."""
    logits = apply_penalties(logits, previous, params)
    logits = _biased(logits, check_bias(params.logit_bias, len(logits)))
    out = np.zeros(len(logits), np.float64)
    if params.temperature == 0:
        out[_likeliest(logits)] = 1.0
    else:
        ids, weights = _candidates(logits, params)
        out[ids] = weights / weights.sum()
    return out


def _penalises(params: SamplingParams) -> bool:
    return (
        params.repetition_penalty != 1
        or params.presence_penalty != 0
        or params.frequency_penalty != 0
    ) and params.penalty_last_n != 0


def _penalised(logits: Logits, counts: Mapping[int, int], params: SamplingParams) -> Logits:
    seen = np.fromiter(counts, np.intp, len(counts))
    times = np.fromiter(counts.values(), np.int64, len(counts))
    out = logits.copy()
    out[seen] = penalised(logits[seen], times, _penalties(params))
    return out


def _penalties(params: SamplingParams) -> Penalties:
    return Penalties(params.repetition_penalty, params.presence_penalty, params.frequency_penalty)


def _biased(logits: Logits, bias: tuple[Ids, Floats]) -> Logits:
    ids, values = bias
    if not len(ids):
        return logits
    out = logits.copy()
    out[ids] += values
    return out


def _without_nan(logits: Logits) -> tuple[Logits, float]:
    """`logits` with NaN as minus infinity, and the greatest of them, which is finite."""
    top = float(np.max(logits))
    if math.isnan(top):
        logits = np.where(np.isnan(logits), -np.inf, logits)
        top = float(np.max(logits))
    if not math.isfinite(top):
        raise NumericError(
            "The model gave no usable prediction: "
            + ("a logit is infinite" if top > 0 else "every logit is NaN or minus infinity")
            + ". The file may be damaged; try --precision exact or another version of the model."
        )
    return logits, top


def _likeliest(logits: Logits) -> int:
    """The token with the greatest logit, the lowest id among equals."""
    return int(np.argmax(_without_nan(logits)[0]))


def _candidates(logits: Logits, params: SamplingParams) -> tuple[Ids, Floats]:
    """The tokens that pass all filters, likeliest first if any filter is on, and their weights."""
    logits, top = _without_nan(logits)
    t = params.temperature
    typical = params.typical_p < 1

    def weigh(ids: Ids | slice) -> Floats:
        with np.errstate(over="ignore"):  # a temperature near 0 makes minus infinity, rightly
            return np.exp((logits[ids].astype(np.float64) - top) / t)

    if 0 < params.top_k < len(logits):
        ids = _top(logits, params.top_k)
        weights = weigh(ids)
        total = float(weights.sum())
    elif typical or params.top_p < 1 or params.min_p > 0:
        everything = weigh(slice(None))
        total = float(everything.sum())
        if typical:
            ids = np.argsort(-everything, kind="stable")
        elif params.min_p > 0:
            ids = np.flatnonzero(everything >= params.min_p)
            ids = ids[np.argsort(-everything[ids], kind="stable")]
        else:
            ids = _until(logits, everything, params.top_p * total)
        weights = everything[ids]
    else:
        return np.arange(len(logits)), weigh(slice(None))
    if typical:
        ids, weights = _typical(ids, weights, total, params.typical_p)
        total = float(weights.sum())
    if params.top_p < 1:
        keep = _n_within(weights, params.top_p * total)
        ids, weights = ids[:keep], weights[:keep]
    if params.min_p > 0:
        keep = max(1, int(np.count_nonzero(weights >= params.min_p * weights[0])))
        ids, weights = ids[:keep], weights[:keep]
    return ids, weights


def _typical(ids: Ids, weights: Floats, total: float, mass: float) -> tuple[Ids, Floats]:
    """Tokens whose surprise is nearest to the expected one, up to `mass` (Meister et al. 2022)."""
    p = weights / total
    with np.errstate(divide="ignore"):
        surprise = -np.log(p)
    expected = float(p[p > 0] @ surprise[p > 0])
    order = np.argsort(np.abs(surprise - expected), kind="stable")
    keep = np.sort(order[: _n_within(p[order], mass)])
    return ids[keep], weights[keep]


def _n_within(weights: Floats, mass: float) -> int:
    """How many of `weights` have less than `mass` before them; at least one."""
    return max(1, int(np.searchsorted(np.cumsum(weights[:-1]), mass)) + (mass > 0))


def _until(logits: Logits, weights: Floats, mass: float) -> Ids:
    """The likeliest tokens that together weigh at least `mass`, likeliest first."""
    k = _FIRST_GUESS
    while k < len(logits):
        ids = _top(logits, k)
        if weights[ids].sum() >= mass:
            return ids
        k *= 8
    return np.argsort(-weights, kind="stable")


def _top(logits: Logits, k: int) -> Ids:
    """The `k` greatest of `logits` (V,), greatest first, lower ids first among equals.

    The k greatest lie in the k blocks with the greatest maxima, so few values need sorting.
    """
    n_blocks = len(logits) // _BLOCK
    if n_blocks > 2 * k:
        rest = n_blocks * _BLOCK
        maxima = np.max(logits[:rest].reshape(n_blocks, _BLOCK), axis=1)
        blocks = _top_unsorted(maxima, k)
        among = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        among = np.concatenate([among, np.arange(rest, len(logits))])
        ids = among[_top_unsorted(logits[among], k)]
    else:
        ids = _top_unsorted(logits, k)
    return ids[np.argsort(-logits[ids], kind="stable")]


def _top_unsorted(values: Logits, k: int) -> Ids:
    """Indices of the `k` greatest, in rising order, lower ones first among equals."""
    least = np.partition(values, len(values) - k)[len(values) - k]
    above = np.flatnonzero(values > least)
    equal = np.flatnonzero(values == least)[: k - len(above)]
    return np.sort(np.concatenate([above, equal]))


def _pick(weights: Floats, u: float) -> int:
    """The index whose part of the total weight holds `u` in [0, 1)."""
    sums = np.cumsum(weights)
    last = int(np.searchsorted(sums, sums[-1]))
    return min(int(np.searchsorted(sums, u * sums[-1], side="right")), last)
