"""Grammars of well-made tool calls, in the syntax that a model's template teaches it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from engine.tokenizer import Tokenizer
from engine.toolcalls.calls import resolved, types_of, values_of
from engine.toolcalls.marks import (
    DSML,
    GEMMA,
    GEMMA_END,
    QUOTE,
    V3,
    V3_CALL,
    V3_CALL_END,
    V3_END,
    V3_SEP,
)

Json = Callable[[Any], str]
"""Makes the name of a grammar for values of a JSON schema."""


class Style(StrEnum):
    """How a model writes calls."""

    XML = "<function="
    KEYED = "<arg_key>"
    GEMMA = "<|tool_call>"
    DSML = "DSML"
    V3 = "tool▁call▁begin"
    JSON = "<tool_call>"
    BARE = "{"


def style_of(template: str) -> Style:
    """The style that a chat template shows; bare JSON where it shows none that is known."""
    return next(
        (style for style in Style if style is not Style.BARE and style in template), Style.BARE
    )


def opener_of(style: Style) -> str:
    """The text with which calls of a style begin."""
    return {Style.GEMMA: GEMMA, Style.DSML: f"<{DSML}tool_calls>", Style.V3: V3}.get(
        style, "" if style is Style.BARE else "<tool_call>"
    )


class CallGrammar:
    """Rules for calls of some tools; `start` stands for one block of calls behind its opener."""

    def __init__(
        self, style: Style, tools: Mapping[str, Mapping[str, Any]], tokenizer: Tokenizer,
        fenced: bool, parallel: bool, json_grammar: Json,
    ) -> None:  # fmt: skip
        """`json_grammar` keeps a schema as a grammar of its own and gives its name; `fenced` as in V3."""
        self._tokenizer = tokenizer
        self._json = json_grammar
        self._fenced = fenced
        self._rules: dict[str, str] = {}
        write = {
            Style.XML: self._xml, Style.KEYED: self._keyed, Style.GEMMA: self._gemma,
            Style.DSML: self._dsml, Style.V3: self._v3,
        }.get(style, self._object)  # fmt: skip
        calls = [self._rule("call", write(name, schema)) for name, schema in tools.items()]
        one = "(" + " | ".join(calls) + ")"
        several = f"{one}+" if parallel else one
        nl = self._text("\n")
        match style:
            case Style.DSML:
                body = f"{nl} {several} {self._text(f'</{DSML}tool_calls>')}"
            case Style.V3:
                body = f"{several} {self._text(V3_END)}"
            case Style.JSON:
                body = f"{nl}? {one} {nl}? {self._text('</tool_call>')}"
            case _:
                body = one
        self.start = self._rule("calls", body)
        opener = opener_of(style)
        block = f"{self._text(opener)} {self.start}" if opener else self.start
        inside = style in (Style.DSML, Style.V3, Style.BARE)
        self.whole = block if inside or not parallel else f"{block} ({nl}? {block})*"

    def lark(self, start: str) -> str:
        """The grammar whose text is `start`."""
        return "\n".join([f"start: {start}", *(f"{k}: {v}" for k, v in self._rules.items())])

    def _rule(self, name: str, text: str) -> str:
        name = f"{name}_{len(self._rules)}"
        self._rules[name] = text
        return name

    def _text(self, text: str) -> str:
        """A text in Lark; control tokens in it are named by id, since they are no text."""
        pieces = self._tokenizer.control_markers.split(text)
        return " ".join(
            f"<[{p}]>" if isinstance(p, int) else json.dumps(p, ensure_ascii=False) for p in pieces
        )

    def _upto(self, stop: str) -> str:
        """Any text and then `stop`."""
        first, *rest = self._tokenizer.control_markers.split(stop)
        if isinstance(first, int):
            return f"/(?s:.*)/ {self._text(stop)}"
        name = f"text_{len(self._rules)}"
        suffix = json.dumps(first, ensure_ascii=False)
        self._rules[f"{name}[suffix={suffix}]"] = "/(?s:.*)/"
        # Of a mark that goes on with a control token only the beginning is text, and may also be the value's.
        return f"{name}+ {self._text(stop.removeprefix(first))}" if rest else name

    def _object(self, name: str, schema: Mapping[str, Any]) -> str:
        head = json.dumps({"name": name}, ensure_ascii=False)[:-1] + ', "arguments": '
        return f"{self._text(head)} @{self._json(_arguments(schema))} {self._text('}')}"

    def _v3(self, name: str, schema: Mapping[str, Any]) -> str:
        head, tail = f"{V3_CALL}{name}{V3_SEP}", V3_CALL_END
        if self._fenced:
            head, tail = f"{V3_CALL}function{V3_SEP}{name}\n```json\n", f"\n```{V3_CALL_END}"
        return f"{self._text(head)} @{self._json(_arguments(schema))} {self._text(tail)}"

    def _xml(self, name: str, schema: Mapping[str, Any]) -> str:
        def value(key: str, part: Any) -> str:
            head = self._text(f"<parameter={key}>\n")
            return f"{head} {self._value(part, schema, chr(10) + '</parameter>' + chr(10))}"

        def free() -> str:
            stop = self._upto("\n</parameter>\n")
            return f"{self._text('<parameter=')} /[^<>\\n]+/ {self._text('>' + chr(10))} {stop}"

        members = self._members(schema, value, free)
        nl = self._text("\n")
        head, tail = self._text(f"<function={name}>\n"), self._text("</function>\n</tool_call>")
        return f"{nl}? {head} {members} {tail}"

    def _keyed(self, name: str, schema: Mapping[str, Any]) -> str:
        nl = self._text("\n")

        def value(key: str, part: Any) -> str:
            head = f"{self._text(f'<arg_key>{key}</arg_key>')} {nl}? {self._text('<arg_value>')}"
            return f"{head} {self._value(part, schema, '</arg_value>')} {nl}?"

        def free() -> str:
            key = f"{self._text('<arg_key>')} /[^<>\\n]+/ {self._text('</arg_key>')}"
            return f"{key} {nl}? {self._text('<arg_value>')} {self._upto('</arg_value>')} {nl}?"

        members = self._members(schema, value, free)
        return f"{self._text(name)} {nl}? {members} {self._text('</tool_call>')}"

    def _dsml(self, name: str, schema: Mapping[str, Any]) -> str:
        end = f"</{DSML}parameter>"

        def value(key: str, part: Any) -> str:
            types = types_of(part, schema)
            heads = [
                f'<{DSML}parameter name="{key}" string="{said}">' for said in ("true", "false")
            ]
            text, plain = (self._text(head) for head in heads)
            if types == ["string"]:
                return f"{text} {self._value(part, schema, end)} {self._text(chr(10))}"
            said = f"{plain} @{self._json(_alone(part, schema))} {self._text(end)}"
            if not types or "string" in types:
                said = f"({text} {self._upto(end)} | {said})"
            return f"{said} {self._text(chr(10))}"

        def free() -> str:
            head = self._text(f'<{DSML}parameter name="')
            kind = f"({self._text('true')} | {self._text('false')})"
            middle = (
                f"{self._text(chr(34) + ' string=' + chr(34))} {kind} {self._text(chr(34) + '>')}"
            )
            stop = f"{self._upto(f'</{DSML}parameter>')} {self._text(chr(10))}"
            return f'{head} /[^"<>\\n]+/ {middle} {stop}'

        members = self._members(schema, value, free)
        head = self._text(f'<{DSML}invoke name="{name}">\n')
        return f"{head} {members} {self._text(chr(10))}? {self._text(f'</{DSML}invoke>' + chr(10))}"

    def _gemma(self, name: str, schema: Mapping[str, Any]) -> str:
        body = self._gemma_object(schema, schema, 0)
        return f"{self._text(f'call:{name}')} {body} {self._text(GEMMA_END)}"

    def _gemma_object(self, schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
        """{key:value,...} with the keys in any order, as often as the model likes."""
        properties = schema.get("properties")
        keys = dict(properties) if isinstance(properties, Mapping) else {}
        if not keys or depth > 4:
            member = f"/[A-Za-z_][\\w.-]*/ {self._text(':')} {self._gemma_any()}"
        else:
            member = " | ".join(
                f"{self._text(f'{key}:')} {self._gemma_value(part, root, depth)}"
                for key, part in keys.items()
            )
        rule = self._rule("member", member)
        required = schema.get("required")
        empty = "" if isinstance(required, list) and required else "?"
        return f"{self._text('{')} ({rule} ({self._text(',')} {rule})*){empty} {self._text('}')}"

    def _gemma_value(self, schema: Any, root: Mapping[str, Any], depth: int) -> str:
        types = types_of(schema, root) if isinstance(schema, Mapping) else []
        options = []
        for kind in types:
            if kind == "string":
                options.append(self._gemma_string(schema))
            elif kind == "object":
                options.append(self._gemma_object(schema, root, depth + 1))
            elif kind == "array":
                item = self._rule("item", self._gemma_value(schema.get("items"), root, depth + 1))
                comma = self._text(",")
                options.append(f"{self._text('[')} ({item} ({comma} {item})*)? {self._text(']')}")
            elif kind in ("integer", "number", "boolean", "null"):
                options.append(f"@{self._json({'type': kind})}")
        return f"({' | '.join(options)})" if options and depth <= 4 else self._gemma_any()

    def _gemma_string(self, schema: Mapping[str, Any]) -> str:
        values = schema.get("enum")
        if isinstance(values, list) and values and all(isinstance(v, str) for v in values):
            return "(" + " | ".join(self._text(f"{QUOTE}{v}{QUOTE}") for v in values) + ")"
        return f"{self._text(QUOTE)} {self._upto(QUOTE)}"

    def _gemma_any(self) -> str:
        """Any value; itself made of any values."""
        if "value" not in self._rules:
            self._rules["value"] = ""
            key, comma = f"/[A-Za-z_][\\w.-]*/ {self._text(':')}", self._text(",")
            number = self._json({"type": ["number", "boolean", "null"]})
            self._rules["value"] = (
                f"@{number} | {self._gemma_string({})}"
                f" | {self._text('[')} (value ({comma} value)*)? {self._text(']')}"
                f" | {self._text('{')} ({key} value ({comma} {key} value)*)? {self._text('}')}"
            )
        return "value"

    def _members(
        self, schema: Mapping[str, Any], member: Callable[[str, Any], str], free: Callable[[], str]
    ) -> str:
        """A tool's parameters: those that are required in their order, and between them any others, since a
        model that has passed one by could not come back to it; `free` ones where the schema names none.
        """
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not (
            properties or schema.get("additionalProperties") in (None, False)
        ):
            return f"({self._rule('member', free())})*"
        given = schema.get("required")
        required = (
            [name for name in given if isinstance(name, str)] if isinstance(given, list) else []
        )
        rules = {
            key: self._rule("member", member(key, part if isinstance(part, Mapping) else {}))
            for key, part in properties.items()
        }
        options = [rule for key, rule in rules.items() if key not in required]
        others = f"{self._rule('others', ' | '.join(options))}*" if options else ""
        needed = [rule for key, rule in rules.items() if key in required]
        return " ".join([others, *(f"{rule} {others}" for rule in needed)])

    def _value(self, part: Mapping[str, Any], root: Mapping[str, Any], stop: str) -> str:
        """A value as it stands between tags, where texts have no quotes, and the tag behind it."""
        types, values = types_of(part, root), values_of(resolved(part, root))
        if values and not any(isinstance(value, (dict, list)) for value in values):
            texts = (value if isinstance(value, str) else json.dumps(value) for value in values)
            return "(" + " | ".join(map(self._text, texts)) + f") {self._text(stop)}"
        if types and "string" not in types:
            return f"@{self._json(_alone(part, root))} {self._text(stop)}"
        return self._upto(stop)


def _alone(part: Mapping[str, Any], root: Mapping[str, Any]) -> dict[str, Any]:
    """A schema in `root`, with what it may refer to."""
    return {**part, **{key: root[key] for key in ("$defs", "definitions") if key in root}}


def _arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema of arguments, which are an object, that allows no others unless it says so."""
    out = {**schema, "type": "object"}
    if out.get("properties"):
        out.setdefault("additionalProperties", False)
    return out
