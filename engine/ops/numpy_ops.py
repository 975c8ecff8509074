"""The operations protocol in plain NumPy, float32, one row after the other: what every backend must compute.

It is slow and obvious on purpose; attention walks the pages token by token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from engine.gguf import Tensor
from engine.ops.base import Limits, Rope, Shape, StepInput

F32 = NDArray[np.float32]


class Cell:
    """A buffer's handle: the array of the running step."""

    value: F32


class NumpyOps:
    """Implements `engine.ops.base.Ops`; weights are float32 arrays."""

    shape: Shape
    limits: Limits

    def __init__(self) -> None:
        self._program: list[Callable[[StepInput], None]] = []
        self._logits: F32 = np.empty((0, 0), np.float32)
        self._bad: int | None = None
        self.closed = False

    def upload(self, tensor: Tensor) -> F32:
        return tensor.dequantize()

    def allocate(self, shape: Shape, limits: Limits) -> None:
        self.shape, self.limits = shape, limits
        pages = (
            shape.n_kv_layers,
            limits.pages,
            shape.n_kv_heads,
            limits.page_tokens,
            shape.head_dim,
        )
        self.k = np.full(pages, np.nan, np.float32)
        self.v = np.full(pages, np.nan, np.float32)

        if (d := shape.delta) is not None:
            states = (d.n_layers, limits.slots, d.n_v_heads, d.head_dim, d.head_dim)
            self.state = np.full(states, np.nan, np.float32)
            tails = (d.n_layers, limits.slots, d.conv_kernel - 1, d.qkv)
            self.tail = np.full(tails, np.nan, np.float32)

    def memory(self) -> dict[str, int]:
        return {"model": 0, "kv": self.k.nbytes + self.v.nbytes, "work": 0}

    @contextmanager
    def recording(self) -> Iterator[None]:
        self._program.clear()
        yield

    def run(self, step: StepInput) -> F32:
        self._bad = None
        with np.errstate(all="ignore"):
            for operation in self._program:
                operation(step)
        return self._logits

    def first_bad_layer(self, step: StepInput) -> int | None:
        self.run(step)
        return self._bad

    def copy_page(self, source: int, target: int) -> None:
        self.k[:, target], self.v[:, target] = self.k[:, source], self.v[:, source]

    def copy_state(self, source: int, target: int) -> None:
        self.state[:, target], self.tail[:, target] = self.state[:, source], self.tail[:, source]

    def close(self) -> None:
        self.closed = True

    def _check(self, layer: int, x: F32) -> None:
        if self._bad is None and not np.all(np.isfinite(x)):
            self._bad = layer

    def embed(self, token_embd: F32) -> Cell:
        out = Cell()

        def run(step: StepInput) -> None:
            out.value = token_embd[step.tokens].copy()
            self._check(-1, out.value)

        self._program.append(run)
        return out

    def norm(self, x: Cell, weight: F32, eps: float) -> Cell:
        out = Cell()
        self._program.append(lambda _: setattr(out, "value", rms_norm(x.value, weight, eps)))
        return out

    def add_norm(self, x: Cell, y: Cell, weight: F32, eps: float) -> Cell:
        def run(_: StepInput) -> None:
            x.value = x.value + y.value

        self._program.append(run)
        return self.norm(x, weight, eps)

    def linear(self, x: Cell, *weights: F32) -> Cell:
        out = Cell()

        def run(_: StepInput) -> None:
            rows = [np.concatenate([w @ row for w in weights]) for row in x.value]
            out.value = np.stack(rows)

        self._program.append(run)
        return out

    def attend(
        self,
        qkv: Cell,
        layer: int,
        rope: Rope,
        q_norm: F32 | None = None,
        k_norm: F32 | None = None,
        eps: float = 0.0,
        gated: bool = False,
    ) -> Cell:
        out = Cell()

        def run(step: StepInput) -> None:
            s = self.shape
            n_q = s.n_heads * (2 if gated else 1)
            heads = qkv.value.reshape(len(qkv.value), -1, s.head_dim)
            q, k, v = np.split(heads, [n_q, n_q + s.n_kv_heads], axis=1)
            if gated:
                q, gate = q[:, 0::2], q[:, 1::2]
            q = rotate(q if q_norm is None else rms_norm(q, q_norm, eps), step.positions, rope)
            k = rotate(k if k_norm is None else rms_norm(k, k_norm, eps), step.positions, rope)
            size = self.limits.page_tokens
            for m, position in enumerate(step.positions):
                page = step.page_table[step.sequence[m], position // size]
                self.k[layer, page, :, position % size] = k[m]
                self.v[layer, page, :, position % size] = v[m]
            out.value = np.stack([self._attend_row(step, layer, m, q[m]) for m in range(len(q))])
            if gated:
                out.value *= sigmoid(gate).reshape(out.value.shape)

        self._program.append(run)
        return out

    def _attend_row(self, step: StepInput, layer: int, m: int, q: F32) -> F32:
        s, size, n = self.shape, self.limits.page_tokens, int(step.positions[m]) + 1
        pages = step.page_table[step.sequence[m], : -(-n // size)]
        group = s.n_heads // s.n_kv_heads
        out = np.empty_like(q)
        for h in range(s.n_heads):
            keys = self.k[layer, pages, h // group].reshape(-1, s.head_dim)[:n]
            values = self.v[layer, pages, h // group].reshape(-1, s.head_dim)[:n]
            score = keys @ q[h] / np.float32(np.sqrt(s.head_dim))
            weight = np.exp(score - score.max())
            out[h] = weight @ values / weight.sum()
        return out.reshape(-1)

    def delta(
        self, mixed: Cell, layer: int, conv1d: F32, dt_bias: F32, a: F32, norm: F32, eps: float
    ) -> Cell:
        out = Cell()

        def run(step: StepInput) -> None:
            out.value = np.stack(
                [
                    self._delta_row(step, layer, m, row, conv1d, dt_bias, a, norm, eps)
                    for m, row in enumerate(mixed.value)
                ]
            )

        self._program.append(run)
        return out

    def _delta_row(
        self,
        step: StepInput,
        layer: int,
        m: int,
        row: F32,
        conv1d: F32,
        dt_bias: F32,
        a: F32,
        norm: F32,
        eps: float,
    ) -> F32:
        d = self.shape.delta
        assert d is not None
        slot = step.slots[step.sequence[m]]
        state, tail = self.state[layer, slot], self.tail[layer, slot]
        if step.positions[m] == 0:
            state[:], tail[:] = 0, 0
        inner = d.n_v_heads * d.head_dim
        qkv, z, alpha, beta = np.split(row, np.cumsum([d.qkv, inner, d.n_v_heads]))
        window = np.concatenate([tail, qkv[None]])
        tail[:] = window[1:]
        c = (window * conv1d.T).sum(axis=0)
        heads = (c * sigmoid(c)).reshape(-1, d.head_dim)
        q, k, v = np.split(heads, [d.n_k_heads, 2 * d.n_k_heads])
        q, k = (x / np.sqrt((x * x).sum(axis=1, keepdims=True) + eps) for x in (q, k))
        decay = np.exp(a * np.logaddexp(np.float32(0), alpha + dt_bias))
        o = np.empty((d.n_v_heads, d.head_dim), np.float32)
        for j in range(d.n_v_heads):
            kj, qj = k[j % d.n_k_heads], q[j % d.n_k_heads] / np.float32(np.sqrt(d.head_dim))
            state[j] *= decay[j]
            state[j] += np.outer(kj, sigmoid(beta[j]) * (v[j] - state[j].T @ kj))
            o[j] = state[j].T @ qj
        return (rms_norm(o, norm, eps) * (z * sigmoid(z)).reshape(o.shape)).reshape(-1)

    def experts(
        self,
        h: Cell,
        router: F32,
        gate: F32,
        up: F32,
        down: F32,
        n_used: int,
        shared: Cell,
        shared_gate: F32,
    ) -> Cell:
        out = Cell()

        def run(_: StepInput) -> None:
            out.value = np.empty_like(shared.value)
            for m, x in enumerate(h.value):
                score = router @ x
                p = np.exp(score - score.max())
                best = np.argsort(-p, kind="stable")[:n_used]
                y = sigmoid(shared_gate @ x) * shared.value[m]
                for e in best:
                    g = gate[e] @ x
                    y += p[e] / p[best].sum() * (down[e] @ (g * sigmoid(g) * (up[e] @ x)))
                out.value[m] = y

        self._program.append(run)
        return out

    def swiglu(self, gate_up: Cell) -> Cell:
        out = Cell()

        def run(_: StepInput) -> None:
            gate, up = np.split(gate_up.value, 2, axis=1)
            out.value = gate / (1 + np.exp(-gate)) * up

        self._program.append(run)
        return out

    def end_layer(self, layer: int, x: Cell) -> None:
        self._program.append(lambda _: self._check(layer, x.value))

    def head(self, h: Cell, output: F32) -> None:
        def run(step: StepInput) -> None:
            rows = [output @ h.value[r] for r in step.logit_rows]
            self._logits = np.stack(rows) if rows else np.empty((0, len(output)), np.float32)
            self._check(self.shape.n_layers, self._logits)

        self._program.append(run)


def sigmoid(x: F32) -> F32:
    """1 / (1 + e^-x)."""
    return 1 / (1 + np.exp(-x))


def rms_norm(x: F32, weight: F32, eps: float) -> F32:
    """RMSNorm over the last axis."""
    scale = 1 / np.sqrt(np.mean(x * x, axis=-1, keepdims=True, dtype=np.float64) + eps)
    return (x * scale.astype(np.float32)) * weight


def rotate(x: F32, positions: NDArray[np.int32], rope: Rope) -> F32:
    """Rotary embedding of heads x (M, n_heads, head_dim) at `positions` (M,)."""
    pair = np.arange(rope.n_rot // 2, dtype=np.float64)
    factors = 1.0 if rope.factors is None else rope.factors.astype(np.float64)
    angle = positions[:, None] * rope.base ** (-2 * pair / rope.n_rot) * rope.scale / factors
    cos = (np.cos(angle) * rope.magnitude).astype(np.float32)[:, None]
    sin = (np.sin(angle) * rope.magnitude).astype(np.float32)[:, None]
    first = slice(0, rope.n_rot, 2) if rope.interleaved else slice(0, rope.n_rot // 2)
    second = slice(1, rope.n_rot, 2) if rope.interleaved else slice(rope.n_rot // 2, rope.n_rot)
    out = x.copy()
    out[..., first] = x[..., first] * cos - x[..., second] * sin
    out[..., second] = x[..., first] * sin + x[..., second] * cos
    return out
