"""Gated DeltaNet on the CPU: its operands, and the slots of its states."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from engine.errors import KernelError, UnsupportedModel
from engine.ops.base import DeltaShape, StepInput
from engine.ops.cpu_buffers import Buffer
from engine.ops.cpu_recorder import Recorder, bits_of
from engine.ops.cpu_weights import Weight
from kernels.cpu import delta, products, rowwise
from kernels.cpu.layout import MOST_TRIED, Head
from kernels.cpu.layout import Delta as Of
from kernels.cpu.panels import DENSE, PANEL
from kernels.cpu.runtime import aligned


class DeltaOps(Recorder):
    """`Ops.delta`."""

    def delta(
        self,
        mixed: Buffer,
        layer: int,
        conv1d: Weight,
        dt_bias: Weight,
        a: Weight,
        norm: Weight,
        eps: float,
    ) -> Buffer:
        d = self._shape.delta
        assert d is not None, "the model's shape must tell of recurrent layers"
        self._shared(mixed)
        out = self._buffer(d.n_v_heads * d.head_dim)
        kernel, record = self._kernel, delta.record_bytes(d.head_dim)
        n_records = delta.BLOCK
        if self._limits.tried:
            n_records = max(n_records, MOST_TRIED)
            self._log_memory(d)
        states_at = -(-(delta.POINTERS + n_records * record) // 64) * 64
        n_states = MOST_TRIED if self._limits.tried else 0
        self._need_scratch(states_at + n_states * 4 * d.head_dim**2)
        log = self._log[layer] if self._limits.tried else self._log
        taps = self._dense_floats(conv1d)
        states, tails = self._states[layer], self._tails[layer]
        operands = np.array(
            [
                mixed.floats, mixed.stride, d.n_k_heads, d.n_v_heads, d.head_dim, d.conv_kernel,
                taps.ctypes.data, taps.strides[0], dt_bias.address, a.address, norm.address,
                bits_of(eps), bits_of(d.head_dim**-0.5),
                states.ctypes.data, states.strides[0], tails.ctypes.data, tails.strides[0],
                kernel(f"convolve_{d.conv_kernel}", delta.convolve, d.conv_kernel),
                kernel("unit", delta.unit), kernel("gates", delta.gates),
                kernel(f"recur_{d.head_dim}", delta.recur, d.head_dim),
                kernel("head_norm", rowwise.head_norm), kernel("swiglu", rowwise.swiglu),
                0, 0, 0, 0, record, d.qkv + d.n_v_heads * d.head_dim,
                log.ctypes.data, log.strides[0], states_at,
            ],
            np.int64,
        )  # fmt: skip
        self._tape.operands.append(operands)
        self._held.append(taps)
        self._redo(operands, d)
        self._emit(delta.delta, operands.ctypes.data)

        def floats() -> None:
            operands[[Of.OUT, Of.OUT_STRIDE]] = out.floats, out.stride

        def coded() -> None:
            operands[[Of.CODED, Of.CODED_STRIDE]] = out.coded, out.coded_stride

        out.wanted.update(floats=floats, coded=coded)
        return out

    def _log_memory(self, d: DeltaShape) -> None:
        """What tried rows bring, of all layers: (layer, row, q|k|v|alpha|beta)."""
        if not self._log.size:
            width = d.qkv + 2 * d.n_v_heads
            log = aligned(4 * d.n_layers * self._limits.tried * width).view(np.float32)
            self._log = log.reshape(d.n_layers, self._limits.tried, width)
            self._held.append(log.view(np.uint8))

    def _redo(self, operands: NDArray[np.int64], d: DeltaShape) -> None:
        """A line of the program that moves states on by rows of the log."""
        if self._limits.tried:
            again = operands.copy()
            again[[Of.MIXED, Of.MIXED_STRIDE]] = operands[[Of.LOG, Of.LOG_STRIDE]]
            again[Of.GATES_AT] = d.qkv
            self._tape.redone.append(again)

    def _redo_rows(self, slot: int, start: int, n: int) -> None:
        """Move the states in `slot` on by `n` rows of the log."""
        header, tape = self._header, self._tape
        zero = np.zeros(n, np.int32)
        slots, positions = np.full(1, slot, np.int32), np.ones(n, np.int32)
        changed = {
            Head.PROGRAM: tape.redo.ctypes.data, Head.M: n, Head.N_SEQUENCES: 1, Head.R: 0,
            Head.TOKENS: zero.ctypes.data, Head.POSITIONS: positions.ctypes.data,
            Head.PLACES: positions.ctypes.data, Head.SEQUENCE: zero.ctypes.data,
            Head.SLOTS: slots.ctypes.data, Head.PARENTS: 0, Head.LOGS: 0,
        }  # fmt: skip
        former = {place: int(header[place]) for place in changed}
        for layer, operands in enumerate(tape.redone):
            operands[Of.MIXED] = self._log[layer, start].ctypes.data
        for place, value in changed.items():
            header[place] = value
        self._runtime.run(0, len(tape.redo), header)
        for place, value in former.items():
            header[place] = value

    def _dense_floats(self, weight: Weight) -> NDArray[np.uint8]:
        """Unquantised panels as float32 ones [input][row 16]."""
        if weight.kind == "F32":
            return weight.data
        if weight.kind not in DENSE:
            raise UnsupportedModel(
                f"Found a convolution of {weight.kind}, expected F32, F16 or BF16."
            )
        k = weight.shape[1]
        panels = aligned(len(weight.data) * k * PANEL * 4).reshape(len(weight.data), -1)
        address = self._kernel(f"unpack_{weight.kind}", products.unpack_dense, weight.kind)
        unpack = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(address)
        for source, to in zip(weight.data, panels, strict=True):
            unpack(source.ctypes.data, k, to.ctypes.data)
        return panels

    def _point_to_slots(self, step: StepInput) -> None:
        """Point the header to a step's slots; one state cannot serve two sequences."""
        slots = np.ascontiguousarray(step.slots, np.int32)
        n = self._limits.slots
        if len(slots) != len(step.page_table) or len(set(slots.tolist())) != len(slots):
            raise KernelError(f"Found slots {slots.tolist()}, expected one of its own a sequence.")
        if any(not 0 <= slot < n for slot in slots.tolist()):
            raise KernelError(f"Found slots {slots.tolist()}, expected 0 to {n - 1}.")
        if np.count_nonzero(np.diff(step.sequence)) >= len(np.unique(step.sequence)):
            raise KernelError("Found rows of a sequence apart, expected them together.")
        self._step_slots = slots
        self._header[Head.SLOTS] = slots.ctypes.data
