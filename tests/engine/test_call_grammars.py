"""Grammars of calls whose schemas are loose, wrong or refer to each other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from engine.errors import BadRequest
from engine.output import OutputParser
from engine.prepare import call_grammar as tools_grammar
from engine.toolcalls.calls import declared, types_of
from engine.toolcalls.grammars import Style
from tests.engine.test_grammar import STYLES, TOOLS, call_grammar, grammars, takes
from tests.engine.test_output import CALLS, D, calls, tool

ODD = tool(
    "odd", n={"type": "integer"}, s={"type": "string", "pattern": "(?=x)"}, r={"$ref": "#/no"}
)


@pytest.mark.parametrize("style", STYLES)
def test_a_schema_that_cannot_be_followed_frees_its_own_arguments_alone(style: Style) -> None:
    g = grammars()
    model: Any = SimpleNamespace(template=SimpleNamespace(text=""))
    grammar = tools_grammar(g, style, [*TOOLS, ODD], True, model)
    text = CALLS[STYLES[style]]
    assert takes(g, grammar, text)
    if (
        style is not Style.GEMMA
    ):  # which writes the keys of objects in any order, as often as it likes
        assert not takes(g, grammar, text.replace("days", "nights"))
    if style is Style.JSON:
        odd = text.replace("get_weather", "odd").replace(
            '"city": "Rome", "days": 2', '"n": 2, "r": [1]'
        )
        assert takes(g, grammar, odd)
        assert not takes(g, grammar, odd.replace('"n": 2', '"n": "two"'))


@pytest.mark.parametrize("style", STYLES)
def test_arguments_that_no_schema_tells_may_be_any(style: Style) -> None:
    g = grammars()
    assert takes(g, call_grammar(g, style, known={"get_weather": {}}), CALLS[STYLES[style]])


LOOSE = tool(
    "set",
    a={"anyOf": [{"type": "string"}, {"type": "null"}]},
    c={"$ref": "#/$defs/Color"},
    d={"anyOf": [{"$ref": "#/$defs/Color"}, {"type": "null"}]},
    n={"enum": ["x", 7, None]},
    x={},
)  # fmt: skip
LOOSE["function"]["parameters"]["$defs"] = {"Color": {"enum": ["red", "blue"], "type": "string"}}
SAID = {
    Style.XML: "<tool_call>\n<function=set>\n{}</function>\n</tool_call>",
    Style.KEYED: "<tool_call>set\n{}</tool_call>",
    Style.DSML: f'<{D}tool_calls>\n<{D}invoke name="set">\n{{}}</{D}invoke>\n</{D}tool_calls>',
}
MEMBER = {
    Style.XML: "<parameter={}>\n{}\n</parameter>\n",
    Style.KEYED: "<arg_key>{}</arg_key>\n<arg_value>{}</arg_value>\n",
    Style.DSML: f'<{D}parameter name="{{}}" string="{{}}">{{}}</{D}parameter>\n',
}


@pytest.mark.parametrize("style", SAID)
def test_texts_between_tags_have_no_quotes_whatever_else_they_may_be(style: Style) -> None:
    g = grammars()
    grammar = call_grammar(g, style, known=declared([LOOSE]))

    def said(**values: str) -> str:
        texts = {"n": ("7",), "d": ("null",)} if style is Style.DSML else {}
        members = []
        for key, value in values.items():
            flag = (
                ("false" if value in texts.get(key, ()) else "true",) if style is Style.DSML else ()
            )
            members.append(MEMBER[style].format(key, *flag, value))
        return SAID[style].format("".join(members))

    text = said(a="Rome", c="red", d="null", n="7", x='a "b"')
    assert takes(g, grammar, text)
    parser = OutputParser(tools=[LOOSE])
    wanted = {"a": "Rome", "c": "red", "d": None, "n": 7, "x": 'a "b"'}
    assert calls(parser.push(text) + parser.finish()) == [("set", wanted)]
    for wrong in (said(c='"red"'), said(c="green")):
        assert not takes(g, grammar, wrong)


def test_json_between_tags_that_say_so_has_quotes() -> None:
    text = SAID[Style.DSML].format(MEMBER[Style.DSML].format("a", "false", '"Rome"'))
    assert takes(grammars(), call_grammar(grammars(), Style.DSML, known=declared([LOOSE])), text)
    parser = OutputParser(tools=[LOOSE])
    assert calls(parser.push(text) + parser.finish()) == [("set", {"a": "Rome"})]


def test_a_schema_that_refers_to_itself_comes_to_an_end() -> None:
    known = {"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}] * 500}, "b": {"$ref": "#/$defs/b"}}}
    assert types_of({"$ref": "#/$defs/a"}, known) == types_of({"$ref": "#/$defs/b"}, known) == []
    assert types_of({"$ref": "#/no"}, known) == types_of({"$ref": "http://a"}, known) == []


def test_a_strict_tool_whose_schema_cannot_be_followed_is_refused() -> None:
    model: Any = SimpleNamespace(template=SimpleNamespace(text=""))
    strict = {"type": "function", "function": {**ODD["function"], "strict": True}}
    with pytest.raises(BadRequest, match="'odd' is strict"):
        tools_grammar(grammars(), Style.JSON, [*TOOLS, strict], True, model)


@pytest.mark.parametrize("style", SAID)
def test_arguments_that_may_be_missing_come_in_any_order(style: Style) -> None:
    found = tool("find", path={"type": "string"}, n={"type": "integer"}, text={"type": "string"})
    found["function"]["parameters"]["required"] = ["text"]

    def said(*keys: str) -> str:
        values = {"path": ("true", "a"), "n": ("false", "7"), "text": ("true", "b")}
        members = [
            MEMBER[style].format(key, *values[key][0 if style is Style.DSML else 1 :])
            for key in keys
        ]
        return SAID[style].replace("set", "find").format("".join(members))

    g = grammars()
    grammar = call_grammar(g, style, known=declared([found]))
    for keys in (["text"], ["text", "n", "path"], ["n", "text", "path"], ["path", "n", "text"]):
        assert takes(g, grammar, said(*keys)), keys
    assert not takes(g, grammar, said("path", "n")), "what is required is missing"
