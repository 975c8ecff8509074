"""A chat in memory: a tree of messages of which one path, root to leaf, is shown and sent."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from engine.reasoning import split_thinking

TITLE_LENGTH = 60


class Role(StrEnum):
    """Who wrote a message."""

    USER = "user"
    ASSISTANT = "assistant"


class State(StrEnum):
    """How far a message is; all but `WRITING` are final."""

    WRITING = "writing"
    DONE = "done"
    STOPPED = "stopped"
    LENGTH = "length"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


def new_id() -> str:
    """An id that no other chat or message has."""
    return uuid.uuid4().hex


@dataclass(slots=True)
class Message:
    """One message; `usage` holds what `engine.types.Usage` names, `context_full`, and `drafted`."""

    chat: str
    parent: str | None
    role: Role
    text: str = ""
    state: State = State.DONE
    model: str = ""
    error: str = ""
    error_kind: str = ""
    usage: dict[str, Any] = field(default_factory=dict)
    created: float = field(default_factory=time.time)
    id: str = field(default_factory=new_id)


@dataclass(slots=True)
class ChatInfo:
    """What the chat list shows and a chat remembers; `model` is a path, `n_messages` of the active path."""

    title: str = ""
    pinned: bool = False
    system_prompt: str = ""
    model: str = ""
    model_name: str = ""
    sampling: dict[str, Any] = field(default_factory=dict)
    leaf: str | None = None
    draft: str = ""
    n_messages: int = 0
    created: float = field(default_factory=time.time)
    updated: float = field(default_factory=time.time)
    id: str = field(default_factory=new_id)


class Chat:
    """The messages of one chat and the branch that is chosen at each fork."""

    def __init__(self, info: ChatInfo, messages: Iterable[Message] = ()) -> None:
        self.info = info
        self.messages: dict[str, Message] = {}
        self._children: dict[str | None, list[str]] = {}
        for message in messages:
            self._insert(message)
        if info.leaf not in self.messages:
            roots = self._children.get(None)
            info.leaf = self._deepest(roots[-1]) if roots else None

    def copy(self) -> Chat:
        """The same chat as it is now, for another thread."""
        messages = [replace(m, usage=dict(m.usage)) for m in self.messages.values()]
        return Chat(replace(self.info, sampling=dict(self.info.sampling)), messages)

    def _insert(self, message: Message) -> None:
        self.messages[message.id] = message
        self._children.setdefault(message.parent, []).append(message.id)

    def add(self, message: Message) -> Message:
        """Put a message under its parent and make it the end of the active path."""
        self._insert(message)
        self._choose(message.id)
        self.info.updated = message.created
        return message

    def _choose(self, leaf: str | None) -> None:
        self.info.leaf = leaf
        self.info.n_messages = sum(1 for _ in self._up(leaf))

    def _up(self, leaf: str | None) -> Iterator[Message]:
        seen: set[str] = set()
        while leaf is not None and leaf in self.messages and leaf not in seen:
            seen.add(leaf)
            yield self.messages[leaf]
            leaf = self.messages[leaf].parent

    def path(self, leaf: str | None = None) -> list[Message]:
        """The messages from the root to `leaf`, by default to the active one."""
        return list(self._up(leaf or self.info.leaf))[::-1]

    def siblings(self, message_id: str) -> list[str]:
        """The versions of a message, oldest first, itself among them."""
        return self._children[self.messages[message_id].parent]

    def children(self, message_id: str | None) -> list[str]:
        """The ids of what follows a message, oldest first."""
        return self._children.get(message_id, [])

    def _deepest(self, message_id: str) -> str:
        seen: set[str] = set()
        while (below := self.children(message_id)) and message_id not in seen:
            seen.add(message_id)
            message_id = below[-1]
        return message_id

    def select(self, message_id: str) -> None:
        """Make the active path go through a message, down to the newest leaf below it."""
        if message_id not in {m.id for m in self._up(self.info.leaf)}:
            self._choose(self._deepest(message_id))

    def step(self, message_id: str, by: int) -> str | None:
        """Go to the sibling `by` places away, if there is one, and return its id."""
        versions = self.siblings(message_id)
        at = versions.index(message_id) + by
        if not 0 <= at < len(versions):
            return None
        self.select(versions[at])
        return versions[at]


def title_of(text: str) -> str:
    """A chat's title from its first message: the first line with words, shortened at a space."""
    line = next((s for line in text.splitlines() if (s := line.strip("#>*`~- \t"))), "")
    line = " ".join(line.split())
    if len(line) <= TITLE_LENGTH:
        return line
    cut = (
        line[:TITLE_LENGTH].rsplit(" ", 1)[0] if " " in line[:TITLE_LENGTH] else line[:TITLE_LENGTH]
    )
    return cut.rstrip(" ,.;:") + "…"


def request_messages(path: Iterable[Message], system_prompt: str) -> list[dict[str, str]]:
    """Chat messages for the engine: thinking left out, empty answers dropped, equal roles joined.

    Templates of some models refuse two turns of one role in a row, which a stopped turn leaves behind.
    """
    messages = [{"role": "system", "content": system_prompt}] if system_prompt.strip() else []
    for message in path:
        text = message.text
        if message.role is Role.ASSISTANT:
            text = split_thinking(text).answer.strip()
        if not text.strip():
            continue
        if messages and messages[-1]["role"] == message.role:
            messages[-1]["content"] += "\n\n" + text
        else:
            messages.append({"role": str(message.role), "content": text})
    return messages
