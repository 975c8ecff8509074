"""The pool of key/value pages and the index of prefixes that pages hold. Integers only."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

ROOT = 0


@dataclass(slots=True)
class _Node:
    """A full page in the prefix index: `key` is (parent's node id, the page's tokens)."""

    id: int
    key: tuple[int, tuple[int, ...]]


class PagePool:
    """Reference-counted pages of `page_tokens` tokens, shared between sequences with equal prefixes.

    A full page whose tokens are computed enters the index with `register`. A page without users stays
    in the index until its room is needed; the least recently used goes first. Sequences release their
    pages last one first, so a page is never older in that order than the pages that continue it.
    """

    def __init__(
        self, n_pages: int, page_tokens: int, on_forget: Callable[[int], None] | None = None
    ) -> None:
        """`on_forget` hears of each known page that gets other tokens."""
        self._on_forget = on_forget
        self.n_pages = n_pages
        self.page_tokens = page_tokens
        self._free = list(range(n_pages - 1, -1, -1))
        self._users = [0] * n_pages
        self._index: dict[tuple[int, tuple[int, ...]], int] = {}
        self._nodes: dict[int, _Node] = {}
        self._idle: OrderedDict[int, None] = OrderedDict()
        self._next_id = ROOT + 1

    @property
    def n_available(self) -> int:
        """Pages that `alloc` can give."""
        return len(self._free) + len(self._idle)

    @property
    def n_used(self) -> int:
        """Pages that a sequence holds."""
        return self.n_pages - self.n_available

    def alloc(self, n: int) -> list[int] | None:
        """`n` pages with undefined content for one user, or None when there are not as many."""
        if n > self.n_available:
            return None
        pages = []
        for _ in range(n):
            if self._free:
                page = self._free.pop()
            else:
                page, _ = self._idle.popitem(last=False)
                self._forget(page)
            self._users[page] = 1
            pages.append(page)
        return pages

    def match(self, tokens: Seq[int]) -> list[int]:
        """The pages that hold the longest known prefix of `tokens`, taken for one more user.

        At least one token is left out: its logits are still to be computed.
        """
        pages: list[int] = []
        parent, size = ROOT, self.page_tokens
        for start in range(0, len(tokens) - size, size):
            page = self._index.get((parent, tuple(tokens[start : start + size])))
            if page is None:
                break
            self._take(page)
            pages.append(page)
            parent = self._nodes[page].id
        return pages

    def register(self, pages: list[int], tokens: Seq[int], first: int) -> None:
        """Enter the full pages `pages[first:]` of a sequence whose computed tokens are `tokens`.

        Where an equal page is known already, `pages` is changed to share that one.
        """
        size = self.page_tokens
        for i in range(first, len(tokens) // size):
            parent = self._nodes[pages[i - 1]].id if i else ROOT
            key = (parent, tuple(tokens[i * size : (i + 1) * size]))
            known = self._index.get(key)
            if known is None:
                self._index[key] = pages[i]
                self._nodes[pages[i]] = _Node(self._next_id, key)
                self._next_id += 1
            elif known != pages[i]:
                self._take(known)
                self._drop(pages[i])
                pages[i] = known

    def release(self, pages: list[int]) -> None:
        """Give up one user's hold on `pages` and empty the list."""
        while pages:
            self._drop(pages.pop())

    def check(self) -> None:
        """Assert the pool's invariants; for tests and idle moments."""
        free, idle = set(self._free), set(self._idle)
        assert len(free) == len(self._free) and not free & idle
        for page in range(self.n_pages):
            assert (self._users[page] == 0) == (page in free or page in idle), page
        assert idle <= set(self._nodes) and not free & set(self._nodes)
        assert {self._index[node.key] for node in self._nodes.values()} == set(self._nodes)

    def _take(self, page: int) -> None:
        if self._users[page] == 0:
            del self._idle[page]
        self._users[page] += 1

    def _drop(self, page: int) -> None:
        assert self._users[page] > 0, f"page {page} is released twice"
        self._users[page] -= 1
        if self._users[page] == 0:
            if page in self._nodes:
                self._idle[page] = None
            else:
                self._free.append(page)

    def _forget(self, page: int) -> None:
        del self._index[self._nodes.pop(page).key]
        if self._on_forget is not None:
            self._on_forget(page)
