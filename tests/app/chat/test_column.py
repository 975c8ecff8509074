"""Heights one below the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from app.chat.column import Column

heights = st.lists(st.integers(1, 500), min_size=1, max_size=40)


@given(heights, st.data())
def test_changes_give_what_filling_gives(values: list[int], data: st.DataObject) -> None:
    column = Column(24, 4)
    column.fill(values)
    for _ in range(5):
        i = data.draw(st.integers(0, len(values) - 1))
        values[i] = data.draw(st.integers(1, 500))
        column.set_height(i, values[i])
    other = Column(24, 4)
    other.fill(values)
    assert [column.top(i) for i in range(len(values))] == [other.top(i) for i in range(len(values))]
    assert column.total == 24 + sum(values) + 4 * (len(values) - 1) + 24


@given(heights, st.integers(-100, 30_000), st.integers(1, 900))
def test_a_window_shows_all_that_it_touches(values: list[int], top: int, height: int) -> None:
    column = Column(24, 4)
    column.fill(values)
    shown = column.between(top, top + height)
    for i in range(len(values)):
        if column.bottom(i) > top and column.top(i) < top + height:
            assert i in shown
    assert len(shown) <= height + 2


def test_empty() -> None:
    column = Column(24, 4)
    assert list(column.between(0, 500)) == []
    assert column.at(10) == 0
    assert column.top(5) == 24
