"""Engines that have loaded a tiny model, and what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.config import EngineConfig, SamplingParams
from engine.engine import Engine
from engine.scheduler import Scheduler
from engine.types import Finished, Request
from tests.engine.listener import Listener


def started(path: Path, config: EngineConfig) -> Engine:
    """An engine with a model, served by a thread of its own; the test closes it."""
    engine = Engine()
    engine.start()
    engine.load(path, config)
    return engine


@contextmanager
def running(path: Path, config: EngineConfig) -> Iterator[Engine]:
    """The engine of `started`, which must end well."""
    engine = started(path, config)
    try:
        yield engine
    finally:
        ended = engine.close()
    assert ended


def ids(n: int, seed: int = 0) -> list[int]:
    """A prompt of random tokens."""
    return np.random.default_rng(seed).integers(3, 500, n).tolist()


def greedy(n: int = 40, **more: Any) -> SamplingParams:
    """The likeliest tokens, `n` of them."""
    return SamplingParams(**{"temperature": 0, "max_tokens": n, "ignore_eos": True} | more)


GREEDY = greedy()


def submit(
    engine: Engine, prompt: list[int], sampling: SamplingParams = GREEDY, **more: Any
) -> Listener:
    """Ask for a text; the listener hears how it comes."""
    listener = Listener()
    engine.submit(Request(ids=prompt, sampling=sampling, **more), listener)
    return listener


def generate(
    engine: Engine, prompt: list[int], sampling: SamplingParams = GREEDY, **more: Any
) -> Listener:
    """Ask for a text and wait for its end."""
    listener = submit(engine, prompt, sampling, **more)
    assert isinstance(listener.end(), Finished), listener.events[-1]
    return listener


def preemptions(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Fills with the sequences that lose their pages to others from now on."""
    found: list[object] = []
    preempt = Scheduler._preempt

    def noted(self: Scheduler, sequence) -> None:  # type: ignore[no-untyped-def]
        found.append(sequence)
        preempt(self, sequence)

    monkeypatch.setattr(Scheduler, "_preempt", noted)
    return found
