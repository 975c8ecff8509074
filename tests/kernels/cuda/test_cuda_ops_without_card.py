"""The Python side of the CUDA operations against a card that only takes notes."""

from __future__ import annotations

import ctypes
import re
import sys
import threading
from collections import Counter
from dataclasses import replace
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.config import Precision
from engine.errors import DeviceFault, KernelError, OutOfMemory, UnsupportedModel
from engine.gguf import Tensor
from engine.ops import cuda_device
from engine.ops.base import DeltaShape, Limits, Rope, Shape, StepInput
from engine.ops.cuda import CudaOps
from engine.ops.cuda_probe import profile
from engine.ops.cuda_trust import Distrust
from engine.quants import TYPES
from kernels.loader import SOURCES
from tests.reference.blocks import random_tensor

LIMITS = Limits(rows=128, sequences=2, pages=8, page_tokens=64, pages_per_sequence=4)
N_LAYERS = 3


class Notes:
    """What was launched: kernel, grid, threads, number of arguments."""

    def __init__(self) -> None:
        self.launches: list[tuple[str, tuple[int, int, int], int, int]] = []
        self.free_bytes = 1 << 40
        self.capability = 90
        self.memory: dict[int, Any] = {}
        self.capturing = False

    def allow(self) -> None:
        """Called for what a card refuses, or does for a graph once and for all, during a capture."""
        assert not self.capturing, "nothing may be allocated or loaded during a capture"


class Runtime:
    """The calls of `cupy.cuda.runtime` that are made; the card's memory is ours."""

    memcpyHostToDevice, memcpyDefault = 1, 4  # noqa: N815

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def malloc(self, size: int) -> int:
        self._notes.allow()
        if size > self._notes.free_bytes:
            raise RuntimeError("cudaErrorMemoryAllocation: out of memory")
        block = (ctypes.c_char * (size + 256))()
        address = -(-ctypes.addressof(block) // 256) * 256
        self._notes.memory[address] = block
        return address

    def free(self, address: int) -> None:
        del self._notes.memory[address]

    def memcpy(self, target: int, source: int, size: int, kind: int) -> None:
        self._notes.allow()
        ctypes.memmove(target, source, size)

    def memcpyAsync(self, target: int, source: int, size: int, kind: int, stream: int) -> None:
        ctypes.memmove(target, source, size)

    def memcpy2DAsync(
        self, target: int, to_next: int, source: int, next_one: int, size: int, rows: int, kind: int,
        stream: int,
    ) -> None:  # fmt: skip
        for row in range(rows):
            ctypes.memmove(target + row * to_next, source + row * next_one, size)

    def memset(self, target: int, value: int, size: int) -> None:
        self.memsetAsync(target, value, size, 0)

    def memsetAsync(self, target: int, value: int, size: int, stream: int) -> None:
        ctypes.memset(target, value, size)

    def setDevice(self, index: int) -> None:
        pass

    def getDevice(self) -> int:
        return 0

    def getDeviceProperties(self, index: int) -> dict[str, Any]:
        return {"multiProcessorCount": 20, "name": b"Test card"}

    def driverGetVersion(self) -> int:
        return 12090

    def memGetInfo(self) -> tuple[int, int]:
        return self._notes.free_bytes, 1 << 40


class Stream:
    ptr = 0

    def __init__(self, notes: Notes, **kwargs: Any) -> None:
        self._notes = notes

    def synchronize(self) -> None:
        self._notes.allow()

    record = query = synchronize

    def begin_capture(self) -> None:
        self._notes.capturing = True

    def end_capture(self) -> Any:
        self._notes.capturing = False
        return SimpleNamespace(launch=lambda stream: None)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *args: object) -> None:
        pass


class Event(Stream):
    def record(self, stream: Any) -> None:
        pass


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Notes:
    notes = Notes()

    def pinned(size: int) -> bytearray:
        notes.allow()
        return bytearray(size)

    cupy = ModuleType("cupy")
    cupy.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        runtime=Runtime(notes),
        Device=lambda index: SimpleNamespace(compute_capability=str(notes.capability)),
        Stream=partial(Stream, notes),
        Event=partial(Event, notes),
        alloc_pinned_memory=pinned,
        get_elapsed_time=lambda first, last: 20.0,
    )

    class Kernel:
        def __init__(self, name: str, shared: int) -> None:
            self.name = name

        def launch(
            self, stream: int, grid: Any, threads: int, args: Any, dependent: bool = False
        ) -> None:
            assert all(n > 0 for n in grid) and max(grid[1:]) < 65536
            notes.launches.append((self.name, grid, threads, len(args)))

    class Driver:
        def load(self, code: bytes) -> Any:
            notes.allow()
            return SimpleNamespace(
                kernel=lambda name, shared=0, most=0: Kernel(name, shared),
                fill=lambda name, data: None, unload=lambda: None,
            )  # fmt: skip

    class Loader:
        target = 90

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            pass

        def load(self, variants: Any, on_progress: Any) -> dict[Any, bytes]:
            return dict.fromkeys(variants, b"")

    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(cuda_device, "Driver", Driver)
    monkeypatch.setattr(cuda_device, "Loader", Loader)
    return notes


def vector(n: int) -> Tensor:
    return Tensor("norm", (n,), TYPES[0], np.ones(n, np.float32).view(np.uint8))


def record(ops: CudaOps, formats: tuple[str, str, str]) -> None:
    """A model of `N_LAYERS` layers whose q and k, v, and feed-forward matrices have these formats."""
    rng = np.random.default_rng(1)

    def matrix(name: str, rows: int, columns: int) -> Any:
        return ops.upload(random_tensor(rng, name, rows, columns))

    qk, v, ff = formats
    q, k, values = matrix(qk, 512, 512), matrix(qk, 128, 512), matrix(v, 128, 512)
    o, gate, up, down = (
        matrix(ff, 512, 512),
        matrix(ff, 1024, 512),
        matrix(ff, 1024, 512),
        matrix(ff, 512, 1024),
    )
    table, norm = matrix("Q8_0", 99, 512), ops.upload(vector(512))
    ops.allocate(Shape(N_LAYERS, 512, 99, 8, 2, 64), LIMITS)
    with ops.recording():
        x = ops.embed(table)
        h = ops.norm(x, norm, 1e-5)
        for i in range(N_LAYERS):
            a = ops.attend(ops.linear(h, q, k, values), i, Rope(64, 1e4, True))
            h = ops.add_norm(x, ops.linear(a, o), norm, 1e-5)
            h = ops.add_norm(x, ops.linear(ops.swiglu(ops.linear(h, gate, up)), down), norm, 1e-5)
            ops.end_layer(i, x)
        ops.head(h, table)


def step(m: int, wanted: int) -> StepInput:
    index = np.arange(m, dtype=np.int32)
    return StepInput(
        index % 99, index, np.zeros(m, np.int32), np.zeros((1, 4), np.int32), index[:wanted]
    )


def parameters() -> dict[str, int]:
    """Kernels and how many parameters they have, from the sources."""
    pattern = re.compile(r"__global__ void(?: __launch_bounds__\([^)]*\))?\s+(\w+)\(([^)]*)\) \{")
    return {
        name: inside.count(",") + 1
        for source in SOURCES.glob("*.cu")
        for name, inside in pattern.findall(source.read_text(encoding="utf-8"))
    }


@pytest.mark.parametrize("precision", (Precision.FAST, Precision.EXACT))
@pytest.mark.parametrize(
    "formats", (("Q4_K", "Q4_K", "Q4_K"), ("Q4_K", "Q6_K", "Q5_0"), ("F16", "F16", "F16"))
)
def test_launches_match_the_kernels(
    notes: Notes, formats: tuple[str, str, str], precision: Precision
) -> None:
    ops = CudaOps(precision=precision)
    record(ops, formats)
    expected = parameters()
    for m, wanted in ((1, 1), (7, 2), (32, 32), (33, 1), (100, 40), (64, 0)):
        notes.launches.clear()
        logits = ops.run(step(m, wanted))
        assert logits.shape == (wanted, 99)
        for name, _, threads, n in notes.launches:
            assert n == expected[name], name
            assert threads <= 256
        assert (
            sum(name == "matmul" or name == "matmul_float" for name, *_ in notes.launches)
            >= 4 * N_LAYERS
        )
    assert ops.memory()["kv"] == 2 * N_LAYERS * 8 * 2 * 64 * 64 * 2
    rng = np.random.default_rng(0)
    page, back = (np.zeros(ops.page_bytes(), np.uint8) for _ in range(2))
    page[:] = rng.integers(0, 256, page.size)
    ops.write_page(1, page)
    ops.copy_page(1, 2)
    ops.write_page(1, back)
    ops.read_page(2, back)
    ops.settle()
    assert (back == page).all() and page.size == ops.memory()["kv"] // 8
    ops.close()
    assert not notes.memory


def test_a_profile_leaves_each_kernel_out_once(notes: Notes) -> None:
    ops = CudaOps()
    record(ops, ("Q4_K", "Q6_K", "Q5_0"))
    ops.run(step(7, 7))
    attention = {grid for name, grid, *_ in notes.launches if name == "attention"}
    notes.launches.clear()
    ops.graph(ops.short_pass(8, 8))
    whole = Counter(name for name, *_ in notes.launches)
    notes.launches.clear()
    found = profile(ops, step(7, 7))
    assert {t.name: t.launches for t in found} == dict(whole)
    assert {grid for name, grid, *_ in notes.launches if name == "attention"} == attention
    launched = Counter(name for name, *_ in notes.launches)
    assert launched == {name: n * len(whole) for name, n in whole.items()}  # and once with all
    assert all(t.seconds == 0 for t in found)
    assert {t.name for t in profile(ops, step(33, 1))} >= {"matmul", "flash", "add_norm"}
    ops.close()


def test_formats_side_by_side_are_one_launch(notes: Notes) -> None:
    def products(distrust: Distrust) -> int:
        ops = CudaOps(distrust=distrust)
        record(ops, ("Q4_K", "Q6_K", "Q5_0"))
        notes.launches.clear()
        ops.run(step(1, 1))
        ops.close()
        return sum(name == "matmul" for name, *_ in notes.launches)

    assert products(Distrust()) == 4 * N_LAYERS + 1
    assert products(Distrust(apart=True)) == 5 * N_LAYERS + 1


def test_states_go_to_the_host_and_come_back(notes: Notes) -> None:
    ops = CudaOps()
    delta = DeltaShape(n_layers=2, n_k_heads=2, n_v_heads=4, head_dim=128, conv_kernel=4)
    ops.allocate(Shape(3, 512, 99, 8, 2, 64, delta), replace(LIMITS, slots=3))
    assert ops.state_bytes() == 2 * 4 * (4 * 128 * 128 + 3 * delta.qkv)
    state, back = (np.zeros(ops.state_bytes(), np.uint8) for _ in range(2))
    state[:] = np.random.default_rng(0).integers(0, 256, state.size)
    for slot in range(3):
        ops.write_state(slot, back)
    ops.write_state(1, state)
    ops.copy_state(1, 2)
    ops.write_state(1, back)
    ops.read_state(2, back)
    ops.settle()
    assert (back == state).all()
    ops.read_state(0, back)
    ops.settle()
    assert not back.any()
    ops.close()


@pytest.mark.parametrize("capability", (75, 90, 120))
@pytest.mark.parametrize("taps", (4, 5))
def test_recurrent_layers_are_one_kernel_for_a_row_and_chunks_for_many(
    notes: Notes, capability: int, taps: int
) -> None:
    notes.capability = capability
    ops, rng = CudaOps(), np.random.default_rng(1)
    delta = DeltaShape(n_layers=1, n_k_heads=2, n_v_heads=4, head_dim=128, conv_kernel=taps)

    def floats(*shape: int) -> Any:
        values = rng.standard_normal(shape).astype(np.float32)
        return ops.upload(Tensor("f", shape, TYPES[0], values.view(np.uint8)))

    weights = [floats(delta.qkv, taps), *(floats(n) for n in (4, 4, 128))]
    table, w, back = floats(99, 256), floats(delta.qkv + 512 + 8, 256), floats(99, 512)
    ops.allocate(Shape(2, 256, 99, 8, 2, 64, delta), replace(LIMITS, slots=1, tried=8))
    with ops.recording():
        o = ops.delta(ops.linear(ops.embed(table), w), 0, *weights, 1e-6)
        ops.head(o, back)
    in_chunks = ["convolve_rows", "prepare", "chunks", "recur", "gate_rows"]
    kernels = {
        1: ["row"],
        2: ["convolve", "recur"],
        8: ["convolve", "recur", "gate"],
        32: ["convolve_four", "recur", "gate_four"],
        33: in_chunks,
        128: in_chunks,
    }
    if taps > 4:
        kernels[1], kernels[33] = ["convolve", "recur"], ["convolve", "recur", "gate"]
        kernels[33][2] = "gate_rows"
        kernels[32][0] = "convolve"
        kernels[128] = kernels[33]
    expected = parameters()
    for m, names in kernels.items():
        notes.launches.clear()
        given = step(m, 1)
        ops.run(replace(given, slots=np.zeros(1, np.int32)))
        for name, _, _, n in notes.launches:
            assert n == expected[name], name
        found = [name for name, *_ in notes.launches]
        first = found.index(names[0])
        assert found[first : first + len(names)] == names
    ops.close()


def test_the_last_sequence_moves_on_however_few_rows_are_run_with_it(notes: Notes) -> None:
    ops, rng = CudaOps(), np.random.default_rng(1)
    delta = DeltaShape(n_layers=1, n_k_heads=2, n_v_heads=4, head_dim=128, conv_kernel=4)

    def floats(*shape: int) -> Any:
        values = rng.standard_normal(shape).astype(np.float32)
        return ops.upload(Tensor("f", shape, TYPES[0], values.view(np.uint8)))

    weights = [floats(delta.qkv, 4), *(floats(n) for n in (4, 4, 128))]
    table, w, back = floats(99, 256), floats(delta.qkv + 512 + 8, 256), floats(99, 512)
    limits = replace(LIMITS, sequences=4, slots=4, tried=63)
    ops.allocate(Shape(2, 256, 99, 8, 2, 64, delta), limits)
    with ops.recording():
        ops.head(ops.delta(ops.linear(ops.embed(table), w), 0, *weights, 1e-6), back)
    counts = [21, 21, 21, 2]  # three drafts, and the last two tokens of a prompt
    index = np.concatenate([np.arange(n, dtype=np.int32) for n in counts])
    sequence = np.repeat(np.arange(4, dtype=np.int32), counts)
    ops.run(
        StepInput(
            index, index, sequence, np.zeros((4, 4), np.int32), np.array([64], np.int32),
            np.arange(4, dtype=np.int32), np.zeros(0, np.int32), np.array([1, 1, 1, 0], np.int32),
        )
    )  # fmt: skip
    grids = [grid for name, grid, *_ in notes.launches if name == "recur"]
    assert len(grids) == 2
    assert min(sequences for _, sequences, _ in grids) >= 4
    ops.close()


def test_a_layer_of_one_format_is_at_most_ten_nodes(notes: Notes) -> None:
    ops = CudaOps()
    record(ops, ("Q4_K", "Q4_K", "Q4_K"))
    notes.launches.clear()
    ops.run(step(1, 1))
    around = 7  # embedding, first norm, gather, output, collect, and two for the likeliest token
    assert (len(notes.launches) - around) / N_LAYERS <= 10
    notes.launches.clear()
    ops.run(step(1, 1))
    assert notes.launches == []  # the graph is replayed


def test_memory_that_is_not_there_is_refused_with_its_addends(notes: Notes) -> None:
    ops = CudaOps()
    notes.free_bytes = 1 << 20
    with pytest.raises(OutOfMemory, match=r"Test card has .* GiB of memory free.*weights so far"):
        ops.upload(random_tensor(np.random.default_rng(), "Q8_0", 2048, 2048))
    with pytest.raises(OutOfMemory, match="kv"):
        ops.allocate(Shape(8, 512, 99, 8, 8, 128), LIMITS)
    ops.close()


def test_what_the_kernels_cannot_do_is_refused(notes: Notes) -> None:
    ops = CudaOps()
    with pytest.raises(UnsupportedModel, match="80"):
        ops.allocate(Shape(1, 512, 99, 8, 8, 80), LIMITS)
    with pytest.raises(UnsupportedModel, match="multiple of 8"):
        ops.upload(random_tensor(np.random.default_rng(), "F16", 16, 20))


def test_old_cards_and_a_missing_part_are_told(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes.capability = 61
    with pytest.raises(KernelError, match=r"6\.1.*7\.5"):
        CudaOps()
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(KernelError, match="CuPy"):
        CudaOps()


def test_errors_of_the_card_are_told(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Runtime, index: int) -> None:
        raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    monkeypatch.setattr(Runtime, "setDevice", refuse)
    with pytest.raises(KernelError, match="newer driver"):
        CudaOps()


@pytest.mark.parametrize(
    ("said", "kind", "word"),
    (
        (
            "cudaErrorIllegalAddress: an illegal memory access was encountered",
            DeviceFault,
            "restart",
        ),
        ("CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure", DeviceFault, "processor"),
        ("cudaErrorMemoryAllocation: out of memory", OutOfMemory, "smaller context"),
        ("CUDA_ERROR_OUT_OF_MEMORY: out of memory", OutOfMemory, "smaller context"),
        ("cudaErrorNoDevice: no CUDA-capable device is detected", KernelError, "another device"),
        ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", KernelError, "newer driver"),
        ("cudaErrorInvalidValue: invalid argument", KernelError, "Load the model again"),
    ),
)
def test_every_error_of_cuda_has_its_cure(said: str, kind: type[Exception], word: str) -> None:
    with pytest.raises(kind, match=word) as caught, cuda_device.told():
        raise RuntimeError(said)
    assert type(caught.value) is kind and said.split(":")[0] in str(caught.value)


def test_a_thread_sets_the_card_once(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(Runtime, "setDevice", lambda self, index: calls.append(index))
    card = CudaOps().card
    for _ in range(3):
        card.use()
    assert len(calls) == 1
    thread = threading.Thread(target=card.use)
    thread.start()
    thread.join()
    assert len(calls) == 2
    monkeypatch.setattr(Runtime, "getDevice", lambda self: 1)
    card.use()
    assert len(calls) == 3


def test_a_kernel_that_is_wrong_on_the_card_is_not_used(notes: Notes) -> None:
    formats = ("Q4_K", "Q6_K", "Q5_0")
    distrust = Distrust(int8=frozenset({12}), unpacked=frozenset({6}))
    ops = CudaOps(distrust=distrust)
    record(ops, formats)
    ops.run(step(1, 1))
    assert any(name.startswith("matmul_float") for name, *_ in notes.launches)
    told = " ".join(ops.notes())
    assert "Q4_K with 8-bit" in told and "Q5_0" in told and "Q6_K" not in told
    other = CudaOps(distrust=distrust)
    record(other, ("Q6_K", "Q6_K", "Q6_K"))
    assert other.notes() == ()
    with pytest.raises(KernelError, match="norm"):
        CudaOps(distrust=Distrust(broken=("norm",)))
