"""One request on its way: from accepted tokens to text, until a stop rule or the caller ends it."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Sequence as Seq

from engine.loops import LoopWatch
from engine.pieces import Part
from engine.sampling import Sampler
from engine.types import (
    Accepted,
    Event,
    Failed,
    Finished,
    FinishReason,
    OnEvent,
    PrefillProgress,
    Sequence,
    Span,
    Started,
    Switch,
    Switched,
    TextDelta,
    Usage,
    Verified,
)
from engine.writing import Shown, Writing


class Mail:
    """Events on their way to listeners.

    They are handed out while the device computes: a listener wakes threads that take the interpreter, and the
    device would wait meanwhile for its next step.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Answer, Event]] = deque()

    def post(self, answer: Answer, event: Event) -> None:
        """Keep an event until the next delivery."""
        self._waiting.append((answer, event))

    def deliver(self) -> None:
        """Hand out all events, in their order."""
        while self._waiting:
            answer, event = self._waiting.popleft()
            answer.deliver(event)


class Answer:
    """Turns the tokens of one sequence into events; the serving thread alone calls it."""

    def __init__(
        self,
        sequence: Sequence,
        sampler: Sampler,
        writing: Writing,
        eos_ids: frozenset[int],
        on_event: OnEvent,
        max_ctx: int,
        submitted: float,
        mail: Mail,
    ) -> None:
        self.sequence = sequence
        self.sampler = sampler
        self.ended = False
        self._on_event, self._mail = on_event, mail
        self._eos_ids = frozenset() if sequence.sampling.ignore_eos else eos_ids
        self._writing = writing
        # Who wants the text to go on behind its end wants it to repeat itself too.
        self._loops = None if sequence.sampling.ignore_eos else LoopWatch()
        self._limit = self._room = max_ctx - sequence.n_prompt
        if sequence.sampling.max_tokens is not None:
            self._limit = min(self._limit, sequence.sampling.max_tokens)
        sequence.ends, sequence.n_most = self._eos_ids, sequence.n_prompt + self._limit
        self._submitted = submitted
        self._began: float | None = None
        self._first: float | None = None
        self._last: float | None = None
        self.n_written = self._drafted = self._accepted = 0
        self._reused, self._reused_answer = 0, False
        self._switches: tuple[Switch, ...] = ()

    @property
    def usage(self) -> Usage:
        """Counts and times so far; waiting for admission is part of the time to the first token."""
        began = self._began or self._submitted
        first, last = self._first, self._last
        return Usage(
            prompt_tokens=self.sequence.n_prompt,
            reused_tokens=self._reused,
            reused_answer=self._reused_answer,
            completion_tokens=self.n_written,
            reasoning_tokens=self._writing.reasoning_tokens,
            drafted_tokens=self._drafted,
            accepted_tokens=self._accepted,
            first_token_s=first - self._submitted if first else None,
            prefill_s=(first or last or began) - began,
            decode_s=last - first if first and last else 0.0,
            switches=self._switches,
        )

    def accepted(self, prompt_end: str) -> None:
        """The sequence waits for admission; `prompt_end` is the last of its prompt's text."""
        self._emit(Accepted(self._id, self.sequence.n_prompt, prompt_end))

    def started(self) -> None:
        """The sequence is admitted; only the first admission is told."""
        if self._began is None:
            self._began = time.perf_counter()
            self._reused, self._reused_answer = self.sequence.n_given, self.sequence.given_answer
            self._emit(Started(self._id, self.sequence.n_prompt, self._reused))

    def progress(self) -> None:
        """More of the prompt is read."""
        self._last = time.perf_counter()
        done = min(self.sequence.n_computed, self.sequence.n_prompt)
        self._emit(PrefillProgress(self._id, done, self.sequence.n_prompt))

    def verified(self, drafted: int, accepted: int) -> None:
        """A draft was judged; its accepted tokens and one more come next, as far as the answer has room."""
        accepted = min(accepted, self._limit - self.n_written - 1)
        self._drafted += drafted
        self._accepted += accepted
        self._emit(Verified(self._id, drafted, accepted))

    def switched(self, switch: Switch) -> None:
        """Speculation paused or went on."""
        self._switches += (switch,)
        self._emit(Switched(self._id, switch))

    def receive(self, span: Span, tokens: Seq[int]) -> None:
        """What a step did for the sequence."""
        if span.start < self.sequence.n_prompt:
            self.progress()
        if span.draft is not None:
            self.verified(len(span.draft.tokens), len(tokens) - 1)
        for token in tokens:
            if self.ended:
                break
            self.accept(token)

    def accept(self, token: int) -> None:
        """Take one sampled token; ends the answer when a stop rule holds."""
        now = time.perf_counter()
        self._first, self._last = self._first or now, now
        self.n_written += 1
        logprob = self.sampler.take_logprob()
        if token in self._eos_ids:
            self.sequence.ended_by = token
            self._finish(FinishReason.STOP)
            return
        self.sequence.tokens.append(token)
        shown = self._writing.push(token, logprob)
        self._show(shown, (token,))
        if shown.stop is not None or self._writing.done:
            self._finish(FinishReason.STOP)
        elif self._in_loop(token):
            self._finish(FinishReason.LENGTH, loop=True)
        elif self.n_written >= self._limit:
            self._finish(FinishReason.LENGTH)

    def _in_loop(self, token: int) -> bool:
        loops = self._loops
        if loops is None:
            return False
        if self.sampler.thinking_cut and not loops.strict and self._writing.part is Part.CONTENT:
            loops.be_strict()
        return loops.push(token)

    def nothing_wanted(self) -> bool:
        """Ends an answer of at most no tokens at once."""
        if self._limit <= 0:
            self._finish(FinishReason.LENGTH)
        return self.ended

    def cancel(self) -> None:
        """End the answer because its caller asked for it; text that was held back is delivered."""
        self._finish(FinishReason.CANCELLED)

    def fail(self, error: Exception) -> None:
        """End the answer with an error."""
        self._end(Failed(self._id, error, self.usage))

    @property
    def _id(self) -> int:
        return self.sequence.request_id

    def _finish(self, reason: FinishReason, loop: bool = False) -> None:
        thinks = self._writing.part is Part.REASONING
        shown = self._writing.flush()
        if shown.stop is not None:
            reason, loop = FinishReason.STOP, False
        if shown.text or shown.pieces or shown.logprobs:
            self._show(shown, ())
        full = reason is FinishReason.LENGTH and self.n_written >= self._room
        sampler = self.sampler
        ended_itself = reason is FinishReason.STOP and shown.stop is None
        form_cut = not sampler.whole and (thinks or not ended_itself)
        self._end(
            Finished(
                self._id, reason, self.usage, shown.stop, full, loop, sampler.thinking_cut, form_cut
            )
        )

    def _show(self, shown: Shown, tokens: tuple[int, ...]) -> None:
        self._emit(TextDelta(self._id, shown.text, tokens, shown.pieces, shown.logprobs))

    def _end(self, event: Event) -> None:
        if not self.ended:
            self.ended = True
            self._emit(event)

    def _emit(self, event: Event) -> None:
        self._mail.post(self, event)

    def deliver(self, event: Event) -> None:
        """Hand an event to its listener."""
        try:
            self._on_event(event)
        except Exception:
            # A listener's fault must not stop the other requests of the serving thread.
            logging.getLogger(__name__).exception("A listener of request %d failed", self._id)
            self.ended = True
