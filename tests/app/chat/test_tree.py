"""The tree of messages: branches, titles, and what is sent to the model."""

from __future__ import annotations

import pytest

from app.chat.tree import Chat, ChatInfo, Message, Role, State, request_messages, title_of


def say(chat: Chat, role: Role, text: str, parent: str | None = "leaf", **kw: object) -> Message:
    under = chat.info.leaf if parent == "leaf" else parent
    return chat.add(Message(chat.info.id, under, role, text, **kw))  # type: ignore[arg-type]


@pytest.fixture
def chat() -> Chat:
    return Chat(ChatInfo())


def test_versions_branch_and_come_back(chat: Chat) -> None:
    question = say(chat, Role.USER, "one")
    first = say(chat, Role.ASSISTANT, "a")
    more = say(chat, Role.USER, "two")
    second = say(chat, Role.ASSISTANT, "b", parent=question.id)
    assert [m.text for m in chat.path()] == ["one", "b"]
    assert chat.siblings(second.id) == [first.id, second.id]
    assert chat.step(second.id, -1) == first.id
    assert chat.path()[-1] is more
    assert chat.info.n_messages == 3
    assert chat.step(first.id, -1) is None
    assert chat.step(first.id, 1) == second.id


def test_edited_first_message_is_a_sibling_root(chat: Chat) -> None:
    old = say(chat, Role.USER, "one")
    say(chat, Role.ASSISTANT, "a")
    new = say(chat, Role.USER, "one, better", parent=None)
    assert chat.siblings(new.id) == [old.id, new.id]
    assert len(chat.messages) == 3


def test_unknown_leaf_falls_back_to_the_newest_path() -> None:
    messages = [
        Message("c", None, Role.USER, "q", id="1"),
        Message("c", "1", Role.ASSISTANT, "a", id="2"),
    ]
    assert [m.id for m in Chat(ChatInfo(id="c", leaf="gone"), messages).path()] == ["1", "2"]


def test_a_ring_of_parents_ends() -> None:
    messages = [Message("c", "2", Role.USER, id="1"), Message("c", "1", Role.ASSISTANT, id="2")]
    assert len(Chat(ChatInfo(id="c", leaf="1"), messages).path()) == 2


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Hello there", "Hello there"),
        ("\n\n  # A heading\nmore", "A heading"),
        ("word " * 40, "word " * 11 + "word…"),
        ("x" * 100, "x" * 60 + "…"),
        ("한국어로 답해 줘", "한국어로 답해 줘"),
        ("", ""),
    ],
)
def test_title(text: str, title: str) -> None:
    assert title_of(text) == title


def test_what_is_sent_has_no_thinking_and_no_two_turns_of_one_role(chat: Chat) -> None:
    say(chat, Role.USER, "one")
    say(chat, Role.ASSISTANT, "", state=State.FAILED)
    say(chat, Role.USER, "again")
    say(chat, Role.ASSISTANT, "<think>hidden</think>\nshown")
    say(chat, Role.USER, "three")
    assert request_messages(chat.path(), "Be brief.") == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "one\n\nagain"},
        {"role": "assistant", "content": "shown"},
        {"role": "user", "content": "three"},
    ]
    assert request_messages(chat.path()[:1], "  ")[0]["role"] == "user"
