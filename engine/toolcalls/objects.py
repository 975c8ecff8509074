"""Reading JSON objects, and Gemma's way to write them, as they come."""

from __future__ import annotations

import re

from engine.reader import Reader, Reading, begun
from engine.toolcalls.calls import Write, inside_string
from engine.toolcalls.marks import QUOTE

_WORD = re.compile(r"[\w.+-]*")
_NUMBER = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_LITERALS = {"True": "true", "False": "false", "None": "null", "true": "true", "false": "false"}
_LITERALS["null"] = "null"
_SPECIAL = re.compile(r'["\\\x00-\x1f]')
_ESCAPE = re.compile(r'["\\/bfnrt]|u[0-9a-fA-F]{4}')
_CLOSER = {"{": "}", "[": "]"}


def read_object(
    reader: Reader, write: Write, relaxed: bool = False, inside: bool = False
) -> Reading[bool]:
    """Write the object that comes next as JSON; False where it breaks off or is not one.

    `relaxed`: also keys without quotes, and strings in other quotes. `inside`: its first member comes next.
    Line ends and the like inside strings are escaped, and Python's words for true, false and null taken.
    """
    stack: list[str] = []
    want = "value"
    if inside:
        stack.append("}")
        want = "key"
    while True:
        write((yield from reader.space()))
        c = yield from reader.peek(1)
        if not c:
            return False
        if c in "}]" and stack and stack[-1] == c and want in ("first", "first key", "next"):
            _take(reader, write, 1)
            stack.pop()
            want = "next"
        elif want == "next" and c == ",":
            _take(reader, write, 1)
            want = "key" if stack[-1] == "}" else "value"
        elif want == "colon" and c == ":":
            _take(reader, write, 1)
            want = "value"
        elif want in ("key", "first key"):
            if not (yield from (_bare_key if relaxed else _string)(reader, write)):
                return False
            want = "colon"
        elif want in ("value", "first") and c in "{[" and (stack or c == "{"):
            _take(reader, write, 1)
            stack.append(_CLOSER[c])
            want = "first key" if c == "{" else "first"
        elif want in ("value", "first") and stack:
            if not (yield from _scalar(reader, write, relaxed)):
                return False
            want = "next"
        else:
            return False
        if not stack:
            return True


def read_raw(reader: Reader, write: Write, stop: str) -> Reading[bool]:
    """Write the text up to `stop` as the inside of a JSON string; False where it does not come."""
    while (end := reader.text.find(stop, reader.at)) < 0:
        end = len(reader.text) - begun(reader.text, (stop,), reader.at)
        _escaped(reader, write, end)
        if not (yield from reader.more()):
            return False
    _escaped(reader, write, end)
    reader.at += len(stop)
    return True


def _take(reader: Reader, write: Write, n: int) -> None:
    write(reader.text[reader.at : reader.at + n])
    reader.at += n


def _escaped(reader: Reader, write: Write, end: int) -> None:
    write(inside_string(reader.text[reader.at : end]))
    reader.at = end


def _scalar(reader: Reader, write: Write, relaxed: bool) -> Reading[bool]:
    c = yield from reader.peek(1)
    if c == '"':
        return (yield from _string(reader, write))
    if relaxed and (c in "'`" or (c == "<" and (yield from reader.which((QUOTE,))))):
        return (yield from _quoted(reader, write))
    word = yield from _word(reader)
    if word in _LITERALS:
        write(_LITERALS[word])
        return True
    if reader.cut_off():
        write(word)
        return False
    if not _NUMBER.fullmatch(word):
        reader.at -= len(word)
        return False
    write(word)
    return True


def _word(reader: Reader) -> Reading[str]:
    done = 0
    while True:
        found = _WORD.match(reader.text, reader.at + done)
        done = (found.end() if found else 0) - reader.at
        if reader.at + done < len(reader.text) or not (yield from reader.more()):
            break
    word = reader.text[reader.at : reader.at + done]
    reader.at += done
    return word


def _quoted(reader: Reader, write: Write) -> Reading[bool]:
    """A string in the quotes that come next, without escapes."""
    mark = (yield from reader.which((QUOTE, "'", "`"))) or ""
    reader.at += len(mark)
    write('"')
    whole = yield from read_raw(reader, write, mark)
    if whole:
        write('"')
    return whole


def _bare_key(reader: Reader, write: Write) -> Reading[bool]:
    c = yield from reader.peek(1)
    if c == '"':
        return (yield from _string(reader, write))
    if c in "'`" or (yield from reader.which((QUOTE,))):
        return (yield from _quoted(reader, write))
    word = yield from _word(reader)
    if not word:
        return False
    write(f'"{inside_string(word)}')
    if reader.cut_off():
        return False
    write('"')
    return True


def _string(reader: Reader, write: Write) -> Reading[bool]:
    if not (yield from reader.take('"')):
        return False
    write('"')
    while True:
        found = _SPECIAL.search(reader.text, reader.at)
        _take(reader, write, (found.start() if found else len(reader.text)) - reader.at)
        if found is None:
            if not (yield from reader.more()):
                return False
            continue
        c = reader.text[reader.at]
        if c == '"':
            _take(reader, write, 1)
            return True
        if c != "\\":
            _escaped(reader, write, reader.at + 1)
            continue
        n = 6 if (yield from reader.peek(2)) == "\\u" else 2
        escape = (yield from reader.peek(n))[1:]
        if len(escape) < n - 1:
            return False  # cut off; half an escape is no use to anyone
        if _ESCAPE.fullmatch(escape):
            _take(reader, write, n)
        else:
            write("'" if escape[0] == "'" else "\\\\" + inside_string(escape[0]))
            reader.at += 2
