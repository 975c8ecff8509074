"""Speed of the CPU products by weight type and rows: billions of multiplications and gigabytes a second.

    python tests/bench/cpu_ops.py [--threads N] [--types Q4_1,Q4_K] [--out 4096] [--in 4096]

Run it on an otherwise idle machine; each figure is the best of some runs.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from engine.config import Precision
from engine.ops.base import Limits, Shape, StepInput
from engine.ops.cpu import CpuOps
from kernels.cpu import instructions
from kernels.cpu.formats import FORMATS
from kernels.cpu.panels import DENSE
from tests.kernels.cpu.helpers import floats, tensor

ROWS = (1, 2, 4, 8, 32, 128, 512)


def measure(kind: str, precision: Precision, threads: int, n: int, k: int) -> list[str]:
    """One line's cells: GMAC/s (GB/s of weights) for each number of rows."""
    ops = CpuOps(threads, precision)
    ops.allocate(Shape(1, k, max(ROWS), 1, 1, 16), Limits(max(ROWS), 1, 8, 64, 8))
    table = np.random.default_rng(0).standard_normal((max(ROWS), k)).astype(np.float32)
    with ops.recording():
        x = ops.embed(ops.upload(floats(table)))
        ops.linear(x, ops.upload(tensor(kind, (n, k))))
    at = next(
        i
        for i, line in enumerate(ops._code)
        if line[0] == ops._runtime.operation(instructions.linear)
    )
    cells = []
    for rows in ROWS:
        number = np.arange(rows, dtype=np.int32)
        zeros = np.zeros(rows, np.int32)
        ops.run(StepInput(number, zeros, zeros, np.zeros((1, 8), np.int32), number[:0]))
        best = float("inf")
        for _ in range(max(4, 60 // rows)):
            start = time.perf_counter()
            ops._run(at, at + 1)
            best = min(best, time.perf_counter() - start)
        gigabytes = ops._weights[-1].data.nbytes / best / 1e9
        cells.append(f"{rows * n * k / best / 1e9:6.1f} ({gigabytes:4.1f})")
    ops.close()
    return cells


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--types", default=",".join([*FORMATS, *DENSE]))
    parser.add_argument("--out", type=int, default=4096)
    parser.add_argument("--in", dest="inputs", type=int, default=4096)
    options = parser.parse_args()
    print("GMAC/s (GB/s)".ljust(13), *(f"M={m}".rjust(13) for m in ROWS))
    for kind in options.types.split(","):
        for precision in Precision:
            if precision is Precision.FAST and kind in DENSE:
                continue
            cells = measure(kind, precision, options.threads, options.out, options.inputs)
            print(f"{kind} {precision.value}".ljust(13), *(c.rjust(13) for c in cells), flush=True)


if __name__ == "__main__":
    main()
