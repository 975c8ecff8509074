"""What the operations on a card share: nodes of a recording, their buffers, and matrix products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import UnsupportedModel
from engine.ops.base import Limits, Rope, Shape
from engine.ops.cuda_buffers import (
    GROUP,
    LAUNCHES,
    STACKED,
    Buffer,
    Float,
    Int,
    Launch,
    Node,
    OneSide,
    Pass,
    Pointer,
    Product,
    Sides,
    Tape,
    place,
    product_of,
    put_together,
    sizes,
    together,
)
from engine.ops.cuda_device import SUPERBLOCK, TILE, Card, Weight
from engine.ops.cuda_library import Library, LibraryError
from engine.ops.cuda_step import StepVariables
from engine.ops.cuda_trust import Distrust
from kernels import variants
from kernels.variants import F16, INT8, Variant

SCRATCH_BYTES = 192 << 20
"""Most bytes of weights that are f16 for a library's product at once."""


class Recorder:
    """Takes down operations as nodes; `CudaOps` allocates and runs."""

    card: Card
    shape: Shape
    _limits: Limits
    _rows: int
    _step: StepVariables
    _short_form: int
    _dependent: bool
    _library: Library | None
    distrust: Distrust
    _tape: Tape
    _own: list[int]
    _memory: dict[str, int]
    _ropes: dict[int, tuple[Rope, int]]
    _scratch: tuple[int, int, int, int]

    def _allocate(self, owner: str, size: int) -> int:
        addends = self._memory | {owner: self._memory[owner] + size}
        address = self.card.allocate(size, addends)
        self._memory[owner] += size
        self._own.append(address)
        return address

    def _put(self, data: NDArray[Any]) -> int:
        """A copy of a small array."""
        address = self.card.put(data)
        self._memory["work"] += data.nbytes
        self._own.append(address)
        return address

    def _add(
        self, launch: Callable[[Pass], None], *buffers: Buffer, layer: int | None = None
    ) -> Node:
        node, tape = Node(launch, buffers, layer), self._tape
        for buffer in (*buffers, *(b.source for b in buffers if b.source)):
            if buffer not in tape.buffers:
                buffer.first = len(tape.nodes)
                tape.buffers.append(buffer)
            buffer.last = len(tape.nodes)
        tape.nodes.append(node)
        return node

    def _place_buffers(self) -> None:
        """Give buffers whose lives do not overlap the same memory, and the library its scratch."""
        for buffer in self._tape.buffers:
            buffer.sizes = sizes(buffer, self._rows, self.card.arch, self.card.processors)
        for buffer in self._tape.given:
            buffer.first, buffer.last = 0, len(self._tape.nodes)
        offsets, total = place(self._tape.buffers)
        base = self._allocate("work", total)
        for buffer, offset in offsets.items():
            buffer.address = base + offset
        launches = [
            launch
            for b in self._tape.buffers
            if b.rows is None
            for launch in b.launches
            if launch.weights[0].packed
        ]
        sets = {
            tuple(sorted({x.type_id for x in launch.beside}))
            for b in self._tape.buffers
            for launch in b.launches
            if len(launch.beside) > 1
        }
        # Whatever a graph needs is there before it is captured.
        arch, form = self.card.arch, self._short_form
        packed = {x.type_id for b in self._tape.buffers for x in b.launches if x.weights[0].packed}
        wanted = [v for type_id in packed for v in variants.of_type(type_id, arch, form)]
        self.card.build([*wanted, *(v for t in sets for v in variants.of_set(t, form, arch))])
        if self._library and launches:
            types = {launch.weights[0].type_id for launch in launches}
            self.card.build([Variant("rows.cu"), *map(variants.dequantise, types)])
            weights = min(max(map(_f16_bytes, launches)), SCRATCH_BYTES)
            widest = max(launch.weights[0].superblocks for launch in launches) * SUPERBLOCK
            self._scratch = (*self._room(0, weights), *self._room(2, self._rows * widest * 2))

    def _room(self, which: int, size: int) -> tuple[int, int]:
        """Scratch of at least `size` bytes: address and size."""
        there = self._scratch[which : which + 2]
        return there if there[1] >= size else (self._allocate("work", size), size)  # type: ignore[return-value]

    def linear(self, x: Buffer, *weights: Weight) -> Buffer:
        launches: list[Launch] = []
        start = 0
        for weight in weights:
            last = launches[-1] if launches else None
            if (
                last
                and weight.packed
                and last.weights[0].type_id == weight.type_id
                and last.weights[-1].rows % TILE == 0
                and len(last.weights) < STACKED
            ):
                last.weights += (weight,)
            else:
                launches.append(Launch((weight,), start))
            start += weight.rows
            x.forms.add(form_read(weight))
            x.weight_bytes += weight.size
        if len(launches) > LAUNCHES:
            raise UnsupportedModel(
                f"{len(launches)} formats side by side; expected at most {LAUNCHES}."
            )
        y = Buffer(start, launches=tuple(launches), source=None if x.eps is None else x)
        if not self.distrust.apart:
            put_together(launches, self.card.arch)

        def launch(p: Pass) -> None:
            for i, product in enumerate(launches):
                if product is product.beside[0] or not p.short:
                    self._matmul(x, y, product, i, p)

        self._add(launch, x, y)
        return y

    # Launching

    def _launch(
        self, kernel: Any, grid: tuple[int, int, int], threads: int, args: tuple[Any, ...]
    ) -> None:
        self.card.launch(kernel, grid, threads, args, self._dependent)

    def _launch_rows(self, kernel: Any, width: int, rows: int, args: tuple[Any, ...]) -> None:
        """A kernel whose warps take 256 columns of a row each; few of them are spread over the card."""
        warps = 1 if rows <= GROUP else 4
        grid = (-(-width // (warps * SUPERBLOCK)), rows, 1)
        self._launch(kernel, grid, 32 * warps, args)

    def _launch_wide(self, kernel: Any, width: int, p: Pass, args: tuple[Any, ...]) -> None:
        """`_launch_rows` of all rows of a pass."""
        self._launch_rows(kernel, width, p.rows, args)

    def _kernels(self, file: str, *names: str) -> tuple[Any, ...]:
        """Kernels of one file."""
        return tuple(self.card.kernel(Variant(file), name) for name in names)

    def _launch_shared(
        self, kernel: Any, width: int, p: Pass, args: tuple[Any, ...], warps: int = 4, rows: int = 1
    ) -> None:
        """A kernel whose blocks take 256 columns of `rows`; in short steps `warps` share the addends."""
        threads = 32 * warps if p.short else 32
        self._launch(kernel, (-(-width // SUPERBLOCK), p.rows // rows, 1), threads, args)

    def _launch_many(self, kernel: Any, width: int, p: Pass, args: tuple[Any, ...]) -> None:
        """A kernel for many rows whose warps take 256 columns of two rows each."""
        self._launch(kernel, (-(-width // SUPERBLOCK), -(-p.rows // 8), 1), 128, args)

    def _product(self, buffer: Buffer, p: Pass) -> Product:
        return product_of(buffer, p, self.card.arch, self.card.processors)

    def _read(self, value: Buffer, p: Pass) -> Product:
        """A product, or other rows in float32, as kernels take products."""
        if value.launches:
            return self._product(value, p)
        product = Product(value.at("32"), value.width)
        if value.eps is not None:
            product.squares = value.at("squares")
            product.n_squares = -(-value.width // SUPERBLOCK)
            product.columns, product.eps = value.width, value.eps
        return product

    def _matmul(self, x: Buffer, y: Buffer, launch: Launch, i: int, p: Pass) -> None:
        """The product number `i` of y, and in short steps all beside it."""
        first, beside = launch.weights[0], launch.beside if p.short else [launch]
        for one in beside:
            one.factors = 0
        if not first.packed:
            variant = Variant("matmul_float.cu", (("TYPE", first.type_id),))
            args = (
                Pointer(first.address), Pointer(x.at("32")), Pointer(y.at("y") + 4 * launch.start),
                Int(first.rows), Int(first.columns), Int(y.width), Int(p.rows),
            )  # fmt: skip
            if p.short:
                name, rows, batch, threads = "matmul_float_short", 1, 8, 128
            elif first.rows < 64:
                name, rows, batch, threads = "matmul_float", 4, 8, 128
            else:
                name, rows, batch, threads = "matmul_float_tiles", 64, 64, 512
            grid = (-(-first.rows // rows), -(-p.rows // batch), 1)
            self._launch(self.card.kernel(variant, name), grid, threads, args)
            return
        if self._library and not p.short and self._scratch[0]:
            factors = y.at("factors")

            def by_library() -> None:
                self._matmul_library(x, y, launch, factors, p)

            shape = (first.type_id, launch.rows, first.columns, p.rows)
            try:
                if self._library.is_faster(
                    shape, by_library, lambda: self._matmul_fused(x, y, [launch], p)
                ):
                    by_library()
                    launch.factors = factors
                    return
            except LibraryError as error:
                self._library.gave_up(error)
        self._matmul_fused(x, y, beside, p)

    def _matmul_fused(self, x: Buffer, y: Buffer, launches: list[Launch], p: Pass) -> None:
        """Products of packed weights in one launch."""
        build, cuts = together(launches, p, self.card.arch, self.card.processors)
        sides = OneSide() if len(launches) == 1 else Sides()
        types, blocks = list(build.formats), 0
        for side, launch, cut in zip(sides.side, launches, cuts, strict=False):
            weights, i = launch.weights, y.launches.index(launch)
            ends = np.cumsum([w.tiles for w in weights]).tolist()
            for j, weight in enumerate(weights):
                side.weights[j] = weight.address
            side.ends[:] = [ends[min(j, len(ends) - 1)] for j in range(2)]
            side.x = x.at(str(p.form_of(launch.type_id)))
            side.y = y.at("y") + 4 * launch.start
            side.parts = y.at(f"parts{i}")
            side.format, side.first_block = types.index(launch.type_id), blocks
            side.row_tiles, side.rows, side.stride = ends[-1], launch.rows, y.width
            side.superblocks, side.batch_tiles = weights[0].superblocks, cut.batch_tiles
            side.units, side.per_block = cut.units, cut.per_block
            blocks += cut.blocks
        sides.count, sides.groups, sides.rows = len(launches), p.groups, p.rows
        kernel = self.card.kernel(build.variant, "matmul", build.shared)
        self._launch(kernel, (blocks, 1, 1), 128, (sides,))

    def _matmul_library(self, x: Buffer, y: Buffer, launch: Launch, factors: int, p: Pass) -> None:
        """Weights become f16, a piece of them at a time, and cuBLAS multiplies."""
        assert self._library is not None
        weights_there, _, rows_there, _ = self._scratch
        superblocks = launch.weights[0].superblocks
        columns = superblocks * SUPERBLOCK
        args: tuple[Any, ...] = (
            Pointer(x.at(str(F16))), Int(p.groups), Int(superblocks), Int(p.rows),
            Pointer(rows_there), Pointer(factors),
        )  # fmt: skip
        kernel = self.card.kernel(Variant("rows.cu"), "to_rows")
        self._launch(kernel, (-(-superblocks // 4), -(-p.rows // GROUP), 1), 128, args)
        type_id = launch.weights[0].type_id
        kernel = self.card.kernel(variants.dequantise(type_id), "dequantise")
        most = max(1, SCRATCH_BYTES // (TILE * columns * 2))
        scale = 1.0 if type_id == variants.F16_TILES else 1 / 64
        row = launch.start
        pending: list[tuple[int, int]] = []  # address and tiles of what goes into one product
        pieces = [
            (w.address + at * superblocks * variants.chunk(type_id), min(most, w.tiles - at),
             min(most * TILE, w.rows - at * TILE))
            for w in launch.weights
            for at in range(0, w.tiles, most)
        ]  # fmt: skip
        rows = 0

        def multiply() -> None:
            nonlocal row, rows
            at = weights_there
            for address, tiles in pending:
                chunks = tiles * superblocks
                args = Pointer(address), Pointer(at), Int(superblocks), Int(chunks)
                self._launch(kernel, (-(-chunks // 4), 1, 1), 128, args)
                at += tiles * TILE * columns * 2
            assert self._library is not None
            self._library.multiply(
                weights_there,
                rows_there,
                y.at("y") + 4 * row,
                rows,
                p.rows,
                columns,
                y.width,
                scale,
            )
            row += rows
            pending.clear()
            rows = 0

        for address, tiles, count in pieces:
            if sum(n for _, n in pending) + tiles > most:
                multiply()
            pending.append((address, tiles))
            rows += count
        multiply()

    def _frequencies(self, rope: Rope) -> int:
        """The angles of a rope's pairs for each position, over pi, as doubles on the card."""
        known = self._ropes.get(id(rope))
        if known is None:
            known = self._ropes[id(rope)] = (rope, self._put(rope.frequencies() / np.pi))
        return known[1]


def _f16_bytes(launch: Launch) -> int:
    """Bytes of the weights of a launch as f16 rows."""
    first = launch.weights[0]
    return sum(w.tiles for w in launch.weights) * TILE * first.superblocks * SUPERBLOCK * 2


def form_read(weight: Weight) -> int:
    """The form of activations that a weight's products read: 32, the pass's own, or f16."""
    if not weight.packed:
        return 32
    return F16 if weight.type_id == variants.F16_TILES else INT8


__all__ = ["Float", "Recorder", "form_read"]
