"""Kernels on one row: norms, SwiGLU, coding to int8, the softmax and merging of attention.

Rows are f32 and padded with zeros to a multiple of 32 values, so that whole vectors can be read. A result
address of 0 means that this form of the result is not wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from kernels.cpu.emit import F16, F32, I8, I32, I64, Emitter, Target, Value, new_kernel, vec
from kernels.cpu.panels import PANEL
from kernels.cpu.products import CODED_BLOCK

PAGE = 64
"""Tokens of a page of keys and values."""

CHUNK = 8
"""Pages whose softmax is computed in one go; chunks are then merged in order."""

STATE = 4
"""Floats kept before each attention output: maximum, sum of exponentials, last correction, unused."""

_ROW = vec(F32)


def from_bits(e: Emitter, bits: Value) -> Value:
    """An f32 argument, passed as its bits in an integer."""
    return e.b.bitcast(e.b.trunc(bits, I32), F32)


def norm(name: str, add: bool, target: Target) -> str:
    """Kernel (x, y, w, out, coded, n, eps bits): RMSNorm of a row; with `add`, x += y first, in place."""
    e, b, (x, y, w, out, coded, n, eps) = new_kernel(name, 7, target)
    px, py, pw = e.pointer(x), e.pointer(y), e.pointer(w)
    blocks = b.lshr(b.add(n, I64(31)), I64(5))
    zero = e.const(_ROW, 0.0)
    with e.loop(blocks, [zero, zero]) as loop:
        at = b.shl(loop.index, I64(7))
        for half, total in enumerate(loop.values):
            here = b.add(at, I64(64 * half))
            value = e.load(_ROW, px, here)
            if add:
                value = b.fadd(value, e.load(_ROW, py, here))
                e.store(value, px, here)
            loop.next.append(e.fma(value, value, total))
    scale = _norm_scale(e, b.fadd(*loop.results), n, eps)
    with e.loop(blocks) as loop:
        at = b.shl(loop.index, I64(7))
        values = []
        for half in range(2):
            here = b.add(at, I64(64 * half))
            values.append(b.fmul(b.fmul(e.load(_ROW, px, here), scale), e.load(_ROW, pw, here)))
        _emit(e, values, loop.index, out, coded)
    return e.finish()


def head_norm(name: str, target: Target) -> str:
    """Kernel (x, w, n, eps bits): RMSNorm in place of n values, n a multiple of 16."""
    e, b, (x, w, n, eps) = new_kernel(name, 4, target)
    px, pw = e.pointer(x), e.pointer(w)
    blocks = b.lshr(n, I64(4))
    with e.loop(blocks, [e.const(_ROW, 0.0)]) as loop:
        value = e.load(_ROW, px, b.shl(loop.index, I64(6)))
        loop.next = [e.fma(value, value, loop.values[0])]
    scale = _norm_scale(e, loop.results[0], n, eps)
    with e.loop(blocks) as loop:
        at = b.shl(loop.index, I64(6))
        e.store(b.fmul(b.fmul(e.load(_ROW, px, at), scale), e.load(_ROW, pw, at)), px, at)
    return e.finish()


def _norm_scale(e: Emitter, squares: Value, n: Value, eps: Value) -> Value:
    """1 / sqrt(mean + eps) in every lane."""
    b = e.b
    mean = b.fdiv(e.tree(b.fadd, squares), b.sitofp(n, F32))
    root = e.call("llvm.sqrt.f32", F32, b.fadd(mean, from_bits(e, eps)))
    return e.splat(b.fdiv(e.const(F32, 1.0), root))


def swiglu(name: str, target: Target) -> str:
    """Kernel (gate, up, out, coded, n): silu(gate) * up, zeros up to the padded end."""
    e, b, (gate, up, out, coded, n) = new_kernel(name, 5, target)
    pg, pu = e.pointer(gate), e.pointer(up)
    one = e.const(_ROW, 1.0)
    lane = ir.Constant(vec(I32), list(range(16)))
    with e.loop(b.lshr(b.add(n, I64(31)), I64(5))) as loop:
        values = []
        for half in range(2):
            at = b.add(b.shl(loop.index, I64(7)), I64(64 * half))
            g = e.load(_ROW, pg, at)
            silu = b.fdiv(g, b.fadd(one, e.exp(b.fneg(g))))
            left = b.trunc(b.sub(n, b.add(b.shl(loop.index, I64(5)), I64(16 * half))), I32)
            inside = b.icmp_signed("<", lane, e.splat(left))
            values.append(b.select(inside, b.fmul(silu, e.load(_ROW, pu, at)), e.const(_ROW, 0.0)))
        _emit(e, values, loop.index, out, coded)
    return e.finish()


def code(name: str, target: Target) -> str:
    """Kernel (x, coded, n): a row in the coded form of `products`."""
    e, b, (x, coded, n) = new_kernel(name, 3, target)
    px, to = e.pointer(x), e.pointer(coded)
    with e.loop(b.lshr(b.add(n, I64(31)), I64(5))) as loop:
        at = b.shl(loop.index, I64(7))
        values = [e.load(_ROW, px, at), e.load(_ROW, px, b.add(at, I64(64)))]
        _code_block(e, values, e.move(to, b.mul(loop.index, I64(CODED_BLOCK))))
    return e.finish()


def _emit(e: Emitter, values: Sequence[Value], index: Value, out: Value, coded: Value) -> None:
    """Write 32 values in the wanted forms."""
    b = e.b
    with e.when(b.icmp_signed("!=", out, I64(0))):
        at = e.move(e.pointer(out), b.shl(index, I64(7)))
        e.store(values[0], at)
        e.store(values[1], at, 64)
    with e.when(b.icmp_signed("!=", coded, I64(0))):
        _code_block(e, values, e.move(e.pointer(coded), b.mul(index, I64(CODED_BLOCK))))


def _code_block(e: Emitter, values: Sequence[Value], to: Value) -> None:
    """Round 32 values to int8 with one scale; a NaN or infinity among them stays in the scale."""
    b, ints = e.b, vec(I32)
    # As integers, the bits of |x| are in the order of the numbers, with infinity and NaN on top.
    bits = [b.and_(b.bitcast(v, ints), e.const(ints, 0x7FFFFFFF)) for v in values]
    largest = e.tree(_larger(e), _larger(e)(*bits))
    top = b.bitcast(largest, F32)
    some = b.icmp_unsigned(">", largest, I32(_SMALLEST))
    inverse = b.select(some, b.fdiv(e.const(F32, 127.0), top), e.const(F32, 0.0))
    scale = b.fmul(top, e.const(F32, 1 / 127))
    magic, magic_bits = e.const(_ROW, 12582912.0), e.const(ints, 0x4B400000)
    numbers = []
    for half, value in enumerate(values):
        # Adding 1.5 * 2^23 rounds to the nearest integer, which then is in the low bits.
        rounded = e.fma(value, e.splat(inverse), magic)
        numbers.append(b.sub(b.bitcast(rounded, ints), magic_bits))
        e.store(b.trunc(numbers[half], vec(I8)), to, 16 * half)
    # Both halves' sums in one tree: lanes 0..7 of the first, 8..15 of the second.
    low, high = (
        _pick(e, numbers[0], numbers[1], [*range(s, s + 8), *range(16 + s, 24 + s)]) for s in (0, 8)
    )
    both = b.add(low, high)
    for step in (4, 2, 1):
        both = b.add(both, _pick(e, both, both, [i ^ step for i in range(16)]))
    sums = [b.extract_element(both, I32(lane)) for lane in (0, 8)]
    e.store(scale, to, 32)
    e.store(b.fmul(scale, b.sitofp(b.add(*sums), F32)), to, 36)
    e.store(b.neg(sums[0]), to, 40)
    e.store(b.neg(sums[1]), to, 44)


_SMALLEST = 0x0554AD2E
"""The bits of 1e-35: blocks without a larger number become zeros."""


def _larger(e: Emitter) -> Callable[[Value, Value], Value]:
    return lambda a, c: e.b.select(e.b.icmp_unsigned(">", a, c), a, c)


def store_key(name: str, kind: str, target: Target) -> str:
    """Kernel (x, to, n): one token's key into its column of a page's key panels ([dim][token 16])."""
    e, b, (x, to, n) = new_kernel(name, 3, target)
    px, pt = e.pointer(x), e.pointer(to)
    size = 2 if kind == "F16" else 4
    with e.loop(b.lshr(n, I64(4))) as loop:
        value = _narrow(e, e.load(_ROW, px, b.shl(loop.index, I64(6))), kind)
        at = e.move(pt, b.mul(loop.index, I64(PANEL * PANEL * size)))
        for lane in range(16):
            e.store(b.extract_element(value, I32(lane)), at, lane * PANEL * size)
    return e.finish()


def store_value(name: str, kind: str, target: Target) -> str:
    """Kernel (x, to, n): one token's value into its row of a page's value panels ([token][dim 16])."""
    e, b, (x, to, n) = new_kernel(name, 3, target)
    px, pt = e.pointer(x), e.pointer(to)
    size = 2 if kind == "F16" else 4
    with e.loop(b.lshr(n, I64(4))) as loop:
        value = _narrow(e, e.load(_ROW, px, b.shl(loop.index, I64(6))), kind)
        e.store(value, pt, b.mul(loop.index, I64(PAGE * PANEL * size)))
    return e.finish()


def _narrow(e: Emitter, value: Value, kind: str) -> Value:
    return e.b.fptrunc(value, vec(F16)) if kind == "F16" else value


def softmax(name: str, target: Target) -> str:
    """Kernel (scores, valid, state): turn a page's scores into weights relative to the running maximum.

    The first `valid` of 64 scores count, the others become 0. state: maximum (in, out), sum (in, out),
    factor for what was summed before (out).
    """
    e, b, (scores, valid, state) = new_kernel(name, 3, target)
    ps, pt = e.pointer(scores), e.pointer(state)
    low, zero = e.const(_ROW, float("-inf")), e.const(_ROW, 0.0)
    lane = ir.Constant(vec(I32), list(range(16)))
    count = e.splat(b.trunc(valid, I32))
    parts, masks = [], []
    for i in range(PAGE // 16):
        masks.append(b.icmp_signed("<", b.add(lane, e.const(vec(I32), 16 * i)), count))
        parts.append(b.select(masks[i], e.load(_ROW, ps, 64 * i), low))
    top = parts[0]
    for part in parts[1:]:
        top = e.fmax(top, part)
    before = e.load(F32, pt)
    top = e.fmax(before, e.tree(e.fmax, top))
    some = b.icmp_signed(">", valid, I64(0))
    base = b.select(some, top, e.const(F32, 0.0))
    total = zero
    for i, part in enumerate(parts):
        weight = b.select(masks[i], e.exp(b.fsub(part, e.splat(base))), zero)
        e.store(weight, ps, 64 * i)
        total = b.fadd(total, weight)
    factor = b.extract_element(e.exp(e.splat(b.fsub(before, top))), I32(0))
    factor = b.select(some, factor, e.const(F32, 1.0))
    e.store(b.select(some, top, before), pt)
    e.store(e.fma(e.load(F32, pt, 4), factor, e.tree(b.fadd, total)), pt, 4)
    e.store(factor, pt, 8)
    return e.finish()


def accumulate(name: str, target: Target) -> str:
    """Kernel (sum, page, state, n): sum = sum * state's factor + page."""
    e, b, (total, page, state, n) = new_kernel(name, 4, target)
    po, pp = e.pointer(total), e.pointer(page)
    factor = e.splat(e.load(F32, e.pointer(state), 8))
    with e.loop(b.lshr(n, I64(4))) as loop:
        at = b.shl(loop.index, I64(6))
        e.store(e.fma(e.load(_ROW, po, at), factor, e.load(_ROW, pp, at)), po, at)
    return e.finish()


def merge(name: str, target: Target) -> str:
    """Kernel (total, part, n): add a chunk (state, then n sums) to the running total of the same form."""
    e, b, (total, part, n) = new_kernel(name, 3, target)
    pt, pp = e.pointer(total), e.pointer(part)
    # A part without any token leaves the total as it is.
    with e.when(b.fcmp_unordered("!=", e.load(F32, pp, 4), e.const(F32, 0.0))):
        old, new = e.load(F32, pt), e.load(F32, pp)
        top = e.fmax(old, new)
        keep, add = (e.exp(e.splat(b.fsub(v, top))) for v in (old, new))
        e.store(top, pt)
        sums = [e.splat(e.load(F32, p, 4)) for p in (pt, pp)]
        both = e.fma(sums[0], keep, b.fmul(sums[1], add))
        e.store(b.extract_element(both, I32(0)), pt, 4)
        with e.loop(b.lshr(n, I64(4))) as loop:
            at = b.add(b.shl(loop.index, I64(6)), I64(4 * STATE))
            scaled = b.fmul(e.load(_ROW, pp, at), add)
            e.store(e.fma(e.load(_ROW, pt, at), keep, scaled), pt, at)
    return e.finish()


def divide(name: str, target: Target) -> str:
    """Kernel (total, out, n): out = sums / sum of exponentials."""
    e, b, (total, out, n) = new_kernel(name, 3, target)
    pt, po = e.pointer(total), e.pointer(out)
    below = e.splat(e.load(F32, pt, 4))
    with e.loop(b.lshr(n, I64(4))) as loop:
        at = b.shl(loop.index, I64(6))
        e.store(b.fdiv(e.load(_ROW, pt, b.add(at, I64(4 * STATE))), below), po, at)
    return e.finish()


def gate(name: str, target: Target) -> str:
    """Kernel (x, gate, n): x *= sigmoid(gate) in place, n a multiple of 16."""
    e, b, (x, gates, n) = new_kernel(name, 3, target)
    px, pg = e.pointer(x), e.pointer(gates)
    one = e.const(_ROW, 1.0)
    with e.loop(b.lshr(n, I64(4))) as loop:
        at = b.shl(loop.index, I64(6))
        below = b.fadd(one, e.exp(b.fneg(e.load(_ROW, pg, at))))
        e.store(b.fdiv(e.load(_ROW, px, at), below), px, at)
    return e.finish()


def rotate(name: str, interleaved: bool, pairs: int, target: Target) -> str:
    """Kernel (x, out, table, n, scale bits): rope on the first 2 * pairs of n values, all times scale.

    `table` holds the pairs' cosines, then their sines; n is a multiple of 16.
    """
    e, b, (x, out, table, n, scale_bits) = new_kernel(name, 5, target)
    px, po, pt = e.pointer(x), e.pointer(out), e.pointer(table)
    scale = from_bits(e, scale_bits)
    lanes = next(size for size in (16, 8, 4, 2, 1) if pairs % size == 0)
    kind, factor = vec(F32, lanes), e.splat(scale, lanes)
    with e.loop(I64(pairs // lanes)) as loop:
        at = b.mul(loop.index, I64(4 * lanes))
        cos, sin = e.load(kind, pt, at), e.load(kind, pt, b.add(at, I64(4 * pairs)))
        if interleaved:
            wide = e.load(vec(F32, 2 * lanes), px, b.shl(at, I64(1)))
            even, odd = (_pick(e, wide, wide, range(s, 2 * lanes, 2)) for s in (0, 1))
        else:
            even, odd = e.load(kind, px, at), e.load(kind, px, b.add(at, I64(4 * pairs)))
        first = b.fmul(e.fma(even, cos, b.fneg(b.fmul(odd, sin))), factor)
        second = b.fmul(e.fma(even, sin, b.fmul(odd, cos)), factor)
        if interleaved:
            order = [i // 2 + lanes * (i % 2) for i in range(2 * lanes)]
            e.store(_pick(e, first, second, order), po, b.shl(at, I64(1)))
        else:
            e.store(first, po, at)
            e.store(second, po, b.add(at, I64(4 * pairs)))
    with e.loop(b.sub(n, I64(2 * pairs))) as loop:
        at = b.add(b.shl(loop.index, I64(2)), I64(8 * pairs))
        e.store(b.fmul(e.load(F32, px, at), scale), po, at)
    return e.finish()


def _pick(e: Emitter, first: Value, second: Value, order: Sequence[int]) -> Value:
    """Lanes of two vectors, in the given order."""
    mask = ir.Constant(vec(I32, len(order)), list(order))
    return e.b.shuffle_vector(first, second, mask)
