"""Where messages of known or guessed heights stand, one below the other."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate


class Column:
    """Heights and tops in px; `margin` above the first and below the last, `gap` between them."""

    def __init__(self, margin: float, gap: float) -> None:
        self._margin = margin
        self._gap = gap
        self.heights: list[float] = []
        self._tops = [margin]

    def fill(self, heights: Iterable[float]) -> None:
        """Begin anew with these heights."""
        self.heights = list(heights)
        self._from(0)

    def set_height(self, i: int, height: float) -> None:
        """Change one height; all below it moves."""
        if height != self.heights[i]:
            self.heights[i] = height
            self._from(i)

    def _from(self, first: int) -> None:
        steps = (h + self._gap for h in self.heights[first:])
        self._tops[first:] = accumulate(steps, initial=self._tops[first])

    @property
    def total(self) -> float:
        """The height of everything, margins included."""
        return self._tops[-1] + self._margin - self._gap

    def top(self, i: int) -> float:
        """Where a message begins."""
        return self._tops[min(i, len(self._tops) - 1)]

    def bottom(self, i: int) -> float:
        """Where a message ends."""
        return self._tops[i] + self.heights[i]

    def at(self, y: float) -> int:
        """The message that stands at a height, or the nearest one."""
        return min(max(bisect_right(self._tops, y) - 1, 0), max(len(self.heights) - 1, 0))

    def between(self, top: float, bottom: float) -> range:
        """The messages that a window from `top` to `bottom` shows."""
        if not self.heights:
            return range(0)
        last = min(bisect_right(self._tops, bottom), len(self.heights))
        return range(self.at(top), last)
