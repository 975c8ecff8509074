"""Values of a step on the card: the forms they are kept in, where they lie, and how products are cut."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import Any

from engine.ops.cuda_device import SUPERBLOCK, Weight
from kernels import variants
from kernels.variants import F16, INT8

MOST_ROWS = variants.MOST_SHORT
"""Batch rows of a short step: a graph replays it, and a row's bits do not depend on how many there are."""

MANY_BYTES = 20 << 20
"""Weights of a product that is worth starting before its activations are there."""

LAUNCHES = 4
"""Products side by side."""

STACKED = 3
"""Matrices of one launch."""

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
        ("early", Int),
    )


class Part(ctypes.Structure):
    """`Part` of kernels/include/product.cuh."""

    _fields_ = (
        ("parts", Pointer), ("row_end", Int), ("superblocks", Int), ("units", Int), ("tiles", Int),
        ("columns", Int), ("column_tiles", Int), ("more", Int),
    )  # fmt: skip


class Side(ctypes.Structure):
    """`Side` of kernels/matmul.cu."""

    _fields_ = (
        ("weights", Pointer * STACKED), ("x", Pointer), ("y", Pointer), ("parts", Pointer),
        ("ends", Int * 2), ("format", Int), ("first_block", Int), ("row_tiles", Int), ("rows", Int),
        ("stride", Int), ("superblocks", Int), ("batch_tiles", Int), ("units", Int), ("per_block", Int),
    )  # fmt: skip


class Sides(ctypes.Structure):
    """`Sides` of kernels/matmul.cu, for several products."""

    _fields_ = (
        ("side", Side * variants.MOST_SIDES), ("count", Int), ("groups", Int), ("rows", Int),
    )  # fmt: skip


class OneSide(ctypes.Structure):
    """`Sides` for one product."""

    _fields_ = (("side", Side * 1), ("count", Int), ("groups", Int), ("rows", Int))


class Product(ctypes.Structure):
    """`Product` of kernels/include/product.cuh."""

    _fields_ = (
        ("y", Pointer), ("width", Int), ("count", Int), ("part", Part * LAUNCHES),
        ("squares", Pointer), ("n_squares", Int), ("columns", Float), ("eps", Float),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pass:
    """One run of the recording: `rows` batch rows of up to `sequences`, `wanted` rows of logits.

    `tiles` are those of attention, at most.

    Activations of quantised weights are in `form`, those of F16 ones in f16. `ranked` is how logits count
    whose tokens are to be ranked, see `Ranks.rank`; of others the likeliest are found.
    """

    rows: int
    form: int
    tiles: int
    wanted: int
    from_wanted: int = 0
    sequences: int = 1
    ranked: tuple[float, float] | None = None

    @property
    def groups(self) -> int:
        """Groups of 8 rows that activations have room for."""
        return variants.groups_for(self.rows)

    @property
    def short(self) -> bool:
        """Whether a row's bits must not depend on the others."""
        return self.rows <= MOST_ROWS

    @property
    def several(self) -> bool:
        """Whether a block of a kernel between products takes two rows or four of a short step."""
        return 16 <= self.rows <= MOST_ROWS and self.rows % 4 == 0

    def form_of(self, type_id: int) -> int:
        """The form that weights of a format read."""
        return F16 if type_id == variants.F16_TILES else self.form


@dataclass(eq=False, slots=True)
class Launch:
    """A matrix product: matrices of one format, one below the other, from row `start` of the result.

    `factors` is where the factors lie that its rows still lack in the running pass, 0 for none; a row is the
    sum of so many `addends`, rows one after the other. `beside`, it among them, are multiplied by one kernel
    in short steps.
    """

    weights: tuple[Weight, ...]
    start: int
    factors: int = 0
    addends: int = 1
    beside: list[Launch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.beside.append(self)

    @property
    def type_id(self) -> int:
        """The format."""
        return self.weights[0].type_id

    @property
    def rows(self) -> int:
        """Rows of the result."""
        return sum(w.rows for w in self.weights)


@dataclass(eq=False, slots=True)
class Buffer:
    """A (M, width) value that a kernel writes; `forms` that are read: 32 is f32, 8 the pass's own, 16 f16.

    `rows` is the most that M can be, None for a step's most. The result of a norm has its `eps` and lacks
    its factor 1 / sqrt(mean(x^2) + eps) until the product made from it, whose `source` it is, is read.
    `weight_bytes` are those of the products that read it. `short_rows` is the most rows of a short step. An
    embedding is multiplied by `scale`.
    """

    width: int
    forms: set[int] = field(default_factory=set)
    rows: int | None = None
    short_rows: int = MOST_ROWS
    launches: tuple[Launch, ...] = ()
    eps: float | None = None
    source: Buffer | None = None
    weight_bytes: int = 0
    sizes: dict[str, int] = field(default_factory=dict)
    address: int = 0
    first: int = 0
    last: int = 0
    scale: float = 1.0

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


@dataclass(eq=False, slots=True)
class Tape:
    """A recording: nodes and buffers, graphs by rows and tiles, what a step brings and what is kept of it;
    `met` are long steps that were there.

    `kept` are rows (M, len(capture) * n_embd) after the layers `capture`, `residuals` the float32 rows that
    products became which are added to.
    """

    capture: tuple[int, ...] = ()
    nodes: list[Node] = field(default_factory=list)
    buffers: list[Buffer] = field(default_factory=list)
    graphs: dict[tuple[float, ...], Any] = field(default_factory=dict)
    met: set[tuple[int, int]] = field(default_factory=set)
    given: list[Buffer] = field(default_factory=list)
    residuals: dict[Buffer, Buffer] = field(default_factory=dict)
    head: Node | None = None
    kept: int = 0


def activation_of(buffer: Buffer, p: Pass) -> Activation:
    """A buffer as the kernel that writes it takes it."""
    int8 = INT8 in buffer.forms and p.form == INT8
    f16 = F16 in buffer.forms or (INT8 in buffer.forms and p.form == F16)
    return Activation(
        buffer.at("32") if 32 in buffer.forms else None,
        buffer.at(str(INT8)) if int8 else None,
        buffer.at(str(F16)) if f16 else None,
        buffer.width,
        p.groups,
        buffer.weight_bytes >= MANY_BYTES,
    )


def product_of(buffer: Buffer, p: Pass, arch: int, processors: int) -> Product:
    """A product as its readers take it."""
    product = Product(buffer.at("y"), buffer.width, len(buffer.launches))
    if (source := buffer.source) is not None:
        product.squares, product.n_squares = (
            source.at("squares"),
            -(-source.width // SUPERBLOCK),
        )
        product.columns, product.eps = source.width, source.eps
    for i, launch in enumerate(buffer.launches):
        part = product.part[i]
        part.row_end = launch.start + launch.rows
        part.parts, part.more = launch.factors or None, launch.addends - 1
        type_id = launch.weights[0].type_id
        if launch.factors or not variants.chunk(type_id):
            continue
        cut = cut_of(launch, p, arch, processors)
        if cut.per_block % launch.weights[0].superblocks == 0:
            continue
        part.parts = buffer.at(f"parts{i}")
        part.superblocks = launch.weights[0].superblocks
        part.column_tiles, part.units = cut.batch_tiles, cut.per_block
        part.tiles, part.columns = cut.build.tiles, GROUP * cut.build.groups
    return product


def is_whole(product: Product) -> bool:
    """Whether each row lies in `y` as one, though factors may be missing."""
    return not any(part.units or part.more for part in product.part[: product.count])


def put_together(launches: Iterable[Launch], arch: int) -> None:
    """Have one kernel multiply as many packed matrices as it can take, in short steps."""
    last: list[Launch] = []
    for launch in launches:
        if not variants.mixes(launch.type_id, arch):
            continue
        types = {launch.type_id, *(x.type_id for x in last)}
        if last and len(last) < variants.MOST_SIDES and len(types) <= variants.MOST_FORMATS:
            last.append(launch)
            launch.beside = last
        else:
            last = launch.beside


@dataclass(frozen=True, slots=True)
class Cut:
    """How a product is cut: batch tiles, units of a row tile and 256 columns, units a block."""

    build: variants.Matmul
    batch_tiles: int
    units: int
    per_block: int

    @property
    def blocks(self) -> int:
        """Blocks of the grid."""
        return -(-self.units // self.per_block)


def together(
    launches: Iterable[Launch], p: Pass, arch: int, processors: int
) -> tuple[variants.Together, tuple[Cut, ...]]:
    """The build for products in one launch, and how each is cut: units a block suit any short step."""
    kinds = tuple(
        (x.type_id, sum(w.tiles for w in x.weights), x.weights[0].superblocks) for x in launches
    )
    return _cuts(kinds, p.form, p.groups, p.short, p.rows == 1, arch, processors)


@functools.lru_cache(maxsize=256)
def _cuts(
    kinds: tuple[tuple[int, int, int], ...],
    form: int,
    groups: int,
    short: bool,
    one: bool,
    arch: int,
    processors: int,
) -> tuple[variants.Together, tuple[Cut, ...]]:
    types = tuple(sorted({type_id for type_id, _, _ in kinds}))
    sides = 1 if len(kinds) == 1 else variants.MOST_SIDES
    build = variants.together(types, form, groups, arch, sides, one)
    slots, work = processors * build.blocks, []
    for type_id, tiles, superblocks in kinds:
        shape = build.formats[type_id]
        batch_tiles, tiles = -(-groups // shape.groups), -(-tiles // shape.tiles)
        tiles *= 1 if short else batch_tiles
        if not short and tiles >= 8 * slots:
            return build, (Cut(shape, batch_tiles, tiles * superblocks, superblocks),)
        cost = variants.chunk(type_id) * shape.tiles
        work.append((tiles * superblocks, min(2, superblocks), cost))
    cuts = []
    for (type_id, _, superblocks), (units, _, _), share in zip(
        kinds, work, even_shares(work, slots), strict=True
    ):
        shape = build.formats[type_id]
        batch_tiles = -(-groups // shape.groups)
        if short and variants.most_groups(type_id, form, arch) < MOST_ROWS // GROUP:
            share = _same_for_all(share, superblocks)
        cuts.append(Cut(shape, batch_tiles, units * (batch_tiles if short else 1), share))
    return build, tuple(cuts)


def _same_for_all(share: int, superblocks: int) -> int:
    """Units a block, at least `share`, that cut a row tile at the same places wherever it begins.

    Where short steps have one batch tile or two, a row tile begins elsewhere in each.
    """
    if share >= superblocks:
        return -(-share // superblocks) * superblocks
    return next(n for n in range(share, superblocks + 1) if superblocks % n == 0)


def even_shares(work: Seq[tuple[int, int, int]], slots: int) -> list[int]:
    """Units a block of products (units, least a block, cost of one) that end soonest in `slots` blocks."""

    def at(time: int) -> list[int]:
        return [max(least, time // cost) for _, least, cost in work]

    low, high = 0, max(units * cost for units, _, cost in work)
    while low < high:
        middle = (low + high) // 2
        blocks = sum(-(-units // n) for (units, _, _), n in zip(work, at(middle), strict=True))
        low, high = (low, middle) if blocks <= slots else (middle + 1, high)
    return at(low)


def cut_of(launch: Launch, p: Pass, arch: int, processors: int) -> Cut:
    """How one product is cut."""
    if not p.short:
        return together([launch], p, arch, processors)[1][0]
    cuts = together(launch.beside, p, arch, processors)[1]
    return next(c for c, x in zip(cuts, launch.beside, strict=True) if x is launch)


def sizes(buffer: Buffer, rows: int, arch: int, processors: int) -> dict[str, int]:
    """Bytes of a buffer's pieces where steps have up to `rows` rows."""
    rows, superblocks = buffer.rows or rows, -(-buffer.width // SUPERBLOCK)
    if buffer.launches:
        pieces = {"y": rows * buffer.width * 4}
        for i, launch in enumerate(buffer.launches):
            type_id = launch.weights[0].type_id
            if variants.chunk(type_id):
                forms = (F16,) if type_id == variants.F16_TILES else (INT8, F16)
                builds = [variants.matmul(type_id, f, n, arch) for f in forms for n in range(1, 5)]
                builds.append(variants.matmul(type_id, F16, 8, arch))
                # On the smallest cards a short step may have two batch tiles of two groups.
                most = max(b.part_floats * b.blocks for b in builds)
                pieces[f"parts{i}"] = 8 * processors * most * (2 if arch == 75 else 1)
                pieces["factors"] = 4 * rows
    else:
        room = {
            32: rows * buffer.width * 4,
            INT8: superblocks * variants.groups_for(buffer.short_rows) * variants.BLOCK_BYTES[INT8],
            F16: superblocks * variants.groups_for(max(64, rows)) * variants.BLOCK_BYTES[F16],
        }
        norm = {} if buffer.eps is None else {"squares": rows * superblocks * 4}
        kept = buffer.forms | ({F16} if INT8 in buffer.forms else set())
        pieces = norm | {str(f): room[f] for f in sorted(kept)}
    return {name: -(-size // 256) * 256 for name, size in pieces.items()}


def place(buffers: Iterable[Buffer]) -> tuple[dict[Buffer, int], int]:
    """Offsets at which buffers that live at the same time do not overlap, first fit, and the bytes in all."""
    placed: list[tuple[int, int, Buffer]] = []
    for buffer in sorted(buffers, key=lambda b: -sum(b.sizes.values())):
        size, at = sum(buffer.sizes.values()), 0
        for begin, end, other in sorted(placed, key=lambda p: p[0]):
            alive = other.first <= buffer.last and buffer.first <= other.last
            if alive and begin < at + size and at < end:
                at = end
        placed.append((at, at + size, buffer))
    return {b: begin for begin, _, b in placed}, max((end for _, end, _ in placed), default=0)
