"""Texts that were encoded are known: the same ids, within bounds, until they are to be forgotten."""

from __future__ import annotations

import random
import re
import sys

from engine.remembered import PIECE, SHORT, Remembered


class Counting:
    """An encoder that tells how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, text: str, first: bool) -> list[int]:
        self.asked += 1
        return [*map(ord, text), int(first)]


def test_the_ids_are_those_of_the_encoder_and_made_once() -> None:
    encode = Counting()
    known = Remembered(encode)
    for first in (True, False):
        text = "a long text of a chat, \U0001f600 " * 9
        ids = known(text, first)
        assert ids == [*map(ord, text), int(first)]
        ids.append(5)  # whoever has a list may change it
        assert known(text, first) == [*map(ord, text), int(first)]
    assert encode.asked == 2


def test_short_texts_are_encoded_each_time() -> None:
    encode = Counting()
    known = Remembered(encode)
    known("x" * (SHORT - 1), False)
    known("x" * (SHORT - 1), False)
    assert encode.asked == 2


def test_the_oldest_go_first_and_the_giants_never_stay() -> None:
    encode = Counting()
    known = Remembered(encode, most=4 * 100)
    texts = [c * 100 for c in "abcd"]
    for text in (*texts, texts[0], "e" * 100):
        known(text, False)
    assert encode.asked == 5
    known(texts[0], False)
    assert encode.asked == 5
    known(texts[1], False)
    assert encode.asked == 6
    for _ in range(2):
        known("f" * 101, False)
    assert encode.asked == 8


def test_nothing_is_held_once_it_is_forgotten() -> None:
    encode = Counting()
    known = Remembered(encode, most=400)
    text = "".join(["s"] * 100)
    before = sys.getrefcount(text)
    known(text, False)
    assert sys.getrefcount(text) > before
    known.forget()
    assert sys.getrefcount(text) == before
    for letter in "abcd":
        known(letter * 100, False)
    known("a" * 100, False)
    assert encode.asked == 5


def test_texts_that_begin_alike_share_what_is_known() -> None:
    encode = Counting()
    known = Remembered(encode, cut=re.compile("[a-z] [a-z]"))
    rng = random.Random(0)
    text = "".join("".join(rng.choices("abcdefgh", k=5)) + " " for _ in range(1400))
    known(text, True)
    n = encode.asked
    assert n == len(text) // PIECE + 1
    for more in ("and then", "or nothing " * 20):
        known(text + more, True)
        assert encode.asked == (n := n + 1)
    known("x" * 5000, True)  # nowhere to be cut
    assert encode.asked == n + 1
