"""Slots of recurrent state and the prefixes that they remember."""

from __future__ import annotations

from engine.pages import Node
from engine.state import StateSlots


def node(i: int) -> Node:
    return Node(i, (0, (i,)))


def test_slots_are_distinct_until_none_is_left() -> None:
    states = StateSlots(3)
    slots = {states.take() for _ in range(3)}
    assert slots == {0, 1, 2} and states.take() is None
    states.give(1)
    assert states.take() == 1


def test_a_known_node_is_not_copied_again() -> None:
    states, one = StateSlots(2), node(1)
    slot = states.remember(one)
    assert slot is not None and one.slot == slot
    assert states.remember(one) is None
    states.check([], [one])


def test_the_least_recently_used_checkpoint_makes_room() -> None:
    gone: list[Node] = []
    states = StateSlots(2, gone.append)
    old, new = node(1), node(2)
    states.remember(old)
    slot = states.remember(new)
    states.touch(old)
    assert states.take() == slot
    assert gone == [new] and new.slot == -1 and old.slot >= 0


def test_a_node_that_goes_while_its_slot_is_taken_is_no_trouble() -> None:
    states = StateSlots(1)
    states.evict = states.forget
    one = node(1)
    slot = states.remember(one)
    assert states.take() == slot and states.take() is None


def test_a_sequences_slot_may_become_a_checkpoint() -> None:
    states, one = StateSlots(1), node(1)
    slot = states.take()
    assert slot is not None
    states.adopt(one, slot)
    assert states.n_checkpoints == 1 and states.take() == slot


def test_a_forgotten_node_gives_its_slot_back() -> None:
    states, one = StateSlots(1), node(1)
    slot = states.remember(one)
    states.forget(one)
    states.forget(one)
    assert one.slot == -1 and states.take() == slot
