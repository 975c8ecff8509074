"""Long steps: few sizes, and graphs of those that come again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from engine.ops import cuda_long
from engine.ops.cuda import CudaOps
from engine.ops.cuda_library import WORKSPACE, Library
from tests.kernels.cuda.test_cuda_ops_without_card import (
    N_LAYERS,
    Notes,
    Stream,
    notes,
    record,
    step,
)

__all__ = ["notes"]


def test_sizes_that_come_again_are_graphs(notes: Notes, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(cuda_long, "LONG_GRAPHS", 1)
    ops = CudaOps()
    record(ops, ("Q4_K", "Q6_K", "Q5_0"))

    def launched(m: int) -> Counter[str]:
        notes.launches.clear()
        ops.run(step(m, 1))
        return Counter(name for name, *_ in notes.launches)

    first, captured, replayed = launched(70), launched(100), launched(128)
    assert first == captured and first["flash"] == N_LAYERS
    of_head = Counter(["gather", "matmul", "collect", "best_of", "likeliest"])
    assert replayed == of_head
    assert launched(40) == launched(64) == first and launched(33) == of_head
    assert launched(100) == first  # whose graph gave way to the other's
    monkeypatch.setattr(cuda_long, "MOST_REPLAYED", 96)
    assert launched(128) == launched(128) == first
    ops.close()


def test_steps_run_where_a_full_card_has_no_memory_for_a_graph(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops = CudaOps()
    record(ops, ("Q4_K", "Q6_K", "Q5_0"))

    def launched(m: int) -> list[str]:
        notes.launches.clear()
        ops.run(step(m, 1))
        return [name for name, *_ in notes.launches]

    captured = {m: launched(m) for m in (1, 20, 64)}
    assert launched(1) == []

    def full(stream: Stream) -> None:
        stream._notes.capturing = False
        raise RuntimeError("cudaErrorMemoryAllocation: out of memory")

    with monkeypatch.context() as patch:
        patch.setattr(Stream, "end_capture", full)
        ops.close()
        ops = CudaOps()
        record(ops, ("Q4_K", "Q6_K", "Q5_0"))
        for m in (1, 20, 64):
            first, second = launched(m), launched(m)
            # What a graph took down is launched behind the attempt, each time.
            assert (first, second)[m > 32][-len(captured[m]) :] == captured[m] and len(second) > 9
    assert len(launched(1)) == len(captured[1]) and launched(1) == []
    ops.close()


class FullCard:
    """cuBLAS that finds no memory for its kernels."""

    def __init__(self) -> None:
        self.products = 0

    def __getattr__(self, name: str) -> Any:
        return lambda *args: 0

    def cublasGemmEx(self, *args: Any) -> int:
        self.products += 1
        return 13


def test_products_are_fused_where_the_library_fails(
    notes: Notes, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lib = FullCard()
    monkeypatch.setattr(
        Library, "of", lambda card, allocate, _: Library(lib, card, allocate(WORKSPACE), None)
    )
    fused = CudaOps()
    with monkeypatch.context() as without:
        without.setattr(Library, "of", lambda *args: None)
        record(fused, ("Q4_K", "Q6_K", "Q5_0"))
    ops = CudaOps()
    record(ops, ("Q4_K", "Q6_K", "Q5_0"))

    def products(ops: CudaOps) -> int:
        notes.launches.clear()
        ops.run(step(70, 1))
        return sum(name == "matmul" for name, *_ in notes.launches)

    assert products(ops) == products(fused) > 0
    assert lib.products == 1 and "cuBLAS is not used any more" in caplog.text
    assert products(ops) > 0 and lib.products == 1
    ops.close()
    fused.close()
