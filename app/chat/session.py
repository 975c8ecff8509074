"""The chats of the application: which are there, which is open, and what is being answered.

A session outlives the page that shows it, so an answer goes on while the page is built anew.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from functools import partial

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.chat.database import Problem
from app.chat.generation import Generation
from app.chat.later import Later
from app.chat.params import effective, overrides
from app.chat.store import ChatStore
from app.chat.tree import Chat, ChatInfo, Message, Role, State, request_messages, title_of
from app.page import Services
from engine.types import Event, Request

log = logging.getLogger(__name__)

SAVE_MS = 900
DRAFT_MS = 500
KEPT_CHATS = 30


class ChatSession(QObject):
    """Signals:
    chats_changed: the list of chats, or a row of it.
    opened(Chat, message id): a chat is open; go to the message if one is named.
    path_changed(chat id): other messages are on the active path.
    message_changed(chat id, message id): text, state or progress of a message.
    problem(Problem): something is wrong with the place where chats are kept.
    """

    chats_changed = Signal()
    opened = Signal(object, str)
    path_changed = Signal(str)
    message_changed = Signal(str, str)
    problem = Signal(object)

    def __init__(self, services: Services, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._controller = services.controller
        self.infos: dict[str, ChatInfo] = {}
        self.chat = Chat(self._blank())
        self.last_problem: Problem | None = None
        self._fresh_draft = ""
        self._usual_prompt = services.settings.value.system_prompt
        self._opened: dict[str, Chat] = {}
        self._running: dict[str, Generation] = {}
        self._dirty_drafts: set[str] = set()
        self._wanted = ""
        self._later = Later(self)
        self._save_timer = QTimer(self, interval=SAVE_MS)
        self._save_timer.timeout.connect(self._save_running)
        self._draft_timer = QTimer(self, interval=DRAFT_MS, singleShot=True)
        self._draft_timer.timeout.connect(self.save_drafts)
        self.problem.connect(self._on_problem)
        self.store = ChatStore(services.chat_store, self.problem.emit)
        self._later.when(self.store.chats(), self._on_chats)
        self._later.when(self.store.memo("draft"), self._on_fresh_draft)
        services.settings.changed.connect(self._on_settings)

    @classmethod
    def of(cls, services: Services) -> ChatSession:
        """The one session of the application, made on first use."""
        found = services.controller.findChild(cls)
        return found if found is not None else cls(services, services.controller)

    # Chats

    def _blank(self) -> ChatInfo:
        return ChatInfo(system_prompt=self._services.settings.value.system_prompt)

    def _on_chats(self, infos: list[ChatInfo]) -> None:
        # What was begun before the list came is newer than what it says.
        self.infos = {i.id: i for i in infos} | self.infos
        self.chats_changed.emit()

    def _on_fresh_draft(self, text: str) -> None:
        self._fresh_draft = text + self._fresh_draft  # Somebody may have typed on before it came.
        if self.is_fresh and text:
            self.opened.emit(self.chat, "")

    @property
    def is_fresh(self) -> bool:
        """Whether the open chat has no messages yet; it is not in the list then."""
        return self.chat.info.id not in self.infos

    def new_chat(self, draft: str | None = None) -> None:
        """Open an empty chat; what was typed into the last empty one is still there."""
        self.save_drafts()
        self._wanted = ""
        if draft is not None:
            self._fresh_draft = draft
        if not self.is_fresh or draft is not None:
            self.chat = Chat(self._blank())
        self.opened.emit(self.chat, "")

    def held(self) -> dict[str, Chat]:
        """Copies of the listed chats that are in memory, where they may be newer than what is saved."""
        return {i: chat.copy() for i, chat in self._opened.items() if i in self.infos}

    def open(self, chat_id: str, message_id: str = "") -> None:
        """Open a chat; its messages come a moment later."""
        self.save_drafts()
        self._wanted = chat_id
        known = self._opened.get(chat_id)
        if known is not None:
            self._show(known, message_id)
        else:
            self._later.when(
                self.store.load(chat_id), lambda chat: self._on_loaded(chat_id, chat, message_id)
            )

    def _on_loaded(self, chat_id: str, chat: Chat | None, message_id: str) -> None:
        if chat is not None and self._wanted == chat_id:
            info = self.infos.setdefault(chat_id, chat.info)
            info.leaf = info.leaf or chat.info.leaf
            chat.info = info
            self._show(chat, message_id)

    def _keep(self, chat: Chat) -> None:
        """Hold on to a chat that was used; while saving fails, memory is the only place it is in."""
        self._opened.pop(chat.info.id, None)
        self._opened[chat.info.id] = chat
        for chat_id in list(self._opened)[:-KEPT_CHATS]:
            if chat_id not in self._running and not self.store.unsaved:
                del self._opened[chat_id]

    def _show(self, chat: Chat, message_id: str) -> None:
        self._keep(chat)
        self.chat = chat
        if message_id in chat.messages and message_id not in {m.id for m in chat.path()}:
            chat.select(message_id)
            self.store.save_chat(chat.info)
        self.opened.emit(chat, message_id)

    def rename(self, chat_id: str, title: str) -> None:
        """Give a chat another title; an empty one changes nothing."""
        info = self.infos[chat_id]
        if title.strip() and title.strip() != info.title:
            info.title = title.strip()
            self._save_info(info)

    def pin(self, chat_id: str, pinned: bool) -> None:
        """Keep a chat at the top of the list, or not."""
        self.infos[chat_id].pinned = pinned
        self._save_info(self.infos[chat_id])

    def delete(self, chat_id: str) -> Callable[[], None]:
        """Take a chat out of the list; what is returned brings it back."""
        info = self.infos.pop(chat_id)
        opened = self._opened.pop(chat_id, None)
        self._cancel(chat_id)
        self.store.delete_chat(chat_id)
        was_open = self.chat.info.id == chat_id
        if was_open:
            self.chat = Chat(self._blank())
            self.opened.emit(self.chat, "")
        self.chats_changed.emit()

        def undo() -> None:
            if chat_id in self.infos:
                return
            self.infos[chat_id] = info
            self.store.restore_chat(chat_id)
            self.chats_changed.emit()
            if opened is not None:
                self._keep(opened)
            if opened is not None and was_open:
                self.save_drafts()
                self._wanted = chat_id
                self._show(opened, "")

        return undo

    def set_system_prompt(self, text: str) -> None:
        """What is sent ahead of the open chat."""
        self.chat.info.system_prompt = text
        if not self.is_fresh:
            self._save_info(self.chat.info)

    def _save_info(self, info: ChatInfo) -> None:
        self.store.save_chat(info)
        self.chats_changed.emit()

    @Slot()
    def _on_settings(self) -> None:
        """A new chat that still has the usual system prompt takes the new one."""
        usual = self._services.settings.value.system_prompt
        if self.is_fresh and self.chat.info.system_prompt == self._usual_prompt:
            self.chat.info.system_prompt = usual
        self._usual_prompt = usual

    # Drafts

    @property
    def draft(self) -> str:
        """What is typed into the open chat and not sent."""
        return self._fresh_draft if self.is_fresh else self.chat.info.draft

    def set_draft(self, text: str) -> None:
        """Remember what is typed; saved a moment later."""
        if text == self.draft:
            return
        if self.is_fresh:
            self._fresh_draft = text
            self._dirty_drafts.add("")
        else:
            self.chat.info.draft = text
            self._dirty_drafts.add(self.chat.info.id)
        self._draft_timer.start()

    @Slot()
    def save_drafts(self) -> None:
        """Save what is typed now."""
        for chat_id in self._dirty_drafts:
            if not chat_id:
                self.store.save_memo("draft", self._fresh_draft)
            elif chat_id in self.infos:
                self.store.save_chat(self.infos[chat_id])
        self._dirty_drafts.clear()

    # Messages

    def send(self, text: str) -> None:
        """Add a message at the end of the open chat and answer it."""
        self.set_draft("")
        self._ask(self.chat.info.leaf, text)

    def edit(self, message_id: str, text: str) -> None:
        """Answer a new version of a message; the old one and all that followed it stay."""
        self._ask(self.chat.messages[message_id].parent, text)

    def _ask(self, parent: str | None, text: str) -> None:
        chat = self.chat
        question = chat.add(Message(chat.info.id, parent, Role.USER, text))
        if not chat.info.title:
            chat.info.title = title_of(text)
        self.infos[chat.info.id] = chat.info
        self._keep(chat)
        self.store.save_chat(chat.info)
        self.store.save_message(question)
        self._answer(chat, question.id)

    def regenerate(self, message_id: str) -> None:
        """Answer again beside an answer, or below a question; a failed empty answer is used again."""
        chat = self.chat
        message = chat.messages[message_id]
        if message.role is Role.USER:
            self._answer(chat, message.id)
        elif message.state is State.FAILED and not message.text:
            self._answer(chat, message.parent, message)
        else:
            self._answer(chat, message.parent)

    def step(self, message_id: str, by: int) -> None:
        """Show another version of a message and what followed it."""
        if self.chat.step(message_id, by) is not None:
            self.store.save_chat(self.chat.info)
            self.path_changed.emit(self.chat.info.id)

    def _answer(self, chat: Chat, parent: str | None, again: Message | None = None) -> None:
        if chat.info.id in self._running:
            return
        model = self._controller.model
        name = model.name if model is not None else ""
        if again is None:
            again = chat.add(Message(chat.info.id, parent, Role.ASSISTANT, state=State.WRITING))
        again.state, again.error, again.error_kind, again.usage = State.WRITING, "", "", {}
        again.model = name
        chat.info.updated = time.time()
        generation = Generation(chat, again)
        self._running[chat.info.id] = generation
        request = Request(messages=request_messages(chat.path(parent), chat.info.system_prompt))
        if model is not None:
            settings = self._services.settings.value
            request = Request(messages=request.messages, sampling=effective(settings, model))
            chat.info.model, chat.info.model_name = str(model.path), name
            chat.info.sampling = overrides(settings, model)
        self.store.save_message(again)
        self.store.save_chat(chat.info)
        self.path_changed.emit(chat.info.id)
        # Apart from the rest: to show a message and ask is work enough for one moment.
        QTimer.singleShot(0, self, self.chats_changed.emit)
        generation.request_id = self._controller.submit(
            request, partial(self._on_events, generation)
        )
        self._save_timer.start()

    def generation(self, chat_id: str) -> Generation | None:
        """The answer that is being written in a chat."""
        return self._running.get(chat_id)

    @property
    def writing(self) -> Collection[str]:
        """The chats in which an answer is being written."""
        return self._running.keys()

    def stop(self) -> None:
        """End the answer in the open chat; what is written stays."""
        self._cancel(self.chat.info.id)

    def _cancel(self, chat_id: str) -> None:
        if (generation := self._running.get(chat_id)) is not None:
            self._controller.cancel(generation.request_id)

    def _on_events(self, generation: Generation, events: list[Event]) -> None:
        generation.rate = self._controller.metrics.decode_rate or None
        for event in events:
            generation.take(event)
        message = generation.message
        if message.state is not State.WRITING:
            del self._running[message.chat]
            if not self._running:
                self._save_timer.stop()
            self.store.save_message(message)
            self._save_info(generation.chat.info)
        self.message_changed.emit(message.chat, message.id)

    @Slot()
    def _save_running(self) -> None:
        for generation in self._running.values():
            if generation.unsaved:
                generation.unsaved = False
                self.store.save_message(generation.message)

    def save_all(self) -> None:
        """Save what is typed and what is written so far."""
        self.save_drafts()
        self._save_running()

    @Slot(object)
    def _on_problem(self, problem: Problem) -> None:
        log.warning("Chats: %s (%s) %s", problem.kind, problem.path, problem.detail)
        self.last_problem = problem
        if problem.kind == "damaged":
            # The new database knows nothing yet of what is still in memory; the rest is set aside.
            self.infos = {i: info for i, info in self.infos.items() if i in self._opened}
            for chat in self._opened.values():
                self.store.save_chat(chat.info)
                for message in chat.messages.values():
                    self.store.save_message(message)
            self.chats_changed.emit()
