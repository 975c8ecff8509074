"""Operations on rows and on weights, as shares of one thread.

An operation takes (header, a, i, tid, scratch): its operands are 64-bit integers from address `a` on, which
each function names in order, `i` is the number of its instruction. A *private* buffer has a copy for each
thread, in the row of its number, while the step has one row: computing a row again is quicker than waiting
for it.
"""

from __future__ import annotations

from kernels.cpu.layout import AHEAD, GATED_ROWS, SHARED_ROWS, Head, Meet
from kernels.cpu.machine import atomic_add, call, compiled, copy, field, load32, load64
from kernels.cpu.products import CODED_BLOCK


@compiled
def rows(
    kernels: int, x: int, x_stride: int, n_rows: int, w: int, n_panels: int, k: int, y: int, y_stride: int,
    panel_stride: int, ahead: int,
) -> None:  # fmt: skip
    """A product kernel over any number of rows: `kernels` points to (rows, address) pairs, largest first."""
    row = 0
    i = 0
    while row < n_rows:
        size = load64(kernels + 16 * i)
        if n_rows - row < size:
            i += 1
            continue
        call(
            load64(kernels + 16 * i + 8),
            (
                x + row * x_stride, x_stride, w, n_panels, k, y + row * y_stride, y_stride,
                panel_stride, ahead,
            ),
        )  # fmt: skip
        row += size


@compiled
def own(header: int, tid: int, private: int) -> int:
    """The row that stands for row 0 of a buffer."""
    return tid if private and field(header, Head.M) == 1 else 0


@compiled
def share(header: int, a: int, tid: int, n_rows: int) -> tuple[int, int]:
    """This thread's share of rows: first and last; of a row of which each has a copy, that row."""
    meet = load64(a - 8)
    if field(header, Head.M) == 1 and (meet == Meet.ROWS or meet == Meet.COPIES):
        return 0, 1
    threads = field(header, Head.THREADS)
    return n_rows * tid // threads, n_rows * (tid + 1) // threads


@compiled
def pieces(header: int, i: int, tid: int, n: int, turn: int) -> tuple[int, int]:
    """The next of `n` things to do in instruction `i` for this thread's turn 0, 1, ..: begin and end.

    Steps of few rows have one turn of fixed shares; later pieces are taken by whoever is free, which
    evens out threads of unequal speed.
    """
    threads = field(header, Head.THREADS)
    if field(header, Head.M) < SHARED_ROWS:
        if turn:
            return n, n
        return n * tid // threads, n * (tid + 1) // threads
    size = max(1, n // (8 * threads))
    begin = size * atomic_add(field(header, Head.COUNTERS) + 8 * i, 1)
    return begin, min(n, begin + size)


def linear(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """x @ w.T: this thread's panels (or rows, where panels are few)."""
    # a: kernels, x, x stride, w, panel stride, k, n, y, y stride, to the logits?, x private?
    kernels, x, x_stride, w = field(a, 0), field(a, 1), field(a, 2), field(a, 3)
    x += own(header, tid, field(a, 10)) * x_stride
    panel_stride, k, n = field(a, 4), field(a, 5), field(a, 6)
    y, y_stride = field(a, 7), field(a, 8)
    n_rows = field(header, Head.M)
    if field(a, 9):
        n_rows = field(header, Head.R)
        y, y_stride = field(header, Head.LOGITS), field(header, Head.LOGITS_STRIDE)
    n_panels, whole = (n + 15) // 16, n // 16
    # Few panels: blocks of rows are the pieces of work.
    by_rows = n_rows >= SHARED_ROWS and n_panels < 4 * field(header, Head.THREADS)
    n_pieces = (n_rows + 15) // 16 if by_rows else n_panels
    # So many panels stay in the cache while the rows pass by.
    group = max(1, field(header, Head.L2) // panel_stride)
    turn = 0
    while True:
        begin, end = pieces(header, i, tid, n_pieces, turn)
        if begin >= end:
            return
        turn += 1
        first_row, last_row, panel = 0, n_rows, begin
        if by_rows:
            first_row, last_row, panel, end = 16 * begin, min(n_rows, 16 * end), 0, n_panels
        while panel < end:
            count = min(group, end - panel)
            at = w + panel * panel_stride
            if panel < whole:
                count = min(count, whole - panel)
                rows(
                    kernels, x + first_row * x_stride, x_stride, last_row - first_row, at, count, k,
                    y + first_row * y_stride + 64 * panel, y_stride, panel_stride, at + AHEAD,
                )  # fmt: skip
            else:
                for row in range(first_row, last_row):
                    rows(
                        kernels, x + row * x_stride, x_stride, 1, at, count, k, scratch, 64,
                        panel_stride, at,
                    )  # fmt: skip
                    copy(y + row * y_stride + 64 * panel, scratch, 4 * (n - 16 * whole))
            panel += count


def gated(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """silu(x @ gate.T) * (x @ up.T): this thread's columns, 32 by 32, never written in between."""
    # a: kernels, x, x stride, gate, up, panel stride, k, n, pairs of panels at once, swiglu kernel, out,
    #    out stride, coded, coded stride, x private?
    n, group = field(a, 7), field(a, 8)
    turn = 0
    while True:
        pair, end = pieces(header, i, tid, (n + 31) // 32, turn)
        if pair >= end:
            return
        turn += 1
        while pair < end:
            count = min(group, end - pair)
            _gated_columns(header, a, tid, scratch, pair, count)
            pair += count


@compiled
def _gated_columns(header: int, a: int, tid: int, scratch: int, pair: int, count: int) -> None:
    """Columns 32 pair .. 32 (pair + count) of `gated`."""
    kernels, x, x_stride, gate, up = (
        field(a, 0), field(a, 1), field(a, 2), field(a, 3), field(a, 4),
    )  # fmt: skip
    panel_stride, k, n, combine = field(a, 5), field(a, 6), field(a, 7), field(a, 9)
    out, out_stride, coded, coded_stride = (
        field(a, 10), field(a, 11), field(a, 12), field(a, 13),
    )  # fmt: skip
    x += own(header, tid, field(a, 14)) * x_stride
    n_rows = field(header, Head.M)
    width = min(32 * count, n - 32 * pair)
    panels = min(2 * count, (n + 15) // 16 - 2 * pair)
    stride = 2 * 4 * 32 * count
    for row in range(0, n_rows, GATED_ROWS):
        size = min(GATED_ROWS, n_rows - row)
        for part in range(2):
            w = (up if part else gate) + 2 * pair * panel_stride
            rows(
                kernels, x + row * x_stride, x_stride, size, w, panels, k,
                scratch + part * 128 * count, stride, panel_stride, w + AHEAD,
            )  # fmt: skip
        for r in range(size):
            at = scratch + r * stride
            to = out + (row + r) * out_stride + 128 * pair if out else 0
            code_to = coded + (row + r) * coded_stride + CODED_BLOCK * pair if coded else 0
            call(combine, (at, at + 128 * count, to, code_to, width))


def embed(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Rows of the token table."""
    # a: unpack kernel, w, panel stride, k argument, n, x, x stride
    kernel, w, panel_stride, k = field(a, 0), field(a, 1), field(a, 2), field(a, 3)
    n, x, x_stride = field(a, 4), field(a, 5), field(a, 6)
    x += own(header, tid, 1) * x_stride
    first, last = share(header, a, tid, field(header, Head.M))
    for m in range(first, last):
        token = load32(field(header, Head.TOKENS) + 4 * m)
        call(kernel, (w + token // 16 * panel_stride, k, scratch))
        source = scratch + 4 * (token % 16)
        for column in range(n):
            copy(x + m * x_stride + 4 * column, source + 64 * column, 4)


def norm(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """RMSNorm of rows."""
    # a: kernel, x, x stride, y, y stride, w, out, out stride, coded, coded stride, n, eps, x private?,
    #    y private?
    kernel, x, x_stride, y, y_stride = (
        field(a, 0), field(a, 1), field(a, 2), field(a, 3), field(a, 4),
    )  # fmt: skip
    w, out, out_stride = field(a, 5), field(a, 6), field(a, 7)
    coded, coded_stride, n, eps = field(a, 8), field(a, 9), field(a, 10), field(a, 11)
    copy_of = own(header, tid, field(a, 12))
    x += copy_of * x_stride
    out += copy_of * out_stride
    coded += copy_of * coded_stride
    y += own(header, tid, field(a, 13)) * y_stride
    first, last = share(header, a, tid, field(header, Head.M))
    for m in range(first, last):
        call(
            kernel,
            (
                x + m * x_stride, y + m * y_stride, w, out + m * out_stride,
                coded + m * coded_stride, n, eps,
            ),
        )  # fmt: skip


def swiglu(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """silu(gate) * up of rows."""
    # a: kernel, gate, stride, up, out, out stride, coded, coded stride, n
    kernel, gate, stride, up = field(a, 0), field(a, 1), field(a, 2), field(a, 3)
    out, out_stride, coded, coded_stride = (
        field(a, 4), field(a, 5), field(a, 6), field(a, 7),
    )  # fmt: skip
    n = field(a, 8)
    first, last = share(header, a, tid, field(header, Head.M))
    for m in range(first, last):
        call(
            kernel,
            (gate + m * stride, up + m * stride, out + m * out_stride, coded + m * coded_stride, n),
        )


def gather(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Copy the rows whose logits are wanted."""
    # a: x, x stride, to, to stride, bytes, x private?
    x, x_stride, to, to_stride, n = (
        field(a, 0), field(a, 1), field(a, 2), field(a, 3), field(a, 4),
    )  # fmt: skip
    x += own(header, tid, field(a, 5)) * x_stride
    first, last = share(header, a, tid, field(header, Head.R))
    for r in range(first, last):
        m = load32(field(header, Head.LOGIT_ROWS) + 4 * r)
        copy(to + r * to_stride, x + m * x_stride, n)


def put(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Copy rows."""
    # a: x, x stride, to, to stride, bytes, x private?
    x, x_stride, to, to_stride, n = (
        field(a, 0), field(a, 1), field(a, 2), field(a, 3), field(a, 4),
    )  # fmt: skip
    x += own(header, tid, field(a, 5)) * x_stride
    first, last = share(header, a, tid, field(header, Head.M))
    for m in range(first, last):
        copy(to + m * to_stride, x + m * x_stride, n)


def code(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Code rows as int8."""
    # a: kernel, x, x stride, coded, coded stride, n, private?
    kernel, x, x_stride, coded = field(a, 0), field(a, 1), field(a, 2), field(a, 3)
    coded_stride, n = field(a, 4), field(a, 5)
    copy_of = own(header, tid, field(a, 6))
    x += copy_of * x_stride
    coded += copy_of * coded_stride
    first, last = share(header, a, tid, field(header, Head.M))
    for m in range(first, last):
        call(kernel, (x + m * x_stride, coded + m * coded_stride, n))
