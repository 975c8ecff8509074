"""How quantised weights lie in memory for the CPU kernels, and how a kernel reads them.

A *panel* is 16 output rows, interleaved so that one 64-byte vector holds four consecutive inputs of every
row (lane r: row r). Packed fields (nibbles, high bits) keep GGUF's order inside those lanes, so
repacking only moves bytes. All codes of a panel come first, so that their vectors are aligned:

    codes [block][vector][row 16][4 bytes]      then      scales [block][field][row 16]

The bytes are those of the file; only scales of 4 and 6 bits grow to 8 (Q4_K +3 %, Q2_K +19 %).
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

DENSE: Mapping[str, int] = MappingProxyType({"F32": 4, "F16": 2, "BF16": 2})
"""Unquantised types and the bytes of a weight; their panels are [input][row 16]."""

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
        return self.e.b.sitofp(self.bytes_as_int(offset, each, signed), vec(F32, self.lanes))

    def bytes_as_int(self, offset: int, each: int, signed: bool = False) -> Value:
        """A byte of each row as i32."""
        b, wide = self.e.b, vec(I32, self.lanes)
        pointer = self._moved(self._scales, each)
        raw = self.e.load(vec(I8, self.lanes), pointer, offset + self._first)
        return b.sext(raw, wide) if signed else b.zext(raw, wide)

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
