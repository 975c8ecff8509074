"""Markdown to flat pieces; only text and styles come out, so nothing that a model writes can run.

Raw HTML stays text, images become words, and links keep an address only for http, https and mailto.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

LINK_SCHEMES = frozenset({"http", "https", "mailto"})
MAX_DEPTH = 8
_BARE_LINK = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]]*[^\s<>\"'`|\\^{}\[\].,;:!?)]")
_CONTROL = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
_LISTS = ("bullet_list_open", "ordered_list_open")
_BULLETS = ("•", "◦", "▪")
_NESTED = 20
_TASKS = {"[ ] ": "☐", "[x] ": "☑", "[X] ": "☑"}
_MATH_ENDS = {"\\(": "\\)", "\\[": "\\]", "$$": "$$"}


class Kind(StrEnum):
    """What a piece is."""

    TEXT = "text"
    HEADING = "heading"
    CODE = "code"
    TABLE = "table"
    RULE = "rule"


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text of one style; `href` is safe to open on a click."""

    text: str
    bold: bool = False
    italic: bool = False
    strike: bool = False
    code: bool = False
    math: bool = False
    href: str = ""


@dataclass(frozen=True, slots=True)
class Piece:
    """One paragraph, heading, code block, table or rule.

    `marker` is what a list puts before it, `depth` how many lists hold it, `quote` how many quotes;
    `tight` asks for little room above. Tables: `rows[r][c]`, the first the header; `align[c]`.
    """

    kind: Kind
    spans: tuple[Span, ...] = ()
    level: int = 0
    code: str = ""
    language: str = ""
    closed: bool = True
    rows: tuple[tuple[tuple[Span, ...], ...], ...] = ()
    align: tuple[str, ...] = ()
    marker: str = ""
    depth: int = 0
    quote: int = 0
    tight: bool = False

    @property
    def text(self) -> str:
        """The words, without marks of Markdown."""
        if self.kind is Kind.CODE:
            return self.code
        if self.kind is Kind.TABLE:
            rows = ("\t".join("".join(s.text for s in cell) for cell in row) for row in self.rows)
            return "\n".join(rows)
        return "".join(span.text for span in self.spans)


def clean(text: str) -> str:
    """Text without control characters and without marks that turn the direction of what follows."""
    return _CONTROL.sub("�", text.replace("\r\n", "\n").replace("\r", "\n"))


def safe_link(href: str) -> str:
    """The address if a browser or mail program may be given it, else ""."""
    try:
        parts = urlsplit(href.strip())
    except ValueError:
        return ""
    if parts.scheme.lower() not in LINK_SCHEMES or (parts.scheme != "mailto" and not parts.netloc):
        return ""
    return "" if any(c.isspace() or ord(c) < 32 for c in href.strip()) else href.strip()


def _math_inline(state: StateInline, silent: bool) -> bool:
    """Formulas stay as written: backslashes, underscores and stars in them are no marks."""
    start = state.pos
    src, end = state.src, state.posMax
    opening = src[start : start + 2]
    closing = _MATH_ENDS.get(opening)
    if closing:
        stop = src.find(closing, start + 2, end)
        stop = stop + 2 if stop >= 0 else -1
    elif opening[:1] == "$" and len(opening) == 2 and not opening[1].isspace():
        stop = src.find("$", start + 1, end)
        price = stop < 0 or src[stop - 1].isspace() or src[stop + 1 : stop + 2].isdigit()
        stop = -1 if price or "\n" in src[start:stop] else stop + 1
    else:
        return False
    if stop < 0:
        return False
    if not silent:
        state.push("math", "", 0).content = src[start:stop]
    state.pos = stop
    return True


def _math_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Lines from one that begins with \\[ or $$ to the one that closes it."""
    begin = state.bMarks[start] + state.tShift[start]
    closing = {"\\[": "\\]", "$$": "$$"}.get(state.src[begin : begin + 2])
    if closing is None or state.is_code_block(start):
        return False
    if silent:
        return True
    line, after = start, begin + 2
    while line < end and closing not in state.src[after : state.eMarks[line]]:
        line += 1
        if line < end and state.isEmpty(line):
            return False
        after = state.bMarks[line] if line < end else 0
    # One without an end may still be growing; what stands behind an end makes it part of a sentence.
    if line < end and state.src[after : state.eMarks[line]].rstrip()[-2:] != closing:
        return False
    state.line = min(line + 1, end)
    token = state.push("math_block", "", 0)
    token.content = state.getLines(start, state.line, state.blkIndent, False).strip()
    token.map = [start, state.line]
    return True


@functools.cache
def _parser() -> MarkdownIt:
    # Reading leaves no trace in it, so one serves all messages.
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline"])
    parser.inline.ruler.before("escape", "math", _math_inline)
    alt = ["paragraph", "reference", "blockquote", "list"]
    parser.block.ruler.before("fence", "math_block", _math_block, {"alt": alt})
    return parser


class Markdown:
    """Reads Markdown a part at a time; link definitions hold for all parts after them."""

    def __init__(self) -> None:
        self._parser = _parser()
        self._links: dict[str, Any] = {}
        self._found: dict[str, Any] = {}
        self._starts: list[int] = []

    def read(self, text: str) -> list[tuple[int, list[Piece]]]:
        """The blocks of a text: the offset at which each starts, and its pieces.

        A top-level list gives one block for each of its items.
        """
        self._starts = [0]
        for line in text.split("\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)
        env: dict[str, Any] = {"references": dict(self._links)}
        blocks = []
        for token, group in _groups(self._parser.parse(text, env)):
            begin, end = (self._starts[line] for line in token.map or (0, 0))
            pieces = _flatten(group)
            if not pieces and end - begin > _NESTED:
                # The parser drops what is nested deeper than it allows; words are never dropped.
                pieces = [Piece(Kind.TEXT, (Span(text[begin:end].rstrip()),))]
            blocks.append((begin, pieces))
        self._found = {k: v for k, v in env["references"].items() if k not in self._links}
        return blocks

    def keep(self, before: int) -> None:
        """Hold on to the link definitions that end before an offset of the text read last.

        A later one may be half written, and the first of a name is the one that counts.
        """
        for name, link in self._found.items():
            if self._starts[link["map"][1]] <= before:
                self._links.setdefault(name, link)


def _groups(tokens: Sequence[Token]) -> Iterator[tuple[Token, list[Token]]]:
    """The tokens of each block, with the one that has its lines."""
    group: list[Token] = []
    for token in tokens:
        group.append(token)
        if token.level == 0 and token.nesting <= 0:
            if group[0].type in _LISTS:
                yield from _items(group)
            else:
                yield group[0], group
            group = []


def _items(group: list[Token]) -> Iterator[tuple[Token, list[Token]]]:
    begin = 1
    for i in range(1, len(group)):
        if group[i].type == "list_item_close" and group[i].level == 1:
            yield group[begin], [group[0], *group[begin : i + 1], group[-1]]
            begin = i + 1


def _flatten(tokens: Sequence[Token]) -> list[Piece]:
    pieces: list[Piece] = []
    ordered: list[bool] = []
    quote, marker, i = 0, "", 0

    def put(piece: Piece) -> None:
        nonlocal marker
        depth = min(len(ordered), MAX_DEPTH)
        pieces.append(replace(piece, marker=marker, depth=depth, quote=min(quote, MAX_DEPTH)))
        marker = ""

    while i < len(tokens):
        token = tokens[i]
        match token.type:
            case "blockquote_open" | "blockquote_close":
                quote += token.nesting
            case "bullet_list_open" | "ordered_list_open":
                ordered.append(token.type == "ordered_list_open")
            case "bullet_list_close" | "ordered_list_close":
                ordered.pop()
            case "list_item_open":
                bullet = _BULLETS[min(len(ordered), len(_BULLETS)) - 1]
                marker = f"{token.info}." if ordered[-1] else bullet
            case "list_item_close" if marker:
                put(Piece(Kind.TEXT, tight=True))
            case "paragraph_open":
                spans = _spans(tokens[i + 1].children or [])
                if marker and spans and (task := _TASKS.get(spans[0].text[:4])):
                    marker = task
                    spans[0] = replace(spans[0], text=spans[0].text[4:])
                # Items stand close also where blank lines part them: a later item must not move them.
                put(Piece(Kind.TEXT, tuple(spans), tight=bool(marker) or token.hidden))
                i += 2
            case "heading_open":
                spans = _spans(tokens[i + 1].children or [])
                put(Piece(Kind.HEADING, tuple(spans), level=int(token.tag[1])))
                i += 2
            case "fence" | "code_block":
                put(_code(token))
            case "math_block":
                put(Piece(Kind.TEXT, (Span(token.content, math=True),)))
            case "hr":
                put(Piece(Kind.RULE))
            case "table_open":
                end = next(j for j in range(i, len(tokens)) if tokens[j].type == "table_close")
                put(_table(tokens[i:end]))
                i = end
        i += 1
    return pieces


def _code(token: Token) -> Piece:
    lines = token.content.removesuffix("\n").count("\n") + bool(token.content)
    # A fence that was closed spans its two marks besides the code's own lines.
    closed = (
        token.type == "code_block" or token.map is None or token.map[1] - token.map[0] > lines + 1
    )
    words = token.info.split()
    code = token.content.removesuffix("\n")
    return Piece(Kind.CODE, code=code, language=words[0] if words else "", closed=closed)


def _table(tokens: Sequence[Token]) -> Piece:
    rows: list[list[tuple[Span, ...]]] = []
    align: list[str] = []
    for i, token in enumerate(tokens):
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("th_open", "td_open"):
            rows[-1].append(tuple(_spans(tokens[i + 1].children or [])))
            if token.type == "th_open":
                align.append(str(token.attrGet("style") or "").removeprefix("text-align:"))
    return Piece(Kind.TABLE, rows=tuple(tuple(row) for row in rows), align=tuple(align))


def _spans(tokens: Sequence[Token]) -> list[Span]:
    style = Span("")
    spans: list[Span] = []
    for token in tokens:
        match token.type:
            case "text" | "html_inline":
                spans += linked(token.content, style)
            case "softbreak" | "hardbreak":
                spans.append(replace(style, text="\n"))
            case "code_inline":
                spans.append(replace(style, text=token.content, code=True))
            case "math":
                spans.append(replace(style, text=token.content, math=True))
            case "image":
                spans += _image(token, style)
            case "strong_open" | "strong_close":
                style = replace(style, bold=token.nesting > 0)
            case "em_open" | "em_close":
                style = replace(style, italic=token.nesting > 0)
            case "s_open" | "s_close":
                style = replace(style, strike=token.nesting > 0)
            case "link_open":
                style = replace(style, href=safe_link(str(token.attrGet("href") or "")))
            case "link_close":
                style = replace(style, href="")
    return [span for span in spans if span.text]


def _image(token: Token, style: Span) -> list[Span]:
    """A picture is never fetched: its words are shown, and its address as a link."""
    source = str(token.attrGet("src") or "")
    href = safe_link(source)
    shown = source if len(source) <= 80 else source[:79] + "…"
    alt = replace(style, text=token.content or shown, italic=True, href=href or style.href)
    return [alt] if not token.content else [alt, replace(style, text=f" ({shown})", href=href)]


def linked(text: str, style: Span) -> list[Span]:
    """A text's spans, bare web addresses in it made links."""
    if "://" not in text or style.href:
        return [replace(style, text=text)]
    spans, at = [], 0
    for match in _BARE_LINK.finditer(text):
        if href := safe_link(match[0]):
            spans += [replace(style, text=text[at : match.start()])] if match.start() > at else []
            spans.append(replace(style, text=match[0], href=href))
            at = match.end()
    return spans + ([replace(style, text=text[at:])] if at < len(text) else [])
