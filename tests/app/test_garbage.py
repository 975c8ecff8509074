"""Collection of cycles stays on the GUI thread."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import ClassVar

import pytest
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.garbage import Collector


@pytest.fixture
def collector(qtbot: QtBot) -> Iterator[Collector]:
    made = Collector()
    made.keep()
    yield made
    made.end()
    gc.disable()


class Cycle:
    """Garbage that only a collection finds; notes the thread that finds it."""

    where: ClassVar[list[threading.Thread]] = []

    def __init__(self) -> None:
        self.me = self
        self.widget = QWidget()

    def __del__(self) -> None:
        self.where.append(threading.current_thread())


def allocate() -> None:
    """Enough new objects for Python to collect by itself, many times over."""
    kept = [[] for _ in range(200_000)]
    assert kept


def test_another_thread_that_allocates_collects_nothing(qtbot: QtBot, collector: Collector) -> None:
    Cycle.where.clear()
    Cycle()
    thread = threading.Thread(target=allocate)
    thread.start()
    thread.join()
    assert Cycle.where == []
    due = [[] for _ in range(20_000)]
    qtbot.waitUntil(lambda: bool(Cycle.where), timeout=5000)
    assert Cycle.where == [threading.main_thread()] and due


def test_the_work_is_given_back(qtbot: QtBot) -> None:
    made = Collector()
    assert not gc.isenabled()
    made.keep()
    made.end()
    assert gc.isenabled() and gc.get_freeze_count() == 0
    gc.disable()
