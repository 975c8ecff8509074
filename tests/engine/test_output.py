"""Reasoning, content and tool calls told apart, however the text is cut."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.output import (
    Content,
    OutputParser,
    Part,
    Piece,
    Reasoning,
    ToolCallArguments,
    ToolCallEnd,
    ToolCallStart,
)
from engine.pieces import merged
from engine.reasoning import MARKS, THINK, opened_by
from engine.toolcalls.forms import OPENERS
from tests.engine.text_fixtures import load

CASES = load("toolcalls")["cases"]


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A tool as OpenAI's API describes it."""
    schema = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": name, "parameters": schema}}


WEATHER = tool("get_weather", city={"type": "string"}, days={"type": "integer"})
MANY = [
    WEATHER,
    tool("write_file", path={"type": "string"}, text={"type": "string"}, mode={"type": "integer"}),
    tool("query", filter={"type": "object"}, exact={"type": "boolean"}, any={}),
]


def parsed(
    text: str,
    cuts: list[int] | None = None,
    prompt: str = "",
    tools: list[dict[str, Any]] | None = None,
    parallel: bool = True,
) -> list[Piece]:
    """All pieces of a text cut at some places, neighbours merged; ids are counted."""
    ids = map("id{}".format, itertools.count())
    parser = OutputParser(opened_by(prompt), tools, parallel, new_id=lambda: next(ids))
    pieces: list[Piece] = []
    for start, end in itertools.pairwise([0, *sorted(cuts or []), len(text)]):
        pieces += parser.push(text[start:end])
    return merged(pieces + parser.finish())


def calls(pieces: list[Piece]) -> list[tuple[str, Any]]:
    """Names and arguments of the complete calls."""
    names = {p.index: p.name for p in pieces if isinstance(p, ToolCallStart)}
    texts: dict[int, str] = dict.fromkeys(names, "")
    for piece in pieces:
        if isinstance(piece, ToolCallArguments):
            texts[piece.index] += piece.fragment
    ended = [p.index for p in pieces if isinstance(p, ToolCallEnd) and p.complete]
    return [(names[i], json.loads(texts[i])) for i in ended]


def content(pieces: list[Piece]) -> str:
    """What a reader sees."""
    return "".join(p.text for p in pieces if isinstance(p, Content))


def reasoning(pieces: list[Piece]) -> str:
    """What the model thought."""
    return "".join(p.text for p in pieces if isinstance(p, Reasoning))


def cut_every(n: int, text: str) -> list[int]:
    return list(range(n, len(text), n))


@pytest.mark.parametrize("case", [c for c in CASES if "splits" in c], ids=lambda c: c["id"])
def test_calls_of_bug_reports(case: dict[str, Any]) -> None:
    text, expected = case["model_output"], case["expected"]
    for split in case["splits"]:
        cuts = split.get("at") or cut_every(split["every"], text)
        found = parsed(text, cuts, tools=case["tools"])
        if "tool_calls" in expected:
            wanted = [(c["name"], c["arguments"]) for c in expected["tool_calls"]]
            assert calls(found) == wanted
            assert content(found) == expected["content"]
        else:  # cut off inside a call
            assert found == [
                ToolCallStart(0, "id0", "get_weather"),
                ToolCallArguments(0, '{"city": "New Yo'),
                ToolCallEnd(0, complete=False),
            ]


D = "｜DSML｜"
CALLS = {
    "qwen json": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome", "days": 2}}\n'
    "</tool_call>",
    "qwen xml": "<tool_call>\n<function=get_weather>\n<parameter=city>\nRome\n</parameter>\n"
    "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
    "qwen xml, bare": "<function=get_weather><parameter=city>Rome</parameter><parameter=days>2"
    "</parameter></function>",
    "function with json": '<function=get_weather>{"city": "Rome", "days": 2}</function>',
    "signature": '<function=get_weather(city="Rome", days=2)></function>',
    "laguna": "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Rome</arg_value>\n"
    "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
    "gemma": '<|tool_call>call:get_weather{city:<|"|>Rome<|"|>,days:2}<tool_call|>',
    "gemma, relaxed": "<|tool_call>call:ns:get_weather{'city': `Rome`, \"days\": 2}<tool_call|>",
    "deepseek v4": f'<{D}tool_calls>\n<{D}invoke name="get_weather">\n'
    f'<{D}parameter name="city" string="true">Rome</{D}parameter>\n'
    f'<{D}parameter name="days" string="false">2</{D}parameter>\n</{D}invoke>\n</{D}tool_calls>',
    "deepseek v3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n"
    '```json\n{"city": "Rome", "days": 2}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "deepseek v3.1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>"
    '{"city": "Rome", "days": 2}<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
    "invoke": '<function_calls><invoke name="get_weather"><parameter name="city">Rome</parameter>'
    '<param name="days">2</param></invoke></function_calls>',
    "function_call": '<function_call>{"arguments": {"city": "Rome", "days": 2}, "name": '
    '"get_weather"}</function_call>',
    "arguments as text": '<tool_call>{"name": "get_weather", "arguments": "{\\"city\\": \\"Rome\\", '
    '\\"days\\": 2}"}</tool_call>',
    "nested": '<tool_call>{"type": "function", "function": {"name": "get_weather", "parameters": '
    '{"city": "Rome", "days": 2}}}</tool_call>',
    "mistral": '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Rome", "days": 2}}]',
    "llama": '<|python_tag|>{"name": "get_weather", "parameters": {"city": "Rome", "days": 2}}',
    "bare json": '{"name": "get_weather", "arguments": {"city": "Rome", "days": 2}}',
    "fenced json": '```json\n{"name": "get_weather", "arguments": {"city": "Rome", "days": 2}}\n```',
}  # fmt: skip


@pytest.mark.parametrize("form", CALLS)
def test_every_form(form: str) -> None:
    text = CALLS[form]
    found = parsed(text, tools=[WEATHER])
    assert calls(found) == [("get_weather", {"city": "Rome", "days": 2})]
    assert content(found) == ""
    for n in (1, 2, 3, 7):
        assert parsed(text, cut_every(n, text), tools=[WEATHER]) == found


@pytest.mark.parametrize("form", [f for f in CALLS if "json" not in f.split()[:1]])
def test_text_around_calls_and_two_in_a_row(form: str) -> None:
    if form in ("bare json", "fenced json"):
        return
    text = f"First.\n{CALLS[form]}\n{CALLS[form]}\n\nThen this."
    found = parsed(text, tools=[WEATHER])
    assert calls(found) == [("get_weather", {"city": "Rome", "days": 2})] * 2
    assert content(found) == "First.\n\n\nThen this."
    assert [p.index for p in found if isinstance(p, ToolCallStart)] == [0, 1]
    assert len({p.id for p in found if isinstance(p, ToolCallStart)}) == 2


@pytest.mark.parametrize("form", CALLS)
def test_cut_off_anywhere_loses_and_invents_nothing(form: str) -> None:
    text = CALLS[form]
    for n in range(len(text)):
        found = parsed(text[:n], tools=[WEATHER])
        starts = [p for p in found if isinstance(p, ToolCallStart)]
        if not starts:
            assert content(found) == text[:n]
            continue
        assert content(found) == ""
        fragments = "".join(p.fragment for p in found if isinstance(p, ToolCallArguments))
        assert '{"city":"Rome","days":2}'.startswith(fragments.replace(" ", ""))
        end = found[-1]
        assert isinstance(end, ToolCallEnd)
        if end.complete:
            assert json.loads(fragments) == {"city": "Rome", "days": 2}


@pytest.mark.parametrize("form", CALLS)
def test_calls_of_unknown_tools_stay_text(form: str) -> None:
    other = [tool("other")]
    assert parsed(CALLS[form], tools=other) == [Content(CALLS[form])]
    assert parsed(CALLS[form]) == [Content(CALLS[form])]


def test_parallel_calls_in_one_block() -> None:
    invoke = CALLS["deepseek v4"].split("\n", 1)[1].rsplit("\n", 1)[0]
    text = f"<{D}tool_calls>\n{invoke}\n{invoke}\n</{D}tool_calls>"
    assert len(calls(parsed(text, tools=[WEATHER]))) == 2
    one = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    for text in (
        f"<tool_call>[{one}, {one}]</tool_call>",
        f"<tool_call>\n{one}\n{one}\n</tool_call>",
    ):
        found = parsed(text, tools=[WEATHER])
        assert calls(found) == [("get_weather", {"city": "Oslo"})] * 2
        assert content(found) == ""


def test_without_parallel_calls_the_first_is_the_last() -> None:
    text = CALLS["qwen json"] * 2 + "more"
    parser = OutputParser(tools=[WEATHER], parallel=False)
    found = parser.push(text)
    assert len(calls(found)) == 1
    assert content(found) == ""
    assert parser.done
    assert parser.push("more") == [] == parser.finish()


def test_arguments_come_as_they_are_written() -> None:
    parser = OutputParser(tools=MANY)
    head = '<tool_call>\n{"name": "write_file", "arguments": '
    assert [type(p) for p in parser.push(head)] == []
    assert [type(p) for p in parser.push("{")] == [ToolCallStart, ToolCallArguments]
    assert parser.push('"path": "a') == [ToolCallArguments(0, '"path": "a')]
    assert parser.part is Part.TOOL_CALL

    parser = OutputParser(tools=MANY)
    parser.push("<tool_call>\n<function=write_file>\n<parameter=text>\n")
    assert parser.push("def f():\n  ret") == [ToolCallArguments(0, "def f():\\n  ret")]


def test_xml_values_follow_the_schema() -> None:
    def value(key: str, text: str) -> Any:
        xml = f"<function=query>\n<parameter={key}>\n{text}\n</parameter>\n</function>"
        return calls(parsed(xml, tools=MANY))[0][1][key]

    assert value("filter", '{"a": [1, null]}') == {"a": [1, None]}
    assert value("exact", "True") is True
    assert value("exact", "perhaps") == "perhaps"
    assert value("any", "12") == 12
    assert value("any", "twelve") == "twelve"
    assert value("any", '"quoted"') == '"quoted"'
    nullable = [tool("query", x={"type": ["string", "null"]}, y={"anyOf": [{"type": "integer"}]})]
    xml = "<function=query><parameter=x>null</parameter><parameter=y>7</parameter></function>"
    assert calls(parsed(xml, tools=nullable)) == [("query", {"x": None, "y": 7})]


def test_marks_inside_values_are_part_of_them() -> None:
    code = 'a\n</parameter>\n"quoted" </function> <parameter=path>\n\n'
    xml = (
        "<tool_call>\n<function=write_file>\n<parameter=path>\nx\n</parameter>\n<parameter=text>\n"
        f"{code}\n</parameter>\n</function>\n</tool_call>"
    )
    found = parsed(xml, tools=MANY)
    assert calls(found) == [("write_file", {"path": "x", "text": code})]
    assert parsed(xml, cut_every(1, xml), tools=MANY) == found


def test_signatures_hold_literals_only() -> None:
    def one(text: str) -> list[tuple[str, Any]]:
        return calls(parsed(f"<function=query({text})></function>", tools=MANY))

    assert one('any=[1, {"a": None}], exact=true') == [
        ("query", {"any": [1, {"a": None}], "exact": True})
    ]
    assert one("") == [("query", {})]
    for text in ("1", "a=b", "a=f()", "**a", "a=__import__('os')", "a=(", "a=" + "(" * 3000):
        assert one(text) == []


def test_missing_closing_marks_are_forgiven() -> None:
    for text in (
        "<tool_call>\n<function=write_file>\n<parameter=path>\nx\n</function>\n</tool_call>",
        "<function=write_file>\n<parameter=path>\nx\n</parameter>\n</function>",
        '<tool_call>{"name": "write_file", "arguments": {"path": "x"}</tool_call>',
        '<tool_call>{"name": "write_file", "arguments": {"path": "x"}}',
    ):
        found = parsed(text, tools=MANY)
        assert calls(found) == [("write_file", {"path": "x"})], text
        assert content(found) == "", text


def test_json_that_models_get_wrong() -> None:
    text = '<tool_call>{"name": "write_file", "arguments": {"text": "a\nb\\\'c\\d", "mode": True}}'
    found = parsed(text + "</tool_call>", tools=MANY)
    assert calls(found) == [("write_file", {"text": "a\nb'c\\d", "mode": True})]
    text = '<tool_call>{"name": "write_file", "arguments": {"mode": oops}}</tool_call>And on.'
    found = parsed(text, tools=MANY)
    assert found[1:] == [
        ToolCallArguments(0, '{"mode": oops}}'),
        ToolCallEnd(0, complete=False),
        Content("And on."),
    ]


def test_broken_calls_are_the_same_however_they_are_cut() -> None:
    for text in (
        '<tool_call>{"name": "write_file", "arguments": {"mode": oops} \n }  </tool_call> \n on',
        '{"name": "write_file", "arguments": {"mode": oops}} and more',
        '[TOOL_CALLS]{"name": "write_file", "arguments": {"mode": 1,, } rest',
        "<|tool_call>call:write_file{mode:[oops]}  <tool_call|>",
    ):
        found = parsed(text, tools=MANY)
        assert [p.complete for p in found if isinstance(p, ToolCallEnd)] == [False]
        for n in (1, 2, 5):
            assert parsed(text, cut_every(n, text), tools=MANY) == found


def test_no_arguments_that_are_not_json() -> None:
    for value in ("NaN", "Infinity", "1_000", "0x10"):
        xml = f"<function=write_file>\n<parameter=mode>\n{value}\n</parameter>\n</function>"
        assert calls(parsed(xml, tools=MANY)) == [("write_file", {"mode": value})]


def test_a_call_behind_a_false_one_is_found() -> None:
    text = f"Use <tool_call> so: <tool_call>{{}}</tool_call> {CALLS['qwen json']}"
    found = parsed(text, tools=[WEATHER])
    assert len(calls(found)) == 1
    assert content(found) == "Use <tool_call> so: <tool_call>{}</tool_call> "


@pytest.mark.parametrize("marks", MARKS, ids=lambda m: m.open)
def test_reasoning_of_every_family(marks: Any) -> None:
    body = f"\nLet me see.\n{marks.close}\n\nThe answer.\n"
    expected = [Reasoning("Let me see."), Content("The answer.\n")]
    for n in (1, 3, 100):
        text = marks.open + body
        assert parsed(text, cut_every(n, text)) == expected
        assert parsed(body, cut_every(n, body), prompt=f"<|assistant|>{marks.open}\n") == expected


def test_reasoning_at_its_borders() -> None:
    assert parsed("never ends \n", prompt="<think>") == [Reasoning("never ends")]
    assert parsed("<think>\n\n</think>\n\nHi") == [Content("Hi")]
    assert parsed("Write <think> first, then </think>.") == [
        Content("Write <think> first, then </think>.")
    ]
    assert parsed("a <thi", prompt="") == [Content("a <thi")]
    assert parsed("a </thi", prompt="<think>\n") == [Reasoning("a </thi")]
    assert parsed("Hi", prompt="<think>\n\n</think>\n\n") == [Content("Hi")]
    two = "<|channel>thought\nA\n<channel|>B<|channel>thought\nC\n<channel|>D"
    assert parsed(two) == [Reasoning("A"), Content("B"), Reasoning("C"), Content("D")]


def test_no_calls_inside_reasoning() -> None:
    call = CALLS["qwen json"]
    found = parsed(f"I could {call}\n</think>\n\n{call}", prompt="<think>\n", tools=[WEATHER])
    assert reasoning(found) == f"I could {call}"
    assert len(calls(found)) == 1
    assert content(found) == ""


def test_the_part_is_told_as_the_text_comes() -> None:
    parser = OutputParser(THINK, tools=[WEATHER])
    parts = [parser.part]
    for text in ("hm", "</think>", "Let me", "<tool_call>", '{"name"', "} or not"):
        parser.push(text)
        parts.append(parser.part)
    r, c, t = Part.REASONING, Part.CONTENT, Part.TOOL_CALL
    assert parts == [r, r, c, c, t, t, c]


def test_no_opener_begins_another() -> None:
    assert not [(a, b) for a in OPENERS for b in OPENERS if a != b and b.startswith(a)]


def test_deep_and_long_text_is_read_in_time() -> None:
    deep = '<tool_call>{"name": "query", "arguments": {"filter": ' + "[" * 100_000
    assert isinstance(parsed(deep, tools=MANY)[-1], ToolCallEnd)
    parser = OutputParser(tools=MANY)
    parser.push("<tool_call>\n<function=query>\n<parameter=filter>\n")
    for _ in range(20_000):
        parser.push(" word</")
    assert parser.finish()


FRAGMENTS = st.lists(
    st.one_of(
        st.sampled_from(
            [
                *CALLS.values(),
                *(
                    piece
                    for call in CALLS.values()
                    for piece in call.replace(">", ">\0").split("\0")
                ),
                *OPENERS,
                *(m.open for m in MARKS),
                *(m.close for m in MARKS),
                *("\n", " ", "{", "}", '"', "\\", "<", "</", "]", "42", "text", "é漢😀", "'", "`"),
            ]
        ),
        st.text(max_size=5),
    ),
    max_size=12,
)


@settings(max_examples=400, deadline=None)
@given(FRAGMENTS, st.data(), st.sampled_from(["", "<think>\n", "<|channel>thought"]))
@example(['<tool_call>{"name": "get_weather", "arguments": {"days": 4', "2}}"], None, "")
def test_any_cut_gives_the_same_pieces(fragments: list[str], data: Any, prompt: str) -> None:
    text = "".join(fragments)
    whole = parsed(text, prompt=prompt, tools=MANY)
    cuts = (
        data.draw(st.lists(st.integers(0, len(text)), max_size=20))
        if data is not None
        else cut_every(1, text)
    )
    assert parsed(text, cuts, prompt, MANY) == whole
    assert parsed(text, cut_every(1, text), prompt, MANY) == whole
    for name, arguments in calls(whole):
        assert name in {t["function"]["name"] for t in MANY}
        assert isinstance(arguments, dict)


@settings(max_examples=200, deadline=None)
@given(FRAGMENTS)
def test_without_tools_only_reasoning_is_taken_out(fragments: list[str]) -> None:
    text = "".join(f for f in fragments if not any(m.open in f or m.close in f for m in MARKS))
    if any(m.open in text for m in MARKS):
        return
    assert parsed(text) == ([Content(text)] if text else [])
