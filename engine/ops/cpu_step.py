"""How the rows of a step lie: the arrays that the threads read beside the step's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.errors import KernelError
from engine.ops.base import StepInput
from kernels.cpu.layout import MOST_TRIED, Head

Numbers = NDArray[np.int32]


@dataclass(slots=True, eq=False)
class Layout:
    """Arrays by their place in the header, and for each sequence how many tried rows stand so far."""

    arrays: dict[Head, Numbers]
    kept: list[int]

    @classmethod
    def of(cls, step: StepInput, most_tried: int) -> Layout:
        """Derive it from a step; `KernelError` for tries that the memory was not made for."""
        tokens, positions, sequence, table, parents, tried = (
            np.ascontiguousarray(a, np.int32)
            for a in (
                step.tokens, step.positions, step.sequence, step.page_table, step.parents, step.tried
            )
        )  # fmt: skip
        n = len(tokens)
        rows = np.arange(n, dtype=np.int32)
        starts = np.flatnonzero(np.diff(sequence, prepend=-1))
        counts = np.diff(np.append(starts, n))
        first = np.repeat(starts, counts).astype(np.int32)
        bases = positions[first]
        places = bases + rows - first
        goes_on = np.zeros(len(parents), np.int32)
        if len(parents):
            children = np.bincount(parents[parents >= 0], minlength=n)
            goes_on[1:] = (parents[1:] == rows[:-1]) & (children[:-1] == 1)
        if not len(parents):
            # Rows of one sequence may stand apart here; each has its place.
            places, bases = positions, positions - (rows - first)
        arrays = {
            Head.TOKENS: tokens,
            Head.POSITIONS: positions,
            Head.SEQUENCE: sequence,
            Head.TABLE: table,
            Head.PLACES: places,
            Head.BASES: bases,
            Head.ENDS: places[np.repeat(starts + counts - 1, counts)] + 1,
            Head.PARENTS: parents,
            Head.GOES_ON: goes_on,
            Head.LOGS: _logs(tried, sequence, positions, parents, most_tried),
        }
        return cls(arrays, [0] * len(table))

    def first_row(self, sequence: int) -> int:
        """The first row of a sequence."""
        return int(np.flatnonzero(self.arrays[Head.SEQUENCE] == sequence)[0])


def _logs(
    tried: Numbers, sequence: Numbers, positions: Numbers, parents: Numbers, most: int
) -> Numbers:
    """For each sequence the first of its tried rows among all tried rows, -1 for the others."""
    if not tried.any():
        if len(parents):
            raise KernelError("Found a tree of rows that are not tried.")
        return tried[:0]
    counts = np.bincount(sequence, minlength=len(tried)) * (tried != 0)
    if counts.max() > MOST_TRIED or counts.sum() > max(most, 0):
        raise KernelError(
            f"Found {counts.sum()} tried rows, up to {counts.max()} a sequence; expected at most {most} "
            f"and {MOST_TRIED}."
        )
    if np.any(positions[np.isin(sequence, np.flatnonzero(tried))] == 0):
        raise KernelError(
            "Found tried rows at the beginning of a text; expected a token before them."
        )
    starts = np.cumsum(counts) - counts
    return np.where(tried != 0, starts, -1).astype(np.int32)
