"""The engine's one place for numbers: what ran, how fast, and how much memory it holds; who counts them."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from engine.cache.metrics import CacheMetrics
from engine.types import Step, StepResult, Switch, Usage

WINDOW_S = 1.0


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """One owner of memory; `kind` is one of model, draft, kv, work, other, free, reserve."""

    kind: str
    title: str
    bytes: int


@dataclass(frozen=True, slots=True)
class SpeculationMetrics:
    """What drafts were worth: `accepted_lengths` are the tokens of each of the last 64 verified drafts, with
    the target's own; milliseconds and `speedup` over no drafts, as measured here, are of the same.

    `by_position`: how often each position of a draft was accepted when those before it were. `state` is on,
    paused (drafts cost more than they brought; they are tried again later) or failed, see `problem`.
    `switch` is the newest change between on and paused.
    """

    drafter: str
    state: str
    accepted_lengths: tuple[int, ...] = ()
    by_position: tuple[float, ...] = ()
    draft_ms: float = 0.0
    verify_ms: float = 0.0
    sample_ms: float = 0.0
    speedup: float | None = None
    drafted_total: int = 0
    accepted_total: int = 0
    pauses_total: int = 0
    switch: Switch | None = None
    problem: str = ""

    @property
    def message(self) -> str:
        """Why nobody drafts now, "" where somebody does."""
        paused = self.switch.text if self.switch is not None and self.state == "paused" else ""
        return self.problem or paused

    @property
    def acceptance_length(self) -> float | None:
        """Mean tokens of a verified draft, the target's own included; None before the first."""
        lengths = self.accepted_lengths
        return sum(lengths) / len(lengths) if lengths else None


@dataclass(frozen=True, slots=True)
class Metrics:
    """A moment's numbers; the GUI, the API and the bench read these and compute none of their own.

    Rates are means over the last second, 0 while nothing runs. `context_used` is of the sequence that
    ran last.
    """

    running: int = 0
    queued: int = 0
    prefill_rate: float = 0.0
    decode_rate: float = 0.0
    first_token_s: float | None = None
    context_used: int = 0
    context_max: int = 0
    reused_tokens: int = 0
    pages_used: int = 0
    pages_total: int = 0
    steps: int = 0
    step_ms: float = 0.0
    prompt_tokens_total: int = 0
    completion_tokens_total: int = 0
    speculation: SpeculationMetrics | None = None
    cache: CacheMetrics = CacheMetrics()
    memory: tuple[MemoryPart, ...] = ()


class Meter:
    """Collects steps on the serving thread; any thread may read a snapshot."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._steps: deque[tuple[float, float, int, int]] = deque()
        self._last: dict[str, Any] = {}
        self._totals = [0, 0, 0]  # steps, tokens of prompts, and of answers

    def step(self, step: Step, result: StepResult, now: float | None = None) -> None:
        """Count a step that ended now; what follows a prompt is decoded."""
        now = time.perf_counter() if now is None else now
        seconds = result.seconds
        decode = sum(
            len(tokens)
            for s, tokens in zip(step.spans, result.tokens, strict=True)
            if s.start >= s.sequence.n_prompt
        )
        prefill = sum(len(s.tokens) for s in step.spans if s.start < s.sequence.n_prompt)
        with self._lock:
            self._steps.append((now, seconds, prefill, decode))
            self._drop_old(now)
            for i, n in enumerate((1, prefill, decode)):
                self._totals[i] += n
            last = step.spans[-1]
            self._last["step_ms"] = seconds * 1e3
            self._last["context_used"] = last.start + (1 if last.draft else len(last.tokens))

    def set(
        self,
        **changes: int | float | tuple[MemoryPart, ...] | SpeculationMetrics | CacheMetrics | None,
    ) -> None:
        """Set gauges of `Metrics` by name."""
        with self._lock:
            self._last.update(changes)

    def first_token(self, usage: Usage) -> None:
        """An answer has begun."""
        self.set(first_token_s=usage.first_token_s, reused_tokens=usage.reused_tokens)

    def busy(self) -> tuple[int, int]:
        """How many sequences run and how many wait."""
        with self._lock:
            return self._last.get("running", 0), self._last.get("queued", 0)

    def reset(self) -> None:
        """Forget the former model's numbers."""
        with self._lock:
            self._steps.clear()
            self._last.clear()
            self._totals = [0, 0, 0]

    def snapshot(self, now: float | None = None) -> Metrics:
        """The numbers of this moment; a rate counts only the time that its kind of step took."""
        now = time.perf_counter() if now is None else now
        with self._lock:
            self._drop_old(now)
            prefill_s = sum(s for _, s, p, _ in self._steps if p)
            decode_s = sum(s for _, s, p, d in self._steps if d and not p)
            prefill = sum(p for _, _, p, _ in self._steps)
            decode = sum(d for _, _, p, d in self._steps if not p)
            steps, read, written = self._totals
            return Metrics(
                **self._last,
                steps=steps,
                prompt_tokens_total=read,
                completion_tokens_total=written,
                prefill_rate=prefill / prefill_s if prefill_s else 0.0,
                decode_rate=decode / decode_s if decode_s else 0.0,
            )

    def _drop_old(self, now: float) -> None:
        while self._steps and self._steps[0][0] < now - WINDOW_S:
            self._steps.popleft()
