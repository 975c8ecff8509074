"""What all operations on the CPU share: memory, kernels, and the program under the pen."""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Seq
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import paths
from engine.config import Precision
from engine.errors import KernelError, UnsupportedModel
from engine.gguf import Tensor
from engine.ops.base import DeltaShape, Limits, Shape
from engine.ops.cpu_buffers import Area, Buffer, Tape, key_value_pages, lines
from engine.ops.cpu_weights import Weight, pack, padded, short_of_memory
from kernels.cpu import attention, delta, instructions, products, rowwise
from kernels.cpu.compiler import Compiler, detect
from kernels.cpu.emit import Target
from kernels.cpu.formats import FORMATS
from kernels.cpu.layout import Head, Meet
from kernels.cpu.panels import DENSE, PANEL
from kernels.cpu.rowwise import PAGE
from kernels.cpu.runtime import Arena, Operation, Runtime, aligned, cache_folder

F32 = NDArray[np.float32]
L2_BYTES = 256 << 10
"""Bytes of weights that stay in a core's second-level cache while the rows of a step pass by."""


def bits_of(number: float) -> int:
    """A float32 as the integer that kernels take."""
    return int(struct.unpack("<I", struct.pack("<f", number))[0])


class Recorder:
    """Owns the memory of a model and writes its program; operations are methods of subclasses."""

    def __init__(
        self,
        threads: int,
        precision: Precision,
        cache_dir: Path | None = None,
        target: Target | None = None,
        beside: Recorder | None = None,
    ) -> None:
        """With `beside`, another one's threads and kernels serve this one too."""
        self._target = target or detect()
        self._precision = precision
        self._fast = precision is Precision.FAST
        self._pages_kind = "F16" if self._fast and self._target.f16 else "F32"
        self._owner = beside is None
        folder = cache_folder(cache_dir or paths.cache_dir())
        self._compiler: Compiler = beside._compiler if beside else Compiler(folder)
        self._runtime: Runtime = beside._runtime if beside else Runtime(threads, folder)
        self._threads = threads
        self._header = np.zeros_like(self._runtime.header)
        self._header[Head.L2] = L2_BYTES
        self._arena = Arena()
        self._weights: list[Weight] = []
        self._held: list[NDArray[Any]] = []
        self._areas: list[Area] = []
        self._free: dict[int, list[Area]] = {}
        self._kernel_lists: dict[tuple[str, str], NDArray[np.int64]] = {}
        self._tapes: list[Tape] = []
        self._tape = Tape()  # the one that is being recorded, or ran last
        self._scratch: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._log: F32 = np.zeros((0, 0, 0), np.float32)
        self._scratch_bytes = 64 * PANEL
        self._kv: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._states = self._tails = np.zeros((0, 0, 0), np.float32)
        self._route_tables: list[NDArray[np.uint8]] = []
        self._parts = self._queries = 0

    # ---- memory --------------------------------------------------------------------------------

    def expect(self, tensors: Iterable[Tensor]) -> None:
        pass  # the arena grows

    def upload(self, tensor: Tensor) -> Weight:
        fallback = "F16" if self._fast and self._target.f16 else "F32"
        try:
            weight = pack(tensor, fallback, self._arena, self._interleave)
        except MemoryError as e:
            raise short_of_memory(f"{tensor.name} of {tensor.n_bytes:,} bytes finds no room") from e
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
        states = self._state_bytes(shape, limits)
        self._kv = key_value_pages(shape, limits, DENSE[self._pages_kind], states)
        if shape.delta is not None:
            self._allocate_states(shape.delta, limits.slots)
        group = shape.n_heads // shape.n_kv_heads
        tree = attention.tree_bytes(shape.head_dim, DENSE[self._pages_kind])
        self._need_scratch(attention.scratch_bytes(group, shape.head_dim) + tree)
        spans = aligned(24 * limits.rows)
        self._held.append(spans)
        self._header[Head.SPANS] = spans.ctypes.data
        self._header[Head.N_VOCAB] = shape.n_vocab
        self._header[Head.N_PAGES] = limits.pages

    def _state_bytes(self, shape: Shape, limits: Limits) -> int:
        if (d := shape.delta) is None:
            return 0
        each = d.n_v_heads * d.head_dim**2 + (d.conv_kernel - 1) * d.qkv
        return 4 * d.n_layers * limits.slots * each

    def _allocate_states(self, d: DeltaShape, slots: int) -> None:
        if d.head_dim % 32 or d.conv_kernel > 8:
            raise UnsupportedModel(
                f"Found recurrent heads of {d.head_dim} values and a convolution over {d.conv_kernel} "
                "tokens; expected a head size divisible by 32 and up to 8 tokens."
            )
        size = d.n_v_heads * d.head_dim**2
        self._states = aligned(4 * d.n_layers * slots * size).view(np.float32)
        self._states = self._states.reshape(d.n_layers, slots, size)
        size = (d.conv_kernel - 1) * d.qkv
        self._tails = aligned(4 * d.n_layers * slots * size).view(np.float32)
        self._tails = self._tails.reshape(d.n_layers, slots, size)

    def memory(self) -> dict[str, int]:
        work = sum(a.nbytes for a in self._held) + self._scratch.nbytes
        for tape in self._tapes:
            work += tape.program.nbytes + tape.logits.nbytes + tape.hidden.nbytes
        work += sum(a.floats.nbytes + a.coded.nbytes for a in self._areas)
        work += self._states.nbytes + self._tails.nbytes
        return {
            "model": sum(w.data.nbytes for w in self._weights),
            "kv": self._kv.nbytes,
            "work": work,
        }

    def page_bytes(self) -> int:
        layers, both, _, size = self._kv.shape
        return layers * both * size

    def alike(self) -> int | None:
        return None

    def keeps(self) -> bool:
        return False

    def state_bytes(self) -> int:
        return sum(kept[:, :1].nbytes for kept in (self._states, self._tails))

    def read_page(self, page: int, to: NDArray[np.uint8]) -> None:
        to.reshape(self._kv[:, :, page].shape)[...] = self._kv[:, :, page]

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        self._kv[:, :, page] = data.reshape(self._kv[:, :, page].shape)

    def read_state(self, slot: int, to: NDArray[np.uint8]) -> None:
        for part, kept in self._state_parts(to):
            part[...] = kept[:, slot]

    def write_state(self, slot: int, data: NDArray[np.uint8]) -> None:
        for part, kept in self._state_parts(data):
            kept[:, slot] = part

    def _state_parts(
        self, data: NDArray[np.uint8]
    ) -> list[tuple[NDArray[np.uint8], NDArray[np.uint8]]]:
        """Parts (layers, bytes) of one slot's bytes, and the memory (layers, slots, bytes) of each."""
        states, tails = (kept.view(np.uint8) for kept in (self._states, self._tails))
        end = states[:, :1].nbytes
        parts = (data[:end], states), (data[end:], tails)
        return [(part.reshape(len(kept), -1), kept) for part, kept in parts]

    def settle(self) -> None:
        """As `Ops.settle`; what is read is there at once."""

    def copy_page(self, source: int, target: int) -> None:
        self._kv[:, :, target] = self._kv[:, :, source]

    def copy_state(self, source: int, target: int) -> None:
        for kept in (self._states, self._tails):
            kept[:, target] = kept[:, source]

    def close(self) -> None:
        if self._owner:
            self._runtime.close()
            self._compiler.close()
        for memory in (self._weights, self._held, self._areas, self._free, self._tapes):
            memory.clear()
        self._tape = Tape()
        self._log = np.zeros((0, 0, 0), np.float32)
        self._scratch = np.zeros(0, np.uint8)
        self._kv = np.zeros(0, np.uint8)
        self._states = self._tails = np.zeros((0, 0, 0), np.float32)
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
                width,
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
    def recording(self, capture: Seq[int] = ()) -> Iterator[Tape]:
        tape = self._tape = Tape(tuple(capture))
        n_areas = len(self._areas)
        try:
            if capture:
                n = self._limits.rows * len(capture) * self._shape.n_embd
                tape.hidden = aligned(4 * n).view(np.float32).reshape(self._limits.rows, -1)
            yield tape
        except MemoryError as e:
            raise short_of_memory("the work space finds no room") from e
        tape.program = lines(tape.code)
        again = self._runtime.operation(delta.delta) if tape.redone else 0
        tape.redo = lines([[again, Meet.NEVER, o.ctypes.data] for o in tape.redone])
        # Fused operations leave memory that no instruction refers to.
        addresses = np.sort(np.concatenate([tape.program.ravel(), *tape.operands]))
        for area in self._areas[n_areas:]:
            area.trim(addresses)
        self._free.clear()
        tape.counters = aligned(8 * max(1, len(tape.program)))
        if self._scratch_bytes * self._threads > len(self._scratch):
            self._scratch = aligned(self._scratch_bytes * self._threads)
        self._header[Head.SCRATCH] = self._scratch.ctypes.data
        self._header[Head.SCRATCH_STRIDE] = self._scratch_bytes
        self._tapes.append(tape)

    def _capture(self, layer: int, x: Buffer) -> None:
        """Keep rows for `Ops.hidden`, if that layer is wanted."""
        for place in (i for i, wanted in enumerate(self._tape.capture) if wanted == layer):
            hidden, width = self._tape.hidden, self._shape.n_embd
            source, stride = self._rows(x, "floats")
            self._emit(
                instructions.put, source, stride, hidden.ctypes.data + 4 * width * place,
                hidden.strides[0], 4 * width, x.line is not None, meet=Meet.NEVER,
            )  # fmt: skip

    def _emit(self, op: Operation, *operands: int, meet: Meet = Meet.ALWAYS) -> list[int]:
        line = [self._runtime.operation(op), int(meet), *operands]
        self._tape.code.append(line)
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
                instructions.code, self._kernel("code", rowwise.code), x.floats, x.stride, x.coded,
                x.coded_stride, x.width, private, meet=Meet.ROWS if private else Meet.ALWAYS,
            )  # fmt: skip
        elif form in x.wanted:
            x.wanted[form]()
        return (x.coded, x.coded_stride) if form == "coded" else (x.floats, x.stride)

    def _form(self, weight: Weight) -> str:
        return "coded" if self._fast and weight.kind in FORMATS else "floats"

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
                instructions.linear, self._products(weight.kind, self._form(weight)), source, stride,
                weight.address, weight.data.strides[0], weight.count, weight.shape[0],
                y.floats + 4 * column, y.stride, 0, x.line is not None,
                meet=Meet.ALWAYS if i == len(weights) - 1 else Meet.NEVER,
            )  # fmt: skip
            y.products.append(line)
            column += weight.shape[0]
        return y
