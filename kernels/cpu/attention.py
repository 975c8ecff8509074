"""Attention over pages, as shares of one thread.

Keys lie in panels [token / 16][dim][token 16] and values in panels [dim / 16][token][dim 16], so that
scores and weighted sums are the dense products of `products`. A row's pages are taken in order and in
chunks of `CHUNK`, whatever else is in the step, so its result never depends on how the work was cut.
A row of a tree sees pages that were put together for it, in which its ancestors follow each other, so its
result is the same as without the branches between them.
"""

from __future__ import annotations

from kernels.cpu.instructions import pieces, rows, share
from kernels.cpu.layout import MOST_TRIED, SPAN_ROWS, Head
from kernels.cpu.layout import Attention as Of
from kernels.cpu.machine import call, clear, compiled, copy, field, load32, load64, store32, store64
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
        at_place = load32(field(header, Head.PLACES) + 4 * m)
        kv = head - heads
        at = (page_of(header, m, at_place // PAGE) * kv_heads + kv) * head_bytes
        token = at_place % PAGE
        to = keys + at + token // 16 * (16 * dim * size) + token % 16 * size
        call(put_key, (scratch, to, dim))
        call(put_value, (x + 4 * dim * kv_heads, values + at + token * 16 * size, dim))


def scratch_bytes(group: int, dim: int) -> int:
    """Scratch memory of one span, before the page that is put together for a row of a tree."""
    n = SPAN_ROWS * group
    return 4 * n * (PAGE + dim) + 8 * n * (STATE + dim)


_scratch_bytes = compiled(scratch_bytes)


def tree_bytes(dim: int, number_bytes: int) -> int:
    """Scratch memory for a page of keys and values of a head, and a path to the root."""
    return 8 * MOST_TRIED + 2 * PAGE * dim * number_bytes


@compiled
def _is_tree(header: int, m: int) -> bool:
    """Whether row m is a node of a tree."""
    if field(header, Head.PARENTS) == 0 or field(header, Head.LOGS) == 0:
        return False
    sequence = load32(field(header, Head.SEQUENCE) + 4 * m)
    return load32(field(header, Head.LOGS) + 4 * sequence) >= 0


@compiled
def _put_together(
    header: int, p: int, m: int, kv: int, page: int, keys: int, values: int, at: int
) -> bool:
    """Write page number `page` as row m sees it behind its path at `at`; False if it is as it stands.

    `keys` and `values` are that page's of the key/value head; the path (int64 rows, root first) comes first.
    """
    dim, size, kv_heads = field(p, Of.DIM), field(p, Of.NUMBER_BYTES), field(p, Of.KV_HEADS)
    places, parents = field(header, Head.PLACES), field(header, Head.PARENTS)
    base = load32(field(header, Head.BASES) + 4 * m)
    row, depth = m, load32(field(header, Head.POSITIONS) + 4 * m) - base
    changed = False
    while row >= 0 and depth >= 0:
        store64(at + 8 * depth, row)
        place = base + depth
        if place // PAGE == page and load32(places + 4 * row) != place:
            changed = True
        row, depth = load32(parents + 4 * row), depth - 1
    if not changed:
        return False
    head_bytes = PAGE * dim * size
    new_keys = at + 8 * MOST_TRIED
    new_values = new_keys + head_bytes
    copy(new_keys, keys, head_bytes)
    copy(new_values, values, head_bytes)
    for depth in range(load32(field(header, Head.POSITIONS) + 4 * m) - base + 1):
        place, found = base + depth, load32(places + 4 * load64(at + 8 * depth))
        if place // PAGE != page or place == found:
            continue
        there = (page_of(header, m, found // PAGE) * kv_heads + kv) * head_bytes
        token, to = found % PAGE, place % PAGE
        column = field(p, Of.KEYS) + there + token // 16 * (16 * dim * size) + token % 16 * size
        new = new_keys + to // 16 * (16 * dim * size) + to % 16 * size
        for i in range(dim):
            copy(new + 16 * size * i, column + 16 * size * i, size)
        line = field(p, Of.VALUES) + there + token * 16 * size
        for i in range(dim // 16):
            block = 16 * PAGE * size * i
            copy(new_values + to * 16 * size + block, line + block, 16 * size)
    return True


@compiled
def _seen(header: int, p: int, m: int) -> tuple[int, int]:
    """The places [first, end) that row m sees, its ancestors counted as if they followed each other."""
    end = load32(field(header, Head.POSITIONS) + 4 * m) + 1
    first = 0
    if field(p, Of.WINDOW):
        first = end if field(p, Of.WINDOW_PER_ROW) else load32(field(header, Head.BASES) + 4 * m)
        first = max(0, first - field(p, Of.WINDOW))
    if not field(p, Of.CAUSAL):
        end = load32(field(header, Head.ENDS) + 4 * m)
    return first, end


@compiled
def _valid(header: int, p: int, m: int, page: int) -> int:
    """How many tokens of a page lie ahead of the end of what row m sees; 0 where it sees none of them."""
    first, end = _seen(header, p, m)
    valid = min(PAGE, end - page * PAGE)
    return valid if valid > max(0, first - page * PAGE) else 0


@compiled
def _weigh(header: int, p: int, m: int, page: int, scores: int, state: int, n: int) -> None:
    """Softmax of a page's scores for the `n` queries of row m."""
    valid = _valid(header, p, m, page)
    hidden = max(0, _seen(header, p, m)[0] - page * PAGE)
    for i in range(n):
        at = scores + 4 * PAGE * i
        for j in range(min(hidden, valid)):
            store32(at + 4 * j, 0xFF800000)
        call(field(p, Of.SOFTMAX), (at, valid, state + i * 4 * (STATE + field(p, Of.DIM))))


def chunk(
    header: int, p: int, row: int, n_rows: int, kv: int, begin: int, stop: int, state: int, scratch: int,
) -> None:  # fmt: skip
    """Softmax and weighted values over pages [begin, stop) for all queries of a span and KV head.

    `state` gets (n_rows * group, STATE + dim) floats.
    """
    heads, kv_heads, dim = field(p, Of.HEADS), field(p, Of.KV_HEADS), field(p, Of.DIM)
    q, keys, values, size = (
        field(p, Of.QUERIES), field(p, Of.KEYS), field(p, Of.VALUES), field(p, Of.NUMBER_BYTES),
    )  # fmt: skip
    capacity, products = field(p, Of.ROWS), field(p, Of.PRODUCTS)
    accumulate = field(p, Of.ACCUMULATE)
    group = heads // kv_heads
    n = n_rows * group
    state_bytes = 4 * (STATE + dim)
    scores = scratch
    sums = scratch + 4 * PAGE * n
    queries = q + 4 * dim * (kv * capacity + row) * group
    clear(state, n * state_bytes)
    for i in range(n):
        store32(state + i * state_bytes, 0xFF800000)
    first, end = _seen(header, p, row)
    for r in range(1, n_rows):
        lowest, last = _seen(header, p, row + r)
        first, end = min(first, lowest), max(end, last)
    tree = _is_tree(header, row)
    base = load32(field(header, Head.BASES) + 4 * row)
    for page in range(max(begin, first // PAGE), stop):
        at = (page_of(header, row, page) * kv_heads + kv) * PAGE * dim * size
        following = page_of(header, row, min(page + 1, stop - 1)) * kv_heads + kv
        longest = min(PAGE, end - page * PAGE)
        # Of a tree, the page of each row may be another one.
        count = 1 if tree and (page + 1) * PAGE > base else n_rows
        for r in range(0, n_rows, count):
            page_keys, page_values = keys + at, values + at
            if count == 1 and tree:
                mine = scratch + _scratch_bytes(group, dim)
                if _put_together(header, p, row + r, kv, page, page_keys, page_values, mine):
                    page_keys = mine + 8 * MOST_TRIED
                    page_values = page_keys + PAGE * dim * size
            m = count * group
            rows(
                products, queries + 4 * dim * r * group, 4 * dim, m, page_keys,
                (longest + 15) // 16, dim, scores, 4 * PAGE, 16 * dim * size, page_values,
            )  # fmt: skip
            for i in range(count):
                to = state + (r + i) * group * state_bytes
                _weigh(header, p, row + r + i, page, scores + 4 * PAGE * i * group, to, group)
            # Rows with the same end share a product. Behind its own end a row reads no values, since those
            # of a guess may be infinite, and then a weight of 0 does not silence them.
            i = 0
            while i < count:
                valid = _valid(header, p, row + r + i, page)
                m = 1
                while i + m < count and _valid(header, p, row + r + i + m, page) == valid:
                    m += 1
                if valid:
                    rows(
                        products, scores + 4 * PAGE * i * group, 4 * PAGE, m * group, page_values,
                        dim // 16, valid, sums, 4 * dim, 16 * PAGE * size,
                        keys + following * PAGE * dim * size,
                    )  # fmt: skip
                    for j in range(m * group):
                        to = state + ((r + i) * group + j) * state_bytes
                        call(accumulate, (to + 4 * STATE, sums + 4 * dim * j, to, dim))
                i += m


@compiled
def _pages(header: int, p: int, m: int) -> int:
    """Pages that row m sees, or could without a window."""
    return (_seen(header, p, m)[1] + PAGE - 1) // PAGE


@compiled
def _span(header: int, p: int, span: int) -> tuple[int, int, int]:
    """First row, number of rows and number of pages of a span."""
    at = field(header, Head.SPANS) + 24 * span
    row, n_rows, n_pages = load64(at), load64(at + 8), load64(at + 16)
    return row, n_rows, n_pages if field(p, Of.CAUSAL) else _pages(header, p, row)


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
    result = scratch + 4 * (PAGE + dim) * SPAN_ROWS * group
    span, kv = item // kv_heads, item % kv_heads
    row, n_rows, n_pages = _span(header, p, span)
    for slot in range((n_pages + CHUNK - 1) // CHUNK):
        if (item + slot) % threads != tid:
            continue
        end = min(n_pages, CHUNK * (slot + 1))
        call(field(p, Of.CHUNK), (header, p, row, n_rows, kv, CHUNK * slot, end, result, scratch))
        for r in range(n_rows * group):
            index = (row + r // group) * heads + kv * group + r % group
            copy(
                parts + (index * slots + slot) * state_bytes, result + r * state_bytes, state_bytes
            )


@compiled
def _whole_item(header: int, p: int, scratch: int, item: int) -> None:
    """One span and key/value head, chunk after chunk."""
    heads, kv_heads, dim = field(p, Of.HEADS), field(p, Of.KV_HEADS), field(p, Of.DIM)
    merge = field(p, Of.MERGE)
    group = heads // kv_heads
    state_bytes = 4 * (STATE + dim)
    n_most = SPAN_ROWS * group
    result = scratch + 4 * (PAGE + dim) * n_most
    totals = result + state_bytes * n_most
    span, kv = item // kv_heads, item % kv_heads
    row, n_rows, n_pages = _span(header, p, span)
    n = n_rows * group
    clear(totals, n * state_bytes)
    for r in range(n):
        store32(totals + r * state_bytes, 0xFF800000)
    for first in range(0, n_pages, CHUNK):
        stop = min(n_pages, first + CHUNK)
        call(field(p, Of.CHUNK), (header, p, row, n_rows, kv, first, stop, result, scratch))
        for r in range(n):
            call(merge, (totals + r * state_bytes, result + r * state_bytes, dim))
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
            n_slots = (_pages(header, p, m) + CHUNK - 1) // CHUNK
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
