"""Tokens that a card draws from logits: how is told it in one copy, and the launches."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from collections.abc import Sequence as Seq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.ops.base import MOST_CHOSEN
from engine.ops.choosing import MOST_CANDIDATES, MOST_CHANGES, Choice, Penalties
from engine.ops.cuda_buffers import Int, Pointer
from engine.ops.cuda_device import Card
from kernels.variants import Variant

_PIECE, _LISTS = 2048, 16  # kernels/sample.cu
_LIST_BYTES = 8 * MOST_CANDIDATES
_PART_BYTES = 16
_MOST = MOST_CHOSEN * MOST_CHANGES

CHOICE = np.dtype(
    [
        (name, np.int32)
        for name in (
            "n_vocab",
            "top_k",
            "first",
            "n_changes",
            "newest",
            "has_newest",
            "mask",
            "whole",
        )
    ]
    + [(name, np.float64) for name in ("temperature", "top_p", "min_p", "u")]
    + [(name, np.float64) for name in ("repetition", "presence", "frequency")]
)
"""`Choice` of kernels/sample.cu."""

CHANGE = np.dtype([("column", np.int32), ("count", np.int32), ("bias", np.float64)])
"""`Change` of kernels/sample.cu."""


class Told:
    """What is told to the card, in one copy: a choice for each row, all changes, and the masks.

    The host has two of them in turn, as a copy may still be under way.
    """

    def __init__(self, card: Card, n_vocab: int) -> None:
        self._card, self._mask_bytes = card, 4 * (-(-n_vocab // 32))
        self._bytes, self._owner = card.pinned(self.size(n_vocab))
        self._choices = self._bytes[: MOST_CHOSEN * CHOICE.itemsize].view(CHOICE)
        self._changes = self._bytes[self._choices.nbytes : self._mask_from(_MOST)].view(CHANGE)
        self._event = card.mark()

    @staticmethod
    def size(n_vocab: int) -> int:
        """Bytes that it needs at most."""
        return Told._mask_from(_MOST) + MOST_CHOSEN * 4 * (-(-n_vocab // 32))

    @staticmethod
    def _mask_from(n_changes: int) -> int:
        return MOST_CHOSEN * CHOICE.itemsize + n_changes * CHANGE.itemsize

    def write(self, choices: Seq[Choice]) -> tuple[int, int]:
        """Where the masks begin, and the bytes in all."""
        self._event.synchronize()
        first = 0
        for row, choice in enumerate(choices):
            first = self._write_row(row, choice, first)
        begin = end = self._mask_from(first)
        for row, choice in enumerate(choices):
            bits = choice.mask() if choice.mask is not None else None
            if bits is not None:
                self._choices[row]["mask"] = (end - begin) // self._mask_bytes
                there = self._bytes[end : end + self._mask_bytes]
                there[: len(bits)], there[len(bits) :] = bits, 0
                end += self._mask_bytes
        return begin, end

    def _write_row(self, row: int, choice: Choice, first: int) -> int:
        """A row's choice, with its changes from number `first` on; gives the number behind them."""
        changes = choice.changes
        n, newest, p = 0, None, Penalties()
        if changes is not None:
            n, newest, p = len(changes.ids), changes.newest, changes.penalties
            there: NDArray[Any] = self._changes[first : first + n]
            there["column"], there["count"], there["bias"] = (
                changes.ids, changes.counts, changes.bias
            )  # fmt: skip
        self._choices[row] = (
            choice.n_vocab, choice.top_k, first, n, newest or 0, newest is not None, -1, choice.whole,
            choice.temperature, choice.top_p, choice.min_p, choice.u, p.repetition, p.presence, p.frequency,
        )  # fmt: skip
        return first + n

    def send(self, there: int, size: int) -> None:
        """Copy the first `size` bytes to the card."""
        self._card.copy(there, self._bytes.ctypes.data, size)
        self._event.record(self._card.stream)


class Draws:
    """Draws the tokens that are not to be a row's likeliest."""

    def __init__(self, card: Card, allocate: Callable[[str, int], int], n_vocab: int) -> None:
        self._card, self._n_vocab = card, n_vocab
        self._counts = [-(-n_vocab // _PIECE)]
        while self._counts[-1] > _LISTS:
            self._counts.append(-(-self._counts[-1] // _LISTS))
        self._lists = allocate("work", _LIST_BYTES * MOST_CHOSEN * sum(self._counts))
        self._parts = allocate("work", _PART_BYTES * MOST_CHOSEN * self._counts[0])
        self._told = [Told(card, n_vocab) for _ in range(2)]
        self.there = allocate("work", Told.size(n_vocab))
        """Address of what is told."""
        self.tokens = allocate("work", 4 * MOST_CHOSEN)
        """Address of the tokens of a short step."""

    def launch(self, logits: int, choices: Seq[Choice], found: int) -> None:
        """From logits (R, n_vocab) to tokens (R,) at `found`, where the likeliest ones are."""
        if not any(choice.top_k for choice in choices):
            return
        self._told.reverse()
        masks, size = self._told[0].write(choices)
        self._told[0].send(self.there, size)
        rows, how = len(choices), Pointer(self.there)
        changes = Pointer(self.there + MOST_CHOSEN * CHOICE.itemsize)
        args: tuple[Any, ...] = (
            Pointer(logits), Int(self._n_vocab), how, changes, Pointer(self.there + masks),
            Pointer(self.tokens), Pointer(self._parts), Pointer(lists := self._lists),
        )  # fmt: skip
        self._launch("candidates", (self._counts[0], rows, 1), args)
        for n, fewer in itertools.pairwise(self._counts):
            merged = lists + _LIST_BYTES * MOST_CHOSEN * n
            args = Pointer(lists), Int(n), how, Pointer(merged)
            self._launch("merge_lists", (fewer, rows, 1), args)
            lists = merged
        args = (
            Pointer(lists), Int(self._counts[-1]), how, Pointer(self._parts), Int(self._counts[0]),
            Pointer(found),
        )  # fmt: skip
        self._launch("choose", (rows, 1, 1), args)

    def _launch(self, name: str, grid: tuple[int, int, int], args: tuple[Any, ...]) -> None:
        self._card.launch(self._card.kernel(Variant("sample.cu"), name), grid, 256, args)
