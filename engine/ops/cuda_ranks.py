"""The likeliest tokens of a step's rows, found on a card: what a drafter reads of its logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.ops.base import MOST_CHOSEN
from engine.ops.cuda_buffers import Float, Int, Pointer
from engine.ops.cuda_device import Card
from engine.ops.ranking import MOST_RANKED, Ranked
from kernels.variants import Variant

_PIECES, _PIECE_BYTES = 32, 8 * MOST_RANKED + 8  # kernels/ranks.cu
_PLACES = MOST_CHOSEN + 1
_KERNELS = Variant("ranks.cu")

RANKED = np.dtype(
    [("id", np.int32, MOST_RANKED), ("logit", np.float32, MOST_RANKED), ("total", np.float32)]
)
"""`Ranked` of kernels/ranks.cu."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """What is on its way to the host: its address on the card, its rows there, and the event behind them."""

    address: int
    rows: Any
    event: Any


class Ranks:
    """Ranks the tokens of logits; what was found keeps its place for as many launches as a step has rows."""

    def __init__(self, card: Card, allocate: Callable[[str, int], int], n_vocab: int) -> None:
        self._card, self._n_vocab = card, n_vocab
        self._pieces = allocate("work", MOST_CHOSEN * _PIECES * _PIECE_BYTES)
        self._there = allocate("work", _PLACES * MOST_CHOSEN * RANKED.itemsize)
        pinned, self._owner = card.pinned(_PLACES * MOST_CHOSEN * RANKED.itemsize)
        self._places = pinned.view(RANKED).reshape(_PLACES, MOST_CHOSEN)
        self._events = [card.mark() for _ in range(_PLACES)]
        self._next = 0

    def prepare(self) -> None:
        """Have the kernels built, which nothing may be while a graph is captured."""
        self._card.build([_KERNELS])

    def look(self, logits: int, rows: int, scale: float, cap: float) -> None:
        """At logits (R, n_vocab) on the card, each of which counts as `Ops.rank` says; graphs may hold it."""
        args = Pointer(logits), Int(self._n_vocab), Float(scale), Float(cap), Pointer(self._pieces)
        self._launch("rank_pieces", (_PIECES, rows, 1), 256, args)

    def send(self, rows: int, scale: float, cap: float) -> Ranking:
        """What was looked at last, on its way to the host."""
        self._next = (self._next + 1) % _PLACES
        there, event = self._places[self._next][:rows], self._events[self._next]
        address = self._there + self._next * MOST_CHOSEN * RANKED.itemsize
        args = Pointer(self._pieces), Float(scale), Float(cap), Pointer(address)
        self._launch("rank", (rows, 1, 1), 32, args)
        self._card.copy(there.ctypes.data, address, there.nbytes)
        event.record(self._card.stream)
        return Ranking(address, there, event)

    def _launch(
        self, name: str, grid: tuple[int, int, int], threads: int, args: tuple[Any, ...]
    ) -> None:
        kernel = self._card.kernel(_KERNELS, name)
        self._card.launch(kernel, grid, threads, args, self._card.dependent)

    @staticmethod
    def read(ranking: Ranking) -> Ranked:
        """Wait for what was launched."""
        ranking.event.synchronize()
        rows = ranking.rows
        return Ranked(rows["id"].copy(), rows["logit"].copy(), rows["total"].copy())
