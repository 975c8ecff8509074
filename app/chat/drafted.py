"""Dotted lines under what a draft guessed: from places in a message's text to lines under its letters.

Markdown drops marks and tells no places, so the words that are shown are looked for in the text, in order.
The lines are painted over the finished layout: showing or hiding them moves no letter.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QBrush, QPainter

from app.theme import theme

if TYPE_CHECKING:
    from app.chat.boxes import Run

# Letters of marks, addresses and the like that may lie between a word and the one before it.
_REACH = 400
_WORD = re.compile(r"\S+|\s+")
_BELOW = 2.5  # px from the letters' feet to the line.


@dataclass(slots=True)
class Marks:
    """Whether drafted text is marked; shared by all that paint messages."""

    on: bool = False


class Stretch(NamedTuple):
    """Letters of a run that stand in the text as they are; `start` and `length` of the run."""

    start: int
    length: int
    source: int


def drafted_of(usage: dict[str, Any]) -> Sequence[int]:
    """What of a message's text was drafted: start, end, start, end and so on, in order."""
    found = usage.get("drafted")
    sound = isinstance(found, list) and len(found) % 2 == 0 and all(type(x) is int for x in found)
    return found if sound and isinstance(found, list) else ()


def add_drafted(usage: dict[str, Any], start: int, end: int) -> None:
    """Note a drafted stretch at the end of those that are known."""
    places = usage.setdefault("drafted", [])
    if places and places[-1] == start:
        places[-1] = end
    elif end > start:
        places += [start, end]


def drafted_share(usage: dict[str, Any]) -> float | None:
    """How much of an answer's tokens a draft guessed; None where nothing is known of that."""
    accepted, written = usage.get("accepted_tokens"), usage.get("completion_tokens")
    return accepted / written if accepted is not None and written else None


def align(shown: str, source: str, at: int) -> tuple[list[Stretch], int]:
    """Where the shown letters stand in `source`, from `at` on, and where they end there."""
    found: list[Stretch] = []
    place = 0
    for line in shown.split("\n"):
        here = source.find(line, at, at + len(line) + _REACH) if line.strip() else -1
        if here >= 0:
            found.append(Stretch(place, len(line), here))
            at = here + len(line)
        else:
            for word in _WORD.finditer(line):
                here = source.find(word[0], at, at + len(word[0]) + _REACH)
                if here >= 0:
                    found.append(Stretch(place + word.start(), len(word[0]), here))
                    at = here + len(word[0])
        place += len(line) + 1
    return found, at


def underlined(
    stretches: Sequence[Stretch], drafted: Sequence[int], shift: int
) -> list[tuple[int, int]]:
    """The ranges of a run that were drafted; `shift` is where in the message the text begins."""
    found: list[tuple[int, int]] = []
    for start, length, source in stretches:
        low, high = source + shift, source + shift + length
        # Starts have even places: the last start at or before `low` opens the stretch that may hold it.
        i = max(bisect_right(drafted, low) - 1, 0) // 2 * 2
        while i < len(drafted) and drafted[i] < high:
            a, b = max(drafted[i], low), min(drafted[i + 1], high)
            if a < b:
                begin, end = start + a - low, start + b - low
                if found and found[-1][1] == begin:
                    begin = found.pop()[0]  # words of one draft have one line
                found.append((begin, end))
            i += 2
    return found


def lines_under(run: Run, ranges: Sequence[tuple[int, int]]) -> list[QRectF]:
    """A line for each range and line of text, one pixel high, in the coordinates of the run's box."""
    from app.chat.boxes import units, x_of

    text = run.text
    if units(text) != len(text):
        ranges = [(units(text[:a]), units(text[:b])) for a, b in ranges]
    found: list[QRectF] = []
    first = 0
    for n in range(run.layout.lineCount()):
        line = run.layout.lineAt(n)
        begin, end = line.textStart(), line.textStart() + line.textLength()
        while first < len(ranges) and ranges[first][1] <= begin:
            first += 1
        y = round(run.at.y() + line.y() + line.ascent() + _BELOW)
        for a, b in ranges[first:]:
            if a >= end:
                break
            x1, x2 = x_of(line, max(a, begin)), x_of(line, min(b, end))
            found.append(QRectF(run.at.x() + x1, y, x2 - x1, 1))
    return found


def paint_lines(painter: QPainter, lines: Sequence[QRectF]) -> None:
    """Paint the lines at the painter's origin, dotted by a pattern: dashes of a pen take longer."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(QBrush(theme().color("plot.draft"), Qt.BrushStyle.Dense4Pattern))
    painter.drawRects(list(lines))
    painter.restore()
