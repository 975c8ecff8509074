"""What a pass of so many rows costs on this machine, measured once and kept."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROWS = (1, 2, 4, 8, 16, 32)
"""Sizes of a pass that are measured; others lie between them."""

_FILE = "pass-costs.json"
_MOST_S = 1.5  # so long a first load may be held up
_ROUNDS = 3
_MOST_KEPT = 64


class PassCosts:
    """Seconds of a pass by its rows, as measured with little context; `scale` follows the passes of late.

    Longer contexts and other work make all passes slower alike, near enough; where a size stays off that,
    its own number follows slowly.
    """

    def __init__(self, seconds: Mapping[int, float]) -> None:
        self.seconds = dict(sorted(seconds.items()))
        self.scale = 1.0

    def of(self, rows: int) -> float:
        """The expected seconds of a pass of `rows` rows."""
        return self.scale * self._table(rows)

    def saw(self, rows: int, seconds: float) -> None:
        """A pass of `rows` rows took so long."""
        off = min(max(seconds / max(self.of(rows), 1e-9), 0.1), 10.0)
        self.scale *= 1 + 0.1 * (off - 1)
        nearest = min(self.seconds, key=lambda known: abs(known - rows))
        if nearest != 1:
            self.seconds[nearest] *= 1 + 0.03 * (off - 1)

    def _table(self, rows: int) -> float:
        known = list(self.seconds.items())
        if len(known) == 1:
            # Nothing but one row is known: most machines read the weights once for a few.
            return known[0][1] * (1 + 0.1 * (rows - 1))
        pairs = list(itertools.pairwise(known))
        (low, a), (high, b) = next((p for p in pairs if rows <= p[1][0]), pairs[-1])
        return max(a, a + (b - a) * (rows - low) / (high - low))


def measure(run: Callable[[int], None]) -> dict[int, float]:
    """Time `run(rows)` for each of `ROWS`, the best of some rounds; stops where it takes too long."""
    seconds: dict[int, float] = {}
    began = time.perf_counter()
    for rows in ROWS:
        best = float("inf")
        for _ in range(_ROUNDS):
            start = time.perf_counter()
            run(rows)
            now = time.perf_counter()
            best = min(best, now - start)
            if now - began > _MOST_S:
                break
        # A larger pass takes no less, so what took longer before was disturbed.
        seconds = {r: min(s, best) for r, s in seconds.items()} | {rows: best}
        if now - began > _MOST_S and len(seconds) > 1:
            break
    return seconds


def pass_costs(folder: Path, key: str, run: Callable[[int], None]) -> PassCosts:
    """The costs kept under `key`, which names all that they depend on, else measured now and kept."""
    file = folder / _FILE
    kept: dict[str, Any] = {}
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found = json.loads(file.read_text(encoding="utf-8"))
        kept = found if isinstance(found, dict) else {}
    with contextlib.suppress(ValueError, TypeError, AttributeError):
        seconds = {int(rows): float(s) for rows, s in kept.pop(key, {}).items()}
        if seconds and all(rows > 0 and s > 0 for rows, s in seconds.items()):
            return PassCosts(seconds)
    costs = PassCosts(measure(run))
    kept[key] = costs.seconds
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(dict(list(kept.items())[-_MOST_KEPT:])), encoding="utf-8")
        part.replace(file)
    return costs
