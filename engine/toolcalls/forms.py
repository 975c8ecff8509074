"""The syntaxes in which models write tool calls.

A reader of a form stands behind its opener; it begins a call only once the name of a declared tool and what
must follow it are read, so that text which merely looks like a call stays text.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping

from engine.reader import Reader, Reading, begun
from engine.toolcalls.calls import JSON, Calls, Members, loads, new_call_id
from engine.toolcalls.marks import (
    DSML,
    GEMMA,
    GEMMA_END,
    JSON_TAGS,
    QUOTE,
    V3,
    V3_CALL,
    V3_CALL_END,
    V3_END,
    V3_SEP,
)
from engine.toolcalls.objects import read_object
from engine.toolcalls.values import tagged_value

__all__ = ["OPENERS", "Calls", "bare_call", "new_call_id"]

_NAME = 256
_SIGNATURE = 4096


def _tool_call(calls: Calls, opener: str) -> Reading[None]:
    """What stands in <tool_call>: JSON, Qwen's XML, or Laguna's keys and values."""
    reader = calls.reader
    yield from reader.space()
    c = yield from reader.peek(1)
    if c in ("{", "["):
        yield from _json_calls(calls, opener)
    elif (yield from reader.take("<function=")):
        yield from _function(calls, opener)
    else:
        yield from _keyed(calls)


def _json_calls(calls: Calls, opener: str) -> Reading[None]:
    """One call as a JSON object, or several in a row or in a list."""
    reader, close, n = calls.reader, JSON_TAGS[opener], calls.n
    yield from reader.space()
    listed = yield from reader.take("[")
    while True:
        yield from reader.space()
        if calls.n > n:
            reader.keep = reader.at
        if not (yield from _json_call(calls, close)):
            if calls.n > n:
                reader.at, reader.keep = reader.keep or 0, None
                break
            return
        if listed and not (yield from reader.closes(",")):
            yield from reader.closes("]")
            break
        if not listed and not (yield from _more_objects(reader)):
            break
    if close:
        yield from reader.closes(close)


def _more_objects(reader: Reader) -> Reading[bool]:
    reader.keep = reader.at
    yield from reader.space()
    c = yield from reader.peek(1)
    reader.at, reader.keep = reader.keep, None
    return c == "{"


def _json_call(calls: Calls, close: str, bare: bool = False) -> Reading[bool]:
    """{"name": ..., "arguments": {...}}, streamed where it comes in this order."""
    reader = calls.reader
    assert reader.keep is not None
    offset = reader.at - reader.keep
    name = yield from _json_head(reader, bare)
    if name in calls.known and (yield from reader.peek(1)) == "{":
        calls.begin(name)
        if not (yield from read_object(reader, calls.write)):
            yield from _broken(calls, close)
            return True
        calls.end()
        if (yield from reader.closes(",")):
            yield from read_object(reader, _nowhere, inside=True)
        else:
            yield from reader.closes("}")
        return True
    if bare and name not in calls.known:
        return False
    assert reader.keep is not None
    reader.at = reader.keep + offset
    return (yield from _whole_json_call(calls, bare))


def _json_head(reader: Reader, bare: bool) -> Reading[str]:
    """The name, if it comes first and the arguments next; the reader then stands at these."""
    for literal in ("{", '"name"', ":", '"'):
        yield from reader.space()
        if not (yield from reader.take(literal)):
            return ""
    name = yield from reader.upto('"', _NAME)
    yield from reader.space()
    if name is None or not (yield from reader.take(",")):
        return "" if bare else name or ""
    yield from reader.space()
    key = yield from reader.which(('"arguments"', '"parameters"'))
    if key is None:
        return "" if bare else name
    reader.at += len(key)
    yield from reader.space()
    if (yield from reader.take(":")):
        yield from reader.space()
    return name


def _whole_json_call(calls: Calls, bare: bool) -> Reading[bool]:
    """A call whose members come in another order, once all of it is there."""
    parts: list[str] = []
    if not (yield from read_object(calls.reader, parts.append)):
        return False
    try:
        found = loads("".join(parts))
    except (ValueError, RecursionError):
        return False
    inner = found.get("function")
    call = inner if isinstance(inner, Mapping) else found
    name = call.get("name", inner if isinstance(inner, str) else None)
    arguments = call.get("arguments", call.get("parameters"))
    if not isinstance(name, str) or name not in calls.known or (bare and arguments is None):
        return False
    if isinstance(arguments, str):
        try:
            arguments = loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError):
            return False
    if not isinstance(arguments, Mapping | None):
        return False
    calls.begin(name)
    calls.write(json.dumps(arguments or {}, ensure_ascii=False))
    calls.end()
    return True


def _broken(calls: Calls, close: str) -> Reading[None]:
    """Arguments that are no JSON go to the client as they stand: it can tell the model what is wrong."""
    reader = calls.reader
    while close:
        end = reader.text.find(close, reader.at)
        found = end >= 0
        if not found:
            end = len(reader.text) - begun(reader.text, (close,), reader.at)
        calls.write(reader.text[reader.at : end])
        reader.at = end + len(close) if found else end
        if found:
            break
        if not (yield from reader.more()):
            reader.at = len(reader.text)
            break
    calls.end(complete=False)


def _cut(calls: Calls) -> None:
    """The call breaks off: at the end of the text what there is of a mark goes with it."""
    if calls.reader.ended:
        calls.reader.at = len(calls.reader.text)
    calls.end(complete=False)


def _function(calls: Calls, opener: str) -> Reading[None]:
    """Behind <function=: a name, then parameters as tags or one JSON object."""
    reader = calls.reader
    yield from reader.space()
    quote = yield from reader.which(('"', "'"))
    reader.at += len(quote or "")
    name = yield from _bare_name(reader)
    if quote and not (yield from reader.take(quote)):
        return
    yield from reader.space()
    if name in calls.known and (yield from reader.take("(")):
        yield from _signature(calls, name)
        return
    if name not in calls.known or not (yield from reader.take(">")):
        return
    calls.begin(name)
    yield from reader.space()
    if (yield from reader.peek(1)) == "{":
        if not (yield from read_object(reader, calls.write)):
            yield from _broken(calls, "</function>")
            return
    elif not (yield from _parameters(calls, name)):
        _cut(calls)
        return
    closed = yield from reader.closes("</function>")
    closed = (yield from reader.closes("</tool_call>")) or closed
    calls.end(complete=closed or not reader.ended)


def _signature(calls: Calls, name: str) -> Reading[None]:
    """Behind <function=NAME( : arguments as in Python, then )></function>."""
    reader = calls.reader
    arguments = _keywords((yield from reader.upto(")>", _SIGNATURE)))
    if arguments is None:
        return
    calls.begin(name)
    calls.write(arguments)
    calls.end()
    yield from reader.closes("</function>")
    yield from reader.closes("</tool_call>")


def _keywords(text: str | None) -> str | None:
    """Keyword arguments of literals as a JSON object, None where they are anything else."""
    try:
        tree = ast.parse(f"f({text})", mode="eval").body
        if text is None or not isinstance(tree, ast.Call) or tree.args:
            return None
        words = {"true": True, "false": False, "null": None}
        found = {
            k.arg: words[k.value.id] if isinstance(k.value, ast.Name) else ast.literal_eval(k.value)
            for k in tree.keywords
        }
        return None if None in found else json.dumps(found, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, SyntaxError, KeyError, RecursionError, MemoryError):
        return None


def _parameters(calls: Calls, name: str) -> Reading[bool]:
    """<parameter=KEY>VALUE</parameter> ...; False where the text breaks off inside."""
    reader, members = calls.reader, Members(calls.write)
    ends = (
        ("</parameter>", ("<parameter=", "</function>", "</tool_call>"), True),
        ("</function>", ("</tool_call>",), False),
    )
    yield from reader.space()
    while (yield from reader.take("<parameter=")):
        key = yield from reader.upto(">", _NAME)
        if key is None:
            return False
        members.key(key.strip())
        types = calls.types(name, key.strip())
        if not (yield from tagged_value(reader, calls.write, types, ends, lines=True)):
            return False
        yield from reader.space()
    if reader.cut_off("<parameter=", "</function>", "</tool_call>"):
        return False
    members.close()
    return True


def _keyed(calls: Calls) -> Reading[None]:
    """NAME, then <arg_key>KEY</arg_key><arg_value>VALUE</arg_value> ... (Laguna, Ling, GLM)."""
    reader = calls.reader
    name = yield from _bare_name(reader)
    if name not in calls.known:
        return
    yield from reader.space()
    marks = ("<arg_key>", "</tool_call>")
    if (yield from reader.which(marks)) is None:
        return
    calls.begin(name)
    members = Members(calls.write)
    while (yield from reader.take("<arg_key>")):
        key = yield from reader.upto("</arg_key>", _NAME)
        yield from reader.space()
        if key is None or not (yield from reader.take("<arg_value>")):
            _cut(calls)
            return
        members.key(key.strip())
        types = calls.types(name, key.strip())
        if not (
            yield from tagged_value(reader, calls.write, types, (("</arg_value>", marks, True),))
        ):
            _cut(calls)
            return
        yield from reader.space()
    whole = yield from reader.take("</tool_call>")
    if not whole and reader.cut_off(*marks):
        _cut(calls)
        return
    members.close()
    calls.end()


def _bare_name(reader: Reader) -> Reading[str]:
    """A name up to white space or a mark."""
    n = 0
    while n <= _NAME:
        ahead = yield from reader.peek(n + 1)
        if len(ahead) <= n or ahead[n].isspace() or ahead[n] in "<>{}()[]\"'":
            break
        n += 1
    name = reader.text[reader.at : reader.at + n]
    reader.at += n
    return name


def _gemma(calls: Calls, opener: str) -> Reading[None]:
    """call:NAME{key:value,...}<tool_call|> (Gemma 4)."""
    reader = calls.reader
    yield from reader.space()
    if not (yield from reader.take("call:")):
        return
    name = yield from _bare_name(reader)
    name = name if name in calls.known else name.rpartition(":")[2]
    if name not in calls.known or (yield from reader.peek(1)) != "{":
        return
    calls.begin(name)
    if not (yield from read_object(reader, calls.write, relaxed=True)):
        if reader.cut_off(QUOTE, GEMMA_END):
            _cut(calls)
        else:
            yield from _broken(calls, GEMMA_END)
        return
    calls.end()
    yield from reader.closes(GEMMA_END)


def _invokes(calls: Calls, opener: str) -> Reading[None]:
    """<invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke> ... (DeepSeek V3.2, V4)."""
    reader, n = calls.reader, calls.n
    p = DSML if DSML in opener else ""
    parameters = (f'<{p}parameter name="', f'<{p}param name="')
    invoke, invoke_end, close = f'<{p}invoke name="', f"</{p}invoke>", opener.replace("<", "</")
    while True:
        yield from reader.space()
        if calls.n > n:
            reader.keep = reader.at
        if not (yield from reader.take(invoke)):
            break
        name = yield from reader.upto('"', _NAME)
        if name not in calls.known or (yield from reader.upto(">", _NAME)) is None:
            break
        assert name is not None
        calls.begin(name)
        members = Members(calls.write)
        yield from reader.space()
        while (mark := (yield from reader.which(parameters))) is not None:
            reader.at += len(mark)
            key = yield from reader.upto('"', _NAME)
            kind = yield from reader.upto(">", _NAME)
            if key is None or kind is None:
                break
            members.key(key)
            types = calls.types(name, key)
            if 'string="' in kind:
                types = ["string"] if 'string="true"' in kind else [JSON]
            end = "</" + mark[1:].split(" ")[0] + ">"
            ends = ((end, (*parameters, invoke_end), True),)
            if not (yield from tagged_value(reader, calls.write, types, ends)):
                break
            yield from reader.space()
        whole = yield from reader.take(invoke_end)
        if whole:
            members.close()
            calls.end()
        else:
            _cut(calls)
            return
    if calls.n > n:
        reader.at, reader.keep = reader.keep or 0, None
        yield from reader.closes(close)


def _v3(calls: Calls, opener: str) -> Reading[None]:
    """Calls of DeepSeek V3, whose arguments stand in a fence, and of V3.1."""
    reader, n = calls.reader, calls.n
    while True:
        yield from reader.space()
        if calls.n > n:
            reader.keep = reader.at
        if not (yield from reader.take(V3_CALL)):
            break
        name = yield from reader.upto(V3_SEP, _NAME)
        fenced = name is not None and name.strip() == "function"
        if fenced:
            name = yield from reader.upto("\n", _NAME)
            yield from reader.take("```json")
        name = (name or "").strip()
        yield from reader.space()
        if name not in calls.known or (yield from reader.peek(1)) != "{":
            break
        calls.begin(name)
        if not (yield from read_object(reader, calls.write)):
            yield from _broken(calls, V3_CALL_END)
            return
        calls.end()
        if fenced:
            yield from reader.closes("```")
        yield from reader.closes(V3_CALL_END)
    if calls.n > n:
        reader.at, reader.keep = reader.keep or 0, None
        yield from reader.closes(V3_END)


def bare_call(calls: Calls) -> Reading[bool]:
    """A reply that is nothing but a call as JSON, perhaps in a fence; else the reader stays where it is."""
    reader, n = calls.reader, calls.n
    reader.keep = reader.at
    yield from reader.space()
    fenced = yield from reader.take("```json")
    yield from reader.space()
    brace = (yield from reader.peek(1)) == "{"
    if brace and (yield from _json_call(calls, "", bare=True)) and fenced:
        yield from reader.closes("```")
    if calls.n == n:
        reader.at = reader.keep or 0
    reader.keep = None
    return calls.n > n


def _nowhere(text: str) -> None:
    """Text that nobody needs."""


Form = Callable[[Calls, str], Reading[None]]

OPENERS: dict[str, Form] = {
    **dict.fromkeys(JSON_TAGS, _json_calls),
    "<tool_call>": _tool_call,
    "<function=": _function,
    GEMMA: _gemma,
    "<function_calls>": _invokes,
    f"<{DSML}tool_calls>": _invokes,
    f"<{DSML}function_calls>": _invokes,
    V3: _v3,
}
"""How each form begins, and what reads it; none of the openers begins another."""
