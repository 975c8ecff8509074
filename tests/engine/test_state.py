"""Slots of recurrent state and the prefixes that they remember."""

from __future__ import annotations

from engine.state import StateSlots


def test_slots_are_distinct_until_none_is_left() -> None:
    states = StateSlots(3)
    slots = {states.take() for _ in range(3)}
    assert slots == {0, 1, 2} and states.take() is None
    states.give(1)
    assert states.take() == 1


def test_the_deepest_checkpoint_is_found() -> None:
    states = StateSlots(4)
    first, second = states.remember(10), states.remember(12)
    assert states.find([10, 11, 12, 13]) == (3, second)
    assert states.find([10, 11]) == (1, first)
    assert states.find([11, 13]) == (0, -1)


def test_a_known_page_is_not_copied_again() -> None:
    states = StateSlots(2)
    assert states.remember(5) is not None
    assert states.remember(5) is None


def test_the_least_recently_used_checkpoint_makes_room() -> None:
    states = StateSlots(2)
    old, new = states.remember(1), states.remember(2)
    states.find([1])
    assert states.take() == new
    assert states.find([1]) == (1, old) and states.find([2]) == (0, -1)


def test_a_forgotten_page_gives_its_slot_back() -> None:
    states = StateSlots(1)
    slot = states.remember(1)
    states.forget(1)
    states.forget(1)
    assert states.find([1]) == (0, -1) and states.take() == slot
