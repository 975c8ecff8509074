"""Collection of cycles stays on the GUI thread."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import ClassVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app import garbage
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
    qtbot.waitUntil(lambda: bool(Cycle.where))
    assert Cycle.where == [threading.main_thread()] and due


def test_the_work_is_given_back(qtbot: QtBot) -> None:
    made = Collector()
    assert not gc.isenabled()
    made.keep()
    made.end()
    assert gc.isenabled() and gc.get_freeze_count() == 0
    gc.disable()


def test_what_lived_long_is_left_while_the_user_works(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, asked = Collector(), []
    count = [0, 0, 0]
    monkeypatch.setattr(garbage.gc, "get_count", lambda: tuple(count))
    monkeypatch.setattr(garbage.gc, "collect", lambda generation=2: asked.append(generation))
    active = Qt.ApplicationState.ApplicationActive
    monkeypatch.setattr(garbage.QGuiApplication, "applicationState", lambda: active)
    for count[:] in ([100, 9, 999], [300, 1, 999], [300, 9, 999], [300, 9, 9999]):
        made.check()
    assert asked == [0, 1, 2]
    active = Qt.ApplicationState.ApplicationInactive
    count[:] = 300, 9, 999
    made.check()
    assert asked == [0, 1, 2, 2]
    made.end()
    gc.disable()
