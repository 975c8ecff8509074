"""Asks where a chat is to be saved, and saves it there."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QFileDialog, QWidget

from app.chat.export import file_name, to_json, to_markdown
from app.chat.later import Later
from app.chat.session import ChatSession
from app.chat.tree import Chat
from app.page import Services


def export_chat(parent: QWidget, services: Services, session: ChatSession, chat_id: str) -> None:
    """Ask for a file and write the chat; .json holds all branches, anything else is Markdown."""
    translate = QCoreApplication.translate
    info = session.infos.get(chat_id)
    if info is None:
        return
    filters = translate("chat", "Markdown (*.md);;JSON with all versions (*.json)")
    name, _ = QFileDialog.getSaveFileName(
        parent, translate("chat", "Export chat"), file_name(info.title) + ".md", filters
    )
    if not name:
        return

    def write(chat: Chat | None) -> None:
        if chat is not None:
            services.toast(write_chat(chat, Path(name)))

    if session.chat.info.id == chat_id:
        write(session.chat)
    else:
        Later(parent).when(session.store.load(chat_id), write)


def write_chat(chat: Chat, path: Path) -> str:
    """Write a chat's file; returns what to tell the user."""
    translate = QCoreApplication.translate
    you, answer = translate("chat", "You"), translate("chat", "Answer")
    text = to_json(chat) if path.suffix.lower() == ".json" else to_markdown(chat, you, answer)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        why = error.strerror or str(error)
        return translate("chat", "{name} was not saved: {why}.").format(name=path.name, why=why)
    return translate("chat", "Saved as {name}").format(name=path.name)
