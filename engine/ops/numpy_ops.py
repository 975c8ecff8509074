"""The operations protocol in plain NumPy, float32, one row after the other: what every backend must compute.

It is slow and obvious on purpose; attention walks the pages token by token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Seq
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from engine.gguf import Tensor
from engine.ops.base import Limits, Rope, Shape, StepInput

F32 = NDArray[np.float32]


class Cell:
    """A buffer's handle: the array of the running step."""

    value: F32


class Tape:
    """A recording: operations in order, what they capture, and how the captured rows stood after a run."""

    def __init__(self, capture: Seq[int]) -> None:
        self.program: list[Callable[[StepInput], None]] = []
        self.capture = tuple(capture)
        self.captured: dict[int, F32] = {}


class NumpyOps:
    """Implements `engine.ops.base.Ops`; weights are float32 arrays."""

    shape: Shape
    limits: Limits

    def __init__(self) -> None:
        self._tapes: list[Tape] = []
        self._last = Tape(())
        self._step: StepInput | None = None
        self._logits: F32 = np.empty((0, 0), np.float32)
        self._bad: int | None = None
        # States and tails after each tried row, by (layer, row), and how many rows of a sequence stand.
        self._tries: dict[tuple[int, int], tuple[F32, F32]] = {}
        self._kept: dict[int, int] = {}
        self.closed = False

    @property
    def _program(self) -> list[Callable[[StepInput], None]]:
        """What is being recorded."""
        return self._tapes[-1].program

    def beside(self) -> NumpyOps:
        return NumpyOps()

    def expect(self, tensors: Iterable[Tensor]) -> None:
        pass

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
    def recording(self, capture: Seq[int] = ()) -> Iterator[Tape]:
        self._tapes.append(Tape(capture))
        yield self._tapes[-1]

    def run(self, step: StepInput, recording: Tape | None = None) -> F32:
        self._bad, self._step, self._last = None, step, recording or self._tapes[0]
        self._tries, self._kept = {}, {}
        with np.errstate(all="ignore"):
            for operation in self._last.program:
                operation(step)
        return self._logits

    def hidden(self) -> F32:
        return np.concatenate([self._last.captured[i] for i in self._last.capture], axis=1)

    def join(self, parts: Seq[F32]) -> F32:
        return np.concatenate([np.asarray(part) for part in parts])

    def accept(self, sequence: int, rows: Seq[int]) -> None:
        step = self._step
        assert step is not None and step.tried[sequence]
        first, kept = first_row(step, sequence), self._kept.get(sequence, 0)
        for i, row in enumerate(rows, kept):
            source, target = (self._place(step, first + r) for r in (row, i))
            self.k[:, target[0], :, target[1]] = self.k[:, source[0], :, source[1]]
            self.v[:, target[0], :, target[1]] = self.v[:, source[0], :, source[1]]
        self._kept[sequence] = kept + len(rows)
        if self.shape.delta is not None and rows:
            slot = step.slots[sequence]
            for layer in range(self.shape.delta.n_layers):
                after = self._tries[layer, first + rows[-1]]
                self.state[layer, slot], self.tail[layer, slot] = after

    def _place(self, step: StepInput, m: int) -> tuple[int, int]:
        """Page, and token in it, of row m's key and value."""
        first = first_row(step, int(step.sequence[m]))
        place = int(step.positions[first]) + m - first
        size = self.limits.page_tokens
        return int(step.page_table[step.sequence[m], place // size]), place % size

    def first_bad_layer(self, step: StepInput) -> int | None:
        self.run(step)
        return self._bad

    def page_bytes(self) -> int:
        return (self.k[:, 0].nbytes + self.v[:, 0].nbytes) if self.k.size else 0

    def state_bytes(self) -> int:
        return self.state[:, 0].nbytes + self.tail[:, 0].nbytes if self.shape.delta else 0

    def read_page(self, page: int, to: NDArray[np.uint8]) -> None:
        to[:] = _bytes(self.k[:, page], self.v[:, page])

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        self.k[:, page], self.v[:, page] = _parts(data, self.k[:, page], self.v[:, page])

    def alike(self) -> int | None:
        return None

    def keeps(self) -> bool:
        return self.shape.delta is not None

    def read_state(self, slot: int, to: NDArray[np.uint8]) -> None:
        to[:] = _bytes(self.state[:, slot], self.tail[:, slot])

    def write_state(self, slot: int, data: NDArray[np.uint8]) -> None:
        parts = _parts(data, self.state[:, slot], self.tail[:, slot])
        self.state[:, slot], self.tail[:, slot] = parts

    def settle(self) -> None:
        """As `Ops.settle`; what is read is there at once."""

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
        causal: bool = True,
        window: int = 0,
        window_per_row: bool = True,
    ) -> Cell:
        out = Cell()

        def run(step: StepInput) -> None:
            s = self.shape
            n_q = s.n_heads * (2 if gated else 1)
            heads = qkv.value.reshape(len(qkv.value), -1, s.head_dim)
            q, kv = heads[:, :n_q], heads[:, n_q:]
            if gated:
                q, gate = q[:, 0::2], q[:, 1::2]
            q = rotate(q if q_norm is None else rms_norm(q, q_norm, eps), step.positions, rope)
            self._store(step, kv, layer, rope, k_norm, eps)
            out.value = np.stack(
                [
                    self._attend_row(
                        layer, q[m], self._seen(step, m, causal, window, window_per_row)
                    )
                    for m in range(len(q))
                ]
            )
            if gated:
                out.value *= sigmoid(gate).reshape(out.value.shape)

        self._program.append(run)
        return out

    def store(
        self, kv: Cell, layer: int, rope: Rope, k_norm: F32 | None = None, eps: float = 0.0
    ) -> None:
        def run(step: StepInput) -> None:
            heads = kv.value.reshape(len(kv.value), -1, self.shape.head_dim)
            self._store(step, heads, layer, rope, k_norm, eps)

        self._program.append(run)

    def _store(
        self, step: StepInput, kv: F32, layer: int, rope: Rope, k_norm: F32 | None, eps: float
    ) -> None:
        k, v = np.split(kv, 2, axis=1)
        k = rotate(k if k_norm is None else rms_norm(k, k_norm, eps), step.positions, rope)
        for m in range(len(k)):
            page, token = self._place(step, m)
            self.k[layer, page, :, token], self.v[layer, page, :, token] = k[m], v[m]

    def _seen(
        self, step: StepInput, m: int, causal: bool, window: int, window_per_row: bool
    ) -> list[tuple[int, int]]:
        """Pages and tokens that row m sees, in the order of their positions."""
        mine, size = int(step.sequence[m]), self.limits.page_tokens
        first = first_row(step, mine)
        begin = int(step.positions[first])
        lowest = 0
        if window:
            lowest = int(step.positions[m]) + 1 if window_per_row else begin
            lowest = max(0, lowest - window)
        table = step.page_table[mine]
        seen = [(int(table[p // size]), p % size) for p in range(lowest, begin)]
        if causal:
            path = [m]
            while (before := parent_of(step, path[-1])) >= 0:
                path.append(before)
            path.reverse()
        else:
            path = [r for r in range(len(step.tokens)) if step.sequence[r] == mine]
        return seen + [self._place(step, r) for r in path if step.positions[r] >= lowest]

    def _attend_row(self, layer: int, q: F32, seen: list[tuple[int, int]]) -> F32:
        s = self.shape
        pages, tokens = np.array(seen).T
        group = s.n_heads // s.n_kv_heads
        out = np.empty_like(q)
        for h in range(s.n_heads):
            keys = self.k[layer, pages, h // group, tokens]
            values = self.v[layer, pages, h // group, tokens]
            score = keys @ q[h] / np.float32(np.sqrt(s.head_dim))
            weight = np.exp(score - score.max())
            out[h] = weight @ values / weight.sum()
        return out.reshape(-1)

    def given(self, width: int) -> Cell:
        out = Cell()

        def run(step: StepInput) -> None:
            out.value = np.array(step.given, np.float32)
            assert out.value.shape == (len(step.tokens), width)

        self._program.append(run)
        return out

    def concat(self, *parts: Cell) -> Cell:
        out = Cell()
        self._program.append(
            lambda _: setattr(out, "value", np.concatenate([p.value for p in parts], axis=1))
        )
        return out

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
        if len(step.tried) and step.tried[step.sequence[m]]:
            before = self._tries.get((layer, parent_of(step, m)), (state, tail))
            state, tail = before[0].copy(), before[1].copy()
            self._tries[layer, m] = state, tail
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
        for number, n, kept in step.keeps:
            if m == first_row(step, number) + n - 1:
                self.state[layer, kept], self.tail[layer, kept] = state, tail
        return (rms_norm(o, norm, eps) * (z * sigmoid(z)).reshape(o.shape)).reshape(-1)

    def experts(
        self,
        h: Cell,
        router: F32,
        gate: F32,
        up: F32,
        down: F32,
        n_used: int,
        shared: Seq[F32],
        shared_gate: F32,
    ) -> Cell:
        out = Cell()
        of_shared = self.linear(self.swiglu(self.linear(h, *shared[:2])), shared[2])

        def run(_: StepInput) -> None:
            out.value = np.empty_like(of_shared.value)
            for m, x in enumerate(h.value):
                score = router @ x
                p = np.exp(score - score.max())
                best = np.argsort(-p, kind="stable")[:n_used]
                y = sigmoid(shared_gate @ x) * of_shared.value[m]
                for e in best:
                    g = gate[e] @ x
                    y += p[e] / p[best].sum() * (down[e] @ (g * sigmoid(g) * (up[e] @ x)))
                out.value[m] = y

        self._program.append(run)
        return out

    def scale(self, x: Cell, factor: float) -> None:
        def run(_: StepInput) -> None:
            x.value = x.value * np.float32(factor)

        self._program.append(run)

    def convolve(self, x: Cell, kernels: Cell, base: F32, part: int, taps: int) -> Cell:
        out = Cell()

        def run(step: StepInput) -> None:
            n = x.value.shape[1]
            common = base.reshape(2, taps, n)[part]
            own = kernels.value.reshape(len(x.value), 2, taps, -1)[:, part]
            own = own.repeat(n // own.shape[-1], axis=-1)
            out.value = np.zeros_like(x.value)
            for m in range(len(x.value)):
                for tap in range(min(taps, m - first_row(step, int(step.sequence[m])) + 1)):
                    out.value[m] += (common[tap] + own[m, tap]) * x.value[m - tap]

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
        def run(_: StepInput) -> None:
            self._check(layer, x.value)
            self._last.captured[layer] = x.value

        self._program.append(run)

    def head(self, h: Cell, output: F32) -> None:
        def run(step: StepInput) -> None:
            self._last.captured[self.shape.n_layers] = h.value
            rows = [output @ h.value[r] for r in step.logit_rows]
            self._logits = np.stack(rows) if rows else np.empty((0, len(output)), np.float32)
            self._check(self.shape.n_layers, self._logits)

        self._program.append(run)


def first_row(step: StepInput, sequence: int) -> int:
    """The first row of a sequence's rows in a step."""
    return int(np.flatnonzero(step.sequence == sequence)[0])


def parent_of(step: StepInput, m: int) -> int:
    """The row before row m in its text, -1 where that is not in the step."""
    if len(step.parents):
        return int(step.parents[m])
    return m - 1 if m and step.sequence[m - 1] == step.sequence[m] else -1


def sigmoid(x: F32) -> F32:
    """1 / (1 + e^-x)."""
    return np.reciprocal(1 + np.exp(-x))


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


def _bytes(*arrays: F32) -> NDArray[np.uint8]:
    """Arrays one behind the other."""
    return np.concatenate([np.ascontiguousarray(a).view(np.uint8).reshape(-1) for a in arrays])


def _parts(data: NDArray[np.uint8], *alike: F32) -> list[F32]:
    """What `_bytes` made one of."""
    whole = np.frombuffer(data.tobytes(), np.float32)
    ends = np.cumsum([a.size for a in alike])[:-1]
    return [p.reshape(a.shape) for p, a in zip(np.split(whole, ends), alike, strict=True)]
