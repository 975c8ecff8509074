"""The order in which recurrent layers go through a tree."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ops.visits import BACK, LEAF, visits


def check(parents: list[int]) -> int:
    """Go through a tree as a kernel does; how often it goes back."""
    state = -1
    order = visits(parents)
    assert sorted(code % LEAF for code in order) == list(range(len(parents)))
    for i, code in enumerate(order):
        row = code % LEAF
        if code & BACK:
            state = parents[row]
            assert state in [-1, *(before % LEAF for before in order[:i])]
        assert state == parents[row]
        assert bool(code & LEAF) == (row not in parents)
        if not code & LEAF:
            state = row
    return sum(code & BACK > 0 for code in order)


@pytest.mark.parametrize("near", (1, 2, 5, 32))
def test_each_row_finds_the_state_in_front_of_it(near: int) -> None:
    rng = np.random.default_rng()
    for size in range(1, 33):
        check([-1, *(int(rng.integers(max(-1, row - near), row)) for row in range(1, size))])


def test_only_branches_of_more_than_one_row_go_back() -> None:
    assert check(list(range(-1, 31))) == 0
    assert check([row - 1 if row < 16 else row - 16 for row in range(32)]) == 0
    assert check([-1, 0, 1, 2, 0, 4, 5, 1, 7]) == 2
