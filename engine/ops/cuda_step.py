"""A step's variables on the card: what a captured graph reads and a step changes."""

from __future__ import annotations

import numpy as np

from engine.ops.base import Limits, StepInput
from engine.ops.cuda_buffers import MOST_ROWS, Pass
from engine.ops.cuda_device import Card

TOKENS, POSITIONS, SEQUENCE, WANTED, TILES = range(5)


class StepVariables:
    """int32 arrays: tokens, positions, sequence, wanted rows, attention's tiles (4 numbers each), page table.

    Steps of up to `MOST_ROWS` rows have a small place of their own, so that little is copied for them.
    `tile_rows` is how many batch rows a tile of attention takes.
    """

    def __init__(self, card: Card, address: int, rows: int, limits: Limits, tile_rows: int) -> None:
        self._card, self._address, self._rows, self._tile_rows = card, address, rows, tile_rows
        self._pages = limits.pages_per_sequence
        self._table = 8 * MOST_ROWS
        self._large = self._table + self._table_size(limits)
        pinned, self._owner = card.pinned(self.size(rows, limits))
        self._host = pinned.view(np.int32)

    @staticmethod
    def size(rows: int, limits: Limits) -> int:
        """Bytes on the card."""
        return 4 * (8 * MOST_ROWS + StepVariables._table_size(limits) + 8 * rows)

    @staticmethod
    def _table_size(limits: Limits) -> int:
        """Numbers of the page table, rounded up so that what follows is aligned for 16-byte loads."""
        return -(-limits.sequences * limits.pages_per_sequence // 4) * 4

    @property
    def page_table(self) -> int:
        """Address of the page table (sequences, pages)."""
        return self._address + 4 * self._table

    def at(self, array: int, p: Pass, offset: int = 0) -> int:
        """Address of an array in a pass."""
        if p.rows <= MOST_ROWS:
            return self._address + 4 * (array * MOST_ROWS + offset)
        return self._address + 4 * (self._large + array * self._rows + offset)

    def send(self, step: StepInput, rows: int) -> int:
        """Copy a step's variables, padded to `rows` rows; returns the number of tiles.

        Padding is token 0 at position -1, which stores nothing and attends to nothing.
        """
        small = rows <= MOST_ROWS
        start, stride = (0, MOST_ROWS) if small else (self._large, self._rows)
        arrays = self._host[start : start + 8 * stride].reshape(8, stride)
        m, wanted = len(step.tokens), len(step.logit_rows)
        arrays[TOKENS, :m], arrays[POSITIONS, :m], arrays[SEQUENCE, :m] = (
            step.tokens, step.positions, step.sequence
        )  # fmt: skip
        arrays[WANTED, :wanted] = step.logit_rows
        arrays[WANTED, wanted:rows] = 0
        if m < rows:
            arrays[TOKENS, m:rows], arrays[POSITIONS, m:rows], arrays[SEQUENCE, m:rows] = 0, -1, 0
        tiles = self._tiles(step)
        flat = arrays[TILES:].reshape(-1)
        flat[: 4 * len(tiles)] = [n for tile in tiles for n in tile]
        flat[4 * len(tiles) : 4 * rows] = 0
        n, width = step.page_table.shape
        table = self._host[self._table : self._table + n * self._pages].reshape(n, self._pages)
        table[:, :width] = step.page_table
        base, host = self._address, self._host.ctypes.data
        first = 0 if small else self._table
        self._card.copy(base + 4 * first, host + 4 * first, 4 * (self._table + table.size - first))
        if not small:
            self._card.copy(base + 4 * self._large, host + 4 * self._large, 4 * 8 * self._rows)
        return len(tiles)

    def _tiles(self, step: StepInput) -> list[tuple[int, int, int, int]]:
        """(first row, rows, tokens that the last one sees, sequence) of neighbours in one sequence."""
        tiles = []
        positions, sequence = step.positions.tolist(), step.sequence.tolist()
        row, m = 0, len(positions)
        while row < m:
            end = row + 1
            while end < m and end < row + self._tile_rows and sequence[end] == sequence[row]:
                end += 1
            tiles.append((row, end - row, max(positions[row:end]) + 1, sequence[row]))
            row = end
        return tiles
