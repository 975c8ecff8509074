"""The rows of the chat list: chats in groups by age, or what a search found."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
    Signal,
)

from app.chat.search import Hit
from app.chat.tree import ChatInfo

_Index = QModelIndex | QPersistentModelIndex
ROW_ROLE = Qt.ItemDataRole.UserRole


@dataclass(frozen=True, slots=True)
class ListRow:
    """A row; without `chat` it is the title of a group. `marks` are ranges of `detail`."""

    title: str
    detail: str = ""
    chat: str = ""
    message: str = ""
    pinned: bool = False
    marks: tuple[tuple[int, int], ...] = ()


class ChatModel(QAbstractListModel):
    """Signals: `renamed(chat id, title)` after an edit in place."""

    renamed = Signal(str, str)

    def __init__(self, parent: Any = None) -> None:
        super().__init__(parent)
        self._rows: list[ListRow] = []

    def show_chats(
        self,
        infos: Iterable[ChatInfo],
        now: datetime | None = None,
        writing: Collection[str] = (),
    ) -> None:
        """List chats, pinned first, the others by the day they were last used.

        `writing` are the ids of those in which an answer is being written.
        """
        today = (now or datetime.now()).date()
        names = self._group_names()
        groups: list[list[ListRow]] = [[] for _ in names]
        for info in sorted(infos, key=lambda i: -i.updated):
            groups[0 if info.pinned else _group(info.updated, today)].append(
                self._row(info, info.id in writing)
            )
        rows: list[ListRow] = []
        for name, members in zip(names, groups, strict=True):
            if members:
                rows += [ListRow(name), *members]
        self._set(rows or [ListRow(self.tr("Your chats will be listed here."))])

    def show_hits(self, query: str, hits: Sequence[Hit], infos: dict[str, ChatInfo]) -> None:
        """List what a search found, the hits of one chat together."""
        by_chat: dict[str, list[Hit]] = {}
        for hit in hits:
            if hit.chat in infos:
                by_chat.setdefault(hit.chat, []).append(hit)
        rows: list[ListRow] = []
        for chat, found in by_chat.items():
            title = infos[chat].title
            in_text = [h for h in found if h.message] or found[:1]
            rows += [
                ListRow(title, h.snippet, chat, h.message or "", marks=h.marks) for h in in_text[:5]
            ]
        count = len(rows)
        head = (
            self.tr("%n place(s) found", None, count)
            if rows
            else self.tr("Nothing found for “{query}”").format(query=query)
        )
        self._set([ListRow(head), *rows])

    def row(self, index: _Index) -> ListRow | None:
        """The row of an index."""
        return self._rows[index.row()] if index.isValid() else None

    def index_of(self, chat: str, message: str = "") -> QModelIndex:
        """The index of a chat's first row; invalid if it is not listed."""
        for i, row in enumerate(self._rows):
            if row.chat == chat and (not message or row.message == message):
                return self.index(i)
        return QModelIndex()

    def _group_names(self) -> tuple[str, ...]:
        return (
            self.tr("Pinned"), self.tr("Today"), self.tr("Yesterday"), self.tr("Last 7 days"),
            self.tr("Older"),
        )  # fmt: skip

    def _row(self, info: ChatInfo, writing: bool) -> ListRow:
        count = self.tr("%n message(s)", None, info.n_messages)
        before = self.tr("Writing…") if writing else info.model_name
        detail = f"{before} · {count}" if before else count
        return ListRow(info.title or self.tr("Untitled"), detail, info.id, pinned=info.pinned)

    def _set(self, rows: list[ListRow]) -> None:
        if rows == self._rows:
            return
        same = [(r.chat, r.message) for r in rows] == [(r.chat, r.message) for r in self._rows]
        if same:
            self._rows = rows
            self.dataChanged.emit(self.index(0), self.index(len(rows) - 1))
            return
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    # QAbstractListModel

    def rowCount(self, parent: _Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if (row := self.row(index)) is None:
            return None
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.EditRole):
            return row.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            words = [row.title, row.detail, self.tr("pinned") if row.pinned else ""]
            return ", ".join(w for w in words if w)
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.title if row.chat else None
        return row if role == ROW_ROLE else None

    def setData(self, index: _Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        row = self.row(index)
        if row is None or not row.chat or role != Qt.ItemDataRole.EditRole:
            return False
        self.renamed.emit(row.chat, str(value))
        return True

    def flags(self, index: _Index) -> Qt.ItemFlag:
        row = self.row(index)
        if row is None:
            return Qt.ItemFlag.NoItemFlags
        if not row.chat:
            return Qt.ItemFlag.ItemIsEnabled
        found = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return found if row.message or row.marks else found | Qt.ItemFlag.ItemIsEditable


def _group(stamp: float, today: date) -> int:
    """The place of a chat's group after the pinned one: today, yesterday, last 7 days, older."""
    days = (today - datetime.fromtimestamp(stamp).date()).days
    return 1 if days <= 0 else 2 if days == 1 else 3 if days <= 7 else 4
