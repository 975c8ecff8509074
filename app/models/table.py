"""The table of models: columns, sections, filter and order; no painting."""

from __future__ import annotations

from enum import IntEnum
from pathlib import Path
from typing import Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Slot,
)

from app.i18n import told
from app.models.library import Group, Item, Library
from app.models.words import column_text, sort_key

Index = QModelIndex | QPersistentModelIndex

ITEM_ROLE = Qt.ItemDataRole.UserRole
GROUP_ROLE = Qt.ItemDataRole.UserRole + 1


class Column(IntEnum):
    """The columns, in order."""

    NAME = 0
    QUANT = 1
    SIZE = 2
    ARCHITECTURE = 3
    CONTEXT = 4
    FITS = 5
    SPEED = 6
    SOURCE = 7


_CENTER = Qt.AlignmentFlag.AlignVCenter
_ALIGNMENT = {
    **dict.fromkeys(Column, Qt.AlignmentFlag.AlignLeft | _CENTER),
    **dict.fromkeys(
        (Column.SIZE, Column.CONTEXT, Column.SPEED), Qt.AlignmentFlag.AlignRight | _CENTER
    ),
}


class ModelsTable(QAbstractTableModel):
    """The files of a `Library` that pass the filter, in sections with a head row each.

    Sorting and filtering are done here: a proxy would call Python for every comparison, which takes a
    third of a second with a thousand files.
    """

    def __init__(self, library: Library, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._library = library
        self._rows: list[Group | Item] = []
        self._words: list[str] = []
        self._source = ""
        self._column = Column.NAME
        self._order = Qt.SortOrder.AscendingOrder
        # A scan brings many files at once: they are arranged together.
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self.arrange)
        library.changed.connect(self._on_change)
        library.removed.connect(self._on_change)
        self.arrange()

    # What is shown

    @Slot(str)
    def set_text(self, text: str) -> None:
        """Show only files whose name, file name or architecture holds every word of `text`."""
        self._words = text.casefold().split()
        self.arrange()

    @Slot(str)
    def set_source(self, source: str) -> None:
        """Show only files of one program's folders; empty shows all."""
        self._source = source
        self.arrange()

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        if 0 <= column < len(Column):
            self._column, self._order = Column(column), order
            self.arrange()

    def items(self) -> list[Item]:
        """The files that are shown, top to bottom."""
        return [row for row in self._rows if isinstance(row, Item)]

    def item(self, index: Index) -> Item | None:
        """The file of a row; None for a section's head."""
        row = self._rows[index.row()] if index.isValid() else None
        return row if isinstance(row, Item) else None

    def row_of(self, path: Path) -> QModelIndex:
        """Where a file stands; an invalid index for one that is not shown."""
        rows = (r for r, row in enumerate(self._rows) if _key(row) == path)
        return self.index(next(rows, -1), 0)

    @Slot()
    def arrange(self) -> None:
        """Bring the rows up to date: gone ones leave, new ones come, all stand in order."""
        self._soon.stop()
        wanted = self._arranged()
        keys = {_key(row) for row in wanted}
        self._remove([r for r, row in enumerate(self._rows) if _key(row) not in keys])
        here = {_key(row) for row in self._rows}
        self._append([row for row in wanted if _key(row) not in here])
        self._reorder(wanted)
        self._refresh(wanted)

    # QAbstractTableModel

    def rowCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:
        return 0 if parent.isValid() else len(Column)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal or not 0 <= section < len(Column):
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._title(Column(section))
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _ALIGNMENT[Column(section)]
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid() or isinstance(self._rows[index.row()], Group):
            return Qt.ItemFlag.NoItemFlags
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        return flags | Qt.ItemFlag.ItemIsEditable if index.column() == Column.NAME else flags

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], Column(index.column())
        if role == GROUP_ROLE:
            return row if isinstance(row, Group) else row.group
        if isinstance(row, Group):
            wanted = {Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole}
            return self._group_title(row) if role in wanted and column == Column.NAME else None
        if role == ITEM_ROLE:
            return row
        if role == Qt.ItemDataRole.DisplayRole:
            return column_text(row, column.name)
        if role == Qt.ItemDataRole.EditRole and column == Column.NAME:
            return row.title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _ALIGNMENT[column]
        if role == Qt.ItemDataRole.ToolTipRole:
            return told(row.entry.problem) or str(row.entry.path)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{self._title(column)}: {column_text(row, column.name)}"
        return None

    def setData(self, index: Index, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role != Qt.ItemDataRole.EditRole or not self.flags(index) & Qt.ItemFlag.ItemIsEditable:
            return False
        row = self._rows[index.row()]
        assert isinstance(row, Item)
        self._library.rename(row.entry.path, str(value))
        return True

    # Arranging

    @Slot()
    def _on_change(self) -> None:
        self._soon.start()

    def _arranged(self) -> list[Group | Item]:
        column = self._column.name
        passing = [item for item in self._library.items if self._passes(item)]
        # Equal figures stay in the order of names, in either direction.
        passing.sort(key=lambda item: item.title.casefold())
        passing.sort(
            key=lambda item: sort_key(item, column),
            reverse=self._order == Qt.SortOrder.DescendingOrder,
        )
        rows: list[Group | Item] = []
        for group in Group:
            files = [item for item in passing if item.group is group]
            rows += [group, *files] if files else []
        return rows

    def _passes(self, item: Item) -> bool:
        if self._source and item.entry.source != self._source:
            return False
        searched = f"{item.title} {item.entry.path.name} {item.entry.architecture}".casefold()
        return all(word in searched for word in self._words)

    def _remove(self, gone: list[int]) -> None:
        """Take rows out, those that stand together at once, from the end so that numbers stay true."""
        while gone:
            last = first = gone.pop()
            while gone and gone[-1] == first - 1:
                first = gone.pop()
            self.beginRemoveRows(QModelIndex(), first, last)
            del self._rows[first : last + 1]
            self.endRemoveRows()

    def _append(self, new: list[Group | Item]) -> None:
        if new:
            first = len(self._rows)
            self.beginInsertRows(QModelIndex(), first, first + len(new) - 1)
            self._rows += new
            self.endInsertRows()

    def _reorder(self, wanted: list[Group | Item]) -> None:
        before = [_key(row) for row in self._rows]
        place = {_key(row): r for r, row in enumerate(wanted)}
        if before == list(place):
            return
        self.layoutAboutToBeChanged.emit()
        kept = self.persistentIndexList()
        moved = [self.index(place[before[i.row()]], i.column()) for i in kept]
        by_key = dict(zip(before, self._rows, strict=True))
        self._rows = [by_key[key] for key in place]
        self.changePersistentIndexList(kept, moved)
        self.layoutChanged.emit()

    def _refresh(self, wanted: list[Group | Item]) -> None:
        changed = [r for r, row in enumerate(wanted) if row != self._rows[r]]
        self._rows = wanted
        for row in changed:
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(Column) - 1))

    def _title(self, column: Column) -> str:
        return {
            Column.NAME: self.tr("Model"),
            Column.QUANT: self.tr("Quant"),
            Column.SIZE: self.tr("Size"),
            Column.ARCHITECTURE: self.tr("Architecture"),
            Column.CONTEXT: self.tr("Context up to"),
            Column.FITS: self.tr("On this PC"),
            Column.SPEED: self.tr("tok/s"),
            Column.SOURCE: self.tr("Folder of"),
        }[column]

    def _group_title(self, group: Group) -> str:
        return {
            Group.CHAT: self.tr("Chat models"),
            Group.HELPER: self.tr("Drafts and helpers"),
            Group.PROBLEM: self.tr("Files with problems"),
        }[group]


def _key(row: Group | Item) -> Group | Path:
    return row.entry.path if isinstance(row, Item) else row
