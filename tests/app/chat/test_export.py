"""Chats as files."""

from __future__ import annotations

import json
from pathlib import Path

from app.chat.export import file_name, to_json, to_markdown
from app.chat.exporter import write_chat
from app.chat.tree import Chat, ChatInfo, Message, Role


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
