"""Attention over pages, as shares of one thread.

Keys lie in panels [token / 16][dim][token 16] and values in panels [dim / 16][token][dim 16], so that
scores and weighted sums are the dense products of `products`. A row's pages are taken in order and in
chunks of `CHUNK`, whatever else is in the step, so its result never depends on how the work was cut.
"""

from __future__ import annotations

from kernels.cpu.instructions import pieces, rows, share
from kernels.cpu.layout import SPAN_ROWS, Head
from kernels.cpu.layout import Attention as Of
from kernels.cpu.machine import call, clear, compiled, copy, field, load32, load64, store32
from kernels.cpu.products import CODED_BLOCK
from kernels.cpu.rowwise import CHUNK, PAGE, STATE


@compiled
def page_of(header: int, m: int, index: int) -> int:
    """The page that holds tokens 64 index .. of row m's sequence."""
    sequence = load32(field(header, Head.SEQUENCE) + 4 * m)
    entry = sequence * field(header, Head.TABLE_STRIDE) + index
    return load32(field(header, Head.TABLE) + 4 * entry)


def place(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Norm, rotate and store: queries aside, keys and values into the pages."""
    p = load64(a)
    qkv, stride, heads, kv_heads, dim = (
        field(p, Of.QKV), field(p, Of.QKV_STRIDE), field(p, Of.HEADS), field(p, Of.KV_HEADS),
        field(p, Of.DIM),
    )  # fmt: skip
    q_norm, k_norm, eps, normalise, rotate = (
        field(p, Of.Q_NORM), field(p, Of.K_NORM), field(p, Of.EPS), field(p, Of.NORMALISE),
        field(p, Of.ROTATE),
    )  # fmt: skip
    table, table_stride, q, scale = (
        field(p, Of.ANGLES), field(p, Of.ANGLES_STRIDE), field(p, Of.QUERIES), field(p, Of.SCALE),
    )  # fmt: skip
    put_key, put_value, keys, values, size = (
        field(p, Of.PUT_KEY), field(p, Of.PUT_VALUE), field(p, Of.KEYS), field(p, Of.VALUES),
        field(p, Of.NUMBER_BYTES),
    )  # fmt: skip
    capacity = field(p, Of.ROWS)
    per_query = 2 if field(p, Of.GATE) else 1
    n_rows = field(header, Head.M)
    threads = field(header, Head.THREADS)
    group = heads // kv_heads
    each = heads + kv_heads
    items = n_rows * each
    head_bytes = PAGE * dim * size
    for item in range(items * tid // threads, items * (tid + 1) // threads):
        m, head = item // each, item % each
        x = qkv + m * stride + 4 * dim * (min(head, heads) * per_query + max(0, head - heads))
        angles = table + m * table_stride
        if head < heads:
            if q_norm:
                call(normalise, (x, q_norm, dim, eps))
            row = (head // group * capacity + m) * group + head % group
            call(rotate, (x, q + 4 * dim * row, angles, dim, scale))
            continue
        if k_norm:
            call(normalise, (x, k_norm, dim, eps))
        call(rotate, (x, scratch, angles, dim, 0x3F800000))
        position = load32(field(header, Head.POSITIONS) + 4 * m)
        kv = head - heads
        at = (page_of(header, m, position // PAGE) * kv_heads + kv) * head_bytes
        token = position % PAGE
        to = keys + at + token // 16 * (16 * dim * size) + token % 16 * size
        call(put_key, (scratch, to, dim))
        call(put_value, (x + 4 * dim * kv_heads, values + at + token * 16 * size, dim))


@compiled
def _chunk(
    header: int,
    p: int,
    row: int,
    n_rows: int,
    kv: int,
    pages: tuple[int, int],
    state: int,
    scratch: int,
) -> None:
    """Softmax and weighted values over pages [first, end) for all queries of a span and KV head.

    `state` gets (n_rows * group, STATE + dim) floats.
    """
    heads, kv_heads, dim = field(p, Of.HEADS), field(p, Of.KV_HEADS), field(p, Of.DIM)
    q, keys, values, size = (
        field(p, Of.QUERIES), field(p, Of.KEYS), field(p, Of.VALUES), field(p, Of.NUMBER_BYTES),
    )  # fmt: skip
    capacity, products = field(p, Of.ROWS), field(p, Of.PRODUCTS)
    softmax, accumulate = field(p, Of.SOFTMAX), field(p, Of.ACCUMULATE)
    group = heads // kv_heads
    n = n_rows * group
    state_bytes = 4 * (STATE + dim)
    scores = scratch
    sums = scratch + 4 * PAGE * n
    queries = q + 4 * dim * (kv * capacity + row) * group
    positions = field(header, Head.POSITIONS) + 4 * row
    clear(state, n * state_bytes)
    for i in range(n):
        store32(state + i * state_bytes, 0xFF800000)
    last = 0
    for r in range(n_rows):
        last = max(last, load32(positions + 4 * r))
    for page in range(pages[0], pages[1]):
        at = (page_of(header, row, page) * kv_heads + kv) * PAGE * dim * size
        following = page_of(header, row, min(page + 1, pages[1] - 1)) * kv_heads + kv
        longest = min(PAGE, last + 1 - page * PAGE)
        rows(
            products, queries, 4 * dim, n, keys + at, (longest + 15) // 16, dim, scores, 4 * PAGE,
            16 * dim * size, values + at,
        )  # fmt: skip
        for i in range(n):
            valid = load32(positions + 4 * (i // group)) + 1 - page * PAGE
            valid = max(0, min(PAGE, valid))
            call(softmax, (scores + 4 * PAGE * i, valid, state + i * state_bytes))
        rows(
            products, scores, 4 * PAGE, n, values + at, dim // 16, longest, sums, 4 * dim,
            16 * PAGE * size, keys + following * PAGE * dim * size,
        )  # fmt: skip
        for i in range(n):
            to = state + i * state_bytes
            call(accumulate, (to + 4 * STATE, sums + 4 * dim * i, to, dim))


@compiled
def _span(header: int, span: int) -> tuple[int, int, int]:
    """First row, number of rows and number of pages of a span."""
    at = field(header, Head.SPANS) + 24 * span
    return load64(at), load64(at + 8), load64(at + 16)


@compiled
def _deliver(p: int, m: int, head: int, total: int) -> None:
    """Write one head's result, in both forms where heads are whole coded blocks."""
    dim = field(p, Of.DIM)
    to = field(p, Of.OUT) + m * field(p, Of.OUT_STRIDE) + 4 * dim * head
    call(field(p, Of.DIVIDE), (total, to, dim))
    if field(p, Of.GATE):
        gate = field(p, Of.QKV) + m * field(p, Of.QKV_STRIDE) + 4 * dim * (2 * head + 1)
        call(field(p, Of.GATE), (to, gate, dim))
    coded = field(p, Of.CODED)
    if coded and dim % 32 == 0:
        coded += m * field(p, Of.CODED_STRIDE) + dim // 32 * head * CODED_BLOCK
        call(field(p, Of.CODE), (to, coded, dim))


def attend(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Softmax and weighted values of this thread's spans and key/value heads.

    In a split step the threads share out chunks too, and `finish` puts them together.
    """
    p = load64(a)
    kv_heads = field(p, Of.KV_HEADS)
    n_spans = field(header, Head.N_SPANS)
    n = n_spans * kv_heads
    if field(header, Head.SPLIT):
        for item in range(n):
            _split_item(header, p, tid, scratch, item)
        return
    turn = 0
    while True:
        begin, end = pieces(header, i, tid, n, turn)
        if begin >= end:
            return
        turn += 1
        for item in range(begin, end):
            # The last spans see most, so they go first.
            _whole_item(header, p, scratch, n - 1 - item)


@compiled
def _split_item(header: int, p: int, tid: int, scratch: int, item: int) -> None:
    """This thread's chunks of one span and key/value head, left in `PARTS`."""
    heads, kv_heads, dim = field(p, Of.HEADS), field(p, Of.KV_HEADS), field(p, Of.DIM)
    parts, slots = field(p, Of.PARTS), field(p, Of.SLOTS)
    threads = field(header, Head.THREADS)
    group = heads // kv_heads
    state_bytes = 4 * (STATE + dim)
    chunk = scratch + 4 * (PAGE + dim) * SPAN_ROWS * group
    span, kv = item // kv_heads, item % kv_heads
    row, n_rows, n_pages = _span(header, span)
    for slot in range((n_pages + CHUNK - 1) // CHUNK):
        if (item + slot) % threads != tid:
            continue
        end = min(n_pages, CHUNK * (slot + 1))
        _chunk(header, p, row, n_rows, kv, (CHUNK * slot, end), chunk, scratch)
        for r in range(n_rows * group):
            index = (row + r // group) * heads + kv * group + r % group
            copy(parts + (index * slots + slot) * state_bytes, chunk + r * state_bytes, state_bytes)


@compiled
def _whole_item(header: int, p: int, scratch: int, item: int) -> None:
    """One span and key/value head, chunk after chunk."""
    heads, kv_heads, dim = field(p, Of.HEADS), field(p, Of.KV_HEADS), field(p, Of.DIM)
    merge = field(p, Of.MERGE)
    group = heads // kv_heads
    state_bytes = 4 * (STATE + dim)
    n_most = SPAN_ROWS * group
    chunk = scratch + 4 * (PAGE + dim) * n_most
    totals = chunk + state_bytes * n_most
    span, kv = item // kv_heads, item % kv_heads
    row, n_rows, n_pages = _span(header, span)
    n = n_rows * group
    clear(totals, n * state_bytes)
    for r in range(n):
        store32(totals + r * state_bytes, 0xFF800000)
    for first in range(0, n_pages, CHUNK):
        pages = (first, min(n_pages, first + CHUNK))
        _chunk(header, p, row, n_rows, kv, pages, chunk, scratch)
        for r in range(n):
            call(merge, (totals + r * state_bytes, chunk + r * state_bytes, dim))
    for r in range(n):
        _deliver(p, row + r // group, kv * group + r % group, totals + r * state_bytes)


def finish(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Put the chunks of rows together, and code rows whose heads are not whole blocks."""
    p = load64(a)
    heads, dim = field(p, Of.HEADS), field(p, Of.DIM)
    merge, parts, slots = field(p, Of.MERGE), field(p, Of.PARTS), field(p, Of.SLOTS)
    state_bytes = 4 * (STATE + dim)
    first, last = share(header, a, tid, field(header, Head.M))
    for m in range(first, last):
        if field(header, Head.SPLIT):
            n_slots = load32(field(header, Head.POSITIONS) + 4 * m) // (PAGE * CHUNK) + 1
            for head in range(heads):
                chunks = parts + (m * heads + head) * slots * state_bytes
                copy(scratch, chunks, state_bytes)
                for slot in range(1, n_slots):
                    call(merge, (scratch, chunks + slot * state_bytes, dim))
                _deliver(p, m, head, scratch)
        if field(p, Of.CODED) and dim % 32:
            row = field(p, Of.OUT) + m * field(p, Of.OUT_STRIDE)
            coded = field(p, Of.CODED) + m * field(p, Of.CODED_STRIDE)
            call(field(p, Of.CODE), (row, coded, heads * dim))
