"""What drafts bring on this PC: the same texts written with them and without."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.config import SamplingParams
from engine.engine import Engine
from engine.errors import BadRequest, LoadCancelled
from engine.follow import follow
from engine.metrics import MemoryPart
from engine.types import Finished, Request, TextDelta, Usage, Verified

PROMPTS = {
    "code": "Write a Python function that returns the factorial of a number, with a test.",
    "mathematics": "A train covers 180 km in 2 hours. How far does it get in 5 hours? Show each step.",
    "chat": "Why is the sky blue?",
    "lists": "List five healthy breakfast ideas, each with its ingredients.",
}
"""A prompt for each kind of text that is measured."""

OnProgress = Callable[[int, int, str], None]
"""Gets texts done, texts in all, and the kind of the one that is being written."""

_WARM_UP = 8


@dataclass(frozen=True, slots=True)
class Pair:
    """One kind of text, written without drafts (`off`) and with (`on`), in tokens a second; None where there
    were too few tokens to tell.

    `accepted` are tokens of a verified draft, the target's own included, None where none was verified;
    `equal` tells that both texts are the same, token for token.
    """

    kind: str
    off: float | None
    on: float | None
    accepted: float | None
    equal: bool

    @property
    def speedup(self) -> float | None:
        """How many times as fast as without drafts."""
        return self.on / self.off if self.on and self.off else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """What was measured: each kind of text, and `total` over all of them.

    `drafter` is "" where the model was loaded without one; `paused` says that drafts were left out in the end
    because they cost more than they brought. `memory` is what the model held, by owner.
    """

    drafter: str
    pairs: tuple[Pair, ...]
    total: Pair
    paused: bool
    memory: tuple[MemoryPart, ...]

    def facts(self) -> dict[str, Any]:
        """For JSON; rates in tokens a second."""
        return {
            "drafter": self.drafter,
            "texts": [_facts(pair) for pair in self.pairs],
            **_facts(self.total),
            "paused": self.paused,
            "memory": {part.kind: part.bytes for part in self.memory},
        }

    def text(self) -> str:
        """For people."""
        head = f"{'text':<14}{'off tok/s':>10}{'on tok/s':>10}{'accepted':>10}{'speed-up':>10}"
        rows = [
            f"{pair.kind:<14}{_number(pair.off, 1)}{_number(pair.on, 1)}{_number(pair.accepted, 2)}"
            f"{_number(pair.speedup, 2)}" + ("" if pair.equal else "  another text")
            for pair in (*self.pairs, self.total)
        ]
        notes = ["Drafts are paused now: they cost more than they bring."] if self.paused else []
        return "\n".join([head, *rows, *notes])


@dataclass(frozen=True, slots=True)
class _Written:
    """One text: its tokens, the tokens of each verified draft, and how long it took."""

    tokens: tuple[int, ...]
    lengths: tuple[int, ...]
    usage: Usage


def compare(
    engine: Engine,
    tokens: int = 64,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
) -> Comparison:
    """Write `tokens` tokens behind each of `PROMPTS` with drafts and without, greedily and in turn.

    The engine must be served by another thread. Raises `BadRequest` where no model is loaded or it is at
    work, `LoadCancelled` when it was stopped.
    """
    status = engine.status()
    if status.model is None:
        raise BadRequest("No model is loaded. Load one first.")
    if status.running or status.queued:
        raise BadRequest("The model is writing for somebody. Measure when it is idle.")
    say = on_progress or (lambda done, total, kind: None)
    cancel = cancel or threading.Event()
    first = next(iter(PROMPTS.values()))
    for drafts in (False, True):
        _write(engine, first, _WARM_UP, drafts, cancel)
    found: dict[str, dict[bool, _Written]] = {}
    for n, (kind, prompt) in enumerate(PROMPTS.items()):
        found[kind] = {}
        # In turn, so that a PC that gets slower while it works favours neither.
        for i, drafts in enumerate((n % 2 == 1, n % 2 == 0)):
            say(2 * n + i, 2 * len(PROMPTS), kind)
            found[kind][drafts] = _write(engine, prompt, tokens, drafts, cancel)
    say(2 * len(PROMPTS), 2 * len(PROMPTS), "")
    metrics = engine.metrics()
    speculation = metrics.speculation
    return Comparison(
        drafter=speculation.drafter if speculation else "",
        pairs=tuple(_pair(kind, [both]) for kind, both in found.items()),
        total=_pair("all", list(found.values())),
        paused=speculation is not None and speculation.state == "paused",
        memory=metrics.memory,
    )


def _write(
    engine: Engine, prompt: str, tokens: int, drafts: bool, cancel: threading.Event
) -> _Written:
    sampling = SamplingParams(temperature=0.0, max_tokens=tokens)
    messages = [{"role": "user", "content": prompt}]
    ids: list[int] = []
    lengths: list[int] = []
    usage = Usage()
    for event in follow(engine, Request(messages=messages, sampling=sampling, drafts=drafts)):
        if cancel.is_set():
            raise LoadCancelled("The comparison was stopped.")
        if isinstance(event, TextDelta):
            ids += event.tokens
        elif isinstance(event, Verified):
            lengths.append(event.accepted + 1)
        elif isinstance(event, Finished):
            usage = event.usage
    return _Written(tuple(ids), tuple(lengths), usage)


def _pair(kind: str, written: Sequence[dict[bool, _Written]]) -> Pair:
    lengths = [n for both in written for n in both[True].lengths]
    return Pair(
        kind,
        off=_rate([both[False].usage for both in written]),
        on=_rate([both[True].usage for both in written]),
        accepted=sum(lengths) / len(lengths) if lengths else None,
        equal=all(both[True].tokens == both[False].tokens for both in written),
    )


def _rate(usages: Sequence[Usage]) -> float | None:
    """Tokens a second of several texts together; the first token of each belongs to its prompt's time."""
    tokens = sum(max(usage.completion_tokens - 1, 0) for usage in usages)
    seconds = sum(usage.decode_s for usage in usages)
    return tokens / seconds if tokens and seconds > 0 else None


def _facts(pair: Pair) -> dict[str, Any]:
    return {
        "kind": pair.kind,
        "off_tok_s": pair.off,
        "on_tok_s": pair.on,
        "acceptance_length": pair.accepted,
        "speedup": pair.speedup,
        "equal": pair.equal,
    }


def _number(value: float | None, digits: int) -> str:
    return f"{'-' if value is None else format(value, f',.{digits}f'):>10}"
