"""How quantised weights lie in memory for the CPU kernels, and how a kernel reads them.

A *panel* is 16 output rows, interleaved so that one 64-byte vector holds four consecutive inputs of every
row (lane r: row r). Packed fields (nibbles, high bits) keep GGUF's order inside those lanes, so
repacking only moves bytes. All codes of a panel come first, so that their vectors are aligned:

    codes [block][vector][row 16][4 bytes]      then      scales [block][field][row 16]

The bytes are those of the file; only the 6-bit scales of Q4_K and Q5_K grow to 8 bits (+3 %, +2 %).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernels.cpu.emit import F32, I8, I16, I32, I64, Emitter, Value, vec

PANEL = 16
Bytes = NDArray[np.uint8]


class Reader:
    """Reads rows [first, first + lanes) of one block of a panel; offsets are in its codes or scales.

    Large blocks are read in turns: `turn` is the running one, and offsets grow by `each` from turn to turn.
    """

    def __init__(self, e: Emitter, codes: Value, scales: Value, first: int, turn: Value) -> None:
        self.e, self._codes, self._scales, self._first = e, codes, scales, first
        self.turn = turn
        self.lanes = e.target.lanes
        self._kept: dict[int, Value] = {}

    def _moved(self, pointer: Value, each: int) -> Value:
        return self.e.move(pointer, self.e.b.mul(self.turn, I64(each))) if each else pointer

    def words(self, offset: int, each: int = 0) -> Value:
        """One vector of codes: four bytes of each row, as i32 lanes."""
        pointer = self._moved(self._codes, each)
        return self.e.load(vec(I32, self.lanes), pointer, offset + 4 * self._first)

    def halves(self, offset: int) -> Value:
        """An f16 of each row as f32; read once however often it is asked for."""
        if offset not in self._kept:
            bits = self.e.load(vec(I16, self.lanes), self._scales, offset + 2 * self._first)
            self._kept[offset] = self.e.from_f16(bits)
        return self._kept[offset]

    def bytes(self, offset: int, each: int, signed: bool = False) -> Value:
        """A byte of each row as f32."""
        b, wide = self.e.b, vec(I32, self.lanes)
        pointer = self._moved(self._scales, each)
        raw = self.e.load(vec(I8, self.lanes), pointer, offset + self._first)
        number = b.sext(raw, wide) if signed else b.zext(raw, wide)
        return b.sitofp(number, vec(F32, self.lanes))

    def field(self, words: Value, shift: int, mask: int, left: int = 0) -> Value:
        """Bits `mask` (repeated in each byte) of words >> shift, moved left by `left`."""
        b, kind = self.e.b, words.type
        move = shift - left
        if move > 0:
            words = b.lshr(words, self.e.const(kind, move))
        elif move < 0:
            words = b.shl(words, self.e.const(kind, -move))
        return b.and_(words, self.e.const(kind, (mask << left) * 0x01010101))


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes start .. stop of a file's block: `width` bytes of each row in turn.

    Before that, `change` may rewrite them and `flip` is applied to each bit of a byte.
    """

    start: int
    stop: int
    width: int
    flip: int = 0
    change: Callable[[Bytes], Bytes] | None = None


class Interleave(Protocol):
    """Rows (16 panels, blocks, bytes) -> to (panels, blocks, 16 bytes), `width` bytes of each row in turn."""

    def __call__(self, rows: Bytes, width: int, flip: int, to: Bytes, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Format:
    """One storage type of ggml in panels.

    `block` weights in `file_bytes` bytes of the file, here `code_bytes` and `scale_bytes` for 16 rows. A
    weight is scale * (code - 2^offset) + minimum, codes of `bits` bits; offset None means no offset.
    `group` inputs share a scale. `pieces` of a block make up the codes, then the scales.

    A block is read in turns of `step` times 32 inputs. Within a turn, `codes(reader, s)` are the 8 vectors of
    inputs 32 s .. 32 s + 31, `scale(reader, g)` and `minimum(reader, g)` the f32 vectors of group g.
    """

    name: str
    block: int
    file_bytes: int
    code_bytes: int
    scale_bytes: int
    bits: int
    offset: int | None
    group: int
    step: int
    pieces: tuple[Piece, ...]
    codes: Callable[[Reader, int], list[Value]]
    scale: Callable[[Reader, int], Value]
    minimum: Callable[[Reader, int], Value] | None = None

    def panel_bytes(self, n_blocks: int) -> int:
        """Bytes of a panel, so that the next one is aligned too."""
        return -(-n_blocks * (self.code_bytes + self.scale_bytes) // 64) * 64

    def pack(self, raw: Bytes, out: Bytes, interleave: Interleave) -> None:
        """File rows uint8 (N, row bytes) -> panels uint8 (ceil(N / 16), panel bytes)."""
        n, row = raw.shape
        blocks = row // self.file_bytes
        if n % PANEL:
            whole = n // PANEL * PANEL
            last = np.zeros((PANEL, row), np.uint8)
            last[: n - whole] = raw[whole:]
            self.pack(last, out[whole // PANEL :], interleave)
            raw, out = raw[:whole], out[: whole // PANEL]
        if not len(raw):
            return
        n_codes = blocks * self.code_bytes
        codes = out[:, :n_codes].reshape(len(out), blocks, -1)
        scales = out[:, n_codes : n_codes + blocks * self.scale_bytes].reshape(len(out), blocks, -1)
        step = max(1, (1 << 22) // (PANEL * row)) * PANEL
        for at in range(0, len(raw), step):
            part = raw[at : at + step].reshape(-1, blocks, self.file_bytes)
            panels = slice(at // PANEL, (at + len(part)) // PANEL)
            filled = 0
            for piece in self.pieces:
                to = codes if filled < self.code_bytes else scales
                start = filled if filled < self.code_bytes else filled - self.code_bytes
                source = part[..., piece.start : piece.stop]
                if piece.change is not None:
                    source = np.ascontiguousarray(piece.change(source))
                size = PANEL * source.shape[-1]
                interleave(source, piece.width, piece.flip, to[panels, :, start : start + size])
                filled += size


def _nibbles(r: Reader, at: int) -> list[Value]:
    """16 bytes whose low nibbles are inputs 0..15 and high nibbles 16..31."""
    words = [r.words(at + 64 * g) for g in range(4)]
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
        )
    }
)  # fmt: skip
"""The types whose products are computed on the packed blocks."""

DENSE: Mapping[str, int] = MappingProxyType({"F32": 4, "F16": 2, "BF16": 2})
"""Unquantised types and the bytes of a weight; their panels are [input][row 16]."""


def pack_dense(values: NDArray[Any], out: Bytes, interleave: Interleave) -> None:
    """(N, K) of one of the dense types (bf16 as uint16) -> panels uint8 (ceil(N / 16), K * 16 * size)."""
    n, k = values.shape
    whole, size = n // PANEL, values.itemsize
    rows = values[: whole * PANEL].view(np.uint8).reshape(whole * PANEL, 1, k * size)
    interleave(rows, size, 0, out[:whole].reshape(whole, 1, out.shape[1]))
    if n % PANEL:
        last = out[whole].view(values.dtype).reshape(k, PANEL)
        last[:] = 0
        last[:, : n % PANEL] = values[whole * PANEL :].T
