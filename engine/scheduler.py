"""Which spans run next: admission, fair prefill, decode, pre-emption. Pure Python, no arrays."""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from collections.abc import Sequence as Seq
from typing import Protocol

from engine.cache.prefix import PrefixCache
from engine.errors import ContextOverflow
from engine.ops.base import MOST_KEPT
from engine.types import Draft, Sequence, Span, Step

STEP_S = 0.5
MOST_GUESSED = 32
"""Most rows of a step that verify guesses, the tokens before the guesses included."""


class Guesser(Protocol):
    """Whoever proposes drafts; `places` after a sequence's last token must have pages for it to do so."""

    places: int

    def propose(self, sequence: Sequence, most: int) -> Draft | None:
        """A draft of at most `most` tokens after the sequence's last one, or None."""
        ...

    def release(self, sequence: Sequence) -> None:
        """The sequence has ended or lost its pages."""
        ...


class Scheduler:
    """Plans steps over the waiting and running sequences of one model.

    Every running sequence that only misses its last token gets that one token (decode); the room for
    prompts, `prefill_chunk` tokens a step, is shared evenly by the sequences that read theirs. When the
    pages run out, the youngest sequence gives its place away and waits; what it had goes to RAM, and it goes
    on from there, or is computed again where RAM is short, so its text does not change.

    A model with recurrent state can only go on from a prefix whose state was kept: spans end where a
    checkpoint is due, or the step leaves the state on its way.

    Nobody's text depends on its neighbours. Where a row's bits depend on how many there are, those that
    decode share steps of `alike` rows, whose bits do not, and in turn with them prompts are read one by one.
    """

    def __init__(
        self,
        cache: PrefixCache,
        max_concurrency: int,
        prefill_chunk: int,
        max_ctx: int,
        guesser: Guesser | None = None,
        alike: int | None = None,
    ) -> None:
        """Sequences that decode get a draft to verify, if `guesser` has one and pages are free for it.

        `alike` is as `Ops.alike`.
        """
        assert cache.pool.n_pages * cache.pool.page_tokens >= max_ctx, "one whole context must fit"
        self.cache, self.pool = cache, cache.pool
        self.guesser = guesser
        self.max_concurrency = max_concurrency
        self.prefill_chunk = prefill_chunk
        self.max_ctx = max_ctx
        self._room = prefill_chunk
        self._alike = alike
        self._read_last = False
        self._turns = [-1, -1]  # the last request that decoded and that read in its turn
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []

    def add(self, sequence: Sequence) -> None:
        """Queue a sequence; raises `ContextOverflow` when its prompt leaves no room for an answer."""
        n = len(sequence.tokens)
        if n >= self.max_ctx:
            raise ContextOverflow(
                f"The prompt has {n:,} tokens and the context holds {self.max_ctx:,}, answer included."
                " Shorten the conversation or load the model with a larger context.",
                n,
                self.max_ctx,
            )
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence, sound: bool = True) -> None:
        """Take a sequence out, finished or not; what it computed stays known for later prompts if `sound`."""
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)
        self._release_guesses(sequence)
        self.cache.end(sequence, sound)

    def plan(self) -> Step | None:
        """The next step, with pages for all its tokens; None when there is nothing to do."""
        self._admit()
        while self.running:
            # Whose turn it is may be the youngest, and have to give way.
            if spans := self._spans(self._chosen()):
                return Step(tuple(spans))
        return None

    def _spans(self, chosen: list[Sequence]) -> list[Span]:
        """A span of each chosen sequence for which there are pages."""
        spans: list[Span] = []
        room = self._room
        readers = sum(1 for s in chosen if _missing(s) > 1)
        most = MOST_GUESSED // max(1, len(chosen) - readers) - 1
        n_kept = 0
        for sequence in chosen:
            if sequence not in self.running:
                continue  # pre-empted for an older one in this very loop
            missing = _missing(sequence)
            n, keeps = missing, ()  # type: int, tuple[tuple[int, int], ...]
            if missing > 1:
                n = min(missing, max(1, room // readers))
                if self.cache.states is not None:
                    n, keeps = self._keeps(sequence, n, MOST_KEPT - n_kept)
                    n_kept += len(keeps)
                room -= n
                readers -= 1
            if self._reserve(sequence, sequence.n_computed + n):
                start = sequence.n_computed
                tokens = tuple(sequence.tokens[start : start + n])
                draft = None
                decodes = missing == 1 and start >= sequence.n_prompt
                if self.guesser is not None and sequence.drafts and decodes:
                    draft = self._draft(sequence, self.guesser, most)
                if draft is not None:
                    tokens += draft.tokens
                spans.append(Span(sequence, start, tokens, n == missing, draft, keeps))
        return [s for s in spans if s.sequence in self.running]

    def _chosen(self) -> list[Sequence]:
        """Whose tokens the next step computes: all that run, or, with `alike`, those whose turn it is."""
        if self._alike is None:
            return list(self.running)
        reading = [s for s in self.running if _missing(s) > 1]
        decoding = [s for s in self.running if _missing(s) <= 1]
        read = self._read_last = bool(reading) and not (decoding and self._read_last)
        group, n = (reading, 1) if read else (decoding, self._alike)
        if len(group) > n:
            group.sort(key=lambda s: (s.request_id <= self._turns[read], s.request_id))
            group = group[:n]
            self._turns[read] = group[-1].request_id
        return group

    def ahead(self, spans: Seq[Span], rows: Seq[int]) -> Step | None:
        """The step after a running one, before its tokens are known: -1 - r stands for the one of row r.

        None where more is running than plain decodes, where somebody could be admitted, where pages run out,
        and where the state has to be kept as the running step leaves it. Nobody gives anything away for it.
        """
        if self.waiting and len(self.running) < self.max_concurrency:
            return None
        if [span.sequence for span in spans] != self.running:
            return None
        size, next_spans = self.pool.page_tokens, []
        for span, row in zip(spans, rows, strict=True):
            sequence, end = span.sequence, span.start + 1
            if span.draft is not None or len(span.tokens) > 1 or not span.want_logits:
                return None
            if self.cache.states is not None and end % size == 0:
                return None
            if end + 1 >= sequence.n_most:
                continue  # it ends with the running step
            if end >= len(sequence.pages) * size:
                if (pages := self.pool.alloc(1, sequence.owner)) is None:
                    return None
                sequence.pages.extend(pages)
            next_spans.append(Span(sequence, end, (-1 - row,), True))
        return Step(tuple(next_spans)) if next_spans else None

    def stays(self, span: Span, n: int) -> int:
        """How many of `n` rows of a draft that stand must be accepted before `computed` is called, and not
        later: those up to the last full page, whose state may be kept, if it ends among them."""
        size = self.pool.page_tokens
        rows = (span.start + n) // size * size - span.start
        return rows if self.cache.states is not None and 0 < rows < n else n

    def computed(
        self, spans: Seq[Span], tokens: Seq[tuple[int, ...]] = (), failed: Container[int] = ()
    ) -> None:
        """Record that the keys and values of these spans are in their pages, but for `failed` requests.

        Of a draft those of the `tokens` but the last that were decided on, which the sequence may not yet
        have.
        """
        size = self.pool.page_tokens
        for i, span in enumerate(spans):
            sequence = span.sequence
            if sequence not in self.running or sequence.request_id in failed:
                continue
            accepted = tokens[i][:-1] if span.draft is not None else ()
            end = span.start + (len(span.tokens) if span.draft is None else len(tokens[i]))
            if end // size > sequence.n_computed // size:
                known = [*sequence.tokens[:end], *accepted][:end]
                self.cache.advance(sequence, span, known)
            sequence.n_computed = end

    def _draft(self, sequence: Sequence, guesser: Guesser, most: int) -> Draft | None:
        """A draft whose places have pages: of those that nobody holds, and one is left for each other one."""
        n, size = len(sequence.tokens), self.pool.page_tokens
        whole = -(-self.max_ctx // size) * size
        wanted = max(guesser.places, most)
        need = -(-min(n + wanted, whole) // size) - len(sequence.pages)
        need = min(need, self.pool.n_available - (len(self.running) - 1))
        if need > 0 and (pages := self.pool.alloc(need, sequence.owner)):
            sequence.pages.extend(pages)
        room = len(sequence.pages) * size - n
        # Branches need places of their own, so they may be more than the tokens that are still wanted.
        most = min(most, room, self.max_ctx - n)
        if most < 1 or n >= sequence.n_most or room < guesser.places:
            return None
        draft = guesser.propose(sequence, most)
        return draft if draft is not None and draft.tokens else None

    def pace(self, step: Step, seconds: float) -> None:
        """Choose how much of prompts the next step reads, so that a step is a moment on any PC.

        A stop is heard, and another sequence's token is written, between steps only.
        """
        read = sum(len(s.tokens) for s in step.spans if len(s.tokens) > 1 and s.draft is None)
        if read:
            aim = int(read * STEP_S / max(seconds, 1e-6)) // 32 * 32
            self._room = max(min(32, self.prefill_chunk), min(aim, self.prefill_chunk))

    def _admit(self) -> None:
        """Start waiting sequences in order while there is room.

        One whose prefix another sequence is just reading waits for those pages; it does not hold up
        the ones behind it.
        """
        for sequence in list(self.waiting):
            if len(self.running) >= self.max_concurrency:
                return
            if self._prefix_is_being_read(sequence):
                continue
            if not self.cache.begin(sequence, self._promised()):
                return
            self.waiting.remove(sequence)
            self.running.append(sequence)

    def _promised(self) -> int:
        """Pages that the running sequences need for their tokens, and one for each to grow into."""
        size = self.pool.page_tokens
        return sum(max(0, -(-len(s.tokens) // size) - len(s.pages)) + 1 for s in self.running)

    def _keeps(
        self, sequence: Sequence, n: int, most: int
    ) -> tuple[int, tuple[tuple[int, int], ...]]:
        """How many tokens of a prompt, up to n, a span may have, and its `keeps`, up to `most`."""
        start, least = sequence.n_computed, self.cache.memory.least_kept
        keeps: list[tuple[int, int]] = []
        at = start
        while (end := self._next_checkpoint(sequence, at)) < start + n:
            if not (least and sequence.cached) or len(keeps) == most or end - at < least:
                break
            if (slot := self.cache.slot_on_the_way(sequence, end)) is None:
                break
            keeps.append((end - start, slot))
            at = end
        return min(n, end - start), tuple(keeps)

    def _next_checkpoint(self, sequence: Sequence, n: int) -> int:
        """Where a span of a prompt must end at the latest, or its state be kept, behind n tokens."""
        assert self.cache.states is not None
        size, all_of = self.pool.page_tokens, len(sequence.tokens)
        due = (n // self.cache.states.spacing + 1) * self.cache.states.spacing
        last = (all_of - 1) // size * size
        return min(
            (end for end in (due, sequence.branch, last) if n < end < all_of), default=all_of
        )

    def _release_guesses(self, sequence: Sequence) -> None:
        if self.guesser is not None:
            self.guesser.release(sequence)

    def _prefix_is_being_read(self, sequence: Sequence) -> bool:
        size = self.pool.page_tokens
        for other in self.running:
            if _missing(other) <= 1 or not (sequence.cached and other.cached):
                continue
            limit = min(len(sequence.tokens) - 1, len(other.tokens)) // size * size
            first = other.n_computed // size * size
            if limit > first and sequence.tokens[: first + size] == other.tokens[: first + size]:
                return True
        return False

    def _reserve(self, sequence: Sequence, n_tokens: int) -> bool:
        """Pages for `n_tokens` of a sequence, taken from younger ones if need be."""
        need = -(-n_tokens // self.pool.page_tokens) - len(sequence.pages)
        if need <= 0:
            return True
        while (pages := self.pool.alloc(need, sequence.owner)) is None:
            youngest = self.running[-1]
            self._preempt(youngest)
            if youngest is sequence:
                return False
        sequence.pages.extend(pages)
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        self._release_guesses(sequence)
        self.cache.suspend(sequence)
        self.waiting.appendleft(sequence)


def _missing(sequence: Sequence) -> int:
    """Tokens whose keys and values are not computed yet; 1 while it decodes."""
    return len(sequence.tokens) - sequence.n_computed
