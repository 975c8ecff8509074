"""What is known of prefixes: which sequences begin with it, what is kept of those that end, and where."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass

from engine.cache.host import Copy, HostPool
from engine.cache.memory import Memory
from engine.cache.metrics import CacheMetrics
from engine.cache.snapshot import Blob
from engine.pages import Node, PagePool
from engine.state import StateSlots
from engine.types import Sequence, Span


@dataclass(frozen=True, slots=True)
class Saved:
    """Of a sequence that gave its place away: `n` tokens are computed, the pages from number `first` on and
    the state are here, and those before it are known to the index."""

    n: int
    first: int
    pages: tuple[Blob, ...]
    state: Blob | None
    n_bytes: int


class PrefixCache:
    """Gives sequences the pages and states of what is known, and keeps theirs for others.

    What the device has no room for goes to RAM, if it has room there, and comes back by copy. A hit is one of
    equal token ids from the first on. The serving thread alone calls it.
    """

    def __init__(
        self,
        pool: PagePool,
        states: StateSlots | None,
        host: HostPool,
        memory: Memory,
        fingerprint: bytes = b"",
    ) -> None:
        self.pool, self.states, self.host, self.memory = pool, states, host, memory
        self.fingerprint = fingerprint
        self._state_bytes = memory.state_bytes if states else 0
        self._hits = self._misses = self._reused = 0
        self._out = self._back = self._suspended = 0
        pool.evict, host.on_drop = self._page_goes, self._copy_goes
        if states is not None:
            states.evict = self._state_goes

    # The life of a sequence

    def begin(self, sequence: Sequence, promised: int) -> bool:
        """Give a sequence pages, a slot and what is known of its tokens; False where there is no room.

        There must be pages for all its tokens and one more, beside `promised` ones.
        """
        if sequence.saved is not None:
            nodes = self.pool.match(sequence.tokens)[: sequence.saved.first]
            if len(nodes) < sequence.saved.first or not all(map(self._is_full, nodes)):
                self._drop_saved(sequence)
        if sequence.saved is None:
            nodes = self._usable(sequence)
        size = self.pool.page_tokens
        need = -(-(len(sequence.tokens) + 1) // size)
        need -= sum(node.page >= 0 and self._is_full(node) for node in nodes)
        idle = sum(map(self.pool.is_idle, nodes))
        if need + promised > self.pool.n_available - idle:
            if promised or not nodes or self._is_full(nodes[-1]):
                return False
            self.forget(nodes[-1])  # the page of this end of an answer is the one that is missing
            return self.begin(sequence, promised)
        self.touch(nodes)
        # What gives way to it may be what it needs; the copies themselves stay for as long as they are held.
        blobs = [node.copy.blob if node.page < 0 else None for node in nodes]
        if not self._take_slot(sequence, nodes):
            return False
        self._take_pages(sequence, nodes, blobs)
        self._count(sequence, any(node.written for node in nodes))
        return True

    def advance(self, sequence: Sequence, span: Span, tokens: Seq[int]) -> None:
        """All `tokens` of a sequence are computed, the last ones by `span`: its full pages serve others.

        For a model with recurrent state its slot has the one after the last full page, if the span had a
        draft that goes beyond, else the one after the last token.
        """
        size, n = self.pool.page_tokens, len(tokens)
        full = n // size if sequence.keeps_answer else min(n, sequence.n_prompt) // size
        node, kept = None, dict(sequence.kept)
        for i in range(sequence.n_known, full if sequence.cached else 0):
            # What it was given of an answer may be the beginning of this page.
            old = sequence.given_answer and i * size < sequence.n_given
            written = old or (i + 1) * size > sequence.n_prompt
            node = self.pool.register(sequence.pages, i, tokens, written)
            if node is None:
                break
            sequence.n_known = i + 1
            end = sequence.n_known * size
            if end in kept and self._checkpoint(sequence, node, end, kept[end]):
                sequence.kept.remove((end, kept[end]))
        self._give_kept(sequence)
        end = sequence.n_known * size
        at_end = end == n or (span.draft is not None and end == n // size * size)
        if node is not None and self.states is not None and at_end:
            self._checkpoint(sequence, node, end)

    def slot_on_the_way(self, sequence: Sequence, end: int) -> int | None:
        """A slot for the state after `end` tokens, which the sequence's next span is to leave there; None
        where that cannot be."""
        slot = self.states.take() if self.states is not None else None
        if slot is not None:
            sequence.kept.append((end, slot))
        return slot

    def end(self, sequence: Sequence, sound: bool = True) -> None:
        """A sequence is done; where it is not `sound`, nothing that it computed is kept."""
        self._drop_saved(sequence)
        if sound:
            self._keep_end(sequence)
        else:
            first = sequence.n_given // self.pool.page_tokens
            for page in sequence.pages[first : sequence.n_known]:
                if (node := self.pool.node(page)) is not None:
                    self.forget(node)
        self._release(sequence)

    def suspend(self, sequence: Sequence) -> None:
        """Take the place of a sequence away, and keep in RAM what it needs to go on exactly."""
        size, n = self.pool.page_tokens, sequence.n_computed
        private = sequence.pages[sequence.n_known : -(-n // size)]
        n_bytes = len(private) * self.memory.page_bytes + self._state_bytes
        if n and self.host.reserve(n_bytes):
            pages = [self.memory.read_page(page) for page in private]
            state = self.memory.read_state(sequence.slot) if self.states else None
            blobs = tuple(page for page in pages if page is not None)
            if len(blobs) == len(private) and (state is not None or not self.states):
                sequence.saved = Saved(n, sequence.n_known, blobs, state, n_bytes)
            else:
                self.host.free(n_bytes)
        self._suspended += 1
        self._release(sequence)

    # What is known

    def known(self, tokens: Seq[int], full_pages: bool = False) -> list[Node]:
        """The nodes of the longest prefix of `tokens` to go on from, in full pages only if asked for.

        For recurrent models the last one has a state.
        """
        nodes = self.pool.match([*tokens, -1])
        if full_pages:
            nodes = [node for node in nodes if self._is_full(node)]
        return self._to_state(nodes)

    def clear(self) -> None:
        """Forget all prefixes; what runs goes on."""
        for node in self.pool.all_nodes():
            self.forget(node)

    def touch(self, nodes: Seq[Node]) -> None:
        """These are used now, from a prefix's first on: those before others stay longer."""
        for node in reversed(nodes):
            for copy in (node.state, node.copy):
                if copy is not None:
                    self.host.touch(copy)
            if self.states is not None:
                self.states.touch(node)

    def forget(self, node: Node) -> None:
        """The node is not to be found any more."""
        self.pool.forget(node)
        self._without_place(node)

    def metrics(self) -> CacheMetrics:
        """The numbers of this moment."""
        pool, host = self.pool, self.host
        return CacheMetrics(
            running_pages=pool.n_used - pool.n_shared,
            shared_pages=pool.n_shared,
            kept_pages=pool.n_kept,
            free_pages=pool.n_available - pool.n_kept,
            owners=tuple((+pool.owners).most_common()),
            ram_pages=host.n_pages,
            ram_states=host.n_states,
            device_states=self.states.n_checkpoints if self.states else 0,
            ram_bytes=host.n_bytes,
            ram_limit=host.limit,
            hits=self._hits,
            misses=self._misses,
            reused_tokens_total=self._reused,
            moved_out_total=self._out,
            read_back_total=self._back,
            preempted_total=self._suspended,
        )

    def check(self, sequences: Seq[Sequence] = ()) -> None:
        """Assert the invariants of all parts, of which `sequences` hold the rest; for tests."""
        self.pool.check()
        nodes = self.pool.all_nodes()
        copies = [c for node in nodes for c in (node.copy, node.state) if c is not None]
        saved = sum(s.saved.n_bytes for s in sequences if s.saved is not None)
        assert self.host.n_bytes >= saved + sum(copy.blob.nbytes for copy in copies)
        assert self.host.n_bytes <= self.host.limit
        if self.states is not None:
            held = [s.slot for s in sequences if s.slot >= 0]
            self.states.check(held, [node for node in nodes if node.slot >= 0])

    # Inside

    def _usable(self, sequence: Sequence) -> list[Node]:
        """What a sequence may begin with."""
        if not sequence.cached:
            return []
        nodes = self.pool.match(sequence.tokens)
        if self.states is not None and _n_tokens(nodes) == len(sequence.tokens):
            nodes.pop()  # the state behind the last token is of no use before it
        if not sequence.keeps_answer:
            written = (i for i, node in enumerate(nodes) if node.written)
            nodes = nodes[: next(written, len(nodes))]
        sequence.branch = sum(map(self._is_full, nodes)) * self.pool.page_tokens
        return self._to_state(nodes)

    def _to_state(self, nodes: list[Node]) -> list[Node]:
        if self.states is None:
            return nodes
        while nodes and nodes[-1].slot < 0 and nodes[-1].state is None:
            nodes = nodes[:-1]
        return nodes

    def _take_slot(self, sequence: Sequence, nodes: list[Node]) -> bool:
        """A slot with the state after `nodes`, or after what was saved."""
        if self.states is None:
            return True
        last = nodes[-1] if nodes else None
        source = last.slot if last else -1
        blob: Blob | None = last.state.blob if last and last.state else None
        slot = self.states.take()
        if slot is None:
            return False
        sequence.slot = slot
        if sequence.saved is not None:
            blob, source = sequence.saved.state, -1
        elif last is not None:
            last.lasting = True
        if source < 0 and blob is not None:
            self.memory.write_state(slot, blob)
        elif source >= 0 and source != slot:
            self.memory.copy_state(source, slot)
        return True

    def _take_pages(self, sequence: Sequence, nodes: list[Node], blobs: list[Blob | None]) -> None:
        """The pages of `nodes`; `blobs` are the copies of those that are not on the device.

        What fills only part of a page, and what was saved, comes to a page of the sequence's own.
        """
        pool, memory, saved = self.pool, self.memory, sequence.saved
        for node in nodes:
            if node.page >= 0:
                pool.take(node, sequence.owner)
        shared = [node for node in nodes if self._is_full(node)]
        own = [*blobs[len(shared) :], *(saved.pages if saved else ())]
        away = [(node, blob) for node, blob in zip(shared, blobs, strict=False) if blob is not None]
        fresh = pool.alloc(len(away) + len(own), sequence.owner)
        assert fresh is not None, "there was room for them"
        for node, blob in away:
            page = fresh.pop()
            memory.write_page(page, blob)
            pool.attach(node, page)
        sequence.pages = [node.page for node in shared]
        for part in own:
            sequence.pages.append(page := fresh.pop())
            if part is not None:
                memory.write_page(page, part)
            else:
                memory.copy_page(nodes[-1].page, page)
                pool.release([nodes[-1].page])
        self._back += len(away) + sum(part is not None for part in own)
        sequence.n_known = len(shared)
        sequence.n_computed = saved.n if saved else min(_n_tokens(nodes), len(sequence.tokens) - 1)
        self._drop_saved(sequence)

    def _checkpoint(self, sequence: Sequence, node: Node, end: int, kept: int = -1) -> bool:
        """Keep the state after a node: where the prompt's full pages end, where another prompt went another
        way, every so often, and at the answer's newest full page; whether that was done now. It may be in
        slot `kept` already."""
        assert self.states is not None
        last = (sequence.n_prompt - 1) // self.pool.page_tokens * self.pool.page_tokens
        lasting = end >= last or end == sequence.branch
        if not lasting and end % self.states.spacing:
            return False
        node.lasting |= lasting
        slot: int | None = kept
        if kept >= 0:
            if node.slot >= 0:
                return False
            self.states.adopt(node, kept)
        elif (slot := self.states.remember(node)) is not None:
            self.memory.copy_state(sequence.slot, slot)
        if end > sequence.n_prompt:
            former, sequence.checkpoint = sequence.checkpoint, node if slot is not None else None
            if former is not None:
                self.states.forget(former)
        return slot is not None

    def _keep_end(self, sequence: Sequence) -> None:
        """Keep what an ended sequence has behind its last known page, to go on from its very last token."""
        size, tokens = self.pool.page_tokens, sequence.tokens
        if sequence.n_computed > len(tokens) and sequence.ended_by >= 0:
            tokens = [*tokens, sequence.ended_by]  # a step that was launched ahead computed it too
        n = min(sequence.n_computed, len(tokens))
        i = (n - 1) // size
        if not (sequence.cached and sequence.keeps_answer and n and sequence.n_known == i):
            return
        if self.states is not None and n != sequence.n_computed:
            return  # its state is further on than its text
        node = self.pool.register(sequence.pages, i, tokens[:n], n > sequence.n_prompt)
        if node is not None and self.states is not None and node.slot < 0:
            self.states.adopt(node, sequence.slot)
            node.lasting, sequence.slot = True, -1

    def _give_kept(self, sequence: Sequence) -> None:
        for _, slot in sequence.kept:
            assert self.states is not None
            self.states.give(slot)
        sequence.kept.clear()

    def _release(self, sequence: Sequence) -> None:
        self._give_kept(sequence)
        self.pool.release(sequence.pages)
        sequence.n_computed = sequence.n_known = 0
        sequence.checkpoint = None
        if self.states is not None and sequence.slot >= 0:
            self.states.give(sequence.slot)
            sequence.slot = -1

    def _drop_saved(self, sequence: Sequence) -> None:
        if sequence.saved is not None:
            self.host.free(sequence.saved.n_bytes)
            sequence.saved = None

    def _count(self, sequence: Sequence, of_answer: bool) -> None:
        """Tell of a sequence what it was spared, at its first beginning."""
        if sequence.n_given >= 0:
            return
        sequence.n_given, sequence.given_answer = sequence.n_computed, of_answer
        if sequence.cached:
            self._hits += sequence.n_given > 0
            self._misses += sequence.n_given == 0
            self._reused += sequence.n_given

    def _is_full(self, node: Node) -> bool:
        return len(node.tokens) == self.pool.page_tokens

    # What has to give way

    def _page_goes(self, node: Node) -> bool:
        """A node's page gets other content; whether the node is kept in RAM."""
        if node.copy is None and self.host.reserve(self.memory.page_bytes):
            blob = self.memory.read_page(node.page)
            if blob is None:
                self.host.free(self.memory.page_bytes)
            else:
                node.copy = Copy(node, blob)
                self.host.keep(node.copy)
                self._out += 1
        if node.copy is None:
            self._without_place(node)
            return False
        self.host.touch(node.copy)
        return True

    def _state_goes(self, node: Node) -> None:
        """A node's slot gets another state."""
        if node.lasting and node.state is None and self.host.reserve(self._state_bytes):
            # The copy of its page may just have gone, and the node with it.
            blob = self.memory.read_state(node.slot) if node.slot >= 0 else None
            if blob is None:
                self.host.free(self._state_bytes)
            else:
                node.state = Copy(node, blob, is_state=True)
                self.host.keep(node.state)

    def _copy_goes(self, copy: Copy) -> None:
        """A copy in RAM is gone."""
        node = copy.node
        if copy.is_state:
            node.state = None
            return
        node.copy = None
        if node.page < 0:
            self.forget(node)

    def _without_place(self, node: Node) -> None:
        """Nothing of a node is needed any more."""
        if self.states is not None:
            self.states.forget(node)
        for copy in (node.state, node.copy):
            if copy is not None:
                self.host.drop(copy)


def _n_tokens(nodes: Seq[Node]) -> int:
    return sum(len(node.tokens) for node in nodes)
