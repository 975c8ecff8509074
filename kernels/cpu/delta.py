"""Gated DeltaNet (arXiv 2412.06464), token by token, as shares of one thread.

The work is cut by sequence and key head; the value heads that share a key head go with it. A sequence's
rows pass in order, so that its state is the same however they were put into steps.
"""

from __future__ import annotations

from kernels.cpu.emit import F32, I32, I64, Emitter, Target, Value, new_kernel, vec
from kernels.cpu.instructions import pieces
from kernels.cpu.layout import Delta as Of
from kernels.cpu.layout import Head
from kernels.cpu.machine import call, clear, compiled, copy, field, load32, load64, store64
from kernels.cpu.products import CODED_BLOCK
from kernels.cpu.rowwise import from_bits

BLOCK = 16
"""Rows of a sequence for which a state is read once."""

COLUMNS = 32
"""Columns of a state that lie together: a state is [value dim / 32][key dim][value dim 32]."""

POINTERS = 64
"""Bytes for the rows that a convolution reads: up to 8 taps."""

_ROW = vec(F32)

# ---- kernels -----------------------------------------------------------------------------------


def record_bytes(dim: int) -> int:
    """Bytes of one row's q, k, v and o of a head, its decay and its beta, up to a cache line."""
    return 4 * (4 * dim + 16)


def convolve(name: str, taps: int, target: Target) -> str:
    """Kernel (pointers, w, panel stride, out, n): silu of the sum over taps of w * row, n a multiple of 16.

    `pointers` are the rows' addresses, oldest first; w lies in panels [tap][column 16].
    """
    e, b, (pointers, w, stride, out, n) = new_kernel(name, 5, target)
    rows = [e.pointer(e.load(I64, e.pointer(pointers), 8 * j)) for j in range(taps)]
    weights, to = e.pointer(w), e.pointer(out)
    one = e.const(_ROW, 1.0)
    with e.loop(b.lshr(n, I64(4))) as loop:
        at = b.shl(loop.index, I64(6))
        panel = e.move(weights, b.mul(loop.index, stride))
        total = b.fmul(e.load(_ROW, panel), e.load(_ROW, rows[0], at))
        for j in range(1, taps):
            total = e.fma(e.load(_ROW, panel, 64 * j), e.load(_ROW, rows[j], at), total)
        e.store(b.fdiv(total, b.fadd(one, e.exp(b.fneg(total)))), to, at)
    return e.finish()


def unit(name: str, target: Target) -> str:
    """Kernel (x, n, eps bits, scale bits): x *= scale / sqrt(sum of squares + eps), n a multiple of 16."""
    e, b, (x, n, eps, scale) = new_kernel(name, 4, target)
    px = e.pointer(x)
    blocks = b.lshr(n, I64(4))
    with e.loop(blocks, [e.const(_ROW, 0.0)]) as loop:
        value = e.load(_ROW, px, b.shl(loop.index, I64(6)))
        loop.next = [e.fma(value, value, loop.values[0])]
    total = b.fadd(e.tree(b.fadd, loop.results[0]), from_bits(e, eps))
    factor = e.splat(b.fdiv(from_bits(e, scale), e.call("llvm.sqrt.f32", F32, total)))
    with e.loop(blocks) as loop:
        at = b.shl(loop.index, I64(6))
        e.store(b.fmul(e.load(_ROW, px, at), factor), px, at)
    return e.finish()


def gates(name: str, target: Target) -> str:
    """Kernel (alpha, beta, dt bias, a, out): exp(a * softplus(alpha + dt bias)) and sigmoid(beta)."""
    e = Emitter(name, 5, target)
    b = e.b
    alpha, beta, bias, a = (e.splat(e.load(F32, e.pointer(p)), 8) for p in e.arg[:4])
    kind = alpha.type
    one = e.const(kind, 1.0)
    x = b.fadd(alpha, bias)
    # softplus(x) = max(x, 0) + log(1 + t), and log(1 + t) = 2 atanh(t / (2 + t)) with t = e^-|x|.
    t = e.exp(b.fneg(e.fabs(x)))
    s = b.fdiv(t, b.fadd(t, e.const(kind, 2.0)))
    square = b.fmul(s, s)
    series = e.const(kind, 1 / 17)
    for odd in range(15, 0, -2):
        series = e.fma(series, square, e.const(kind, 1 / odd))
    softplus = e.fma(b.fadd(s, s), series, e.fmax(e.const(kind, 0.0), x))
    decay = e.exp(b.fmul(a, softplus))
    rate = b.fdiv(one, b.fadd(one, e.exp(b.fneg(beta))))
    to = e.pointer(e.arg[4])
    for i, value in enumerate((decay, rate)):
        e.store(b.extract_element(value, I32(0)), to, 4 * i)
    return e.finish()


def recur(name: str, dim: int, target: Target) -> str:
    """Kernel (state, records, record bytes, n_rows): the gated delta rule of one head over its rows.

    S <- g S; S <- S + k (b (v - S^T k))^T; o = S^T q. Columns of S are independent: those of a part, which
    lie together and stay in the first-level cache, go through all rows before the next.
    """
    e, b, (state, records, stride, n_rows) = new_kernel(name, 4, target)
    n, chains = COLUMNS // 16, 4
    unrolled = 4
    line = 4 * dim
    zeros = [e.const(_ROW, 0.0)] * (n * chains)
    with e.loop(I64(dim // COLUMNS)) as part:
        here = e.pointer(b.add(state, b.mul(part.index, I64(line * COLUMNS))))
        column = b.mul(part.index, I64(4 * COLUMNS))
        with e.loop(n_rows) as row:
            record = e.pointer(b.add(records, b.mul(row.index, stride)))
            mine = e.move(record, column)
            decay, rate = (e.splat(e.load(F32, record, 4 * line + 4 * i)) for i in range(2))

            def at(loop: Value, record: Value = record) -> tuple[Value, Value]:
                """Where `unrolled` lines of the part begin, and their entries of the record's vectors."""
                lines = e.move(here, b.mul(loop.index, I64(unrolled * 4 * COLUMNS)))
                return lines, e.move(record, b.mul(loop.index, I64(4 * unrolled)))

            with e.loop(I64(dim // unrolled), zeros) as loop:
                lines, entries = at(loop)
                sums = list(loop.values)
                for j in range(unrolled):
                    k = e.splat(e.load(F32, entries, line + 4 * j))
                    for i in range(n):
                        s = e.load(_ROW, lines, 4 * COLUMNS * j + 64 * i)
                        chain = n * (j % chains) + i
                        sums[chain] = e.fma(s, k, sums[chain])
                loop.next = sums
            change = []
            for i in range(n):
                old = b.fmul(
                    decay,
                    b.fadd(
                        b.fadd(loop.results[i], loop.results[n + i]),
                        b.fadd(loop.results[2 * n + i], loop.results[3 * n + i]),
                    ),
                )
                change.append(b.fmul(rate, b.fsub(e.load(_ROW, mine, 2 * line + 64 * i), old)))
            with e.loop(I64(dim // unrolled), zeros) as loop:
                lines, entries = at(loop)
                sums = list(loop.values)
                for j in range(unrolled):
                    q, k = (e.splat(e.load(F32, entries, o + 4 * j)) for o in (0, line))
                    for i in range(n):
                        place = 4 * COLUMNS * j + 64 * i
                        new = e.fma(k, change[i], b.fmul(decay, e.load(_ROW, lines, place)))
                        e.store(new, lines, place)
                        chain = n * (j % chains) + i
                        sums[chain] = e.fma(new, q, sums[chain])
                loop.next = sums
            for i in range(n):
                total = b.fadd(
                    b.fadd(loop.results[i], loop.results[n + i]),
                    b.fadd(loop.results[2 * n + i], loop.results[3 * n + i]),
                )
                e.store(total, mine, 3 * line + 64 * i)
    return e.finish()


# ---- instruction -------------------------------------------------------------------------------


@compiled
def _run(header: int, index: int) -> tuple[int, int]:
    """First row and number of rows of the step's sequence number `index`; (M, 0) after the last."""
    n_rows, sequences = field(header, Head.M), field(header, Head.SEQUENCE)
    first, count = 0, 0
    while first < n_rows:
        end = first + 1
        while end < n_rows and load32(sequences + 4 * end) == load32(sequences + 4 * first):
            end += 1
        if count == index:
            return first, end - first
        count += 1
        first = end
    return n_rows, count if index < 0 else 0


def delta(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Convolution, delta rule, norm and gate of this thread's sequences and key heads."""
    p = load64(a)
    k_heads = field(p, Of.K_HEADS)
    n_runs = _run(header, -1)[1]
    turn = 0
    while True:
        begin, end = pieces(header, i, tid, n_runs * k_heads, turn)
        if begin >= end:
            return
        turn += 1
        for item in range(begin, end):
            first, n = _run(header, item // k_heads)
            _heads(header, p, scratch, first, n, item % k_heads)


@compiled
def _source(p: int, tail: int, first: int, t: int, column: int) -> int:
    """Where q|k|v of row `t` of a sequence's rows lies from `column` on; negative rows are in its tail."""
    if t >= 0:
        return field(p, Of.MIXED) + (first + t) * field(p, Of.MIXED_STRIDE) + 4 * column
    taps = field(p, Of.TAPS)
    return tail + (taps - 1 + t) * (field(p, Of.TAIL_BYTES) // (taps - 1)) + 4 * column


@compiled
def _before(header: int, first: int, t: int) -> int:
    """The row before row `t` of a sequence's rows, -1 if that was in a step before."""
    if t < 0 or field(header, Head.PARENTS) == 0:
        return t - 1
    return max(-1, load32(field(header, Head.PARENTS) + 4 * (first + t)) - first)


@compiled
def _convolved(
    header: int, p: int, tail: int, first: int, t: int, column: int, scratch: int, to: int
) -> None:
    """A head's values of row `t` after convolution and silu."""
    row = t
    for j in range(field(p, Of.TAPS) - 1, -1, -1):
        store64(scratch + 8 * j, _source(p, tail, first, row, column))
        row = _before(header, first, row)
    w = field(p, Of.CONVOLUTION) + column // 16 * field(p, Of.PANEL_STRIDE)
    call(field(p, Of.CONVOLVE), (scratch, w, field(p, Of.PANEL_STRIDE), to, field(p, Of.DIM)))


@compiled
def _keep_tail(p: int, tail: int, first: int, n: int, column: int) -> None:
    """Leave a head's last columns for the next step."""
    taps = field(p, Of.TAPS)
    for t in range(1 - taps, 0):
        to = _source(p, tail, first, t, column)
        copy(to, _source(p, tail, first, n + t, column), 4 * field(p, Of.DIM))


@compiled
def _queries_and_keys(
    header: int, p: int, tail: int, first: int, start: int, n: int, k_head: int, scratch: int
) -> None:
    """q and k of a key head in the records of `n` rows from row `start` of a sequence on."""
    dim, eps, unit = field(p, Of.DIM), field(p, Of.EPS), field(p, Of.UNIT)
    for r in range(n):
        to = scratch + POINTERS + r * field(p, Of.RECORD_BYTES)
        _convolved(header, p, tail, first, start + r, k_head * dim, scratch, to)
        call(unit, (to, dim, eps, field(p, Of.SCALE)))
        column = (field(p, Of.K_HEADS) + k_head) * dim
        _convolved(header, p, tail, first, start + r, column, scratch, to + 4 * dim)
        call(unit, (to + 4 * dim, dim, eps, 0x3F800000))


@compiled
def _values_and_gates(
    header: int, p: int, tail: int, first: int, start: int, n: int, head: int, scratch: int
) -> None:
    """v, decay and rate of a value head in the records of `n` rows from row `start` of a sequence on."""
    k_heads, v_heads, dim = field(p, Of.K_HEADS), field(p, Of.V_HEADS), field(p, Of.DIM)
    for r in range(n):
        to = scratch + POINTERS + r * field(p, Of.RECORD_BYTES)
        value = (2 * k_heads + head) * dim
        _convolved(header, p, tail, first, start + r, value, scratch, to + 8 * dim)
        alpha = _source(p, tail, first, start + r, field(p, Of.GATES_AT) + head)
        bias, a = field(p, Of.DT_BIAS) + 4 * head, field(p, Of.A) + 4 * head
        call(field(p, Of.GATES), (alpha, alpha + 4 * v_heads, bias, a, to + 16 * dim))


@compiled
def _heads(header: int, p: int, scratch: int, first: int, n: int, k_head: int) -> None:
    """A key head with its value heads, over the `n` rows of one sequence from row `first` on."""
    k_heads, v_heads, dim = field(p, Of.K_HEADS), field(p, Of.V_HEADS), field(p, Of.DIM)
    sequence = load32(field(header, Head.SEQUENCE) + 4 * first)
    slot = load32(field(header, Head.SLOTS) + 4 * sequence)
    states = field(p, Of.STATES) + slot * field(p, Of.STATE_BYTES)
    tail = field(p, Of.TAILS) + slot * field(p, Of.TAIL_BYTES)
    key, head_bytes = (k_heads + k_head) * dim, 4 * dim * dim
    if field(header, Head.LOGS):
        log = load32(field(header, Head.LOGS) + 4 * sequence)
        if log >= 0:
            _try_heads(header, p, scratch, first, n, k_head, log)
            return
    fresh = load32(field(header, Head.POSITIONS) + 4 * first) == 0
    taps, stride = field(p, Of.TAPS), field(p, Of.RECORD_BYTES)
    records = scratch + POINTERS
    if fresh:
        for t in range(1 - taps, 0):
            clear(_source(p, tail, first, t, k_head * dim), 4 * dim)
            clear(_source(p, tail, first, t, key), 4 * dim)
    for start in range(0, n, BLOCK):
        size = min(BLOCK, n - start)
        _queries_and_keys(header, p, tail, first, start, size, k_head, scratch)
        for head in range(k_head, v_heads, k_heads):
            value = (2 * k_heads + head) * dim
            state = states + head * head_bytes
            if fresh and start == 0:
                clear(state, head_bytes)
                for t in range(1 - taps, 0):
                    clear(_source(p, tail, first, t, value), 4 * dim)
            _values_and_gates(header, p, tail, first, start, size, head, scratch)
            call(field(p, Of.RECUR), (state, records, stride, size))
            for r in range(size):
                _deliver(p, first + start + r, head, records + r * stride + 12 * dim)
    _keep_tail(p, tail, first, n, k_head * dim)
    _keep_tail(p, tail, first, n, key)
    for head in range(k_head, v_heads, k_heads):
        _keep_tail(p, tail, first, n, (2 * k_heads + head) * dim)


@compiled
def _try_heads(
    header: int, p: int, scratch: int, first: int, n: int, k_head: int, log: int
) -> None:
    """As `_heads`, for tried rows: each goes on from its parent's state in scratch memory.

    What the rows bring is logged, so that those which stand can be done again.
    """
    k_heads, v_heads, dim = field(p, Of.K_HEADS), field(p, Of.V_HEADS), field(p, Of.DIM)
    sequence = load32(field(header, Head.SEQUENCE) + 4 * first)
    slot = load32(field(header, Head.SLOTS) + 4 * sequence)
    states = field(p, Of.STATES) + slot * field(p, Of.STATE_BYTES)
    tail = field(p, Of.TAILS) + slot * field(p, Of.TAIL_BYTES)
    head_bytes, stride = 4 * dim * dim, field(p, Of.RECORD_BYTES)
    records, tried = scratch + POINTERS, scratch + field(p, Of.STATES_AT)
    parents, goes_on = field(header, Head.PARENTS), field(header, Head.GOES_ON)
    _log(p, first, n, log, k_head * dim, 4 * dim)
    _log(p, first, n, log, (k_heads + k_head) * dim, 4 * dim)
    _queries_and_keys(header, p, tail, first, 0, n, k_head, scratch)
    for head in range(k_head, v_heads, k_heads):
        _log(p, first, n, log, (2 * k_heads + head) * dim, 4 * dim)
        for gate in range(2):
            _log(p, first, n, log, field(p, Of.GATES_AT) + gate * v_heads + head, 4)
        _values_and_gates(header, p, tail, first, 0, n, head, scratch)
        start = 0
        while start < n:
            # Rows that follow each other without a branch share one state, at the place of their first.
            size = 1
            while start + size < n and (
                parents == 0 or load32(goes_on + 4 * (first + start + size))
            ):
                size += 1
            before, source = _before(header, first, start), states + head * head_bytes
            if before >= 0:
                while parents and load32(goes_on + 4 * (first + before)):
                    before -= 1
                source = tried + before * head_bytes
            copy(tried + start * head_bytes, source, head_bytes)
            call(
                field(p, Of.RECUR),
                (tried + start * head_bytes, records + start * stride, stride, size),
            )
            start += size
        for r in range(n):
            _deliver(p, first + r, head, records + r * stride + 12 * dim)


@compiled
def _log(p: int, first: int, n: int, log: int, column: int, n_bytes: int) -> None:
    """Keep columns of tried rows; the log has no z."""
    to = column
    if column >= field(p, Of.GATES_AT):
        to -= field(p, Of.V_HEADS) * field(p, Of.DIM)
    for r in range(n):
        source = field(p, Of.MIXED) + (first + r) * field(p, Of.MIXED_STRIDE) + 4 * column
        copy(field(p, Of.LOG) + (log + r) * field(p, Of.LOG_STRIDE) + 4 * to, source, n_bytes)


@compiled
def _deliver(p: int, m: int, head: int, o: int) -> None:
    """Norm a head's result, gate it with silu(z) and write it in the wanted forms, if any."""
    k_heads, v_heads, dim = field(p, Of.K_HEADS), field(p, Of.V_HEADS), field(p, Of.DIM)
    if not (field(p, Of.OUT) or field(p, Of.CODED)):
        return
    call(field(p, Of.NORMALISE), (o, field(p, Of.NORM), dim, field(p, Of.EPS)))
    z = (
        field(p, Of.MIXED)
        + m * field(p, Of.MIXED_STRIDE)
        + 4 * (2 * k_heads + v_heads + head) * dim
    )
    out, coded = field(p, Of.OUT), field(p, Of.CODED)
    if out:
        out += m * field(p, Of.OUT_STRIDE) + 4 * head * dim
    if coded:
        coded += m * field(p, Of.CODED_STRIDE) + head * dim // 32 * CODED_BLOCK
    call(field(p, Of.SWIGLU), (z, o, out, coded, dim))
