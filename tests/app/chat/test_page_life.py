"""The chat page over its life: closing, being built anew, being hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.chat.page import ChatPage
from app.i18n import Language
from app.page import Services
from tests.app.chat.conftest import settle
from tests.app.conftest import whole
from tests.app.fake_engine import FakeEngine

Ask = Callable[[str], Any]
CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.AltModifier,
)  # fmt: skip


def test_closing_saves_what_is_typed_and_written(
    qtbot: QtBot, page: ChatPage, engine: FakeEngine
) -> None:
    from app.chat.store import ChatStore

    engine.answer, engine.token_s = "word " * 5000, 0.005
    page.composer.set_text("question")
    page.composer._send.click()
    page.composer.set_text("next question")
    qtbot.waitUntil(lambda: len(page.session.chat.path()[-1].text) > 20)
    assert page.can_close()
    store = ChatStore(page.services.chat_store)
    (info,) = store.chats().result(10)
    assert info.draft == "next question"
    chat = store.load(info.id).result(10)
    store.close()
    assert chat is not None
    assert chat.path()[-1].text.startswith("word ")


def test_a_page_built_anew_shows_the_same_chat(
    qtbot: QtBot, page: ChatPage, services: Services, engine: FakeEngine, language: Language
) -> None:
    """Also in the middle of an answer, and in another language."""
    engine.answer, engine.token_s = "word " * 200, 0.005
    page.composer.set_text("question")
    page.composer._send.click()
    page.composer.set_text("draft")
    qtbot.waitUntil(lambda: len(page.session.chat.path()[-1].text) > 20)
    page.can_close()
    page.close()
    language.apply("ko")
    again = whole(ChatPage(services))
    qtbot.addWidget(again)
    again.resize(1100, 800)
    again.show()
    assert again.composer.text == "draft"
    assert again.composer.mode == "stop" and again.composer._stop.text() == "중지"
    settle(qtbot, again.session)
    answer = again.session.chat.path()[-1]
    assert answer.text == "word " * 200
    assert again.view._rows[answer.id].entry.main.text.startswith("word ")  # type: ignore[union-attr]


def test_a_hidden_page_does_no_work_and_catches_up(
    qtbot: QtBot, page: ChatPage, engine: FakeEngine
) -> None:
    engine.answer, engine.token_s = "word " * 100, 0.003
    page.composer.set_text("question")
    page.composer._send.click()
    page.hide()
    settle(qtbot, page.session)
    answer = page.session.chat.path()[-1]
    assert "word" not in (page.view._entry(answer.id).main.text)  # type: ignore[union-attr]
    page.show()
    assert page.view._entry(answer.id).main.text.startswith("word ")  # type: ignore[union-attr]


def test_a_page_built_anew_is_as_it_was(
    qtbot: QtBot, page: ChatPage, services: Services, engine: FakeEngine, ask: Ask
) -> None:
    engine.answer = "line\n\n" * 60
    first = ask("question")
    ask("another")
    page.composer.set_text("draft")
    page.composer.begin_edit(page.session.chat.path()[0].id, "better question")
    page.list.search.setText("words")
    page.view.show_message(first.id, focus=False)
    bar = page.view.verticalScrollBar()
    bar.setValue(bar.value() + 100)
    before = page.view._rows[first.id].y()
    page.can_close()
    memory = page.memory()
    page.close()
    again = whole(ChatPage(services))
    qtbot.addWidget(again)
    again.resize(1100, 800)
    again.show()
    qtbot.waitExposed(again)
    again.open(**memory)
    assert again.list.query == "words"
    assert again.composer.editing and again.composer.text == "better question"
    again.composer.end_edit()
    assert again.composer.text == "draft"
    qtbot.waitUntil(lambda: first.id in again.view._rows)
    qtbot.waitUntil(lambda: abs(again.view._rows[first.id].y() - before) < 3)
    assert not again.view.pinned
