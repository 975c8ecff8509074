"""The message box beside what goes on around it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QPoint, Qt
from pytestqt.qtbot import QtBot

from app.chat.page import ChatPage
from tests.app.chat.conftest import settle
from tests.app.fake_engine import FakeEngine

Ask = Callable[[str], Any]


def test_what_is_sent_while_a_model_loads_is_sent_when_it_is_ready(
    qtbot: QtBot, page: ChatPage, engine: FakeEngine
) -> None:
    controller = page.services.controller
    with qtbot.waitSignal(controller.model_changed):
        controller.unload()
    engine.load_s = 0.5
    controller.load(Path("/models/other.gguf"))
    qtbot.waitUntil(lambda: page.composer.mode == "loading")
    page.composer.set_text("early")
    qtbot.keyClick(page.composer.editor, Qt.Key.Key_Return)
    assert not page.composer._send.isEnabled() and "Waiting" in page.composer._send.text()
    page.composer.set_text("early question")
    assert page.composer._send.isEnabled(), "who types on wants to say more"
    qtbot.keyClick(page.composer.editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(page.session.chat.path()) == 2)
    assert page.session.chat.path()[0].text == "early question"
    settle(qtbot, page.session)


def test_undo_in_the_message_box_brings_a_deleted_chat_back(
    qtbot: QtBot, page: ChatPage, ask: Ask
) -> None:
    ask("question")
    chat = page.session.chat.info.id
    page.list.delete(chat)
    editor = page.composer.editor
    editor.setFocus()
    qtbot.keyClicks(editor, "x")
    qtbot.keyClick(editor, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert page.composer.text == "" and chat not in page.session.infos, "first the text"
    qtbot.keyClick(editor, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)
    assert chat in page.session.infos


def test_a_click_into_the_free_space_of_the_message_box_is_one_into_its_text(
    qtbot: QtBot, page: ChatPage
) -> None:
    composer = page.composer
    page.list.view.setFocus()
    assert not composer.editor.hasFocus()
    free = QPoint(composer.count.geometry().right() - 2, composer.height() - 3)
    assert composer.childAt(free) in (None, composer.count)
    qtbot.mouseClick(composer.childAt(free) or composer, Qt.MouseButton.LeftButton)
    assert composer.editor.hasFocus()
