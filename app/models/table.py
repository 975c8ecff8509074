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
    QSortFilterProxyModel,
    Qt,
    Slot,
)

from app.models.library import Group, Item, Library
from app.models.words import column_text, sort_key

Index = QModelIndex | QPersistentModelIndex

ITEM_ROLE = Qt.ItemDataRole.UserRole
GROUP_ROLE = Qt.ItemDataRole.UserRole + 1
SORT_ROLE = Qt.ItemDataRole.UserRole + 2


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


_RIGHT = {Column.SIZE, Column.CONTEXT, Column.SPEED}


class ModelsTable(QAbstractTableModel):
    """Rows of a `Library`: first one head row for each section, then files as they are found."""

    def __init__(self, library: Library, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._library = library
        self._rows: list[Group | Item] = list(Group)
        self._row_of: dict[Path, int] = {}
        for item in library.items:
            self.put(item)
        library.changed.connect(self.put)
        library.removed.connect(self.take)

    @Slot(object)
    def put(self, item: Item) -> None:
        """Show a new file, or new facts of one."""
        row = self._row_of.get(item.entry.path)
        if row is None:
            row = len(self._rows)
            self.beginInsertRows(QModelIndex(), row, row)
            self._rows.append(item)
            self._row_of[item.entry.path] = row
            self.endInsertRows()
        else:
            self._rows[row] = item
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(Column) - 1))
        self._heads_changed()

    @Slot(object)
    def take(self, path: Path) -> None:
        """Forget a file."""
        row = self._row_of.pop(path, None)
        if row is None:
            return
        self.beginRemoveRows(QModelIndex(), row, row)
        del self._rows[row]
        self._row_of = {p: r - (r > row) for p, r in self._row_of.items()}
        self.endRemoveRows()
        self._heads_changed()

    def row_of(self, path: Path) -> QModelIndex:
        """Where a file stands; an invalid index for an unknown one."""
        row = self._row_of.get(path)
        return QModelIndex() if row is None else self.index(row, 0)

    def row(self, row: int) -> Group | Item:
        """What one row shows."""
        return self._rows[row]

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
            return _alignment(Column(section))
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
        if role == SORT_ROLE:
            return sort_key(row, column.name)
        if role == Qt.ItemDataRole.DisplayRole:
            return column_text(row, column.name)
        if role == Qt.ItemDataRole.EditRole and column == Column.NAME:
            return row.title
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.ToolTipRole:
            return row.entry.problem or str(row.entry.path)
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

    def _heads_changed(self) -> None:
        # The filter shows a section's head only over rows, so it has to look at the heads again.
        self.dataChanged.emit(self.index(0, 0), self.index(len(Group) - 1, 0))

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


class ModelsFilter(QSortFilterProxyModel):
    """Keeps sections together and in order, whatever column is sorted, and hides empty ones."""

    def __init__(self, table: ModelsTable, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._table = table
        self._text = ""
        self._source = ""
        self.setSourceModel(table)
        self.sort(Column.NAME)

    @Slot(str)
    def set_text(self, text: str) -> None:
        """Show only files whose name, file name or architecture holds every word of `text`."""
        self.beginFilterChange()
        self._text = text.casefold()
        self.endFilterChange(QSortFilterProxyModel.Direction.Rows)

    @Slot(str)
    def set_source(self, source: str) -> None:
        """Show only files of one program's folders; empty shows all."""
        self.beginFilterChange()
        self._source = source
        self.endFilterChange(QSortFilterProxyModel.Direction.Rows)

    def shown(self) -> list[Item]:
        """The files that pass the filter, top to bottom."""
        rows = (self.index(r, 0).data(ITEM_ROLE) for r in range(self.rowCount()))
        return [row for row in rows if row is not None]

    def item(self, index: Index) -> Item | None:
        """The file of a row; None for a section's head."""
        return index.data(ITEM_ROLE) if index.isValid() else None

    def filterAcceptsRow(self, source_row: int, source_parent: Index) -> bool:
        row = self._table.row(source_row)
        if isinstance(row, Item):
            return self._passes(row)
        rows = (self._table.row(r) for r in range(len(Group), self._table.rowCount()))
        return any(isinstance(r, Item) and r.group is row and self._passes(r) for r in rows)

    def lessThan(self, left: Index, right: Index) -> bool:
        a, b = self._table.row(left.row()), self._table.row(right.row())
        down = self.sortOrder() == Qt.SortOrder.DescendingOrder
        group_a = a if isinstance(a, Group) else a.group
        group_b = b if isinstance(b, Group) else b.group
        if group_a is not group_b:
            return (group_a < group_b) != down
        if isinstance(a, Group) or isinstance(b, Group):
            return isinstance(a, Group) != down
        column = Column(left.column()).name
        key_a, key_b = sort_key(a, column), sort_key(b, column)
        if key_a == key_b:
            # Equal figures stay in the order of names, in either direction.
            return (a.title.casefold() < b.title.casefold()) != down
        return bool(key_a < key_b)

    def _passes(self, item: Item) -> bool:
        if self._source and item.entry.source != self._source:
            return False
        searched = f"{item.title} {item.entry.path.name} {item.entry.architecture}".casefold()
        return all(word in searched for word in self._text.split())


def _alignment(column: Column) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in _RIGHT else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
