"""The algebra of kernels/delta_chunk.cu in NumPy, with its split numbers, against the recurrence."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

Floats = NDArray[np.floating]
DIM = 128
LIFT_K, LIFT_Q = 1024.0, 8192.0


def recurrence(
    q: Floats, k: Floats, v: Floats, log_g: Floats, b: Floats, state: Floats
) -> tuple[Floats, Floats]:
    """o (T, dv) and the state (dk, dv) after it, one token at a time, in double."""
    state, out = state.astype(np.float64), []
    for t in range(len(q)):
        state = np.exp(np.float64(log_g[t])) * state
        state = state + np.outer(k[t], b[t] * (v[t] - k[t] @ state))
        out.append(q[t] @ state)
    return np.array(out), state


def lift(x: Floats) -> Floats:
    """The power of two of each row that takes its largest number to 4096 .. 8191."""
    high = np.abs(x).max(axis=1, keepdims=True)
    exponent = np.maximum(np.frexp(high)[1], -113)
    return np.ldexp(np.float32(1), 13 - exponent)


def split(x: Floats) -> tuple[Floats, Floats]:
    """f16 high and low parts, as float32."""
    x = x.astype(np.float32)
    high = x.astype(np.float16).astype(np.float32)
    return high, (x - high).astype(np.float16).astype(np.float32)


def times(x: Floats, y: Floats, lift_y: float) -> Floats:
    """x y^T as the tensor cores make it: rows of x lifted, y by `lift_y`, three products of halves."""
    lift_x = lift(x)
    (a, b), (c, d) = split(lift_x * x), split(np.float32(lift_y) * y)
    return ((b @ c.T + a @ d.T + a @ c.T) / lift_x / np.float32(lift_y)).astype(np.float32)


def in_chunks(
    q: Floats, k: Floats, v: Floats, log_g: Floats, b: Floats, state: Floats, chunk: int
) -> tuple[Floats, Floats]:
    """The same in chunks, in float32; the state is kept transposed, (dv, dk)."""
    turned, out = state.T.astype(np.float32), []
    for first in range(0, len(q), chunk):
        rows = slice(first, first + chunk)
        n = len(q[rows])
        sums = np.cumsum(log_g[rows].astype(np.float64))
        with np.errstate(over="ignore"):
            between = np.tril(np.exp((sums[:, None] - sums[None, :]).astype(np.float32)))
        decay, rest = np.exp(sums.astype(np.float32)), between[-1]
        kq = times(k[rows] * LIFT_K, k[rows], LIFT_K) / LIFT_K
        below = np.tril(b[rows, None] * between * kq, -1)
        solved = np.eye(n, dtype=np.float32)
        for i in range(1, n):
            solved[i] -= below[i, :i] @ solved[:i]
        weights = between * times(q[rows] * LIFT_Q, k[rows], LIFT_K) / LIFT_Q
        d = b[rows] * (v[rows].T - decay * times(turned, k[rows], LIFT_K))
        d = times(d, solved, LIFT_K)
        o = decay * times(turned, q[rows], LIFT_Q) + times(d, weights, LIFT_Q)
        turned = decay[-1] * turned + times(rest * d, k[rows].T, LIFT_K)
        out.append(o.T)
    return np.concatenate(out), turned.T


def unit(x: Floats) -> Floats:
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


@pytest.mark.parametrize("chunk", (32, 64))
@pytest.mark.parametrize("rows", (1, 17, 64, 200))
@pytest.mark.parametrize("kind", ("usual", "forgetful", "keeps all", "alike", "huge"))
def test_chunks_are_the_recurrence(chunk: int, rows: int, kind: str) -> None:
    rng = np.random.default_rng()
    q, k = (unit(rng.standard_normal((rows, DIM))) for _ in range(2))
    q /= np.float32(np.sqrt(DIM))
    v = rng.standard_normal((rows, DIM)).astype(np.float32)
    log_g = -rng.exponential(0.1, rows).astype(np.float32)
    b = rng.uniform(0, 1, rows).astype(np.float32)
    state = rng.standard_normal((DIM, DIM)).astype(np.float32)
    if kind == "forgetful":  # decays that are 0 in float32, among others that are not
        log_g[rng.random(rows) < 0.2] = -1e4
    elif kind == "keeps all":
        log_g[:], b[:] = 0, 1
    elif kind == "alike":  # keys that are nearly the same make the system hard to solve
        k = unit(k[:1] + 0.05 * k)
        log_g[:] = -1e-3
    elif kind == "huge":
        v *= np.float32(1e20)
        state *= np.float32(1e-20)
    want, after = recurrence(q, k, v, log_g, b, state)
    got, state_got = in_chunks(q, k, v, log_g, b, state, chunk)
    assert np.linalg.norm(got - want) < 1e-5 * np.linalg.norm(want)
    assert np.linalg.norm(state_got - after) < 1e-5 * np.linalg.norm(after)


def test_the_low_parts_matter() -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((8, DIM)).astype(np.float32) for _ in range(2))
    exact = x.astype(np.float64) @ y.T.astype(np.float64)
    rounded = split(x)[0] @ split(y)[0].T
    assert np.abs(times(x, y, 64) - exact).max() < 1e-5 < np.abs(rounded - exact).max()
