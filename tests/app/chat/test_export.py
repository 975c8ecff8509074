"""Chats as files."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QPushButton
from pytestqt.qtbot import QtBot

from app.chat.export import file_name, to_json, to_markdown, write_archive
from app.chat.exporter import export_all, write_chat
from app.chat.page import ChatPage
from app.chat.tree import Chat, ChatInfo, Message, Role

Ask = Callable[[str], Any]
CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


def chat() -> Chat:
    made = Chat(ChatInfo(title="Title", system_prompt="Be brief.", draft="secret"))
    question = made.add(Message(made.info.id, None, Role.USER, "질문"))
    made.add(Message(made.info.id, question.id, Role.ASSISTANT, "old", model="A"))
    made.add(Message(made.info.id, question.id, Role.ASSISTANT, "new", model="B", error="cut"))
    return made


def test_markdown_holds_the_active_path() -> None:
    assert (
        to_markdown(chat()) == "# Title\n\n> Be brief.\n\n## You\n\n질문\n\n## B\n\nnew\n\n*cut*\n"
    )


def test_json_holds_every_branch() -> None:
    found = json.loads(to_json(chat()))
    assert [m["text"] for m in found["messages"]] == ["질문", "old", "new"]
    assert [m["active"] for m in found["messages"]] == [True, False, True]
    assert found["system_prompt"] == "Be brief."
    assert found["created"].endswith("+00:00")
    assert "draft" not in found


def test_names_that_every_system_takes() -> None:
    assert file_name('a/b:c*?"<>|\\ d. ') == "a b c d"
    assert file_name("...") == "chat"
    assert file_name("한국어 제목") == "한국어 제목"


def test_ending_decides_and_failures_are_said(tmp_path: Path) -> None:
    assert "a.json" in write_chat(chat(), tmp_path / "a.json")
    assert json.loads((tmp_path / "a.json").read_text("utf-8"))["title"] == "Title"
    write_chat(chat(), tmp_path / "a.md")
    assert (tmp_path / "a.md").read_text("utf-8").startswith("# Title")
    assert "not saved" in write_chat(chat(), tmp_path / "none" / "a.md")


def test_an_archive_holds_all_chats_under_names_of_their_own(tmp_path: Path) -> None:
    chats = [chat(), chat(), Chat(ChatInfo(title="TITLE"))]
    file = tmp_path / "all.zip"
    assert write_archive(chats, file, "You", "Answer") == 3
    with zipfile.ZipFile(file) as archive:
        names = [n.partition(" ")[2] for n in archive.namelist()]
        assert names == [
            "Title.md", "Title.json", "Title (2).md", "Title (2).json", "TITLE (3).md", "TITLE (3).json",
        ]  # fmt: skip
        texts = [m["text"] for m in json.loads(archive.read(archive.namelist()[3]))["messages"]]
    assert texts == ["질문", "old", "new"]
    assert [p.name for p in tmp_path.iterdir()] == ["all.zip"]


def test_an_archive_that_fails_leaves_the_former_one(tmp_path: Path) -> None:
    file = tmp_path / "all.zip"
    file.write_bytes(b"former")

    def chats() -> Iterator[Chat]:
        yield chat()
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_archive(chats(), file, "You", "Answer")
    assert file.read_bytes() == b"former"
    assert [p.name for p in tmp_path.iterdir()] == ["all.zip"]


def test_export(
    qtbot: QtBot, page: ChatPage, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask("question")
    target = tmp_path / "out.md"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(target), ""))
    qtbot.keyClick(page.composer.editor, Qt.Key.Key_E, CTRL)
    qtbot.waitUntil(target.exists)
    assert "Hello from the fake engine." in target.read_text("utf-8")
    first = page.session.chat.info.id
    page.new_chat()
    target.unlink()
    page.export(first)
    qtbot.waitUntil(target.exists)


def test_all_chats_are_exported_also_those_that_are_not_open(
    qtbot: QtBot, page: ChatPage, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "all.zip"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(target), ""))
    ask("first question")
    page.session.store.flush().result(10)
    page.session._opened.clear()  # as after a start
    page.new_chat()
    ask("second question")
    qtbot.keyClick(page.composer.editor, Qt.Key.Key_E, CTRL | SHIFT)
    qtbot.waitUntil(lambda: "saved as all.zip" in "".join(page.services.said))  # type: ignore[attr-defined]
    with zipfile.ZipFile(target) as archive:
        text = "".join(archive.read(n).decode() for n in archive.namelist())
    assert "first question" in text and "second question" in text
    target.parent.joinpath("all.zip").unlink()
    monkeypatch.setattr(
        QFileDialog, "getSaveFileName", lambda *a, **k: (str(tmp_path / "no" / "all.zip"), "")
    )
    page.export_all()
    qtbot.waitUntil(lambda: "was not saved" in page.services.said[-1])  # type: ignore[attr-defined]


def test_the_export_of_all_chats_can_be_stopped(
    qtbot: QtBot, page: ChatPage, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "all.zip"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *a, **k: (str(target), ""))
    ask("question")
    reached, go = threading.Event(), threading.Event()

    def slow(chat: Chat) -> str:
        reached.set()
        assert go.wait(10)
        return "{}"

    monkeypatch.setattr("app.chat.export.to_json", slow)
    for n in range(2):
        page.session.infos[str(n)] = ChatInfo(id=str(n))
    saving = export_all(page, page.services, page.session)
    assert saving is not None and reached.wait(10)
    qtbot.waitUntil(saving.isVisible)
    qtbot.mouseClick(saving.findChildren(QPushButton)[0], Qt.MouseButton.LeftButton)
    go.set()
    qtbot.waitUntil(lambda: "nothing was saved" in "".join(page.services.said))  # type: ignore[attr-defined]
    assert not list(tmp_path.glob("all.zip*"))
