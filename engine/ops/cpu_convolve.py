"""Short convolutions inside a step, and scaled rows."""

from __future__ import annotations

import numpy as np

from engine.ops.cpu_buffers import Buffer
from engine.ops.cpu_recorder import Recorder
from engine.ops.cpu_weights import Weight
from kernels.cpu import convolve
from kernels.cpu.layout import Meet
from kernels.cpu.runtime import aligned


class ConvolveOps(Recorder):
    """`Ops.convolve` and `Ops.scale`."""

    def convolve(self, x: Buffer, kernels: Buffer, base: Weight, part: int, taps: int) -> Buffer:
        y = self._buffer(x.width)
        self._shared(x)
        self._shared(kernels)
        source, stride = self._rows(x, "floats")
        mine, mine_stride = self._rows(kernels, "floats")
        per_part = kernels.width // 2
        self._emit(
            convolve.convolve, source, stride, mine + 4 * part * per_part, mine_stride,
            base.address + 4 * part * taps * x.width, taps, x.width * taps // per_part, x.width,
            y.floats, y.stride,
        )  # fmt: skip
        return y

    def scale(self, x: Buffer, factor: float) -> None:
        number = aligned(4)
        number.view(np.float32)[0] = factor
        self._held.append(number)
        private = x.line is not None
        line = self._emit(
            convolve.scale, x.floats, x.stride, x.width, number.ctypes.data, private,
            meet=Meet.ROWS if private else Meet.ALWAYS,
        )  # fmt: skip
        if private:
            x.line = line
