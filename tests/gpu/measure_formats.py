"""Times a product with matrices of each packed format on the card, beside a plain read of the same bytes.

    python -m tests.gpu.measure_formats [--shape 24576,4096] [--rows 1,8,16,32] [--formats Q4_K,IQ4_XS]
    python -m tests.gpu.measure_formats --reference

A graph of launches over enough matrices that no cache holds them, each started before the one in front has
ended; medians of its replays. "of read" is the bytes of a matrix over the time, as a share of what a kernel
that only reads gets. With --reference the shapes are those of `reference.json` and its figures stand beside
ours; its "two scales" are activations as ours are, "one scale" for 256 columns is cheaper and less exact.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from engine.ops.cuda_buffers import Launch, OneSide, Pass, together
from engine.ops.cuda_device import Card, Weight
from engine.quants import TYPES, by_name
from kernels import variants
from kernels.variants import F16, F16_TILES, INT8
from tests.gpu.measure import read_bandwidth

TOTAL = 1 << 29
"""Bytes of matrices that a replay reads."""

REFERENCE = Path(__file__).with_name("reference.json")
NEAR = 0.05
"""That a product may be slower than its reference."""

_REPLAYS = 10


def _noise(card: Card, size: int) -> int:
    """Random bytes on the card: lookups in codebooks then go everywhere."""
    block = np.random.default_rng(1).integers(0, 256, min(size, 16 << 20), np.uint8)
    address = card.allocate(size, {})
    for at in range(0, size, block.nbytes):
        card.copy(address + at, block.ctypes.data, min(block.nbytes, size - at))
    card.stream.synchronize()
    return address


def seconds(card: Card, type_id: int, rows: int, columns: int, m: int) -> tuple[float, int]:
    """Of one product with `m` rows of activations, and the bytes of its matrix."""
    form = F16 if type_id == F16_TILES else INT8
    p = Pass(m, form, 1, 1)
    w = Weight(0, rows, columns, type_id, 0)
    build, (cut,) = together([Launch((w,), 0)], p, card.arch, card.processors)
    size = w.tiles * w.superblocks * variants.chunk(type_id)
    n = max(2, TOTAL // size)
    kernel = card.kernel(build.variant, "matmul", build.shared)
    matrices, x = _noise(card, n * size), _noise(card, w.superblocks * p.groups * 4128)
    y = card.put_bytes(4 * (m * rows + 2 * cut.blocks * cut.build.part_floats))
    try:
        with card.capture() as captured:
            for i in range(n):
                sides = OneSide(count=1, groups=p.groups, rows=m)
                side = sides.side[0]
                side.weights[0], side.ends[:] = matrices + i * size, [w.tiles, w.tiles]
                side.x, side.y, side.parts = x, y, y + 4 * m * rows
                side.row_tiles, side.rows, side.stride = w.tiles, rows, rows
                side.superblocks, side.batch_tiles = w.superblocks, cut.batch_tiles
                side.units, side.per_block = cut.units, cut.per_block
                card.launch(kernel, (cut.blocks, 1, 1), 128, (sides,), card.dependent)
        times = []
        for _ in range(_REPLAYS):
            begin = card.event()
            captured.graph.launch(card.stream)
            end = card.event()
            card.stream.synchronize()
            times.append(card.seconds(begin, end) / n)
        return float(np.median(times[1:])), size
    finally:
        card.free([matrices, x, y])


def formats(card: Card, bandwidth: float, wanted: Sequence[int], shape: str, rows: str) -> None:
    """Print a line for each format."""
    height, columns = map(int, shape.split(","))
    batches = [int(m) for m in rows.split(",")]
    for type_id in wanted:
        found = [seconds(card, type_id, height, columns, m) for m in batches]
        size = found[0][1]
        name = "F16" if type_id == F16_TILES else TYPES[type_id].name
        cells = (f"{m}: {t * 1e6:6.1f} us" for m, (t, _) in zip(batches, found, strict=True))
        share = size / found[0][0] / bandwidth
        print(
            f"{name:8s} {size * 8 / height / columns:5.2f} bits, read {size / bandwidth * 1e6:5.1f} us; "
            f"{', '.join(cells)}; {share:.0%} of read",
            flush=True,
        )


def beside_reference(card: Card, data: dict[str, Any]) -> None:
    """Print a Markdown table of ours / the reference's microseconds and their ratio."""
    batches, counts = data["rows"], {"two scales": [0, 0], "one scale": [0, 0]}
    print(f"| format | shape | activations | {' | '.join(f'M = {m}' for m in batches)} |")
    print(f"|{'---|' * (3 + len(batches))}")
    for row in data["us"]:
        type_id, (height, columns) = by_name(row["format"]).id, row["shape"]
        ours = [seconds(card, type_id, height, columns, m)[0] * 1e6 for m in batches]
        for kind, count in counts.items():
            if theirs := row.get(kind):
                ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
                count[0] += sum(ratio <= 1 + NEAR for ratio in ratios)
                count[1] += len(ratios)
                cells = " | ".join(
                    f"{a:.1f} / {b:g} = {ratio:.2f}"
                    for a, b, ratio in zip(ours, theirs, ratios, strict=True)
                )
                print(f"| {row['format']} | {height} x {columns} | {kind} | {cells} |", flush=True)
    print()
    for kind, (near, n) in counts.items():
        print(f"{near} of {n} are within {NEAR:.0%} of the reference with {kind}.")
    print(f"Reference: {data['source']}; it read {data['read_gb_s']:,} GB/s.")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="24576,4096", help="rows and columns of the matrices")
    parser.add_argument("--rows", default="1,8,16,32", help="rows of activations")
    parser.add_argument("--formats", help="names; all that are packed if left out")
    parser.add_argument(
        "--reference", action="store_true", help="shapes of reference.json beside it"
    )
    parser.add_argument("--cache", type=Path, help="folder for compiled kernels")
    args = parser.parse_args(arguments)
    names = args.formats.split(",") if args.formats else []
    wanted = [by_name(name).id for name in names] or [*variants.PACKED, F16_TILES]
    data = json.loads(REFERENCE.read_text(encoding="utf-8"))
    if args.reference:
        wanted = sorted({by_name(row["format"]).id for row in data["us"]})
    card = Card(0, args.cache, None)
    bandwidth = read_bandwidth()
    shape = "" if args.reference else f", {args.shape}"
    print(f"{card.name}, read {bandwidth / 1e9:,.0f} GB/s{shape}\n")
    card.build(v for type_id in wanted for v in variants.of_type(type_id, card.arch))
    if args.reference:
        beside_reference(card, data)
    else:
        formats(card, bandwidth, wanted, args.shape, args.rows)
    card.close()


if __name__ == "__main__":
    main()
