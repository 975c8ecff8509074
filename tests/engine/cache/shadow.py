"""A model that only remembers which text each place of its pages and each of its states has seen.

Its next token follows from the whole text, so that one wrong page or state shows at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.cache.host import HostPool
from engine.cache.prefix import PrefixCache
from engine.config import SamplingParams
from engine.loading import LoadedModel
from engine.pages import PagePool
from engine.runner import Flight
from engine.scheduler import Scheduler
from engine.state import StateSlots
from engine.types import Draft, Sequence, Step, StepResult

SIZE = 4
N_WORDS = 3  # few, so that texts meet often

Numbers = NDArray[np.int64]
Bytes = NDArray[np.uint8]


def seen(tokens: list[int]) -> int:
    """A number that stands for a text."""
    return hash((len(tokens), *tokens))


def next_token(tokens: list[int]) -> int:
    return seen(tokens) % N_WORDS


class ShadowMemory:
    """What `engine.cache.memory.Memory` asks for."""

    page_bytes = 8 * SIZE
    state_bytes = 8
    least_kept = 0

    def __init__(self, n_pages: int, n_slots: int) -> None:
        self.pages: Numbers = np.zeros((n_pages, SIZE), np.int64)
        self.slots: Numbers = np.zeros((n_slots, 1), np.int64)
        self.short = False

    def read_page(self, page: int) -> Bytes | None:
        return None if self.short else self.pages[page].copy().view(np.uint8)

    def write_page(self, page: int, blob: Bytes) -> None:
        self.pages[page] = blob.view(np.int64)

    def copy_page(self, source: int, target: int) -> None:
        self.pages[target] = self.pages[source]

    def read_state(self, slot: int) -> Bytes | None:
        return None if self.short else self.slots[slot].copy().view(np.uint8)

    def write_state(self, slot: int, blob: Bytes) -> None:
        self.slots[slot] = blob.view(np.int64)

    def copy_state(self, source: int, target: int) -> None:
        self.slots[target] = self.slots[source]

    def settle(self) -> None:
        pass


@dataclass(slots=True)
class Guesser:
    """Guesses a chain, of which some tokens are right."""

    random: Random
    places: int = 1
    released: list[int] = field(default_factory=list)

    def propose(self, sequence: Sequence, most: int) -> Draft | None:
        text, guessed = list(sequence.tokens), []
        for _ in range(self.random.randint(0, min(most, 9))):
            token = next_token(text) if self.random.random() < 0.8 else N_WORDS
            guessed.append(token)
            text.append(token)
        return Draft.chain(guessed) if guessed else None

    def release(self, sequence: Sequence) -> None:
        self.released.append(sequence.request_id)


class Shadow:
    """A scheduler with its cache, and the model that checks it; `step` is a step of the engine."""

    def __init__(
        self,
        pages: int = 64,
        concurrency: int = 4,
        max_ctx: int = 200,
        slots: int = 0,
        ram: int = 0,
        chunk: int = 16,
        spacing: int = 1024,
        guesser: Guesser | None = None,
        alike: int | None = None,
    ) -> None:
        """`ram` counts pages."""
        self.memory = ShadowMemory(pages, slots)
        self.cache = PrefixCache(
            PagePool(pages, SIZE),
            StateSlots(slots, spacing=spacing) if slots else None,
            HostPool(ram * self.memory.page_bytes),
            self.memory,
            b"shadow",
        )
        self.scheduler = Scheduler(self.cache, concurrency, chunk, max_ctx, guesser, alike)
        self.recurrent = slots > 0
        runner = SimpleNamespace(collect=self._run)
        ops = SimpleNamespace(accept=self._accept)
        self._model: Any = SimpleNamespace(
            scheduler=self.scheduler, runner=runner, ops=ops, speculation=None
        )
        self._step: Step | None = None
        self._accepted: dict[int, list[int]] = {}

    def add(self, i: int, tokens: list[int], **more: Any) -> Sequence:
        """A new request."""
        made = Sequence(i, list(tokens), len(tokens), SamplingParams(), **more)
        self.scheduler.add(made)
        return made

    def step(self) -> Step | None:
        """Plan and compute a step; every sequence gets the tokens that it wants."""
        step = self.scheduler.plan()
        if step is not None:
            self.finish(step)
        return step

    def finish(self, step: Step) -> None:
        """Compute a planned step."""
        result = LoadedModel.settle(self._model, Flight(step, {}, (), 0.0))
        for span, tokens in zip(step.spans, result.tokens, strict=True):
            span.sequence.tokens.extend(tokens)
        self.check()

    def check(self) -> None:
        """The bookkeeping is sound."""
        self.cache.check([*self.scheduler.running, *self.scheduler.waiting])

    def _run(self, flight: Flight) -> StepResult:
        """Look at all that the step reads, and leave what it writes."""
        step = flight.step
        self._step, found, paths = step, [], []
        slots = [span.sequence.slot for span in step.spans]
        assert not self.recurrent or (len(set(slots)) == len(slots) and min(slots) >= 0)
        for span in step.spans:
            sequence, start = span.sequence, span.start
            text = list(sequence.tokens[:start])
            assert len(set(sequence.pages)) == len(sequence.pages)
            for at in range(start):
                assert self._at(sequence, at) == seen(text[: at + 1]), "a wrong page"
            if self.recurrent and start:
                assert self.memory.slots[sequence.slot, 0] == seen(text), "a wrong state"
            for token in span.tokens:
                text.append(token)
                self.memory.pages[self._place(sequence, len(text) - 1)] = seen(text)
            tokens: list[int] = []
            if span.want_logits:
                text = list(sequence.tokens)
                tokens.append(next_token(text))
                guessed = span.draft.tokens if span.draft else ()
                while len(tokens) <= len(guessed) and tokens[-1] == guessed[len(tokens) - 1]:
                    text.append(tokens[-1])
                    tokens.append(next_token(text))
            for n, slot in span.keeps:
                assert slot not in slots and 0 < n < len(span.tokens)
                self.memory.slots[slot] = seen(sequence.tokens[: start + n])
            if self.recurrent and span.draft is None:
                self.memory.slots[sequence.slot] = seen(sequence.tokens[: start + len(span.tokens)])
            found.append(tuple(tokens))
            paths.append(tuple(range(len(tokens))) if span.draft else ())
        self._accepted = {
            i: [*span.sequence.tokens, *found[i]] for i, span in enumerate(step.spans)
        }
        self._rows: dict[int, int] = {}
        return StepResult(tuple(found), tuple(paths), seconds=0.01)

    def _accept(self, i: int, rows: tuple[int, ...]) -> None:
        """Of a draft the state moves on by as many rows."""
        assert self._step is not None
        span = self._step.spans[i]
        self._rows[i] = self._rows.get(i, 0) + len(rows)
        if self.recurrent and self._rows[i]:
            text = self._accepted[i][: span.start + self._rows[i]]
            self.memory.slots[span.sequence.slot] = seen(text)

    def _place(self, sequence: Sequence, at: int) -> tuple[int, int]:
        return sequence.pages[at // SIZE], at % SIZE

    def _at(self, sequence: Sequence, at: int) -> int:
        return int(self.memory.pages[self._place(sequence, at)])
