"""Asks where chats are to be saved, and saves them there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from PySide6.QtCore import QCoreApplication, QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget

from app.chat.export import file_name, to_json, to_markdown, write_archive
from app.chat.later import Later
from app.chat.session import ChatSession
from app.chat.tree import Chat
from app.page import Services

translate = QCoreApplication.translate


def export_chat(parent: QWidget, services: Services, session: ChatSession, chat_id: str) -> None:
    """Ask for a file and write the chat; .json holds all branches, anything else is Markdown."""
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
    you, answer = translate("chat", "You"), translate("chat", "Answer")
    text = to_json(chat) if path.suffix.lower() == ".json" else to_markdown(chat, you, answer)
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        why = error.strerror or str(error)
        return translate("chat", "{name} was not saved: {why}.").format(name=path.name, why=why)
    return translate("chat", "Saved as {name}").format(name=path.name)


def export_all(parent: QWidget, services: Services, session: ChatSession) -> None:
    """Ask for a file and write all chats into it as a ZIP; the window goes on meanwhile."""
    documents = QStandardPaths.StandardLocation.DocumentsLocation
    suggested = Path(QStandardPaths.writableLocation(documents)) / "lucebox-chats.zip"
    name, _ = QFileDialog.getSaveFileName(
        parent, translate("chat", "Export all chats"), str(suggested), "ZIP (*.zip)"
    )
    if not name:
        return
    services.toast(translate("chat", "Saving %n chat(s)…", None, len(session.infos)))
    you, answer = translate("chat", "You"), translate("chat", "Answer")
    held, ids, store = session.held(), list(session.infos), session.store
    path, done = Path(name), Future[str]()

    def chats() -> Iterator[Chat]:
        for chat_id in ids:
            chat = held.pop(chat_id, None) or store.load(chat_id).result()
            if chat is not None:
                yield chat

    def work() -> None:
        try:
            count = write_archive(chats(), path, you, answer)
        except OSError as error:
            why = error.strerror or str(error)
            text = translate("chat", "{name} was not saved: {why}.")
            done.set_result(text.format(name=path.name, why=why))
        except BaseException as error:
            done.set_exception(error)
        else:
            text = translate("chat", "%n chat(s) saved as {name}", None, count)
            done.set_result(text.format(name=path.name))

    Later(session).when(done, services.toast)
    threading.Thread(target=work, name="export", daemon=True).start()
