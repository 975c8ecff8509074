"""Pages and states as bytes: what was read from a model and written elsewhere goes on as if it had stayed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest

from engine.cache import memory as module
from engine.cache.memory import DeviceMemory
from engine.config import Precision
from engine.ops.base import Ops
from engine.ops.cpu import CpuOps
from engine.ops.numpy_ops import NumpyOps
from tests.engine.oracle import ARCHITECTURES, expected, record, step

MAKERS: list[Callable[[], Ops]] = [
    NumpyOps,
    lambda: CpuOps(2, Precision.EXACT),
    lambda: CpuOps(2, Precision.FAST),
]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_a_prefix_goes_on_at_another_place(architecture: str, make: Callable[[], Ops]) -> None:
    ops = make()
    record(ops, architecture)
    text = expected(architecture)["ids_200"].tolist()
    ops.run(step((text[:100], 0, [0, 1])))
    kept = DeviceMemory(ops)
    pages = [kept.read_page(page) for page in (0, 1)]
    recurrent = kept.state_bytes > 0
    assert recurrent == architecture.startswith("qwen35")
    state = kept.read_state(0) if recurrent else None
    truth = ops.run(step((text[100:110], 100, [0, 1]))).copy()
    for page, target in zip(pages, (5, 6), strict=True):
        assert page is not None and page.size == kept.page_bytes
        kept.write_page(target, page)
    if state is not None:
        kept.write_state(5, state)
    np.testing.assert_array_equal(ops.run(step((text[100:110], 100, [5, 6]))), truth)
    for page, target in zip(pages, (5, 6), strict=True):
        assert page is not None
        kept.write_page(target, page)
        kept.copy_page(target, target + 4)
    if state is not None:
        kept.write_state(5, state)
        kept.copy_state(5, 9)
    np.testing.assert_array_equal(ops.run(step((text[100:110], 100, [9, 10]))), truth)
    ops.close()


def fake(size: int) -> SimpleNamespace:
    """Operations whose pages are rows of numbers."""
    pages = np.arange(4 * size, dtype=np.uint8).reshape(4, size)

    def read(page: int, to: np.ndarray) -> None:
        to[:] = pages[page]

    def write(page: int, data: np.ndarray) -> None:
        pages[page] = data

    return SimpleNamespace(
        keeps=lambda: False,
        page_bytes=lambda: size, state_bytes=lambda: 0, read_page=read, write_page=write,
        copy_page=lambda source, target: write(target, pages[source]), pages=pages, settle=lambda: None,
    )  # fmt: skip


def test_pages_of_a_draft_go_with_the_models() -> None:
    ops, draft = fake(6), fake(2)
    kept = DeviceMemory(ops, draft)
    blob = kept.read_page(1)
    assert blob is not None and blob.tolist() == [6, 7, 8, 9, 10, 11, 2, 3]
    kept.write_page(3, blob)
    kept.copy_page(3, 0)
    assert ops.pages[0].tolist() == [6, 7, 8, 9, 10, 11] and draft.pages[0].tolist() == [2, 3]


def test_short_ram_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*args: object) -> None:
        raise MemoryError

    monkeypatch.setattr(module.np, "empty", none)
    assert DeviceMemory(fake(6)).read_page(0) is None
