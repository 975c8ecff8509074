"""A step's variables on the card: what a captured graph reads and a step changes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from engine.ops.base import LEAST_KEPT, MOST_CHOSEN, MOST_KEPT, Limits, StepInput
from engine.ops.cuda_buffers import MOST_ROWS, Int, Pass, Pointer
from engine.ops.cuda_device import Card
from engine.ops.cuda_ranks import RANKED
from engine.ops.visits import visits

TOKENS, POSITIONS, SEQUENCE, WANTED, PLACES, LAST, MASKS, SHARES, BEFORE, TILES = range(10)
VISITS = TILES + 4
_WIDTH = VISITS + 1
"""int32 numbers of a row, four of them of attention's tiles."""


class Rows(ctypes.Structure):
    """`Rows` of kernels/include/pages.cuh."""

    _fields_ = (
        ("positions", Pointer), ("sequence", Pointer), ("places", Pointer), ("limits", Pointer),
        ("masks", Pointer), ("shares", Pointer), ("spans", Pointer), ("page_table", Pointer),
        ("pages_per_sequence", Int),
    )  # fmt: skip


class _Place:
    """Numbers that the card copies from, and the event behind the last copy."""

    def __init__(self, card: Card, size: int) -> None:
        pinned, self._owner = card.pinned(size)
        self.numbers: NDArray[np.int32] = pinned.view(np.int32)
        self.event = card.mark()


class StepVariables:
    """int32 arrays of a row each (tokens, positions, sequence, wanted rows, places of their keys, the last
    place that they see, whom they see of the step, which blocks of attention share that, the row before
    them, attention's tiles, what `visits` gives), from how many tokens those of up to `MOST_CHOSEN` wanted
    rows are chosen, of a sequence each (first row, rows, 2^16 source + 4 slot + 2 later + tried, place of the
    first row), and the page table.

    Steps of up to `MOST_ROWS` rows have a small place of their own, so that little is copied for them. The
    host has two places in turn: one is filled while the card may still read the other.
    `tile_rows` says how many batch rows a tile of attention takes in a step of so many, `shares` how many
    blocks share what so many rows of a sequence in a long step see, so many tokens; those after the first
    have the results of up to `room` rows.
    """

    def __init__(
        self,
        card: Card,
        address: int,
        rows: int,
        limits: Limits,
        tile_rows: Callable[[int], int],
        shares: Callable[[int, int], int] = lambda rows, seen: 1,
        room: int = 0,
    ) -> None:
        self._card, self._address, self._rows, self._tile_rows = card, address, rows, tile_rows
        self._shares, self._room = shares, room
        self._pages = limits.pages_per_sequence
        self._known = _WIDTH * MOST_ROWS
        self._spans = self._known + MOST_CHOSEN
        self._table = self._spans + 4 * (limits.sequences + MOST_KEPT)
        self._large = self._table + self._table_size(limits)
        self._places = [_Place(card, self.size(rows, limits)) for _ in range(2)]

    @staticmethod
    def size(rows: int, limits: Limits) -> int:
        """Bytes on the card."""
        table = StepVariables._table_size(limits)
        return 4 * (
            _WIDTH * (MOST_ROWS + rows) + MOST_CHOSEN + 4 * (limits.sequences + MOST_KEPT) + table
        )

    @staticmethod
    def _table_size(limits: Limits) -> int:
        """Numbers of the page table, rounded up so that what follows is aligned for 16-byte loads."""
        return -(-(limits.sequences + MOST_KEPT) * limits.pages_per_sequence // 4) * 4

    @property
    def page_table(self) -> int:
        """Address of the page table (sequences, pages)."""
        return self._address + 4 * self._table

    @property
    def spans(self) -> int:
        """Address of what is known of each sequence."""
        return self._address + 4 * self._spans

    @property
    def known(self) -> int:
        """Address of how many tokens there are to choose from, for each wanted row."""
        return self._address + 4 * self._known

    def at(self, array: int, p: Pass, offset: int = 0) -> int:
        """Address of an array in a pass."""
        if p.short:
            return self._address + 4 * (array * MOST_ROWS + offset)
        return self._address + 4 * (self._large + array * self._rows + offset)

    def rows(self, p: Pass) -> Rows:
        """What kernels of attention read."""
        arrays = (POSITIONS, SEQUENCE, PLACES, LAST, MASKS, SHARES)
        return Rows(*(self.at(a, p) for a in arrays), self.spans, self.page_table, self._pages)

    def send(self, step: StepInput, rows: int) -> int:
        """Copy a step's variables, padded to `rows` rows; returns the number of tiles.

        Padding is token 0 at position -1, which stores nothing and attends to nothing.
        """
        small = rows <= MOST_ROWS
        self._places.reverse()
        place = self._places[0]
        place.event.synchronize()
        numbers = place.numbers
        start, stride = (0, MOST_ROWS) if small else (self._large, self._rows)
        arrays = numbers[start : start + _WIDTH * stride].reshape(_WIDTH, stride)
        step, slots = _apart(step)
        m, wanted = len(step.tokens), len(step.logit_rows)
        arrays[TOKENS, :m], arrays[POSITIONS, :m], arrays[SEQUENCE, :m] = (
            step.tokens, step.positions, step.sequence
        )  # fmt: skip
        arrays[WANTED, :wanted] = step.logit_rows
        arrays[WANTED, wanted:rows] = 0
        if m < rows:
            arrays[:TILES, m:rows] = 0
            arrays[[POSITIONS, LAST, BEFORE], m:rows] = -1
        numbers[self._known : self._known + len(step.choices)] = [c.n_vocab for c in step.choices]
        spans = numbers[self._spans : self._table].reshape(-1, 4)
        spans[:] = 0
        tiles = self._place(step, slots, arrays, spans, self._tile_rows(rows))
        flat = arrays[TILES:].reshape(-1)
        flat[: 4 * len(tiles)] = [n for tile in tiles for n in tile]
        flat[4 * len(tiles) : 4 * rows] = 0
        n, width = step.page_table.shape
        table = numbers[self._table : self._table + n * self._pages].reshape(n, self._pages)
        table[:, :width] = step.page_table
        base, host = self._address, numbers.ctypes.data
        first = 0 if small else self._known
        self._card.copy(base + 4 * first, host + 4 * first, 4 * (self._table + table.size - first))
        if not small:
            self._card.copy(base + 4 * self._large, host + 4 * self._large, 4 * _WIDTH * self._rows)
        place.event.record(self._card.stream)
        for row, n, ranking in step.late:
            to, size = base + 4 * (start + row), RANKED.itemsize
            self._card.copy_rows(to, 4, ranking.address, size, 4, n)
        return len(tiles)

    def _place(
        self,
        step: StepInput,
        slots: list[tuple[int, int, bool]],
        arrays: NDArray[np.int32],
        spans: NDArray[np.int32],
        tile_rows: int,
    ) -> list[tuple[int, int, int, int]]:
        """Fill in what rows see, and the spans; returns attention's tiles.

        A tile is (first row, rows + 256 share, places that the last one sees, sequence).
        """
        m, used = len(step.tokens), 0
        edges = np.flatnonzero(np.diff(step.sequence)) + 1
        tiles = []
        for begin, end in zip([0, *edges.tolist()], [*edges.tolist(), m], strict=True):
            if begin == end:
                continue
            n, number, first = end - begin, int(step.sequence[begin]), int(step.positions[begin])
            arrays[PLACES, begin:end] = arrays[LAST, begin:end] = first + np.arange(n)
            arrays[BEFORE, begin:end] = np.arange(begin - 1, end - 1)
            arrays[BEFORE, begin] = -1
            arrays[MASKS, begin:end] = -1
            arrays[VISITS, begin:end] = np.arange(n)
            if len(step.parents):
                self._grow(step.parents[begin:end].tolist(), arrays, begin, end)
            source, slot, is_later = slots[number] if slots else (0, 0, False)
            if is_later:
                arrays[BEFORE, begin] = begin - 1
            tried = bool(step.tried[number]) if len(step.tried) else False
            spans[number] = begin, n, source << 16 | slot << 2 | is_later << 1 | tried, first
            shares = 1 if m <= MOST_ROWS else self._shares(n, first + n)
            if used + n * (shares - 1) > self._room:
                shares = 1
            results = self._rows + used + (shares - 1) * np.arange(n)
            arrays[SHARES, begin:end] = results << 4 | shares
            used += n * (shares - 1)
            for row in range(begin, end, tile_rows):
                last = min(row + tile_rows, end)
                tiles += [
                    (row, last - row | share << 8, first + last - begin, number)
                    for share in range(shares)
                ]
        return tiles

    @staticmethod
    def _grow(parents: list[int], arrays: NDArray[np.int32], begin: int, end: int) -> None:
        """A tree's rows see their ancestors in the step and themselves; a chain is left as it is."""
        if parents == [-1, *range(begin, end - 1)]:
            return
        masks: list[int] = []
        for i, parent in enumerate(parents):
            masks.append((masks[parent - begin] if parent >= begin else 0) | 1 << i)
        arrays[MASKS, begin:end] = np.array(masks, np.uint32).view(np.int32)
        arrays[BEFORE, begin:end] = parents
        own = [p - begin if p >= begin else -1 for p in parents]
        arrays[VISITS, begin:end] = visits(own)


def _apart(step: StepInput) -> tuple[StepInput, list[tuple[int, int, bool]]]:
    """A step whose sequences end where states are kept, and go on as others; and for each one the slots that
    its state comes from and goes to, and whether another one leaves it there.

    Numbers of sequences stay with the last of their rows.
    """
    slots = [(slot, slot, False) for slot in step.slots.tolist()]
    if not step.keeps:
        return step, slots
    sequence, tables = step.sequence.copy(), [*range(len(step.page_table))]
    for number in {number for number, *_ in step.keeps}:
        rows = np.flatnonzero(step.sequence == number)
        if not len(rows):
            continue
        source, is_later, done = slots[number][0], False, 0
        for end, slot in sorted((n, slot) for of, n, slot in step.keeps if of == number):
            assert LEAST_KEPT <= end - done < len(rows) - done
            sequence[rows[done:end]] = len(tables)
            tables.append(number)
            slots.append((source, slot, is_later))
            source, is_later, done = slot, True, end
        slots[number] = source, slots[number][1], is_later
    tried = step.tried
    if len(tried):
        tried = np.append(tried, np.zeros(len(tables) - len(tried), np.int32))
    parents = step.parents
    if len(parents):
        begins = np.flatnonzero(np.diff(sequence)) + 1
        parents = parents.copy()
        parents[begins] = np.where(
            step.sequence[begins] == step.sequence[begins - 1], -1, parents[begins]
        )
    return replace(
        step, sequence=sequence, page_table=step.page_table[tables], tried=tried, parents=parents
    ), slots


def part_of(step: StepInput, rows: NDArray[np.bool_], wanted: NDArray[np.bool_]) -> StepInput:
    """The chosen rows of a step, whole sequences; numbers of sequences stay."""
    place = np.cumsum(rows, dtype=np.int32) - 1
    parents = step.parents
    if len(parents):
        parents = np.where(parents >= 0, place[parents], -1)[rows].astype(np.int32)
    late = [(int(place[row]), n, launched) for row, n, launched in step.late if rows[row]]
    given = None if step.given is None else step.given[np.flatnonzero(rows).tolist()]
    return replace(
        step,
        tokens=step.tokens[rows],
        positions=step.positions[rows],
        sequence=step.sequence[rows],
        logit_rows=place[wanted],
        parents=parents,
        given=given,
        late=late,
    )
