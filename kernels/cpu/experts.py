"""Mixture of experts, as shares of one thread.

Rows are sorted by expert, so that each expert's weights are read once a step. A row's result is its shared
expert's, then its chosen experts' in the order of their numbers: never a matter of the rows beside it.
"""

from __future__ import annotations

import math

from kernels.cpu.emit import F32, I64, Target, new_kernel, vec
from kernels.cpu.instructions import own, pieces, rows, share
from kernels.cpu.layout import AHEAD, GATED_ROWS, Head, Stack
from kernels.cpu.layout import Experts as Of
from kernels.cpu.machine import (
    call,
    clear,
    compiled,
    copy,
    field,
    load32,
    load64,
    load_float,
    store32,
    store64,
    store_float,
)
from kernels.cpu.products import CODED_BLOCK

DOWN_PANELS = 32
"""Most panels of an expert's result that a thread holds at once."""

_ROW = vec(F32)


def weigh(name: str, add: bool, target: Target) -> str:
    """Kernel (out, x, weight address, n): out = weight * x, or out += weight * x; n a multiple of 16."""
    e, b, (out, x, weight, n) = new_kernel(name, 4, target)
    po, px = e.pointer(out), e.pointer(x)
    factor = e.splat(e.load(F32, e.pointer(weight)))
    with e.loop(b.lshr(n, I64(4))) as loop:
        at = b.shl(loop.index, I64(6))
        value = e.load(_ROW, px, at)
        new = e.fma(value, factor, e.load(_ROW, po, at)) if add else b.fmul(value, factor)
        e.store(new, po, at)
    return e.finish()


def route(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Choose experts for rows: the largest scores, of equal ones the lower number.

    Scores that are chosen are overwritten.
    """
    p = load64(a)
    n, used = field(p, Of.N), field(p, Of.USED)
    first, last = share(header, a, tid, field(header, Head.M))
    for m in range(first, last):
        scores = field(p, Of.SCORES) + m * field(p, Of.SCORES_STRIDE)
        chosen = field(p, Of.CHOSEN) + 4 * m * used
        weights = field(p, Of.WEIGHTS) + 4 * m * (used + 1)
        shared = math.exp(-float(load_float(scores + 4 * n)))
        store_float(weights + 4 * used, 1.0 / (1.0 + shared))
        top, total = 0.0, 0.0
        for slot in range(used):
            best, most = -1, -math.inf
            for e in range(n):
                score = float(load_float(scores + 4 * e))
                if score > most:
                    best, most = e, score
            if best < 0:  # nothing but NaN and -infinity is left
                best = _first_free(chosen, slot)
                most = float(load_float(scores + 4 * best))
            store32(chosen + 4 * slot, best)
            store_float(scores + 4 * best, math.nan)
            if slot == 0:
                top = most
            weight = math.exp(most - top)
            store_float(weights + 4 * slot, weight)
            total += weight
        for slot in range(used):
            weight = float(load_float(weights + 4 * slot))
            store_float(weights + 4 * slot, weight / total)


@compiled
def _first_free(chosen: int, n: int) -> int:
    """The lowest number that is not among the `n` chosen."""
    e, i = 0, 0
    while i < n:
        if load32(chosen + 4 * i) == e:
            e += 1
            i = 0
        else:
            i += 1
    return e


def group(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Sort the step's pairs of row and slot by expert; one thread does it."""
    if tid:
        return
    p = load64(a)
    n, n_pairs = field(p, Of.N), field(header, Head.M) * field(p, Of.USED)
    chosen, starts, pairs = field(p, Of.CHOSEN), field(p, Of.STARTS), field(p, Of.PAIRS)
    # Counts are taken one place further on, so that filling in moves them to the ends.
    clear(starts, 8 * (n + 2))
    for pair in range(n_pairs):
        place = starts + 8 * (load32(chosen + 4 * pair) + 2)
        store64(place, load64(place) + 1)
    for e in range(n):
        place = starts + 8 * (e + 1)
        store64(place, load64(place) + load64(place - 8))
    for pair in range(n_pairs):
        place = starts + 8 * (load32(chosen + 4 * pair) + 1)
        at = load64(place)
        store32(pairs + 4 * at, pair)
        store64(place, at + 1)
    active = field(p, Of.ACTIVE)
    count = 0
    for e in range(n):
        if load64(starts + 8 * (e + 1)) > load64(starts + 8 * e):
            count += 1
            store64(active + 8 * count, e)
    store64(active, count)


@compiled
def _gather(
    pairs: int, n: int, used: int, x: int, strides: tuple[int, int], n_bytes: int, to: int
) -> tuple[int, int]:
    """Rows of `n` pairs side by side, at x + row * strides[0] + slot * strides[1]: address and stride.

    A single row stays where it is.
    """
    for i in range(n):
        pair = load32(pairs + 4 * i)
        source = x + pair // used * strides[0] + pair % used * strides[1]
        if n == 1:
            return source, n_bytes
        copy(to + i * n_bytes, source, n_bytes)
    return to, n_bytes


def up(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """silu(gate) * up of this thread's experts and columns."""
    p = load64(a)
    blocks, columns = (field(p, Of.INNER) + 31) // 32, field(p, Of.COLUMNS)
    per_expert = (blocks + columns - 1) // columns
    active = field(p, Of.ACTIVE)
    turn = 0
    while True:
        begin, end = pieces(header, i, tid, load64(active) * per_expert, turn)
        if begin >= end:
            return
        turn += 1
        for item in range(begin, end):
            expert = load64(active + 8 * (1 + item // per_expert))
            block = item % per_expert * columns
            _up_columns(header, p, tid, scratch, expert, block, min(columns, blocks - block))


@compiled
def _up_columns(
    header: int, p: int, tid: int, scratch: int, expert: int, block: int, count: int
) -> None:
    """Columns 32 block .. 32 (block + count) of one expert, for all its rows."""
    inner, used, combine = field(p, Of.INNER), field(p, Of.USED), field(p, Of.SWIGLU)
    begin = load64(field(p, Of.STARTS) + 8 * expert)
    end = load64(field(p, Of.STARTS) + 8 * (expert + 1))
    mine = own(header, tid, field(p, Of.PRIVATE))
    width = min(32 * count, inner - 32 * block)
    panels = min(2 * count, (inner + 15) // 16 - 2 * block)
    stride = 2 * 128 * count
    for at in range(begin, end, GATED_ROWS):
        size = min(GATED_ROWS, end - at)
        pairs = field(p, Of.PAIRS) + 4 * at
        for part in range(2):
            s = p + 8 * (Of.UP if part else Of.GATE)
            x_stride, panel_stride = field(s, Stack.X_STRIDE), field(s, Stack.PANEL_STRIDE)
            x = field(s, Stack.X) + mine * x_stride
            to = scratch + GATED_ROWS * stride
            x, x_stride = _gather(pairs, size, used, x, (x_stride, 0), x_stride, to)
            w = field(s, Stack.W) + expert * field(s, Stack.EXPERT_BYTES)
            w += 2 * block * panel_stride
            rows(
                field(s, Stack.KERNELS), x, x_stride, size, w, panels, field(s, Stack.K),
                scratch + part * 128 * count, stride, panel_stride, w + AHEAD,
            )  # fmt: skip
        for r in range(size):
            pair = load32(pairs + 4 * r)
            m, slot = pair // used, pair % used
            here = scratch + r * stride
            out, coded = field(p, Of.ACTIVATION), field(p, Of.CODED)
            if out:
                out += m * field(p, Of.ACTIVATION_STRIDE) + slot * field(p, Of.ACTIVATION_SLOT)
                out += 128 * block
            if coded:
                coded += m * field(p, Of.CODED_STRIDE) + slot * field(p, Of.CODED_SLOT)
                coded += CODED_BLOCK * block
            call(combine, (here, here + 128 * count, out, coded, width))


def down(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """This thread's columns of the result: the shared expert's, then one expert after the other."""
    p = load64(a)
    n_panels, used = field(p, Of.OUTPUTS) // 16, field(p, Of.USED)
    active = field(p, Of.ACTIVE)
    turn = 0
    while True:
        begin, end = pieces(header, i, tid, n_panels, turn)
        if begin >= end:
            return
        turn += 1
        for m in range(field(header, Head.M)):
            out = field(p, Of.OUT) + m * field(p, Of.OUT_STRIDE) + 64 * begin
            shared = field(p, Of.SHARED) + m * field(p, Of.SHARED_STRIDE) + 64 * begin
            weight = field(p, Of.WEIGHTS) + 4 * (m * (used + 1) + used)
            call(field(p, Of.WEIGH), (out, shared, weight, 16 * (end - begin)))
        for n in range(load64(active)):
            _down_columns(header, p, scratch, load64(active + 8 * (1 + n)), begin, end)


@compiled
def _down_columns(header: int, p: int, scratch: int, expert: int, begin: int, end: int) -> None:
    """Add one expert's panels [begin, end) to its rows."""
    used = field(p, Of.USED)
    s = p + 8 * Of.DOWN
    coded = field(p, Of.CODED)
    slot_bytes = field(p, Of.CODED_SLOT) if coded else field(p, Of.ACTIVATION_SLOT)
    panel_stride = field(s, Stack.PANEL_STRIDE)
    w = field(s, Stack.W) + expert * field(s, Stack.EXPERT_BYTES)
    first = load64(field(p, Of.STARTS) + 8 * expert)
    last = load64(field(p, Of.STARTS) + 8 * (expert + 1))
    most = max(1, min(DOWN_PANELS, field(header, Head.L2) // panel_stride))
    gathered = scratch + GATED_ROWS * 64 * DOWN_PANELS
    for at in range(first, last, GATED_ROWS):
        size = min(GATED_ROWS, last - at)
        pairs = field(p, Of.PAIRS) + 4 * at
        x, x_stride = _gather(
            pairs, size, used, field(s, Stack.X), (field(s, Stack.X_STRIDE), slot_bytes), slot_bytes,
            gathered,
        )  # fmt: skip
        for panel in range(begin, end, most):
            count = min(most, end - panel)
            here = w + panel * panel_stride
            rows(
                field(s, Stack.KERNELS), x, x_stride, size, here, count, field(s, Stack.K), scratch,
                64 * count, panel_stride, here + AHEAD,
            )  # fmt: skip
            for r in range(size):
                pair = load32(pairs + 4 * r)
                m = pair // used
                out = field(p, Of.OUT) + m * field(p, Of.OUT_STRIDE) + 64 * panel
                weight = field(p, Of.WEIGHTS) + 4 * (m * (used + 1) + pair % used)
                call(field(p, Of.ADD), (out, scratch + r * 64 * count, weight, 16 * count))
