"""The operations on the CPU: records programs for `kernels.cpu` and owns their memory.

Quantised weights stay quantised, in panels of 16 rows. In `fast` precision activations are int8 with a
scale for each 32 values; `exact` multiplies dequantised weights by float32 activations.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np
from numpy.typing import NDArray

from engine.errors import KernelError
from engine.ops.base import StepInput
from engine.ops.cpu_attention import AttentionOps
from engine.ops.cpu_buffers import Buffer, Tape
from engine.ops.cpu_convolve import ConvolveOps
from engine.ops.cpu_delta import DeltaOps
from engine.ops.cpu_experts import ExpertOps
from engine.ops.cpu_recorder import F32, L2_BYTES, bits_of
from engine.ops.cpu_step import Layout
from engine.ops.cpu_weights import Weight
from kernels.cpu import instructions, products, rowwise
from kernels.cpu.formats import FORMATS
from kernels.cpu.layout import GATED_ROWS, Head, Meet
from kernels.cpu.panels import DENSE, PANEL
from kernels.cpu.rowwise import PAGE


class CpuOps(AttentionOps, ConvolveOps, DeltaOps, ExpertOps):
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
        self._tape.marks.append((-1, len(self._tape.code), x))
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
        if alike and self._tape.code[-2:] == lines:
            del self._tape.code[-2:]
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
        self._tape.marks.append((layer, len(self._tape.code), x))
        self._capture(layer, x)

    def head(self, h: Buffer, output: Weight) -> None:
        self._capture(self._shape.n_layers, h)
        form = self._form(output)
        source, stride = self._rows(h, form)
        rows = self._buffer(h.width)
        to = rows.coded if form == "coded" else rows.floats
        self._tape.logits_from = len(self._tape.code)
        self._emit(instructions.gather, source, stride, to, stride, stride, h.line is not None)
        self._emit(
            instructions.linear, self._products(output.kind, form), to, stride, output.address,
            output.data.strides[0], output.count, output.shape[0], 0, 0, 1,
        )  # fmt: skip
        self._tape.logits = np.zeros((self._limits.sequences, output.shape[0]), np.float32)

    def given(self, width: int) -> Buffer:
        x = self._buffer(width)
        self._tape.given.append(x)
        return x

    def concat(self, *parts: Buffer) -> Buffer:
        y = self._buffer(sum(part.width for part in parts))
        column = 0
        for part in parts:
            source, stride = self._rows(part, "floats")
            self._emit(
                instructions.put, source, stride, y.floats + 4 * column, y.stride, 4 * part.width,
                part.line is not None, meet=Meet.ALWAYS if part is parts[-1] else Meet.NEVER,
            )  # fmt: skip
            column += part.width
        return y

    # ---- running -------------------------------------------------------------------------------

    def beside(self) -> CpuOps:
        return CpuOps(self._threads, self._precision, target=self._target, beside=self)

    def run(self, step: StepInput, recording: Tape | None = None) -> F32:
        self._tape = recording or self._tapes[0]
        self._fill(step)
        self._run(0, len(self._tape.program))
        return self._tape.logits[: len(step.logit_rows)]

    def logits(self, rows: NDArray[np.int32]) -> F32:
        """Logits (R, n_vocab) of other rows of the last step, valid until the next call."""
        self._want(rows)
        self._run(self._tape.logits_from, len(self._tape.program))
        return self._tape.logits[: len(rows)]

    def hidden(self) -> F32:
        return self._tape.hidden[: len(self._step.tokens)]

    def join(self, parts: Seq[F32]) -> F32:
        return np.concatenate(parts)

    def _run(self, begin: int, end: int) -> None:
        try:
            self._runtime.run(begin, end, self._header)
        except ValueError as e:
            raise KernelError(f"The step cannot be run: {e}.") from e

    def _want(self, rows: NDArray[np.int32]) -> None:
        header, tape = self._header, self._tape
        self._logit_rows = np.ascontiguousarray(rows, np.int32)
        if len(rows) > len(tape.logits):
            tape.logits = np.zeros((len(rows), tape.logits.shape[1]), np.float32)
        header[Head.R] = len(rows)
        header[Head.LOGIT_ROWS] = self._logit_rows.ctypes.data
        header[Head.LOGITS] = tape.logits.ctypes.data
        header[Head.LOGITS_STRIDE] = tape.logits.strides[0]

    def _fill(self, step: StepInput) -> None:
        """Point the header to a step's arrays and compute its rope angles."""
        m = len(step.tokens)
        if not 0 < m <= self._limits.rows:
            raise KernelError(f"Found a step of {m} rows, expected 1 to {self._limits.rows}.")
        header, tape = self._header, self._tape
        self._step, self._layout = step, Layout.of(step, self._limits.tried)
        header[Head.PROGRAM] = tape.program.ctypes.data
        header[Head.COUNTERS] = tape.counters.ctypes.data
        if self._shape.delta is not None:
            self._point_to_slots(step)
        # Kept until the next step: the threads read them in place.
        for place, array in self._layout.arrays.items():
            header[place] = array.ctypes.data if len(array) else 0
        header[Head.M] = m
        header[Head.N_SEQUENCES], header[Head.TABLE_STRIDE] = step.page_table.shape
        self._want(step.logit_rows)
        for buffer in tape.given:
            buffer.values(m)[:] = step.given
        for rope, table in tape.ropes:
            pairs = rope.n_rot // 2
            angle = np.multiply.outer(step.positions, rope.frequencies())
            table[:m, :pairs] = np.cos(angle) * rope.magnitude
            table[:m, pairs:] = np.sin(angle) * rope.magnitude

    def accept(self, sequence: int, rows: Seq[int]) -> None:
        step, layout = self._step, self._layout
        if not rows:
            return
        kept = layout.kept[sequence]
        layout.kept[sequence] = kept + len(rows)
        first = layout.first_row(sequence)
        for i, row in enumerate(rows, kept):
            if row != i:
                places = layout.arrays[Head.PLACES]
                source, target = (divmod(int(places[first + r]), PAGE) for r in (row, i))
                table = step.page_table[sequence]
                self._move((table[source[0]], source[1]), (table[target[0]], target[1]))
        if self._shape.delta is None:
            return
        start = int(layout.arrays[Head.LOGS][sequence])
        if list(rows) != list(range(kept, kept + len(rows))):
            self._log[:, start + kept : start + kept + len(rows)] = self._log[
                :, [start + row for row in rows]
            ]
        self._redo_rows(int(step.slots[sequence]), start + kept, len(rows))

    def _move(self, source: tuple[int, int], target: tuple[int, int]) -> None:
        """Copy the keys and values of one place (page, token) in all layers."""
        s, number = self._shape, np.float16 if self._pages_kind == "F16" else np.float32
        pages = self._kv.view(number).reshape(*self._kv.shape[:3], s.n_kv_heads, -1)
        keys = pages[:, 0].reshape(*pages[:, 0].shape[:3], PAGE // 16, s.head_dim, 16)
        values = pages[:, 1].reshape(*pages[:, 1].shape[:3], s.head_dim // 16, PAGE, 16)
        (page, token), (to_page, to) = source, target
        keys[:, to_page, :, to // 16, :, to % 16] = keys[:, page, :, token // 16, :, token % 16]
        values[:, to_page, :, :, to] = values[:, page, :, :, token]

    def first_bad_layer(self, step: StepInput) -> int | None:
        self._tape = self._tapes[0]
        self._fill(step)
        begin, m = 0, len(step.tokens)
        for layer, end, x in self._tape.marks:
            self._run(begin, end)
            begin = end
            if not np.isfinite(x.values(m)).all():
                return layer
        self._run(begin, len(self._tape.program))
        done = self._tape.logits[: len(step.logit_rows)]
        return None if np.isfinite(done).all() else self._shape.n_layers

    def keep(self, x: Buffer) -> None:
        """While recording: have the float32 form of `x` written, so that `x.values` can show it."""
        x.products.clear()
        self._rows(x, "floats")
