"""The operations on the CPU: records programs for `kernels.cpu` and owns their memory.

Quantised weights stay quantised, in panels of 16 rows. In `fast` precision activations are int8 with a
scale for each 32 values; `exact` multiplies dequantised weights by float32 activations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.errors import KernelError
from engine.ops.base import StepInput
from engine.ops.cpu_attention import AttentionOps
from engine.ops.cpu_buffers import Buffer
from engine.ops.cpu_delta import DeltaOps
from engine.ops.cpu_experts import ExpertOps
from engine.ops.cpu_recorder import F32, L2_BYTES, bits_of
from engine.ops.cpu_weights import Weight
from kernels.cpu import instructions, products, rowwise
from kernels.cpu.formats import FORMATS
from kernels.cpu.layout import GATED_ROWS, Head, Meet
from kernels.cpu.panels import DENSE, PANEL


class CpuOps(AttentionOps, DeltaOps, ExpertOps):
    """`Ops` on `threads` threads. `target` chooses other instructions than the processor's best."""

    def embed(self, token_embd: Weight) -> Buffer:
        width = token_embd.shape[1]
        x = self._buffer(width)
        kind = token_embd.kind
        if kind in DENSE:
            kernel = self._kernel(f"unpack_{kind}", products.unpack_dense, kind)
        else:
            kernel = self._kernel(f"unpack_{kind}", products.unpack, FORMATS[kind])
        self._need_scratch(4 * PANEL * width)
        stride = token_embd.data.strides[0]
        x.line = self._emit(
            instructions.embed, kernel, token_embd.address, stride, token_embd.count, width, x.floats,
            x.stride, meet=Meet.ROWS,
        )  # fmt: skip
        self._marks.append((-1, len(self._code), x))
        return x

    def norm(self, x: Buffer, weight: Weight, eps: float) -> Buffer:
        return self._norm(self._kernel("norm", rowwise.norm, False), x, x, weight, eps)

    def add_norm(self, x: Buffer, y: Buffer, weight: Weight, eps: float) -> Buffer:
        return self._norm(self._kernel("add_norm", rowwise.norm, True), x, y, weight, eps)

    def _norm(self, kernel: int, x: Buffer, y: Buffer, weight: Weight, eps: float) -> Buffer:
        h = self._buffer(x.width)
        private = x.line is not None
        line = self._emit(
            instructions.norm, kernel, x.floats, x.stride, y.floats, y.stride, weight.address,
            0, 0, 0, 0, x.width, bits_of(eps), private, y.line is not None,
            meet=Meet.ROWS if private else Meet.ALWAYS,
        )  # fmt: skip
        if private:
            x.line = h.line = line
        self._forms(h, line, 6)
        return h

    def swiglu(self, gate_up: Buffer) -> Buffer:
        width = gate_up.width // 2
        h = self._buffer(width)
        kernel = self._kernel("swiglu", rowwise.swiglu)
        lines = gate_up.products
        # Kernels, input, panel stride, length and number of outputs must agree.
        alike = len(lines) == 2 and all(lines[0][2 + i] == lines[1][2 + i] for i in (0, 1, 4, 5, 6))
        if alike and self._code[-2:] == lines:
            del self._code[-2:]
            products, x, stride, gate, panel_stride, k, n, *_, private = lines[0][2:]
            pairs = max(1, min(-(-n // 32), L2_BYTES // (4 * panel_stride)))
            self._need_scratch(GATED_ROWS * 2 * 4 * 32 * pairs)
            line = self._emit(
                instructions.gated, products, x, stride, gate, lines[1][2 + 3], panel_stride, k, n, pairs,
                kernel, 0, 0, 0, 0, private,
            )  # fmt: skip
            self._forms(h, line, 10)
            return h
        self._shared(gate_up)
        line = self._emit(
            instructions.swiglu, kernel, gate_up.floats, gate_up.stride, gate_up.floats + 4 * width,
            0, 0, 0, 0, width,
        )  # fmt: skip
        self._forms(h, line, 4)
        return h

    def end_layer(self, layer: int, x: Buffer) -> None:
        self._marks.append((layer, len(self._code), x))

    def head(self, h: Buffer, output: Weight) -> None:
        form = self._form(output)
        source, stride = self._rows(h, form)
        rows = self._buffer(h.width)
        to = rows.coded if form == "coded" else rows.floats
        self._logits_from = len(self._code)
        self._emit(instructions.gather, source, stride, to, stride, stride, h.line is not None)
        self._emit(
            instructions.linear, self._products(output.kind, form), to, stride, output.address,
            output.data.strides[0], output.count, output.shape[0], 0, 0, 1,
        )  # fmt: skip
        self._logits = np.zeros((self._limits.sequences, output.shape[0]), np.float32)

    # ---- running -------------------------------------------------------------------------------

    def run(self, step: StepInput) -> F32:
        self._fill(step)
        self._run(0, len(self._program))
        return self._logits[: len(step.logit_rows)]

    def logits(self, rows: NDArray[np.int32]) -> F32:
        """Logits (R, n_vocab) of other rows of the last step, valid until the next call."""
        self._want(rows)
        self._run(self._logits_from, len(self._program))
        return self._logits[: len(rows)]

    def _run(self, begin: int, end: int) -> None:
        try:
            self._runtime.run(begin, end)
        except ValueError as e:
            raise KernelError(f"The step cannot be run: {e}.") from e

    def _want(self, rows: NDArray[np.int32]) -> None:
        header = self._header
        self._logit_rows = np.ascontiguousarray(rows, np.int32)
        if len(rows) > len(self._logits):
            self._logits = np.zeros((len(rows), self._logits.shape[1]), np.float32)
        header[Head.R] = len(rows)
        header[Head.LOGIT_ROWS] = self._logit_rows.ctypes.data
        header[Head.LOGITS] = self._logits.ctypes.data
        header[Head.LOGITS_STRIDE] = self._logits.strides[0]

    def _fill(self, step: StepInput) -> None:
        """Point the header to a step's arrays and compute its rope angles."""
        m = len(step.tokens)
        if not 0 < m <= self._limits.rows:
            raise KernelError(f"Found a step of {m} rows, expected 1 to {self._limits.rows}.")
        header = self._header
        # Kept until the next step: the threads read them in place.
        self._arrays = [
            np.ascontiguousarray(a, np.int32)
            for a in (step.tokens, step.positions, step.sequence, step.page_table)
        ]
        if self._shape.delta is not None:
            self._point_to_slots(step)
        for place, array in zip(
            (Head.TOKENS, Head.POSITIONS, Head.SEQUENCE, Head.TABLE), self._arrays, strict=True
        ):
            header[place] = array.ctypes.data
        header[Head.M] = m
        header[Head.N_SEQUENCES], header[Head.TABLE_STRIDE] = step.page_table.shape
        self._want(step.logit_rows)
        for rope, table in self._ropes:
            pairs = rope.n_rot // 2
            angle = np.multiply.outer(step.positions, rope.frequencies())
            table[:m, :pairs] = np.cos(angle) * rope.magnitude
            table[:m, pairs:] = np.sin(angle) * rope.magnitude

    def first_bad_layer(self, step: StepInput) -> int | None:
        self._fill(step)
        begin, m = 0, len(step.tokens)
        for layer, end, x in self._marks:
            self._run(begin, end)
            begin = end
            if not np.isfinite(x.values(m)).all():
                return layer
        self._run(begin, len(self._program))
        done = self._logits[: len(step.logit_rows)]
        return None if np.isfinite(done).all() else self._shape.n_layers

    def keep(self, x: Buffer) -> None:
        """While recording: have the float32 form of `x` written, so that `x.values` can show it."""
        x.products.clear()
        self._rows(x, "floats")
