"""The list of chats at the left: search, groups, renaming, deleting with undo."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QPoint,
    Qt,
    QTimer,
    Signal,
    Slot,
)
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QListView,
    QMenu,
    QVBoxLayout,
    QWidget,
)

from app.chat.chat_delegate import ChatDelegate
from app.chat.chat_model import ROW_ROLE, ChatModel, ListRow
from app.chat.later import Later
from app.chat.search import Hit
from app.chat.session import ChatSession
from app.page import Services
from app.theme import theme
from app.widgets import IconButton, SearchField

SEARCH_MS = 150


class ChatList(QFrame):
    """Signals: `export_wanted(chat id)`; `left()` when Esc leaves the list."""

    export_wanted = Signal(str)
    left = Signal()

    def __init__(
        self, services: Services, session: ChatSession, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._services = services
        self._session = session
        self._later = Later(self)
        self._undo: Callable[[], None] | None = None
        self.setProperty("kind", "side")
        self.setFixedWidth(theme().size("chatList"))
        self.head = QWidget()
        self.search = SearchField(self.tr("Search all chats"), self.tr("Clear the search"))
        self.new = IconButton("plus", self.tr("New chat"), self.tr("New chat (Ctrl+N)"))
        self.model = ChatModel(self)
        self.view = ChatView()
        self.view.setModel(self.model)
        self._timer = QTimer(self, interval=SEARCH_MS, singleShot=True)
        self._build()
        self._connect()
        self._show()

    def _build(self) -> None:
        top = QHBoxLayout()
        top.setContentsMargins(12, 0, 8, 0)
        top.setSpacing(theme().space(1))
        top.addWidget(self.search, 1)
        top.addWidget(self.new)
        self.head.setLayout(top)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 8)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.view, 1)

    def _connect(self) -> None:
        self._timer.timeout.connect(self._search)
        self.search.textChanged.connect(self._on_typed)
        self.search.installEventFilter(self)
        self.new.clicked.connect(self._on_new)
        self.model.renamed.connect(self._session.rename)
        self.view.chosen.connect(self._session.open)
        self.view.delete_wanted.connect(self.delete)
        self.view.customContextMenuRequested.connect(self._on_menu)
        self._session.chats_changed.connect(self._show)
        self._session.opened.connect(self._on_opened)
        theme().changed.connect(self._on_theme)

    # What is listed

    @property
    def query(self) -> str:
        """What is searched for."""
        return self.search.text().strip()

    @Slot()
    def _show(self) -> None:
        if self.query:
            return
        self.model.show_chats(self._session.infos.values(), writing=self._session.writing)
        self._mark()

    def _mark(self) -> None:
        index = self.model.index_of(self._session.chat.info.id)
        if index.isValid():
            self.view.setCurrentIndex(index)
        else:
            self.view.selectionModel().clear()

    @Slot(str)
    def _on_typed(self, text: str) -> None:
        if text.strip():
            self._timer.start()
        else:
            self._timer.stop()
            self._show()

    @Slot()
    def _search(self) -> None:
        query = self.query
        self._later.when(self._session.store.search(query), lambda hits: self._on_hits(query, hits))

    def _on_hits(self, query: str, hits: list[Hit]) -> None:
        if query == self.query:
            self.model.show_hits(query, hits, self._session.infos)

    @Slot(object, str)
    def _on_opened(self, chat: object, message: str) -> None:
        if not self.query:
            self._show()

    @Slot()
    def _on_theme(self) -> None:
        self.view.scheduleDelayedItemsLayout()  # Rows grow with the text.

    # What is done

    @Slot()
    def _on_new(self) -> None:
        self._session.new_chat()
        self.left.emit()

    @Slot(str)
    def delete(self, chat_id: str) -> None:
        """Delete a chat and offer to undo it."""
        if chat_id not in self._session.infos:
            return
        title = self._session.infos[chat_id].title
        at = self.view.currentIndex().row()
        current = self.model.row(self.view.currentIndex())
        was_current = current is not None and current.chat == chat_id
        undo = self._undo = self._session.delete(chat_id)
        if self.query:
            self._search()
        elif was_current and self.view.hasFocus():
            self.view.go_near(at)
        self._services.toast_undo(
            lambda: self.tr("“{title}” was deleted").format(title=_short(title)), undo
        )

    @Slot()
    def undo(self) -> None:
        """Bring back the chat that was deleted last."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()
            self._services.toast(lambda: self.tr("The chat is back."))

    @Slot(QPoint)
    def _on_menu(self, point: QPoint) -> None:
        index = self.view.indexAt(point)
        row = self.model.row(index)
        if row is None or not row.chat:
            return
        chat = row.chat
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction(self.tr("Open"), lambda: self._session.open(chat, row.message))
        if self.model.flags(index) & Qt.ItemFlag.ItemIsEditable:
            menu.addAction(self.tr("Rename\tF2"), lambda: self.view.edit(index))
        pinned = self._session.infos[chat].pinned
        words = self.tr("Unpin") if pinned else self.tr("Pin")
        menu.addAction(words, lambda: self._session.pin(chat, not pinned))
        menu.addAction(self.tr("Export…\tCtrl+E"), lambda: self.export_wanted.emit(chat))
        menu.addSeparator()
        menu.addAction(self.tr("Delete\tDel"), lambda: self.delete(chat))
        menu.popup(self.view.viewport().mapToGlobal(point))

    def eventFilter(self, watched: object, event: QEvent) -> bool:
        if (
            watched is self.search
            and isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
        ):
            if event.key() == Qt.Key.Key_Escape:
                if self.search.text():
                    self.search.clear()
                else:
                    self.left.emit()
                return True
            if event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self.view.setFocus(Qt.FocusReason.OtherFocusReason)
                self.view.go_near(0)
                return True
        return False

    def focus_search(self) -> None:
        """Put the keyboard into the search field."""
        self.show()
        self.search.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.search.selectAll()


class ChatView(QListView):
    """Signals: `chosen(chat id, message id)`; `delete_wanted(chat id)`."""

    chosen = Signal(str, str)
    delete_wanted = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(self.tr("Chats"))
        self.setItemDelegate(ChatDelegate(self))
        self.setEditTriggers(QListView.EditTrigger.EditKeyPressed)
        self.setVerticalScrollMode(QListView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.setMouseTracking(True)
        self.clicked.connect(self._choose)
        self.activated.connect(self._choose)

    @Slot(QModelIndex)
    def _choose(self, index: QModelIndex) -> None:
        row = index.data(ROW_ROLE)
        if isinstance(row, ListRow) and row.chat:
            self.chosen.emit(row.chat, row.message)

    def go_near(self, at: int) -> None:
        """Make the chat at or next to a row the current one."""
        count = self.model().rowCount()
        order = [*range(max(at, 0), count), *reversed(range(min(at, count)))]
        for i in order:
            index = self.model().index(i, 0)
            if index.data(ROW_ROLE).chat:
                self.setCurrentIndex(index)
                return

    def mousePressEvent(self, event: QMouseEvent) -> None:
        # The right button opens a menu; the chat that is shown stays the one that is marked.
        if event.button() != Qt.MouseButton.RightButton:
            super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        row = self.currentIndex().data(ROW_ROLE)
        if event.key() == Qt.Key.Key_Delete and isinstance(row, ListRow) and row.chat:
            self.delete_wanted.emit(row.chat)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._choose(self.currentIndex())
        elif event.key() == Qt.Key.Key_Menu:
            self.customContextMenuRequested.emit(self.visualRect(self.currentIndex()).center())
        else:
            super().keyPressEvent(event)


def _short(title: str) -> str:
    return title if len(title) <= 40 else title[:39] + "…"
