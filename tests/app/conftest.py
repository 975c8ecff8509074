"""A window over a fake engine."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.controller import EngineController
from app.i18n import Language
from app.inspector import Inspector
from app.page import Page, PageSpec, Services
from app.settings import Settings
from app.theme import theme
from app.window import MainWindow
from tests.app.fake_engine import FakeEngine

PATIENCE_MS = 60_000

STUBS = (
    PageSpec("chat", "chat", "tests.app.stub_pages:InspectedPage"),
    PageSpec("models", "models", "tests.app.stub_pages:StubPage"),
    PageSpec("settings", "settings", "tests.app.stub_pages:StubPage", bottom=True),
    PageSpec("first_run", "chat", "tests.app.stub_pages:StubPage", under="chat"),
)


_Part = TypeVar("_Part", Page, Inspector)


def whole(part: _Part) -> _Part:
    """A page or pane with all that the window makes of it step by step."""
    for _ in part.build():
        pass
    return part


@pytest.fixture
def qtbot(qtbot: QtBot) -> QtBot:
    """Waits long for what comes in the end: the usual five seconds are little on a busy machine."""
    for name in ("waitUntil", "waitSignal", "waitSignals", "waitExposed", "waitActive"):
        setattr(qtbot, name, partial(getattr(qtbot, name), timeout=PATIENCE_MS))
    return qtbot


@pytest.fixture(scope="module", autouse=True)
def collection_by_hand() -> Iterator[None]:
    """As in the application: a widget in a cycle must not be taken apart on another thread."""
    gc.disable()
    yield
    gc.collect()
    gc.enable()


@pytest.fixture(autouse=True)
def collected(collection_by_hand: None) -> Iterator[None]:
    """Collect on the main thread after each test."""
    yield
    gc.collect(1)


@pytest.fixture(scope="session")
def language(qapp: QApplication) -> Language:
    """The language of the application under test."""
    return Language(qapp)


@pytest.fixture(autouse=True)
def usual_look(language: Language) -> None:
    """Every test begins with light colours, usual text size and English."""
    theme().apply("light", 100)
    language.apply("en")


@pytest.fixture
def fake() -> FakeEngine:
    """The engine behind `controller`."""
    return FakeEngine()


@pytest.fixture
def controller(qapp: QApplication, fake: FakeEngine) -> Iterator[EngineController]:
    """A controller that is shut down in the end."""
    made = EngineController(lambda: fake)
    yield made
    fake.deaf = False
    made.shutdown()


@pytest.fixture
def services(controller: EngineController, tmp_path: Path) -> Services:
    """Services with default settings."""
    return Services(controller, Settings(), tmp_path / "chats.sqlite")


@pytest.fixture
def window(qtbot: QtBot, services: Services) -> Iterator[MainWindow]:
    """A shown window with stub pages, on the chat."""
    made = MainWindow(services, STUBS)
    qtbot.addWidget(made)
    made.resize(1400, 800)
    made.show()
    qtbot.waitExposed(made)
    made.activateWindow()
    made.navigate("chat")
    yield made
