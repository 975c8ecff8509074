"""`Step` -> device buffers -> forward -> sampled tokens."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineError, NumericError
from engine.ops.base import MOST_CHOSEN, Chooses, Launched, Limits, Ops, Shape, StepInput
from engine.ops.choosing import Choice
from engine.sampling import Sampler, has_bad
from engine.types import Draft, Span, Step, StepResult

log = logging.getLogger(__name__)

LOGITS_BYTES = 128 << 20


@dataclass(eq=False, slots=True)
class Flight:
    """A step that was launched: with its `logits` at once, or with the tokens that are `found` when it has
    landed. `rows` are for each span its first row of those. Times are in seconds.
    """

    step: Step
    samplers: Mapping[int, Sampler]
    rows: tuple[int, ...]
    began: float
    logits: NDArray[np.float32] | None = None
    computed: float = 0.0
    launched: Launched = None
    found: NDArray[np.int32] | None = None


class Runner:
    """Runs steps on one device. It owns no sequence: all it knows comes with the step.

    `on_wait` is called ahead of every wait for the device: for what can be done meanwhile.
    """

    on_wait: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, ops: Ops, limits: Limits, shape: Shape) -> None:
        self.ops = ops
        self.limits = limits
        self.shape = shape
        self._chooser = ops if isinstance(ops, Chooses) else None  # asking costs microseconds
        self._done = 0.0  # when the last step was collected

    def launch(
        self,
        step: Step,
        samplers: Mapping[int, Sampler],
        choices: Seq[Choice] | None = None,
    ) -> Flight:
        """Start a step; `samplers` are by request id.

        Where the backend chooses the tokens itself it comes back at once, and one more step may be launched
        before this one is collected, with its `choices`: its spans may have a token -1 - r for the one of
        row r of `Flight.rows`.
        """
        began = time.perf_counter()
        choices = self.choices(step, samplers) if choices is None else choices
        step_input, rows = self._input(step, choices or ())
        if choices is None:
            self.on_wait()
            logits = self.ops.run(step_input)
            return Flight(step, samplers, rows, began, logits, time.perf_counter())
        assert self._chooser is not None
        launched = self._chooser.launch(step_input)
        return Flight(step, samplers, rows, began, launched=launched)

    def land(self, flight: Flight) -> None:
        """Wait for a step, so that anything else may be run before it is collected."""
        self.on_wait()
        self._learn(flight)
        if flight.logits is None and flight.found is None:
            assert self._chooser is not None
            flight.found = self._chooser.collect(flight.launched).copy()
            flight.computed = time.perf_counter()

    @staticmethod
    def _learn(flight: Flight) -> None:
        """Wait for drafts of which a running step verifies what the backend found; the step begins then."""
        spans = flight.step.spans
        if not any(span.draft is not None and span.draft.late for span in spans):
            return
        found = []
        for span in spans:
            if span.draft is not None and span.draft.late is not None:
                draft = span.draft.late.told(span.draft)
                span = replace(span, draft=draft, tokens=(span.tokens[0], *draft.tokens))
            found.append(span)
        flight.step = Step(tuple(found))
        if flight.logits is None:
            flight.began = time.perf_counter()

    def collect(self, flight: Flight) -> StepResult:
        """Wait for a step, and choose tokens for each span that wants some.

        A span whose logits are not finite, or whose sampling fails, gets an error of its own; the other spans
        are not affected. See `explain` for what it is to say.
        """
        self.land(flight)
        logits: NDArray[np.float32] | FoundTokens
        if flight.found is not None:
            assert self._chooser is not None
            logits = FoundTokens(self._chooser, flight.found)
        else:
            assert flight.logits is not None
            logits = flight.logits
        tokens: list[tuple[int, ...]] = []
        paths: list[tuple[int, ...]] = []
        errors: dict[int, Exception] = {}
        for span, row in zip(flight.step.spans, flight.rows, strict=True):
            found: tuple[int, ...] = ()
            path: tuple[int, ...] = ()
            if span.want_logits:
                n = len(span.tokens) if span.draft else 1
                request_id = span.sequence.request_id
                sampler = flight.samplers[request_id]
                try:
                    found, path = self.choose(span, logits[row : row + n], sampler)
                except EngineError as error:
                    errors[request_id] = error
            tokens.append(found)
            paths.append(path)
        # A step that was launched ahead had to wait for the one before it.
        began, self._done = max(flight.began, self._done), time.perf_counter()
        seconds = self._done - began
        return StepResult(
            tuple(tokens), tuple(paths), errors, seconds, self._done - flight.computed, began
        )

    def run(self, step: Step, samplers: Mapping[int, Sampler]) -> StepResult:
        """Launch a step and collect it."""
        return self.collect(self.launch(step, samplers))

    def choices(self, step: Step, samplers: Mapping[int, Sampler]) -> list[Choice] | None:
        """How the backend is to choose each wanted row's token; None where it cannot for all of them."""
        if self._chooser is None:
            return None
        choices: list[Choice] = []
        row = 0
        for span in step.spans:
            if span.want_logits:
                sampler = samplers[span.sequence.request_id]
                found = self._choices_of(span, row, sampler) if sampler.is_told else None
                if found is None:
                    return None
                choices += found
            row += len(span.tokens)
        return choices if len(choices) <= MOST_CHOSEN else None

    @staticmethod
    def _choices_of(span: Span, row: int, sampler: Sampler) -> list[Choice] | None:
        """The choices of a span whose first row in the step is `row`."""
        known, draft = span.sequence.tokens, span.draft
        if draft is not None and (draft.probabilities or sampler.counts_tokens):
            return None
        if draft is not None:
            found = [
                sampler.choice(known, place, token)
                for place, token in zip(span.positions, span.tokens, strict=True)
            ]
        else:
            end, newest = span.start + len(span.tokens) - 1, span.tokens[-1]
            found = [
                sampler.choice(known, end, newest, True)
                if newest >= 0
                else sampler.choice(known, end, -1 - row)
            ]
        return [choice for choice in found if choice is not None] if all(found) else None

    def choose(
        self, span: Span, logits: NDArray[np.float32] | FoundTokens, sampler: Sampler
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """As `choose` of this module."""
        return choose(span, logits, sampler)

    def logits(self, ids: Seq[int]) -> Iterator[NDArray[np.float32]]:
        """The logits of every position of one text, in pieces (n, n_vocab); uses pages 0, 1, ...

        Only for a runner that serves nothing else: the pages are not taken from a pool.
        """
        chunk = max(1, min(self.limits.rows, LOGITS_BYTES // (4 * self.shape.n_vocab)))
        table = np.arange(self.limits.pages_per_sequence, dtype=np.int32)[None, :]
        for start in range(0, len(ids), chunk):
            piece = np.asarray(ids[start : start + chunk], dtype=np.int32)
            rows = np.arange(len(piece), dtype=np.int32)
            slot = np.zeros(1, dtype=np.int32)
            yield self.ops.run(
                StepInput(piece, start + rows, np.zeros_like(rows), table, rows, slot)
            )

    def _input(self, step: Step, choices: Seq[Choice] = ()) -> tuple[StepInput, tuple[int, ...]]:
        """What the backend gets, and for each span its first row of logits."""
        n = step.n_tokens
        tokens = np.empty(n, dtype=np.int32)
        positions = np.empty(n, dtype=np.int32)
        sequence = np.empty(n, dtype=np.int32)
        table = np.zeros((len(step.spans), self.limits.pages_per_sequence), dtype=np.int32)
        slots = np.empty(len(step.spans), dtype=np.int32)
        tried = [span.draft is not None for span in step.spans]
        branched = any(span.draft and not span.draft.is_chain for span in step.spans)
        parents = np.empty(n if branched else 0, dtype=np.int32)
        logit_rows: list[int] = []
        first_rows: list[int] = []
        late: list[tuple[int, int, Any]] = []
        row = 0
        for i, span in enumerate(step.spans):
            end = row + len(span.tokens)
            tokens[row:end] = span.tokens
            positions[row:end] = span.positions
            sequence[row:end] = i
            slots[i] = span.sequence.slot
            table[i, : len(span.sequence.pages)] = span.sequence.pages
            if branched:
                parents[row:end] = [p + row if p >= 0 else -1 for p in span.parents]
            if span.draft is not None and span.draft.late is not None:
                late.append((row + 1, len(span.draft.tokens), span.draft.late.launched))
            first_rows.append(len(logit_rows))
            if span.want_logits:
                logit_rows.extend(range(row if span.draft else end - 1, end))
            row = end
        step_input = StepInput(
            tokens,
            positions,
            sequence,
            table,
            np.array(logit_rows, dtype=np.int32),
            slots,
            parents,
            np.array(tried if any(tried) else [], dtype=np.int32),
            choices=choices,
            keeps=[(i, *keep) for i, span in enumerate(step.spans) for keep in span.keeps],
            late=late,
        )
        return step_input, tuple(first_rows)

    def explain(self, span: Span, error: Exception) -> Exception:
        """What an error of `run` is to say: of bad logits, the layer that they first came from.

        To find it the span runs once more, in its own pages and state and with no other one, whose state
        would move on twice. To be asked for when nothing is wanted of the step any more (`Ops.accept`,
        `Ops.hidden`), and before the pages serve others.
        """
        if not isinstance(error, BadLogits):
            return error
        try:
            alone = Step((replace(span, keeps=()),))
            layer = self.ops.first_bad_layer(self._input(alone)[0])
        except EngineError:
            log.exception("The layer that first gave NaN or infinity cannot be found")
            return error
        if layer is None:
            where = "in the logits, though every layer's output is finite"
        elif layer < 0:
            where = "in the token embedding"
        elif layer >= self.shape.n_layers:
            where = "in the output head"
        else:
            where = f"after layer {layer} of {self.shape.n_layers}"
        return BadLogits(f", first {where}")


class FoundTokens:
    """The rows of the last run: the tokens `found` for them, and logits only where they are asked for."""

    def __init__(self, ops: Chooses, found: NDArray[np.int32], first: int = 0) -> None:
        self._ops, self._found, self._first = ops, found, first
        self._rows: NDArray[np.float32] | None = None

    def token(self, row: int) -> int:
        """The token that was chosen, as `choosing.chosen` has it."""
        return int(self._found[self._first + row])

    def __getitem__(self, which: int | slice) -> Any:
        if isinstance(which, slice):
            return FoundTokens(self._ops, self._found, self._first + which.start)
        if self._rows is None:
            self._rows = self._ops.logits()
        return self._rows[self._first + which]


class BadLogits(NumericError):
    """Logits that a token was to be chosen from hold NaN or infinity."""

    def __init__(self, where: str = "") -> None:
        super().__init__(
            f"The model produced NaN or infinity{where}. The file may be damaged, or its numbers"
            " overflow in fast precision: check the file's hash, or load it with --precision exact."
        )


def choose(
    span: Span, logits: NDArray[np.float32] | FoundTokens, sampler: Sampler
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Tokens from `logits` (n, V) of a span, and the rows of its draft's accepted path, its first row's too.

    The target draws at each node as it would without the draft, and goes on in the child that has its token.
    So nothing that was drawn is ever taken back, and none is drawn that the answer has no room for. Raises
    `BadLogits`.
    """
    sequence, draft = span.sequence, span.draft or Draft()
    tokens: list[int] = []
    path = [0]
    before = sequence.tokens if span.draft is None else list(sequence.tokens)
    while True:
        row = path[-1]
        chosen = logits.token(row) if isinstance(logits, FoundTokens) else None
        if (chosen is None and has_bad(logits[row])) or chosen == -1:
            raise BadLogits
        # Row r of the span is node r - 1 of the draft.
        children = {draft.tokens[i]: i + 1 for i, p in enumerate(draft.parents) if p == row - 1}
        if draft.probabilities and children:
            (guess,) = children
            token = sampler.verify(logits[row], before, guess, draft.probabilities[row])
        else:
            taken = sampler.take(chosen) if chosen is not None and chosen >= 0 else None
            token = sampler.sample(logits[row], before) if taken is None else taken
        tokens.append(token)
        full = len(sequence.tokens) + len(tokens) >= sequence.n_most
        if full or token not in children or token in sequence.ends:
            return tuple(tokens), tuple(path)
        before.append(token)
        path.append(children[token])
