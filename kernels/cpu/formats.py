"""The quantised types of ggml whose products are computed on the packed blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
from llvmlite import ir

from kernels.cpu.emit import F32, I8, I32, Value, vec
from kernels.cpu.panels import Bytes, Format, Piece, Reader


def _nibbles(r: Reader, at: int, each: int = 0) -> list[Value]:
    """16 bytes whose low nibbles are inputs 0..15 and high nibbles 16..31."""
    words = [r.words(at + 64 * g, each) for g in range(4)]
    return [r.field(w, 0, 15) for w in words] + [r.field(w, 4, 15) for w in words]


def _fifth_bits(r: Reader, at: int, low: list[Value]) -> list[Value]:
    """Add bit 4 of each code: bit g of byte j of the word at `at` is that of input 4 g + j."""
    high = r.words(at)
    return [r.e.b.or_(low[g], r.field(high, g, 1, left=4)) for g in range(8)]


def _spread_fifth(bits: Bytes) -> Bytes:
    """GGUF's 32 high bits (bit i: input i) -> the order of `_fifth_bits`."""
    ones = np.unpackbits(bits, axis=-1, bitorder="little").reshape(*bits.shape[:-1], 8, 4)
    return np.packbits(ones.swapaxes(-1, -2), axis=-1, bitorder="little").reshape(bits.shape)


def _k_scales(part: Bytes) -> Bytes:
    """The 12 bytes of 6-bit scales and minima of Q4_K and Q5_K -> 8 scales, 8 minima."""
    low, mid, high = part[..., 0:4], part[..., 4:8], part[..., 8:12]
    return np.concatenate(
        [
            low & 63,
            (high & 15) | (low >> 6) << 4,
            mid & 63,
            (high >> 4) | (mid >> 6) << 4,
        ],
        axis=-1,
    )


def _k_codes(r: Reader, s: int) -> list[Value]:
    return [r.field(r.words(64 * g, each=512), 4 * s, 15) for g in range(8)]


def _q5_k_codes(r: Reader, s: int) -> list[Value]:
    """Bit i of byte l of the high bits belongs to input 32 i + l."""
    b, kind = r.e.b, vec(I32, r.lanes)
    shift = b.add(b.shl(b.trunc(r.turn, I32), I32(1)), I32(s))
    shifts = r.e.splat(shift, r.lanes)
    low = [r.field(r.words(512 + 64 * g, each=512), 4 * s, 15) for g in range(8)]
    high = [b.lshr(r.words(64 * g), shifts) for g in range(8)]
    sixteen = r.e.const(kind, 0x10101010)
    moved = [b.and_(b.shl(h, r.e.const(kind, 4)), sixteen) for h in high]
    return [b.or_(low[g], moved[g]) for g in range(8)]


def _q6_k_codes(r: Reader, s: int) -> list[Value]:
    low = 512 * (s % 2)
    return [
        r.e.b.or_(
            r.field(r.words(low + 64 * g, each=1024), 4 * (s // 2), 15),
            r.field(r.words(2048 + 64 * g, each=512), 2 * s, 3, left=4),
        )
        for g in range(8)
    ]


def _k_scale(r: Reader, g: int) -> Value:
    return r.e.b.fmul(r.halves(0), r.bytes(64 + 16 * g, each=32))


def _k_minimum(r: Reader, g: int) -> Value:
    return r.e.b.fneg(r.e.b.fmul(r.halves(32), r.bytes(192 + 16 * g, each=32)))


def _q6_k_scale(r: Reader, g: int) -> Value:
    return r.e.b.fmul(r.halves(0), r.bytes(32 + 16 * g, each=128, signed=True))


def _looked_up(table: Sequence[int]) -> Callable[[Reader, list[Value]], list[Value]]:
    """Nibbles -> the numbers of a table of 16 int8, plus 128."""

    def look_up(r: Reader, nibbles: list[Value]) -> list[Value]:
        e, kind, small = r.e, nibbles[0].type, vec(I8, 4 * r.lanes)
        wanted = [number + 128 for number in table]
        name = {16: "llvm.x86.avx512.pshuf.b.512", 8: "llvm.x86.avx2.pshuf.b"}[r.lanes]
        if e.target.dot != "plain":
            lut = ir.Constant(small, wanted * (r.lanes // 4))
            found = [e.call(name, small, lut, e.b.bitcast(n, small)) for n in nibbles]
            return [e.b.bitcast(f, kind) for f in found]
        out = []
        for nibble in nibbles:
            index, found = e.b.bitcast(nibble, small), e.const(small, wanted[0])
            for i in range(1, 16):
                here = e.b.icmp_unsigned("==", index, e.const(small, i))
                found = e.b.select(here, e.const(small, wanted[i]), found)
            out.append(e.b.bitcast(found, kind))
        return out

    return look_up


_iq4 = _looked_up((-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113))
_e2m1_twice = _looked_up((0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12))


def _iq4_xs_scales(part: Bytes) -> Bytes:
    """The 2 + 4 bytes of 6-bit scales -> 8 of int8."""
    high = part[..., :2].copy().view("<u2") >> np.arange(0, 16, 2, dtype=np.uint16) & 3
    low = np.stack([part[..., 2:] & 15, part[..., 2:] >> 4], axis=-1).reshape(high.shape)
    return (low | high.astype(np.uint8) << 4) - np.uint8(32)


def _half_power(r: Reader, g: int) -> Value:
    """An exponent byte e -> 2^(e - 128)."""
    b, e, kind = r.e.b, r.e, vec(I32, r.lanes)
    power = r.bytes_as_int(0, 0)
    tiny = b.shl(e.const(kind, 0x200000), power)
    normal = b.shl(b.sub(power, e.const(kind, 1)), e.const(kind, 23))
    small = b.icmp_unsigned("<", power, e.const(kind, 2))
    return b.bitcast(b.select(small, tiny, normal), vec(F32, r.lanes))


def _q2_k_codes(r: Reader, s: int) -> list[Value]:
    return [r.field(r.words(64 * g, each=512), 2 * s, 3) for g in range(8)]


def _q2_k_scale(r: Reader, g: int) -> Value:
    return r.e.b.fmul(r.halves(0), r.bytes(64 + 16 * g, each=128))


def _q2_k_minimum(r: Reader, g: int) -> Value:
    return r.e.b.fneg(r.e.b.fmul(r.halves(32), r.bytes(320 + 16 * g, each=128)))


def _q2_k_scales(part: Bytes) -> Bytes:
    """16 bytes of scale and minimum nibbles -> 16 scales, 16 minima."""
    return np.concatenate([part & 15, part >> 4], axis=-1)


def _q3_k_codes(r: Reader, s: int) -> list[Value]:
    """Bit i of byte l of the high bits belongs to input 32 i + l."""
    b, kind = r.e.b, vec(I32, r.lanes)
    shifts = r.e.splat(b.add(b.shl(b.trunc(r.turn, I32), I32(2)), I32(s)), r.lanes)
    four = r.e.const(kind, 0x04040404)
    high = [b.lshr(r.words(1024 + 64 * g), shifts) for g in range(8)]
    moved = [b.and_(b.shl(h, r.e.const(kind, 2)), four) for h in high]
    return [b.or_(low, bit) for low, bit in zip(_q2_k_codes(r, s), moved, strict=True)]


def _q3_k_scale(r: Reader, g: int) -> Value:
    return r.e.b.fmul(r.halves(0), r.bytes(32 + 16 * g, each=128, signed=True))


def _q3_k_scales(part: Bytes) -> Bytes:
    """12 bytes of 6-bit scales -> 16 of int8."""
    low = np.concatenate([part[..., :8] & 15, part[..., :8] >> 4], axis=-1)
    high = np.concatenate([part[..., 8:] >> shift & 3 for shift in (0, 2, 4, 6)], axis=-1)
    return (low | high << 4) - np.uint8(32)


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        f.name: f
        for f in (
            Format(
                "Q4_0", 32, 18, 256, 32, 4, 3, 32, 1, (Piece(2, 18, 4), Piece(0, 2, 2)),
                lambda r, s: _nibbles(r, 0), lambda r, g: r.halves(0),
            ),
            Format(
                "Q4_1", 32, 20, 256, 64, 4, None, 32, 1, (Piece(4, 20, 4), Piece(0, 4, 2)),
                lambda r, s: _nibbles(r, 0), lambda r, g: r.halves(0), lambda r, g: r.halves(32),
            ),
            Format(
                "Q5_0", 32, 22, 320, 32, 5, 4, 32, 1,
                (Piece(6, 22, 4), Piece(2, 6, 4, change=_spread_fifth), Piece(0, 2, 2)),
                lambda r, s: _fifth_bits(r, 256, _nibbles(r, 0)), lambda r, g: r.halves(0),
            ),
            Format(
                "Q5_1", 32, 24, 320, 64, 5, None, 32, 1,
                (Piece(8, 24, 4), Piece(4, 8, 4, change=_spread_fifth), Piece(0, 4, 2)),
                lambda r, s: _fifth_bits(r, 256, _nibbles(r, 0)), lambda r, g: r.halves(0),
                lambda r, g: r.halves(32),
            ),
            Format(
                "Q8_0", 32, 34, 512, 32, 8, 7, 32, 1, (Piece(2, 34, 4, flip=0x80), Piece(0, 2, 2)),
                lambda r, s: [r.words(64 * g) for g in range(8)], lambda r, g: r.halves(0),
            ),
            Format(
                "Q4_K", 256, 144, 2048, 320, 4, None, 32, 2,
                (Piece(16, 144, 4), Piece(0, 4, 2), Piece(4, 16, 1, change=_k_scales)),
                _k_codes, _k_scale, _k_minimum,
            ),
            Format(
                "Q5_K", 256, 176, 2560, 320, 5, None, 32, 2,
                (Piece(16, 176, 4), Piece(0, 4, 2), Piece(4, 16, 1, change=_k_scales)),
                _q5_k_codes, _k_scale, _k_minimum,
            ),
            Format(
                "Q6_K", 256, 210, 3072, 288, 6, 5, 16, 4,
                (Piece(0, 128, 4), Piece(128, 192, 4), Piece(208, 210, 2), Piece(192, 208, 1)),
                _q6_k_codes,
                _q6_k_scale,
            ),
            Format(
                "Q2_K", 256, 84, 1024, 576, 2, None, 16, 4,
                (Piece(16, 80, 4), Piece(80, 84, 2), Piece(0, 16, 1, change=_q2_k_scales)),
                _q2_k_codes, _q2_k_scale, _q2_k_minimum,
            ),
            Format(
                "Q3_K", 256, 110, 1536, 288, 3, 2, 16, 4,
                (Piece(32, 96, 4), Piece(0, 32, 4), Piece(108, 110, 2),
                 Piece(96, 108, 1, change=_q3_k_scales)),
                _q3_k_codes, _q3_k_scale,
            ),
            Format(
                "IQ4_NL", 32, 18, 256, 32, 8, 7, 32, 1, (Piece(2, 18, 4), Piece(0, 2, 2)),
                lambda r, s: _iq4(r, _nibbles(r, 0)), lambda r, g: r.halves(0),
            ),
            Format(
                "IQ4_XS", 256, 136, 2048, 160, 8, 7, 32, 2,
                (Piece(8, 136, 4), Piece(0, 2, 2), Piece(2, 8, 1, change=_iq4_xs_scales)),
                lambda r, s: _iq4(r, _nibbles(r, 256 * s, each=512)),
                lambda r, g: r.e.b.fmul(r.halves(0), r.bytes(32 + 16 * g, each=32, signed=True)),
            ),
            Format(
                "MXFP4", 32, 17, 256, 16, 8, 7, 32, 1, (Piece(1, 17, 4), Piece(0, 1, 1)),
                lambda r, s: _e2m1_twice(r, _nibbles(r, 0)), _half_power,
            ),
        )
    }
)  # fmt: skip
"""The types whose products are computed on the packed blocks."""
