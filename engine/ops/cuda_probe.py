"""What a card can do at most, and where the time of a step goes."""

from __future__ import annotations

import ctypes
import itertools
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.ops.base import StepInput
from engine.ops.cuda import CudaOps
from engine.ops.cuda_buffers import MOST_ROWS
from engine.ops.cuda_device import Card, told
from kernels import variants

_READ = 4 << 30
_LEAST_READ = 64 << 20
_ROUNDS = 4096
_REPEATS = 7
_REPLAYS = 20
_PAUSE_NS = 20_000_000  # longer than it takes to put a step's launches on the stream
_TILES = 8  # independent products of a warp; `kernels/probe.cu`


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Bytes a second of plain reads, and operations a second of tensor core products from registers."""

    read: float
    int8: float
    f16: float


@dataclass(frozen=True, slots=True)
class KernelTime:
    """Seconds of all launches of a kernel in one step, as `profile` counts them, and how many they are."""

    name: str
    seconds: float
    launches: int


def ceilings(card: Card) -> Ceilings:
    """Measure them; takes up to 4 GiB of free memory for a moment."""
    return Ceilings(
        read_bandwidth(card), _product_rate(card, "int8", 32), _product_rate(card, "f16", 16)
    )


def read_bandwidth(card: Card) -> float:
    """Bytes a second that a kernel gets which only reads, from memory far larger than the cache."""
    card.use()
    size = max(_LEAST_READ, min(_READ, card.free_bytes() // 2)) // 4096 * 4096
    with told():
        memory = card.runtime.malloc(size)
    try:
        kernel = card.kernel(variants.probe(), "read")
        args = ctypes.c_void_p(memory), ctypes.c_size_t(size // 16), ctypes.c_void_p(memory)
        with told():
            card.runtime.memsetAsync(memory, 1, size, card.stream.ptr)
            return size / _seconds(
                card, lambda: card.launch(kernel, (8 * card.processors, 1, 1), 512, args)
            )
    finally:
        card.runtime.free(memory)


def _product_rate(card: Card, form: str, depth: int) -> float:
    """Operations a second of products of 16 x `depth` by `depth` x 8."""
    card.use()
    kernel = card.kernel(variants.probe(), f"product_{form}")
    sink = card.put_bytes(256)
    args = ctypes.c_int(_ROUNDS), ctypes.c_void_p(sink)
    blocks, warps = 4 * card.processors, 4
    operations = 2 * 16 * 8 * depth * _TILES * _ROUNDS * warps * blocks
    with told():
        return operations / _seconds(
            card, lambda: card.launch(kernel, (blocks, 1, 1), 32 * warps, args)
        )


def _seconds(card: Card, launch: Callable[[], None]) -> float:
    """The median time of a launch, after one that does not count."""
    launch()
    events = [card.event()]
    for _ in range(_REPEATS):
        launch()
        events.append(card.event())
    card.stream.synchronize()
    return statistics.median(card.seconds(a, b) for a, b in itertools.pairwise(events))


def profile(ops: CudaOps, step: StepInput, repeats: int = 5) -> list[KernelTime]:
    """The kernels of a step by their time, medians of `repeats`.

    In steps that are replayed as a graph it is what the graph takes longer than one without the kernel: what
    lies behind other kernels does not count, and the sum is less than the step. In longer steps it is the
    time of each kernel alone on the card.
    """
    found = (
        _added(ops, step, repeats) if len(step.tokens) <= MOST_ROWS else _alone(ops, step, repeats)
    )
    return sorted(found, key=lambda t: -t.seconds)


def _added(ops: CudaOps, step: StepInput, repeats: int) -> list[KernelTime]:
    card, names = ops.card, Counter[str]()
    with told():
        ops.run(step)
        size = ops.send(step)
        try:
            card.wanted = lambda name: bool(names.update([name])) or True
            whole = ops.graph(ops.short_pass(*size))
            found = []
            for name, launches in names.items():
                card.wanted = name.__ne__
                without = ops.graph(ops.short_pass(*size))
                pairs = [(_replayed(card, whole), _replayed(card, without)) for _ in range(repeats)]
                seconds = statistics.median(a - b for a, b in pairs)
                found.append(KernelTime(name, max(0.0, seconds), launches))
        finally:
            card.wanted = None
        ops.run(step)  # nothing that was left out may stay in the pages
    return found


def _replayed(card: Card, graph: Any) -> float:
    """Seconds of one replay among several."""
    graph.launch(stream=card.stream)
    first = card.event()
    for _ in range(_REPLAYS):
        graph.launch(stream=card.stream)
    last = card.event()
    card.stream.synchronize()
    return card.seconds(first, last) / _REPLAYS


def _alone(ops: CudaOps, step: StepInput, repeats: int) -> list[KernelTime]:
    """The stream is held up while the launches are put on it, so that the gaps between them do not count."""
    card = ops.card
    card.use()
    ops.run(step)  # which times the ways of products that it is the first to need
    pause = card.kernel(variants.probe(), "pause")
    runs: list[dict[str, list[float]]] = []
    with told():
        for _ in range(repeats + 1):
            card.launch(pause, (1, 1, 1), 1, (ctypes.c_uint(_PAUSE_NS),))
            before = card.event()
            card.timeline = []
            try:
                ops.run_eager(step)
                timeline = card.timeline
            finally:
                card.timeline = None
            card.stream.synchronize()
            events = [before, *(event for _, event in timeline)]
            spans = [card.seconds(a, b) for a, b in itertools.pairwise(events)]
            found: dict[str, list[float]] = {}
            for (name, _), seconds in zip(timeline, spans, strict=True):
                found.setdefault(name, []).append(seconds)
            runs.append(found)
    return [
        KernelTime(name, statistics.median(sum(run[name]) for run in runs[1:]), len(spans))
        for name, spans in runs[0].items()
    ]
