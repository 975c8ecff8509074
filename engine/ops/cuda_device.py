"""One NVIDIA card: memory with an owner, a stream, kernels, and weights brought into their packed layout."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import devices
from engine.errors import DeviceFault, EngineError, KernelError, OutOfMemory, UnsupportedModel
from engine.gguf import Tensor
from engine.ops.cuda_outgoing import Outgoing
from engine.quants import TYPES, QuantType, grid
from kernels import variants
from kernels.driver import Driver, DriverError, Kernel, Module
from kernels.loader import CompileError, Loader
from kernels.variants import Variant

STAGING = 32 << 20
# Errors after which CUDA answers every call of the process with the same error.
_FAULTS = (
    "illegaladdress", "illegalmemoryaccess", "illegalinstruction", "misalignedaddress",
    "invalidaddressspace", "invalidpc", "launchfailure", "unspecifiedlaunchfailure", "launchtimeout",
    "launchtimedout", "hardwarestackerror", "eccuncorrectable", "uncorrectableecc", "assert",
    "contextisdestroyed",
)  # fmt: skip
TILE = 16
SUPERBLOCK = 256


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor on the card: a matrix in `type_id`'s packed layout or as numbers, or a float32 vector."""

    address: int
    rows: int
    columns: int
    type_id: int
    size: int

    @property
    def packed(self) -> bool:
        """Whether it is in chunks of 16 rows x 256 columns."""
        return bool(variants.chunk(self.type_id))

    @property
    def superblocks(self) -> int:
        """Chunks side by side."""
        return -(-self.columns // SUPERBLOCK)

    @property
    def tiles(self) -> int:
        """Chunks one below the other."""
        return -(-self.rows // TILE)


def stored_as(type_id: int, arch: int = 80) -> int:
    """The format of a matrix on the card: its own, or F16 where there is no packed layout for it."""
    type_id = variants.PACKED_AS.get(type_id, type_id)
    if type_id in variants.PACKED or type_id in (0, variants.F16_TILES):
        return type_id
    if variants.has_tiles(arch):
        return variants.F16_TILES
    return type_id if type_id in variants.FLOATS else 1


def codebook(kind: QuantType) -> NDArray[np.uint16]:
    """Entries as kernels look them up: a word for 4 weights, nibbles that count the values that occur."""
    entries = grid(kind.name)
    levels = np.searchsorted(np.unique(entries), entries).reshape(-1, 4)
    return (levels << 4 * np.arange(4)).sum(axis=1).astype("<u2")


def is_small(shape: tuple[int, ...]) -> bool:
    """Vectors and the taps of convolutions, which are kept as float32."""
    return len(shape) == 1 or shape[-1] <= 8


def bytes_on_card(shape: tuple[int, ...], type_id: int) -> int:
    """What a tensor of a file takes there."""
    return 4 * math.prod(shape) if is_small(shape) else _matrix_bytes(shape, stored_as(type_id))


def _matrix_bytes(shape: tuple[int, ...], type_id: int) -> int:
    """Bytes of matrices in a format of the card; of packed ones rows and columns are rounded up to whole
    chunks.
    """
    rows, columns = math.prod(shape[:-1]), shape[-1]
    if size := variants.chunk(type_id):
        return -(-rows // TILE) * -(-columns // SUPERBLOCK) * size
    return rows * columns * variants.FLOATS[type_id]


def gib(n: float) -> str:
    """Bytes for a message."""
    return f"{n / 2**30:.2f} GiB"


@contextmanager
def told() -> Iterator[None]:
    """Turns CUDA's errors into `KernelError`, `OutOfMemory` or `DeviceFault`."""
    try:
        yield
    except CompileError as error:
        raise KernelError(f"The GPU's kernels failed. {error}") from error
    except (DriverError, RuntimeError) as error:  # CuPy's own errors are a RuntimeError
        raise _error(str(error)) from error


def _error(text: str) -> EngineError:
    """What a failed call of CUDA means for the user; `text` has its name or its words."""

    def says(*words: str) -> bool:
        plain = text.replace(" ", "").replace("_", "").lower()
        return any(word in plain for word in words)

    if says("memoryallocation", "outofmemory"):
        return OutOfMemory(
            f"The card ran out of memory ({text}). Close other programs that use it, or load the model"
            " with a smaller context."
        )
    if says(*_FAULTS):
        return DeviceFault(
            f"The card stopped with a fault ({text}), and this program cannot use it again before it is"
            " restarted. Chats are kept. Restart it, or load the model on the processor; if it happens"
            " again, run the self-test of the card."
        )
    if says("insufficientdriver", "unsupportedptxversion"):
        cure = "The NVIDIA driver is too old for the installed GPU part; install a newer driver."
    elif says("nodevice", "invaliddevice"):
        cure = "The card is not there; choose another device."
    else:
        cure = "Load the model again; if it fails once more, restart the program."
    return KernelError(f"The GPU failed: {text}. {cure}")


class Card:
    """Device `index`. Every method may be called from any thread, one at a time."""

    def __init__(
        self, index: int, cache: Path | None, on_progress: Callable[[int, int], None] | None
    ) -> None:
        try:
            import cupy  # takes half a second, so only where a card is used
        except ImportError as error:
            raise KernelError(
                "The GPU part of the program is not installed: found no CuPy. Install it, or choose cpu."
            ) from error
        self._cuda: Any = cupy.cuda
        self.runtime: Any = cupy.cuda.runtime
        self._thread = threading.local()
        with told():
            self.index = self._number(index)
            self.use()
            major, minor = divmod(int(self._cuda.Device(self.index).compute_capability), 10)
            self.arch = 10 * major + minor
        if self.arch < variants.ARCHITECTURES[0]:
            raise KernelError(
                f"The card has compute capability {major}.{minor}, expected 7.5 (GeForce RTX 20 series) or"
                " newer. Choose cpu."
            )
        with told():
            properties = self.runtime.getDeviceProperties(self.index)
            self.processors = int(properties["multiProcessorCount"])
            name = properties["name"]
            self.name = name.decode() if isinstance(name, bytes) else str(name)
            self.stream: Any = self._cuda.Stream(non_blocking=True)
            self._driver = Driver()
            self.driver = int(self.runtime.driverGetVersion())
            self._loader = Loader(self.arch, cache, newest=self.driver // 1000)
        self.unpacked: frozenset[int] = frozenset()
        self.timeline: list[tuple[str, Any]] | None = None
        self.wanted: Callable[[str], bool] | None = None
        self._on_progress = on_progress
        self._modules: dict[Variant, Module] = {}
        self._kernels: dict[tuple[Variant, str, int], Kernel] = {}
        self._memory: list[int] = []
        self._staging: list[tuple[NDArray[np.uint8], Any, int, Any]] = []
        self.outgoing = Outgoing(self)

    def _number(self, index: int) -> int:
        """CUDA's number, which goes by speed, of card `index` of the driver's list, which goes by slot."""
        slot = devices.slot(index)
        return int(self.runtime.deviceGetByPCIBusId(slot)) if slot else index

    @property
    def dependent(self) -> bool:
        """Whether kernels may be launched before those in front of them have ended."""
        return self.arch >= 90 and self._loader.target >= 90

    def use(self) -> None:
        """Make this card the calling thread's; asking first costs far less than setting it again."""
        if not getattr(self._thread, "began", False) or self.runtime.getDevice() != self.index:
            self.runtime.setDevice(self.index)
            self._thread.began = True

    def free_bytes(self) -> int:
        """Memory that nobody holds."""
        return int(self.runtime.memGetInfo()[0])

    def allocate(self, size: int, addends: dict[str, int]) -> int:
        """Memory, uninitialised; `OutOfMemory` names `addends`, of which this is one."""
        free = self.free_bytes()
        try:
            with told():
                address = int(self.runtime.malloc(max(size, 256)))
        except OutOfMemory as error:
            parts = ", ".join(f"{name} {gib(n)}" for name, n in addends.items())
            raise OutOfMemory(
                f"{self.name} has {gib(free)} of memory free, expected {gib(size)} more for the model"
                f" ({parts}). Close other programs that use the card, or choose a smaller model or context."
            ) from error
        self._memory.append(address)
        return address

    def free(self, addresses: Iterable[int]) -> None:
        """Give memory back that is not used any more."""
        for address in addresses:
            self.runtime.free(address)
            self._memory.remove(address)

    def pinned(self, size: int) -> tuple[NDArray[np.uint8], Any]:
        """Host memory that the card reads and writes directly, and its owner."""
        owner = self._cuda.alloc_pinned_memory(size)
        return np.frombuffer(owner, np.uint8, size), owner

    def put_bytes(self, size: int) -> int:
        """Some zero bytes on the card."""
        return self.put(np.zeros(size, np.uint8))

    def put(self, data: NDArray[Any]) -> int:
        """A copy of a small array on the card."""
        data = np.ascontiguousarray(data)
        address = self.allocate(data.nbytes, {"small tables": data.nbytes})
        self._copy_in(address, data)
        return address

    def _copy_in(self, address: int, data: NDArray[Any]) -> None:
        self.runtime.memcpy(address, data.ctypes.data, data.nbytes, self.runtime.memcpyHostToDevice)

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy between any two places, in the stream's order."""
        self.runtime.memcpyAsync(target, source, size, self.runtime.memcpyDefault, self.stream.ptr)

    def copy_rows(
        self, target: int, target_pitch: int, source: int, source_pitch: int, size: int, rows: int
    ) -> None:
        """Copy `rows` pieces of `size` bytes, so many bytes apart at each end, in the stream's order."""
        kind = self.runtime.memcpyDefault
        self.runtime.memcpy2DAsync(
            target, target_pitch, source, source_pitch, size, rows, kind, self.stream.ptr
        )

    def build(self, wanted: Iterable[Variant]) -> None:
        """Compile and load kernels that are not there yet."""
        missing = [v for v in wanted if v not in self._modules]
        if missing:
            with told():
                for variant, code in self._loader.load(missing, self._on_progress).items():
                    module = self._modules[variant] = self._driver.load(code)
                    for name, type_id in variant.defines:
                        if name.startswith("TYPE") and type_id in variants.BOOKS:
                            symbol = name.replace("TYPE", "codebook")
                            module.fill(symbol, codebook(TYPES[type_id]).tobytes())

    def kernel(self, variant: Variant, name: str, shared: int = 0, most: int = 0) -> Kernel:
        """A kernel, built if need be; `shared` bytes of shared memory, where it takes up to `most`."""
        key = (variant, name, shared)
        if key not in self._kernels:
            self.build([variant])
            with told():
                self._kernels[key] = self._modules[variant].kernel(name, shared, most)
        return self._kernels[key]

    def launch(
        self,
        kernel: Kernel,
        grid: tuple[int, int, int],
        threads: int,
        args: tuple[Any, ...],
        dependent: bool = False,
    ) -> None:
        """Put a kernel on the stream, unless its name is not `wanted`.

        While there is a `timeline`, it runs alone and with an event behind it.
        """
        if self.wanted is not None and not self.wanted(kernel.name):
            return
        if self.timeline is None:
            kernel.launch(self.stream.ptr, grid, threads, args, dependent)
            return
        kernel.launch(self.stream.ptr, grid, threads, args)
        self.timeline.append((kernel.name, self.event()))

    def event(self) -> Any:
        """An event with a time, on the stream behind all that is there."""
        event = self._cuda.Event()
        event.record(self.stream)
        return event

    def mark(self) -> Any:
        """An event without a time, to be recorded again and again."""
        return self._cuda.Event(disable_timing=True)

    def seconds(self, first: Any, last: Any) -> float:
        """Between two events that have happened."""
        return float(self._cuda.get_elapsed_time(first, last)) / 1e3

    def room_of(self, tensor: Tensor) -> int:
        """Bytes that a tensor takes among others, which CUDA would round up to 2 MiB where it lies alone."""
        size = 4 * math.prod(tensor.shape)
        if not is_small(tensor.shape):
            size = _matrix_bytes(tensor.shape, self._stored(tensor.type.id))
        return -(-size // 256) * 256

    def _stored(self, source: int) -> int:
        """The format that matrices of a file's format `source` have here."""
        type_id = stored_as(source, self.arch)
        return 1 if not {type_id, source}.isdisjoint(self.unpacked) else type_id

    def upload(self, tensor: Tensor, place: Callable[[int, str], int]) -> Weight:
        """A tensor on the card, where `place(bytes, name)` says."""
        self.use()
        *heights, columns = tensor.shape
        rows = math.prod(heights)
        if is_small(tensor.shape):
            values = np.ascontiguousarray(tensor.dequantize(), np.float32)
            address = place(self.room_of(tensor), tensor.name)
            self._copy_in(address, values)
            return Weight(address, rows, columns, 0, values.nbytes)
        if columns % 8:
            raise UnsupportedModel(
                f"{tensor.name} has {columns} columns, expected a multiple of 8. Load it on the processor."
            )
        source, data = tensor.type.id, tensor.data
        type_id = self._stored(source)
        if source not in variants.sources(type_id):
            source, data = 1, tensor.dequantize().astype(np.float16).view(np.uint8)
        of_it = variants.of_experts if len(heights) == 2 else variants.of_type
        if variants.chunk(type_id) or len(heights) == 1:
            self.build(of_it(type_id, self.arch))
        weight = Weight(0, rows, columns, type_id, 0)
        packed, size = weight.packed, _matrix_bytes(tensor.shape, type_id)
        address = place(self.room_of(tensor), tensor.name)
        rows_of_data = data.reshape(rows, -1)
        with told():
            if packed:
                self._upload_packed(rows_of_data, columns, type_id, source, address)
            else:
                self._upload_plain(rows_of_data, address)
        return replace(weight, address=address, size=size)

    def _pieces(
        self, data: NDArray[np.uint8], step: int
    ) -> Iterator[tuple[int, NDArray[np.uint8], int]]:
        """Send rows to the card through two pinned buffers in turn: first row, rows, their address there."""
        if not self._staging:
            for _ in range(2):
                array, owner = self.pinned(STAGING)
                there = self.allocate(STAGING, {"staging": 2 * STAGING})
                self._staging.append((array, owner, there, self._cuda.Event(disable_timing=True)))
        for i, first in enumerate(range(0, len(data), step)):
            array, _, there, event = self._staging[i % 2]
            piece = data[first : first + step]
            event.synchronize()
            array[: piece.nbytes].reshape(piece.shape)[...] = piece
            self.copy(there, array.ctypes.data, piece.nbytes)
            yield first, piece, there
            event.record(self.stream)

    def _upload_plain(self, data: NDArray[np.uint8], address: int) -> None:
        size = data.shape[1]
        for first, piece, there in self._pieces(data, max(1, STAGING // size)):
            self.copy(address + first * size, there, piece.nbytes)
        self.stream.synchronize()

    def _upload_packed(
        self, data: NDArray[np.uint8], columns: int, type_id: int, source: int, address: int
    ) -> None:
        size, superblocks = data.shape[1], -(-columns // SUPERBLOCK)
        step = STAGING // size // TILE * TILE
        if not step:
            raise UnsupportedModel(f"Rows of {size:,} bytes; expected at most {STAGING // TILE:,}.")
        repack = self.kernel(variants.repack(type_id, source), "repack")
        chunk = variants.chunk(type_id)
        for first, piece, there in self._pieces(data, step):
            args = (
                ctypes.c_void_p(there),
                ctypes.c_void_p(address + first // TILE * superblocks * chunk),
                ctypes.c_int(len(piece)),
                ctypes.c_int(columns),
                ctypes.c_longlong(size),
            )
            repack.launch(self.stream.ptr, (superblocks, -(-len(piece) // TILE), 1), 128, args)
        self.stream.synchronize()

    def drop_staging(self) -> None:
        """Give the buffers of `upload` back."""
        for _, _, there, _ in self._staging:
            self.runtime.free(there)
            self._memory.remove(there)
        self._staging.clear()

    def capture(self) -> AbstractContextManager[Any]:
        """What is put on the stream inside becomes a graph, the `graph` of the yielded object."""
        return _capture(self.stream)

    def close(self) -> None:
        """Free all memory and code. After a fault of the card nothing can be freed, and nothing is raised."""
        self.outgoing.close()
        self._staging.clear()
        self._kernels.clear()
        with suppress(RuntimeError, DriverError):
            self.use()
            self.stream.synchronize()
            for address in self._memory:
                self.runtime.free(address)
            for module in self._modules.values():
                module.unload()
        self._memory.clear()
        self._modules.clear()


class _Captured:
    graph: Any = None


@contextmanager
def _capture(stream: Any) -> Iterator[_Captured]:
    captured = _Captured()
    with stream:
        stream.begin_capture()
        try:
            yield captured
        finally:
            captured.graph = stream.end_capture()
