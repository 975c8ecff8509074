"""Gated DeltaNet on a card: its states, the log of what is tried, and the launches."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import UnsupportedModel
from engine.ops.base import MOST_KEPT, DeltaShape
from engine.ops.cuda_attention import Path
from engine.ops.cuda_buffers import MOST_ROWS, Buffer, Float, Int, Pass, Pointer, activation_of
from engine.ops.cuda_device import Weight, told
from engine.ops.cuda_recorder import Recorder
from engine.ops.cuda_step import BEFORE, MASKS, POSITIONS, SEQUENCE, VISITS
from kernels import variants
from kernels.variants import Variant

HEAD_DIM = 128
_COLUMNS, _RECUR_COLUMNS = 32, 16  # of a state, in a block of `row` or `commit`, and of `recur`
_TAPS = 4  # of a convolution, most of them, in the kernel `row`
_FEW = 4
"""Rows of a step whose gates are left to the last block of `recur`."""
_CHUNKED = 16
"""Rows of a sequence from which on a long step takes them in chunks."""
_NEVER = 1 << 30  # more than any sequence has
_TOGETHER, _GATED = 16, 8  # rows of a block of `convolve_rows` and of `gate_rows`


class Values(ctypes.Structure):
    """`Values` of kernels/delta.cu."""

    _fields_ = (
        *((name, Pointer) for name in ("q", "k", "v", "log_g", "b", "kq", "d", "raw", "o")),
        *((name, Int) for name in ("n_k", "n_v", "taps", "all")),
    )


class Gate(ctypes.Structure):
    """`Gate` of kernels/delta.cu."""

    _fields_ = (("arrived", Pointer), ("norm", Pointer), ("eps", Float))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the values of a layer lie: bytes of each, and the address of the first."""

    address: int
    sizes: tuple[int, ...]

    def at(self) -> list[int]:
        found, address = [], self.address
        for size in self.sizes:
            found.append(address)
            address += size
        return found


def _sizes(d: DeltaShape, rows: int, raw: int) -> tuple[int, ...]:
    """Bytes of q, k, v, log g, b, k q, d, raw, o of `rows` rows."""
    keys, inner = d.n_k_heads * HEAD_DIM, d.n_v_heads * HEAD_DIM
    floats = (
        rows * keys, rows * keys, rows * inner, rows * d.n_v_heads, rows * d.n_v_heads,
        rows * d.n_k_heads, rows * inner, raw * d.qkv, rows * inner,
    )  # fmt: skip
    return tuple(-(-4 * n // 256) * 256 for n in floats)


_D = 6  # of them


class DeltaOps(Recorder):
    """`Ops.delta`."""

    _states: int
    _tails: int
    _logs: tuple[_Place, ...] = ()
    _values: _Place
    _arrived: int
    _chunk: variants.DeltaChunk

    def _allocate_states(self) -> None:
        """States of all layers and slots, a layer's log for short steps, and room for long ones."""
        d, limits = self.shape.delta, self._limits
        assert d is not None
        if d.head_dim != HEAD_DIM or d.n_v_heads % 2:
            raise UnsupportedModel(
                f"Recurrent layers have {d.n_v_heads} heads of {d.head_dim}; on a card this version runs"
                f" an even number of {HEAD_DIM}. Load the model on the processor."
            )
        self._state_bytes = d.n_v_heads * HEAD_DIM * HEAD_DIM * 4
        self._tail_bytes = (d.conv_kernel - 1) * d.qkv * 4
        self._states = self._allocate("work", d.n_layers * limits.slots * self._state_bytes)
        self._tails = self._allocate("work", d.n_layers * limits.slots * self._tail_bytes)
        counters = d.n_k_heads + (limits.sequences + MOST_KEPT) * d.n_v_heads // 2
        self._arrived = self._allocate("work", 4 * counters)
        self.card.runtime.memsetAsync(self._arrived, 0, 4 * counters, self.card.stream.ptr)
        if limits.tried:  # all that rows leave behind is kept until some of them are accepted
            rows = max(MOST_ROWS, limits.tried)
            sizes = _sizes(d, rows, rows)
            log = self._allocate("work", d.n_layers * sum(sizes))
            self._logs = tuple(_Place(log + i * sum(sizes), sizes) for i in range(d.n_layers))
        raw = max(MOST_ROWS, (limits.sequences + MOST_KEPT) * (d.conv_kernel - 1))
        sizes = _sizes(d, self._rows, raw)
        self._chunk = variants.delta_chunk(self.card.arch)
        # Nothing is tried in a step that has its values there, so that chunks leave theirs in the place of d.
        work = self._most_chunks(self._rows) * d.n_v_heads * self._chunk.work
        sizes = (*sizes[:_D], max(sizes[_D], work), *sizes[_D + 1 :])
        self._values = _Place(self._allocate("work", sum(sizes)), sizes)

    def _most_chunks(self, rows: int) -> int:
        """Chunks that a step of `rows` rows may have."""
        size = self._chunk.rows
        return min(rows // size + self._limits.sequences + MOST_KEPT, -(-rows // _CHUNKED))

    def _values_of(self, layer: int, rows: int) -> Values:
        """Where a layer's values of a step of `rows` rows lie."""
        d = self.shape.delta
        assert d is not None
        logged = bool(self._logs) and rows <= max(MOST_ROWS, self._limits.tried)
        place = self._logs[layer] if logged else self._values
        keep_all = logged or rows <= MOST_ROWS
        return Values(*place.at(), d.n_k_heads, d.n_v_heads, d.conv_kernel, keep_all)

    def _commit(self, sequence: int, rows: Seq[int], n_rows: int) -> None:
        """Move states on over tried `rows` of the last step, which had `n_rows`."""
        d, slots = self.shape.delta, self._limits.slots
        assert d is not None
        kernel = self.card.kernel(Variant("delta.cu"), "commit")
        args = (
            Pointer(self._step.spans), Int(sequence), Path.of(rows), Pointer(self._states),
            ctypes.c_longlong(slots * self._state_bytes // 4), Pointer(self._tails),
            ctypes.c_longlong(slots * self._tail_bytes // 4), self._values_of(0, n_rows),
            ctypes.c_longlong(sum(self._logs[0].sizes)),
        )  # fmt: skip
        self._launch(kernel, (d.n_v_heads * HEAD_DIM // _COLUMNS, d.n_layers, 1), 128, args)

    def keeps(self) -> bool:
        d = self.shape.delta
        return d is not None and d.conv_kernel <= _TAPS

    def state_bytes(self) -> int:
        d = self.shape.delta
        return d.n_layers * (self._state_bytes + self._tail_bytes) if d else 0

    def read_state(self, slot: int, to: NDArray[np.uint8]) -> None:
        with told():
            self.card.use()
            states = self._n_layers * self._state_bytes
            for (at, size, pitch), part in zip(
                self._places(slot), (to[:states], to[states:]), strict=True
            ):
                self.card.outgoing.send(part, at, pitch, size)

    def write_state(self, slot: int, data: NDArray[np.uint8]) -> None:
        with told():
            self.card.use()
            for (at, size, pitch), host in zip(
                self._places(slot), self._in_host(data), strict=True
            ):
                self.card.copy_rows(at, pitch, host, size, size, self._n_layers)
            self.card.stream.synchronize()  # nobody else holds `data`

    def copy_state(self, source: int, target: int) -> None:
        with told():
            self.card.use()
            for (to, size, pitch), (at, *_) in zip(
                self._places(target), self._places(source), strict=True
            ):
                self.card.copy_rows(to, pitch, at, pitch, size, self._n_layers)

    @property
    def _n_layers(self) -> int:
        d = self.shape.delta
        assert d is not None
        return d.n_layers

    def _places(self, slot: int) -> list[tuple[int, int, int]]:
        """Of a slot's state and tail of the first layer: where, how many bytes, and how far to the next."""
        slots = self._limits.slots
        parts = (self._states, self._state_bytes), (self._tails, self._tail_bytes)
        return [(base + slot * size, size, slots * size) for base, size in parts]

    def _in_host(self, data: NDArray[np.uint8]) -> tuple[int, int]:
        """Where the states and the tails of all layers begin in a slot's bytes."""
        return data.ctypes.data, data.ctypes.data + self._n_layers * self._state_bytes

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
        d, slots = self.shape.delta, self._limits.slots
        assert d is not None, "the model's shape must tell of recurrent layers"
        out = Buffer(d.n_v_heads * HEAD_DIM)
        chunk = self._chunk
        row, convolve, gate, convolve_four, gate_four = self._kernels(
            "delta.cu", "row", "convolve", "gate", "convolve_four", "gate_four"
        )
        (recur,) = self._kernels("recur.cu", "recur")
        slices = d.n_v_heads * HEAD_DIM // _RECUR_COLUMNS
        convolve_rows, gate_rows = self._kernels("delta_rows.cu", "convolve_rows", "gate_rows")
        prepare = self.card.kernel(chunk.variant, "prepare", chunk.prepare)
        chunks = self.card.kernel(chunk.variant, "chunks", chunk.chunks)
        work = Pointer(self._values.at()[_D])
        states = Pointer(self._states + layer * slots * self._state_bytes)
        tails = Pointer(self._tails + layer * slots * self._tail_bytes)
        weights = Pointer(conv1d.address), Pointer(dt_bias.address), Pointer(a.address)
        keys, blocks = Pointer(self._arrived), d.n_v_heads * HEAD_DIM // _COLUMNS
        last = Gate(self._arrived + 4 * d.n_k_heads, norm.address, eps)

        def launch(p: Pass) -> None:
            values, product = self._values_of(layer, p.rows), self._product(mixed, p)
            positions, sequence, before, visits, masks = (
                Pointer(self._step.at(array, p))
                for array in (POSITIONS, SEQUENCE, BEFORE, VISITS, MASKS)
            )
            spans, to = Pointer(self._step.spans), activation_of(out, p)
            args: tuple[Any, ...]
            if p.rows == 1 and d.conv_kernel <= _TAPS:
                args = (
                    product,
                    positions,
                    sequence,
                    spans,
                    states,
                    tails,
                    *weights,
                    values,
                    last,
                    keys,
                    to,
                )
                self._launch(row, (blocks, 1, 1), 128, args)
                return
            least = _NEVER if p.short or d.conv_kernel > _TAPS else _CHUNKED
            inputs = product, positions, sequence, before, spans, tails, *weights, Float(eps)
            heads = d.n_k_heads + d.n_v_heads // 2 + -(-d.n_v_heads // 64)
            if least == _NEVER and p.several and d.conv_kernel == _TAPS:
                heads = d.n_k_heads + d.n_v_heads // 2 + -(-d.n_v_heads // 32)
                self._launch(convolve_four, (heads, p.rows // 4, 1), 128, (*inputs, values))
            elif least == _NEVER:
                self._launch(convolve, (heads, p.rows, 1), 64, (*inputs, values))
            else:
                args = *inputs, Int(p.rows), Int(least), values
                self._launch(convolve_rows, (heads, -(-p.rows // _TOGETHER), 1), 64, args)
                grid = d.n_v_heads, self._most_chunks(p.rows), 1
                args = spans, Int(p.sequences), Int(least), values, work
                self._launch(prepare, grid, 2 * chunk.rows, args)
                args = spans, Int(least), states, tails, values, work
                self._launch(chunks, (2 * d.n_v_heads, p.sequences, 1), 128, args)
            few = p.rows <= _FEW
            args = (
                spans, visits, masks, states, tails, values, Int(least), product,
                last if few else Gate(), Int(p.rows), positions, to,
            )  # fmt: skip
            self._launch(recur, (slices, p.sequences + few, 1), 128, args)
            if few:
                return
            parts = Pointer(values.o), product, Int(d.qkv), Pointer(norm.address), positions
            if p.several:
                args = *parts, Int(out.width), Float(eps), to
                self._launch(gate_four, (d.n_v_heads // 2, p.rows // 4, 1), 128, args)
            elif p.short:
                args = *parts, Int(out.width), Float(eps), to
                self._launch_shared(gate, out.width, p, args)
            else:
                args = *parts, Int(p.rows), Int(out.width), Float(eps), to
                grid = d.n_v_heads // 2, -(-p.rows // _GATED), 1
                self._launch(gate_rows, grid, 128, args)

        self._add(launch, mixed, out)
        return out
