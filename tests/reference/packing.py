"""The GPU's packed weight layout in NumPy: GGUF blocks -> chunks -> weights, and the tensor core's operands.

`kernels/include/layout.cuh` describes the layout; this says the same a second time, from the other side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float32]

FORMATS = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q4_K", "Q5_K", "Q6_K")
WIDE = ("Q4_K", "Q5_K", "Q6_K")
BITS = {"Q4_0": 4, "Q4_1": 4, "Q5_0": 5, "Q5_1": 5, "Q8_0": 8, "Q4_K": 4, "Q5_K": 5, "Q6_K": 6}
ZERO = {"Q4_0": 8, "Q5_0": 16, "Q6_K": 32}
HEAD = {"Q6_K": 288, "Q4_1": 512, "Q5_1": 512}

LANE, WORD, BYTE = np.meshgrid(np.arange(32), np.arange(4), np.arange(4), indexing="ij")
ROW = LANE // 4 + 8 * (WORD & 1)
COLUMN = 4 * (LANE % 4) + 16 * (WORD >> 1) + BYTE
"""Row 0..15 and column 0..31 of byte b of word r of a lane, in a slab of a chunk."""


@dataclass(frozen=True)
class Parts:
    """A matrix taken apart: codes (rows, columns), and per row the head bytes as the file has them."""

    codes: Bytes
    head: Bytes


def _nibbles(quants: Bytes) -> Bytes:
    """(.., 16) bytes of a narrow block -> its 32 low bits."""
    return np.concatenate([quants & 15, quants >> 4], axis=-1)


def take_apart(data: Bytes, name: str, columns: int) -> Parts:
    """Blocks of whole rows (rows, bytes), padded with zero bytes to multiples of 256 columns."""
    size = {
        "Q4_0": 18,
        "Q4_1": 20,
        "Q5_0": 22,
        "Q5_1": 24,
        "Q8_0": 34,
        "Q4_K": 144,
        "Q5_K": 176,
        "Q6_K": 210,
    }
    width = 256 if name in WIDE else 32
    rows, superblocks = len(data), -(-columns // 256)
    blocks = np.zeros((rows, superblocks * 256 // width, size[name]), np.uint8)
    blocks[:, : columns // width] = data.reshape(rows, -1, size[name])
    if name in ("Q4_K", "Q5_K"):
        low = blocks[..., -128:].reshape(*blocks.shape[:2], 4, 1, 32)
        codes = np.concatenate([low & 15, low >> 4], axis=3).reshape(*blocks.shape[:2], 8, 32)
        if name == "Q5_K":
            bits = (blocks[..., None, 16:48] >> np.arange(8)[:, None]) & 1
            codes = codes | (bits << 4)
        return Parts(codes.reshape(rows, -1), blocks[..., :16].reshape(rows, superblocks, 16))
    if name == "Q6_K":
        low = blocks[..., :128].reshape(*blocks.shape[:2], 2, 2, 32)
        low = np.stack([low & 15, low >> 4], axis=3).reshape(*blocks.shape[:2], 2, 4, 32)
        high = blocks[..., 128:192].reshape(*blocks.shape[:2], 2, 1, 32)
        high = (high >> (2 * np.arange(4)[:, None])) & 3
        return Parts((low | (high << 4)).reshape(rows, -1), blocks[..., 192:])
    codes = blocks[..., 2:] if name == "Q8_0" else _nibbles(blocks[..., -16:])
    if name in ("Q5_0", "Q5_1"):
        bits = np.unpackbits(blocks[..., -20:-16], axis=-1, bitorder="little")
        codes = codes | (bits << 4)
    n = 4 if name in ("Q4_1", "Q5_1") else 2
    head = blocks[..., :n].reshape(rows, superblocks, 8, n // 2, 2).swapaxes(2, 3)
    return Parts(codes.reshape(rows, -1).astype(np.uint8), head.reshape(rows, superblocks, -1))


def pack(data: Bytes, name: str, columns: int) -> Bytes:
    """(row tiles, superblocks, chunk bytes)."""
    parts = take_apart(data, name, columns)
    tiles, superblocks = -(-len(data) // 16), parts.codes.shape[1] // 256
    codes = np.zeros((tiles * 16, superblocks * 256), np.uint8)
    codes[: len(data)] = parts.codes
    head = np.zeros((tiles * 16, superblocks, parts.head.shape[2]), np.uint8)
    head[: len(data)] = parts.head
    slabs = codes.reshape(tiles, 16, superblocks, 8, 32).transpose(0, 2, 3, 1, 4)
    ordered = slabs[..., ROW, COLUMN]  # (tiles, superblocks, slab, lane, word, byte)
    head = head.reshape(tiles, 16, superblocks, -1).swapaxes(1, 2)
    pieces = [head[..., :16], head[..., 16:]] if name in HEAD else [head]
    shift = np.arange(8).reshape(8, 1, 1, 1)
    if BITS[name] == 5:
        pieces.append(((ordered >> 4) << shift).sum(axis=2, dtype=np.uint8))
    elif BITS[name] == 6:
        high = (ordered >> 4).reshape(tiles, superblocks, 2, 4, 32, 4, 4) << (2 * shift[:4])
        pieces.append(high.sum(axis=3, dtype=np.uint8))
    low = ordered & 15
    pieces.append(ordered if BITS[name] == 8 else low[:, :, 0::2] | (low[:, :, 1::2] << 4))
    return np.concatenate([p.reshape(tiles, superblocks, -1) for p in pieces], axis=2)


def words(chunks: Bytes, name: str) -> NDArray[np.uint8]:
    """The codes as lanes hold them: (tiles, superblocks, 8 slabs, 32 lanes, 4 words, 4 bytes)."""
    shape = chunks.shape[:2]
    quants = chunks[..., -(4096 if name == "Q8_0" else 2048) :].reshape(*shape, -1, 32, 4, 4)
    if name == "Q8_0":
        return quants
    codes = np.stack([quants & 15, quants >> 4], axis=3).reshape(*shape, 8, 32, 4, 4)
    head = HEAD.get(name, 256)
    shift = np.arange(8).reshape(8, 1, 1, 1)
    if BITS[name] == 5:
        high = chunks[..., head : head + 512].reshape(*shape, 1, 32, 4, 4)
        codes = codes | (((high >> shift) & 1) << 4)
    elif BITS[name] == 6:
        high = chunks[..., head : head + 1024].reshape(*shape, 2, 1, 32, 4, 4)
        codes = codes | (((high >> (2 * shift[:4])) & 3) << 4).reshape(codes.shape)
    return codes.astype(np.uint8)


def codes_of(chunks: Bytes, name: str) -> NDArray[np.int32]:
    """Signed codes (rows, columns) read through the lanes' order."""
    tiles, superblocks = chunks.shape[:2]
    codes = np.empty((tiles, superblocks, 8, 16, 32), np.int32)
    lanes = words(chunks, name)
    codes[..., ROW, COLUMN] = lanes.view(np.int8) if name == "Q8_0" else lanes
    codes -= ZERO.get(name, 0)
    return codes.transpose(0, 3, 1, 2, 4).reshape(tiles * 16, superblocks * 256)


def weights_of(chunks: Bytes, name: str) -> Floats:
    """Weights (rows, columns) of packed chunks, in float32 and in ggml's order of operations."""
    tiles, superblocks = chunks.shape[:2]
    codes = (
        codes_of(chunks, name)
        .astype(np.float32)
        .reshape(tiles, 16, superblocks, 256)
        .swapaxes(1, 2)
    )

    def halves(begin: int, end: int) -> Floats:
        return np.ascontiguousarray(chunks[..., begin:end]).view(np.float16).astype(np.float32)

    if name in ("Q4_K", "Q5_K"):
        head = chunks[..., :256].reshape(tiles, superblocks, 16, 16)
        d = np.ascontiguousarray(head[..., :4]).view(np.float16).astype(np.float32)
        s = head[..., 4:]
        low, high = s[..., :4] & 63, (s[..., 8:] & 15) | ((s[..., :4] >> 6) << 4)
        scale = np.concatenate([low, high], axis=-1) * d[..., :1]
        low, high = s[..., 4:8] & 63, (s[..., 8:] >> 4) | ((s[..., 4:8] >> 6) << 4)
        minimum = np.concatenate([low, high], axis=-1) * d[..., 1:]
        values = codes.reshape(*codes.shape[:3], 8, 32) * scale[..., None] - minimum[..., None]
    elif name == "Q6_K":
        scale = chunks[..., :256].reshape(tiles, superblocks, 16, 16).view(np.int8)
        factor = halves(256, 288)[..., None] * scale
        values = codes.reshape(*codes.shape[:3], 16, 16) * factor[..., None]
    else:
        d = halves(0, 256).reshape(tiles, superblocks, 16, 8, 1)
        values = codes.reshape(*codes.shape[:3], 8, 32) * d
        if name in ("Q4_1", "Q5_1"):
            values = values + halves(256, 512).reshape(tiles, superblocks, 16, 8, 1)
    return values.reshape(*codes.shape).swapaxes(1, 2).reshape(tiles * 16, superblocks * 256)
