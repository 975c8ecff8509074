"""Markers: found, the longest first; broken up so that none is left."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.markers import Markers

TEXTS = st.text("ab<", max_size=20)
SETS = st.sets(st.text("ab<", min_size=1, max_size=4), min_size=1, max_size=5)


def markers(texts: set[str]) -> Markers:
    return Markers({text: i for i, text in enumerate(sorted(texts))})


def test_the_longest_of_those_that_begin_first() -> None:
    some = Markers({"<a": 1, "<a>": 2, "a>": 3, "]^-": 4, "": 5})
    assert list(some.split("x<a>a><a]^-")) == ["x", 2, 3, 1, 4]
    assert list(some.find("<<a>")) == [(1, 4, 2)]
    assert list(some.split("")) == []


def test_without_markers_all_is_text() -> None:
    assert list(Markers({}).split("abc")) == ["abc"]
    assert Markers({}).break_up("abc", "#") == "abc"


def test_pieces_are_encoded_between_markers() -> None:
    assert Markers({"<a>": 7}).encode("x<a><a>y", lambda text: [ord(text)]) == [120, 7, 7, 121]


@given(texts=SETS, text=TEXTS)
def test_splitting_loses_nothing_and_finds_the_first(texts: set[str], text: str) -> None:
    some, names = markers(texts), sorted(texts)
    pieces = list(some.split(text))
    assert "".join(p if isinstance(p, str) else names[p] for p in pieces) == text
    position = 0
    for piece in pieces:
        starts = [t for t in texts if text.startswith(t, position)]
        if isinstance(piece, int):
            assert names[piece] == max(starts, key=len)
            position += len(names[piece])
        else:
            assert not any(
                text.startswith(t, i) for t in texts for i in range(position, position + len(piece))
            )
            position += len(piece)


@given(texts=SETS, text=TEXTS, more=TEXTS)
def test_nothing_is_left_of_broken_markers(texts: set[str], text: str, more: str) -> None:
    some = markers({t for t in texts if len(t) > 1})
    broken = some.break_up(text, "#")
    assert broken.replace("#", "") == text
    assert not list(some.find(broken))
    # Whatever follows, no marker begins in the text.
    assert all(start >= len(broken) for start, _, _ in some.find(broken + more))


def test_kept_markers_stay_whole() -> None:
    some = Markers({"<a>": 1, "<b>": 2})
    assert list(some.split(some.break_up("<a><b>", "#", frozenset(["<a>"])))) == [1, "<#b#>#"]
