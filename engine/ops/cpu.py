"""The operations on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.config import Precision
from engine.errors import OutOfMemory
from engine.gguf import Tensor
from engine.ops.base import Limits, Rope, Shape, StepInput

F32 = NDArray[np.float32]


class Buffer:
    """A (M, width) activation of the running step."""

    __slots__ = ("a", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.a: F32 = np.empty((0, width), np.float32)


class Weight:
    """A dequantised tensor."""

    def __init__(self, a: F32) -> None:
        self.a = a
        self.shape = a.shape


def _dequantize(tensor: Tensor) -> F32:
    try:
        from engine.quants import dequantize

        return dequantize(tensor.data, tensor.type)
    except ImportError:
        import gguf

        kind = gguf.GGMLQuantizationType(tensor.type.id)
        return gguf.quants.dequantize(tensor.data, kind).astype(np.float32)


class CpuOps:
    """First version: NumPy in float32, the meaning without the speed."""

    def __init__(self, threads: int, precision: Precision, cache_dir: Any = None) -> None:
        self._program: list[Callable[[], None]] = []
        self._model_bytes = 0
        self._logits: F32 = np.empty((0, 0), np.float32)
        self._bad: list[int] = []

    def upload(self, tensor: Tensor) -> Weight:
        weight = Weight(_dequantize(tensor).reshape(tensor.shape))
        self._model_bytes += weight.a.nbytes
        return weight

    def allocate(self, shape: Shape, limits: Limits) -> None:
        self._shape, self._limits = shape, limits
        size = (
            shape.n_layers,
            2,
            limits.pages,
            shape.n_kv_heads,
            limits.page_tokens,
            shape.head_dim,
        )
        try:
            self._pages = np.zeros(size, np.float32)
        except MemoryError as e:
            raise OutOfMemory(f"Keys and values need {np.prod(size) * 4} bytes.") from e

    def memory(self) -> dict[str, int]:
        return {"model": self._model_bytes, "kv": self._pages.nbytes, "work": 0}

    @contextmanager
    def recording(self) -> Iterator[None]:
        self._program = []
        yield

    def run(self, step: StepInput) -> F32:
        self._step = step
        self._bad = []
        for op in self._program:
            op()
        return self._logits

    def first_bad_layer(self, step: StepInput) -> int | None:
        self.run(step)
        return self._bad[0] if self._bad else None

    def copy_page(self, source: int, target: int) -> None:
        self._pages[:, :, target] = self._pages[:, :, source]

    def close(self) -> None:
        self._program = []
        del self._pages

    def _check(self, layer: int, a: F32) -> None:
        if not np.isfinite(a).all():
            self._bad.append(layer)

    def embed(self, token_embd: Weight) -> Buffer:
        x = Buffer(token_embd.shape[1])

        def op() -> None:
            x.a = token_embd.a[self._step.tokens]
            self._check(-1, x.a)

        self._program.append(op)
        return x

    def norm(self, x: Buffer, weight: Weight, eps: float) -> Buffer:
        h = Buffer(x.width)

        def op() -> None:
            scale = 1 / np.sqrt(np.mean(np.square(x.a), axis=-1, keepdims=True) + np.float32(eps))
            h.a = weight.a * x.a * scale

        self._program.append(op)
        return h

    def add_norm(self, x: Buffer, y: Buffer, weight: Weight, eps: float) -> Buffer:
        def op() -> None:
            x.a = x.a + y.a

        self._program.append(op)
        return self.norm(x, weight, eps)

    def linear(self, x: Buffer, *weights: Weight) -> Buffer:
        y = Buffer(sum(w.shape[0] for w in weights))

        def op() -> None:
            y.a = np.concatenate([x.a @ w.a.T for w in weights], axis=-1)

        self._program.append(op)
        return y

    def _rotate(self, a: F32, rope: Rope) -> F32:
        n = rope.n_rot
        freq = rope.base ** (-np.arange(0, n, 2, dtype=np.float64) / n) * rope.scale
        if rope.factors is not None:
            freq = freq / rope.factors
        angle = self._step.positions[:, None] * freq
        cos = (np.cos(angle) * rope.magnitude).astype(np.float32)[:, None]
        sin = (np.sin(angle) * rope.magnitude).astype(np.float32)[:, None]
        first = np.s_[..., 0:n:2] if rope.interleaved else np.s_[..., : n // 2]
        second = np.s_[..., 1:n:2] if rope.interleaved else np.s_[..., n // 2 : n]
        out = a.copy()
        out[first] = a[first] * cos - a[second] * sin
        out[second] = a[first] * sin + a[second] * cos
        return out

    def attend(
        self,
        qkv: Buffer,
        layer: int,
        rope: Rope,
        q_norm: Weight | None = None,
        k_norm: Weight | None = None,
        eps: float = 0.0,
    ) -> Buffer:
        s, size = self._shape, self._limits.page_tokens
        out = Buffer(s.n_heads * s.head_dim)

        def head_norm(a: F32, w: Weight | None) -> F32:
            if w is None:
                return a
            return w.a * a / np.sqrt(np.mean(np.square(a), axis=-1, keepdims=True) + eps)

        def op() -> None:
            step = self._step
            m = len(step.tokens)
            heads = qkv.a.reshape(m, -1, s.head_dim)
            q, k, v = np.split(heads, [s.n_heads, s.n_heads + s.n_kv_heads], axis=1)
            q = self._rotate(head_norm(q, q_norm).astype(np.float32), rope)
            k = self._rotate(head_norm(k, k_norm).astype(np.float32), rope)
            out.a = np.empty((m, out.width), np.float32)
            pages = step.page_table[step.sequence, step.positions // size]
            self._pages[layer, 0, pages, :, step.positions % size] = k
            self._pages[layer, 1, pages, :, step.positions % size] = v
            for i in range(m):
                n = int(step.positions[i]) + 1
                table = step.page_table[step.sequence[i], : -(-n // size)]
                keys, values = (
                    self._pages[layer][:, table]
                    .swapaxes(1, 2)
                    .reshape(2, s.n_kv_heads, -1, s.head_dim)[:, :, :n]
                )
                group = q[i].reshape(s.n_kv_heads, -1, s.head_dim)
                scores = group @ keys.swapaxes(-1, -2) / np.sqrt(s.head_dim)
                p = np.exp(scores - scores.max(axis=-1, keepdims=True))
                out.a[i] = (p / p.sum(axis=-1, keepdims=True) @ values).reshape(-1)

        self._program.append(op)
        return out

    def swiglu(self, gate_up: Buffer) -> Buffer:
        h = Buffer(gate_up.width // 2)

        def op() -> None:
            gate, up = gate_up.a[:, : h.width], gate_up.a[:, h.width :]
            h.a = gate / (1 + np.exp(-gate)) * up

        self._program.append(op)
        return h

    def end_layer(self, layer: int, x: Buffer) -> None:
        self._program.append(lambda: self._check(layer, x.a))

    def head(self, h: Buffer, output: Weight) -> None:
        def op() -> None:
            self._logits = h.a[self._step.logit_rows] @ output.a.T
            self._check(self._shape.n_layers, self._logits)

        self._program.append(op)
