"""Chats as files: Markdown to read, JSON with every branch to keep."""

from __future__ import annotations

import dataclasses
import json
import re
from datetime import UTC, datetime
from typing import Any

from app.chat.tree import Chat, Role

FORMAT = 1


def to_markdown(chat: Chat, you: str = "You", answer: str = "Answer") -> str:
    """The active path for reading."""
    parts = [f"# {chat.info.title}"]
    if chat.info.system_prompt.strip():
        parts.append("\n".join(f"> {line}" for line in chat.info.system_prompt.splitlines()))
    for message in chat.path():
        who = you if message.role is Role.USER else message.model or answer
        parts.append(f"## {who}\n\n{message.text.strip()}")
        if message.error:
            parts.append(f"*{message.error}*")
    return "\n\n".join(parts) + "\n"


def to_json(chat: Chat) -> str:
    """Everything of a chat, all branches included; times in ISO 8601, UTC."""
    path = {m.id for m in chat.path()}
    info = _plain(chat.info) | {"format": FORMAT}
    info.pop("draft")
    info["messages"] = [_plain(m) | {"active": m.id in path} for m in chat.messages.values()]
    return json.dumps(info, ensure_ascii=False, indent=2) + "\n"


def file_name(title: str) -> str:
    """A file name, without ending, that every system takes."""
    name = re.sub(r'[\x00-\x1f<>:"/\\|?*]+', " ", title)
    return " ".join(name.split()).strip(". ")[:80] or "chat"


def _plain(value: Any) -> dict[str, Any]:
    found = dataclasses.asdict(value)
    for name in ("created", "updated"):
        if name in found:
            found[name] = datetime.fromtimestamp(found[name], UTC).isoformat(timespec="seconds")
    return found
