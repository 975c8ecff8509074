"""What one pass of a loaded model costs: the time of M rows at once, the bytes it must read, its kernels."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from engine.errors import BadRequest, ContextOverflow
from engine.gguf import HeaderSummary
from engine.ops.base import Chooses, Ops, StepInput
from engine.ops.choosing import Choice
from engine.ops.cuda_device import bytes_on_card

if TYPE_CHECKING:
    from engine.loading import LoadedModel
    from engine.ops.cuda_probe import KernelTime

ROWS = (1, 2, 4, 8, 16, 32)
VERIFIED = (1, 2, 4, 8, 16, 22, 32)
"""Sizes of passes that tell what it costs to verify guesses, the token before them included."""

_SPINE = 16  # rows from which on guesses branch
_WARM_UP = 3
_LEAST, _LONGEST_S = 5, 0.5


@dataclass(frozen=True, slots=True)
class Pass:
    """`rows` tokens behind `context` others in one step: the median of its seconds."""

    context: int
    rows: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Profile:
    """The kernels of one step of `rows` tokens behind `context` others."""

    context: int
    rows: int
    kernels: tuple[KernelTime, ...]


def pass_costs(
    model: LoadedModel,
    context: int,
    rows: Sequence[int] = ROWS,
    repeats: int = 30,
    on_pass: Callable[[int], None] | None = None,
) -> list[Pass]:
    """Time passes that find the likeliest token of all their rows, as a check of drafted tokens does.

    Where the model is loaded for speculation their rows are tried, and those of the larger ones a tree.
    Nothing may run meanwhile; call it through `Engine.use`. Raises `ContextOverflow`.
    """
    found = []
    start = max(1, context)  # there are no guesses before the first token
    with _place(model, start + max(rows)) as place:
        _fill(model, place, start)
        for m in rows:
            if on_pass:
                on_pass(m)
            step = _step(model, place, start, m)
            if 1 < m <= model.runner.limits.tried:
                step = tried(step)
            if isinstance(model.ops, Chooses):
                step = replace(step, choices=[Choice(model.info.vocab_size)] * m)
            for _ in range(_WARM_UP):
                _run(model.ops, step)
            times: list[float] = []
            while len(times) < _LEAST or (len(times) < repeats and sum(times) < _LONGEST_S):
                began = time.perf_counter()
                _run(model.ops, step)
                times.append(time.perf_counter() - began)
            found.append(Pass(context, m, statistics.median(times)))
    return found


def profiles(model: LoadedModel, context: int, rows: Sequence[int]) -> list[Profile]:
    """The kernels of steps of a model on a graphics card. Raises `BadRequest`, `ContextOverflow`."""
    if model.plan.device == "cpu":
        raise BadRequest("--profile times the kernels of a graphics card; the model is on the CPU.")
    from engine.ops.cuda_probe import profile

    ops: Any = model.ops
    found = []
    with _place(model, context + max(rows)) as place:
        _fill(model, place, context)
        for m in rows:
            step = _step(model, place, context, m, 1 if m > max(ROWS) else m)
            found.append(Profile(context, m, tuple(profile(ops, step))))
    return found


def read_bandwidth(model: LoadedModel) -> float | None:
    """Bytes a second that plain reads get on the model's card; None on the processor."""
    if model.plan.device == "cpu":
        return None
    from engine.ops.cuda_probe import read_bandwidth as measured

    ops: Any = model.ops
    return measured(ops.card)


def weight_bytes(header: HeaderSummary, on_card: bool) -> int:
    """Bytes of weights that one token must read: of experts those that are used, of an embedding that is not
    the output too only a row."""
    arch = header.architecture
    used, all_of = (
        header.meta.get(f"{arch}.{key}") for key in ("expert_used_count", "expert_count")
    )
    layers = header.meta.get(f"{arch}.block_count", 0)
    drafting = header.meta.get(f"{arch}.nextn_predict_layers", 0)
    total = 0.0
    for name, info in header.infos.items():
        if name == "token_embd.weight" and "output.weight" in header.infos:
            continue
        if drafting and name.startswith(tuple(f"blk.{layers - 1 - i}." for i in range(drafting))):
            continue
        size = float(bytes_on_card(info.shape, info.type.id) if on_card else info.n_bytes)
        if len(info.shape) == 3 and all_of and used:
            size *= used / all_of
        total += size
    return int(total)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a text of our own lies: its pages, and the slot of its state."""

    pages: list[int]
    slot: int


@contextmanager
def _place(model: LoadedModel, n_tokens: int) -> Iterator[_Place]:
    """Pages and a slot for a while, so that nothing that others remember is written over."""
    pool, states = model.scheduler.pool, model.scheduler.cache.states
    n = math.ceil(n_tokens / pool.page_tokens)
    pages = pool.alloc(n) if n_tokens <= model.plan.max_ctx else None
    if pages is None:
        raise ContextOverflow(
            f"Passes behind so many tokens need a context of {n_tokens:,}; it is {model.plan.max_ctx:,}."
        )
    slot = states.take() if states else 0
    try:
        if slot is None:
            raise BadRequest("All recurrent states are in use. Wait until the answers are written.")
        yield _Place(pages, slot)
    finally:
        pool.release(pages)
        if states is not None and slot is not None:
            states.give(slot)


def _fill(model: LoadedModel, place: _Place, context: int) -> None:
    """Read a text of `context` tokens."""
    for start in range(0, context, model.plan.prefill_chunk):
        model.ops.run(_step(model, place, start, min(model.plan.prefill_chunk, context - start), 0))


def _step(
    model: LoadedModel, place: _Place, start: int, rows: int, wanted: int | None = None
) -> StepInput:
    tokens = np.random.default_rng(start + rows).integers(0, model.info.vocab_size, rows)
    index = np.arange(rows, dtype=np.int32)
    table = np.zeros((1, -(-model.plan.max_ctx // model.plan.page_tokens)), np.int32)
    table[0, : len(place.pages)] = place.pages
    return StepInput(
        tokens.astype(np.int32), start + index, np.zeros_like(index), table,
        index[rows - (rows if wanted is None else wanted) :], np.full(1, place.slot, np.int32),
    )  # fmt: skip


def tried(step: StepInput) -> StepInput:
    """The rows of a step as guesses: one path, and what is beyond `_SPINE` branches from its beginning."""
    rows = np.arange(len(step.tokens), dtype=np.int32)
    parents = np.where(rows < _SPINE, rows, rows - _SPINE + 1) - 1
    positions = step.positions[0] + np.where(rows < _SPINE, rows, parents + 1)
    return replace(
        step,
        positions=positions.astype(np.int32),
        parents=parents.astype(np.int32) if len(rows) > _SPINE else step.parents,
        tried=np.ones(1, np.int32),
    )


def _run(ops: Ops, step: StepInput) -> None:
    """A step whose tokens are wanted and, where the device finds them, no logits."""
    if isinstance(ops, Chooses):
        ops.collect(ops.launch(step))
    else:
        ops.run(step)
