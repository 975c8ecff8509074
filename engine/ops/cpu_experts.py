"""Mixture of experts on the CPU: its operands and memory."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq

import numpy as np

from engine.ops.cpu_buffers import Buffer
from engine.ops.cpu_recorder import L2_BYTES, Recorder
from engine.ops.cpu_weights import Weight, padded
from kernels.cpu import experts, products, rowwise
from kernels.cpu.layout import GATED_ROWS
from kernels.cpu.panels import PANEL
from kernels.cpu.runtime import aligned


class ExpertOps(Recorder):
    """`Ops.experts`."""

    swiglu: Callable[[Buffer], Buffer]

    def experts(
        self,
        h: Buffer,
        router: Weight,
        gate: Weight,
        up: Weight,
        down: Weight,
        n_used: int,
        shared: Seq[Weight],
        shared_gate: Weight,
    ) -> Buffer:
        n, inner, embd = gate.shape
        of_shared = self.linear(self.swiglu(self.linear(h, *shared[:2])), shared[2])
        scores = self.linear(h, router, shared_gate)
        # The activations of a row's experts side by side.
        activation = self._buffer(n_used * padded(inner))
        out = self._buffer(embd)
        coded = self._form(down) == "coded"
        columns = max(1, min(-(-inner // 32), L2_BYTES // (4 * max(_stride(gate), _stride(up)))))
        widest = max(h.stride, h.coded_stride)
        self._need_scratch(GATED_ROWS * (2 * 128 * columns + widest))
        self._need_scratch(GATED_ROWS * (64 * experts.DOWN_PANELS + 4 * padded(inner)))
        kernel = self._kernel
        operands = np.array(
            [
                scores.floats, scores.stride, n, n_used, *self._routes(n, n_used), inner, embd, columns,
                h.line is not None, kernel("swiglu", rowwise.swiglu),
                0 if coded else activation.floats, activation.stride, 4 * padded(inner),
                activation.coded if coded else 0, activation.coded_stride,
                padded(inner) // 32 * products.CODED_BLOCK,
                of_shared.floats, of_shared.stride, out.floats, out.stride,
                kernel("weigh", experts.weigh, False), kernel("weigh_add", experts.weigh, True),
                *self._stack(gate, *self._rows(h, self._form(gate))),
                *self._stack(up, *self._rows(h, self._form(up))),
                *self._stack(
                    down,
                    activation.coded if coded else activation.floats,
                    activation.coded_stride if coded else activation.stride,
                ),
            ],
            np.int64,
        )  # fmt: skip
        self._tape.operands.append(operands)
        for op in (experts.route, experts.group, experts.up, experts.down):
            self._emit(op, operands.ctypes.data)
        return out

    def _stack(self, weight: Weight, x: int, x_stride: int) -> tuple[int, ...]:
        """See `kernels.cpu.layout.Stack`."""
        return (
            self._products(weight.kind, self._form(weight)), x, x_stride, weight.address, _stride(weight),
            weight.count, weight.shape[1] // PANEL * _stride(weight),
        )  # fmt: skip

    def _routes(self, n: int, n_used: int) -> list[int]:
        """Addresses of what a step's rows choose; the layers use it one after the other."""
        rows = self._limits.rows
        if not self._route_tables:
            sizes = (
                4 * rows * n_used,
                4 * rows * (n_used + 1),
                8 * (n + 2),
                4 * rows * n_used,
                8 * (n + 1),
            )
            self._route_tables = [aligned(size) for size in sizes]
            self._held += self._route_tables
        return [int(table.ctypes.data) for table in self._route_tables]


def _stride(weight: Weight) -> int:
    return int(weight.data.strides[0])
