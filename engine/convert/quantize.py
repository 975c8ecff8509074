"""float32 weights -> the block formats of GGUF; `engine.quants` is the way back.

K-quants choose each block's scale (and minimum) by weighted least squares over some candidates, the idea of
ggml's quantiser; layouts are those of ggml's `ggml-common.h`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.quants import QuantType, by_name

Floats = NDArray[np.floating[Any]]
Bytes = NDArray[np.uint8]

_CHUNK = 1 << 19  # weights at a time
_LIBRARY = ("BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")  # what gguf's own quantiser does


def quantize(values: Floats, type: QuantType) -> Bytes:
    """Rows of weights (..., n) as bytes (..., row bytes); n is a multiple of the type's block."""
    if type.name in ("F32", "F16"):
        dtype = np.float32 if type.name == "F32" else np.float16
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(values, dtype=dtype).view(np.uint8)
    if values.shape[-1] % type.block:
        raise ValueError(f"{type}: rows of {values.shape[-1]} are not whole blocks")
    blocks = np.ascontiguousarray(values, np.float32).reshape(-1, type.block)
    out = np.empty((len(blocks), type.bytes), np.uint8)
    step = max(1, _CHUNK // type.block)
    for at in range(0, len(blocks), step):
        out[at : at + step] = _blocks(blocks[at : at + step], type)
    return out.reshape(*values.shape[:-1], -1)


def can_quantize(name: str) -> bool:
    """Whether `quantize` writes the format."""
    return name in ("F32", "F16", *_LIBRARY, *_WRITERS)


def _blocks(x: Floats, type: QuantType) -> Bytes:
    if type.name in _WRITERS:
        return _WRITERS[type.name](x)
    from gguf import quants
    from gguf.constants import GGMLQuantizationType

    packed: Bytes = quants.quantize(x, GGMLQuantizationType(type.id))
    return packed.reshape(len(x), -1).view(np.uint8)


def _safe(x: Floats) -> Floats:
    """Where a divisor is 0 any number will do: the block is all zeros."""
    return np.where(x == 0, np.float32(1), x)


def _q6_k(x: Floats) -> Bytes:
    sub = x.reshape(len(x), 16, 16)
    weight = sub * sub
    peak = np.take_along_axis(sub, np.abs(sub).argmax(2)[..., None], 2)
    best = np.zeros(peak.shape[:2], np.float32)
    scale = np.zeros_like(best)
    for shift in range(-9, 10):
        inverse = -(32 + np.float32(0.1) * shift) / _safe(peak)
        q = np.clip(np.rint(inverse * sub), -32, 31)
        xq, qq = (weight * sub * q).sum(2), (weight * q * q).sum(2)
        gain = xq * xq / _safe(qq)
        better = gain > best
        best = np.where(better, gain, best)
        scale = np.where(better, xq / _safe(qq), scale)
    widest = np.take_along_axis(scale, np.abs(scale).argmax(1)[:, None], 1)
    d = (widest / -128).astype(np.float16)
    steps = np.clip(np.rint(scale / _safe(d.astype(np.float32))), -128, 127)
    unit = d.astype(np.float32)[..., None] * steps[..., None]
    q = np.clip(np.rint(sub / _safe(unit)), -32, 31).astype(np.int8) + 32
    q = q.astype(np.uint8).reshape(len(x), 2, 4, 32)
    low = q & 15
    ql = np.stack([low[:, :, 0] | low[:, :, 2] << 4, low[:, :, 1] | low[:, :, 3] << 4], 2)
    high = q >> 4
    qh = high[:, :, 0] | high[:, :, 1] << 2 | high[:, :, 2] << 4 | high[:, :, 3] << 6
    parts = ql.reshape(len(x), -1), qh.reshape(len(x), -1), steps.astype(np.int8).view(np.uint8)
    return np.concatenate([*parts, d.view(np.uint8)], 1)


def _scale_and_minimum(sub: Floats, most: int) -> tuple[Floats, Floats]:
    """For blocks (..., 32) the scale and minimum m >= 0 with x close to scale * q - m, 0 <= q <= most."""
    weight = np.sqrt((sub * sub).mean(-1, keepdims=True)) + np.abs(sub)
    low = np.minimum(sub.min(-1, keepdims=True), 0)
    high = sub.max(-1, keepdims=True)
    span = _safe(high - low)
    w, wx = weight.sum(-1), (weight * sub).sum(-1)

    def error(scale: Floats, minimum: Floats, q: Floats) -> Floats:
        off = scale[..., None] * q - minimum[..., None] - sub
        return np.asarray((weight * off * off).sum(-1))

    scale, minimum = (span / most)[..., 0], -low[..., 0]
    best = error(scale, minimum, np.clip(np.rint((sub - low) * (most / span)), 0, most))
    for shift in range(11):
        inverse = (most - 1 + np.float32(0.2) * shift) / span
        q = np.clip(np.rint((sub - low) * inverse), 0, most)
        wq, wqq, wxq = (weight * q).sum(-1), (weight * q * q).sum(-1), (weight * sub * q).sum(-1)
        determinant = w * wqq - wq * wq
        s = (w * wxq - wq * wx) / _safe(determinant)
        m = -(wqq * wx - wq * wxq) / _safe(determinant)
        through_zero = m < 0
        s = np.where(through_zero, wxq / _safe(wqq), s)
        m = np.where(through_zero, 0, m)
        found = error(s, m, q)
        better = (determinant > 0) & (found < best)
        best, scale, minimum = (
            np.where(better, new, old) for new, old in ((found, best), (s, scale), (m, minimum))
        )
    return np.maximum(scale, 0), minimum


def _with_minimum(x: Floats, most: int) -> tuple[Bytes, Bytes]:
    """Header bytes (d, dmin and twelve of 6-bit scales and minima) and quants (n, 8, 32)."""
    sub = x.reshape(len(x), 8, 32)
    scale, minimum = _scale_and_minimum(sub, most)
    d = (scale.max(1, keepdims=True) / 63).astype(np.float16)
    dmin = (minimum.max(1, keepdims=True) / 63).astype(np.float16)
    d32, dmin32 = d.astype(np.float32), dmin.astype(np.float32)
    scales = np.clip(np.rint(scale / _safe(d32)), 0, 63).astype(np.uint8)
    minima = np.clip(np.rint(minimum / _safe(dmin32)), 0, 63).astype(np.uint8)
    unit, offset = (d32 * scales)[..., None], (dmin32 * minima)[..., None]
    q = np.clip(np.rint((sub + offset) / _safe(unit)), 0, most)
    q = np.where(unit == 0, 0, q).astype(np.uint8)
    packed = np.concatenate(
        [
            scales[:, :4] | (scales[:, 4:] >> 4) << 6,
            minima[:, :4] | (minima[:, 4:] >> 4) << 6,
            (scales[:, 4:] & 15) | (minima[:, 4:] & 15) << 4,
        ],
        1,
    )
    return np.concatenate([d.view(np.uint8), dmin.view(np.uint8), packed], 1), q


def _nibbles(q: Bytes) -> Bytes:
    pairs = (q & 15).reshape(len(q), 4, 2, 32)
    return (pairs[:, :, 0] | pairs[:, :, 1] << 4).reshape(len(q), -1).astype(np.uint8)


def _q4_k(x: Floats) -> Bytes:
    head, q = _with_minimum(x, 15)
    return np.concatenate([head, _nibbles(q)], 1)


def _q5_k(x: Floats) -> Bytes:
    head, q = _with_minimum(x, 31)
    bits = np.arange(8, dtype=np.uint8)[None, :, None]
    high = ((q >> 4) << bits).sum(axis=1, dtype=np.uint8)
    return np.concatenate([head, high, _nibbles(q)], 1)


_WRITERS: dict[str, Callable[[Floats], Bytes]] = {"Q4_K": _q4_k, "Q5_K": _q5_k, "Q6_K": _q6_k}

__all__ = ["by_name", "can_quantize", "quantize"]
