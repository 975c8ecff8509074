"""Attention over pages: its operands and memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.ops.base import Rope
from engine.ops.cpu_buffers import Buffer
from engine.ops.cpu_recorder import F32, Recorder, bits_of
from engine.ops.cpu_weights import Weight
from kernels.cpu import attention, rowwise
from kernels.cpu.layout import SPLIT_ROWS, Meet
from kernels.cpu.layout import Attention as Of
from kernels.cpu.panels import DENSE
from kernels.cpu.rowwise import CHUNK, STATE
from kernels.cpu.runtime import aligned


class AttentionOps(Recorder):
    """`Ops.attend`."""

    def attend(
        self,
        qkv: Buffer,
        layer: int,
        rope: Rope,
        q_norm: Weight | None = None,
        k_norm: Weight | None = None,
        eps: float = 0.0,
        gated: bool = False,
        causal: bool = True,
        window: int = 0,
        window_per_row: bool = True,
    ) -> Buffer:
        s = self._shape
        self._shared(qkv)
        out = self._buffer(s.n_heads * s.head_dim)
        operands = self._attention(qkv, layer, rope, q_norm, k_norm, eps)
        operands[[Of.OUT, Of.OUT_STRIDE]] = out.floats, out.stride
        operands[Of.GATE] = self._kernel("gate", rowwise.gate) if gated else 0
        operands[Of.CHUNK] = self._runtime.operation(attention.chunk)
        operands[[Of.CAUSAL, Of.WINDOW, Of.WINDOW_PER_ROW]] = causal, window, window_per_row
        self._emit(attention.place, operands.ctypes.data)
        self._emit(attention.attend, operands.ctypes.data)
        whole = s.head_dim % 32 == 0
        self._emit(
            attention.finish, operands.ctypes.data, meet=Meet.SPLIT if whole else Meet.ALWAYS
        )

        def coded() -> None:
            operands[[Of.CODED, Of.CODED_STRIDE]] = out.coded, out.coded_stride

        out.wanted["coded"] = coded
        return out

    def store(
        self, kv: Buffer, layer: int, rope: Rope, k_norm: Weight | None = None, eps: float = 0.0
    ) -> None:
        self._shared(kv)
        operands = self._attention(kv, layer, rope, None, k_norm, eps)
        operands[Of.HEADS] = 0
        self._emit(attention.place, operands.ctypes.data)

    def _attention(
        self,
        qkv: Buffer,
        layer: int,
        rope: Rope,
        q_norm: Weight | None,
        k_norm: Weight | None,
        eps: float,
    ) -> NDArray[np.int64]:
        """Operands of attention without its result and its mask."""
        s, kind = self._shape, self._pages_kind
        table = self._rope_table(rope)
        pairs = rope.n_rot // 2
        rotate = f"rotate_{'pairs' if rope.interleaved else 'halves'}_{pairs}"
        if not self._parts:
            self._attention_memory()
        kernel = self._kernel
        keys, values = (int(self._kv[layer, i].ctypes.data) for i in range(2))
        operands = np.array(
            [
                qkv.floats, qkv.stride, s.n_heads, s.n_kv_heads, s.head_dim,
                q_norm.address if q_norm else 0, k_norm.address if k_norm else 0, bits_of(eps),
                kernel("head_norm", rowwise.head_norm),
                kernel(rotate, rowwise.rotate, rope.interleaved, pairs),
                table.ctypes.data, table.strides[0], self._queries, bits_of(s.head_dim**-0.5),
                kernel(f"store_key_{kind}", rowwise.store_key, kind),
                kernel(f"store_value_{kind}", rowwise.store_value, kind),
                keys, values, DENSE[kind], self._limits.rows, self._products(kind, "floats"),
                kernel("softmax", rowwise.softmax), kernel("accumulate", rowwise.accumulate),
                kernel("merge", rowwise.merge), self._parts, self._slots(),
                kernel("divide", rowwise.divide), 0, 0, kernel("code", rowwise.code), 0, 0, 0, 1, 0, 1, 0,
            ],
            np.int64,
        )  # fmt: skip
        self._tape.operands.append(operands)
        return operands

    def _slots(self) -> int:
        return -(-self._limits.pages_per_sequence // CHUNK)

    def _attention_memory(self) -> None:
        """Rotated queries, and partial results of a few rows' chunks."""
        s, rows = self._shape, self._limits.rows
        n_parts = min(rows, SPLIT_ROWS) * self._slots() * s.n_heads
        parts = aligned(4 * n_parts * (STATE + s.head_dim))
        queries = aligned(4 * rows * s.n_heads * s.head_dim)
        self._held += [parts, queries]
        self._parts, self._queries = parts.ctypes.data, queries.ctypes.data

    def _rope_table(self, rope: Rope) -> F32:
        """The place of a rope's cosines and sines of the running step."""
        for known, table in self._tape.ropes:
            if known is rope:
                return table
        table = aligned(4 * self._limits.rows * rope.n_rot).view(np.float32)
        table = table.reshape(self._limits.rows, rope.n_rot)
        self._held.append(table)
        self._tape.ropes.append((rope, table))
        return table
