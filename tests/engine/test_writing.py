"""Text, pieces and log-probabilities of an answer's tokens, whatever is held back."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.output import OutputParser
from engine.pieces import Content, Part, Piece, Reasoning, merged
from engine.reasoning import THINK
from engine.stops import StopMatcher
from engine.types import TokenLogprob
from engine.writing import Shown, Writing
from tests.engine.test_output import WEATHER, calls, content
from tests.engine.text_fixtures import tokenizer

TOKENIZER = tokenizer("bpe_vocab.gguf")


def write(
    ids: list[int], stops: tuple[str, ...] = (), parser: OutputParser | None = None
) -> tuple[list[Shown], str | None]:
    """All that is shown, and the stop string that ended it."""
    writing = Writing(TOKENIZER.detokenizer(), StopMatcher(stops), parser)
    shown = []
    for token in ids:
        shown.append(writing.push(token, TokenLogprob(token, b"", -float(token))))
        if shown[-1].stop is not None:
            break
    shown.append(writing.flush())
    return shown, shown[-1].stop


def text_of(shown: list[Shown]) -> str:
    return "".join(s.text for s in shown)


def told(shown: list[Shown]) -> list[TokenLogprob]:
    return [one for s in shown for one in s.logprobs]


def pieces_of(shown: list[Shown]) -> list[Piece]:
    return merged([p for s in shown for p in s.pieces])


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=30), st.lists(st.text(min_size=1, max_size=3), max_size=3))
def test_log_probabilities_join_to_the_text(text: str, stops: list[str]) -> None:
    ids = TOKENIZER.encode(text, add_bos=False)
    shown, stop = write(ids, tuple(stops))
    seen = text_of(shown)
    assert pieces_of(shown) == ([Content(seen)] if seen else [])
    data = b"".join(one.data for one in told(shown))
    assert [one.token for one in told(shown)] == ids[: len(told(shown))]
    if stop is None:
        assert data == seen.encode()
        assert len(told(shown)) == len(ids)
    else:
        # A token that the stop string begins in the middle of is there with all its bytes.
        assert data.startswith(seen.encode())
        if told(shown) and seen:
            assert len(data) - len(told(shown)[-1].data) < len(seen.encode())


def test_log_probabilities_wait_for_their_text() -> None:
    ids = [TOKENIZER.encode(c, add_bos=False)[0] for c in "abcd"]
    writing = Writing(TOKENIZER.detokenizer(), StopMatcher(["bcx"]), None)
    found = [writing.push(i, TokenLogprob(i, b"", 0.0)) for i in ids]
    assert [s.text for s in found] == ["a", "", "", "bcd"]
    assert [len(s.logprobs) for s in found] == [1, 0, 0, 3]


def test_half_a_character_waits_too() -> None:
    ids = TOKENIZER.encode("🦊", add_bos=False)
    if len(ids) == 1:
        ids = [TOKENIZER.encode("x", add_bos=False)[0]]
    writing = Writing(TOKENIZER.detokenizer(), StopMatcher(()), None)
    found = [writing.push(i, TokenLogprob(i, b"", 0.0)) for i in ids]
    assert [len(s.logprobs) for s in found] == [0] * (len(ids) - 1) + [len(ids)]


def test_each_token_knows_its_part() -> None:
    text = 'so</think>Hi<tool_call>{"name": "get_weather", "arguments": {}}</tool_call>!'
    ids = TOKENIZER.encode(text, add_bos=False)
    shown, _ = write(ids, parser=OutputParser(THINK, tools=[WEATHER]))
    by_part: dict[Part, bytes] = dict.fromkeys(Part, b"")
    for one in told(shown):
        by_part[one.part] += one.data
    assert by_part[Part.REASONING].startswith(b"so<")
    assert by_part[Part.CONTENT].startswith(b"Hi")
    assert b'"name": "get_weather"' in by_part[Part.TOOL_CALL]
    assert reasoning_tokens(ids) == len([o for o in told(shown) if o.part is Part.REASONING])


def reasoning_tokens(ids: list[int]) -> int:
    writing = Writing(
        TOKENIZER.detokenizer(), StopMatcher(()), OutputParser(THINK, tools=[WEATHER])
    )
    for token in ids:
        writing.push(token)
    return writing.reasoning_tokens


def test_stop_strings_do_not_count_inside_calls() -> None:
    call = '<tool_call>{"name": "get_weather", "arguments": {"city": "STOP"}}</tool_call>'
    for text, expected in ((f"Hi {call} STOP more", "Hi "), ("a STOP b", "a ")):
        ids = TOKENIZER.encode(text, add_bos=False)
        shown, stop = write(ids, ("STOP",), OutputParser(tools=[WEATHER]))
        assert stop == "STOP"
        assert content(pieces_of(shown)).rstrip() == expected.rstrip()
        found: Any = [("get_weather", {"city": "STOP"})] if "call" in text else []
        assert calls(pieces_of(shown)) == found


def test_reasoning_without_an_end() -> None:
    ids = TOKENIZER.encode("hm, well", add_bos=False)
    shown, _ = write(ids, parser=OutputParser(THINK))
    assert pieces_of(shown) == [Reasoning("hm, well")]
