"""Copies that come later: in their order, all of them once `settle` returns, from a card that works late."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.ops import cuda_outgoing
from engine.ops.cuda_outgoing import Outgoing


class LateCard:
    """Does what is on its stream when somebody waits for an event behind it."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.stream = SimpleNamespace(synchronize=self.work)
        self.fault: Exception | None = None
        self.places: dict[int, np.ndarray] = {}
        self.memory = np.random.default_rng(1).integers(0, 256, 1 << 16, np.uint8)

    def pinned(self, size: int) -> tuple[np.ndarray, None]:
        array = np.zeros(size, np.uint8)
        self.places[array.ctypes.data] = array
        return array, None

    def mark(self) -> Any:
        return SimpleNamespace(record=lambda stream: None, synchronize=self.work)

    def copy_rows(
        self, target: int, target_pitch: int, source: int, pitch: int, size: int, rows: int
    ) -> None:
        memory = self.memory[source:]  # what is there now, as a stream would see it
        data = np.concatenate([memory[i * pitch : i * pitch + size] for i in range(rows)])

        def copy() -> None:
            self.places[target][: len(data)] = data

        self.waiting.append(copy)

    def work(self) -> None:
        if self.fault is not None:
            raise self.fault
        while self.waiting:
            self.waiting.pop(0)()


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Iterator[LateCard]:
    monkeypatch.setattr(cuda_outgoing, "SIZE", 1 << 10)
    card = LateCard()
    yield card


@pytest.fixture
def outgoing(card: LateCard) -> Iterator[Outgoing]:
    made = Outgoing(card)  # type: ignore[arg-type]
    yield made
    made.close()


@pytest.mark.parametrize(("size", "pitch", "rows"), [(300, 700, 40), (1024, 1024, 9), (1, 5, 3)])
def test_all_pieces_are_there_once_settled(
    card: LateCard, outgoing: Outgoing, size: int, pitch: int, rows: int
) -> None:
    to = np.zeros((2, size * rows), np.uint8)
    for i in range(2):
        outgoing.send(to[i], 100 * i, pitch, size)
    outgoing.settle()
    for i in range(2):
        at = 100 * i + pitch * np.arange(rows)[:, None] + np.arange(size)
        np.testing.assert_array_equal(to[i], card.memory[at].ravel())


def test_a_piece_larger_than_a_buffer_comes_at_once(card: LateCard, outgoing: Outgoing) -> None:
    to = np.zeros(6000, np.uint8)
    card.places[to.ctypes.data] = to
    outgoing.send(to, 7, 3000, 3000)
    np.testing.assert_array_equal(to, card.memory[7:6007])


def test_a_fault_of_the_card_is_told_once(card: LateCard, outgoing: Outgoing) -> None:
    card.fault = RuntimeError("the card fell off the bus")
    to = np.zeros(4000, np.uint8)
    outgoing.send(to, 0, 100, 100)
    with pytest.raises(RuntimeError, match="off the bus"):
        outgoing.settle()
    card.fault = None
    outgoing.send(to, 0, 100, 100)
    outgoing.settle()
    np.testing.assert_array_equal(to, card.memory[:4000])
