"""The block formats of GGUF tensors and their exact conversion to float32.

Every format stores rows of weights as blocks of `block` weights in `bytes` bytes. The layouts are those of
ggml's `ggml-common.h`; arithmetic is in float32 and in ggml's order, so results are equal bit for bit.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import UnsupportedModel

Blocks = NDArray[Any]
Floats = NDArray[np.float32]

_GRIDS = Path(__file__).resolve().parents[1] / "resources" / "quants" / "iq_grids.npz"
_CHUNK = 1 << 20  # weights converted at a time: keeps the temporaries small and in cache


@dataclass(frozen=True, slots=True)
class QuantType:
    """One storage format: ggml's number and name, `block` weights in `bytes` bytes."""

    id: int
    name: str
    block: int
    bytes: int

    def row_bytes(self, n: int) -> int:
        """Bytes of a row of `n` weights; `n` is a multiple of `block`."""
        return n // self.block * self.bytes

    @property
    def bits(self) -> float:
        """Bits for each weight, scales included."""
        return self.bytes * 8 / self.block

    @property
    def can_dequantize(self) -> bool:
        """Whether `dequantize` knows the format; otherwise only its size is known."""
        return self.name in _UNPACK

    def __str__(self) -> str:
        return self.name


TYPES: Mapping[int, QuantType] = MappingProxyType(
    {
        id: QuantType(id, name, block, size)
        for id, name, block, size in (
            (0, "F32", 1, 4), (1, "F16", 1, 2), (2, "Q4_0", 32, 18), (3, "Q4_1", 32, 20),
            (6, "Q5_0", 32, 22), (7, "Q5_1", 32, 24), (8, "Q8_0", 32, 34), (9, "Q8_1", 32, 36),
            (10, "Q2_K", 256, 84), (11, "Q3_K", 256, 110), (12, "Q4_K", 256, 144),
            (13, "Q5_K", 256, 176), (14, "Q6_K", 256, 210), (15, "Q8_K", 256, 292),
            (16, "IQ2_XXS", 256, 66), (17, "IQ2_XS", 256, 74), (18, "IQ3_XXS", 256, 98),
            (19, "IQ1_S", 256, 50), (20, "IQ4_NL", 32, 18), (21, "IQ3_S", 256, 110),
            (22, "IQ2_S", 256, 82), (23, "IQ4_XS", 256, 136), (24, "I8", 1, 1), (25, "I16", 1, 2),
            (26, "I32", 1, 4), (27, "I64", 1, 8), (28, "F64", 1, 8), (29, "IQ1_M", 256, 56),
            (30, "BF16", 1, 2), (34, "TQ1_0", 256, 54), (35, "TQ2_0", 256, 66),
            (39, "MXFP4", 32, 17), (40, "NVFP4", 64, 36), (41, "Q1_0", 128, 18),
        )
    }
)  # fmt: skip


def by_name(name: str) -> QuantType:
    """The type of that ggml name; `KeyError` if there is none."""
    for kind in TYPES.values():
        if kind.name == name:
            return kind
    raise KeyError(name)


def dequantize(data: NDArray[np.uint8], type: QuantType) -> Floats:
    """Weights of quantised rows: uint8 (..., row bytes) -> float32 (..., n).

    `UnsupportedModel` for a format of which only the size is known, `ValueError` for half a block.
    """
    unpack = _UNPACK.get(type.name)
    if unpack is None:
        raise UnsupportedModel(
            f"Found weights of type {type.name}, which this version cannot read; "
            "expected one of " + ", ".join(_UNPACK) + ". Use another quantisation of the model."
        )
    if data.dtype != np.uint8 or data.ndim == 0 or data.shape[-1] % type.bytes:
        raise ValueError(f"{type.name}: {data.dtype} {data.shape} is not rows of whole blocks")
    blocks = np.ascontiguousarray(data).reshape(-1, type.bytes)
    out = np.empty((len(blocks), type.block), np.float32)
    step = max(1, _CHUNK // type.block)
    with np.errstate(invalid="ignore", over="ignore"):  # scales may be NaN or infinite in bad files
        for at in range(0, len(blocks), step):
            part = blocks[at : at + step].view(_LAYOUT[type.name])[:, 0]
            out[at : at + step] = unpack(part).reshape(-1, type.block)
    return out.reshape(*data.shape[:-1], -1)


@functools.cache
def grid(name: str) -> NDArray[np.int8]:
    """The codebook of a type of the IQ family: int8 (entries, weights each), read-only.

    `IQ1_M` shares that of `IQ1_S`. The file is written by `tests/tools/make_iq_grids.py`.
    """
    with np.load(_GRIDS, allow_pickle=False) as tables:
        table: NDArray[np.int8] = tables["IQ1_S" if name == "IQ1_M" else name]
    table.setflags(write=False)
    return table


def _frozen(values: Any, dtype: Any) -> NDArray[Any]:
    """A constant table."""
    table = np.array(values, dtype)
    table.setflags(write=False)
    return table


_IQ4 = _frozen(
    (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113), np.float32
)
_E2M1_TWICE = _frozen((0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12), np.float32)
_SIGNS = _frozen(1 - 2 * ((np.arange(256)[:, None] >> np.arange(8)) & 1), np.float32)
# Seven stored sign bits; the eighth makes the number of minus signs even.
_EVEN_SIGNS = _frozen([_SIGNS[i | (i.bit_count() & 1) << 7] for i in range(128)], np.float32)
_THREES = _frozen((1, 3, 9, 27, 81), np.uint8)
_HALF, _QUARTER, _DELTA = np.float32(0.5), np.float32(0.25), np.float32(0.125)


def _f32(values: Blocks) -> Floats:
    """Any numbers as float32."""
    return values.astype(np.float32)


def _d(b: Blocks, name: str = "d", axes: int = 1) -> Floats:
    """A block's f16 scale as float32 (blocks, 1, ...) with `axes` trailing axes."""
    return _f32(b[name]).reshape(-1, *(1,) * axes)


def _planes(bytes_: Blocks, width: int) -> Blocks:
    """Split bytes in fields of `width` bits, field by field: (..., n) -> (..., 8/width, n)."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)[:, None]
    return (bytes_[..., None, :] >> shifts) & np.uint8((1 << width) - 1)


def _fields(bytes_: Blocks, width: int) -> Blocks:
    """Split bytes in fields of `width` bits, byte by byte, low first: (..., n) -> (..., n*8/width)."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)
    split = (bytes_[..., None] >> shifts) & np.uint8((1 << width) - 1)
    return split.reshape(*bytes_.shape[:-1], -1)


def _signed(q: Blocks, offset: int) -> Floats:
    """Unsigned codes minus an offset as float32."""
    return _f32(q.astype(np.int8) - np.int8(offset))


def _q4_0(b: Blocks) -> Floats:
    return _d(b) * _signed(_planes(b["qs"], 4).reshape(-1, 32), 8)


def _q4_1(b: Blocks) -> Floats:
    return _d(b) * _f32(_planes(b["qs"], 4).reshape(-1, 32)) + _d(b, "m")


def _five_bits(b: Blocks) -> Blocks:
    return _planes(b["qs"], 4).reshape(-1, 32) | _fields(b["qh"], 1) << np.uint8(4)


def _q5_0(b: Blocks) -> Floats:
    return _d(b) * _signed(_five_bits(b), 16)


def _q5_1(b: Blocks) -> Floats:
    return _d(b) * _f32(_five_bits(b)) + _d(b, "m")


def _q8_0(b: Blocks) -> Floats:
    return _d(b) * _f32(b["qs"])


def _q2_k(b: Blocks) -> Floats:
    scale = (_d(b) * _f32(b["scales"] & 15))[..., None]
    low = (_d(b, "dmin") * _f32(b["scales"] >> 4))[..., None]
    return scale * _f32(_planes(b["qs"], 2).reshape(-1, 16, 16)) - low


def _q3_k(b: Blocks) -> Floats:
    low = _planes(b["scales"][:, :8], 4).reshape(-1, 16)
    high = _planes(b["scales"][:, 8:], 2).reshape(-1, 16)
    scale = (_d(b) * _signed(low | high << np.uint8(4), 32))[..., None]
    # The high bit is stored inverted: a set bit adds nothing, a clear one subtracts 4.
    q = _planes(b["qs"], 2).reshape(-1, 8, 32) | _planes(b["hmask"], 1) << np.uint8(2)
    return scale * _signed(q, 4).reshape(-1, 16, 16)


def _k_scales(b: Blocks) -> tuple[Floats, Floats]:
    """Scale and minimum of the eight parts of a Q4_K or Q5_K block, each (blocks, 8, 1)."""
    s = b["scales"].reshape(-1, 3, 4)
    scale = np.concatenate([s[:, 0] & 63, (s[:, 2] & 15) | (s[:, 0] >> 2) & 48], axis=-1)
    low = np.concatenate([s[:, 1] & 63, (s[:, 2] >> 4) | (s[:, 1] >> 2) & 48], axis=-1)
    return (_d(b) * _f32(scale))[..., None], (_d(b, "dmin") * _f32(low))[..., None]


def _q4_k(b: Blocks) -> Floats:
    scale, low = _k_scales(b)
    return scale * _f32(_planes(b["qs"], 4).reshape(-1, 8, 32)) - low


def _q5_k(b: Blocks) -> Floats:
    scale, low = _k_scales(b)
    q = _planes(b["qs"], 4).reshape(-1, 8, 32) | _planes(b["qh"], 1) << np.uint8(4)
    return scale * _f32(q) - low


def _q6_k(b: Blocks) -> Floats:
    scale = (_d(b) * _f32(b["scales"]))[..., None]
    low = _planes(b["ql"], 4).reshape(-1, 8, 32)
    high = _planes(b["qh"], 2).reshape(-1, 8, 32)
    return scale * _signed(low | high << np.uint8(4), 32).reshape(-1, 16, 16)


def _tq1_0(b: Blocks) -> Floats:
    # Five base-3 digits a byte, stored as a fraction of 256: multiply (wrapping), take the top digit.
    qs, qh = b["qs"], b["qh"]
    digits = np.concatenate(
        [
            (qs[:, None, :32] * _THREES[:, None]).reshape(-1, 160),
            (qs[:, None, 32:] * _THREES[:, None]).reshape(-1, 80),
            (qh[:, None, :] * _THREES[:4, None]).reshape(-1, 16),
        ],
        axis=-1,
    )
    return _d(b) * _signed((digits.astype(np.uint16) * 3) >> 8, 1)


def _tq2_0(b: Blocks) -> Floats:
    return _d(b) * _signed(_planes(b["qs"], 2).reshape(-1, 256), 1)


def _mxfp4(b: Blocks) -> Floats:
    # An E8M0 exponent, halved because the table holds doubled values; 0 and 1 are subnormal floats.
    e = b["e"].astype(np.uint32)
    half = np.where(e < 2, np.uint32(0x200000) << e, (e - 1) << np.uint32(23)).view(np.float32)
    return half[:, None] * _E2M1_TWICE[_planes(b["qs"], 4).reshape(-1, 32)]


def _nvfp4(b: Blocks) -> Floats:
    # Four E4M3 scales without sign, halved as in MXFP4; 127 is NaN in the format and 0 in ggml.
    e, m = (b["e"] >> 3).astype(np.int32) & 15, _f32(b["e"] & 7)
    scale = np.where(e == 0, np.ldexp(m, -9), np.ldexp(1 + m / 8, e - 7)) * _HALF
    scale = _f32(np.where(b["e"] == 127, 0, scale))[..., None]
    return scale * _E2M1_TWICE[_planes(b["qs"].reshape(-1, 4, 8), 4).reshape(-1, 4, 16)]


def _iq4_nl(b: Blocks) -> Floats:
    return _d(b) * _IQ4[_planes(b["qs"], 4).reshape(-1, 32)]


def _iq4_xs(b: Blocks) -> Floats:
    high = (b["scales_h"][:, None] >> np.arange(0, 16, 2, dtype=np.uint16)) & 3
    scale = _d(b) * _signed(_fields(b["scales_l"], 4) | high << 4, 32)
    return scale[..., None] * _IQ4[_planes(b["qs"], 4).reshape(-1, 8, 32)]


def _sevens(aux: Blocks) -> Floats:
    """The signs in the low 28 bits of each word: (..., words) -> float32 (..., words, 4, 8)."""
    return _EVEN_SIGNS[(aux[..., None] >> np.arange(0, 28, 7, dtype=np.uint32)) & 127]


def _iq2_xxs(b: Blocks) -> Floats:
    aux = b["qs"]["aux"]
    scale = _d(b) * (_HALF + _f32(aux >> 28)) * _QUARTER
    return scale[..., None, None] * _f32(grid("IQ2_XXS")[b["qs"]["index"]]) * _sevens(aux)


def _iq2_scale(b: Blocks) -> Floats:
    """Scales of 16 weights each: (blocks, 16, 1, 1)."""
    return (_d(b) * (_HALF + _f32(_fields(b["scales"], 4))) * _QUARTER)[..., None, None]


def _iq2_xs(b: Blocks) -> Floats:
    values = _f32(grid("IQ2_XS")[b["qs"] & 511]).reshape(-1, 16, 2, 8)
    return _iq2_scale(b) * values * _EVEN_SIGNS[b["qs"] >> 9].reshape(-1, 16, 2, 8)


def _iq2_s(b: Blocks) -> Floats:
    index = b["qs"] | _fields(b["qh"], 2).astype(np.uint16) << 8
    values = _f32(grid("IQ2_S")[index]).reshape(-1, 16, 2, 8)
    return _iq2_scale(b) * values * _SIGNS[b["signs"]].reshape(-1, 16, 2, 8)


def _iq3_xxs(b: Blocks) -> Floats:
    scale = _d(b) * (_HALF + _f32(b["aux"] >> 28)) * _HALF
    values = _f32(grid("IQ3_XXS")[b["qs"]]).reshape(-1, 8, 4, 8)
    return scale[..., None, None] * values * _sevens(b["aux"])


def _iq3_s(b: Blocks) -> Floats:
    scale = _d(b) * _f32(1 + 2 * _fields(b["scales"], 4))
    index = b["qs"] | _fields(b["qh"], 1).astype(np.uint16) << 8
    values = _f32(grid("IQ3_S")[index]).reshape(-1, 8, 4, 8)
    return scale[..., None, None] * values * _SIGNS[b["signs"]].reshape(-1, 8, 4, 8)


def _iq1_s(b: Blocks) -> Floats:
    qh = b["qh"]
    scale = _d(b) * _f32(2 * ((qh >> 12) & 7) + 1)
    delta = np.where(qh & 0x8000, -_DELTA, _DELTA)
    high = (qh[..., None] >> np.arange(0, 12, 3, dtype=np.uint16)) & 7
    values = _f32(grid("IQ1_S")[b["qs"].reshape(-1, 8, 4) | high << 8])
    return scale[..., None, None] * (values + delta[..., None, None])


def _iq1_m(b: Blocks) -> Floats:
    s = b["scales"]
    # The f16 scale lies in the top four bits of the four words.
    d = (s[:, 0] >> 12) | (s[:, 1] >> 12) << 4 | (s[:, 2] >> 12) << 8 | (s[:, 3] >> 12) << 12
    parts = ((s[..., None] >> np.arange(0, 12, 3, dtype=np.uint16)) & 7).reshape(-1, 16)
    scale = _f32(d.view(np.float16))[:, None] * _f32(2 * parts + 1)
    qh = _fields(b["qh"], 4)
    delta = np.where(qh & 8, -_DELTA, _DELTA).reshape(-1, 16, 2, 1)
    index = b["qs"] | (qh & 7).astype(np.uint16) << 8
    values = _f32(grid("IQ1_S")[index]).reshape(-1, 16, 2, 8)
    return scale[..., None, None] * (values + delta)


def _bf16(b: Blocks) -> Floats:
    return (b["v"].astype(np.uint32) << np.uint32(16)).view(np.float32)


def _plain(b: Blocks) -> Floats:
    return _f32(b["v"])


_D, _M, _DMIN = ("d", "<f2"), ("m", "<f2"), ("dmin", "<f2")
_FORMATS: tuple[tuple[str, Callable[[Blocks], Floats], list[Any]], ...] = (
    ("F32", _plain, [("v", "<f4")]),
    ("F16", _plain, [("v", "<f2")]),
    ("BF16", _bf16, [("v", "<u2")]),
    ("F64", _plain, [("v", "<f8")]),
    ("I8", _plain, [("v", "i1")]),
    ("I16", _plain, [("v", "<i2")]),
    ("I32", _plain, [("v", "<i4")]),
    ("I64", _plain, [("v", "<i8")]),
    ("Q4_0", _q4_0, [_D, ("qs", "u1", 16)]),
    ("Q4_1", _q4_1, [_D, _M, ("qs", "u1", 16)]),
    ("Q5_0", _q5_0, [_D, ("qh", "u1", 4), ("qs", "u1", 16)]),
    ("Q5_1", _q5_1, [_D, _M, ("qh", "u1", 4), ("qs", "u1", 16)]),
    ("Q8_0", _q8_0, [_D, ("qs", "i1", 32)]),
    ("Q2_K", _q2_k, [("scales", "u1", 16), ("qs", "u1", (2, 32)), _D, _DMIN]),
    ("Q3_K", _q3_k, [("hmask", "u1", 32), ("qs", "u1", (2, 32)), ("scales", "u1", 12), _D]),
    ("Q4_K", _q4_k, [_D, _DMIN, ("scales", "u1", 12), ("qs", "u1", (4, 32))]),
    ("Q5_K", _q5_k, [_D, _DMIN, ("scales", "u1", 12), ("qh", "u1", 32), ("qs", "u1", (4, 32))]),
    ("Q6_K", _q6_k, [("ql", "u1", (2, 64)), ("qh", "u1", (2, 32)), ("scales", "i1", 16), _D]),
    ("TQ1_0", _tq1_0, [("qs", "u1", 48), ("qh", "u1", 4), _D]),
    ("TQ2_0", _tq2_0, [("qs", "u1", (2, 32)), _D]),
    ("MXFP4", _mxfp4, [("e", "u1"), ("qs", "u1", 16)]),
    ("NVFP4", _nvfp4, [("e", "u1", 4), ("qs", "u1", 32)]),
    ("IQ4_NL", _iq4_nl, [_D, ("qs", "u1", 16)]),
    ("IQ4_XS", _iq4_xs, [_D, ("scales_h", "<u2"), ("scales_l", "u1", 4), ("qs", "u1", (8, 16))]),
    ("IQ2_XXS", _iq2_xxs, [_D, ("qs", [("index", "u1", 4), ("aux", "<u4")], 8)]),
    ("IQ2_XS", _iq2_xs, [_D, ("qs", "<u2", 32), ("scales", "u1", 8)]),
    (
        "IQ2_S", _iq2_s,
        [_D, ("qs", "u1", 32), ("signs", "u1", 32), ("qh", "u1", 8), ("scales", "u1", 8)],
    ),
    ("IQ3_XXS", _iq3_xxs, [_D, ("qs", "u1", 64), ("aux", "<u4", 8)]),
    (
        "IQ3_S", _iq3_s,
        [_D, ("qs", "u1", 64), ("qh", "u1", 8), ("signs", "u1", 32), ("scales", "u1", 4)],
    ),
    ("IQ1_S", _iq1_s, [_D, ("qs", "u1", 32), ("qh", "<u2", 8)]),
    ("IQ1_M", _iq1_m, [("qs", "u1", 32), ("qh", "u1", 16), ("scales", "<u2", 4)]),
)  # fmt: skip
_UNPACK = MappingProxyType({name: unpack for name, unpack, _ in _FORMATS})
_LAYOUT = MappingProxyType({name: np.dtype(fields) for name, _, fields in _FORMATS})
