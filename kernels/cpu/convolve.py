"""Short causal convolutions inside a step and scaled rows, as shares of one thread (DFlash 2)."""

from __future__ import annotations

from kernels.cpu.instructions import own, share
from kernels.cpu.layout import Head
from kernels.cpu.machine import field, load32, load_float, store_float


def convolve(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Rows weighed with those before them in their sequence, by kernels of their own plus common ones."""
    # a: x, x stride, own kernels (tap, group), their stride, common kernels (tap, column), taps, columns
    #    a group, columns, y, y stride
    x, x_stride, mine, mine_stride = field(a, 0), field(a, 1), field(a, 2), field(a, 3)
    base, taps, group, n = field(a, 4), field(a, 5), field(a, 6), field(a, 7)
    y, y_stride = field(a, 8), field(a, 9)
    sequence = field(header, Head.SEQUENCE)
    n_groups = n // group
    first, last = share(header, a, tid, field(header, Head.M))
    for m in range(first, last):
        reach = 1
        while reach < taps and reach <= m:
            if load32(sequence + 4 * (m - reach)) != load32(sequence + 4 * m):
                break
            reach += 1
        for c in range(n):
            total = 0.0
            for tap in range(reach):
                weight = load_float(base + 4 * (tap * n + c))
                weight += load_float(mine + m * mine_stride + 4 * (tap * n_groups + c // group))
                total += weight * load_float(x + (m - tap) * x_stride + 4 * c)
            store_float(y + m * y_stride + 4 * c, total)


def scale(header: int, a: int, i: int, tid: int, scratch: int) -> None:
    """Rows times a number, in place."""
    # a: x, x stride, columns, address of the number, x private?
    x, x_stride, n, factor = field(a, 0), field(a, 1), field(a, 2), load_float(field(a, 3))
    x += own(header, tid, field(a, 4)) * x_stride
    first, last = share(header, a, tid, field(header, Head.M))
    for m in range(first, last):
        for c in range(n):
            at = x + m * x_stride + 4 * c
            store_float(at, factor * load_float(at))
