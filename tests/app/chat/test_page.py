"""The chat page as a person uses it, on the fake engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QGuiApplication, QPaintEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QLineEdit,
    QToolButton,
)
from pytestqt.qtbot import QtBot

from app.chat.chat_model import ROW_ROLE
from app.chat.composer import MAX_LINES
from app.chat.database import Problem, ProblemKind
from app.chat.page import ChatPage
from app.chat.row import MessageRow
from app.chat.tree import State
from app.chat.view import MessageView
from app.theme import theme
from engine.errors import ContextOverflow
from tests.app.chat.conftest import settle
from tests.app.fake_engine import FakeEngine

Ask = Callable[[str], Any]
CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier, Qt.KeyboardModifier.AltModifier,
)  # fmt: skip


def row_of(page: ChatPage, message_id: str) -> MessageRow:
    return page.view._rows[message_id]


def titles(page: ChatPage) -> list[str]:
    model = page.list.model
    return [model.index(i).data(ROW_ROLE).title for i in range(model.rowCount())]


def test_enter_sends_and_shift_enter_does_not(
    qtbot: QtBot, page: ChatPage, engine: FakeEngine
) -> None:
    editor = page.composer.editor
    qtbot.keyClicks(editor, "one")
    qtbot.keyClick(editor, Qt.Key.Key_Return, SHIFT)
    qtbot.keyClicks(editor, "two")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    settle(qtbot, page.session)
    assert [m.text for m in page.session.chat.path()] == ["one\ntwo", "Hello from the fake engine."]
    assert page.composer.text == ""
    assert titles(page) == ["Today", "one"]
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    assert len(engine.requests) == 1


def test_the_box_grows_to_eight_lines(qtbot: QtBot, page: ChatPage) -> None:
    editor = page.composer.editor
    low = editor.height()
    page.composer.set_text("\n".join("abcdefgh"))
    high = editor.height()
    page.composer.set_text("line\n" * 50)
    assert editor.height() == high
    assert high > low
    assert high // editor.fontMetrics().lineSpacing() == MAX_LINES


def test_the_hint_follows_the_text_size(qtbot: QtBot, page: ChatPage) -> None:
    editor = page.composer.editor
    for size in (150, 100):
        theme().apply(text_size=size)
        assert editor.viewport().font().pixelSize() == editor.font().pixelSize()


def test_another_hint_is_painted_whole(qtbot: QtBot, page: ChatPage) -> None:
    painted: list[int] = []
    viewport = page.composer.editor.viewport()

    class Watch(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if isinstance(event, QPaintEvent):
                painted.append(event.rect().width())
            return False

    watch = Watch()
    QApplication.processEvents()
    viewport.installEventFilter(watch)
    page.composer.set_mode("no model", "Something else stands in the empty box now")
    qtbot.waitUntil(lambda: bool(painted) and max(painted) == viewport.width())


def test_stop_takes_the_place_of_send(qtbot: QtBot, page: ChatPage, engine: FakeEngine) -> None:
    engine.answer, engine.token_s = "word " * 5000, 0.005
    page.composer.set_text("question")
    page.composer._send.click()
    assert page.composer._stop.isVisible()
    assert not page.composer._send.isVisible()
    qtbot.waitUntil(lambda: "word" in page.session.chat.path()[-1].text)
    qtbot.keyClick(page.composer.editor, Qt.Key.Key_Escape)
    settle(qtbot, page.session)
    assert page.session.chat.path()[-1].state is State.STOPPED
    assert page.composer._send.isVisible()


def test_the_rate_is_shown_while_it_writes(
    qtbot: QtBot, page: ChatPage, engine: FakeEngine
) -> None:
    engine.answer, engine.token_s = "word " * 5000, 0.005
    page.composer.set_text("question")
    page.composer._send.click()
    answer = page.session.chat.path()[-1]
    qtbot.waitUntil(lambda: row_of(page, answer.id)._note.text().endswith(" tok/s"))
    page.session.stop()
    settle(qtbot, page.session)


def test_prompt_progress_then_rate(qtbot: QtBot, page: ChatPage, engine: FakeEngine) -> None:
    from app.chat.generation import Generation
    from engine.types import PrefillProgress, Started

    engine.answer, engine.token_s = "word " * 5000, 0.005
    page.composer.set_text("question")
    page.composer._send.click()
    qtbot.waitUntil(lambda: "word" in page.session.chat.path()[-1].text)
    answer = page.session.chat.path()[-1]
    generation = Generation(page.session.chat, answer)
    page.session._running[page.session.chat.info.id] = generation
    generation.take(Started(1, 4000, 1000))
    generation.take(PrefillProgress(1, 1200, 4000))
    assert page._shown(answer.id).progress == "Reading 1,200 of 4,000 tokens"
    page.session.stop()
    page.services.controller.shutdown()


def test_versions_are_stepped_through(
    qtbot: QtBot, page: ChatPage, ask: Ask, engine: FakeEngine
) -> None:
    engine.answer = "first"
    first = ask("question")
    engine.answer = "second"
    row_of(page, first.id)._again.click()
    settle(qtbot, page.session)
    second = page.session.chat.path()[-1]
    row = row_of(page, second.id)
    assert row._version.text() == "2 / 2"
    row._previous.click()
    assert page.session.chat.path()[-1] is first
    assert row_of(page, first.id)._version.text() == "1 / 2"
    qtbot.keyClick(page.composer.editor, Qt.Key.Key_Right, ALT)
    assert page.session.chat.path()[-1] is second


def test_one_answer_at_a_time_in_a_chat(
    qtbot: QtBot, page: ChatPage, ask: Ask, services: Any, engine: FakeEngine
) -> None:
    first = ask("question")
    engine.answer, engine.token_s = "word " * 5000, 0.005
    page.composer.set_text("another")
    page.composer._send.click()
    page.do("regenerate", first.id)
    assert "Stop it first" in services.said[-1]
    assert len(page.session.chat.siblings(first.id)) == 1
    page.session.stop()
    settle(qtbot, page.session)


def test_text_size_reaches_everything(qtbot: QtBot, page: ChatPage, ask: Ask) -> None:
    ask("question")
    widths = page.composer.maximumWidth(), page.header.height()
    theme().apply(text_size=150)
    assert page.composer.maximumWidth() > widths[0]
    assert page.header.height() > widths[1]
    view, model = page.list.view, page.list.model
    for row in range(model.rowCount()):
        wanted = view.sizeHintForRow(row)
        qtbot.waitUntil(lambda i=row, h=wanted: view.visualRect(model.index(i)).height() == h)  # type: ignore[misc]
    theme().apply(text_size=100)


def test_what_stands_below_an_answer_stays_in_line_at_another_text_size(
    page: ChatPage, ask: Ask
) -> None:
    answer = ask("question")
    row = page.view._rows[answer.id]
    for size in (150, 100):
        theme().apply(text_size=size)
        copy, again, note = (w.geometry() for w in (row._copy, row._again, row._note))
        assert abs(copy.center().y() - note.center().y()) <= 1
        assert copy.right() < again.left() and again.right() < note.left()


def test_up_in_the_empty_box_edits_the_last_message(qtbot: QtBot, page: ChatPage, ask: Ask) -> None:
    ask("qestion")
    editor = page.composer.editor
    qtbot.keyClick(editor, Qt.Key.Key_Up)
    assert page.composer.text == "qestion"
    assert page.composer.editing
    qtbot.keyClick(editor, Qt.Key.Key_Escape)
    assert page.composer.text == ""
    assert not page.composer.editing
    qtbot.keyClick(editor, Qt.Key.Key_Up)
    page.composer.set_text("question")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    settle(qtbot, page.session)
    path = page.session.chat.path()
    assert [m.text for m in path] == ["question", "Hello from the fake engine."]
    assert len(page.session.chat.siblings(path[0].id)) == 2


def test_an_edit_keeps_the_draft(qtbot: QtBot, page: ChatPage, ask: Ask) -> None:
    message = ask("question")
    page.composer.set_text("half a thou")
    page.do("edit", message.parent)
    page.composer.set_text("changed")
    assert page.session.draft == "half a thou"
    page.composer.end_edit()
    assert page.composer.text == "half a thou"


def test_copy_buttons(qtbot: QtBot, page: ChatPage, ask: Ask, engine: FakeEngine) -> None:
    engine.answer = "**bold**\n\n```py\nx = 1\n```\n"
    answer = ask("question")
    row = row_of(page, answer.id)
    row._copy.click()
    assert QGuiApplication.clipboard().text() == engine.answer
    qtbot.waitUntil(lambda: bool(row._code_buttons))
    row._code_buttons[0].click()
    assert QGuiApplication.clipboard().text() == "x = 1"


def test_overflow_offers_a_new_chat_with_the_question(
    qtbot: QtBot, page: ChatPage, engine: FakeEngine
) -> None:
    engine.fail_after = 0
    engine.fail_error = ContextOverflow("found 9,000 tokens, expected at most 8,192")
    page.composer.set_text("a long question")
    page.composer._send.click()
    settle(qtbot, page.session)
    failed = page.session.chat.path()[-1]
    row = row_of(page, failed.id)
    assert "9,000" in row.accessibleName()
    row._new.click()
    assert page.session.is_fresh
    assert page.composer.text == "a long question"


def test_without_a_model_one_action_is_offered(qtbot: QtBot, page: ChatPage) -> None:
    page.composer.set_text("typed before")
    with qtbot.waitSignal(page.services.controller.model_changed):
        page.header.eject.click()
    assert page.composer.mode == "no model"
    assert page.composer._help.isVisible()
    qtbot.keyClick(page.composer.editor, Qt.Key.Key_Return)
    assert page.session.chat.path() == []
    assert page.composer.text == "typed before"
    assert "model" in page.composer.editor.placeholderText()


def test_list_groups_search_rename_delete_undo(
    qtbot: QtBot, page: ChatPage, ask: Ask, services: Any, engine: FakeEngine
) -> None:
    ask("첫 번째 질문")
    page.new_chat()
    engine.answer = "메모리 사용량은 12 MB 입니다"
    ask("second question")
    assert titles(page) == ["Today", "second question", "첫 번째 질문"]

    page.list.search.setText("사용량")
    qtbot.waitUntil(lambda: titles(page)[1:] == ["second question"])
    row = page.list.model.index(1).data(ROW_ROLE)
    assert "사용량" in row.detail
    page.new_chat()
    page.list.view.chosen.emit(row.chat, row.message)
    qtbot.waitUntil(lambda: page.session.chat.info.id == row.chat)
    assert page.view.pointer.text() == "사용량"
    page.list.search.setText("nothing like it")
    qtbot.waitUntil(lambda: len(titles(page)) == 1)
    page.list.search.clear()

    view = page.list.view
    index = page.list.model.index_of(row.chat)
    view.setFocus()
    view.setCurrentIndex(index)
    qtbot.keyClick(view, Qt.Key.Key_F2)
    (editor,) = view.findChildren(QLineEdit)
    editor.setText("renamed")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "renamed" in titles(page))
    page.session.pin(row.chat, True)
    assert titles(page)[:2] == ["Pinned", "renamed"]

    view.setCurrentIndex(page.list.model.index_of(row.chat))
    qtbot.keyClick(view, Qt.Key.Key_Delete)
    assert "renamed" not in titles(page)
    (text, undo) = services.undos[-1]
    assert "renamed" in text
    undo()
    assert titles(page)[:2] == ["Pinned", "renamed"]
    qtbot.keyClick(view, Qt.Key.Key_Z, CTRL)
    assert titles(page).count("renamed") == 1
    view.setCurrentIndex(page.list.model.index_of(row.chat))
    qtbot.keyClick(view, Qt.Key.Key_Delete)
    assert "renamed" not in titles(page)
    qtbot.keyClick(view, Qt.Key.Key_Z, CTRL)
    assert titles(page)[:2] == ["Pinned", "renamed"]


def test_a_chat_that_is_written_to_says_so(
    qtbot: QtBot, page: ChatPage, engine: FakeEngine, ask: Ask
) -> None:
    engine.answer, engine.token_s = "word " * 5000, 0.005
    page.composer.set_text("question")
    page.composer.editor.submitted.emit()
    asked = page.session.chat.info.id
    page.new_chat()
    index = page.list.model.index_of(asked)
    assert index.data(ROW_ROLE).detail.startswith("Writing")
    page.session.open(asked)
    qtbot.waitUntil(lambda: page.session.chat.info.id == asked)
    page.session.stop()
    settle(qtbot, page.session)
    assert not page.list.model.index_of(asked).data(ROW_ROLE).detail.startswith("Writing")


def test_the_right_button_leaves_the_open_chat_marked(
    qtbot: QtBot, page: ChatPage, ask: Ask
) -> None:
    ask("first")
    other = page.session.chat.info.id
    page.new_chat()
    ask("second")
    view, model = page.list.view, page.list.model
    here = view.visualRect(model.index_of(other)).center()
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.RightButton, pos=here)
    assert view.currentIndex() == model.index_of(page.session.chat.info.id)
    view.setFocus()
    page.list.delete(other)
    assert view.currentIndex() == model.index_of(page.session.chat.info.id)


def test_a_narrow_page_folds_the_list(qtbot: QtBot, page: ChatPage) -> None:
    assert page.list.isVisible()
    assert not page.header.chats.isVisible()
    page.resize(700, 700)
    qtbot.waitUntil(lambda: not page.list.isVisible())
    page.header.chats.click()
    assert page.list.isVisible()
    page.header.chats.click()
    page.resize(1100, 700)
    qtbot.waitUntil(page.list.isVisible)


def test_backspace_never_deletes_a_chat(qtbot: QtBot, page: ChatPage, ask: Ask) -> None:
    ask("question")
    page.list.view.setFocus()
    qtbot.keyClick(page.list.view, Qt.Key.Key_Backspace)
    assert "question" in titles(page)


def test_starter_fills_the_box(qtbot: QtBot, page: ChatPage) -> None:
    assert page.empty.isVisible()
    starter = page.empty.findChildren(QAbstractButton)[0]
    starter.click()
    assert page.composer.text == starter.text()
    assert page.composer.editor.hasFocus()


def test_text_files_are_quoted_and_others_refused(
    qtbot: QtBot, page: ChatPage, tmp_path: Path
) -> None:
    opened: list[Any] = []
    page.services.open_paths = opened.extend
    (tmp_path / "notes.md").write_text("some notes")
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\0")
    (tmp_path / "old.txt").write_bytes("메모".encode("cp949"))
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    page.attach([tmp_path / n for n in ("notes.md", "photo.png", "old.txt", "model.gguf")])
    assert page.composer.text.startswith("notes.md\n```markdown\nsome notes\n```")
    assert page._note is not None
    first, second = page._note.text.splitlines()
    assert "photo.png" in first and "old.txt" in second and "UTF-8" in second
    assert [p.name for p in opened] == ["model.gguf"]


def test_tokens_of_a_long_text_are_counted(
    qtbot: QtBot, page: ChatPage, engine: FakeEngine
) -> None:
    class Tokenizer:
        def encode(self, text: str) -> list[str]:
            return text.split()

    engine.tokenizer = Tokenizer()
    page.composer.set_text("word " * 1234)
    qtbot.waitUntil(lambda: page.composer.count.text() == "1,234 of 8,192 tokens")
    page.composer.set_text("short")
    assert page.composer.count.text() == ""


def test_find_in_this_chat(qtbot: QtBot, page: ChatPage, ask: Ask, engine: FakeEngine) -> None:
    engine.answer = "one needle and one **needle**\n\n" + "text " * 2000
    ask("no such word")
    ask("a needle too")
    page.find_bar.begin()
    page.find_bar.edit.setText("needle")
    assert page.find_bar.count.text() == "5 / 5"
    assert page.view.pointer.text().casefold() == "needle"
    qtbot.keyClick(page.find_bar.edit, Qt.Key.Key_Return)
    assert page.find_bar.count.text() == "1 / 5"
    assert page.view.rows()[0][0] <= 1
    page.find_bar.edit.setText("absent")
    assert page.find_bar.count.text() == "nothing found"
    qtbot.keyClick(page.find_bar.edit, Qt.Key.Key_Escape)
    assert page.find_bar.isHidden()


def test_problems_are_said(qtbot: QtBot, page: ChatPage, services: Any) -> None:
    for kind in ProblemKind:
        page.session.problem.emit(Problem(kind, "/place/chats.sqlite", "no room", "/place/kept"))
        if kind is ProblemKind.SOLVED:
            assert page._note is None
            assert "saved again" in services.said[-1]
        else:
            assert page._note is not None
            assert "/place" in page._note._text.text()


def test_keys_are_listed_and_work(
    qtbot: QtBot, page: ChatPage, ask: Ask, engine: FakeEngine
) -> None:
    listed = {a.shortcut().toString() for a in page.services.actions.all()}
    assert {
        "Ctrl+F",
        "Ctrl+R",
        "Ctrl+Shift+C",
        "Ctrl+E",
        "Esc",
    } <= listed
    assert {"Alt+Left", "Alt+Right"} <= listed
    ask("question")
    qtbot.keyClick(page.composer.editor, Qt.Key.Key_R, CTRL)
    settle(qtbot, page.session)
    assert len(page.session.chat.messages) == 3
    qtbot.keyClick(page.composer.editor, Qt.Key.Key_C, CTRL | SHIFT)
    assert QGuiApplication.clipboard().text() == "Hello from the fake engine."
    page.open(search=True)
    assert page.list.search.hasFocus()
    page.open(new=True)
    assert page.session.is_fresh
    assert page.composer.editor.hasFocus()


def test_tab_goes_through_in_reading_order(qtbot: QtBot, page: ChatPage, ask: Ask) -> None:
    ask("question")
    ask("another")
    page.list.search.setFocus()
    seen: list[Any] = []
    for _ in range(40):
        focus = QApplication.focusWidget()
        if focus in seen:
            break
        seen.append(focus)
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
    first = [
        page.list.search, page.list.new, page.list.view, page.header.picker, page.header.marks,
        page.header.eject,
    ]  # fmt: skip
    assert seen[: len(first)] == first
    assert isinstance(seen[len(first)], MessageView | MessageRow)
    after = seen.index(page.composer.editor)
    assert after - len(first) <= 8
    assert seen[after + 1 : after + 4] == [
        page.composer.attach,
        page.composer.tune,
        page.composer.prompt,
    ]


def test_everything_has_a_name(qtbot: QtBot, page: ChatPage, ask: Ask) -> None:
    ask("question")
    for made in page.findChildren(QToolButton) + page.findChildren(QAbstractButton):
        assert made.accessibleName() or made.text() or not made.isVisibleTo(page), made
    for widget in (page.composer.editor, page.list.search, page.list.view, page.view):
        assert widget.accessibleName()
