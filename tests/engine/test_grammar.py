"""Answers held to a form, driven by random choices: whatever is chosen, the form holds."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.config import SamplingParams
from engine.errors import BadRequest
from engine.grammar import MAX_SOURCE, FromOpener, Grammars, Whole, Without, whole_form, with_space
from engine.output import OutputParser
from engine.prepare import opener_tokens
from engine.reasoning import THINK
from engine.sampling import Sampler
from engine.steering import Steering
from engine.tokenizer import Tokenizer, TokenType
from engine.toolcalls.calls import declared
from engine.toolcalls.grammars import CallGrammar, Style, opener_of, style_of
from engine.toolcalls.marks import QUOTE
from engine.types import Format
from tests.engine.test_output import CALLS, D, calls, content, tool
from tests.engine.text_fixtures import small_vocabulary

WORDS = ["true", "false", '": "', '", "', '{"', '"}', "Rome", "city", "days", "get_weather", "\n"]
ALL_TOGETHER = ["<tool_call>", "</tool_call>", "<|tool_call>", "<tool_call|>", f"{D}", "<think>"]
CLOSING = (b'"', b"}", b"]", b"<")
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 8},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3},
        "more": {"anyOf": [{"type": "null"}, {"type": "boolean"}]},
    },
    "required": ["name", "age", "tags", "more"],
    "additionalProperties": False,
}


@cache
def grammars(control: bool = True) -> Grammars:
    """A vocabulary of bytes and some longer tokens; the marks of calls are control tokens, or visible."""
    kind = TokenType.CONTROL if control else TokenType.USER_DEFINED
    extra = [(w, TokenType.USER_DEFINED) for w in WORDS if w != "\n"]
    marks = [(m, kind) for m in ALL_TOGETHER]
    meta = small_vocabulary([*extra, *marks, ("<end>", TokenType.CONTROL)], eos_token_id=0)
    meta["tokenizer.ggml.eos_token_id"] = len(meta["tokenizer.ggml.tokens"]) - 1
    meta["tokenizer.ggml.add_bos_token"] = False
    return Grammars(Tokenizer.from_gguf(meta))


def written(
    constraint: Any, tokenizer: Tokenizer, seed: int, most: int = 500, mark: str = '"'
) -> tuple[str, bool]:
    """What random choices among the allowed tokens write, and whether they came to the end."""
    drawn = random.Random(seed)
    detokenizer = tokenizer.detokenizer(special=True)
    text = ""
    marks: list[int] = []
    (end,) = tokenizer.eos_ids
    for n in range(most):
        allowed = np.flatnonzero(constraint.mask() == 0)
        assert len(allowed)
        # An end is taken soon, and closing marks are liked, so that it comes.
        closing = [i for i in allowed if tokenizer.token_bytes(int(i))[:1] in CLOSING]
        few: list[Any] = closing if closing and drawn.random() < 0.3 + n / 100 else list(allowed)
        if not marks and drawn.random() < 0.1 + n / 100:
            marks = tokenizer.encode(mark, special=True)
        if marks and (wanted := marks.pop(0)) in allowed:
            few = [wanted]
        else:
            marks = []
        token = end if end in allowed and drawn.random() < 0.5 else int(drawn.choice(few))
        if token == end:
            return text + detokenizer.flush(), True
        piece = detokenizer.push(token)
        text += piece
        constraint.take(token, piece)
    return text, False


def may(steered: Any, token: int) -> bool:
    """Whether a token is allowed next."""
    return bool(steered.mask()[token] == 0)


@pytest.mark.parametrize("seed", range(20))
def test_any_choice_makes_json_of_the_schema(seed: int) -> None:
    g = grammars()
    grammar = whole_form(g, Format("json_schema", SCHEMA), lead=False)
    text, ended = written(Whole(g.follow(grammar)), g.tokenizer, seed)
    assert ended
    found = json.loads(text)
    assert list(found) == ["name", "age", "tags", "more"]
    assert len(found["name"]) <= 8
    assert 0 <= found["age"] <= 120
    assert set(found["tags"]) <= {"a", "b"}
    assert found["more"] in (None, True, False)


def test_other_forms() -> None:
    g = grammars()

    def one(form: Format, seed: int) -> str:
        text, ended = written(Whole(g.follow(whole_form(g, form, lead=False))), g.tokenizer, seed)
        assert ended
        return text

    for seed in range(5):
        assert re.fullmatch("[a-f]{2}/[0-9]+x", one(Format("regex", "[a-f]{2}/[0-9]+x"), seed))
        assert isinstance(json.loads(one(Format("json_object"), seed)), dict)
        assert re.fullmatch("(xy)+z", one(Format("lark", 'start: ("xy")+ "z"'), seed))


def test_a_form_may_begin_behind_thinking_with_line_ends() -> None:
    g = grammars()
    for lead in (True, False):
        follower = g.follow(whole_form(g, Format("json_object"), lead))
        newline = g.tokenizer.encode("\n")[0]
        assert may(follower, newline) == lead


@pytest.mark.parametrize(
    ("form", "words"),
    [
        (Format("json_schema", {"type": "objet"}), ["#:", "objet"]),
        (
            Format(
                "json_schema",
                {"properties": {"a": {"items": {"properties": {"b": {"type": "strin"}}}}}},
            ),
            ["#/properties/a/items/properties/b", "strin"],
        ),
        (
            Format("json_schema", {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/no"}]}),
            ["#/anyOf/1", "no"],
        ),
        (Format("json_schema", {"type": "array", "uniqueItems": True}), ["#:", "uniqueItems"]),
        (Format("json_schema", [1]), ["expected an object"]),
        (Format("json_schema", {"enum": ["x" * MAX_SOURCE]}), ["expected at most"]),
        (Format("regex", "a(b"), ["regex", "unclosed"]),
        (Format("regex", {"a": 1}), ["expected a text"]),
        (Format("lark", "start: nope"), ["lark", "nope"]),
        (Format("xml", "a"), ["'xml'", "json_schema"]),
    ],
)
def test_what_is_wrong_is_named_with_its_place(form: Format, words: list[str]) -> None:
    with pytest.raises(BadRequest) as caught:
        whole_form(grammars(), form, lead=True)
    assert not [w for w in words if w not in str(caught.value)], caught.value


def test_nested_and_endless_schemas_are_refused_or_cheap() -> None:
    g = grammars()
    deep: dict[str, Any] = {}
    inner = deep
    for _ in range(5000):
        inner["items"] = {}
        inner = inner["items"]
    with pytest.raises(BadRequest, match="nested more than 100 deep"):
        whole_form(g, Format("json_schema", deep), lead=False)
    hostile = [
        Format("json_schema", {"$ref": "#"}),
        Format("json_schema", {"type": "string", "pattern": "((a{1,100}){1,100}){1,100}"}),
        Format("json_schema", {"enum": [str(i) * 9 for i in range(5000)]}),
        Format("regex", "(a|aa|aaa)*" * 50 + "b"),
        Format("lark", "start: a\na: a a a | /x/"),
    ]
    for form in hostile:
        began = time.process_time()
        try:
            constraint = Whole(g.follow(whole_form(g, form, lead=False)))
            written(constraint, g.tokenizer, 1, most=20)
        except BadRequest:
            pass
        # A bound far above what is measured (under 0.3 s): it tells hanging from working.
        assert time.process_time() - began < 20, form.kind


MARKS = {
    Style.XML: "\n</parameter>\n",
    Style.KEYED: "</arg_value>",
    Style.GEMMA: QUOTE,
    Style.DSML: f"</{D}parameter>",
}
STYLES = {
    Style.XML: "qwen xml",
    Style.KEYED: "laguna",
    Style.GEMMA: "gemma",
    Style.DSML: "deepseek v4",
    Style.V3: "deepseek v3.1",
    Style.JSON: "qwen json",
    Style.BARE: "bare json",
}
TOOLS = [
    tool("get_weather", city={"type": "string"}, days={"type": "integer"}),
    tool(
        "set",
        on={"type": "boolean"},
        mode={"type": "string", "enum": ["fast", "slow"]},
        at={"type": "array", "items": {"type": "number"}},
        where={"type": "object", "properties": {"x": {"type": "string"}}},
    ),
]


def call_grammar(
    g: Grammars, style: Style, parallel: bool = True, block: bool = True, known: Any = None
) -> Any:
    """A grammar of calls of `TOOLS`, or of `known`: whole, or what comes behind an opener."""
    parts: list[dict[str, Any]] = []

    def keep(schema: Any) -> str:
        parts.append({"name": f"j{len(parts)}", "json_schema": with_space(schema, lenient=True)})
        return parts[-1]["name"]

    made = CallGrammar(style, known or declared(TOOLS), g.tokenizer, False, parallel, keep)
    lark = made.lark(made.whole if block else made.start)
    grammar = [{"name": "answer", "lark_grammar": lark}, *parts]
    assert g.check(grammar) == "", lark
    return grammar


@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize("style", STYLES)
def test_grammars_take_the_calls_that_models_write(style: Style, control: bool) -> None:
    g = grammars(control)
    assert takes(g, call_grammar(g, style), CALLS[STYLES[style]])


def takes(g: Grammars, grammar: Any, text: str) -> bool:
    """Whether an answer may be this text and no more."""
    follower = g.follow(grammar)
    for token in g.tokenizer.encode(text, special=True):
        if not may(follower, token):
            return False
        follower.take(token)
    (end,) = g.tokenizer.eos_ids
    return may(follower, end)


@pytest.mark.parametrize("control", [True, False])
@pytest.mark.parametrize("style", STYLES)
def test_any_choice_makes_calls_that_can_be_read(style: Style, control: bool) -> None:
    g = grammars(control)
    ended = 0
    for seed in range(8):
        whole = Whole(g.follow(call_grammar(g, style)))
        text, done = written(whole, g.tokenizer, seed, mark=MARKS.get(style, '"'))
        if not done:
            continue
        ended += 1
        parser = OutputParser(tools=TOOLS)
        pieces = parser.push(text) + parser.finish()
        assert calls(pieces), text
        assert content(pieces).strip() == "", text
        for name, arguments in calls(pieces):
            if name == "get_weather":
                assert isinstance(arguments.get("city", ""), str)
                assert isinstance(arguments.get("days", 0), int)
            else:
                assert arguments.get("on", True) in (True, False)
                assert arguments.get("mode", "fast") in ("fast", "slow")
                assert isinstance(arguments.get("at", []), list)
    assert ended >= 2


def steered(g: Grammars, ids: Sequence[int], steering: Steering) -> list[bool | None]:
    """Feed ids; for each whether it was allowed, None where anything was."""
    found: list[bool | None] = []
    for token in ids:
        found.append(None if steering.mask() is None else may(steering, token))
        steering.chose(token)
    return found


def test_a_lazy_grammar_begins_at_the_opener_and_lets_go_at_the_end() -> None:
    g = grammars()
    tokenizer = g.tokenizer
    grammar = call_grammar(g, Style.JSON, block=False)
    ids = tokenizer.encode(f"Hm. {CALLS['qwen json']}{CALLS['qwen json']} ok", special=True)
    lazy = FromOpener(g.follow(grammar), "<tool_call>", again=True, ends=tokenizer.eos_ids)
    steering = Steering(
        tokenizer.vocab_size, tokenizer.detokenizer(special=True), OutputParser(), lazy
    )
    found = steered(g, ids, steering)
    opener = tokenizer.marker_id("<tool_call>")
    first, second = (i for i, t in enumerate(ids) if t == opener)
    assert set(found[: first + 1]) == {None}
    assert found[second] is None
    assert set(found[first + 1 : second]) == {True}
    assert found[-1] is None

    once = FromOpener(g.follow(grammar), "<tool_call>", again=False, ends=tokenizer.eos_ids)
    whole = []
    for token in ids[:second]:
        once.take(token, tokenizer.detokenizer(special=True).push(token))
        whole.append(once.whole)
    assert all(whole[:first]) and not any(whole[first : second - 1]) and whole[-1]
    assert set(np.flatnonzero(once.mask() == 0)) == tokenizer.eos_ids


def test_a_form_begins_behind_thinking() -> None:
    g = grammars(control=False)
    tokenizer = g.tokenizer
    for prompt, text in (
        ("open", 'so {" it is</think>\n'),
        ("may", "<think>hm</think>"),
        ("may", "<|channel>thought\nhm<channel|>"),
    ):
        follower = g.follow(whole_form(g, Format("json_object"), lead=True))
        parser = OutputParser(THINK if prompt == "open" else None)
        opening = tokenizer.encode("<think>" if "<think>" in text else "<|channel>thought")
        steering = Steering(
            tokenizer.vocab_size,
            tokenizer.detokenizer(),
            parser,
            Whole(follower),
            opening=() if prompt == "open" else opening,
        )
        ids = tokenizer.encode(text.removesuffix("\n"))
        found = steered(g, ids, steering)
        n = 0 if prompt == "open" else len(opening)
        assert found == [True] * n + [None] * (len(found) - n)
        assert may(steering, tokenizer.encode("{")[0])
        assert not may(steering, tokenizer.encode("x")[0])


def test_thinking_ends_in_time() -> None:
    g = grammars(control=False)
    tokenizer = g.tokenizer
    closing = tokenizer.encode("Enough.</think>\n")
    steering = Steering(
        tokenizer.vocab_size, tokenizer.detokenizer(), OutputParser(THINK), None, 5, closing
    )
    ids = tokenizer.encode("abcde") + closing
    assert steered(g, ids, steering) == [None] * 5 + [True] * len(closing)
    assert steering.thinking_cut
    assert steering.mask() is None

    natural = Steering(
        tokenizer.vocab_size, tokenizer.detokenizer(), OutputParser(THINK), None, 20, closing
    )
    steered(g, tokenizer.encode("abc</think>" + "x" * 30), natural)
    assert not natural.thinking_cut
    assert natural.mask() is None


@settings(max_examples=30, deadline=None)
@given(
    st.floats(0, 2), st.integers(0, 40), st.floats(0, 1), st.floats(-2, 2), st.integers(0, 10**6)
)
def test_masks_hold_with_penalties_bias_and_filters(
    temperature: float, top_k: int, top_p: float, penalty: float, seed: int
) -> None:
    g = grammars()
    tokenizer = g.tokenizer
    follower = g.follow(whole_form(g, Format("regex", "[a-c]{4}x?"), lead=False))
    steering = Steering(
        tokenizer.vocab_size, tokenizer.detokenizer(), OutputParser(), Whole(follower)
    )
    a, z = tokenizer.encode("az")
    params = SamplingParams(
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        frequency_penalty=penalty,
        repetition_penalty=1.5,
        seed=seed,
        logit_bias={a: -100.0, z: 100.0},
    )
    sampler = Sampler(params, tokenizer.vocab_size, 0, steering)
    previous = [1, 2, 3]
    rng = np.random.default_rng(seed)
    while True:
        logits = rng.normal(0, 5, tokenizer.vocab_size + 7).astype(np.float32)
        token = sampler.sample(logits, previous)
        previous.append(token)
        if token in tokenizer.eos_ids:
            break
    assert re.fullmatch("[a-c]{4}x?", tokenizer.decode(previous[3:]))


def test_styles_are_told_from_templates() -> None:
    shown = {
        "<tool_call>\\n<function=NAME>": Style.XML,
        "<tool_call>{name}\\n<arg_key>": Style.KEYED,
        "'<|tool_call>call:'": Style.GEMMA,
        "set dsml_token = '｜DSML｜'": Style.DSML,
        "<｜tool▁call▁begin｜>": Style.V3,
        '<tool_call>\\n{"name"': Style.JSON,
        "{{ content }}": Style.BARE,
    }
    for template, style in shown.items():
        assert style_of(template) is style
        text = CALLS[STYLES[style]]
        assert text.startswith(opener_of(style))


def test_who_may_not_call_cannot_write_an_opener() -> None:
    g = grammars()
    for opener, mark in (("<tool_call>", "<tool_call>"), (f"<{D}tool_calls>", D)):
        banned = opener_tokens(g.tokenizer, opener)
        assert [g.tokenizer.token_text(t) for t in banned] == [mark]
        without = Without(g.tokenizer.vocab_size, banned)
        assert {t for t in range(g.tokenizer.vocab_size) if not may(without, t)} == banned
    assert not opener_tokens(g.tokenizer, "<other_call>")
