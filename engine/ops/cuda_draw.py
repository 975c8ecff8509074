"""Tokens that a card draws from logits: how is told it in one copy, and the launches."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from collections.abc import Sequence as Seq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.ops.base import MOST_CHOSEN
from engine.ops.choosing import MOST_CANDIDATES, MOST_CHANGES, Choice
from engine.ops.cuda_buffers import Int, Pointer
from engine.ops.cuda_device import Card
from kernels.variants import Variant

_PIECE, _LISTS = 2048, 16  # kernels/sample.cu
_LIST_BYTES = 8 * MOST_CANDIDATES

_CHOICE = np.dtype(
    [
        (name, np.int32)
        for name in ("n_vocab", "top_k", "first", "n_changes", "newest", "has_newest")
    ]
    + [(name, np.float64) for name in ("temperature", "top_p", "min_p", "u")]
    + [(name, np.float64) for name in ("repetition", "presence", "frequency")]
)
"""`Choice` of kernels/sample.cu."""

_CHANGE = np.dtype([("column", np.int32), ("count", np.int32), ("bias", np.float64)])
"""`Change` of kernels/sample.cu."""


class _Place:
    """Where the host writes what the card copies; there are two in turn, as a copy may still be under way."""

    def __init__(self, card: Card, size: int) -> None:
        self._pinned, self._owner = card.pinned(size)
        self.choices = self._pinned[: MOST_CHOSEN * _CHOICE.itemsize].view(_CHOICE)
        self.changes = self._pinned[self.choices.nbytes :].view(_CHANGE)
        self.address = self._pinned.ctypes.data
        self.event = card.mark()


class Draws:
    """Draws the tokens that are not to be a row's likeliest."""

    def __init__(self, card: Card, allocate: Callable[[str, int], int], n_vocab: int) -> None:
        self._card, self._n_vocab = card, n_vocab
        self._counts = [-(-n_vocab // _PIECE)]
        while self._counts[-1] > _LISTS:
            self._counts.append(-(-self._counts[-1] // _LISTS))
        self._lists = allocate("work", _LIST_BYTES * MOST_CHOSEN * sum(self._counts))
        size = MOST_CHOSEN * (_CHOICE.itemsize + MOST_CHANGES * _CHANGE.itemsize)
        self._places = [_Place(card, size) for _ in range(2)]
        self._there = allocate("work", size)
        self.tokens = allocate("work", 4 * MOST_CHOSEN)
        """Address of the tokens of a short step."""

    def launch(self, logits: int, choices: Seq[Choice], found: int) -> None:
        """From logits (R, n_vocab) to tokens (R,) at `found`, where the likeliest ones are."""
        if not any(choice.top_k for choice in choices):
            return
        self._send(choices)
        rows, how = len(choices), Pointer(self._there)
        changes = Pointer(self._there + MOST_CHOSEN * _CHOICE.itemsize)
        args: tuple[Any, ...] = (
            Pointer(logits), Int(self._n_vocab), how, changes, Pointer(self.tokens),
            Pointer(lists := self._lists),
        )  # fmt: skip
        self._launch("candidates", (self._counts[0], rows, 1), args)
        for n, fewer in itertools.pairwise(self._counts):
            merged = lists + _LIST_BYTES * MOST_CHOSEN * n
            self._launch(
                "merge_lists", (fewer, rows, 1), (Pointer(lists), Int(n), how, Pointer(merged))
            )
            lists = merged
        args = Pointer(lists), Int(self._counts[-1]), how, Pointer(found)
        self._launch("choose", (rows, 1, 1), args)

    def _launch(self, name: str, grid: tuple[int, int, int], args: tuple[Any, ...]) -> None:
        self._card.launch(self._card.kernel(Variant("sample.cu"), name), grid, 256, args)

    def _send(self, choices: Seq[Choice]) -> None:
        self._places.reverse()
        place = self._places[0]
        place.event.synchronize()
        first = 0
        for row, choice in enumerate(choices):
            first = _write(place, row, choice, first)
        size = place.choices.nbytes + first * _CHANGE.itemsize
        self._card.copy(self._there, place.address, size)
        place.event.record(self._card.stream)


def _write(place: _Place, row: int, choice: Choice, first: int) -> int:
    """A row's choice, with its changes from number `first` on; gives the number behind them."""
    changes = choice.changes
    n = len(changes.ids) if changes is not None else 0
    newest = changes.newest if changes is not None else None
    penalties = (1.0, 0.0, 0.0)
    if changes is not None:
        p = changes.penalties
        penalties = p.repetition, p.presence, p.frequency
        there: NDArray[Any] = place.changes[first : first + n]
        there["column"], there["count"], there["bias"] = changes.ids, changes.counts, changes.bias
    place.choices[row] = (
        choice.n_vocab, choice.top_k, first, n, newest or 0, newest is not None,
        choice.temperature, choice.top_p, choice.min_p, choice.u, *penalties,
    )  # fmt: skip
    return first + n
