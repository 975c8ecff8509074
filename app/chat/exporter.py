"""Asks where chats are to be saved, and saves them there beside the window."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

from PySide6.QtCore import QCoreApplication, Signal
from PySide6.QtWidgets import QProgressDialog, QWidget

from app.chat.export import file_name, to_json, to_markdown, write_archive
from app.chat.later import Later
from app.chat.session import ChatSession
from app.chat.tree import Chat
from app.choose import choose_new_file
from app.i18n import told
from app.page import Services

translate = QCoreApplication.translate

_SHOW_AFTER_MS = 500


def export_chat(parent: QWidget, services: Services, session: ChatSession, chat_id: str) -> None:
    """Ask for a file and write the chat; .json holds all branches, anything else is Markdown."""
    info = session.infos.get(chat_id)
    if info is None:
        return
    filters = translate("chat", "Markdown (*.md);;JSON with all versions (*.json)")
    title = translate("chat", "Export chat")
    if (path := choose_new_file(parent, title, file_name(info.title) + ".md", filters)) is None:
        return
    held = session.held().get(chat_id)

    def write() -> str:
        chat = held or session.store.load(chat_id).result()
        return write_chat(chat, path) if chat is not None else ""

    Later(session).when(_beside(write), lambda said: services.toast(said) if said else None)


def write_chat(chat: Chat, path: Path) -> str:
    """Write a chat's file; returns what to tell the user. A failure leaves the former file."""
    you, answer = translate("chat", "You"), translate("chat", "Answer")
    text = to_json(chat) if path.suffix.lower() == ".json" else to_markdown(chat, you, answer)
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8", errors="replace")
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        return _not_saved(path, error)
    return translate("chat", "Saved as {name}").format(name=path.name)


class Saving(QProgressDialog):
    """How many of `total` chats are saved, with Cancel; shown only when it takes a while.

    Signals:
        saved: so many are; also from another thread.
    """

    saved = Signal(int)

    def __init__(self, total: int, parent: QWidget) -> None:
        text = translate("chat", "Saving %n chat(s)…", None, total)
        super().__init__(text, translate("chat", "Cancel"), 0, total, parent)
        self.setWindowTitle(translate("chat", "Export all chats"))
        self.setMinimumDuration(_SHOW_AFTER_MS)
        self.stopped = threading.Event()
        self.canceled.connect(self.stopped.set)
        self.saved.connect(self.setValue)
        self.setValue(0)  # begins the wait


def export_all(parent: QWidget, services: Services, session: ChatSession) -> Saving | None:
    """Ask for a file and write all chats into it as a ZIP; the window goes on meanwhile."""
    title = translate("chat", "Export all chats")
    if (path := choose_new_file(parent, title, "lucebox-chats.zip", "ZIP (*.zip)")) is None:
        return None
    you, answer = translate("chat", "You"), translate("chat", "Answer")
    held, ids, store = session.held(), list(session.infos), session.store
    saving = Saving(len(session.infos), parent.window())

    def chats() -> Iterator[Chat]:
        for n, chat_id in enumerate(ids):
            if saving.stopped.is_set():
                raise _Stopped
            chat = held.pop(chat_id, None) or store.load(chat_id).result()
            if chat is not None:
                yield chat
            saving.saved.emit(n + 1)

    def work() -> str:
        try:
            count = write_archive(chats(), path, you, answer)
        except _Stopped:
            return translate("chat", "Stopped; nothing was saved.")
        except OSError as error:
            return _not_saved(path, error)
        text = translate("chat", "%n chat(s) saved as {name}", None, count)
        return text.format(name=path.name)

    def tell(said: str) -> None:
        saving.close()
        saving.deleteLater()
        services.toast(said)

    Later(session).when(_beside(work), tell)
    return saving


class _Stopped(Exception):
    """The user stopped it."""


def _not_saved(path: Path, error: OSError) -> str:
    why = told(error.strerror or str(error))
    return translate("chat", "{name} was not saved: {why}.").format(name=path.name, why=why)


def _beside(work: Callable[[], str]) -> Future[str]:
    """The result of work on a thread of its own: a slow disk does not hold up the window."""
    done = Future[str]()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name="export", daemon=True).start()
    return done
