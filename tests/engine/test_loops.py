"""Loops are cut, and what only looks like one is not."""

from __future__ import annotations

import random

from engine.loops import LONGEST, LoopWatch


def length_until_cut(tokens: list[int], strict: bool = False) -> int | None:
    watch = LoopWatch()
    if strict:
        watch.be_strict()
    return next((n for n, token in enumerate(tokens, 1) if watch.push(token)), None)


def test_a_long_repetition_of_any_short_part_is_a_loop() -> None:
    for period in (1, 2, 7, 30, LONGEST):
        start = list(range(1000, 1100))
        cut = length_until_cut(start + list(range(period)) * 2000)
        assert cut is not None
        assert 600 <= cut - len(start) <= 600 + LONGEST + 8


def test_it_is_found_however_long_the_text_before_it_is() -> None:
    for lead in range(2000, 9000, 350):
        cut = length_until_cut([*range(1000, 1000 + lead), *[7, 8, 9] * 500])
        assert cut is not None and 600 <= cut - lead <= 600 + LONGEST + 8


def test_what_repeats_for_a_while_or_nearly_is_no_loop() -> None:
    drawn = random.Random(1)
    assert length_until_cut([7] * 500 + [8] + [7] * 500) is None
    assert length_until_cut(list(range(LONGEST + 1)) * 100) is None
    table = [t for row in range(300) for t in (5, 6, 1000 + row, 7, 8)]
    assert length_until_cut(table) is None
    assert length_until_cut([drawn.randrange(50) for _ in range(20_000)]) is None


def test_after_thinking_was_cut_some_copies_are_enough() -> None:
    part = list(range(15))
    assert length_until_cut(part * 3, strict=True) is None
    assert length_until_cut(part * 5, strict=True) == 64
    assert length_until_cut([1] * 30, strict=True) is None
    assert length_until_cut(part * 9) is None
