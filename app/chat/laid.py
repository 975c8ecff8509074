"""A message laid out: its boxes from top to bottom, made in parts that never take long."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QPainter

from app.chat.blocks import Blocks
from app.chat.boxes import Box, Part, cut, lay_out, split
from app.chat.colors import Coloring, Lexers, Mark, open_from
from app.chat.drafted import Stretch, align, lines_under, paint_lines, underlined
from app.chat.markdown import Kind
from app.chat.style import Style

if TYPE_CHECKING:
    from pygments.lexer import Lexer

# Letters that are read at once.
FEED = 500


class Place(NamedTuple):
    """A place between letters of a message: which box, which run of it, which UTF-16 unit."""

    box: int = 0
    run: int = 0
    at: int = 0


END = Place(2**31, 0, 0)


class Laid:
    """The boxes of one message; `text` and `width` may change, and only what differs is made anew.

    Until `advance` says it is done, boxes not yet made anew are shown as they were.
    """

    def __init__(self, style: Style, lexers: Lexers, plain: bool = False) -> None:
        self.boxes: list[Box] = []
        self.height = 0.0
        self.text = ""
        self._style = style
        self._lexers = lexers
        self._plain = plain
        self._reader: Blocks | None = None
        self._fed = 0
        self._parts: list[Part] = []
        self._made = 0
        self._width = 0.0
        self._change = 0.0
        self._coloring: tuple[int, Coloring] | None = None
        self._anchors: dict[tuple[int, int], int] = {}

    def set_text(self, text: str) -> None:
        """Show another text, most often the former one with more behind it."""
        if text != self.text:
            if not text.startswith(self.text[: self._fed]):
                self._fed = 0
            self.text = text

    def set_width(self, width: float) -> None:
        """Break lines at another width."""
        if width != self._width:
            self._width = width
            self._made = 0

    def set_style(self, style: Style) -> None:
        """Use other fonts and colours."""
        self._style = style
        self._made = 0

    def recolor(self, language: str) -> bool:
        """Colour the code of a language whose rules are known now; whether there is any."""
        found = any(p.piece.language.lower() == language for p in self._parts)
        if found:
            self._made = 0
        return found

    @property
    def _blocks(self) -> Blocks:
        """Made when it is first needed: most messages of a long chat are never looked at."""
        if self._reader is None:
            self._reader = Blocks(self._plain)
        return self._reader

    def take_change(self) -> float:
        """From which height on the picture differs since this was asked last; infinite if nowhere."""
        change, self._change = self._change, float("inf")
        return change

    @property
    def head_height(self) -> int:
        """The height of the line above code that names its language."""
        return self._style.header

    @property
    def done(self) -> bool:
        """Whether everything shown is as it should be."""
        return self._fed >= len(self.text) and self._made >= len(self._parts)

    def advance(self, deadline: float) -> bool:
        """Work until all is done or `time.perf_counter()` passes `deadline`; whether all is done."""
        done = self.done
        while not done:
            if self._fed < len(self.text):
                self._feed()
            else:
                self._make(self._made)
                self._made += 1
            done = self.done
            if time.perf_counter() > deadline:
                break
        if done:
            del self.boxes[len(self._parts) :]
        self._place()
        return done

    def _feed(self) -> None:
        self._fed = min(self._fed + FEED, len(self.text))
        first = self._blocks.update(self.text[: self._fed])
        kept = next((i for i, p in enumerate(self._parts) if p.source >= first), len(self._parts))
        pieces = self._blocks.pieces
        new = [p for i in range(first, len(pieces)) for p in split(pieces[i], i)]
        for part in new:
            if kept >= len(self._parts) or self._parts[kept] != part:
                break
            kept += 1
        start = next((i for i, p in enumerate(self._parts) if p.source >= first), len(self._parts))
        self._parts[start:] = new
        self._made = min(self._made, kept)

    def _make(self, i: int) -> None:
        part = self._parts[i]
        box = lay_out(part, self._width, self._style, self._marks(part))
        # The box before, too: the mark of writing stood at its end.
        above = self.boxes[i - 1].y if 0 < i <= len(self.boxes) else 0.0
        self._change = min(self._change, above)
        if i < len(self.boxes):
            self.boxes[i] = box
        else:
            self.boxes.append(box)

    def _marks(self, part: Part) -> list[Mark]:
        if part.piece.kind is not Kind.CODE or not part.piece.language:
            return []
        lexer = self._lexers.get(part.piece.language)
        if lexer is None:
            return []
        whole, end = self._blocks.pieces[part.source].code, part.start + len(part.piece.code)
        if not part.piece.closed:
            # Still being written: colouring from the top again at each word would take too long.
            return self._open_marks(lexer, part, whole, end)
        if part.first or self._coloring is None or self._coloring[0] != part.source:
            self._coloring = (part.source, Coloring(lexer, whole))
        self._coloring[1].until(part.start)
        return self._coloring[1].until(end)

    def _open_marks(self, lexer: Lexer, part: Part, whole: str, end: int) -> list[Mark]:
        """The marks of a part of open code; what began above it, as a long string, goes on in it."""
        anchor = self._anchors.get((part.source, part.start), part.start)
        # Of what goes on, the line where it begins says enough.
        head = whole[anchor : whole.find("\n", anchor) + 1] if anchor < part.start else ""
        text = head + whole[part.start : end + 1]
        shift = part.start - len(head)
        marks = Coloring(lexer, text).until(len(text))
        if not part.last:
            goes_on = open_from(marks, len(text))
            goes_on += anchor if goes_on < len(head) else shift
            self._anchors[part.source, end + 1] = goes_on
        spans = [
            (max(shift + a, part.start), min(shift + a + n, end), name) for a, n, name in marks
        ]
        return [(a, b - a, name) for a, b, name in spans if a < b]

    def _place(self) -> None:
        y = 0.0
        for i, box in enumerate(self.boxes):
            y += box.gap if i else 0.0
            box.y = y
            y += box.height
        self.height = y

    # Painting and reading

    def draw(
        self, painter: QPainter, clip: QRectF, chosen: tuple[Place, Place] | None = None,
        drafted: Sequence[int] = (), shift: int = 0,
    ) -> None:  # fmt: skip
        """Paint what lies within `clip`; `chosen` is the selected stretch.

        `drafted` are the stretches to be marked, of a text in which this one begins at `shift`.
        """
        if drafted:
            self._align()
        for i, box in enumerate(self.boxes):
            if box.y - box.gap > clip.bottom():
                break
            if box.y + box.height < clip.top():
                continue
            painter.translate(0, box.y)
            box.draw(painter, self._style, _ranges(box, i, chosen), clip.translated(0, -box.y))
            dots = _dots(box, box.stretches, drafted, shift) if drafted and box.stretches else []
            if dots:
                paint_lines(painter, dots)
            painter.translate(0, -box.y)

    def _align(self) -> None:
        """Find out where in the text the letters of each box stand."""
        at, starts = 0, self._blocks.starts
        for box in self.boxes[: self._made]:
            if box.stretches is None:
                at = max(at, starts[box.part.source])
                box.stretches = []
                for run in box.runs:
                    found, at = align(run.text, self.text, at)
                    box.stretches.append(found)
                box.end = at
            at = box.end

    def end_of_text(self) -> QRectF | None:
        """Where the next letter will stand: a place for the mark of writing."""
        if not self.boxes or not self.boxes[-1].runs:
            return None
        box = self.boxes[-1]
        run = box.runs[-1]
        count = run.layout.lineCount()
        if not count:
            return None
        line = run.layout.lineAt(count - 1)
        rect = line.naturalTextRect().translated(run.at + QPointF(0, box.y))
        return QRectF(rect.right() + 1, rect.top(), 7, rect.height())

    def place_at(self, x: float, y: float) -> Place:
        """The place nearest to a point."""
        near = None
        for i, box in enumerate(self.boxes):
            if box.runs and (near is None or y >= box.y):
                near = i
        if near is None:
            return Place()
        box = self.boxes[near]
        y -= box.y

        def distance(r: int) -> tuple[float, float]:
            run = box.runs[r]
            above, below = run.at.y() - y, y - run.at.y() - run.height
            return max(above, below, 0.0), abs(x - run.at.x()) if x >= run.at.x() else 1e6

        best = min(range(len(box.runs)), key=distance)
        return Place(near, best, box.runs[best].hit(x, y))

    def link_at(self, x: float, y: float) -> str:
        """The address under a point, "" if none."""
        for box in self.boxes:
            if box.y <= y <= box.y + box.height:
                return next((href for run in box.runs if (href := run.link(x, y - box.y))), "")
        return ""

    def code_of(self, box: Box) -> str:
        """The whole code that a box shows a part of."""
        return self._blocks.pieces[box.part.source].code

    def chosen_text(self, start: Place, end: Place) -> str:
        """The text between two places, as it is copied."""
        found = ""
        for i, box in enumerate(self.boxes):
            marked = _ranges(box, i, (start, end))
            for r, run in enumerate(box.runs):
                if (span := marked(r)) is None:
                    continue
                joint = run.joint if found else run.joint.lstrip("\n") if span[0] == 0 else ""
                found += joint + cut(run.text, *span)
        return found

    def word_at(self, place: Place) -> tuple[Place, Place]:
        """The word around a place."""
        if place.box >= len(self.boxes) or place.run >= len(self.boxes[place.box].runs):
            return place, place
        layout = self.boxes[place.box].runs[place.run].layout
        start = layout.previousCursorPosition(place.at + 1, layout.CursorMode.SkipWords)
        end = layout.nextCursorPosition(place.at, layout.CursorMode.SkipWords)
        return place._replace(at=start), place._replace(at=end)


def _dots(
    box: Box, stretches: list[list[Stretch]], drafted: Sequence[int], shift: int
) -> list[QRectF]:
    """The lines under what was drafted of a box, made once for each layout of it."""
    if box.dots is None:
        box.dots = []
        for run, its in zip(box.runs, stretches, strict=True):
            box.dots += lines_under(run, underlined(its, drafted, shift))
    return box.dots


def _ranges(
    box: Box, i: int, chosen: tuple[Place, Place] | None
) -> Callable[[int], tuple[int, int] | None]:
    """For each run of box `i`, the part of it that lies between two places."""

    def marked(r: int) -> tuple[int, int] | None:
        if chosen is None:
            return None
        (start, end), here = chosen, (i, r)
        if here < start[:2] or here > end[:2]:
            return None
        length = box.runs[r].length
        a = start.at if start[:2] == here else 0
        return a, (min(end.at, length) if end[:2] == here else length)

    return marked
