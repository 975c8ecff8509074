"""Stop strings: across pieces, several at once, nothing taken back, nothing held longer than needed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import BadRequest
from engine.stops import StopMatcher
from tests.engine.text_fixtures import load, tokenizer

WORDS = st.text("ab<", min_size=1, max_size=4)


def run(pieces: Sequence[str], stops: Sequence[str]) -> tuple[str, str | None]:
    """What is shown in the end, and the stop string that ended it."""
    matcher = StopMatcher(stops)
    shown = ""
    for piece in pieces:
        text, hit = matcher.push(piece)
        shown += text
        if hit is not None:
            return shown, hit
    return shown + matcher.flush(), None


@pytest.mark.parametrize("row", load("stops")["rows"])
def test_across_token_borders(row: dict[str, object]) -> None:
    matcher = StopMatcher(row["stop"])  # type: ignore[arg-type]
    shown, hit = "", None
    for piece in row["pieces"]:  # type: ignore[attr-defined]
        text, hit = matcher.push(piece)
        shown += text
        assert str(row["expected_text"]).startswith(shown)
    assert shown + matcher.flush() == row["expected_text"]
    assert (hit is not None) == row["stopped_by_string"]


def test_a_stop_string_that_arrives_in_parts_of_a_character() -> None:
    row = load("stops")["bytes_row"]
    stream = tokenizer("bpe_vocab.gguf").detokenizer()
    pieces = [stream.push_bytes(bytes.fromhex(piece)) for piece in row["pieces_hex"]]
    assert run(pieces, row["stop"]) == (row["expected_text"], row["stop"][0])


def test_only_what_may_become_a_stop_string_is_held() -> None:
    matcher = StopMatcher(["abac", "ca"])
    assert [matcher.push(c)[0] for c in "xabab"] == ["x", "", "", "", "ab"]
    assert matcher.push("ax") == ("abax", None)
    assert matcher.push("c") == ("", None)
    assert matcher.flush() == "c"
    assert matcher.flush() == ""


def test_the_one_that_is_complete_first_wins_and_of_those_the_longest() -> None:
    assert run(["xabcd"], ["abcd", "bc"]) == ("xa", "bc")
    assert run(["xabcd"], ["cd", "abcd"]) == ("x", "abcd")
    assert run(["xaaab"], ["aab"]) == ("xa", "aab")
    assert run(["abababc"], ["ababc"]) == ("ab", "ababc")


def test_nothing_passes_after_the_end() -> None:
    matcher = StopMatcher(["."])
    assert matcher.push("a.b") == ("a", ".")
    assert matcher.push("c.") == ("", ".")
    assert matcher.flush() == ""


def test_without_stop_strings_all_passes() -> None:
    assert StopMatcher([]).push("abc") == ("abc", None)


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(BadRequest, match="empty"):
        StopMatcher(["a", ""])


@given(
    text=st.text("ab<", max_size=30), stops=st.lists(WORDS, min_size=1, max_size=4), data=st.data()
)
def test_the_pieces_make_no_difference(text: str, stops: list[str], data: st.DataObject) -> None:
    pieces, left = [], text
    while left:
        cut = data.draw(st.integers(1, len(left)))
        pieces.append(left[:cut])
        left = left[cut:]
    ends = [(text.find(s) + len(s), -len(s), s) for s in stops if s in text]
    if ends:
        end, _, stop = min(ends)
        assert run(pieces, stops) == (text[: end - len(stop)], stop)
    else:
        assert run(pieces, stops) == (text, None)


@given(text=st.text("ab<", max_size=20), stops=st.lists(WORDS, min_size=1, max_size=3))
def test_the_held_tail_is_the_longest_beginning_of_a_stop_string(
    text: str, stops: list[str]
) -> None:
    matcher = StopMatcher(stops)
    shown, hit = matcher.push(text)
    if hit is None:
        tails = [text[-n:] for n in range(len(text), 0, -1)]
        held = next((t for t in tails if any(s.startswith(t) for s in stops)), "")
        assert shown + held == text
