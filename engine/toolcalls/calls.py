"""The calls of one answer, and how the values of their arguments are written."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from engine.pieces import Piece, ToolCallArguments, ToolCallEnd, ToolCallStart
from engine.reader import Reader

Write = Callable[[str], None]

JSON = "json"
"""In the place of a type: the value is written as JSON, so that a string has quotes."""

_HOPS = 8
_UNIONS = ("anyOf", "oneOf", "allOf")
_TYPES = ("string", "integer", "number", "boolean", "null", "object", "array")


def new_call_id() -> str:
    """A fresh id for a call, as OpenAI's API spells them."""
    return f"call_{secrets.token_hex(12)}"


def declared(tools: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The JSON schema of each tool's arguments by name; tools may be wrapped as OpenAI's API does."""
    known = {}
    for tool in tools:
        inner = tool.get("function", tool) if isinstance(tool, Mapping) else {}
        if isinstance(inner, Mapping) and isinstance(name := inner.get("name"), str) and name:
            schema = inner.get("parameters", inner.get("input_schema"))
            known[name] = schema if isinstance(schema, Mapping) else {}
    return known


class Calls:
    """Puts down the calls that are read; the text before a call that has begun is forgotten."""

    def __init__(
        self,
        reader: Reader,
        say: Callable[[Piece], None],
        tools: Iterable[Mapping[str, Any]],
        new_id: Callable[[], str],
    ) -> None:
        self.reader = reader
        self.known = declared(tools)
        self.n = 0
        self._say = say
        self._new_id = new_id

    def begin(self, name: str) -> None:
        """A call of a declared tool begins; from here on nothing is taken back."""
        self._say(ToolCallStart(self.n, self._new_id(), name))
        self.n += 1
        self.reader.keep = None

    def write(self, fragment: str) -> None:
        """More of the arguments' JSON."""
        if fragment:
            self._say(ToolCallArguments(self.n - 1, fragment))

    def end(self, complete: bool = True) -> None:
        """The call that began last is over."""
        self._say(ToolCallEnd(self.n - 1, complete))

    def types(self, name: str, key: str) -> list[str]:
        """The JSON types that a tool names for one of its arguments."""
        schema = self.known[name]
        properties = schema.get("properties")
        found = properties.get(key) if isinstance(properties, Mapping) else None
        return types_of(found, schema) if isinstance(found, Mapping) else []


class Members:
    """An object's members written one after the other."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._empty = True

    def key(self, name: str) -> None:
        """Begin the next member."""
        self._write(("{" if self._empty else ", ") + json.dumps(name, ensure_ascii=False) + ": ")
        self._empty = False

    def close(self) -> None:
        """No more will come."""
        self._write("{}" if self._empty else "}")


def inside_string(text: str) -> str:
    """`text` as it is written between the quotes of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def loads(text: str) -> Any:
    """The value of a JSON text; `ValueError` also for NaN and Infinity, which are none."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(word: str) -> None:
    raise ValueError(word)


def of_type(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema that asks for nothing but the type of another one."""
    types = [kind for kind in types_of(schema, schema) if kind in _TYPES]
    return {"type": types} if types else {}


def resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema, or the one in `root` that it refers to."""
    for _ in range(_HOPS):
        place = schema.get("$ref")
        if not isinstance(place, str) or not place.startswith("#/"):
            break
        found: Any = root
        for key in place[2:].split("/"):
            key = key.replace("~1", "/").replace("~0", "~")
            found = found.get(key) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            break
        schema = found
    return schema


def types_of(schema: Mapping[str, Any], root: Mapping[str, Any]) -> list[str]:
    """The JSON types that a schema in `root` names, in order; none where it does not say."""
    types: dict[str, None] = {}
    left, seen = [schema], set()
    while left:
        part = resolved(left.pop(), root)
        if id(part) in seen:
            continue
        seen.add(id(part))
        kind = part.get("type")
        if isinstance(kind, (str, list)):
            kinds = [kind] if isinstance(kind, str) else kind
            types |= dict.fromkeys(k for k in kinds if isinstance(k, str))
            continue
        options = next((o for key in _UNIONS if isinstance(o := part.get(key), list)), None)
        if options is not None:
            left += reversed([option for option in options if isinstance(option, Mapping)])
            continue
        values = values_of(part)
        if values and all(isinstance(value, str) for value in values):
            types["string"] = None
    return list(types)


def values_of(schema: Mapping[str, Any]) -> list[Any]:
    """The values that a schema names; none where it allows others too."""
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    return values if isinstance(values, list) else []


def typed(text: str, types: list[str]) -> str:
    """The JSON text of a value that a model wrote without quotes, by the first type that is not null."""
    plain = text.strip()
    if plain in ("null", "None") and (not types or "null" in types):
        return "null"
    first = next((t for t in types if t != "null"), None)
    if first != "string":
        if plain in ("True", "False"):
            return plain.lower()
        try:
            value = loads(plain)
        except (ValueError, RecursionError):
            value = text
        if first is not None or not isinstance(value, str):
            return plain if value is not text else json.dumps(text, ensure_ascii=False)
    return json.dumps(text, ensure_ascii=False)
