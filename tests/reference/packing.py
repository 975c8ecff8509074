"""The GPU's packed weight layout in NumPy: GGUF blocks -> chunks -> weights, and the tensor core's operands.

`kernels/include/layout.cuh` describes the layout; this says the same a second time, from the other side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engine.quants import by_name
from tests.reference import books
from tests.reference.books import BOOKS

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

# Bits of a code: in the quants, and above them.
BITS = {
    "Q4_0": (4, 0), "Q4_1": (4, 0), "Q5_0": (4, 1), "Q5_1": (4, 1), "Q8_0": (8, 0), "Q2_K": (2, 0),
    "Q3_K": (2, 1), "Q4_K": (4, 0), "Q5_K": (4, 1), "Q6_K": (6, 0), "IQ4_NL": (4, 0),
    "IQ4_XS": (4, 0), "MXFP4": (4, 0), "TQ1_0": (2, 0), "TQ2_0": (2, 0),
}  # fmt: skip
FORMATS = (*BITS, *BOOKS)
ZERO = {"Q4_0": 8, "Q5_0": 16, "Q6_K": 32, "Q3_K": 4, "TQ1_0": 1, "TQ2_0": 1}
HEADS = {
    "Q4_1": (16, 16), "Q5_1": (16, 16), "Q2_K": (16, 4), "Q3_K": (16, 2), "Q6_K": (16, 2),
    "IQ4_XS": (8, 2), "MXFP4": (8,), "TQ1_0": (2,), "TQ2_0": (2,), "IQ2_XXS": (4, 2), "IQ2_XS": (8, 2),
    "IQ2_S": (8, 2), "IQ3_XXS": (4, 2), "IQ3_S": (4, 2), "IQ1_S": (4, 2), "IQ1_M": (8, 2),
}  # fmt: skip
"""Bytes that each row has in each part of a chunk's head; others have 16 in one."""

IQ4 = (-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113)
E2M1 = (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
TABLES = {"IQ4_NL": IQ4, "IQ4_XS": IQ4, "MXFP4": E2M1}
"""The signed bytes that codes stand for."""

LANE, WORD, BYTE = np.meshgrid(np.arange(32), np.arange(4), np.arange(4), indexing="ij")
ROW = LANE // 4 + 8 * (WORD & 1)
COLUMN = 4 * (LANE % 4) + 16 * (WORD >> 1) + BYTE
"""Row 0..15 and column 0..31 of byte b of word r of a lane, in a slab of a chunk."""


@dataclass(frozen=True)
class Parts:
    """A matrix taken apart: codes (rows, columns), and per row the bytes of each part of the head."""

    codes: Bytes
    heads: tuple[Bytes, ...]


def _fields(bytes_: Bytes, bits: int) -> Bytes:
    """(.., n) bytes -> (.., 8 / bits, n) fields, the lowest first."""
    return (bytes_[..., None, :] >> np.arange(0, 8, bits)[:, None]) & ((1 << bits) - 1)


def _signed(low: Bytes, high: Bytes) -> Bytes:
    """Six-bit scales less 32 as bytes."""
    return ((low | high << 4).astype(np.int8) - 32).astype(np.int8).view(np.uint8)


def take_apart(data: Bytes, name: str, columns: int) -> Parts:
    """Blocks of whole rows (rows, bytes), padded with zero bytes to multiples of 256 columns."""
    kind = by_name(name)
    rows, superblocks = len(data), -(-columns // 256)
    b = np.zeros((rows, superblocks * 256 // kind.block, kind.bytes), np.uint8)
    b[:, : columns // kind.block] = data.reshape(rows, -1, kind.bytes)
    shape = b.shape[:2]
    if kind.block == 32:
        codes = b[..., 2:] if name == "Q8_0" else _fields(b[..., -16:], 4).reshape(*shape, 32)
        if name in ("Q5_0", "Q5_1"):
            codes = codes | np.unpackbits(b[..., -20:-16], axis=-1, bitorder="little") << 4
        n = 1 if name == "MXFP4" else 2
        at = range(0, sum(HEADS.get(name, (16,))) // 8, n)
        heads = [b[..., i : i + n].reshape(rows, superblocks, 8 * n) for i in at]
    elif name in ("Q4_K", "Q5_K"):
        codes = _fields(b[..., -128:].reshape(*shape, 4, 32), 4).reshape(*shape, 8, 32)
        if name == "Q5_K":
            codes = codes | _fields(b[..., 16:48], 1) << 4
        heads = [b[..., :16]]
    elif name in ("Q2_K", "Q3_K"):
        quants = b[..., 16:80] if name == "Q2_K" else b[..., 32:96]
        codes = _fields(quants.reshape(*shape, 2, 32), 2).reshape(*shape, 8, 32)
        heads = [b[..., :16], b[..., 80:84]]
        if name == "Q3_K":
            codes = codes | _fields(b[..., :32], 1) << 2
            low = _fields(b[..., 96:104], 4).reshape(*shape, 16)
            high = _fields(b[..., 104:108], 2).reshape(*shape, 16)
            heads = [_signed(low, high), b[..., 108:110]]
    elif name == "Q6_K":
        low = _fields(b[..., :128].reshape(*shape, 2, 64), 4).reshape(*shape, 8, 32)
        codes = low | _fields(b[..., 128:192].reshape(*shape, 2, 32), 2).reshape(low.shape) << 4
        heads = [b[..., 192:208], b[..., 208:]]
    elif name == "TQ2_0":
        codes, heads = _fields(b[..., :64].reshape(*shape, 2, 32), 2), [b[..., 64:]]
    elif name == "TQ1_0":  # digits of base 3 as fractions of 256
        powers = np.array([[1], [3], [9], [27], [81]], np.uint8)
        parts = [(b[..., :32], 5), (b[..., 32:48], 5), (b[..., 48:52], 4)]
        digits = [(p[..., None, :] * powers[:n]).reshape(*shape, -1) for p, n in parts]
        codes = np.concatenate(digits, axis=-1).astype(np.uint16) * 3 >> 8
        heads = [b[..., 52:]]
    else:
        assert name == "IQ4_XS"
        codes = _fields(b[..., 8:].reshape(*shape, 8, 16), 4).reshape(*shape, 8, 32)
        low = np.stack([b[..., 4:8] & 15, b[..., 4:8] >> 4], axis=-1).reshape(*shape, 8)
        high = b[..., 2:4].copy().view("<u2") >> np.arange(0, 16, 2) & 3
        heads = [_signed(low, high), b[..., :2]]
    return Parts(codes.reshape(rows, -1).astype(np.uint8), tuple(heads))


def interleaved(codes: Bytes, bits: int) -> Bytes:
    """(.., 8 slabs, 32, 4, 4) codes of a few bits, those of 8 / bits slabs in one byte."""
    n = 8 // bits
    parted = codes.reshape(*codes.shape[:-4], bits, n, 32, 4, 4)
    return (parted << bits * np.arange(n).reshape(n, 1, 1, 1)).sum(axis=-4, dtype=np.uint8)


def separated(quants: Bytes, bits: int) -> Bytes:
    """The reverse of `interleaved`: bytes -> (.., 8 slabs, 32, 4, 4)."""
    n, shape = 8 // bits, quants.shape[:2]
    quants = quants.reshape(*shape, bits, 1, 32, 4, 4)
    shift = bits * np.arange(n).reshape(n, 1, 1, 1)
    return ((quants >> shift) & ((1 << bits) - 1)).astype(np.uint8).reshape(*shape, 8, 32, 4, 4)


def _pack_book(data: Bytes, name: str, columns: int) -> Bytes:
    """`pack` for a format with a codebook."""
    kind, superblocks = by_name(name), columns // 256
    blocks = np.zeros((-(-len(data) // 16) * 16, superblocks, kind.bytes), np.uint8)
    blocks[: len(data)] = data.reshape(len(data), superblocks, kind.bytes)
    tiles = blocks.reshape(-1, 16, superblocks, kind.bytes).swapaxes(1, 2)
    index, signs, scales, d = books.take_apart(np.ascontiguousarray(tiles), name)
    body = books.laid(index, signs, name, ROW, COLUMN)
    flat = (*body.shape[:2], -1)
    return np.concatenate([interleaved_pairs(scales).reshape(flat), d.reshape(flat), body], axis=2)


def interleaved_pairs(nibbles: Bytes) -> Bytes:
    """(.., 2 n) nibbles -> (.., n) bytes, the first in the low half."""
    return nibbles[..., 0::2] | nibbles[..., 1::2] << 4


def pack(data: Bytes, name: str, columns: int) -> Bytes:
    """(row tiles, superblocks, chunk bytes)."""
    if name in BOOKS:
        return _pack_book(data, name, columns)
    parts = take_apart(data, name, columns)
    tiles, superblocks = -(-len(data) // 16), parts.codes.shape[1] // 256
    codes = np.zeros((tiles * 16, superblocks * 256), np.uint8)
    codes[: len(data)] = parts.codes
    slabs = codes.reshape(tiles, 16, superblocks, 8, 32).transpose(0, 2, 3, 1, 4)
    ordered = slabs[..., ROW, COLUMN]  # (tiles, superblocks, slab, lane, word, byte)
    pieces = []
    for part in parts.heads:
        head = np.zeros((tiles * 16, superblocks, part.shape[2]), np.uint8)
        head[: len(data)] = part
        pieces.append(head.reshape(tiles, 16, superblocks, -1).swapaxes(1, 2))
    low, high = BITS[name]
    if name == "Q6_K":
        signed = (ordered ^ 32).reshape(tiles, superblocks, 2, 4, -1)
        thirds = signed[..., 3:, :] >> np.array([4, 2, 0])[:, None] & 3
        pieces.append((signed[..., :3, :] << 2 | thirds).astype(np.uint8))
        return np.concatenate([p.reshape(tiles, superblocks, -1) for p in pieces], axis=2)
    if high:
        pieces.append(interleaved(ordered >> low, high))
    if name in TABLES:  # a word is four nibbles of slab 2i, then four of slab 2i + 1
        nibbles = ordered.reshape(tiles, superblocks, 4, 2, 32, 4, 4)
        pieces.append(np.moveaxis(nibbles[..., 0::2] | nibbles[..., 1::2] << 4, 3, 5))
    else:
        pieces.append(interleaved(ordered & ((1 << low) - 1), low))
    return np.concatenate([p.reshape(tiles, superblocks, -1) for p in pieces], axis=2)


def words(chunks: Bytes, name: str) -> Bytes:
    """The codes as lanes hold them: (tiles, superblocks, 8 slabs, 32 lanes, 4 words, 4 bytes)."""
    low, high = BITS[name]
    if name == "Q6_K":
        three = chunks[..., -3072:].reshape(*chunks.shape[:2], 2, 3, -1)
        fourth = ((three & 3) << np.array([4, 2, 0], np.uint8)[:, None]).sum(3, np.uint8)
        signed = np.concatenate([three >> 2, fourth[..., None, :]], axis=3) ^ 32
        return signed.reshape(*chunks.shape[:2], 8, 32, 4, 4)
    quants = chunks[..., -512 * low :]
    if name in TABLES:
        halves = np.moveaxis(quants.reshape(*chunks.shape[:2], 4, 32, 4, 2, 2), 5, 3)
        return np.stack([halves & 15, halves >> 4], axis=-1).reshape(*chunks.shape[:2], 8, 32, 4, 4)
    codes = separated(quants, low)
    if high:
        begin = chunks.shape[2] - 512 * (low + high)
        codes = codes | separated(chunks[..., begin : begin + 512 * high], high) << low
    return codes.astype(np.uint8)


def signed_words(chunks: Bytes, name: str) -> NDArray[np.int32]:
    """As `words`, the signed numbers that codes stand for."""
    if name in BOOKS:
        return books.signed_words(chunks[..., 16 * sum(HEADS[name]) :], name)
    codes = words(chunks, name)
    if name in TABLES:
        return np.array(TABLES[name], np.int32)[codes]
    return (codes.view(np.int8) if name == "Q8_0" else codes).astype(np.int32) - ZERO.get(name, 0)


def codes_of(chunks: Bytes, name: str) -> NDArray[np.int32]:
    """Signed codes (rows, columns) read through the lanes' order."""
    tiles, superblocks = chunks.shape[:2]
    codes = np.empty((tiles, superblocks, 8, 16, 32), np.int32)
    codes[..., ROW, COLUMN] = signed_words(chunks, name)
    return codes.transpose(0, 3, 1, 2, 4).reshape(tiles * 16, superblocks * 256)


def weights_of(chunks: Bytes, name: str) -> Floats:
    """Weights (rows, columns) of packed chunks, in float32 and in ggml's order of operations."""
    tiles, superblocks = chunks.shape[:2]
    codes = codes_of(chunks, name).reshape(tiles, 16, superblocks, 256).swapaxes(1, 2)
    heads, begin = [], 0
    for size in HEADS.get(name, (16,)):
        part = np.ascontiguousarray(chunks[..., begin : begin + 16 * size])
        heads.append(part.reshape(tiles, superblocks, 16, size))
        begin += 16 * size

    def halves(part: int, end: int | None = None) -> Floats:
        return np.ascontiguousarray(heads[part][..., :end]).view(np.float16).astype(np.float32)

    low = np.float32(0)
    if name in ("Q4_K", "Q5_K"):
        d, s = halves(0, 4), heads[0][..., 4:]
        first, last = s[..., :4] & 63, (s[..., 8:] & 15) | ((s[..., :4] >> 6) << 4)
        scale = np.concatenate([first, last], axis=-1) * d[..., :1]
        first, last = s[..., 4:8] & 63, (s[..., 8:] >> 4) | ((s[..., 4:8] >> 6) << 4)
        low = np.concatenate([first, last], axis=-1) * -d[..., 1:]
    elif name == "Q2_K":
        d = halves(1)
        scale, low = (heads[0] & 15) * d[..., :1], (heads[0] >> 4) * -d[..., 1:]
    elif name in ("Q3_K", "Q6_K", "IQ4_XS"):
        scale = halves(1) * heads[0].view(np.int8)
    elif name in ("TQ1_0", "TQ2_0"):
        scale = halves(0)
    elif name in BOOKS:
        n = np.stack([heads[0] & 15, heads[0] >> 4], axis=-1).reshape(*heads[0].shape[:-1], -1)
        n = n & 7 if name.startswith("IQ1") else n
        scale = halves(1) * np.float32(books.D_SCALE.get(name, 1 / 8)) * (2 * n + 1)
    elif name == "MXFP4":
        e = heads[0].astype(np.int32)
        scale = np.ldexp(np.float32(1), e - 128)
    else:
        scale = halves(0)
        if len(heads) == 2:
            low = halves(1)
    parted = codes.reshape(*codes.shape[:3], scale.shape[-1], -1).astype(np.float32)
    values = parted * scale[..., None].astype(np.float32) + np.asarray(low)[..., None]
    return values.reshape(codes.shape).swapaxes(1, 2).reshape(tiles * 16, superblocks * 256)
