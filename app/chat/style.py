"""Fonts, colours and distances of rendered text, taken from the theme once for each change of it."""

from __future__ import annotations

from dataclasses import dataclass
from string import ascii_lowercase

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QTextCharFormat, QTextOption

from app.chat.markdown import Span
from app.theme import Theme

SYNTAX = ("keyword", "string", "number", "comment", "name")
_HEADINGS = ("title", "lead", "body")


@dataclass(frozen=True, slots=True)
class Line:
    """A font with the height of its lines."""

    font: QFont
    height: int


class Style:
    """What a message is drawn with; `muted` is for thinking, smaller and less loud."""

    def __init__(self, theme: Theme, muted: bool = False) -> None:
        body = theme.font("ui" if muted else "body")
        self.text = theme.color("text.muted" if muted else "text.primary")
        self.muted = theme.color("text.muted")
        self.link = theme.color("accent.text")
        self.accent = theme.color("accent.base")
        self.plate = theme.color("surface.code")
        self.plate_line = theme.color("line.hair")
        self.hair = theme.color("line.hair")
        self.strong = theme.color("line.strong")
        self.selection = QColor(theme.color("accent.base"))
        self.selection.setAlphaF(0.35 if theme.dark else 0.25)
        self.syntax = {name: theme.color(f"syntax.{name}") for name in SYNTAX}
        self.body = Line(body, round(body.pixelSize() * 1.55))
        mono = theme.font("mono")
        self.code = Line(mono, round(mono.pixelSize() * 1.5))
        self.small = theme.font("small")
        self.headings = tuple(
            Line(f, round(f.pixelSize() * 1.4))
            for f in (theme.font(name, "semibold") for name in _HEADINGS)  # type: ignore[arg-type]
        )
        bold = QFontMetricsF(self.heading(3).font)
        self.letter = bold.horizontalAdvance(ascii_lowercase) / len(ascii_lowercase)
        self.indent = round(body.pixelSize() * 1.7)
        self.quote = 16
        self.pad = 12
        self.header = theme.size("controlCompact") + 4
        self.gap = round(body.pixelSize() * 0.75)
        self.radius = theme.radius("panel")
        self.wrap = _option(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.wrap_code = _option(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.wrap_code.setTabStopDistance(QFontMetricsF(mono).horizontalAdvance("0" * 4))
        self.right = _option(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.right.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignAbsolute)
        self.tables = {a: QTextOption(self.wrap) for a in ("", "left", "right", "center")}

        self.tables["right"].setAlignment(Qt.AlignmentFlag.AlignRight)
        self.tables["center"].setAlignment(Qt.AlignmentFlag.AlignHCenter)

    def heading(self, level: int) -> Line:
        """The font of a heading, 1 to 6."""
        return self.headings[min(level, len(self.headings)) - 1]

    def format(self, span: Span, line: Line) -> QTextCharFormat | None:
        """How a span differs from the font of its line; None if it does not."""
        plain = not (span.bold or span.italic or span.strike or span.code or span.math or span.href)
        if plain:
            return None
        made = QTextCharFormat()
        font = QFont(self.code.font if span.code or span.math else line.font)
        if span.code or span.math:
            font.setPixelSize(max(round(line.font.pixelSize() * 0.93), 1))
        if span.bold:
            font.setWeight(QFont.Weight.DemiBold)
        font.setItalic(span.italic)
        font.setStrikeOut(span.strike)
        font.setUnderline(bool(span.href))
        made.setFont(font)
        if span.href:
            made.setForeground(self.link)
        return made


def _option(mode: QTextOption.WrapMode) -> QTextOption:
    option = QTextOption()
    option.setWrapMode(mode)
    # Right-to-left paragraphs are told by their first letters.

    option.setTextDirection(Qt.LayoutDirection.LayoutDirectionAuto)
    return option
