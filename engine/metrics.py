"""The engine's one place for numbers: what ran, how fast, and how much memory it holds."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any

from engine.cache.metrics import CacheMetrics
from engine.types import MemoryPart, Metrics, SpeculationMetrics, Step, StepResult, Usage

WINDOW_S = 1.0


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
