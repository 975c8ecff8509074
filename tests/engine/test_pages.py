"""The page pool: sharing, eviction, and its invariants under any order of events."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from engine.pages import Node, PagePool


def taken(pool: PagePool, tokens: list[int]) -> list[int]:
    """Pages of what is known of `tokens`, for one more user."""
    return [pool.take(node) for node in pool.match(tokens)]


def register(pool: PagePool, pages: list[int], tokens: list[int], first: int = 0) -> None:
    for i in range(first, len(tokens) // pool.page_tokens):
        assert pool.register(pages, i, tokens) is not None


def held(pool: PagePool, tokens: list[int]) -> list[int]:
    """Pages of a sequence that has computed all of `tokens`."""
    pages = taken(pool, tokens)
    known = len(pages)
    new = pool.alloc(-(-len(tokens) // pool.page_tokens) - known)
    assert new is not None
    pages += new
    register(pool, pages, tokens, known)
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
    second = taken(pool, [*range(9), 77])
    assert second == first[:2]
    assert pool.match([0, 1, 2, 99, 4, 5]) == []


def test_one_token_is_always_left_to_compute() -> None:
    pool = PagePool(16, 4)
    first = held(pool, list(range(8)))
    assert taken(pool, list(range(8))) == first[:1]
    assert taken(pool, list(range(9))) == first[:2]


def test_same_page_tokens_after_another_prefix_are_another_page() -> None:
    pool = PagePool(16, 2)
    held(pool, [1, 2, 3, 4, 5])
    assert len(pool.match([9, 9, 3, 4, 5])) == 0


def test_released_pages_stay_known_until_their_room_is_needed() -> None:
    pool = PagePool(4, 2)
    pages = held(pool, [1, 2, 3, 4, 5])
    pool.release(pages)
    assert pages == [] and pool.n_available == 4
    again = taken(pool, [1, 2, 3, 4, 5])
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
    register(pool, first, [1, 2, 3, 4])
    register(pool, second, [1, 2, 3, 4])
    assert second == first
    assert (pool.n_used, pool.n_shared) == (2, 2)


def test_the_end_of_a_text_is_known_to_its_last_token() -> None:
    pool = PagePool(8, 4)
    pages = held(pool, list(range(6)))
    assert pool.register(pages, 1, list(range(6))) is not None
    pool.release(pages)
    assert [node.tokens for node in pool.match([*range(6), 9])] == [(0, 1, 2, 3), (4, 5)]
    assert len(pool.match(list(range(6)))) == 2  # of the end all but its last token is of use
    assert len(pool.match(list(range(4)))) == 0  # of a full page nothing is
    assert len(pool.match([*range(5), 9, 9])) == 1


def test_what_is_moved_away_stays_known_and_comes_back_to_another_page() -> None:
    moved: list[Node] = []

    def evict(node: Node) -> bool:
        node.copy = "here"
        moved.append(node)
        return True

    pool = PagePool(2, 2, evict)
    pool.release(held(pool, [1, 2, 3, 4]))
    others = pool.alloc(2)
    assert others is not None
    assert [node.tokens for node in moved] == [(3, 4), (1, 2)]  # the end first
    found = pool.match([1, 2, 3, 4, 5])
    assert found == [moved[1], moved[0]] and found[0].page == -1
    pool.release(others)
    pages = pool.alloc(1)
    assert pages is not None
    pool.attach(found[0], pages[0])
    pool.check()
    assert pool.match([1, 2, 9])[0].page == pages[0]


def test_what_is_forgotten_is_not_found_and_nothing_is_built_on_it() -> None:
    pool = PagePool(4, 2)
    pages = held(pool, [1, 2, 3, 4])
    node = pool.node(pages[0])
    assert node is not None
    pool.forget(node)
    pool.check()
    assert pool.match([1, 2, 3, 4, 5]) == []
    more = pool.alloc(1)
    assert more is not None
    pages += more
    third = pool.node(pages[1])
    assert third is not None
    pool.forget(third)
    assert pool.register(pages, 2, [1, 2, 3, 4, 5, 6]) is None
    pool.release(pages)
    assert pool.n_available == 4


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
        pages = taken(self.pool, tokens)
        known = len(pages)
        new = self.pool.alloc(-(-len(tokens) // 2) - known)
        if new is None:
            self.pool.release(pages)
            return
        pages += new
        register(self.pool, pages, tokens, known)
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


def test_pages_are_counted_by_whom_they_are_for() -> None:
    pool = PagePool(6, 2)
    tokens = list(range(1, 9))
    one = pool.alloc(3, "a")
    assert one is not None
    for i in range(3):
        pool.register(one, i, tokens)
    assert +pool.owners == {"a": 3}
    nodes = pool.match(tokens)
    again = [pool.take(node, "a") for node in nodes[:1]]
    other = [pool.take(node, "b") for node in nodes[:2]]
    fresh = pool.alloc(1, "b")
    assert fresh is not None
    assert +pool.owners == {None: 2, "a": 1, "b": 1}
    pool.check()
    # One that computed the same at the same time shares what is known, and its own page is free again.
    twin = pool.alloc(1, "c")
    assert twin is not None
    pool.register(twin, 0, tokens[:2])
    assert +pool.owners == {None: 2, "a": 1, "b": 1}
    for pages in (one, again, other, fresh, twin):
        pool.release(pages)
    assert +pool.owners == {None: 2, "a": 1}  # kept for whom they were
    pool.check()
    # Whoever gets the room of what goes has it for itself.
    assert pool.alloc(6, "d") is not None
    assert +pool.owners == {"d": 6}
    pool.check()
