"""Values of arguments that stand between tags."""

from __future__ import annotations

import re

from engine.reader import Reader, Reading, begun
from engine.toolcalls.calls import Write, inside_string, typed

Ends = tuple[tuple[str, tuple[str, ...], bool], ...]
"""Marks that end a value if one of some others follows; and whether the mark is read with it."""


def tagged_value(
    reader: Reader, write: Write, types: list[str], ends: Ends, lines: bool = False
) -> Reading[bool]:
    """Write a value that stands between tags: strings as they come, others once they are whole.

    `lines`: the line ends next to the tags are not part of it. False where the text breaks off.
    """
    if lines:
        yield from reader.take("\n")
    if types == ["string"]:
        write('"')
        whole = yield from _between(reader, lambda text: write(inside_string(text)), ends, lines)
        write('"' if whole else "")
        return whole
    parts: list[str] = []
    whole = yield from _between(reader, parts.append, ends, lines)
    if whole:
        write(typed("".join(parts), types))
    return whole


def _between(reader: Reader, write: Write, ends: Ends, lines: bool) -> Reading[bool]:
    """Hand on the text up to the first end; a mark that nothing fitting follows is part of the text."""
    marks = [mark for mark, _, _ in ends]
    search = re.compile("|".join(map(re.escape, marks))).search
    held = [*marks, *("\n" + mark for mark in marks)] if lines else marks
    while True:
        found = search(reader.text, reader.at)
        if found is None:
            end = len(reader.text) - begun(reader.text, held, reader.at)
            _pass(reader, write, end)
            if not (yield from reader.more()):
                return False
            continue
        cut = found.start()
        if lines and cut > reader.at and reader.text[cut - 1] == "\n":
            cut -= 1
        mark, n = found[0], found.end() - cut
        _pass(reader, write, cut)
        reader.keep = reader.at
        reader.at += n
        yield from reader.space()
        follow, read = next((then, read) for m, then, read in ends if m == mark)
        fits = (yield from reader.which(follow)) is not None or reader.cut_off(*follow)
        at, reader.keep = reader.keep, None
        if fits:
            reader.at = reader.at if read else at
            return True
        reader.at = at
        _pass(reader, write, at + n)


def _pass(reader: Reader, write: Write, end: int) -> None:
    if end > reader.at:
        write(reader.text[reader.at : end])
        reader.at = end
