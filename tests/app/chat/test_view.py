"""The list of messages: few widgets, steady scrolling, text that can be taken along."""

from __future__ import annotations

from itertools import pairwise

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, Qt
from PySide6.QtGui import QGuiApplication, QImage, QWheelEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.chat.entry import Shown
from app.chat.generation import Generation
from app.chat.row import MessageRow
from app.chat.tree import Chat, ChatInfo, Message, Role, State
from app.chat.view import MessageView
from app.theme import theme
from engine.types import Finished, FinishReason, Usage


def make_chat(count: int, words: int = 300) -> Chat:
    chat = Chat(ChatInfo())
    for i in range(count):
        role = Role.ASSISTANT if i % 2 else Role.USER
        text = f"Message {i}\n\n" + "some words here " * (words // 3)
        chat.add(Message(chat.info.id, chat.info.leaf, role, text, model="Model"))
    return chat


@pytest.fixture
def view(qtbot: QtBot) -> MessageView:
    theme().apply("dark")
    made = MessageView()
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    qtbot.waitExposed(made)
    return made


def quiet(qtbot: QtBot, view: MessageView) -> None:
    qtbot.waitUntil(lambda: not view.busy())


def wheel(view: MessageView, notches: float) -> None:
    at = QPointF(view.viewport().rect().center())
    event = QWheelEvent(
        at, view.viewport().mapToGlobal(at), QPoint(), QPoint(0, round(120 * notches)),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(view.viewport(), event)


def test_only_visible_messages_have_widgets(qtbot: QtBot, view: MessageView) -> None:
    view.set_messages(make_chat(300).path())
    quiet(qtbot, view)
    assert len(view.findChildren(MessageRow)) < 15
    assert view.verticalScrollBar().value() == view.verticalScrollBar().maximum()
    assert view.rows()[-1][0] == 299
    laid = sum(bool(view._entries[i].main.boxes) for i in range(300))
    assert laid < 100


def test_every_message_is_reached(qtbot: QtBot, view: MessageView) -> None:
    view.set_messages(make_chat(40).path())
    seen: set[int] = set()
    bar = view.verticalScrollBar()
    while True:
        quiet(qtbot, view)
        seen |= {i for i, _ in view.rows()}
        if bar.value() == 0:
            break
        wheel(view, 1)
    assert seen == set(range(40))


def test_rows_stand_one_below_the_other(qtbot: QtBot, view: MessageView) -> None:
    view.set_messages(make_chat(60, 60).path())
    quiet(qtbot, view)
    view.show_message(view.messages()[30].id)
    quiet(qtbot, view)
    rows = view.rows()
    assert len(rows) > 2
    for (_, upper), (_, lower) in pairwise(rows):
        assert 0 <= lower.y() - upper.geometry().bottom() < 12


def test_layout_above_does_not_move_what_is_read(qtbot: QtBot, view: MessageView) -> None:
    view.set_messages(make_chat(80).path())
    view.show_message(view.messages()[40].id)
    before = dict(view.rows())[40].y()
    quiet(qtbot, view)
    assert abs(dict(view.rows())[40].y() - before) <= 1


def test_streaming_follows_only_who_is_at_the_end(qtbot: QtBot, view: MessageView) -> None:
    chat = make_chat(20)
    answer = chat.add(
        Message(chat.info.id, chat.info.leaf, Role.ASSISTANT, "Begin", state=State.WRITING)
    )
    view.set_messages(chat.path())
    quiet(qtbot, view)
    bar = view.verticalScrollBar()
    answer.text += "\n\nmore" * 30
    view.refresh(answer.id)
    assert bar.value() == bar.maximum()
    assert view._jump.isHidden()

    wheel(view, 0.1)
    wheel(view, 1)
    assert not view.pinned
    place = bar.value()
    for _ in range(5):
        answer.text += "\n\nmore" * 30
        view.refresh(answer.id)
        quiet(qtbot, view)
        assert bar.value() == place
    assert view._jump.isVisible()
    view._jump.click()
    assert view.pinned
    assert bar.value() == bar.maximum()
    assert view._jump.isHidden()


def test_scrolling_down_to_the_end_pins_again(qtbot: QtBot, view: MessageView) -> None:
    view.set_messages(make_chat(20).path())
    quiet(qtbot, view)
    wheel(view, 2)
    assert not view.pinned
    wheel(view, -5)
    assert view.pinned


def test_keys_go_through_messages(qtbot: QtBot, view: MessageView) -> None:
    chat = make_chat(6, 30)
    view.set_messages(chat.path())
    quiet(qtbot, view)
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_End)
    assert view.current == chat.path()[-1].id
    for message in reversed(chat.path()[:-1]):
        qtbot.keyClick(view.focusWidget() or view, Qt.Key.Key_Up)
        assert view.current == message.id
        row = dict(view.rows())[view.selection.rows[message.id]]
        assert row.hasFocus()
        assert row.accessibleName().startswith("You: " if message.role is Role.USER else "Model: ")
        assert "Message" in row.accessibleName()
    qtbot.keyClick(view.focusWidget() or view, Qt.Key.Key_Down)
    assert view.current == chat.path()[1].id


def test_a_tall_message_is_scrolled_through(qtbot: QtBot, view: MessageView) -> None:
    chat = make_chat(3, 3000)
    view.set_messages(chat.path())
    quiet(qtbot, view)
    qtbot.keyClick(view, Qt.Key.Key_Home)
    quiet(qtbot, view)
    places = []
    while view.current == chat.path()[0].id:
        places.append(view.verticalScrollBar().value())
        qtbot.keyClick(view.focusWidget() or view, Qt.Key.Key_Down)
    assert len(places) > 5
    assert places == sorted(places)


def test_mouse_selects_over_messages_and_copies(qtbot: QtBot, view: MessageView) -> None:
    chat = Chat(ChatInfo())
    chat.add(Message(chat.info.id, None, Role.USER, "first message"))
    chat.add(Message(chat.info.id, chat.info.leaf, Role.ASSISTANT, "second **answer**"))
    view.set_messages(chat.path())
    quiet(qtbot, view)
    (_, upper), (_, lower) = view.rows()
    start = upper.mapTo(view.viewport(), QPoint(2, 2))
    end = lower.mapTo(view.viewport(), QPoint(600, 10))
    qtbot.mousePress(view.viewport(), Qt.MouseButton.LeftButton, pos=start)
    qtbot.mouseMove(view.viewport(), end)
    view.pointer._drag_to(end)
    qtbot.mouseRelease(view.viewport(), Qt.MouseButton.LeftButton, pos=end)
    assert view.pointer.text() == "first message\n\nsecond answer"
    view.setFocus()
    qtbot.keyClick(view, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text() == "first message\n\nsecond answer"
    view.grab()


def press(qtbot: QtBot, row: MessageRow, keys: str) -> None:
    for key in keys.split():
        held = Qt.KeyboardModifier.ShiftModifier
        if key.startswith("Ctrl+"):
            held, key = held | Qt.KeyboardModifier.ControlModifier, key[5:]
        qtbot.keyClick(row, getattr(Qt.Key, f"Key_{key}"), held)


@pytest.mark.parametrize(
    ("keys", "text"),
    [
        ("Right Right Right", "one"),
        ("Ctrl+Right Ctrl+Right", "one two "),
        ("End", "one two three"),
        ("Ctrl+End", "one two three\n\nfour\n\nfive = 5\nsix = 6"),
        ("Down", "one two three\n\n"),
        ("Down Down Down Ctrl+Right", "one two three\n\nfour\n\nfive = 5\nsix "),
        ("Left Left", " 6"),
        ("Up", "5\nsix = 6"),
        ("Right Left Left", ""),
        ("End Home", ""),
    ],
)  # fmt: skip
def test_keys_select_inside_a_message(
    qtbot: QtBot, view: MessageView, keys: str, text: str
) -> None:
    chat = Chat(ChatInfo())
    said = "one two three\n\nfour\n\n```python\nfive = 5\nsix = 6\n```"
    chat.add(Message(chat.info.id, None, Role.ASSISTANT, said))
    view.set_messages(chat.path())
    quiet(qtbot, view)
    ((_, row),) = view.rows()
    row.setFocus()
    press(qtbot, row, keys)
    assert view.pointer.text() == text
    view.pointer.copy()
    assert QGuiApplication.clipboard().text() == (text or said), "with nothing selected, all of it"


def test_a_selection_by_keys_stays_in_view(qtbot: QtBot, view: MessageView) -> None:
    chat = Chat(ChatInfo())
    chat.add(Message(chat.info.id, None, Role.ASSISTANT, "line\n\n" * 80))
    view.set_messages(chat.path())
    quiet(qtbot, view)
    bar = view.verticalScrollBar()
    bar.setValue(0)
    ((_, row),) = view.rows()
    row.setFocus()
    press(qtbot, row, "Down " * 40)
    assert 0 < bar.value() < bar.maximum()
    press(qtbot, row, "Ctrl+End")
    assert bar.value() > bar.maximum() - 100
    press(qtbot, row, "Ctrl+Home")
    assert bar.value() < 100


def test_double_click_selects_a_word(qtbot: QtBot, view: MessageView) -> None:
    chat = Chat(ChatInfo())
    chat.add(Message(chat.info.id, None, Role.ASSISTANT, "one two three"))
    view.set_messages(chat.path())
    quiet(qtbot, view)
    ((_, row),) = view.rows()
    qtbot.mouseDClick(row, Qt.MouseButton.LeftButton, pos=QPoint(4, 8))
    assert view.pointer.text().strip() == "one"


def test_links_open_only_on_a_click(
    qtbot: QtBot, view: MessageView, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(view.pointer, "open_link", opened.append)
    chat = Chat(ChatInfo())
    chat.add(
        Message(
            chat.info.id,
            None,
            Role.ASSISTANT,
            "[link](https://example.com) and ![x](https://e.com/i.png)",
        )
    )
    view.set_messages(chat.path())
    quiet(qtbot, view)
    ((_, row),) = view.rows()
    qtbot.mouseMove(row, QPoint(5, 8))
    assert opened == []
    qtbot.mouseClick(row, Qt.MouseButton.LeftButton, pos=QPoint(5, 8))
    assert opened == ["https://example.com"]
    qtbot.mouseClick(row, Qt.MouseButton.RightButton, pos=QPoint(5, 8))
    qtbot.mouseClick(row, Qt.MouseButton.LeftButton, pos=QPoint(400, 8))
    assert opened == ["https://example.com"]


def test_thinking_is_folded_with_a_summary(qtbot: QtBot, view: MessageView) -> None:
    chat = Chat(ChatInfo())
    message = chat.add(
        Message(
            chat.info.id,
            None,
            Role.ASSISTANT,
            "<think>long\n\nthe gist</think>The answer",
            usage={"thought_s": 2.5},
        )
    )
    view.set_messages(chat.path())
    quiet(qtbot, view)
    ((_, row),) = view.rows()
    assert "2.5" in row._fold.text()
    assert row._folded_text.text() == "the gist"
    assert "the gist" in row._fold.accessibleName()
    low = row.height()
    qtbot.mouseClick(row._fold, Qt.MouseButton.LeftButton)
    quiet(qtbot, view)
    assert row.height() > low
    assert row.entry is not None
    assert row.entry.thought is not None
    view.grab()
    qtbot.mouseClick(row._fold, Qt.MouseButton.LeftButton)
    assert row.height() == low
    assert message.text.startswith("<think>")


def test_code_has_a_copy_button(qtbot: QtBot, view: MessageView) -> None:
    chat = Chat(ChatInfo())
    code = "line\n" * 60 + "end"
    message = chat.add(
        Message(chat.info.id, None, Role.ASSISTANT, f"a\n\n```py\nx\n```\n\n```\n{code}\n```")
    )
    view.set_messages(chat.path())
    quiet(qtbot, view)
    view.verticalScrollBar().setValue(0)
    ((_, row),) = view.rows()
    wanted: list[tuple[str, str]] = []
    view.wanted.connect(lambda action, mid: wanted.append((action, mid)))
    shown = [b for b in row._code_buttons if not b.isHidden()]
    assert len(shown) == 2
    assert shown[0].accessibleName() == "Copy code py"
    for made in shown:
        made.click()
    assert [view.code(message.id, int(a.partition(":")[2])) for a, _ in wanted] == ["x", code]


def test_theme_and_width_change_everything(qtbot: QtBot, view: MessageView) -> None:
    view.set_messages(make_chat(10).path())
    quiet(qtbot, view)
    dark = view.grab().toImage()
    theme().apply("light", 130)
    quiet(qtbot, view)
    assert view.grab().toImage().pixelColor(5, 5) != dark.pixelColor(5, 5)
    view.resize(420, 500)
    quiet(qtbot, view)
    for _, row in view.rows():
        assert row.geometry().right() <= view.viewport().width()
    theme().apply("dark", 100)


def test_states_are_said_in_words(qtbot: QtBot, view: MessageView) -> None:
    chat = Chat(ChatInfo())
    states = {
        State.STOPPED: "Stopped", State.LENGTH: "answer length", State.INTERRUPTED: "Cut off", State.DONE: "",
    }  # fmt: skip
    for state in states:
        chat.add(Message(chat.info.id, chat.info.leaf, Role.ASSISTANT, "text", state=state))
    view.set_messages(chat.path())
    quiet(qtbot, view)
    for (_, row), words in zip(view.rows(), states.values(), strict=True):
        assert words in row._note.text()


@pytest.mark.parametrize(
    ("why", "words"), [("context_full", "context is full"), ("loop", "repeated itself")]
)
def test_what_cut_an_answer_is_told_from_the_answer_length(
    qtbot: QtBot, view: MessageView, why: str, words: str
) -> None:
    chat = Chat(ChatInfo())
    answer = Message(chat.info.id, None, Role.ASSISTANT, state=State.WRITING)
    chat.add(answer)
    Generation(chat, answer).take(
        Finished(1, FinishReason.LENGTH, Usage(500, 0, 12), **{why: True})  # type: ignore[arg-type]
    )
    view.set_messages(chat.path())
    quiet(qtbot, view)
    ((_, row),) = view.rows()
    assert words in row._note.text() and "answer length" not in row._note.text()


def test_failure_shows_the_error_and_a_way_on(qtbot: QtBot, view: MessageView) -> None:
    chat = Chat(ChatInfo())
    chat.add(
        Message(
            chat.info.id, None, Role.ASSISTANT, state=State.FAILED, error_kind="ContextOverflow",
            error="found 9,000 tokens, expected at most 8,192",
        )
    )  # fmt: skip
    view.set_messages(chat.path())
    quiet(qtbot, view)
    ((_, row),) = view.rows()
    assert row._retry.isVisible()
    assert row._new.isVisible()
    assert "9,000" in row.accessibleName()
    assert row.entry is not None
    assert row.entry.error is not None
    assert "9,000" in row.entry.error.text
    view.grab()


def test_another_message_of_the_same_id_is_shown(qtbot: QtBot, view: MessageView) -> None:
    one = Message("c", None, Role.USER, "before", id="same")
    view.set_messages([one])
    view.set_messages([Message("c", None, Role.USER, "after", id="same")])
    quiet(qtbot, view)
    ((_, row),) = view.rows()
    assert "after" in row.accessibleName()


def test_a_retry_takes_the_error_away(qtbot: QtBot, view: MessageView) -> None:
    message = Message("c", None, Role.ASSISTANT, state=State.FAILED, error="broken")
    view.set_messages([message])
    quiet(qtbot, view)
    ((_, row),) = view.rows()
    assert row._retry.isVisible()
    message.error, message.state = "", State.WRITING
    view.set_messages([message])
    assert not row._retry.isVisible()
    assert row.entry is not None
    assert row.entry.error is None


def test_progress_and_versions(qtbot: QtBot, view: MessageView) -> None:
    chat = Chat(ChatInfo())
    message = chat.add(Message(chat.info.id, None, Role.ASSISTANT, state=State.WRITING))
    view.set_messages(chat.path())
    quiet(qtbot, view)
    view.set_shown(message.id, Shown(2, 3, "Reading 1,200 of 4,000 tokens"))
    ((_, row),) = view.rows()
    assert row._note.text() == "Reading 1,200 of 4,000 tokens"
    assert row._version.text() == "2 / 3"
    assert row._previous.isEnabled()
    view.grab()
    view.set_shown(message.id, Shown(3, 3, "", 12.34))
    assert row._note.text() == "12.3 tok/s"
    assert not row._next.isEnabled()


def test_painting_only_what_changed_gives_the_whole_picture(
    qtbot: QtBot, view: MessageView
) -> None:
    chat = make_chat(4, 30)
    answer = chat.add(Message(chat.info.id, chat.info.leaf, Role.ASSISTANT, state=State.WRITING))
    view.set_messages(chat.path())
    quiet(qtbot, view)
    screen, handle = view.screen(), view.winId()
    place = QRect()

    def picture() -> QImage:
        QApplication.sendEvent(view, QEvent(QEvent.Type.UpdateRequest))
        return screen.grabWindow(handle).toImage().copy(place)

    line = "Some **words** of a paragraph that fills more than a line of the column. "
    text = f"# Title\n\n{line * 5}\n\n> {line * 3}\n\n- {line * 2}\n\n```\n{line}\n```\n\n" * 2
    for end in range(0, len(text), 23):
        answer.text = text[:end]
        view.set_shown(answer.id, Shown(rate=float(end)))
        view.refresh(answer.id)
        quiet(qtbot, view)
        row = view.rows()[-1][1]
        place = row.geometry().intersected(view.viewport().rect())
        parts = picture()
        row.update()
        assert picture() == parts, end
