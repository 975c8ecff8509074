"""The chat page: list of chats, header, messages, message box."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import TimeoutError as Late
from pathlib import Path
from typing import Any

import shiboken6
from PySide6.QtCore import QPoint, QSize, QTimer, Slot
from PySide6.QtGui import (
    QAccessible,
    QAccessibleAnnouncementEvent,
    QGuiApplication,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QStackedLayout, QVBoxLayout, QWidget

from app.chat.attach import MAX_BYTES, Refused, read_text
from app.chat.chat_list import ChatList
from app.chat.composer import Composer
from app.chat.database import Problem, ProblemKind
from app.chat.empty import EmptyChat
from app.chat.entry import Shown
from app.chat.find import FindBar
from app.chat.header import ChatHeader
from app.chat.keys import ChatKeys
from app.chat.popover import Popover
from app.chat.prompt_panel import PromptPanel
from app.chat.row import SPOKEN_LENGTH
from app.chat.sampling_panel import SamplingPanel
from app.chat.search import terms_of
from app.chat.session import ChatSession
from app.chat.tokens import TokenCounter
from app.chat.tree import Chat, Message, Role, State
from app.chat.view import MessageView
from app.chat.words import number, problem_text, refusal_text
from app.choose import choose_files
from app.i18n import told
from app.inspector import Inspector
from app.models.loading import LoadPanel
from app.models.opener import opener_of
from app.page import Page, Services
from app.theme import theme
from app.widgets import Banner, Note
from engine.reasoning import split_thinking

COUNT_FROM = 400
CLOSE_S = 1.0
# Below this width of the page the list of chats makes room for the messages.
NARROW = 880


class ChatPage(Page):
    """Shows the session's open chat and turns what the user does into calls of the session."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self._note: Note | None = None
        self._inspector: QWidget | None = None
        self._popovers: dict[str, Popover] = {}
        self._stale: set[str] = set()
        self._whole = False

    def build(self) -> Iterator[None]:
        whole = QHBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        self.session = ChatSession.of(self.services)
        self.list = ChatList(self.services, self.session)
        whole.addWidget(self.list)
        self._fit_width()
        yield
        centre = QVBoxLayout()
        centre.setSpacing(0)
        whole.addLayout(centre, 1)
        self.header = ChatHeader(self.services)
        centre.addWidget(self.header)
        yield
        if self.services.library is not None:
            panel = LoadPanel(self.services, opener_of(self.services))
            panel.closed.connect(self.focus_first)
            centre.addWidget(panel)
        self._notes = QVBoxLayout()
        self._notes.setContentsMargins(24, 0, 24, 0)
        centre.addLayout(self._notes)
        yield
        self.view = MessageView()
        yield
        self.find_bar = FindBar(self.view)
        centre.addWidget(self.find_bar)
        yield
        self.empty = EmptyChat(self)
        self._stack = QStackedLayout()
        self._stack.addWidget(self.empty)
        self._stack.addWidget(self.view)
        centre.addLayout(self._stack, 1)
        yield
        self.composer = Composer()
        yield
        box = QHBoxLayout()
        box.setContentsMargins(24, 8, 24, 20)
        box.addStretch(1)
        box.addWidget(self.composer, 1000)
        box.addStretch(1)
        centre.addLayout(box)
        yield
        self._tokens = TokenCounter(self.services.controller, self._on_count, self)
        self.keys = ChatKeys(self)
        self._whole = True
        self._connect()
        self._fit()
        self._fit_width()
        if self.session.last_problem is not None:
            self._on_problem(self.session.last_problem)
        self._on_opened(self.session.chat, "")
        yield
        inspector = Inspector(self.services)
        yield
        yield from inspector.build()
        self._inspector = inspector

    def _connect(self) -> None:
        session, composer = self.session, self.composer
        session.opened.connect(self._on_opened)
        session.path_changed.connect(self._on_path)
        session.message_changed.connect(self._on_message)
        session.problem.connect(self._on_problem)
        # The rate beside an answer is read from the engine only while somebody watches.
        self.services.controller.watch_metrics(self)
        self.services.controller.state_changed.connect(self._update_mode)
        self.services.controller.model_changed.connect(self._update_mode)
        self.view.wanted.connect(self.do)
        self.header.chats.clicked.connect(self._on_chats)
        self.header.mark_in(self.view)
        self.empty.chosen.connect(self._on_starter)
        self.list.left.connect(self.focus_first)
        self.list.export_wanted.connect(self.export)
        theme().changed.connect(self._fit)
        composer.sent.connect(self._on_sent)
        composer.stopped.connect(session.stop)
        composer.edit_last_wanted.connect(self.edit_last)
        composer.files.connect(self.attach)
        composer.action.connect(self.header.pick)
        composer.changed.connect(self._on_typed)
        composer.attach.clicked.connect(self._on_attach)
        composer.tune.clicked.connect(self._on_tune)
        composer.prompt.clicked.connect(self._on_prompt)

    # Page

    def focus_first(self) -> None:
        self.composer.editor.setFocus()

    def inspector(self) -> QWidget | None:
        return self._inspector

    def open(self, **kw: Any) -> None:
        """`new=True`, `pick=True`, `search=True`, `chat=id`, `attach=[paths]`, `type=text`, or `memory()`."""
        if kw.get("new"):
            self.new_chat()
        if "chat" in kw:
            self.session.open(kw["chat"])
        if "attach" in kw:
            self.attach([Path(p) for p in kw["attach"]])
        if "type" in kw:
            self.composer.editor.insertPlainText(kw["type"])
        if kw.get("search"):
            self.list.focus_search()
        if kw.get("pick"):
            self.header.pick()
        if kw.get("query"):
            self.list.search.setText(kw["query"])
        if kw.get("editing") in self.session.chat.messages:
            self.composer.begin_edit(kw["editing"], kw["typed"])
        if "reading" in kw:
            # Where it stands is known once the page has its size.
            QTimer.singleShot(0, self, lambda: self._read_on(*kw["reading"]))

    def memory(self) -> dict[str, Any]:
        found = {
            "query": self.list.search.text(),
            "editing": self.composer.editing,
            "typed": self.composer.text,
        }
        top = self.view.row_at(QPoint(0, 0))
        if top is None or top[1].entry is None or self.view.pinned:
            return found
        return found | {"reading": (top[1].entry.message.id, top[1].y())}

    def _read_on(self, message_id: str, top: int) -> None:
        """Scroll so that a message begins at this height of the view."""
        self.view.show_message(message_id, focus=False)
        rows = self.view.selection.rows
        for index, row in self.view.rows():
            if index == rows.get(message_id):
                bar = self.view.verticalScrollBar()
                bar.setValue(bar.value() + row.y() - top)

    def can_close(self) -> bool:
        self.session.set_draft(self.composer.kept_text())
        self.session.save_all()
        with contextlib.suppress(Late, RuntimeError):
            self.session.store.flush().result(CLOSE_S)
        return True

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        stale, self._stale = self._stale, set()
        for message_id in stale:
            self._show_message(message_id)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        was, now = event.oldSize().width() < NARROW, event.size().width() < NARROW
        if self._whole and (was != now or event.oldSize().width() < 0):
            self._fit_width()

    def _fit_width(self) -> None:
        narrow = self.width() < NARROW
        self.list.setVisible(not narrow)
        if self._whole:
            self.header.chats.setVisible(narrow)
            self.header.marks_word.setVisible(not narrow)

    def minimumSizeHint(self) -> QSize:
        size = super().minimumSizeHint()
        # The list hides itself in a narrow window.
        listed = self._whole and not self.list.isHidden()
        return size - QSize(self.list.width(), 0) if listed else size

    @Slot()
    def _fit(self) -> None:
        """Take the theme's sizes, which follow the text size; panels are made anew."""
        for popover in self._popovers.values():
            popover.deleteLater()
        self._popovers.clear()
        self.composer.setMaximumWidth(theme().size("measure"))
        for head in (self.header, self.list.head):
            head.setFixedHeight(theme().size("header"))

    @Slot()
    def _on_chats(self) -> None:
        self.list.setVisible(self.list.isHidden())

    # The open chat

    @Slot(object, str)
    def _on_opened(self, chat: Chat, message_id: str) -> None:
        self.composer.editing = ""
        self.composer.end_edit()
        self.composer.begin(self.session.draft)
        self._show_path()
        if message_id:
            self.view.show_message(message_id)
            self._mark_found(message_id)
        if "prompt" in self._popovers:
            panel = self._popovers["prompt"].content
            assert isinstance(panel, PromptPanel)
            panel.refresh()
        self._update_mode()

    def _mark_found(self, message_id: str) -> None:
        """Select the word that the search over all chats found in a message."""
        rows = self.view.selection.rows
        if message_id in rows and (terms := terms_of(self.list.query)):
            self.find_bar.mark(rows[message_id], terms[0])

    @Slot(str)
    def _on_path(self, chat_id: str) -> None:
        if chat_id == self.session.chat.info.id:
            self._show_path()
            self._update_mode()

    def _show_path(self) -> None:
        path = self.session.chat.path()
        self._stack.setCurrentWidget(self.view if path else self.empty)
        self.view.set_messages(path)
        writing = self.session.generation(self.session.chat.info.id)
        for message in path:
            if len(self.session.chat.siblings(message.id)) > 1 or (
                writing is not None and writing.message is message
            ):
                self.view.set_shown(message.id, self._shown(message.id))

    def _shown(self, message_id: str) -> Shown:
        chat = self.session.chat
        versions = chat.siblings(message_id)
        progress, rate = "", None
        generation = self.session.generation(chat.info.id)
        if generation is not None and generation.message.id == message_id:
            rate = generation.rate
            if generation.reading:
                progress = self.tr("Waiting")
                if generation.prompt:
                    progress = self.tr("Reading {n} of {total} tokens").format(
                        n=number(generation.read), total=number(generation.prompt)
                    )
        return Shown(versions.index(message_id) + 1, len(versions), progress, rate)

    @Slot(str, str)
    def _on_message(self, chat_id: str, message_id: str) -> None:
        if chat_id != self.session.chat.info.id:
            return
        if self.isVisible():
            self._show_message(message_id)
            self._announce(self.session.chat.messages[message_id])
        else:
            self._stale.add(message_id)
        self._update_mode()

    def _show_message(self, message_id: str) -> None:
        if message_id in self.session.chat.messages:
            self.view.set_shown(message_id, self._shown(message_id))
            self.view.refresh(message_id)

    def _announce(self, message: Message) -> None:
        """Let a screen reader say that an answer is there, and how it begins."""
        if message.state is not State.WRITING and QAccessible.isActive():
            text = told(message.error) or split_thinking(message.text).answer[:SPOKEN_LENGTH]
            QAccessible.updateAccessibility(QAccessibleAnnouncementEvent(self.view, text))

    @Slot()
    def _update_mode(self) -> None:
        controller, composer = self.services.controller, self.composer
        model = controller.model
        writing = self.session.generation(self.session.chat.info.id) is not None
        if writing:
            hint = self.tr("Message {name}").format(name=model.name) if model else ""
            composer.set_mode("stop", hint)
        elif model is not None:
            composer.set_mode("send", self.tr("Message {name}").format(name=model.name))
        elif controller.loading is not None:
            hint = self.tr("{name} is loading. You can type meanwhile.")
            composer.set_mode("loading", hint.format(name=controller.loading.stem))
        else:
            hint = self.tr("No model is loaded. Choose one, then send.")
            composer.set_mode("no model", hint, self.tr("Choose a model"))
        self.keys.set_writing(writing)

    # What the user does

    @Slot()
    def new_chat(self) -> None:
        """Begin a new chat."""
        self.session.new_chat()
        self.focus_first()

    @Slot(str)
    def _on_sent(self, text: str) -> None:
        editing = self.composer.editing
        if editing and editing in self.session.chat.messages:
            self.composer.end_edit()
            self.session.edit(editing, text)
        else:
            self.composer.set_text("")
            self.session.send(text)
        self.view.to_end()

    @Slot(str)
    def _on_typed(self, text: str) -> None:
        self.session.set_draft(text)
        self.composer.count.setText("")
        if len(text) >= COUNT_FROM:
            self._tokens.count(text)

    def _on_count(self, count: int) -> None:
        if len(self.composer.text) < COUNT_FROM:
            return
        model = self.services.controller.model
        most = number(model.max_ctx) if model is not None else "?"
        words = self.tr("{n} of {most} tokens").format(n=number(count), most=most)
        self.composer.count.setText(words)

    @Slot(str)
    def _on_starter(self, text: str) -> None:
        self.composer.set_text(text)
        self.focus_first()

    @Slot(str, str)
    def do(self, action: str, message_id: str) -> None:
        """Do what a message's button asks for; see `MessageRow.wanted`."""
        message = self.session.chat.messages.get(message_id)
        if message is None:
            return
        if action == "copy":
            self._copy(message.text)
        elif action.startswith("code:"):
            self._copy(self.view.code(message_id, int(action.removeprefix("code:"))))
        elif action in ("regenerate", "retry"):
            if self.session.generation(message.chat) is not None:
                self.services.toast(lambda: self.tr("An answer is being written. Stop it first."))
                return
            self.session.regenerate(message_id)
            self.view.to_end()
        elif action == "edit":
            self.composer.begin_edit(message_id, message.text)
        elif action in ("previous", "next"):
            self.session.step(message_id, -1 if action == "previous" else 1)
        elif action == "new_chat":
            question = self.session.chat.messages.get(message.parent or "")
            self.session.new_chat(question.text if question is not None else "")
            self.focus_first()

    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.services.toast(lambda: self.tr("Copied"))

    @Slot()
    def edit_last(self) -> None:
        """Edit the last message that the user wrote."""
        mine = [m for m in self.session.chat.path() if m.role is Role.USER]
        if mine:
            self.composer.begin_edit(mine[-1].id, mine[-1].text)

    # Files

    @Slot()
    def _on_attach(self) -> None:
        self.attach(choose_files(self, self.tr("Attach text files")))

    @Slot(object)
    def attach(self, paths: list[Path]) -> None:
        """Put text files into the message as quoted text; say why of those that are refused."""
        models = [p for p in paths if p.suffix.lower() == ".gguf" or p.is_dir()]
        if models:
            self.services.open_paths(models)
        refusals = []
        for path in paths:
            if path in models:
                continue
            try:
                self.composer.insert(read_text(path).quoted())
            except Refused as refused:
                refusals.append(refusal_text(path.name, refused, MAX_BYTES))
        if refusals:
            self._say("warn", "\n".join(refusals))
        self.focus_first()

    @Slot(str)
    def export(self, chat_id: str) -> None:
        """Save a chat as Markdown or JSON where the user says."""
        from app.chat.exporter import export_chat

        export_chat(self, self.services, self.session, chat_id)

    def export_all(self) -> None:
        """Save all chats in one file."""
        from app.chat.exporter import export_all

        export_all(self, self.services, self.session)

    # Panels and notes

    @Slot()
    def _on_tune(self) -> None:
        if "tune" not in self._popovers:
            self._popovers["tune"] = Popover(SamplingPanel(self.services), self)
        self._popovers["tune"].show_above(self.composer.tune)

    @Slot()
    def _on_prompt(self) -> None:
        if "prompt" not in self._popovers:
            panel = PromptPanel(self.services, self.session)
            self._popovers["prompt"] = Popover(panel, self)
        self._popovers["prompt"].show_above(self.composer.prompt)

    @Slot(object)
    def _on_problem(self, problem: Problem) -> None:
        if problem.kind is ProblemKind.SOLVED:
            self._clear_note()
            self.services.toast(lambda: self.tr("Chats are saved again."))
        else:
            good = problem.kind is ProblemKind.DAMAGED
            self._say("warn" if good else "bad", problem_text(problem))

    def _say(self, kind: Any, text: str) -> None:
        self._clear_note()
        self._note = Banner(kind, text)
        self._note.destroyed.connect(self._on_note_gone)
        self._notes.setContentsMargins(24, 8, 24, 0)
        self._notes.addWidget(self._note)

    @Slot()
    def _on_note_gone(self) -> None:
        if self._note is None or not shiboken6.isValid(self._note):
            self._notes.setContentsMargins(24, 0, 24, 0)

    def _clear_note(self) -> None:
        if self._note is not None and shiboken6.isValid(self._note):
            self._note.deleteLater()
        self._note = None
