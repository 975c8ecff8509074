"""Matrix products: activations (rows) times weight panels (16 outputs each).

Activations are either f32, or *coded*: per 32 inputs 48 bytes, int8 x 32, f32 scale, f32 scale * sum,
i32 -(sum of inputs 0..15), i32 -(sum of 16..31); an input is scale * code.

Every result is one chain of additions along the inputs, the same whichever rows are computed beside it,
so that a row never depends on its neighbours or on how the work was cut. With u8 weight codes the sums of
each scale group are exact integers, equal on all targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from kernels.cpu.emit import F32, I8, I16, I32, I64, Emitter, Loop, Target, Value, new_kernel, vec
from kernels.cpu.panels import DENSE, PANEL, Format, Reader

CODED_BLOCK = 48
_STREAMED_ROWS = 4
"""Up to so many rows a product waits for memory; the processor's own prefetch stops at each 4 KiB."""
_SCALE, _SCALED_SUM, _MINUS_SUMS = 32, 36, 40


def coded(name: str, fmt: Format, rows: int, target: Target) -> str:
    """Kernel (x, x stride, w, n_panels, n_blocks, y, y stride, panel stride, ahead): coded rows times panels.

    Strides are in bytes; y gets 16 floats for each panel. While few rows use a panel, bytes from `ahead`
    on are fetched into the cache in step with it. On one Sapphire Rapids core Q4_1 reaches 190 GMAC/s with
    8 rows and 46 GB/s with one, out of the second-level cache (tests/bench/cpu_ops.py, 2026-11-29).
    """
    e, b, args = new_kernel(name, 9, target)
    x, x_stride, w, n_panels, n_blocks, y, y_stride, panel_size, ahead = args
    xs = [e.pointer(b.add(x, b.mul(x_stride, I64(m)))) for m in range(rows)]
    ys = [e.pointer(b.add(y, b.mul(y_stride, I64(m)))) for m in range(rows)]
    weights = e.pointer(w)
    floats = vec(F32, target.lanes)
    zero = e.const(floats, 0.0)
    with e.loop(n_panels) as panel:
        start = e.move(weights, b.mul(panel.index, panel_size))
        following = e.move(e.pointer(ahead), b.mul(panel.index, panel_size))
        for first in range(0, PANEL, target.lanes):
            with (
                e.loop(n_blocks, [zero] * rows) as block,
                _turns(e, fmt, block, (start, n_blocks), first) as turn,
            ):
                offset = b.mul(turn.index, I64(fmt.step * CODED_BLOCK))
                here = [e.move(p, offset) for p in xs]
                if rows <= _STREAMED_ROWS and not first:
                    _prefetch(e, fmt, following, turn.index)
                for s in range(fmt.step):
                    turn.sums = _add_sub(e, fmt, turn.reader, s, here, turn.sums)
            at = b.add(b.mul(panel.index, I64(4 * PANEL)), I64(4 * first))
            for pointer, total in zip(ys, block.results, strict=True):
                e.store(total, pointer, at)
    return e.finish()


def _prefetch(e: Emitter, fmt: Format, following: Value, turn: Value) -> None:
    """Fetch as many bytes as a turn reads."""
    n_bytes = (fmt.code_bytes + fmt.scale_bytes) * 32 * fmt.step // fmt.block
    at = e.move(following, e.b.mul(turn, I64(n_bytes)))
    for line in range(0, n_bytes, 64):
        e.prefetch(at, line)


@dataclass(slots=True)
class _Turn:
    """One turn of reading a block: its number from the panel's start, its reader and the running sums."""

    index: Value
    reader: Reader
    sums: list[Value]


@contextmanager
def _turns(
    e: Emitter, fmt: Format, block: Loop, panel: tuple[Value, Value], first: int
) -> Iterator[_Turn]:
    """Read block `block.index` of a panel (address, number of blocks) in turns, rows from `first` on."""
    b = e.b
    start, n_blocks = panel
    codes = e.move(start, b.mul(block.index, I64(fmt.code_bytes)))
    at = b.add(b.mul(n_blocks, I64(fmt.code_bytes)), b.mul(block.index, I64(fmt.scale_bytes)))
    scales = e.move(start, at)
    turns = fmt.block // 32 // fmt.step
    if turns == 1:
        turn = _Turn(block.index, Reader(e, codes, scales, first, I64(0)), list(block.values))
        yield turn
        block.next = turn.sums
        return
    with e.loop(I64(turns), block.values) as loop:
        index = b.add(b.mul(block.index, I64(turns)), loop.index)
        turn = _Turn(index, Reader(e, codes, scales, first, loop.index), list(loop.values))
        yield turn
        loop.next = turn.sums
    block.next = loop.results


def _add_sub(
    e: Emitter, fmt: Format, r: Reader, s: int, xs: Sequence[Value], sums: list[Value]
) -> list[Value]:
    """Add the products of inputs 32 s .. 32 s + 31 of a block to each row's `sums`."""
    b, lanes = e.b, r.lanes
    ints, floats = vec(I32, lanes), vec(F32, lanes)
    at = s * CODED_BLOCK
    codes = fmt.codes(r, s)
    per = fmt.group // 4  # vectors that share a scale
    for part in range(8 // per):
        group = s * (32 // fmt.group) + part
        starts = []
        for x in xs:
            if fmt.offset is None:
                starts.append(e.const(ints, 0))
                continue
            minus = e.load(I32, x, at + _MINUS_SUMS + 4 * part)
            if per == 8:
                minus = b.add(minus, e.load(I32, x, at + _MINUS_SUMS + 4))
            starts.append(b.shl(e.splat(minus, lanes), e.const(ints, fmt.offset)))
        offsets = [at + 16 * part + 4 * g for g in range(per)]
        dots = _dot(e, codes[part * per : (part + 1) * per], fmt.bits, xs, offsets, starts)
        scale = fmt.scale(r, group)
        for m, x in enumerate(xs):
            both = b.fmul(scale, e.splat(e.load(F32, x, at + _SCALE), lanes))
            sums[m] = e.fma(b.sitofp(dots[m], floats), both, sums[m])
    if fmt.minimum is not None and fmt.group == 32:
        minimum = fmt.minimum(r, s)
        for m, x in enumerate(xs):
            sums[m] = e.fma(minimum, e.splat(e.load(F32, x, at + _SCALED_SUM), lanes), sums[m])
    elif fmt.minimum is not None:
        for part in range(2):
            minus = b.fneg(fmt.minimum(r, 2 * s + part))
            for m, x in enumerate(xs):
                total = b.sitofp(e.load(I32, x, at + _MINUS_SUMS + 4 * part), F32)
                scaled = b.fmul(total, e.load(F32, x, at + _SCALE))
                sums[m] = e.fma(minus, e.splat(scaled, lanes), sums[m])
    return sums


def _dot(
    e: Emitter,
    codes: Sequence[Value],
    bits: int,
    xs: Sequence[Value],
    offsets: Sequence[int],
    starts: list[Value],
) -> list[Value]:
    """starts + sum over vectors g, bytes j of code[g][j] * x[offset g + j], for each row x."""
    b, lanes, how = e.b, e.target.lanes, e.target.dot
    ints, shorts, small = vec(I32, lanes), vec(I16, 2 * lanes), vec(I8, 4 * lanes)
    sums = list(starts)
    if how in ("avx512vnni", "avxvnni"):
        name = f"llvm.x86.avx512.vpdpbusd.{32 * lanes}"
        for code, offset in zip(codes, offsets, strict=True):
            for m, x in enumerate(xs):
                word = e.splat(e.load(I32, x, offset), lanes)
                sums[m] = e.call(name, ints, sums[m], code, word)
        return sums
    if how == "avx2" and bits <= 6:
        # pmaddubsw adds two products in 16 bits; so many of its results still fit without saturation.
        room = 32767 // (2 * 127 * (2**bits - 1))
        ones = e.const(shorts, 1)
        for m, x in enumerate(xs):
            for at in range(0, len(codes), room):
                total = None
                for code, offset in zip(
                    codes[at : at + room], offsets[at : at + room], strict=True
                ):
                    word = b.bitcast(e.splat(e.load(I32, x, offset), lanes), small)
                    pairs = e.call(
                        "llvm.x86.avx2.pmadd.ub.sw", shorts, b.bitcast(code, small), word
                    )
                    total = pairs if total is None else b.add(total, pairs)
                sums[m] = b.add(sums[m], e.call("llvm.x86.avx2.pmadd.wd", ints, total, ones))
        return sums
    if how == "avx2":
        low, eight = e.const(shorts, 255), e.const(shorts, 8)
        for code, offset in zip(codes, offsets, strict=True):
            pair = b.bitcast(code, shorts)
            even, odd = b.and_(pair, low), b.lshr(pair, eight)
            for m, x in enumerate(xs):
                word = b.bitcast(e.splat(e.load(I32, x, offset), lanes), shorts)
                word_even, word_odd = b.ashr(b.shl(word, eight), eight), b.ashr(word, eight)
                for a, c in ((even, word_even), (odd, word_odd)):
                    sums[m] = b.add(sums[m], e.call("llvm.x86.avx2.pmadd.wd", ints, a, c))
        return sums
    for code, offset in zip(codes, offsets, strict=True):
        for j in range(4):
            byte = b.and_(b.lshr(code, e.const(ints, 8 * j)), e.const(ints, 255))
            for m, x in enumerate(xs):
                number = e.splat(b.sext(e.load(I8, x, offset + j), I32), lanes)
                sums[m] = b.add(sums[m], b.mul(byte, number))
    return sums


def floating(name: str, fmt: Format, rows: int, target: Target) -> str:
    """Kernel as `coded`, on f32 rows and dequantised weights."""
    e, b, args = new_kernel(name, 9, target)
    x, x_stride, w, n_panels, n_blocks, y, y_stride, panel_size, ahead = args
    xs = [e.pointer(b.add(x, b.mul(x_stride, I64(m)))) for m in range(rows)]
    ys = [e.pointer(b.add(y, b.mul(y_stride, I64(m)))) for m in range(rows)]
    weights = e.pointer(w)
    zero = e.const(vec(F32, target.lanes), 0.0)
    with e.loop(n_panels) as panel:
        start = e.move(weights, b.mul(panel.index, panel_size))
        following = e.move(e.pointer(ahead), b.mul(panel.index, panel_size))
        for first in range(0, PANEL, target.lanes):
            # Two chains, even and odd inputs: one alone would wait for itself.
            with (
                e.loop(n_blocks, [zero] * (2 * rows)) as block,
                _turns(e, fmt, block, (start, n_blocks), first) as turn,
            ):
                offset = b.mul(turn.index, I64(4 * 32 * fmt.step))
                here = [e.move(p, offset) for p in xs]
                if rows <= _STREAMED_ROWS and not first:
                    _prefetch(e, fmt, following, turn.index)
                for s in range(fmt.step):
                    for k, weight in enumerate(_dequantised(e, fmt, turn.reader, s)):
                        for m, p in enumerate(here):
                            number = e.splat(e.load(F32, p, 4 * (32 * s + k)), target.lanes)
                            chain = 2 * m + k % 2
                            turn.sums[chain] = e.fma(weight, number, turn.sums[chain])
            at = b.add(b.mul(panel.index, I64(4 * PANEL)), I64(4 * first))
            for m, pointer in enumerate(ys):
                e.store(b.fadd(block.results[2 * m], block.results[2 * m + 1]), pointer, at)
    return e.finish()


def unpack(name: str, fmt: Format, target: Target) -> str:
    """Kernel (w, n_blocks, y): one panel's weights as f32 [input][row 16]."""
    e, b, (w, n_blocks, y) = new_kernel(name, 3, target)
    weights, out = e.pointer(w), e.pointer(y)
    with e.loop(n_blocks) as block:
        for first in range(0, PANEL, target.lanes):
            with _turns(e, fmt, block, (weights, n_blocks), first) as turn:
                to = e.move(out, b.mul(turn.index, I64(32 * fmt.step * PANEL * 4)))
                for s in range(fmt.step):
                    for k, weight in enumerate(_dequantised(e, fmt, turn.reader, s)):
                        e.store(weight, to, 4 * (PANEL * (32 * s + k) + first))
    return e.finish()


def _dequantised(e: Emitter, fmt: Format, r: Reader, s: int) -> list[Value]:
    """The f32 weights of inputs 32 s .. 32 s + 31, equal to GGUF's definition bit for bit."""
    b, ints, floats = e.b, vec(I32, r.lanes), vec(F32, r.lanes)
    codes = fmt.codes(r, s)
    groups = [s * (32 // fmt.group) + i for i in range(32 // fmt.group)]
    minima = [fmt.minimum(r, g) for g in groups] if fmt.minimum is not None else None
    scales = [fmt.scale(r, g) for g in groups]
    out = []
    for k in range(32):
        code = b.and_(b.lshr(codes[k // 4], e.const(ints, 8 * (k % 4))), e.const(ints, 255))
        if fmt.offset is not None:
            code = b.sub(code, e.const(ints, 1 << fmt.offset))
        weight = b.fmul(scales[k // fmt.group], b.sitofp(code, floats))
        out.append(weight if minima is None else b.fadd(weight, minima[k // fmt.group]))
    return out


def dense(name: str, kind: str, rows: int, target: Target) -> str:
    """Kernel (x, x stride, w, n_panels, k, y, y stride, panel stride, ahead): f32 rows times dense panels.

    As `coded`, but `k` counts inputs, of which there may be any number.
    """
    e, b, (x, x_stride, w, n_panels, k, y, y_stride, panel_size, ahead) = new_kernel(
        name, 9, target
    )
    xs = [e.pointer(b.add(x, b.mul(x_stride, I64(m)))) for m in range(rows)]
    ys = [e.pointer(b.add(y, b.mul(y_stride, I64(m)))) for m in range(rows)]
    weights = e.pointer(w)
    step = PANEL * DENSE[kind]
    zero = e.const(vec(F32, target.lanes), 0.0)

    def add(sums: list[Value], index: Value, ahead: int) -> None:
        """Add input `index` + `ahead` to the chain of its parity."""
        for first in range(0, PANEL, target.lanes):
            half = first // target.lanes
            at = e.move(start, b.mul(index, I64(step)))
            weight = _load_dense(e, kind, at, ahead * step + first * DENSE[kind])
            for m, p in enumerate(xs):
                at = e.move(p, b.mul(index, I64(4)))
                number = e.splat(e.load(F32, at, 4 * ahead), target.lanes)
                chain = (half * rows + m) * 2 + ahead % 2
                sums[chain] = e.fma(weight, number, sums[chain])

    halves = PANEL // target.lanes
    with e.loop(n_panels) as panel:
        start = e.move(weights, b.mul(panel.index, panel_size))
        following = e.move(e.pointer(ahead), b.mul(panel.index, panel_size))
        with e.loop(b.lshr(k, I64(1)), [zero] * (2 * rows * halves)) as pair:
            sums = list(pair.values)
            if rows <= _STREAMED_ROWS:
                for line in range(0, 2 * step, 64):
                    e.prefetch(e.move(following, b.mul(pair.index, I64(2 * step))), line)
            add(sums, b.shl(pair.index, I64(1)), 0)
            add(sums, b.shl(pair.index, I64(1)), 1)
            pair.next = sums
        with e.loop(b.and_(k, I64(1)), pair.results) as rest:
            sums = list(rest.values)
            add(sums, b.sub(k, I64(1)), 0)
            rest.next = sums
        for half in range(halves):
            at = b.add(b.mul(panel.index, I64(4 * PANEL)), I64(4 * target.lanes * half))
            for m, pointer in enumerate(ys):
                even = (half * rows + m) * 2
                e.store(b.fadd(rest.results[even], rest.results[even + 1]), pointer, at)
    return e.finish()


def unpack_dense(name: str, kind: str, target: Target) -> str:
    """Kernel (w, k, y): one dense panel as f32 [input][row 16]."""
    e = Emitter(name, 3, target)
    w, k, y = e.arg
    weights, out = e.pointer(w), e.pointer(y)
    with e.loop(k) as row:
        at = e.move(weights, e.b.mul(row.index, I64(PANEL * DENSE[kind])))
        to = e.move(out, e.b.mul(row.index, I64(PANEL * 4)))
        for first in range(0, PANEL, target.lanes):
            e.store(_load_dense(e, kind, at, first * DENSE[kind]), to, 4 * first)
    return e.finish()


def _load_dense(e: Emitter, kind: str, pointer: Value, offset: int) -> Value:
    """A vector of weights as f32."""
    lanes = e.target.lanes
    if kind == "F32":
        return e.load(vec(F32, lanes), pointer, offset)
    bits = e.load(vec(I16, lanes), pointer, offset)
    if kind == "F16":
        return e.from_f16(bits)
    wide = e.b.zext(bits, vec(I32, lanes))
    return e.b.bitcast(e.b.shl(wide, e.const(wide.type, 16)), vec(F32, lanes))


def interleave(name: str, width: int, target: Target) -> str:
    """Kernel (rows, row stride, block stride, n_panels, n_blocks, n, to, panel stride, block stride, flip).

    Of 16 rows, n pieces of `width` bytes of each block, so that a piece of every row lies side by side.
    """
    e, b, args = new_kernel(name, 10, target)
    rows, row_stride, block_stride, n_panels, n_blocks, n, to, panel_to, block_to, flip = args
    kind = {1: I8, 2: I16, 4: I32}[width]
    bits = e.splat(b.trunc(flip, kind) if width < 4 else b.trunc(flip, I32))
    source, target_at = e.pointer(rows), e.pointer(to)
    with e.loop(n_panels) as panel, e.loop(n_blocks) as block:
        at = b.add(
            b.mul(panel.index, b.mul(row_stride, I64(PANEL))), b.mul(block.index, block_stride)
        )
        here = [e.move(source, b.add(at, b.mul(row_stride, I64(r)))) for r in range(PANEL)]
        out = e.move(target_at, b.add(b.mul(panel.index, panel_to), b.mul(block.index, block_to)))
        with e.loop(n) as piece:
            offset = b.mul(piece.index, I64(width))
            vector = e.const(vec(kind), 0)
            for r, pointer in enumerate(here):
                vector = b.insert_element(vector, e.load(kind, pointer, offset), I32(r))
            e.store(b.xor(vector, bits), out, b.mul(piece.index, I64(PANEL * width)))
    return e.finish()
