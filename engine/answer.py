"""One request on its way: from accepted tokens to text, until a stop rule or the caller ends it."""

from __future__ import annotations

import logging
import time
from dataclasses import replace

from engine.sampling import Sampler
from engine.stops import StopMatcher
from engine.tokenizer import Detokenizer
from engine.types import (
    Accepted,
    Event,
    Failed,
    Finished,
    FinishReason,
    OnEvent,
    PrefillProgress,
    Sequence,
    Started,
    TextDelta,
    Usage,
)


class Answer:
    """Turns the tokens of one sequence into events; the serving thread alone calls it."""

    def __init__(
        self,
        sequence: Sequence,
        sampler: Sampler,
        detokenizer: Detokenizer,
        eos_ids: frozenset[int],
        on_event: OnEvent,
        max_ctx: int,
        submitted: float,
    ) -> None:
        self.sequence = sequence
        self.sampler = sampler
        self.ended = False
        self._on_event = on_event
        self._eos_ids = frozenset() if sequence.sampling.ignore_eos else eos_ids
        self._detokenizer = detokenizer
        self._stops = StopMatcher(sequence.sampling.stop)
        self._limit = self._room = max_ctx - sequence.n_prompt
        if sequence.sampling.max_tokens is not None:
            self._limit = min(self._limit, sequence.sampling.max_tokens)
        self._submitted = submitted
        self._began: float | None = None
        self._first: float | None = None
        self._last: float | None = None
        self._usage = Usage(prompt_tokens=sequence.n_prompt)

    @property
    def usage(self) -> Usage:
        """Counts and times so far; waiting for admission is part of the time to the first token."""
        began = self._began or self._submitted
        first, last = self._first, self._last
        return replace(
            self._usage,
            first_token_s=first - self._submitted if first else None,
            prefill_s=(first or last or began) - began,
            decode_s=last - first if first and last else 0.0,
        )

    def accepted(self, prompt_end: str) -> None:
        """The sequence waits for admission; `prompt_end` is the last of its prompt's text."""
        self._emit(Accepted(self._id, self.sequence.n_prompt, prompt_end))

    def started(self) -> None:
        """The sequence is admitted; only the first admission is told."""
        if self._began is None:
            self._began = time.perf_counter()
            n = self.sequence.n_reused
            self._usage = replace(self._usage, reused_tokens=n)
            self._emit(Started(self._id, self.sequence.n_prompt, n))

    def progress(self) -> None:
        """More of the prompt is read."""
        self._last = time.perf_counter()
        done = min(self.sequence.n_computed, self.sequence.n_prompt)
        self._emit(PrefillProgress(self._id, done, self.sequence.n_prompt))

    def accept(self, token: int) -> None:
        """Take one sampled token; ends the answer when a stop rule holds."""
        now = time.perf_counter()
        self._first, self._last = self._first or now, now
        n = self._usage.completion_tokens + 1
        self._usage = replace(self._usage, completion_tokens=n)
        if token in self._eos_ids:
            self._finish(FinishReason.STOP, self._detokenizer.flush())
            return
        self.sequence.tokens.append(token)
        text, hit = self._stops.push(self._detokenizer.push(token))
        self._emit(TextDelta(self._id, text, (token,)))
        if hit is not None:
            self._end(Finished(self._id, FinishReason.STOP, self.usage, hit))
        elif n >= self._limit:
            self._finish(FinishReason.LENGTH, self._detokenizer.flush())

    def nothing_wanted(self) -> bool:
        """Ends an answer of at most no tokens at once."""
        if self._limit <= 0:
            full = self._room <= 0
            self._end(Finished(self._id, FinishReason.LENGTH, self.usage, context_full=full))
        return self.ended

    def cancel(self) -> None:
        """End the answer because its caller asked for it; text that was held back is delivered."""
        self._finish(FinishReason.CANCELLED, self._detokenizer.flush())

    def fail(self, error: Exception) -> None:
        """End the answer with an error."""
        self._end(Failed(self._id, error, self.usage))

    @property
    def _id(self) -> int:
        return self.sequence.request_id

    def _finish(self, reason: FinishReason, tail: str) -> None:
        text, hit = self._stops.push(tail)
        if hit is None:
            text += self._stops.flush()
        else:
            reason = FinishReason.STOP
        if text:
            self._emit(TextDelta(self._id, text, ()))
        full = reason is FinishReason.LENGTH and self._usage.completion_tokens >= self._room
        self._end(Finished(self._id, reason, self.usage, hit, full))

    def _end(self, event: Event) -> None:
        if not self.ended:
            self.ended = True
            self._emit(event)

    def _emit(self, event: Event) -> None:
        try:
            self._on_event(event)
        except Exception:
            # A listener's fault must not stop the other requests of the serving thread.
            logging.getLogger(__name__).exception("A listener of request %d failed", self._id)
            self.ended = True
