"""How fast a model runs on this PC: reading a prompt, writing, the wait for the first token, memory."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from engine.config import SamplingParams
from engine.engine import Engine
from engine.errors import BadRequest, ContextOverflow
from engine.follow import follow
from engine.types import Finished, Request, Usage

_WARM_UP = 8


@dataclass(frozen=True, slots=True)
class Series:
    """One figure measured several times."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle value; 0 for none."""
        return statistics.median(self.values) if self.values else 0.0

    def facts(self) -> dict[str, object]:
        """For JSON."""
        return {"median": self.median, "values": list(self.values)}


@dataclass(frozen=True, slots=True)
class Report:
    """Rates in tokens a second, `first_token` in seconds, `peak_memory` bytes of the whole process."""

    n_prompt: int
    n_decode: int
    prefill: Series
    decode: Series
    first_token: Series
    peak_memory: int


def measure(
    engine: Engine,
    n_prompt: int,
    n_decode: int,
    repetitions: int,
    on_round: Callable[[int], None] | None = None,
) -> Report:
    """Time a prompt of `n_prompt` tokens and, from a prompt of one, `n_decode` tokens, in turn.

    The engine must be served by another thread and idle. A short round that does not count goes first,
    and every prompt differs from its first token on, so nothing is reused. Raises `ContextOverflow` for
    numbers that the context does not hold.
    """
    status = engine.status()
    if status.model is None:
        raise BadRequest("No model is loaded. Load one first.")
    if max(n_prompt, n_decode + 1) >= status.model.max_ctx:
        raise ContextOverflow(
            f"A bench of {n_prompt} prompt and {n_decode} written tokens does not fit the context of "
            f"{status.model.max_ctx:,} tokens."
        )
    ids = ordinary_ids(engine, status.model.vocab_size)
    prompts = Prompts(ids)
    if n_prompt:
        run(engine, prompts.next(min(n_prompt, _WARM_UP)), 1)
    run(engine, prompts.next(1), _WARM_UP)
    prefill, decode, first = [], [], []
    for number in range(1, repetitions + 1):
        if n_prompt:
            usage = run(engine, prompts.next(n_prompt), 1)
            prefill.append(usage.prefill_rate or 0.0)
            first.append(usage.first_token_s or 0.0)
        if n_decode:
            decode.append(run(engine, prompts.next(1), n_decode + 1).decode_rate or 0.0)
        if on_round:
            on_round(number)
    return Report(
        n_prompt,
        n_decode,
        Series(tuple(prefill)),
        Series(tuple(decode)),
        Series(tuple(first)),
        peak_memory(),
    )


def run(engine: Engine, ids: list[int], n_tokens: int) -> Usage:
    """Generate exactly `n_tokens` greedily after `ids`; raises what the request failed with."""
    sampling = SamplingParams(temperature=0.0, max_tokens=n_tokens, ignore_eos=True)
    *_, last = follow(engine, Request(ids=ids, sampling=sampling))
    assert isinstance(last, Finished)
    return last.usage


def peak_memory() -> int:
    """Most bytes of memory that this process held so far, mapped file pages included."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def ordinary_ids(engine: Engine, vocab_size: int) -> list[int]:
    """Some hundred ids that are neither control tokens nor the end of a turn."""
    tokenizer = engine.tokenizer
    assert tokenizer is not None
    step = max(1, vocab_size // 1009)
    known = range(0, min(vocab_size, tokenizer.vocab_size), step)
    ids = [i for i in known if not tokenizer.is_control(i) and i not in tokenizer.eos_ids]
    return ids or [0]


class Prompts:
    """Prompts that share no beginning, the same ones in every run."""

    def __init__(self, ids: list[int]) -> None:
        self._ids = ids
        self._made = 0

    def next(self, n: int) -> list[int]:
        """A prompt of `n` tokens."""
        self._made += 1
        return [self._ids[(self._made * 31 + i * 7) % len(self._ids)] for i in range(n)]
