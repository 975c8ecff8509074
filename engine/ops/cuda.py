"""The operations on an NVIDIA card.

A recording is a list of nodes; each is one or a few kernel launches. Steps of up to 32 rows run as CUDA
graphs, one for each size in `BUCKETS`; longer ones launch the same nodes one by one, with activations in f16
instead of int8. Kernels write the activations in the forms that their readers want, so the readers of a
buffer are known before anything is launched.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import UnsupportedModel
from engine.gguf import Tensor
from engine.ops.base import Limits, Rope, Shape, StepInput
from engine.ops.cuda_device import SUPERBLOCK, TILE, Card, Weight, told
from kernels import variants
from kernels.variants import F16, INT8, Variant

BUCKETS = (1, 2, 4, 8, 16, 32)
PAGE = 64
MOST_COLUMNS = 16384
LAUNCHES = 3
GROUP = 8

Pointer, Int, Float = ctypes.c_void_p, ctypes.c_int, ctypes.c_float


class Activation(ctypes.Structure):
    """`Activation` of kernels/include/activation.cuh."""

    _fields_ = (
        ("f32", Pointer),
        ("int8", Pointer),
        ("f16", Pointer),
        ("columns", Int),
        ("groups", Int),
    )


class Part(ctypes.Structure):
    """`Part` of kernels/include/product.cuh."""

    _fields_ = (
        ("parts", Pointer), ("row_end", Int), ("superblocks", Int), ("units", Int), ("tiles", Int),
        ("columns", Int), ("column_tiles", Int),
    )  # fmt: skip


class Product(ctypes.Structure):
    """`Product` of kernels/include/product.cuh."""

    _fields_ = (("y", Pointer), ("width", Int), ("count", Int), ("part", Part * LAUNCHES))


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of the recording: `rows` batch rows with activations in `form`, `wanted` rows of logits."""

    rows: int
    form: int
    tiles: int
    wanted: int
    from_wanted: int = 0

    @property
    def groups(self) -> int:
        """Groups of 8 rows that activations have room for."""
        return groups_of(self.rows, self.form)


def groups_of(rows: int, form: int) -> int:
    """Groups of 8 in a superblock of activations."""
    return variants.groups_for(rows) if form == INT8 else -(-rows // 64) * 8


@dataclass(eq=False, slots=True)
class Launch:
    """A matrix product: matrices of one format, one below the other, from row `start` of the result."""

    weights: tuple[Weight, ...]
    start: int

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return sum(w.rows for w in self.weights)


@dataclass(eq=False, slots=True)
class Buffer:
    """A (M, width) value that a kernel writes; `forms` that are read: 32 is f32, 8 is int8 or f16.

    `rows` is the most that M can be, None for a step's most.
    """

    width: int
    forms: set[int] = field(default_factory=set)
    rows: int | None = None
    launches: tuple[Launch, ...] = ()
    sizes: dict[str, int] = field(default_factory=dict)
    address: int = 0
    first: int = 0
    last: int = 0

    def at(self, name: str) -> int:
        """The address of one of its pieces."""
        address = self.address
        for piece, size in self.sizes.items():
            if piece == name:
                return address
            address += size
        raise KeyError(name)


@dataclass(eq=False, slots=True)
class Node:
    """Launches with the buffers that they touch."""

    launch: Callable[[Pass], None]
    buffers: tuple[Buffer, ...]
    layer: int | None = None


class CudaOps:
    """Implements `engine.ops.base.Ops` on device "cuda:N"; kernels are kept in `cache`.

    `on_progress(done, total)` hears of kernels that must be compiled first.
    """

    shape: Shape

    def __init__(
        self,
        device: str = "cuda:0",
        cache: Path | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self._card = Card(int(device.partition(":")[2] or 0), cache, on_progress)
        self._dependent = self._card.arch >= 90
        self._nodes: list[Node] = []
        self._head: Node | None = None
        self._buffers: list[Buffer] = []
        self._graphs: dict[int, Any] = {}
        self._memory = {"model": 0, "kv": 0, "work": 0}
        self._ropes: dict[int, tuple[Rope, int]] = {}

    # Memory

    def upload(self, tensor: Tensor) -> Weight:
        weight, size = self._card.upload(tensor, self._memory["model"])
        self._memory["model"] += size
        return weight

    def allocate(self, shape: Shape, limits: Limits) -> None:
        self._card.use()
        self._card.drop_staging()
        if limits.page_tokens != PAGE or shape.head_dim not in variants.HEAD_DIMS:
            raise UnsupportedModel(
                f"Heads have {shape.head_dim} dims and pages {limits.page_tokens} tokens; expected"
                f" {', '.join(map(str, variants.HEAD_DIMS))} and {PAGE}. Load the model on the processor."
            )
        self.shape, self._limits = shape, limits
        self._rows = -(-limits.rows // 64) * 64
        self._page_bytes = shape.n_kv_heads * PAGE * shape.head_dim * 2
        self._layer_bytes = limits.pages * self._page_bytes
        size = 2 * shape.n_layers * self._layer_bytes
        self._kv = self._allocate("kv", size)
        self._card.runtime.memsetAsync(self._kv, 0, size, self._card.stream.ptr)
        self._heads_in_tile = min(shape.n_heads // shape.n_kv_heads, 16)
        self._splits = max(1, min(64, -(-2 * self._card.processors // shape.n_kv_heads)))

        # The variables of a step: five arrays of `rows`, four of them for tiles, then the page table.
        self._fixed = 8 * self._rows
        n = self._fixed + limits.sequences * limits.pages_per_sequence
        pinned, self._host_owner = self._card.pinned(4 * n)
        self._host = pinned.view(np.int32)
        self._step = self._allocate("work", 4 * n)
        pinned, self._logits_owner = self._card.pinned(4 * BUCKETS[-1] * shape.n_vocab)
        self._logits = pinned.view(np.float32).reshape(BUCKETS[-1], shape.n_vocab)
        self._logits_there = self._allocate("work", self._logits.nbytes)

        heads, dim = shape.n_heads, shape.head_dim
        states = heads * max(BUCKETS[-1] * self._splits, self._rows)
        self._queries = self._allocate("work", self._rows * heads * dim * 2)
        self._sums = self._allocate("work", states * dim * 4)
        self._stats = self._allocate("work", states * 8)
        self._card.build([*variants.common(), *variants.of_head(dim)])

    def memory(self) -> dict[str, int]:
        return dict(self._memory)

    def close(self) -> None:
        self._graphs.clear()
        self._nodes.clear()
        self._card.close()

    def copy_page(self, source: int, target: int) -> None:
        with told():
            self._card.use()
            for i in range(2 * self.shape.n_layers):
                base = self._kv + i * self._layer_bytes
                self._card.copy(
                    base + target * self._page_bytes,
                    base + source * self._page_bytes,
                    self._page_bytes,
                )

    def _allocate(self, owner: str, size: int) -> int:
        addends = self._memory | {owner: self._memory[owner] + size}
        address = self._card.allocate(size, addends)
        self._memory[owner] += size
        return address

    # Recording

    @contextmanager
    def recording(self) -> Iterator[None]:
        self._nodes.clear()
        self._buffers.clear()
        self._graphs.clear()
        yield
        self._place_buffers()

    def _add(
        self, launch: Callable[[Pass], None], *buffers: Buffer, layer: int | None = None
    ) -> Node:
        node = Node(launch, buffers, layer)
        for buffer in buffers:
            if buffer not in self._buffers:
                buffer.first = len(self._nodes)
                self._buffers.append(buffer)
            buffer.last = len(self._nodes)
        self._nodes.append(node)
        return node

    def _place_buffers(self) -> None:
        """Give buffers whose lives do not overlap the same memory, first fit."""
        for buffer in self._buffers:
            buffer.sizes = self._sizes(buffer)
        placed: list[tuple[int, int, Buffer]] = []
        total = 0
        for buffer in sorted(self._buffers, key=lambda b: -sum(b.sizes.values())):
            size, at = sum(buffer.sizes.values()), 0
            for begin, end, other in sorted(placed, key=lambda p: p[0]):
                alive = other.first <= buffer.last and buffer.first <= other.last
                if alive and begin < at + size and at < end:
                    at = end
            placed.append((at, at + size, buffer))
            total = max(total, at + size)
        base = self._allocate("work", total)
        for begin, _, buffer in placed:
            buffer.address = base + begin

    def _sizes(self, buffer: Buffer) -> dict[str, int]:
        rows, superblocks = buffer.rows or self._rows, -(-buffer.width // SUPERBLOCK)
        if not buffer.launches:
            room = {
                32: rows * buffer.width * 4,
                INT8: superblocks * groups_of(32, INT8) * variants.BLOCK_BYTES[INT8],
                F16: superblocks * groups_of(rows, F16) * variants.BLOCK_BYTES[F16],
            }
            forms = buffer.forms | ({F16} if INT8 in buffer.forms else set())
            return {str(f): -(-room[f] // 256) * 256 for f in sorted(forms)}
        sizes = {"y": rows * buffer.width * 4}
        for i, launch in enumerate(buffer.launches):
            type_id = launch.weights[0].type_id
            if type_id in variants.PACKED:
                builds = [self._build(type_id, INT8, n) for n in (1, 2, 4)] + [
                    self._build(type_id, F16, 8)
                ]
                floats = max(b.part_floats * b.blocks for b in builds)
                sizes[f"parts{i}"] = 2 * 4 * floats * self._card.processors
        return {name: -(-size // 256) * 256 for name, size in sizes.items()}

    def _build(self, type_id: int, form: int, groups: int) -> variants.Matmul:
        return variants.matmul(type_id, form, groups, self._card.arch)

    def embed(self, token_embd: Weight) -> Buffer:
        x = Buffer(token_embd.columns, {32})
        kernel = self._card.kernel(variants.embedding(token_embd.type_id), "embed")

        def launch(p: Pass) -> None:
            grid = (p.rows, -(-x.width // 256), 1)
            args = Pointer(token_embd.address), self._input(0), Pointer(x.at("32")), Int(x.width)
            kernel.launch(self._card.stream.ptr, grid, 256, args)

        self._add(launch, x, layer=-1)
        return x

    def norm(self, x: Buffer, weight: Weight, eps: float) -> Buffer:
        return self._norm(x, None, weight, eps)

    def add_norm(self, x: Buffer, y: Buffer, weight: Weight, eps: float) -> Buffer:
        return self._norm(x, y, weight, eps)

    def _norm(self, x: Buffer, y: Buffer | None, weight: Weight, eps: float) -> Buffer:
        if x.width > MOST_COLUMNS:
            raise UnsupportedModel(f"{x.width} columns; expected at most {MOST_COLUMNS:,}.")
        h = Buffer(x.width)
        kernel = self._card.kernel(Variant("norm.cu"), "add_norm")

        def launch(p: Pass) -> None:
            args = (
                Pointer(x.at("32")), self._product(y, p) if y else Product(), Pointer(weight.address),
                Float(eps), Int(x.width), self._output(h, p),
            )  # fmt: skip
            self._launch(kernel, (p.rows, 1, 1), 512, args)

        self._add(launch, *((x, y, h) if y else (x, h)))
        return h

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
                and len(last.weights) < LAUNCHES
            ):
                last.weights += (weight,)
            else:
                launches.append(Launch((weight,), start))
            start += weight.rows
            x.forms.add(INT8 if weight.packed else 32)
        if len(launches) > LAUNCHES:
            raise UnsupportedModel(
                f"{len(launches)} formats side by side; expected at most {LAUNCHES}."
            )
        y = Buffer(start, launches=tuple(launches))

        def launch(p: Pass) -> None:
            for i, product in enumerate(launches):
                self._matmul(x, y, product, i, p)

        self._add(launch, x, y)
        return y

    def attend(
        self,
        qkv: Buffer,
        layer: int,
        rope: Rope,
        q_norm: Weight | None = None,
        k_norm: Weight | None = None,
        eps: float = 0.0,
    ) -> Buffer:
        s, limits = self.shape, self._limits
        out = Buffer(s.n_heads * s.head_dim)
        source, tiled = variants.of_head(s.head_dim)
        store = self._card.kernel(source, "rope_store")
        attention = self._card.kernel(tiled, "attention")
        combine = self._card.kernel(tiled, "combine")
        keys = Pointer(self._kv + 2 * layer * self._layer_bytes)
        values = Pointer(self._kv + (2 * layer + 1) * self._layer_bytes)
        frequencies = Pointer(self._frequencies(rope))
        queries, sums, stats = Pointer(self._queries), Pointer(self._sums), Pointer(self._stats)
        pages = Int(limits.pages_per_sequence)
        heads, kv_heads = Int(s.n_heads), Int(s.n_kv_heads)
        head_groups = -(-s.n_heads // s.n_kv_heads // self._heads_in_tile)

        def launch(p: Pass) -> None:
            table = self._input(self._fixed)
            args: tuple[Any, ...] = (
                self._product(qkv, p), self._input(self._rows), self._input(2 * self._rows), table, pages,
                Pointer(q_norm.address if q_norm else None), Pointer(k_norm.address if k_norm else None),
                Float(eps), frequencies, Int(rope.n_rot), Int(rope.interleaved), Float(rope.magnitude),
                heads, kv_heads, queries, keys, values,
            )  # fmt: skip
            self._launch(store, (s.n_heads + 2 * s.n_kv_heads, p.rows, 1), 32, args)
            splits = self._splits if p.form == INT8 else 1
            args = (
                queries, keys, values, self._input(4 * self._rows), self._input(self._rows), table, pages,
                heads, kv_heads, Int(self._heads_in_tile), sums, stats,
            )  # fmt: skip
            self._launch(attention, (splits, s.n_kv_heads * head_groups, p.tiles), 128, args)
            grid = (-(-out.width // (4 * SUPERBLOCK)), p.rows, 1)
            args = (
                sums,
                stats,
                self._input(self._rows),
                Int(splits),
                Int(out.width),
                self._output(out, p),
            )
            self._launch(combine, grid, 128, args)

        self._add(launch, qkv, out)
        return out

    def swiglu(self, gate_up: Buffer) -> Buffer:
        h = Buffer(gate_up.width // 2)
        kernel = self._card.kernel(Variant("swiglu.cu"), "swiglu")

        def launch(p: Pass) -> None:
            args = self._product(gate_up, p), Int(h.width), self._output(h, p)
            self._launch(kernel, (-(-h.width // (4 * SUPERBLOCK)), p.rows, 1), 128, args)

        self._add(launch, gate_up, h)
        return h

    def end_layer(self, layer: int, x: Buffer) -> None:
        self._add(lambda p: None, x, layer=layer)

    def head(self, h: Buffer, output: Weight) -> None:
        h.forms.add(32)
        rows = Buffer(h.width, {INT8 if output.packed else 32}, rows=BUCKETS[-1])
        y = Buffer(output.rows, rows=BUCKETS[-1], launches=(Launch((output,), 0),))
        gather = self._card.kernel(Variant("head.cu"), "gather")
        collect = self._card.kernel(Variant("head.cu"), "collect")

        def launch(p: Pass) -> None:
            wanted = Pass(p.wanted, INT8, 0, 0)
            args: tuple[Any, ...] = (
                Pointer(h.at("32")), self._input(3 * self._rows + p.from_wanted), Int(h.width),
                self._output(rows, wanted),
            )  # fmt: skip
            self._launch(gather, (-(-h.width // (4 * SUPERBLOCK)), p.wanted, 1), 128, args)
            self._matmul(rows, y, y.launches[0], 0, wanted)
            args = self._product(y, wanted), Pointer(self._logits_there)
            self._launch(collect, (-(-output.rows // 256), p.wanted, 1), 256, args)

        self._head = self._add(launch, h, rows, y)

    # Launching

    def _launch(
        self, kernel: Any, grid: tuple[int, int, int], threads: int, args: tuple[Any, ...]
    ) -> None:
        kernel.launch(self._card.stream.ptr, grid, threads, args, self._dependent)

    def _input(self, offset: int) -> ctypes.c_void_p:
        return Pointer(self._step + 4 * offset)

    def _output(self, buffer: Buffer, p: Pass) -> Activation:
        form = p.form if INT8 in buffer.forms else 0
        return Activation(
            buffer.at("32") if 32 in buffer.forms else None,
            buffer.at(str(INT8)) if form == INT8 else None,
            buffer.at(str(F16)) if form == F16 else None,
            buffer.width,
            p.groups,
        )

    def _split(
        self, build: variants.Matmul, weights: tuple[Weight, ...], p: Pass
    ) -> tuple[int, int, int]:
        """How a product is cut: batch tiles, units, units a block."""
        superblocks = weights[0].superblocks
        batch_tiles = -(-p.groups // build.groups) if p.form == F16 else 1
        tiles = -(-sum(w.tiles for w in weights) // build.tiles) * batch_tiles
        slots = self._card.processors * build.blocks
        if p.form == F16 and tiles >= 8 * slots:
            return batch_tiles, tiles * superblocks, superblocks
        return (
            batch_tiles,
            tiles * superblocks,
            max(min(2, superblocks), -(-tiles * superblocks // slots)),
        )

    def _product(self, buffer: Buffer, p: Pass) -> Product:
        product = Product(buffer.at("y"), buffer.width, len(buffer.launches))
        for i, launch in enumerate(buffer.launches):
            part = product.part[i]
            part.row_end = launch.start + launch.rows
            type_id = launch.weights[0].type_id
            if type_id not in variants.PACKED:
                continue
            build = self._build(type_id, p.form, p.groups)
            part.parts = buffer.at(f"parts{i}")
            part.superblocks = launch.weights[0].superblocks
            part.column_tiles, _, part.units = self._split(build, launch.weights, p)
            part.tiles, part.columns = build.tiles, GROUP * build.groups
        return product

    def _matmul(self, x: Buffer, y: Buffer, launch: Launch, i: int, p: Pass) -> None:
        weights = launch.weights
        first = weights[0]
        target = Pointer(y.at("y") + 4 * launch.start)
        if not first.packed:
            kernel = self._card.kernel(
                Variant("matmul_float.cu", (("TYPE", first.type_id),)), "matmul_float"
            )
            args: tuple[Any, ...] = (
                Pointer(first.address), Pointer(x.at("32")), target, Int(first.rows), Int(first.columns),
                Int(y.width), Int(p.rows),
            )  # fmt: skip
            self._launch(kernel, (-(-first.rows // 4), -(-p.rows // 8), 1), 128, args)
            return
        build = self._build(first.type_id, p.form, p.groups)
        batch_tiles, units, per_block = self._split(build, weights, p)
        kernel = self._card.kernel(build.variant, "matmul", build.shared)
        addresses = [Pointer(w.address) for w in weights] + [Pointer(first.address)] * (
            LAUNCHES - len(weights)
        )
        ends = np.cumsum([w.tiles for w in weights])
        end = [int(ends[min(j, len(ends) - 1)]) for j in range(LAUNCHES)]
        args = (
            *addresses, Int(end[0]), Int(end[1]), Int(end[2]), Pointer(x.at(str(p.form))), Int(p.groups),
            target, Int(launch.rows), Int(y.width), Pointer(y.at(f"parts{i}")), Int(first.superblocks),
            Int(batch_tiles), Int(units), Int(per_block), Int(p.rows),
        )  # fmt: skip
        self._launch(kernel, (-(-units // per_block), 1, 1), 128, args)

    def _frequencies(self, rope: Rope) -> int:
        """The angles of a rope's pairs for each position, over pi, as doubles on the card."""
        known = self._ropes.get(id(rope))
        if known is None:
            pair = np.arange(0, rope.n_rot, 2, dtype=np.float64)
            angle = rope.base ** (-pair / rope.n_rot) * rope.scale
            if rope.factors is not None:
                angle /= rope.factors.astype(np.float64)
            known = self._ropes[id(rope)] = (rope, self._card.put(angle / np.pi))
        return known[1]

    # Running

    def run(self, step: StepInput) -> NDArray[np.float32]:
        with told():
            self._card.use()
            return (
                self._run_graph(step) if len(step.tokens) <= BUCKETS[-1] else self._run_eager(step)
            )

    def _fill(self, step: StepInput, rows: int) -> int:
        """Send a step's variables to the card, padded to `rows`; returns the number of tiles."""
        m, n, host = len(step.tokens), self._rows, self._host
        arrays = host[: 4 * n].reshape(4, n)
        arrays[:, m:rows] = ((0,), (-1,), (0,), (0,))
        arrays[0, :m], arrays[1, :m], arrays[2, :m] = step.tokens, step.positions, step.sequence
        arrays[3, : len(step.logit_rows)] = step.logit_rows
        arrays[3, len(step.logit_rows) : rows] = 0
        tiles = host[4 * n : 8 * n].reshape(n, 4)
        queries = 16 // self._heads_in_tile
        count = 0
        starts = [*np.flatnonzero(np.diff(step.sequence, prepend=-1)).tolist(), m]
        for begin, end in pairwise(starts):
            for row in range(begin, end, queries):
                stop = min(row + queries, end)
                seen = int(np.max(step.positions[row:stop])) + 1
                tiles[count] = row, stop - row, seen, step.sequence[row]
                count += 1
        tiles[count:rows] = 0
        table = step.page_table
        width = self._limits.pages_per_sequence
        host[self._fixed : self._fixed + len(table) * width].reshape(-1, width)[
            :, : table.shape[1]
        ] = table
        self._card.copy(self._step, host.ctypes.data, 4 * (self._fixed + len(table) * width))
        return count

    def _run_graph(self, step: StepInput) -> NDArray[np.float32]:
        bucket = next(b for b in BUCKETS if b >= len(step.tokens))
        self._fill(step, bucket)
        graph = self._graphs.get(bucket)
        if graph is None:
            with self._card.capture() as captured:
                for node in self._nodes:
                    node.launch(Pass(bucket, INT8, bucket, bucket))
            graph = self._graphs[bucket] = captured.graph
        graph.launch(stream=self._card.stream)
        return self._read_logits(len(step.logit_rows))

    def _run_eager(
        self, step: StepInput, after: Callable[[Node, int], None] | None = None
    ) -> NDArray[np.float32]:
        """Launch node by node; `after(node, rows)` runs behind each one."""
        m, wanted = len(step.tokens), len(step.logit_rows)
        form = INT8 if m <= BUCKETS[-1] else F16
        tiles = self._fill(step, m)
        result = (
            np.empty((wanted, self.shape.n_vocab), np.float32) if wanted > BUCKETS[-1] else None
        )
        for node in self._nodes:
            if node is self._head:
                break
            node.launch(Pass(m, form, tiles, 0))
            if after:
                after(node, m)
        if self._head is None or not wanted:
            self._card.stream.synchronize()
            return self._logits[:0]
        for first in range(0, wanted, BUCKETS[-1]):
            count = min(BUCKETS[-1], wanted - first)
            self._head.launch(Pass(m, form, tiles, count, first))
            logits = self._read_logits(count)
            if result is None:
                return logits
            result[first : first + count] = logits
        assert result is not None
        return result

    def _read_logits(self, rows: int) -> NDArray[np.float32]:
        if rows:
            self._card.copy(
                self._logits.ctypes.data, self._logits_there, rows * self.shape.n_vocab * 4
            )
        self._card.stream.synchronize()
        return self._logits[:rows]

    def first_bad_layer(self, step: StepInput) -> int | None:
        bad: list[int] = []

        def check(node: Node, rows: int) -> None:
            if node.layer is None or bad:
                return
            x = node.buffers[0]
            values = np.empty((rows, x.width), np.float32)
            self._card.copy(values.ctypes.data, x.at("32"), values.nbytes)
            self._card.stream.synchronize()
            if not np.isfinite(values).all():
                bad.append(node.layer)

        with told():
            self._card.use()
            logits = self._run_eager(step, check)
        if not bad and not np.isfinite(logits).all():
            bad.append(self.shape.n_layers)
        return bad[0] if bad else None
