"""Every kernel that is shipped: source file, defines, and the shape of its blocks on each architecture."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PACKED: dict[int, int] = {2: 2304, 3: 2560, 6: 2816, 7: 3072, 8: 4352, 12: 2304, 13: 2816, 14: 3360}
"""Block formats (ggml's numbers) with a packed layout: bytes of a chunk of 16 rows x 256 columns."""

FLOATS: dict[int, int] = {0: 4, 1: 2, 30: 2}
"""Formats that are plain numbers, F32, F16 and BF16: bytes of one."""

HEAD_DIMS = (64, 128, 256)
"""Head sizes that attention is built for."""

ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
"""Compute capabilities that must compile."""

INT8, F16 = 8, 16
"""Forms of activations; `include/activation.cuh` describes them."""

BLOCK_BYTES = {INT8: 2400, F16: 4128}
"""Bytes of 256 columns of 8 batch rows."""

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


def _stages(size: int, blocks: int, arch: int) -> int:
    """Stages of `size` bytes that fit where `blocks` share a multiprocessor; at most 4."""
    block, whole = _SHARED.get(arch, _SMALL)
    room = min(block << 10, (whole << 10) // blocks - (1024 if arch >= 80 else 0))
    return min(4, room // size)


def matmul(type_id: int, form: int, groups: int, arch: int) -> Matmul:
    """The build for INT8 with 1, 2 or 4 groups, or for F16, where `groups` is the most that fit.

    Tiles and blocks of INT8 are those that suit 4 groups: with them a batch row's bits are the same for all.
    """
    chunk, activation = PACKED[type_id], BLOCK_BYTES[form]
    shapes = ((2, 4), (1, 4)) if form == INT8 else ((2, 8), (2, 4), (1, 4), (1, 2))
    crowded = arch in _SHARED and arch != 75
    for tiles, most in shapes:
        for blocks in (2, 1) if crowded else (1,):
            if _stages(chunk * _WARPS * tiles + activation * most, blocks, arch) < 2:
                continue
            nt = groups if form == INT8 else most
            size = chunk * _WARPS * tiles + activation * nt
            stages = _stages(size, blocks, arch)
            defines = {"TYPE": type_id, "FORM": form, "NT": nt, "TILES": tiles, "STAGES": stages}
            variant = Variant("matmul.cu", tuple(defines.items()))
            return Matmul(variant, nt, tiles * _WARPS, size * stages, blocks)
    raise ValueError(f"format {type_id}: no shape of matmul.cu fits sm_{arch}")


def groups_for(rows: int) -> int:
    """Groups of 8 a block of the INT8 form for up to 32 batch rows."""
    return 1 if rows <= 8 else 2 if rows <= 16 else 4


def of_type(type_id: int, arch: int) -> Iterator[Variant]:
    """What a matrix of one format needs."""
    if type_id in FLOATS:
        yield Variant("matmul_float.cu", (("TYPE", type_id),))
        return
    yield Variant("repack.cu", (("TYPE", type_id),))
    for groups in (1, 2, 4):
        yield matmul(type_id, INT8, groups, arch).variant
    yield matmul(type_id, F16, 8, arch).variant


def embedding(type_id: int) -> Variant:
    """The embedding of a table of that format."""
    return Variant("embed.cu", (("TYPE", type_id),))


def of_head(head_dim: int) -> Iterator[Variant]:
    """What attention with heads of that size needs."""
    yield Variant("rope.cu", (("HEAD_DIM", head_dim),))
    yield Variant("attention.cu", (("HEAD_DIM", head_dim),))


def common() -> Iterator[Variant]:
    """What every model needs."""
    for file in ("norm.cu", "swiglu.cu", "head.cu"):
        yield Variant(file)


def probe() -> Variant:
    """What measures the card itself."""
    return Variant("probe.cu")


def all_variants(arch: int) -> Iterator[Variant]:
    """Everything that is shipped for an architecture."""
    for type_id in (*PACKED, *FLOATS):
        yield from of_type(type_id, arch)
        yield embedding(type_id)
    for head_dim in HEAD_DIMS:
        yield from of_head(head_dim)
    yield from common()
    yield probe()
