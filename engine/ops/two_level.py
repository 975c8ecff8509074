"""The int8 activations of the GPU's products, as values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def two_level(x: Floats) -> NDArray[np.float64]:
    """x (M, K) rounded to E f q: E a float32 for 256 columns, f in 1..64 for 32, q in -127..127."""
    m, k = x.shape
    levels, ratio, e = _levels(x)
    q = np.clip(np.rint(levels), -127, 127).astype(np.float64)
    f = _factor(ratio).astype(np.float64)
    return np.asarray((q * (e * f)[..., None]).reshape(m, -1)[:, :k])


def steady(x: Floats, margin: float) -> NDArray[np.bool_]:
    """Rows (M,) of x whose f and q stay where the arithmetic before them errs by `margin` of a level."""
    levels, ratio, _ = _levels(x)
    q = np.abs(levels - np.floor(levels) - 0.5).min(axis=(1, 2, 3)) > margin
    # Below 1 and at 64, which the highest block has, the limits of f decide.
    between = (ratio > 0.5) & (ratio < 63.5)
    f = np.where(between, np.abs(ratio - np.rint(ratio)), 1.0).min(axis=(1, 2)) > margin
    return np.asarray(q & f)


def _levels(x: Floats) -> tuple[Floats, Floats, Floats]:
    """q before rounding (M, groups, 8, 32), f before it (M, groups, 8), and E (M, groups, 1)."""
    m, k = x.shape
    padded = np.zeros((m, -(-k // 256) * 256), np.float32)
    padded[:, :k] = x
    blocks = padded.reshape(m, -1, 8, 32)
    high = np.abs(blocks).max(axis=3)
    unit = high.max(axis=2) * np.float32(1 / (127 * 64))
    e: Floats = np.where(unit > 0, unit, 1).astype(np.float32)[..., None]
    ratio: Floats = high / (np.float32(127) * e)
    levels: Floats = blocks * (np.float32(1) / (e * _factor(ratio)))[..., None]
    return levels, ratio, e


def _factor(ratio: Floats) -> Floats:
    return np.clip(np.ceil(ratio), 1, 64).astype(np.float32)
