"""The last minute of speed, as a plot needs it."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.metrics import Metrics

SPAN_S = 60.0
POINTS = 600  # 60 s at 10 Hz.


@dataclass(slots=True)
class Prefill:
    """One prompt being read: from `start` to `end` (seconds), at `rate` tokens a second."""

    start: float
    end: float
    rate: float


class History:
    """A ring of decode rates and the prompts read between them; times in seconds of one clock.

    A moment counts as reading or as writing by which of the engine's counters moved last, because both
    rates are means of a second and overlap.
    """

    def __init__(self) -> None:
        self._times = np.zeros(POINTS)
        self._rates = np.zeros(POINTS)
        self._count = 0
        self._phase = ""
        self._prompt = 0
        self._written = 0
        self._last = -math.inf
        self._block = Prefill(0.0, 0.0, 0.0)
        self.prefills: deque[Prefill] = deque()

    def begin(self, metrics: Metrics) -> None:
        """Start watching at these totals; what was counted before is not of this plot."""
        self._phase = ""
        self._prompt = metrics.prompt_tokens_total
        self._written = metrics.completion_tokens_total

    def clear(self) -> None:
        """Forget all, as for another model."""
        self._count = 0
        self._phase = ""
        self._prompt = self._written = 0
        self.prefills.clear()

    def add(self, now: float, metrics: Metrics) -> None:
        """Take one sample."""
        if metrics.prompt_tokens_total < self._prompt:  # Another model counts from 0.
            self.begin(Metrics())
        if now - self._last > 1.0:
            self._gap(now)
            self._phase = ""
        was = self._phase
        reading = metrics.prompt_tokens_total > self._prompt
        writing = metrics.completion_tokens_total > self._written
        self._prompt = metrics.prompt_tokens_total
        self._written = metrics.completion_tokens_total
        if was != "reading":
            # The counter moves when a chunk is done, which may take a while: it began now.
            self._block = Prefill(self._last if now - self._last < 1.0 else now, now, 0.0)
        if reading:
            self._read(now, metrics.prefill_rate)
        if writing or (was == "writing" and metrics.running and not reading):
            if was != "writing":
                self._gap(now)
            self._append(now, metrics.decode_rate)
            self._phase = "writing"
        else:
            self._phase = "reading" if metrics.running else ""
        self._last = now
        while self.prefills and self.prefills[0].end < now - SPAN_S:
            self.prefills.popleft()

    def curve(self, now: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Seconds before `now` (n,) and decode rates (n,), oldest first; NaN where the line breaks."""
        n = min(self._count, POINTS)
        order = (np.arange(self._count - n, self._count)) % POINTS
        x = self._times[order] - now
        kept = x >= -SPAN_S
        return x[kept], self._rates[order][kept]

    def _read(self, now: float, rate: float) -> None:
        self._block.end, self._block.rate = now, rate
        if not self.prefills or self.prefills[-1] is not self._block:
            self.prefills.append(self._block)

    def _gap(self, now: float) -> None:
        if self._count and not math.isnan(self._rates[(self._count - 1) % POINTS]):
            self._append(now, math.nan)

    def _append(self, now: float, rate: float) -> None:
        self._times[self._count % POINTS] = now
        self._rates[self._count % POINTS] = rate
        self._count += 1


def nice_top(highest: float) -> float:
    """The end of the axis: the next of 1, 2, 5 times a power of ten, so that the scale moves seldom."""
    if highest <= 10:
        return 10.0
    step = 10.0 ** math.floor(math.log10(highest))
    return next(f * step for f in (1, 2, 5, 10) if f * step >= highest)
