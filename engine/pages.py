"""The pool of key/value pages and the index of prefixes that pages hold. Integers only."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Any

ROOT = 0


@dataclass(slots=True, eq=False)
class Node:
    """A page of tokens behind a prefix, in the index; the end of an answer may fill only part of its page.

    `key` is the id of the node before and the tokens. Keys and values are in `page`, in `copy` in RAM, or in
    both; a recurrent state after the tokens is in `slot`, in `state` in RAM, in both or nowhere. A `written`
    one was computed while an answer was written, a `lasting` state stands where other texts may go on.
    """

    id: int
    key: tuple[int, tuple[int, ...]]
    page: int = -1
    slot: int = -1
    copy: Any = None
    state: Any = None
    written: bool = False
    lasting: bool = False

    @property
    def tokens(self) -> tuple[int, ...]:
        """The tokens whose keys and values it has."""
        return self.key[1]


class PagePool:
    """Reference-counted pages of `page_tokens` tokens, shared between sequences with equal prefixes.

    A full page whose tokens are computed enters the index with `register`. A page without users stays
    in the index until its room is needed; the least recently used goes first. Sequences release their
    pages last one first, so a page is never older in that order than the pages that continue it.
    """

    def __init__(
        self, n_pages: int, page_tokens: int, evict: Callable[[Node], bool] | None = None
    ) -> None:
        """`evict` is asked before a known page gets other tokens, whether its node stays known without it."""
        self.evict = evict
        self.n_pages = n_pages
        self.page_tokens = page_tokens
        self._free = list(range(n_pages - 1, -1, -1))
        self._users = [0] * n_pages
        self.n_shared = 0
        """Pages that several sequences hold."""
        self.owners: Counter[str | None] = Counter()
        """Pages that hold something, by whom it is for; None for several."""
        self._owner: dict[int, str | None] = {}
        self._index: dict[tuple[int, tuple[int, ...]], Node] = {}
        self._nodes: dict[int, Node] = {}
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

    @property
    def n_kept(self) -> int:
        """Pages that nobody holds and a later prompt may use."""
        return len(self._idle)

    def alloc(self, n: int, owner: str = "") -> list[int] | None:
        """`n` pages with undefined content for one user, or None when there are not as many."""
        if n > self.n_available:
            return None
        pages = []
        for _ in range(n):
            if self._free:
                page = self._free.pop()
            else:
                page, _ = self._idle.popitem(last=False)
                self._vacate(page)
            self._users[page] = 1
            self._own(page, owner)
            pages.append(page)
        return pages

    def match(self, tokens: Seq[int]) -> list[Node]:
        """The nodes of the longest known prefix of `tokens`, wherever their keys and values are.

        The last token must still be computed, for its logits: no full page has it. The last node may fill
        only part of its page, and have the last token too.
        """
        nodes: list[Node] = []
        parent, size = ROOT, self.page_tokens
        for start in range(0, len(tokens) - size, size):
            node = self._index.get((parent, tuple(tokens[start : start + size])))
            if node is None:
                break
            nodes.append(node)
            parent = node.id
        start = len(nodes) * size
        rest = tuple(tokens[start : start + size - 1])
        for n in range(len(rest), 0, -1):
            if (node := self._index.get((parent, rest[:n]))) is not None:
                return [*nodes, node]
        return nodes

    def is_idle(self, node: Node) -> bool:
        """Whether its page is on the device and nobody holds it."""
        return node.page in self._idle

    def take(self, node: Node, owner: str = "") -> int:
        """A node's page for one more user."""
        self._take(node.page, owner)
        return node.page

    def register(
        self, pages: list[int], i: int, tokens: Seq[int], written: bool = False
    ) -> Node | None:
        """Enter page number `i` of a sequence, all of whose tokens from its first page on are `tokens`.

        Where an equal page is known already, `pages` is changed to share that one. None where the page
        before is not known.
        """
        before = self._nodes.get(pages[i - 1]) if i else None
        if i and before is None:
            return None
        size = self.page_tokens
        node = self.known(before, tuple(tokens[i * size : (i + 1) * size]))
        if node.page < 0:
            if node.copy is None:
                node.written = written
            self.attach(node, pages[i])
        elif node.page != pages[i]:
            self._take(node.page, self._owner[pages[i]])
            self._drop(pages[i])
            pages[i] = node.page
        return node

    def find(self, parent: Node | None, tokens: tuple[int, ...]) -> Node | None:
        """The node of `tokens` behind `parent`."""
        return self._index.get((parent.id if parent else ROOT, tokens))

    def node(self, page: int) -> Node | None:
        """What a page holds, if it is known."""
        return self._nodes.get(page)

    def known(self, parent: Node | None, tokens: tuple[int, ...]) -> Node:
        """The node of `tokens` behind `parent`, new and without a page where there was none."""
        key = (parent.id if parent else ROOT, tokens)
        if (node := self._index.get(key)) is None:
            node = self._index[key] = Node(self._next_id, key)
            self._next_id += 1
        return node

    def attach(self, node: Node, page: int) -> None:
        """A page that one user holds now has a node's content."""
        assert node.page < 0 and page not in self._nodes
        node.page = page
        self._nodes[page] = node
        self._index[node.key] = node

    def forget(self, node: Node) -> None:
        """The node is not to be found any more; who holds its page keeps it."""
        if self._index.get(node.key) is node:
            del self._index[node.key]
        if node.page >= 0:
            del self._nodes[node.page]
            if node.page in self._idle:
                del self._idle[node.page]
                self._empty(node.page)
            node.page = -1

    def all_nodes(self) -> list[Node]:
        """All that is known."""
        return list(self._index.values())

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
        assert self.n_shared == sum(users > 1 for users in self._users)
        assert not free & self._owner.keys() and len(free) + len(self._owner) == self.n_pages
        assert +self.owners == Counter(self._owner.values())
        assert idle <= set(self._nodes) and not free & set(self._nodes)
        assert all(
            node.page == page and self._index[node.key] is node
            for page, node in self._nodes.items()
        )
        for key, node in self._index.items():
            assert node.key == key and (node.page >= 0 or node.copy is not None)

    def _take(self, page: int, owner: str | None) -> None:
        if self._users[page] == 0:
            del self._idle[page]
        self._users[page] += 1
        self._own(page, owner)
        self.n_shared += self._users[page] == 2

    def _drop(self, page: int) -> None:
        assert self._users[page] > 0, f"page {page} is released twice"
        self._users[page] -= 1
        self.n_shared -= self._users[page] == 1
        if self._users[page] == 0:
            if page in self._nodes:
                self._idle[page] = None
            else:
                self._empty(page)

    def _own(self, page: int, owner: str | None) -> None:
        """Count a page for one more owner."""
        former = self._owner.get(page, owner)
        if page in self._owner:
            self.owners[former] -= 1
        self._owner[page] = owner if former == owner else None
        self.owners[self._owner[page]] += 1

    def _disown(self, page: int) -> None:
        self.owners[self._owner.pop(page)] -= 1

    def _empty(self, page: int) -> None:
        self._disown(page)
        self._free.append(page)

    def _vacate(self, page: int) -> None:
        node = self._nodes[page]
        self._disown(page)
        kept = self.evict is not None and self.evict(node)
        del self._nodes[page]
        node.page = -1
        if not kept and self._index.get(node.key) is node:
            del self._index[node.key]
