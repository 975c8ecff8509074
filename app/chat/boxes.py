"""Pieces laid out as boxes of text: where each line stands, what is drawn around it, what was hit."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import (
    QColor,
    QFontMetricsF,
    QPainter,
    QTextCharFormat,
    QTextLayout,
    QTextLine,
    QTextOption,
)

from app.chat.colors import Mark
from app.chat.drafted import Stretch
from app.chat.markdown import Kind, Piece, Span
from app.chat.style import Line, Style

# Lines of code and rows of a table that are laid out at once.
CODE_LINES = 8
TABLE_ROWS = 8
_NEW_LINE = "\u2028"


def units(text: str) -> int:
    """The length of a text as Qt counts it, in UTF-16 units."""
    return (
        len(text)
        if text.isascii() or max(text) < "\U00010000"
        else len(text.encode("utf-16-le")) // 2
    )


def cut(text: str, start: int, end: int) -> str:
    """A part of a text, by offsets in UTF-16 units."""
    if not text or text.isascii() or max(text) < "\U00010000":
        return text[start:end]
    return text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le", "replace")


class Part(NamedTuple):
    """A piece, or a stretch of a long one; `source` is the piece's index, `start` where its code begins.

    `columns` are the widest cells of the whole table in letters.
    """

    piece: Piece
    source: int
    start: int = 0
    first: bool = True
    last: bool = True
    columns: tuple[int, ...] = ()


def split(piece: Piece, source: int) -> list[Part]:
    """Cut long code and tables, so that no single box takes long to lay out."""
    if piece.kind is Kind.CODE:
        return _split_code(piece, source)
    if piece.kind is not Kind.TABLE:
        return [Part(piece, source)]
    columns = [1] * max(len(row) for row in piece.rows)
    for row in piece.rows:
        for c, cell in enumerate(row):
            columns[c] = max(columns[c], sum(_letters(s.text) for s in cell))
    starts = range(0, len(piece.rows), TABLE_ROWS)
    return [
        Part(
            replace(piece, rows=piece.rows[at : at + TABLE_ROWS]), source, at,
            at == 0, at == starts[-1], tuple(columns),
        )
        for at in starts
    ]  # fmt: skip


def _letters(text: str) -> int:
    """How many usual letters are as wide as a text: m, w and those of East Asia take two places."""
    letters = len(text) + sum(map(text.count, "mwMW"))
    if text.isascii():
        return letters
    return letters + sum(unicodedata.east_asian_width(c) in "WF" for c in text)


def _split_code(piece: Piece, source: int) -> list[Part]:
    if piece.code.count("\n") < CODE_LINES:
        return [Part(piece, source)]
    lines = piece.code.split("\n")
    parts, at = [], 0
    for i in range(0, len(lines), CODE_LINES):
        code = "\n".join(lines[i : i + CODE_LINES])
        parts.append(
            Part(replace(piece, code=code), source, at, i == 0, i + CODE_LINES >= len(lines))
        )
        at += len(code) + 1
    return parts


@dataclass(slots=True)
class Run:
    """Text that flows as one; `joint` is what stands before it when it is copied."""

    layout: QTextLayout
    text: str
    at: QPointF
    height: float
    joint: str = ""
    links: list[tuple[int, int, str]] = field(default_factory=list)

    @property
    def length(self) -> int:
        """In UTF-16 units."""
        return units(self.text)

    def hit(self, x: float, y: float) -> int:
        """The place between letters that is nearest to a point of the box."""
        line = self._line(y)
        return int(line.xToCursor(x - self.at.x())) if line else 0

    def link(self, x: float, y: float) -> str:
        """The address under a point of the box, "" if none."""
        line = self._line(y) if self.links else None
        if line is None or not line.naturalTextRect().translated(self.at).contains(x, y):
            return ""
        at = line.xToCursor(x - self.at.x(), QTextLine.CursorPosition.CursorOnCharacter)
        return next((href for a, b, href in self.links if a <= at < b), "")

    def _line(self, y: float) -> QTextLine | None:
        count = self.layout.lineCount()
        for i in range(count):
            line = self.layout.lineAt(i)
            if y - self.at.y() < line.y() + line.height() or i == count - 1:
                return line
        return None


@dataclass(slots=True)
class Box:
    """One part laid out; positions are from its own top left, `gap` is the room it wants above.

    `stretches` say for each run where its letters stand in the message's text, up to `end`; `dots` are the
    lines under what was drafted. None of these before they are asked for.
    """

    part: Part
    gap: float
    height: float = 0.0
    runs: list[Run] = field(default_factory=list)
    plates: list[QRectF] = field(default_factory=list)
    rules: list[float] = field(default_factory=list)
    left: float = 0.0
    width: float = 0.0
    y: float = 0.0
    stretches: list[list[Stretch]] | None = None
    end: int = 0
    dots: list[QRectF] | None = None

    def draw(
        self, painter: QPainter, style: Style, marked: Callable[[int], tuple[int, int] | None],
        clip: QRectF,
    ) -> None:  # fmt: skip
        """Paint at the painter's origin; `marked(i)` is the selected range of run `i`."""
        piece = self.part.piece
        self._draw_around(painter, style)
        quiet = piece.quote or (piece.kind is Kind.TEXT and not self.runs)
        painter.setPen(style.muted if quiet else style.text)
        for i, run in enumerate(self.runs):
            ranges = []
            if (chosen := marked(i)) is not None and chosen[1] > chosen[0]:
                ranges.append(
                    _range(chosen[0], chosen[1] - chosen[0], _background(style.selection))
                )
            run.layout.draw(painter, run.at, ranges, clip)

    def _draw_around(self, painter: QPainter, style: Style) -> None:
        piece = self.part.piece
        bottom = self.height + (0.0 if self.part.last else 1.0)
        for i in range(piece.quote):
            x = i * style.quote
            painter.fillRect(QRectF(x, -self.gap, 2, self.height + self.gap), style.strong)
        if piece.kind is Kind.CODE:
            self._draw_panel(painter, style)
        for rect in self.plates:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(style.plate)
            painter.drawRoundedRect(rect, 3, 3)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for y in self.rules:
            painter.fillRect(QRectF(self.left, min(y, bottom), self.width, 1), style.hair)
        if piece.marker and self.runs:
            self._draw_marker(painter, style)

    def _draw_marker(self, painter: QPainter, style: Style) -> None:
        font = style.body.font
        width = QFontMetricsF(font).horizontalAdvance(self.part.piece.marker)
        right = self.left - style.indent * 0.35
        rect = QRectF(
            right - max(width, style.indent),
            self.runs[0].at.y(),
            max(width, style.indent),
            style.body.height,
        )
        painter.setFont(font)
        painter.setPen(style.muted)
        flags = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(rect, flags, self.part.piece.marker)

    def _draw_panel(self, painter: QPainter, style: Style) -> None:
        first, last = self.part.first, self.part.last
        radius = float(style.radius)
        top, bottom = (0.5 if first else -radius), self.height + (-0.5 if last else radius)
        painter.save()
        painter.setClipRect(
            QRectF(self.left, 0, self.width, self.height), Qt.ClipOperation.IntersectClip
        )
        painter.setPen(style.plate_line)
        painter.setBrush(style.plate)
        painter.drawRoundedRect(
            QRectF(self.left + 0.5, top, self.width - 1, bottom - top), radius, radius
        )
        painter.restore()
        if first:
            painter.fillRect(QRectF(self.left, style.header, self.width, 1), style.plate_line)
            painter.setFont(style.small)
            painter.setPen(style.muted)
            rect = QRectF(self.left + style.pad, 0, self.width / 2, style.header)
            painter.drawText(rect, Qt.AlignmentFlag.AlignVCenter, self.part.piece.language)


def lay_out(part: Part, width: float, style: Style, marks: Sequence[Mark] = ()) -> Box:
    """Break a part into lines of `width` px; `marks` colour its code."""
    piece = part.piece
    left = piece.depth * style.indent + piece.quote * style.quote
    box = Box(part, _gap(part, style), left=left, width=max(width - left, 80.0))
    match piece.kind:
        case Kind.CODE:
            _lay_code(box, style, marks)
        case Kind.TABLE:
            _lay_table(box, style)
        case Kind.RULE:
            box.height = 1.0
            box.rules.append(0.0)
        case _:
            line = style.heading(piece.level) if piece.kind is Kind.HEADING else style.body
            run = _lay_spans(box, piece.spans, line, style, QPointF(left, 0), box.width, style.wrap)
            run.joint = _joint(piece)
            box.height = run.height
    return box


def _gap(part: Part, style: Style) -> float:
    if not part.first:
        return 0.0
    if part.piece.kind is Kind.HEADING:
        return style.gap * 1.7
    if part.piece.kind in (Kind.CODE, Kind.RULE):
        return style.gap * 1.2
    return style.gap * 0.4 if part.piece.tight else style.gap


def _joint(piece: Piece) -> str:
    indent = "  " * max(piece.depth - 1, 0)
    mark = f"{piece.marker} " if piece.marker else ""
    return ("\n" if piece.tight else "\n\n") + indent + mark


def _lay_spans(
    box: Box, spans: Sequence[Span], line: Line, style: Style, at: QPointF, width: float,
    option: QTextOption,
) -> Run:  # fmt: skip
    """Lay spans out as one run of the box."""
    ranges: list[QTextLayout.FormatRange] = []
    links, plates, start = [], [], 0
    for span in spans:
        length = units(span.text)
        if (made := style.format(span, line)) is not None:
            ranges.append(_range(start, length, made))
        if span.href:
            links.append((start, start + length, span.href))
        if span.code:
            plates.append((start, start + length))
        start += length
    text = "".join(span.text for span in spans)
    option = style.right if option is style.wrap and _is_right_to_left(text) else option
    run = _flow(text, line, at, width, option, ranges)
    run.links = links
    for begin, end in plates:
        box.plates += _cover(run, begin, end)
    box.runs.append(run)
    return run


def _is_right_to_left(text: str) -> bool:
    """Whether the first letter that has a direction runs from right to left."""
    if text.isascii():
        return False
    kinds = (unicodedata.bidirectional(c) for c in text[:200])
    return next((k for k in kinds if k in ("L", "R", "AL")), "L") != "L"


def _flow(
    text: str, line: Line, at: QPointF, width: float, option: QTextOption,
    ranges: list[QTextLayout.FormatRange],
) -> Run:  # fmt: skip
    layout = QTextLayout(text.replace("\n", _NEW_LINE), line.font)
    layout.setCacheEnabled(True)
    layout.setTextOption(option)
    if ranges:
        layout.setFormats(ranges)
    y = 0.0
    layout.beginLayout()
    while (made := layout.createLine()).isValid():
        made.setLineWidth(width)
        # Letters of a fallback font may be taller than the line is meant to be.
        height = max(float(line.height), float(math.ceil(made.height())))
        made.setPosition(QPointF(0, y + (height - made.height()) / 2))
        y += height
    layout.endLayout()
    return Run(layout, text, at, max(y, float(line.height)))


def _cover(run: Run, begin: int, end: int) -> list[QRectF]:
    """The rectangles behind a range of a run, one for each line."""
    rects = []
    for i in range(run.layout.lineCount()):
        line = run.layout.lineAt(i)
        a, b = max(begin, line.textStart()), min(end, line.textStart() + line.textLength())
        if a < b:
            x1, x2 = sorted((x_of(line, a), x_of(line, b)))
            rect = QRectF(x1 - 2, line.y() - 1, x2 - x1 + 4, line.height() + 2)
            rects.append(rect.translated(run.at))
    return rects


def x_of(line: QTextLine, position: int) -> float:
    """Where a letter of a line begins, from the line's left."""
    found: Any = line.cursorToX(position)  # with the position that was used, where it was moved
    return float(found[0] if isinstance(found, tuple) else found)


def _lay_code(box: Box, style: Style, marks: Sequence[Mark]) -> None:
    part, code = box.part, box.part.piece.code
    formats = {name: _foreground(color) for name, color in style.syntax.items()}
    wide = units(code) != len(code)
    ranges = []
    for start, length, name in marks:
        start -= part.start
        if wide:
            start, length = units(code[:start]), units(code[start : start + length])
        ranges.append(_range(start, length, formats[name]))
    top = style.header + style.pad if part.first else 0.0
    at = QPointF(box.left + style.pad, top)
    run = _flow(code, style.code, at, box.width - 2 * style.pad, style.wrap_code, ranges)
    run.joint = "\n\n" if part.first else "\n"
    box.runs.append(run)
    box.height = top + run.height + (style.pad if part.last else 0)


def _lay_table(box: Box, style: Style) -> None:
    part, pad = box.part, 8.0
    widths = _columns(part.columns, box.width, style, pad)
    box.width = sum(widths)
    bold = Line(style.heading(3).font, style.body.height)
    y = 0.0
    for r, row in enumerate(part.piece.rows):
        x, height = box.left, 0.0
        line = bold if part.first and r == 0 else style.body
        for c, (cell, width) in enumerate(zip(row, widths, strict=False)):
            align = part.piece.align[c] if c < len(part.piece.align) else ""
            at = QPointF(x + pad, y + pad / 2)
            option = style.tables.get(align, style.wrap)
            run = _lay_spans(box, cell, line, style, at, width - 2 * pad, option)
            run.joint = "\t" if c else "\n" if r or not part.first else "\n\n"
            x, height = x + width, max(height, run.height)
        y += height + pad
        box.rules.append(y - 1)
    box.height = y


def _columns(columns: Sequence[int], room: float, style: Style, pad: float) -> list[float]:
    """Widths for columns of so many letters: as wide as they want, or narrow ones first."""
    # Texts are narrower than the mean of bold letters, but short bold words are wider and must not be broken.
    wanted = [(n * 0.85 + 1.5) * style.letter + 2 * pad for n in columns]
    widths = [0.0] * len(wanted)
    left = room
    for rank, c in enumerate(sorted(range(len(wanted)), key=wanted.__getitem__)):
        widths[c] = min(wanted[c], left / (len(wanted) - rank))
        left -= widths[c]
    return widths


def _range(start: int, length: int, made: QTextCharFormat) -> QTextLayout.FormatRange:
    found = QTextLayout.FormatRange()
    found.start = start
    found.length = length
    found.format = made
    return found


def _foreground(color: QColor) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setForeground(color)
    return made


def _background(color: QColor) -> QTextCharFormat:
    made = QTextCharFormat()
    made.setBackground(color)
    return made
