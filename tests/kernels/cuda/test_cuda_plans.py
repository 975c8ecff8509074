"""How products are cut and read again, how buffers share memory, and what a step sends: no card needed."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from engine.ops.base import Limits, StepInput
from engine.ops.cuda_buffers import (
    GROUP,
    Buffer,
    Launch,
    Pass,
    Product,
    cut_of,
    even_shares,
    place,
    product_of,
    put_together,
    sizes,
    together,
)
from engine.ops.cuda_device import Weight, bytes_on_card
from engine.ops.cuda_step import (
    BEFORE,
    LAST,
    MASKS,
    PLACES,
    POSITIONS,
    SEQUENCE,
    TILES,
    TOKENS,
    VISITS,
    WANTED,
    StepVariables,
    part_of,
)
from engine.ops.visits import LEAF
from kernels import variants
from kernels.loader import SOURCES
from kernels.variants import F16, INT8
from tests.kernels.cuda.on_host import build

HERE = Path(__file__).parent
DRIVER = """
extern "C" int addends(const Product* p, int m, int row, const float** first, const float** others,
                       int* step) {
  const Addends a = addends_of(*p, m, row);
  *first = a.first, *others = a.others, *step = a.step;
  return a.count;
}
// The sum of all, and of what `shares` warps would add up.
extern "C" void sums(const Product* p, int m, int row, int shares, float* all, float* shared) {
  const Addends a = addends_of(*p, m, row);
  float v[8], w[4];
  add_up(a, v), add_up(a, w);
  for (int i = 0; i < 8; i++) all[i] = v[i], shared[i] = 0;
  for (int i = 0; i < 4; i++) all[8 + i] = w[i];
  for (int s = 0; s < shares; s++) {
    const Addends mine = share_of(a, s, shares);
    Coming<8, 2>(mine).add_up(mine, v);
    for (int i = 0; i < 8; i++) shared[i] += v[i];
  }
}
"""


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """`addends_of` of product.cuh, compiled for the processor."""
    folder = tmp_path_factory.mktemp("host")
    text = (SOURCES / "include" / "product.cuh").read_text(encoding="utf-8")
    text = (
        text[: text.index("// The same of R rows with the parts shared")]
        .replace('#include "ptx.cuh"', "")
        .replace("#pragma once", "")
    )
    source = folder / "product.cpp"
    source.write_text(f'#include "{HERE / "host.h"}"\n' + text + DRIVER, encoding="utf-8")
    return build(source, folder / "product.so")


def compute(
    buffer: Buffer, launch: Launch, index: int, p: Pass, arch: int, processors: int, y: np.ndarray,
    parts: np.ndarray, values: np.ndarray,
) -> None:  # fmt: skip
    """What matmul.cu writes, when superblock s of row r and batch row m contributes values[m, r, s]."""
    first = launch.weights[0]
    cut = cut_of(launch, p, arch, processors)
    build, batch_tiles, units, per_block = cut.build, cut.batch_tiles, cut.units, cut.per_block
    rows, columns, superblocks = build.tiles * 16, GROUP * build.groups, first.superblocks
    for block in range(-(-units // per_block)):
        unit, last = block * per_block, min(units, (block + 1) * per_block)
        while unit < last:
            tile, begin = divmod(unit, superblocks)
            end = min(superblocks, begin + last - unit)
            unit += end - begin
            group, batch = divmod(tile, batch_tiles)
            for m in range(batch * columns, min(p.rows, (batch + 1) * columns)):
                for r in range(rows):
                    row = group * rows + r
                    if row >= launch.rows:
                        continue
                    value = values[m, launch.start + row, begin:end].sum()
                    if end - begin == superblocks:
                        y[m, launch.start + row] = value
                    else:
                        slot = 2 * block + (begin == 0)
                        parts[slot * rows * columns + (m % columns) * rows + r] = value


@pytest.mark.parametrize("arch", (75, 86, 90))
@pytest.mark.parametrize("rows_of_batch", (1, 9, 22, 32, 40, 130))
@pytest.mark.parametrize("apart", (False, True))
def test_readers_find_every_part_once(
    reader: ctypes.CDLL, arch: int, rows_of_batch: int, apart: bool
) -> None:
    rng = np.random.default_rng()
    form = int(rng.choice((INT8, F16))) if rows_of_batch <= 32 else F16
    processors = int(rng.integers(1, 20))
    first, second, third = (int(t) for t in rng.permutation([*variants.PACKED])[:3])
    shapes = ((first, (64, 32), 7), (second, (48,), 7), (third, (200,), 3))
    launches, start = [], 0
    for type_id, heights, superblocks in shapes:
        weights = tuple(Weight(0, h, 256 * superblocks, type_id, 0) for h in heights)
        launches.append(Launch(weights, start))
        start += sum(heights)
    buffer = Buffer(start, launches=tuple(launches))
    if not apart:
        put_together(launches, arch)
    mixed = sum(variants.mixes(launch.type_id, arch) for launch in launches)
    assert max(len(launch.beside) for launch in launches) == (1 if apart else max(1, mixed))
    buffer.sizes = sizes(buffer, 192, arch, processors)
    memory = np.full(sum(buffer.sizes.values()) // 4, np.nan, np.float32)
    buffer.address = memory.ctypes.data
    p = Pass(rows_of_batch, form, 1, 1)
    values = rng.integers(1, 1000, (rows_of_batch, start, 7)).astype(np.float32)
    total = np.empty((rows_of_batch, start), np.float32)

    def piece(name: str) -> np.ndarray:
        begin = (buffer.at(name) - buffer.address) // 4
        return memory[begin : begin + buffer.sizes[name] // 4]

    y = piece("y")[: rows_of_batch * start].reshape(rows_of_batch, start)
    for i, launch in enumerate(launches):
        depth = launch.weights[0].superblocks
        span = slice(launch.start, launch.start + launch.rows)
        total[:, span] = values[:, span, :depth].sum(axis=2)
        compute(buffer, launch, i, p, arch, processors, y, piece(f"parts{i}"), values[:, :, :depth])
    product = product_of(buffer, p, arch, processors)
    first, others, step = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
    whole, shared = (ctypes.c_float * 12)(), (ctypes.c_float * 8)()
    for m in range(rows_of_batch):
        for row in range(0, start, 3):
            n = reader.addends(
                ctypes.byref(product),
                m,
                row,
                ctypes.byref(first),
                ctypes.byref(others),
                ctypes.byref(step),
            )
            at = [first.value] + [others.value + 4 * i * step.value for i in range(1, n)]
            got = sum(memory[(address - buffer.address) // 4] for address in at)
            assert got == total[m, row], (m, row, n)
        for row in range(0, start, 8):
            n_shares = int(rng.integers(1, 9))
            reader.sums(
                ctypes.byref(product), m, row, n_shares, ctypes.byref(whole), ctypes.byref(shared)
            )
            want = total[m, row : row + 8].tolist()
            assert whole[:] == want + want[:4] and shared[:] == want


def test_a_row_may_be_the_sum_of_rows_with_factors(reader: ctypes.CDLL) -> None:
    rng = np.random.default_rng()
    y, factors = rng.random((15, 48), np.float32), rng.random(15, np.float32)
    launch = Launch((Weight(0, 48, 0, 0, 0),), 0, factors=factors.ctypes.data, addends=3)
    buffer = Buffer(48, launches=(launch,), sizes={"y": y.nbytes}, address=y.ctypes.data)
    product = product_of(buffer, Pass(5, INT8, 1, 1), 90, 132)
    whole, shared = (ctypes.c_float * 12)(), (ctypes.c_float * 8)()
    for m in range(5):
        for shares in (1, 2, 4):
            found = ctypes.byref(whole), ctypes.byref(shared)
            reader.sums(ctypes.byref(product), m, 8, shares, *found)
            want = factors[3 * m : 3 * m + 3] @ y[3 * m : 3 * m + 3, 8:16]
            np.testing.assert_allclose(shared[:], want, rtol=1e-5)
            np.testing.assert_allclose(whole[:], [*want, *want[:4]], rtol=1e-5)


def test_the_cut_is_the_same_for_all_batches_of_a_form() -> None:
    launches = [
        Launch((Weight(0, 4096, 4096, 12, 0), Weight(0, 1024, 4096, 12, 0)), 0),
        Launch((Weight(0, 1024, 4096, 14, 0),), 5120),
    ]
    for arch in variants.ARCHITECTURES:
        plans = {
            tuple((cut.build.tiles, cut.per_block) for cut in cuts)
            for m in (1, 8, 9, 16, 17, 24, 25, 32)
            for _, cuts in [together(launches, Pass(m, INT8, 1, 1), arch, 132)]
        }
        assert len(plans) == 1


def test_batch_tiles_are_cut_at_the_same_places() -> None:
    launch = Launch((Weight(0, 640, 256 * 7, 8, 0),), 0)
    for form in (INT8, F16):
        for arch in variants.ARCHITECTURES:
            for processors in (3, 40, 132):
                found = set()
                for m in (8, 16, 17, 24, 32):
                    cut = cut_of(launch, Pass(m, form, 1, 1), arch, processors)
                    for tile in range(-(-40 // cut.build.tiles) * cut.batch_tiles):
                        begin = 7 * tile
                        cuts = [i for i in range(1, 7) if (begin + i) % cut.per_block == 0]
                        found.add((tile // cut.batch_tiles, *cuts))
                assert len(found) == len({row_tile for row_tile, *_ in found})


def test_products_in_one_launch_end_together() -> None:
    for slots in (1, 3, 40, 264):
        work = [(3072, 2, 36), (40, 2, 53), (1, 1, 90)]
        found = even_shares(work, slots)
        blocks = [-(-units // n) for (units, _, _), n in zip(work, found, strict=True)]
        assert all(n >= least for (_, least, _), n in zip(work, found, strict=True))
        if slots < 40:
            continue
        assert sum(blocks) <= slots
        times = [min(units, n) * cost for (units, _, cost), n in zip(work, found, strict=True)]
        ideal = sum(units * cost for units, _, cost in work) / slots
        assert max(times) <= max(ideal * 1.1 + 53, 90, 2 * 53)
    assert even_shares([(512, 2, 9)], 264) == [2] and even_shares([(3072, 2, 9)], 264) == [12]


def test_sets_have_few_products_and_formats() -> None:
    def set_of(*types: int) -> list[int]:
        launches = tuple(
            Launch((Weight(0, 64, 256, type_id, 0),), 64 * i) for i, type_id in enumerate(types)
        )
        put_together(launches, 90)
        return [len(launch.beside) for launch in launches]

    assert set_of(12, 14, 12, 13) == [4, 4, 4, 4]
    assert set_of(12, 14, 12, 13, 12) == [4, 4, 4, 4, 1]
    assert set_of(12, 14, 13, 8) == [3, 3, 3, 1]
    assert set_of(12, 0, 14) == [2, 1, 2]
    assert set_of(12, 11, 14) == [2, 1, 2]  # which is unpacked slowly


def test_bytes_on_the_card_are_those_of_whole_chunks() -> None:
    assert bytes_on_card((576,), 1) == 4 * 576
    assert bytes_on_card((33, 576), 8) == 3 * 3 * 4352
    assert bytes_on_card((48, 4), 0) == 48 * 4 * 4  # the taps of a convolution
    assert bytes_on_card((4, 32, 64), 0) == 4 * 32 * 64 * 4
    assert bytes_on_card((32, 300), 30) == 2 * 2 * 8192
    assert bytes_on_card((2, 32, 64), 40) == 4 * 8192  # NVFP4 has no packed layout: f16


def test_structures_have_the_size_of_the_kernels_ones() -> None:
    assert ctypes.sizeof(Product) == 8 + 4 + 4 + 4 * 40 + 8 + 4 + 4 + 4 + 4


def test_buffers_that_live_at_once_do_not_overlap() -> None:
    rng = np.random.default_rng()
    buffers = []
    for _ in range(40):
        buffer = Buffer(8, sizes={"32": 256 * int(rng.integers(1, 9))})
        buffer.first = int(rng.integers(0, 30))
        buffer.last = buffer.first + int(rng.integers(0, 5))
        buffers.append(buffer)
    offsets, total = place(buffers)
    for i, a in enumerate(buffers):
        assert offsets[a] + a.sizes["32"] <= total
        for b in buffers[:i]:
            alive = a.first <= b.last and b.first <= a.last
            apart = (
                offsets[a] + a.sizes["32"] <= offsets[b] or offsets[b] + b.sizes["32"] <= offsets[a]
            )
            assert apart or not alive
    assert total < sum(b.sizes["32"] for b in buffers)


class FakeCard:
    """Card whose memory is an array."""

    def __init__(self) -> None:
        self.memory = np.full(1 << 16, -7, np.int32)
        self.stream = None

    def pinned(self, size: int) -> tuple[np.ndarray, None]:
        return np.zeros(size, np.uint8), None

    def mark(self) -> SimpleNamespace:
        return SimpleNamespace(record=lambda stream: None, synchronize=lambda: None)

    def copy(self, target: int, source: int, size: int) -> None:
        ctypes.memmove(self.memory.ctypes.data + target, source, size)


@pytest.mark.parametrize("m", (1, 5, 32, 33, 70))
def test_a_step_arrives_where_its_pass_looks(m: int) -> None:
    limits = Limits(rows=80, sequences=3, pages=20, page_tokens=64, pages_per_sequence=5)
    card = FakeCard()
    variables = StepVariables(card, 256, 128, limits, lambda n: 4 if n <= 32 else 16)
    rng = np.random.default_rng()
    sequence = np.sort(rng.integers(0, 2, m)).astype(np.int32)
    positions = np.arange(10, 10 + m, dtype=np.int32)
    tokens = rng.integers(0, 999, m).astype(np.int32)
    table = rng.integers(0, 20, (2, 4)).astype(np.int32)
    step = StepInput(tokens, positions, sequence, table, np.array([m - 1], np.int32))
    rows = m if m > 32 else min(b for b in (1, 8, 32) if b >= m)
    count = variables.send(step, rows)
    p = Pass(rows, INT8 if m <= 32 else F16, count, 1)

    def read(array: int, n: int) -> list[int]:
        at = variables.at(array, p) // 4
        return card.memory[at : at + n].tolist()

    assert read(TOKENS, rows) == tokens.tolist() + [0] * (rows - m)
    assert read(POSITIONS, rows) == positions.tolist() + [-1] * (rows - m)
    assert read(SEQUENCE, rows) == sequence.tolist() + [0] * (rows - m)
    assert read(WANTED, 1) == [m - 1]
    assert variables.at(TILES, p) % 16 == 0
    assert read(PLACES, m) == read(LAST, m) and read(MASKS, m) == [-1] * m
    assert read(LAST, rows)[m:] == [-1] * (rows - m)
    tiles = np.array(read(TILES, 4 * rows)).reshape(rows, 4)
    covered = []
    for first, n, seen, owner in tiles[:count]:
        assert 1 <= n <= (4 if m <= 32 else 16) and set(sequence[first : first + n]) == {owner}
        assert seen == read(PLACES, m)[first + n - 1] + 1
        covered += range(first, first + n)
    assert covered == list(range(m)) and not tiles[count:].any()
    at = variables.page_table // 4
    assert card.memory[at : at + 10].reshape(2, 5)[:, :4].tolist() == table.tolist()


def test_a_tree_sees_its_ancestors_and_a_sequence_has_its_slot() -> None:
    limits = Limits(rows=80, sequences=3, pages=20, page_tokens=64, pages_per_sequence=5, slots=4)
    card = FakeCard()
    variables = StepVariables(card, 256, 128, limits, lambda n: 4 if n <= 32 else 16)
    sequence = np.array([0, 0, 2, 2, 2, 2], np.int32)
    positions = np.array([5, 6, 70, 71, 71, 72], np.int32)
    parents = np.array([-1, 0, -1, 2, 2, 4], np.int32)
    index = np.arange(6, dtype=np.int32)
    table = np.zeros((3, 4), np.int32)
    step = StepInput(
        index, positions, sequence, table, index[:1], np.array([3, 0, 1], np.int32), parents,
        np.array([0, 0, 1], np.int32),
    )  # fmt: skip
    p = Pass(8, INT8, variables.send(step, 8), 1)

    def read(array: int) -> list[int]:
        at = variables.at(array, p) // 4
        return card.memory[at : at + 6].tolist()

    assert read(PLACES) == [5, 6, 70, 71, 72, 73] == read(LAST)
    assert read(MASKS) == [-1, -1, 0b1, 0b11, 0b101, 0b1101]
    assert read(BEFORE) == [-1, 0, -1, 2, 2, 4]
    assert read(VISITS) == [0, 1, 0, 1 | LEAF, 2, 3 | LEAF]
    spans = card.memory[variables.spans // 4 :][:12].reshape(3, 4).tolist()
    first, last = (
        3 << 16 | 3 << 2,
        1 << 16 | 1 << 2 | 1,
    )  # from and to a slot, and the last one is tried
    assert spans == [[0, 2, first, 5], [0, 0, 0, 0], [2, 4, last, 70]]


def test_a_part_of_a_step_keeps_whole_sequences() -> None:
    step = StepInput(
        np.arange(10, 16, dtype=np.int32), np.array([5, 6, 70, 71, 71, 72], np.int32),
        np.array([0, 0, 2, 2, 2, 2], np.int32), np.zeros((3, 4), np.int32),
        np.array([1, 2, 5], np.int32), np.array([3, 0, 1], np.int32),
        np.array([-1, 0, -1, 2, 2, 4], np.int32), np.array([0, 0, 1], np.int32),
    )  # fmt: skip
    tried = step.tried[step.sequence] != 0
    wanted = np.isin(np.arange(6), step.logit_rows)
    part = part_of(step, tried, tried & wanted)
    assert part.tokens.tolist() == [12, 13, 14, 15] and part.sequence.tolist() == [2] * 4
    assert part.parents.tolist() == [-1, 0, 0, 2] and part.logit_rows.tolist() == [0, 3]
    rest = part_of(step, ~tried, ~tried & wanted)
    assert rest.parents.tolist() == [-1, 0] and rest.logit_rows.tolist() == [1]
