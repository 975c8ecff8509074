"""The operations on the CPU: records programs for `kernels.cpu` and owns their memory.

Quantised weights stay quantised, in panels of 16 rows. In `fast` precision activations are int8 with a
scale for each 32 values; `exact` multiplies dequantised weights by float32 activations.
"""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

from engine import paths
from engine.config import Precision
from engine.errors import KernelError, OutOfMemory, UnsupportedModel
from engine.gguf import Tensor
from engine.ops.base import Limits, Rope, Shape, StepInput
from engine.ops.cpu_buffers import Area, Buffer
from engine.ops.cpu_weights import Weight, pack, padded
from kernels.cpu import products, rowwise
from kernels.cpu.compiler import Compiler, detect
from kernels.cpu.emit import Target
from kernels.cpu.formats import FORMATS
from kernels.cpu.layout import GATED_ROWS, SPAN_ROWS, SPLIT_ROWS, WIDTH, Head, Meet, Op
from kernels.cpu.panels import DENSE, PANEL
from kernels.cpu.rowwise import CHUNK, PAGE, STATE
from kernels.cpu.runtime import Arena, Runtime, aligned, cache_folder

F32 = NDArray[np.float32]
_L2_BYTES = 256 << 10
"""Bytes of weights that stay in a core's second-level cache while the rows of a step pass by."""


def _bits(number: float) -> int:
    """A float32 as the integer that kernels take."""
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


class CpuOps:
    """`Ops` on `threads` threads. `target` chooses other instructions than the processor's best."""

    def __init__(
        self,
        threads: int,
        precision: Precision,
        cache_dir: Path | None = None,
        target: Target | None = None,
    ) -> None:
        folder = cache_folder(cache_dir or paths.cache_dir())
        self._target = target or detect()
        self._fast = precision is Precision.FAST
        self._pages_kind = "F16" if self._fast and self._target.f16 else "F32"
        self._compiler = Compiler(folder)
        self._runtime = Runtime(threads, folder)
        self._threads = threads
        self._header = self._runtime.header
        self._header[Head.L2] = _L2_BYTES
        self._arena = Arena()
        self._weights: list[Weight] = []
        self._held: list[NDArray[Any]] = []
        self._areas: list[Area] = []
        self._free: dict[int, list[Area]] = {}
        self._kernel_lists: dict[tuple[str, str], NDArray[np.int64]] = {}
        self._code: list[list[int]] = []
        self._program: NDArray[np.int64] = np.zeros((0, WIDTH), np.int64)
        self._ropes: list[tuple[Rope, F32]] = []
        self._marks: list[tuple[int, int, Buffer]] = []
        self._logits: F32 = np.zeros((0, 1), np.float32)
        self._scratch_bytes = 64 * PANEL
        self._logits_from = 0
        self._kv: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._parts = self._queries = 0

    # ---- memory --------------------------------------------------------------------------------

    def upload(self, tensor: Tensor) -> Weight:
        fallback = "F16" if self._fast and self._target.f16 else "F32"
        weight = pack(tensor, fallback, self._arena, self._interleave)
        self._weights.append(weight)
        return weight

    def _interleave(
        self, rows: NDArray[np.uint8], width: int, flip: int, to: NDArray[np.uint8]
    ) -> None:
        """See `kernels.cpu.formats.Interleave`; holds no lock of Python while it works."""
        address = self._kernel(f"interleave_{width}", products.interleave, width)
        kernel = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 10)(address)
        kernel(
            rows.ctypes.data, rows.strides[0], rows.strides[1], len(to), rows.shape[1],
            rows.shape[2] // width, to.ctypes.data, to.strides[0], to.strides[1], flip * 0x01010101,
        )  # fmt: skip

    def allocate(self, shape: Shape, limits: Limits) -> None:
        if limits.page_tokens != PAGE:
            raise KernelError(f"Found pages of {limits.page_tokens} tokens, expected {PAGE}.")
        if shape.head_dim % 16 or shape.n_heads % shape.n_kv_heads:
            raise UnsupportedModel(
                f"Found {shape.n_heads} heads of {shape.head_dim} values over {shape.n_kv_heads} "
                "key/value heads; expected a head size divisible by 16 and whole groups of heads."
            )
        self._shape, self._limits = shape, limits
        size = DENSE[self._pages_kind]
        self._page_bytes = shape.n_kv_heads * PAGE * shape.head_dim * size
        kv = shape.n_layers * 2 * limits.pages * self._page_bytes
        free = psutil.virtual_memory().available
        if kv > free:
            raise OutOfMemory(
                f"CPU: keys and values need {kv:,} bytes ({shape.n_layers} layers x 2 x "
                f"{limits.pages} pages x {self._page_bytes:,} bytes) and {free:,} are free. Use a "
                "shorter context or fewer sequences at once."
            )
        self._kv = aligned(kv).reshape(shape.n_layers, 2, limits.pages, self._page_bytes)
        group = shape.n_heads // shape.n_kv_heads
        n = SPAN_ROWS * group
        self._need_scratch(4 * n * (PAGE + shape.head_dim) + 8 * n * (STATE + shape.head_dim))
        spans = aligned(24 * limits.rows)
        self._held.append(spans)
        self._header[Head.SPANS] = spans.ctypes.data
        self._header[Head.N_VOCAB] = shape.n_vocab
        self._header[Head.N_PAGES] = limits.pages

    def memory(self) -> dict[str, int]:
        work = sum(a.nbytes for a in self._held) + self._program.nbytes + self._logits.nbytes
        work += sum(a.floats.nbytes + a.coded.nbytes for a in self._areas)
        return {
            "model": sum(w.data.nbytes for w in self._weights),
            "kv": self._kv.nbytes,
            "work": work,
        }

    def copy_page(self, source: int, target: int) -> None:
        self._kv[:, :, target] = self._kv[:, :, source]

    def close(self) -> None:
        self._runtime.close()
        self._compiler.close()
        for memory in (self._weights, self._held, self._areas, self._free, self._marks):
            memory.clear()
        self._kv = np.zeros(0, np.uint8)
        self._arena = Arena()

    def _need_scratch(self, n_bytes: int) -> None:
        self._scratch_bytes = max(self._scratch_bytes, -(-n_bytes // 64) * 64)

    def _buffer(self, width: int) -> Buffer:
        """A new activation; once the model file drops it, its memory serves the next of this width."""
        free = self._free.setdefault(width, [])
        if free:
            area = free.pop()
        else:
            # A row for each thread's copy; kernels may read a little past the last row.
            n_rows = max(self._limits.rows, self._threads)
            area = Area(
                aligned(n_rows * 4 * padded(width) + 128),
                aligned(n_rows * padded(width) // 32 * products.CODED_BLOCK),
            )
            self._areas.append(area)
        buffer = Buffer(width, area)
        weakref.finalize(buffer, free.append, area)
        return buffer

    # ---- kernels -------------------------------------------------------------------------------

    def _kernel(self, name: str, write: Callable[..., str], *args: Any) -> int:
        """The address of a kernel; `name` must say all that `args` say."""
        t = self._target
        full = f"{name}_{t.dot}_{t.lanes}{'' if t.f16 else '_nof16'}{'' if t.fma else '_nofma'}"
        return self._compiler.address(full, lambda n: write(n, *args, t))

    def _products(self, kind: str, form: str) -> int:
        """The address of the (rows, kernel) list of a kind of weights for f32 or coded rows."""
        if (kind, form) not in self._kernel_lists:
            pairs = []
            # Attention has any small number of rows: the queries of a key/value head.
            sizes = (
                range(self._target.row_blocks[0], 0, -1)
                if kind in DENSE
                else self._target.row_blocks
            )
            for rows in sizes:
                name = f"{form}_{kind}_{rows}"
                if kind in DENSE:
                    address = self._kernel(name, products.dense, kind, rows)
                else:
                    write = products.coded if form == "coded" else products.floating
                    address = self._kernel(name, write, FORMATS[kind], rows)
                pairs += [rows, address]
            self._kernel_lists[kind, form] = np.array(pairs, np.int64)
        return int(self._kernel_lists[kind, form].ctypes.data)

    # ---- recording -----------------------------------------------------------------------------

    @contextmanager
    def recording(self) -> Iterator[None]:
        self._code, self._marks, self._ropes = [], [], []
        yield
        self._program = np.array(
            [line + [0] * (WIDTH - len(line)) for line in self._code], np.int64
        ).reshape(-1, WIDTH)
        scratch = aligned(self._scratch_bytes * self._threads)
        counters = aligned(8 * len(self._program))
        self._held += [scratch, counters]
        self._header[Head.COUNTERS] = counters.ctypes.data
        self._header[Head.PROGRAM] = self._program.ctypes.data
        self._header[Head.SCRATCH] = scratch.ctypes.data
        self._header[Head.SCRATCH_STRIDE] = self._scratch_bytes

    def _emit(self, op: Op, *operands: int, meet: Meet = Meet.ALWAYS) -> list[int]:
        line = [int(op), int(meet), *operands]
        self._code.append(line)
        return line

    def _shared(self, x: Buffer) -> Buffer:
        """`x` for an instruction that knows nothing of threads' own copies."""
        if x.line is not None:
            x.line[1] = Meet.COPIES
        return x

    def _rows(self, x: Buffer, form: str) -> tuple[int, int]:
        """Address and stride of a buffer in the wanted form, which its producer then writes."""
        if form == "coded" and "coded" not in x.wanted:
            private = x.line is not None
            self._emit(
                Op.CODE, self._kernel("code", rowwise.code), x.floats, x.stride, x.coded,
                x.coded_stride, x.width, private, meet=Meet.ROWS if private else Meet.ALWAYS,
            )  # fmt: skip
        elif form in x.wanted:
            x.wanted[form]()
        return (x.coded, x.coded_stride) if form == "coded" else (x.floats, x.stride)

    def _form(self, weight: Weight) -> str:
        return "coded" if self._fast and weight.kind in FORMATS else "floats"

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
            Op.EMBED, kernel, token_embd.address, stride, token_embd.count, width, x.floats, x.stride,
            meet=Meet.ROWS,
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
            Op.NORM, kernel, x.floats, x.stride, y.floats, y.stride, weight.address,
            0, 0, 0, 0, x.width, _bits(eps), private, y.line is not None,
            meet=Meet.ROWS if private else Meet.ALWAYS,
        )  # fmt: skip
        if private:
            x.line = h.line = line
        self._forms(h, line, 6)
        return h

    def _forms(self, buffer: Buffer, line: list[int], at: int) -> None:
        """Let an instruction write the forms of `buffer` that are asked for; operands `at` .. at + 3."""

        def on(address_at: int, address: int, stride: int) -> Callable[[], None]:
            def switch() -> None:
                line[2 + address_at : 4 + address_at] = [address, stride]

            return switch

        buffer.wanted["floats"] = on(at, buffer.floats, buffer.stride)
        buffer.wanted["coded"] = on(at + 2, buffer.coded, buffer.coded_stride)

    def linear(self, x: Buffer, *weights: Weight) -> Buffer:
        y = self._buffer(sum(w.shape[0] for w in weights))
        column = 0
        for i, weight in enumerate(weights):
            source, stride = self._rows(x, self._form(weight))
            line = self._emit(
                Op.LINEAR, self._products(weight.kind, self._form(weight)), source, stride,
                weight.address, weight.data.strides[0], weight.count, weight.shape[0],
                y.floats + 4 * column, y.stride, 0, x.line is not None,
                meet=Meet.ALWAYS if i == len(weights) - 1 else Meet.NEVER,
            )  # fmt: skip
            y.products.append(line)
            column += weight.shape[0]
        return y

    def attend(
        self,
        qkv: Buffer,
        layer: int,
        rope: Rope,
        q_norm: Weight | None = None,
        k_norm: Weight | None = None,
        eps: float = 0.0,
    ) -> Buffer:
        s, kind = self._shape, self._pages_kind
        self._shared(qkv)
        out = self._buffer(s.n_heads * s.head_dim)
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
                q_norm.address if q_norm else 0, k_norm.address if k_norm else 0, _bits(eps),
                kernel("head_norm", rowwise.head_norm),
                kernel(rotate, rowwise.rotate, rope.interleaved, pairs),
                table.ctypes.data, table.strides[0], self._queries, _bits(s.head_dim**-0.5),
                kernel(f"store_key_{kind}", rowwise.store_key, kind),
                kernel(f"store_value_{kind}", rowwise.store_value, kind),
                keys, values, DENSE[kind], self._limits.rows, self._products(kind, "floats"),
                kernel("softmax", rowwise.softmax), kernel("accumulate", rowwise.accumulate),
                kernel("merge", rowwise.merge), self._parts, self._slots(),
                kernel("divide", rowwise.divide), out.floats, out.stride,
                kernel("code", rowwise.code), 0, 0,
            ],
            np.int64,
        )  # fmt: skip
        self._held.append(operands)
        self._emit(Op.PLACE, operands.ctypes.data)
        self._emit(Op.ATTEND, operands.ctypes.data)
        whole = s.head_dim % 32 == 0
        self._emit(Op.FINISH, operands.ctypes.data, meet=Meet.SPLIT if whole else Meet.ALWAYS)

        def coded() -> None:
            operands[30:32] = out.coded, out.coded_stride

        out.wanted["coded"] = coded
        return out

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
        for known, table in self._ropes:
            if known is rope:
                return table
        table = aligned(4 * self._limits.rows * rope.n_rot).view(np.float32)
        table = table.reshape(self._limits.rows, rope.n_rot)
        self._held.append(table)
        self._ropes.append((rope, table))
        return table

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
            pairs = max(1, min(-(-n // 32), _L2_BYTES // (4 * panel_stride)))
            self._need_scratch(GATED_ROWS * 2 * 4 * 32 * pairs)
            line = self._emit(
                Op.GATED, products, x, stride, gate, lines[1][2 + 3], panel_stride, k, n, pairs,
                kernel, 0, 0, 0, 0, private,
            )  # fmt: skip
            self._forms(h, line, 10)
            return h
        self._shared(gate_up)
        line = self._emit(
            Op.SWIGLU, kernel, gate_up.floats, gate_up.stride, gate_up.floats + 4 * width,
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
        self._emit(Op.GATHER, source, stride, to, stride, stride, h.line is not None)
        self._emit(
            Op.LINEAR, self._products(output.kind, form), to, stride, output.address,
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
        for place, array in zip(
            (Head.TOKENS, Head.POSITIONS, Head.SEQUENCE, Head.TABLE), self._arrays, strict=True
        ):
            header[place] = array.ctypes.data
        header[Head.M] = m
        header[Head.N_SEQUENCES], header[Head.TABLE_STRIDE] = step.page_table.shape
        self._want(step.logit_rows)
        for rope, table in self._ropes:
            pairs = rope.n_rot // 2
            angle = np.multiply.outer(step.positions, _frequencies(rope))
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


def _frequencies(rope: Rope) -> NDArray[np.float64]:
    """Radians for each position, of each pair."""
    exponent = np.arange(0, rope.n_rot, 2, dtype=np.float64) / rope.n_rot
    frequency = np.float64(rope.base) ** -exponent * rope.scale
    return frequency if rope.factors is None else frequency / rope.factors
