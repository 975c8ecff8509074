"""Tests that need an NVIDIA card: without one, none of this folder is collected.

Several processes may share a card, but not with tests that take all of its memory, look at how much is free
or time it. Those are marked `alone`, and run after the others:

    python -m pytest tests/gpu -n 8 -m "not alone"; python -m pytest tests/gpu -m alone

Most of a first run is compiling kernels; with `--kernels FOLDER` the next one finds them.

A test that takes longer than `LIMIT_S` ends its process, with a traceback of every thread and, where there
are several processes, its name.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import demo
from engine.config import Precision
from engine.engine import Engine


def _has_card() -> bool:
    try:
        import cupy

        return bool(cupy.cuda.runtime.getDeviceCount() > 0)
    except Exception:  # no CuPy, no driver, no card: all the same here
        return False


LIMIT_S = 90.0
_STDERR = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where real models lie, which a few tests load, and what kernels were compiled into before."""
    parser.addoption("--models", help="a folder of models of real shapes")
    parser.addoption("--kernels", type=Path, help="a folder of compiled kernels, kept between runs")


def pytest_configure(config: pytest.Config) -> None:
    """Name the mark, and keep the standard error that a test's captured one hides."""
    config.addinivalue_line("markers", "alone: needs a card that nobody else uses")
    with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        config.stash[_STDERR] = os.dup(2)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Who asks for the whole card runs alone."""
    for item in items:
        if "whole_card" in getattr(item, "fixturenames", ()):
            item.add_marker("alone")


@pytest.fixture(autouse=True)
def limited(request: pytest.FixtureRequest) -> Iterator[None]:
    """End the process of a test that hangs."""
    stderr = request.config.stash[_STDERR]
    faulthandler.dump_traceback_later(LIMIT_S, exit=True, file=stderr)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def whole_card() -> Any:
    """CUDA's calls, for a test that takes or looks at memory of the card; it runs alone."""
    import cupy

    return cupy.cuda.runtime


collect_ignore_glob = [] if _has_card() else ["test_*.py"]


@pytest.fixture(scope="session")
def kernel_cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where kernels are compiled into: a folder that the processes of one run share."""
    if kept := request.config.getoption("--kernels"):
        return Path(kept)
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "kernels"


@pytest.fixture(scope="session")
def demo_model(request: pytest.FixtureRequest, installed_demo: Path | None) -> Path:
    """The demo model's file, installed or among `--models`."""
    folder = request.config.getoption("--models")
    found = installed_demo or (demo.path(Path(folder)) if folder else None)
    if found is None:
        pytest.skip(f"{demo.NAME} is neither installed nor among --models")
    return found


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
