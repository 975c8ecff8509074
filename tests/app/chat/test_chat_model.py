"""The rows of the chat list."""

from __future__ import annotations

from datetime import datetime, timedelta

from PySide6.QtCore import Qt
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from app.chat.chat_model import ROW_ROLE, ChatModel
from app.chat.search import Hit
from app.chat.tree import ChatInfo

NOW = datetime(2026, 3, 10, 0, 30)


def rows(model: ChatModel) -> list[str]:
    return [model.index(i).data(ROW_ROLE).title for i in range(model.rowCount())]


def info(title: str, age: timedelta, **kw: object) -> ChatInfo:
    return ChatInfo(title=title, updated=(NOW - age).timestamp(), **kw)  # type: ignore[arg-type]


def test_groups_by_day(qtbot: QtBot, qtmodeltester: ModelTester) -> None:
    model = ChatModel()
    model.show_chats(
        [
            info("an hour ago, yesterday", timedelta(hours=1)),
            info("now", timedelta()),
            info("in the future", -timedelta(days=3)),
            info("week", timedelta(days=7)),
            info("older", timedelta(days=8)),
            info("old but pinned", timedelta(days=400), pinned=True),
        ],
        NOW,
    )
    assert rows(model) == [
        "Pinned", "old but pinned", "Today", "in the future", "now", "Yesterday",
        "an hour ago, yesterday", "Last 7 days", "week", "Older", "older",
    ]  # fmt: skip
    qtmodeltester.check(model)


def test_only_chats_can_be_chosen_and_only_titles_edited(qtbot: QtBot) -> None:
    model = ChatModel()
    one = info("one", timedelta(), n_messages=3, model_name="Model")
    model.show_chats([one], NOW)
    head, row = model.index(0), model.index(1)
    assert not model.flags(head) & Qt.ItemFlag.ItemIsSelectable
    assert model.flags(row) & Qt.ItemFlag.ItemIsEditable
    assert "Model · 3" in row.data(Qt.ItemDataRole.AccessibleTextRole)
    with qtbot.waitSignal(model.renamed) as renamed:
        model.setData(row, "other")
    assert renamed.args == [one.id, "other"]
    assert not model.setData(head, "other")
    model.show_hits("q", [Hit(one.id, "m", "snippet", ((0, 3),))], {one.id: one})
    assert not model.flags(model.index(1)) & Qt.ItemFlag.ItemIsEditable


def test_no_chats_and_no_hits_say_so(qtbot: QtBot) -> None:
    model = ChatModel()
    model.show_chats([])
    assert model.rowCount() == 1
    model.show_hits("word", [], {})
    assert "word" in rows(model)[0]
    assert not model.index_of("x").isValid()


def test_a_change_in_place_keeps_the_rows(qtbot: QtBot) -> None:
    model = ChatModel()
    one = info("one", timedelta())
    model.show_chats([one], NOW)
    one.title = "renamed"
    with qtbot.assertNotEmitted(model.modelReset), qtbot.waitSignal(model.dataChanged):
        model.show_chats([one], NOW)
    assert rows(model)[1] == "renamed"
