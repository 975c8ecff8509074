"""Every kernel that is shipped: source file, defines, and the shape of its blocks on each architecture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

PACKED: dict[int, int] = {
    2: 2304, 3: 2560, 6: 2816, 7: 3072, 8: 4352, 10: 1344, 11: 1824, 12: 2304, 13: 2816, 14: 3360,
    16: 1120, 17: 1248, 18: 1632, 19: 864, 20: 2304, 21: 1760, 22: 1312, 23: 2208, 29: 928,
    35: 1056, 39: 2176,
}  # fmt: skip
"""Block formats (ggml's numbers) with a packed layout: bytes of a chunk of 16 rows x 256 columns."""

BOOKS = (16, 17, 18, 19, 21, 22, 29)
"""Those whose kernels look weights up in a codebook, which the host gives them."""

UNPACKED_SLOWLY = (10, 11, 20, 23, 35, 39, *BOOKS)
"""Those that take more instructions than their bytes take time."""

F16_TILES = 1001
"""F16 or BF16 in chunks as the tensor cores take them: no format of files."""

PACKED_AS = {34: 35}
"""Formats that lie in the layout of another: TQ1_0 in TQ2_0's."""

FLOATS: dict[int, int] = {0: 4, 1: 2, 30: 2}
"""Formats that are plain numbers, F32, F16 and BF16: bytes of one."""

HEAD_DIMS = (64, 128, 256)
"""Head sizes that attention is built for."""

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
"""Compute capabilities that must compile."""

INT8, F16 = 8, 16
"""Forms of activations; `include/activation.cuh` describes them."""

BLOCK_BYTES = {INT8: 2656, F16: 4128}
"""Bytes of 256 columns of 8 batch rows."""

_FEW_REGISTERS = {(10, F16, 120, False), (14, INT8, 80, True)}
"""Formats, forms, architectures and whether steps are short where the largest tiles would need more registers
than a thread has."""

_ROW_BYTES = 368
"""Bytes of 256 columns of one row in the INT8 form, which each warp has its own copy of."""

MOST_SIDES = 4
"""Products that one launch of `matmul.cu` can have in a short step."""

MOST_FORMATS = 3
"""Formats that one launch of `matmul.cu` can have."""

USUAL_SETS = ((12, 13), (12, 14), (13, 14))
"""Formats that files mix in matrices of one launch; other sets are built where a file has them."""

MOST_SHORT = 32
"""Batch rows up to which a row's bits do not depend on how many there are."""

_WARPS = 4
_SHARED = {75: (64, 64), 80: (163, 164), 90: (227, 228), 100: (227, 228)}
_SMALL = (99, 100)
"""KiB of shared memory that a block and that a multiprocessor has, by architecture; else `_SMALL`."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One compilation: a file of this folder and its defines."""

    file: str
    defines: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.file, *(f"{name}={value}" for name, value in self.defines)])


@dataclass(frozen=True, slots=True)
class Matmul:
    """How `matmul.cu` is built for a format: its variant, block shape and blocks a multiprocessor."""

    variant: Variant
    groups: int
    """Groups of 8 batch rows a block."""
    tiles: int
    """Row tiles of 16 a block."""
    shared: int
    """Bytes of dynamic shared memory."""
    blocks: int

    @property
    def part_floats(self) -> int:
        """Floats of one part in the workspace of split tiles."""
        return self.tiles * 16 * self.groups * 8


@dataclass(frozen=True, slots=True)
class Together:
    """How `matmul.cu` is built for a set of formats; `formats` are the shapes of their blocks."""

    variant: Variant
    shared: int
    blocks: int
    formats: dict[int, Matmul]


def _stages(size: int, blocks: int, arch: int, most: int = 4) -> int:
    """Stages of `size` bytes that fit where `blocks` share a multiprocessor; at most `most`."""
    block, whole = _SHARED.get(arch, _SMALL)
    room = min(block << 10, (whole << 10) // blocks - (1024 if arch >= 80 else 0))
    return min(most, room // size)


def _held(type_id: int, form: int, arch: int) -> int:
    """Bytes that a stage of `matmul.cu` holds of 8 batch rows: `ACTIVATION` of `include/unit.cuh`."""
    return BLOCK_BYTES[form] - (256 if form == INT8 and type_id in (12, 13) and arch > 80 else 0)


def chunk(type_id: int) -> int:
    """Bytes of a chunk of 16 rows x 256 columns; 0 for numbers, which have none."""
    return 8192 if type_id == F16_TILES else PACKED.get(type_id, 0)


def matmul(type_id: int, form: int, groups: int, arch: int) -> Matmul:
    """The build for 1 to 4 groups of a short step, or for more, where `groups` is the most that fit.

    Tiles and blocks of short steps are those that suit 4 groups: with them a batch row's bits are the same
    for all.
    """
    return together((type_id,), form, groups, arch, 1).formats[type_id]


def together(
    types: tuple[int, ...],
    form: int,
    groups: int,
    arch: int,
    sides: int = MOST_SIDES,
    one: bool = False,
) -> Together:
    """The build for up to `sides` products in one launch, of `one` batch row alone if so.

    Weights of F16_TILES read f16 in any form.
    """
    forms = [F16 if type_id == F16_TILES else form for type_id in types]
    shapes = [_shape(t, f, groups, arch) for t, f in zip(types, forms, strict=True)]
    blocks = min(shape.blocks for shape in shapes)
    shapes = [
        shape if shape.blocks == blocks else _shape(t, f, groups, arch, blocks)
        for shape, t, f in zip(shapes, types, forms, strict=True)
    ]
    if one:
        shapes = [
            _of_one_row(shape, t, arch) if f == INT8 else shape
            for shape, t, f in zip(shapes, types, forms, strict=True)
        ]
    defines = [("SIDES", sides), *([("ONE", 1)] if one and INT8 in forms else [])]
    for i, (type_id, its, shape) in enumerate(zip(types, forms, shapes, strict=True)):
        values = {
            "TYPE": type_id,
            "FORM": its,
            "NT": shape.groups,
            "TILES": shape.tiles,
            "STAGES": shape.stages,
        }
        defines += [(f"{name}_{i}", value) for name, value in values.items()]
    variant, shared = Variant("matmul.cu", tuple(defines)), max(s.stages * s.stage for s in shapes)
    formats = {
        t: Matmul(variant, s.groups, s.tiles * _WARPS, shared, blocks)
        for t, s in zip(types, shapes, strict=True)
    }
    return Together(variant, shared, blocks, formats)


@dataclass(frozen=True, slots=True)
class _Shape:
    """Of a block of `matmul.cu`: row tiles a warp, groups of 8 batch rows, stages of `stage` bytes."""

    tiles: int
    groups: int
    stages: int
    stage: int
    blocks: int


def _shape(type_id: int, form: int, groups: int, arch: int, most_blocks: int = 4) -> _Shape:
    size, activation, short = chunk(type_id), _held(type_id, form, arch), groups <= MOST_SHORT // 8
    shapes = [(2, 4), (1, 4), (1, 2)] if short else [(2, 8), (2, 4), (1, 4), (1, 2)]
    if (type_id, form, arch, short) in _FEW_REGISTERS:
        shapes = shapes[1:]
    if type_id == F16_TILES:
        shapes = [(1, 4), (1, 2)] if short else [(1, 8), (1, 4), (1, 2)]
    side_by_side: tuple[int, ...] = (2, 1) if arch in _SHARED and arch != 75 else (1,)
    if short and form == INT8 and (type_id in UNPACKED_SLOWLY or arch not in _SHARED):
        # More warps to wait for each other, and a loop over one row tile, so that instructions stay cached.
        shapes, side_by_side = [(1, 4), (1, 2)], (4, 3, 2, 1)
    for tiles, most in shapes:
        for blocks in (n for n in side_by_side if n <= most_blocks):
            if _stages(size * _WARPS * tiles + activation * most, blocks, arch) < 2:
                continue
            nt = min(groups, most) if short else most
            stage = size * _WARPS * tiles + activation * nt
            # More stages of many activations take longer to begin than they gain.
            deepest = 3 if short and form == INT8 and nt > 1 else 4
            return _Shape(tiles, nt, _stages(stage, blocks, arch, deepest), stage, blocks)
    raise ValueError(f"format {type_id}: no shape of matmul.cu fits sm_{arch}")


def _of_one_row(shape: _Shape, type_id: int, arch: int) -> _Shape:
    """The same block with the stages that fit where activations are a row's."""
    stage = _WARPS * (chunk(type_id) * shape.tiles + _ROW_BYTES)
    return replace(shape, stages=_stages(stage, shape.blocks, arch), stage=stage)


def most_groups(type_id: int, form: int, arch: int) -> int:
    """Groups of 8 batch rows that a block takes at most in short steps: two where shared memory is small."""
    form = F16 if type_id == F16_TILES else form
    return matmul(type_id, form, MOST_SHORT // 8, arch).groups


def experts(type_id: int, form: int, arch: int) -> Matmul:
    """The build of `experts.cu`."""
    nt = expert_groups(arch)
    for tiles, blocks in ((2, 2), (1, 2), (1, 1)):
        stage = chunk(type_id) * _WARPS * tiles + BLOCK_BYTES[form] * nt
        stages = _stages(stage, blocks, arch)
        if stages >= 2 and (blocks == 1 or (arch in _SHARED and arch != 75)):
            defines = {"TYPE": type_id, "FORM": form, "NT": nt, "TILES": tiles, "STAGES": stages}
            variant = Variant("experts.cu", tuple(defines.items()))
            return Matmul(variant, nt, _WARPS * tiles, stage * stages, blocks)
    raise ValueError(f"format {type_id}: no shape of experts.cu fits sm_{arch}")


@dataclass(frozen=True, slots=True)
class ExpertsShort:
    """How `experts_short.cu` is built: stages of a warp's ring, and the most bytes of shared memory."""

    variant: Variant
    stages: int
    most: int

    def shared(self, slots: int, stages: int) -> int:
        """Bytes for so many blocks of activations and stages."""
        defines = dict(self.variant.defines)
        weights = chunk(defines["TYPE"]) * _WARPS
        return slots * BLOCK_BYTES[defines["FORM"]] + min(stages, self.stages) * weights


def experts_short(type_id: int, form: int, arch: int) -> ExpertsShort:
    """The build for short steps: two stages, as long as all activations of a block fit, too."""
    most = (_SHARED.get(arch, _SMALL)[0] << 10) - 5120  # static memory counts, too
    stages = min(2, most // (_WARPS * (chunk(type_id) + BLOCK_BYTES[form])))
    defines = {"TYPE": type_id, "FORM": form, "NT": 1, "TILES": 1, "STAGES": stages}
    return ExpertsShort(Variant("experts_short.cu", tuple(defines.items())), stages, most)


def expert_groups(arch: int) -> int:
    """Groups of 8 rows of an expert that a block of `experts.cu` takes."""
    return 2 if arch == 75 else 8 if arch in _SHARED else 4


def sources(type_id: int) -> tuple[int, ...]:
    """Formats of files that a format of the card is made from as they are."""
    if type_id == F16_TILES:
        return (1, 30)
    return (type_id, *(source for source, target in PACKED_AS.items() if target == type_id))


def repack(type_id: int, source: int) -> Variant:
    """From a file's format `source` to the packed layout of `type_id`."""
    origin = (("FROM", source),) if len(sources(type_id)) > 1 else ()
    return Variant("repack.cu", (("TYPE", type_id), *origin))


def dequantise(type_id: int) -> Variant:
    """Packed weights as f16 rows."""
    return Variant("dequantise.cu", (("TYPE", type_id),))


def groups_for(rows: int) -> int:
    """Groups of 8 that activations have room for; a short step's are also those of a block."""
    return -(-rows // 8) if rows <= MOST_SHORT else -(-rows // 64) * 8


def of_type(type_id: int, arch: int, form: int = INT8) -> Iterator[Variant]:
    """What products with a matrix of one format need; `form` is that of short steps."""
    if type_id in FLOATS:
        yield Variant("matmul_float.cu", (("TYPE", type_id),))
        return
    yield from of_set((type_id,), form, arch, 1)
    yield matmul(type_id, F16, 8, arch).variant


def mixes(type_id: int, arch: int) -> bool:
    """Whether products of a format can be in one launch with those of others, for which registers must do."""
    return chunk(type_id) > 0 and type_id not in UNPACKED_SLOWLY and (arch, type_id) != (80, 13)


def of_set(
    types: tuple[int, ...], form: int, arch: int, sides: int = MOST_SIDES
) -> Iterator[Variant]:
    """What products of several formats in one launch need, in short steps."""
    yield together(types, form, 1, arch, sides, one=True).variant
    for groups in range(1, MOST_SHORT // 8 + 1):
        yield together(types, form, groups, arch, sides).variant


def of_experts(type_id: int, arch: int, form: int = INT8) -> Iterator[Variant]:
    """What products with a stack of experts of one format need; `form` is that of short steps."""
    yield experts_short(type_id, F16 if type_id == F16_TILES else form, arch).variant
    yield experts(type_id, F16, arch).variant


def embedding(type_id: int) -> Variant:
    """The embedding of a table of that format."""
    return Variant("embed.cu", (("TYPE", type_id),))


def of_head(head_dim: int) -> Iterator[Variant]:
    """What attention with heads of that size needs in short steps."""
    yield Variant("rope.cu", (("HEAD_DIM", head_dim),))
    yield Variant("attention.cu", (("HEAD_DIM", head_dim),))
    yield attention_row(head_dim)


def attention_row(head_dim: int) -> Variant:
    """What it needs beside them in a step of one row."""
    return Variant("attention_row.cu", (("HEAD_DIM", head_dim),))


@dataclass(frozen=True, slots=True)
class Flash:
    """How `flash.cu` is built for a head size: warps, rows of a tile, bytes of dynamic shared memory."""

    variant: Variant
    warps: int
    rows: int
    shared: int


def flash(head_dim: int, arch: int, few: bool) -> Flash:
    """The build for an architecture; blocks a multiprocessor are what registers allow without spills.

    Where tensor cores outrun shared memory a warp has two row tiles, if their sums fit its registers. Tiles
    of a step of `few` rows are smaller there, so that there are enough of them; the bits are the same.
    """
    if arch in _SHARED and arch != 75:
        shapes = {
            64: (4, 3, 1, 64, 3, 0) if few else (4, 2, 2, 64, 3, 0),
            128: (4, 3, 1, 32, 3, 0) if few else (4, 2, 2, 32, *((3, 3) if arch == 80 else (4, 4))),
            256: (4, 2, 1, 32, 3, 4) if few else (8, 1, 1, 32, 3, 4 if arch == 100 else 2),
        }
    else:
        shapes = {64: (8, 2, 1, 32, 3, 0), 128: (4, 2, 1, 32, 3, 0), 256: (8, 1, 1, 16, 3, 1)}
    warps, blocks, tiles, step, stages, slabs = shapes[head_dim]
    defines = {
        "HEAD_DIM": head_dim, "WARPS": warps, "BLOCKS": blocks, "TILES": tiles, "STEP": step,
        "STAGES": stages, "Q_SHARED": slabs,
    }  # fmt: skip
    rows = 16 * tiles * warps
    shared = stages * 4 * step * head_dim + 64 * rows * slabs
    return Flash(Variant("flash.cu", tuple(defines.items())), warps, rows, shared)


@dataclass(frozen=True, slots=True)
class DeltaChunk:
    """How `delta_chunk.cu` is built: rows of a chunk, and bytes of dynamic shared memory of its kernels.

    `work` are the bytes that a chunk of a head leaves in global memory.
    """

    variant: Variant
    rows: int
    work: int
    prepare: int
    chunks: int


def delta_chunk(arch: int) -> DeltaChunk:
    """The build for an architecture: chunks as large as registers allow, two in memory if they fit."""
    rows = 64 if 80 <= arch < 100 else 32
    work = 2 * 512 * (rows // 16) * (rows // 16 + 1) + 12 * rows
    sides = 2 * rows * 512
    stages = min(2, (_SHARED.get(arch, _SMALL)[0] << 10) // (sides + work))
    variant = Variant("delta_chunk.cu", (("CHUNK", rows), ("STAGES", stages)))
    return DeltaChunk(variant, rows, work, sides, stages * (sides + work))


def common() -> Iterator[Variant]:
    """What every model needs."""
    for file in ("norm.cu", "swiglu.cu", "head.cu", "sample.cu"):
        yield Variant(file)


def has_tiles(arch: int) -> bool:
    """Whether F16_TILES fit the shared memory."""
    return arch != 75


def probe() -> Variant:
    """What measures the card itself."""
    return Variant("probe.cu")


def all_variants(arch: int) -> Iterator[Variant]:
    """Everything that is shipped for an architecture."""
    for type_id in (*PACKED, *FLOATS, *([F16_TILES] if has_tiles(arch) else [])):
        yield from of_type(type_id, arch)
        yield embedding(type_id)
        if chunk(type_id):
            yield from of_experts(type_id, arch)
            yield dequantise(type_id)
            for source in sources(type_id):
                yield repack(type_id, source)
    for types in USUAL_SETS:
        if all(mixes(type_id, arch) for type_id in types):
            yield from of_set(types, INT8, arch)
    for head_dim in HEAD_DIMS:
        yield from of_head(head_dim)
        yield from (flash(head_dim, arch, few).variant for few in (True, False))
    for file in ("delta.cu", "delta_rows.cu", "recur.cu"):
        yield Variant(file)
    yield delta_chunk(arch).variant
    for file in ("moe.cu", "rows.cu", "draft.cu", "ranks.cu"):
        yield Variant(file)
    yield from common()
    yield probe()
