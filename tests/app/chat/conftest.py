"""A chat page on the fake engine, with folders of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytestqt.qtbot import QtBot

from app.chat.page import ChatPage
from app.chat.session import ChatSession
from app.chat.store import ChatStore
from app.controller import EngineController
from app.i18n import Language
from app.page import Services
from app.settings import Settings
from app.theme import theme
from app.widgets.toast import text_of
from tests.app.conftest import PATIENCE_MS, whole
from tests.app.fake_engine import FakeEngine


@pytest.fixture(autouse=True)
def usual_look(language: Language) -> None:
    """Every test begins with dark colours, usual text size and English."""
    theme().apply("dark", 100)
    language.apply("en")


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def services(qtbot: QtBot, engine: FakeEngine, tmp_path: Path) -> Iterator[Services]:
    controller = EngineController(lambda: engine)
    made = Services(controller, Settings(), tmp_path / "data" / "chats.sqlite")
    made.said = []  # type: ignore[attr-defined]
    made.undos = []  # type: ignore[attr-defined]
    made.toast = lambda said: made.said.append(text_of(said))  # type: ignore[attr-defined]
    made.toast_undo = lambda said, undo: made.undos.append((text_of(said), undo))  # type: ignore[attr-defined]
    yield made
    session = controller.findChild(ChatSession)
    assert controller.shutdown(PATIENCE_MS)
    if session is not None:
        assert session.store.close() == 0


@pytest.fixture
def load(qtbot: QtBot, services: Services) -> Callable[[], None]:
    def load() -> None:
        with qtbot.waitSignal(services.controller.model_changed):
            services.controller.load("/models/tiny.gguf")

    return load


@pytest.fixture
def session(services: Services) -> ChatSession:
    return ChatSession.of(services)


@pytest.fixture
def page(qtbot: QtBot, services: Services, load: Callable[[], None]) -> ChatPage:
    load()
    made = whole(ChatPage(services))
    qtbot.addWidget(made)
    made.resize(1100, 800)
    made.show()
    qtbot.waitExposed(made)
    return made


@pytest.fixture
def ask(qtbot: QtBot, page: ChatPage) -> Callable[[str], Any]:
    """Sends a message through the page and waits until it is answered; returns the answer."""

    def ask(text: str) -> Any:
        page.composer.set_text(text)
        page.composer.editor.submitted.emit()
        settle(qtbot, page.session)
        return page.session.chat.path()[-1]

    return ask


def settle(qtbot: QtBot, session: ChatSession) -> None:
    """Wait until nothing is being answered."""
    qtbot.waitUntil(lambda: session.generation(session.chat.info.id) is None)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ChatStore]:
    made = ChatStore(tmp_path / "chats.sqlite")
    yield made
    made.close()
