"""The whole application with the real engine and a tiny model: ask, read, close, come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.page import ChatPage
from app.chat.tree import Message, Role
from app.crash import Watch
from app.instance import Instance
from app.main import Application, Wanted

LOAD_MS = 240_000


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without models of any program."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setattr(Path, "home", lambda: folder)
    return folder


@pytest.fixture
def start(
    qtbot: QtBot, qapp: QApplication, home: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Application]]:
    """Starts an application with the tiny model; all are closed in the end."""
    monkeypatch.setattr(qapp, "quit", lambda: None)
    made: list[tuple[Application, Watch]] = []

    def start() -> Application:
        watch = Watch()
        wanted = Wanted((str(fixtures / "llama.gguf"),))
        application = Application(qapp, watch, Instance(), wanted)
        made.append((application, watch))
        application.open()
        qtbot.waitUntil(lambda: application.controller.state == "ready", timeout=LOAD_MS)
        return application

    yield start
    for application, watch in made:
        application.window.close()
        application.window.deleteLater()
        application.deleteLater()
        watch.disarm()


def chat_page(application: Application) -> ChatPage:
    page = application.window.page
    assert isinstance(page, ChatPage)
    return page


def messages(application: Application) -> list[Message]:
    return chat_page(application).session.chat.path()


@pytest.mark.timeout(600)
def test_a_first_chat(qtbot: QtBot, start: Callable[[], Application]) -> None:
    first = start()
    editor = first.window.focusWidget()
    assert chat_page(first).composer.isAncestorOf(editor), "the cursor is in the message box"
    qtbot.keyClicks(editor, "Hello there")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: first.controller.state == "generating")
    qtbot.waitUntil(lambda: len(messages(first)) == 2 and bool(messages(first)[1].text))
    first.window.close()
    assert not first.window.isVisible()
    kept = messages(first)
    assert [m.role for m in kept] == [Role.USER, Role.ASSISTANT]
    chat_id = chat_page(first).session.chat.info.id

    again = start()
    chat_page(again).open(chat=chat_id)
    qtbot.waitUntil(lambda: len(messages(again)) == 2)
    found = messages(again)
    assert found[0].text == "Hello there"
    assert found[1].text == kept[1].text, "not a token of the answer is lost"
