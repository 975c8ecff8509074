"""Tests that need an NVIDIA card: without one, none of this folder is collected."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.config import Precision
from engine.engine import Engine


def _has_card() -> bool:
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # no CuPy, no driver, no card: all the same here
        return False


collect_ignore_glob = [] if _has_card() else ["test_*.py"]


@pytest.fixture(scope="session")
def kernel_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def make_ops(kernel_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`CudaOps` whose memory is full of NaN before anything is written to it."""
    from engine.ops.cuda import CudaOps
    from engine.ops.cuda_device import Card

    allocate = Card.allocate

    def poisoned(card: Any, size: int, addends: dict[str, int]) -> int:
        address = allocate(card, size, addends)
        card.runtime.memset(address, 0xFF, max(size, 256))
        card.runtime.deviceSynchronize()  # its stream does not wait for the one of this
        return address

    monkeypatch.setattr(Card, "allocate", poisoned)
    made = []

    def make(precision: Precision = Precision.FAST) -> CudaOps:
        made.append(CudaOps("cuda:0", precision, kernel_cache))
        return made[-1]

    yield make
    for ops in made:
        ops.close()


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    engine.start()
    yield engine
    assert engine.close()
