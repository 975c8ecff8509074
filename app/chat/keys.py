"""The keys of the chat page, also listed in the command palette."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QAction, QKeySequence

from app.chat.tree import Role

if TYPE_CHECKING:
    from app.chat.page import ChatPage


class ChatKeys(QObject):
    """Adds the page's actions; they work while the focus is inside the page.

    What works from every page (new chat, model picker, search) is the window's.
    """

    def __init__(self, page: ChatPage) -> None:
        super().__init__(page)
        self._page = page
        self.actions: dict[str, QAction] = {}
        self._add("find", self.tr("Find in this chat"), "Ctrl+F", page.find_bar.begin)
        self._add("again", self.tr("Answer again"), "Ctrl+R", self._again)
        self._add("copy", self.tr("Copy the last answer"), "Ctrl+Shift+C", self._copy)
        self._add("export", self.tr("Export this chat"), "Ctrl+E", self._export)
        self._add("export_all", self.tr("Export all chats"), "Ctrl+Shift+E", page.export_all)
        self._add("previous", self.tr("Previous version"), "Alt+Left", lambda: self._step(-1))
        self._add("next", self.tr("Next version"), "Alt+Right", lambda: self._step(1))
        self._add("delete", self.tr("Delete this chat"), "Ctrl+Shift+Del", self._delete)
        self._add("undo", self.tr("Undo deleting a chat"), "Ctrl+Z", page.list.undo)
        self._add("stop", self.tr("Stop the answer"), "Esc", page.session.stop)
        self.set_writing(False)

    def _add(self, name: str, text: str, keys: str, call: Callable[[], object]) -> None:
        action = QAction(text, self._page)
        action.setShortcut(QKeySequence(keys))
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(lambda _checked=False: call())
        self._page.addAction(action)
        self.actions[name] = self._page.services.actions.add(action)

    def set_writing(self, writing: bool) -> None:
        """Esc stops an answer only while there is one; else it is left to whatever has the focus."""
        self.actions["stop"].setEnabled(writing)

    def _again(self) -> None:
        path = self._page.session.chat.path()
        if path:
            self._page.do("regenerate", path[-1].id)

    def _copy(self) -> None:
        answers = [m for m in self._page.session.chat.path() if m.role is Role.ASSISTANT]
        if answers:
            self._page.do("copy", answers[-1].id)

    def _export(self) -> None:
        self._page.export(self._page.session.chat.info.id)

    def _delete(self) -> None:
        self._page.list.delete(self._page.session.chat.info.id)

    def _step(self, by: int) -> None:
        """At the message that the keyboard is at, else at the last one that has versions."""
        chat = self._page.session.chat
        current = chat.messages.get(self._page.view.current)
        many = [m for m in chat.path() if len(chat.siblings(m.id)) > 1]
        chosen = current if current in many else many[-1] if many else None
        if chosen is not None:
            self._page.session.step(chosen.id, by)
