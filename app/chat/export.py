"""Chats as files: Markdown to read, JSON with every branch to keep, all of them in one archive."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import zipfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from app.chat.tree import Chat, Role
from app.i18n import told

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
            parts.append(f"*{told(message.error)}*")
    return "\n\n".join(parts) + "\n"


def to_json(chat: Chat) -> str:
    """Everything of a chat, all branches included; times in ISO 8601, UTC."""
    path = {m.id for m in chat.path()}
    info = _plain(chat.info) | {"format": FORMAT}
    info.pop("draft")
    info["messages"] = [_plain(m) | {"active": m.id in path} for m in chat.messages.values()]
    return json.dumps(info, ensure_ascii=False, indent=2) + "\n"


def write_archive(chats: Iterable[Chat], path: Path, you: str, answer: str) -> int:
    """Write chats into one ZIP, each as Markdown and as JSON, and return how many there were.

    The file appears when it is whole. Raises `OSError`.
    """
    part = path.with_name(path.name + ".part")
    names: set[str] = set()
    count = 0
    try:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for chat in chats:
                day = datetime.fromtimestamp(chat.info.created).strftime("%Y-%m-%d")
                name = _free(f"{day} {file_name(chat.info.title)}", names)
                texts = {"md": to_markdown(chat, you, answer), "json": to_json(chat)}
                for ending, text in texts.items():
                    archive.writestr(f"{name}.{ending}", text.encode("utf-8", "replace"))
                count += 1
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    return count


def _free(name: str, taken: set[str]) -> str:
    """The name, or it with a number where another file has it, also on systems that ignore case."""
    tries = (name if n == 1 else f"{name} ({n})" for n in itertools.count(1))
    found = next(t for t in tries if t.casefold() not in taken)
    taken.add(found.casefold())
    return found


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
