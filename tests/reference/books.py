"""The packed layout of formats with a codebook in NumPy; `kernels/include/codebook.cuh` describes it.

Half a chunk's meaning is the index of 8 weights (IQ3: 4) and their signs; the rest is as in `packing`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.quants import grid

Bytes = NDArray[np.uint8]

# Bits of an index above the eighth; IQ1's fourth says that delta, an eighth, is taken away.
ABOVE = {
    "IQ2_XXS": 0, "IQ2_XS": 1, "IQ2_S": 2, "IQ3_XXS": 0, "IQ3_S": 1, "IQ1_S": 4, "IQ1_M": 4,
}  # fmt: skip
BOOKS = tuple(ABOVE)
D_SCALE = {"IQ3_XXS": 1 / 4, "IQ3_S": 1}
"""Of d, so that scales and codes are whole; an eighth for the others."""


def width(name: str) -> int:
    """Weights that an index stands for."""
    return grid(name).shape[1]


def _nibbles(b: Bytes) -> Bytes:
    """(.., n) bytes -> (.., 2 n), the low ones first."""
    return np.stack([b & 15, b >> 4], axis=-1).reshape(*b.shape[:-1], -1)


def _even(sevens: NDArray[np.integer]) -> NDArray[np.integer]:
    """Seven signs and the eighth that makes the number of minus signs even."""
    return sevens | (np.bitwise_count(sevens.astype(np.uint8)).astype(sevens.dtype) & 1) << 7


def take_apart(b: Bytes, name: str) -> tuple[NDArray[np.uint16], NDArray[np.uint8], Bytes, Bytes]:
    """Blocks (.., bytes): indices, bytes of eight signs, four-bit scales, and the two bytes of d."""

    def part(begin: int, end: int, form: str = "u1") -> NDArray[np.integer]:
        return np.ascontiguousarray(b[..., begin:end]).view(form)

    d, signs = part(0, 2), np.zeros((*b.shape[:-1], 32), np.uint8)
    sevens = 7 * np.arange(4, dtype=np.uint32)
    if name == "IQ2_XXS":
        q = b[..., 2:].reshape(*b.shape[:-1], 8, 8)
        aux = np.ascontiguousarray(q[..., 4:]).view("<u4")
        index, scales = q[..., :4].reshape(signs.shape), aux[..., 0] >> 28
        signs = _even(aux >> sevens & 127).reshape(signs.shape)
    elif name == "IQ3_XXS":
        aux = part(66, 98, "<u4")
        index, scales = part(2, 66), aux >> 28
        signs = _even(aux[..., None] >> sevens & 127).reshape(signs.shape)
    elif name == "IQ2_XS":
        q = part(2, 66, "<u2")
        index, scales, signs = q & 511, _nibbles(b[..., 66:74]), _even(q >> 9)
    elif name == "IQ2_S":
        high = (b[..., 66:74, None] >> 2 * np.arange(4) & 3).reshape(signs.shape)
        index, scales, signs = (
            part(2, 34) | high.astype("<u2") << 8,
            _nibbles(b[..., 74:]),
            part(34, 66),
        )
    elif name == "IQ3_S":
        high = np.unpackbits(b[..., 66:74], axis=-1, bitorder="little")
        index, scales, signs = (
            part(2, 66) | high.astype("<u2") << 8,
            _nibbles(b[..., 106:]),
            part(74, 106),
        )
    elif name == "IQ1_S":
        word = part(34, 50, "<u2")
        high = (word[..., None] >> 3 * np.arange(4) & 7 | word[..., None] >> 15 << 3).reshape(
            signs.shape
        )
        index, scales = part(2, 34) | high.astype("<u2") << 8, word >> 12 & 7
    else:
        word = part(48, 56, "<u2")
        index = part(0, 32) | _nibbles(b[..., 32:48]).astype("<u2") << 8
        scales = (word[..., None] >> 3 * np.arange(4) & 7).reshape(*b.shape[:-1], 16)
        top = word >> 12 << 4 * np.arange(4, dtype="<u2")
        d = np.ascontiguousarray(top.sum(axis=-1, keepdims=True, dtype="<u2")).view(np.uint8)
    return index.astype(np.uint16), signs.astype(np.uint8), scales.astype(np.uint8), d


def laid(index: NDArray[np.uint16], signs: Bytes, name: str, row: Bytes, column: Bytes) -> Bytes:
    """All behind the head, (tiles, superblocks, bytes), of indices and signs (tiles, superblocks, 16, ..)."""
    n, above, shape = width(name), ABOVE[name], index.shape[:2]
    each = index.reshape(*shape, 16, 8, 32 // n).swapaxes(2, 3)
    each = each[..., row[:, :, 0], column[:, :, 0] // n][
        ..., :: n // 4, :
    ]  # (.., slab, lane, word)
    lanes, pieces = each.shape[3], []
    if not name.startswith("IQ1"):
        bits = np.unpackbits(signs, axis=-1, bitorder="little").reshape(*shape, 16, 8, 32)
        ordered = bits.swapaxes(2, 3)[..., row, column].astype(np.uint32)
        slab, byte = np.arange(8).reshape(8, 1, 1, 1), np.arange(4)
        at = 16 * (slab >> 2) + 4 * byte + (slab & 3)
        pieces.append((ordered << at.astype(np.uint32)).sum(axis=(2, 5), dtype="<u4"))
    if above:
        n_slabs = 8 // above
        high = (each >> 8).reshape(*shape, above, n_slabs, lanes, 4).astype(np.uint32)
        at = above * (4 * np.arange(n_slabs).reshape(-1, 1, 1) + np.arange(4))
        pieces.append((high << at.astype(np.uint32)).sum(axis=(3, 5), dtype="<u4"))
    low = (each & 255).astype(np.uint8).reshape(*shape, 4, 2, lanes, 4)
    pieces.append(low.swapaxes(3, 4))
    flat = [np.ascontiguousarray(p).view(np.uint8).reshape(*shape, -1) for p in pieces]
    return np.concatenate(flat, axis=2)


def signed_words(body: Bytes, name: str) -> NDArray[np.int32]:
    """The reverse, as lanes hold them: codes (tiles, superblocks, 8 slabs, 32 lanes, 4 words, 4 bytes)."""
    n, above, shape = width(name), ABOVE[name], body.shape[:2]
    lanes = 128 // n
    quants = body[..., -32 * lanes :].reshape(*shape, 4, lanes, 2, 4)
    index = quants.swapaxes(3, 4).reshape(*shape, 8, lanes, 4).astype(np.int32)
    if above:
        end = body.shape[2] - 32 * lanes
        words = np.ascontiguousarray(body[..., end - 4 * above * lanes : end]).view("<u4")
        at = above * (4 * np.arange(8 // above).reshape(-1, 1, 1) + np.arange(4))
        fields = (
            words.reshape(*shape, above, 1, lanes, 1) >> at.astype(np.uint32) & (1 << above) - 1
        )
        index |= fields.reshape(index.shape).astype(np.int32) << 8
    index = np.repeat(index, n // 4, axis=3)
    entries = grid(name).astype(np.int32).reshape(-1, n // 4, 4)
    codes = entries[index & 2047, (np.arange(32) % (n // 4))[:, None]]
    if name.startswith("IQ1"):
        return 8 * codes + np.where(index >> 11, -1, 1)[..., None]
    words = np.ascontiguousarray(body[..., :512]).view("<u4").reshape(*shape, 1, 32, 4, 1)
    slab, byte = np.arange(8).reshape(8, 1, 1, 1), np.arange(4)
    minus = words >> (16 * (slab >> 2) + 4 * byte + (slab & 3)).astype(np.uint32) & 1
    return np.where(minus, -codes, codes)
