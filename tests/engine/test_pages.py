"""The page pool: sharing, eviction, and its invariants under any order of events."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.pages import PagePool


def held(pool: PagePool, tokens: list[int]) -> list[int]:
    """Pages of a sequence that has computed all of `tokens`."""
    pages = pool.match(tokens)
    known = len(pages)
    new = pool.alloc(-(-len(tokens) // pool.page_tokens) - known)
    assert new is not None
    pages += new
    pool.register(pages, tokens, known)
    return pages


def test_alloc_gives_distinct_pages_until_none_is_left() -> None:
    pool = PagePool(4, 2)
    pages = pool.alloc(3)
    assert pages is not None and len(set(pages)) == 3
    assert pool.alloc(2) is None
    assert pool.n_available == 1


def test_equal_prefixes_share_full_pages_only() -> None:
    pool = PagePool(16, 4)
    first = held(pool, list(range(10)))
    second = pool.match([*range(9), 77])
    assert second == first[:2]
    assert pool.match([0, 1, 2, 99, 4, 5]) == []


def test_one_token_is_always_left_to_compute() -> None:
    pool = PagePool(16, 4)
    first = held(pool, list(range(8)))
    assert pool.match(list(range(8))) == first[:1]
    assert pool.match(list(range(9))) == first[:2]


def test_same_page_tokens_after_another_prefix_are_another_page() -> None:
    pool = PagePool(16, 2)
    held(pool, [1, 2, 3, 4, 5])
    assert len(pool.match([9, 9, 3, 4, 5])) == 0


def test_released_pages_stay_known_until_their_room_is_needed() -> None:
    pool = PagePool(4, 2)
    pages = held(pool, [1, 2, 3, 4, 5])
    pool.release(pages)
    assert pages == [] and pool.n_available == 4
    again = pool.match([1, 2, 3, 4, 5])
    assert len(again) == 2
    pool.release(again)
    assert pool.alloc(4) is not None
    assert pool.match([1, 2, 3, 4, 5]) == []


def test_a_prefix_outlives_what_continues_it() -> None:
    pool = PagePool(3, 2)
    pool.release(held(pool, [1, 2, 3, 4]))
    assert pool.alloc(2) is not None
    assert len(pool.match([1, 2, 3, 4, 5])) == 1


def test_registering_a_known_page_shares_it() -> None:
    pool = PagePool(8, 2)
    first = pool.alloc(2)
    second = pool.alloc(2)
    assert first and second
    pool.register(first, [1, 2, 3, 4], 0)
    pool.register(second, [1, 2, 3, 4], 0)
    assert second == first
    assert pool.n_used == 2


def test_releasing_twice_is_our_fault() -> None:
    pool = PagePool(2, 2)
    pages = pool.alloc(1)
    assert pages is not None
    copy = list(pages)
    pool.release(pages)
    with pytest.raises(AssertionError):
        pool.release(copy)


class Pool(RuleBasedStateMachine):
    """Sequences over two tokens, so that prefixes meet often."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = PagePool(12, 2)
        self.sequences: list[tuple[list[int], list[int]]] = []

    @rule(tokens=st.lists(st.integers(0, 1), min_size=1, max_size=9))
    def begin(self, tokens: list[int]) -> None:
        pages = self.pool.match(tokens)
        known = len(pages)
        new = self.pool.alloc(-(-len(tokens) // 2) - known)
        if new is None:
            self.pool.release(pages)
            return
        pages += new
        self.pool.register(pages, tokens, known)
        self.sequences.append((tokens, pages))

    @precondition(lambda self: self.sequences)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        i = data.draw(st.integers(0, len(self.sequences) - 1))
        self.pool.release(self.sequences.pop(i)[1])

    @invariant()
    def holds(self) -> None:
        self.pool.check()
        users: dict[int, int] = {}
        content: dict[int, tuple[int, ...]] = {}
        for tokens, pages in self.sequences:
            for i, page in enumerate(pages):
                users[page] = users.get(page, 0) + 1
                full = tuple(tokens[: 2 * (i + 1)])
                if len(full) == 2 * (i + 1):
                    assert content.setdefault(page, full) == full
        assert self.pool.n_used == len(users)


Pool.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestPool = Pool.TestCase
