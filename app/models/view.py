"""The table of models on screen: columns, sections, keys."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QEvent, QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app.models.delegate import ModelsDelegate
from app.models.library import Item, Library
from app.models.table import Column, Index, ModelsTable
from app.theme import theme

_WIDTHS = {
    Column.NAME: 212,
    Column.QUANT: 84,
    Column.SIZE: 88,
    Column.ARCHITECTURE: 140,
    Column.CONTEXT: 136,
    Column.FITS: 132,
    Column.SPEED: 68,
    Column.SOURCE: 116,
}
# Hidden in this order where there is little room; the pane shows them all.
_FIRST_TO_GO = (
    Column.SOURCE, Column.QUANT, Column.CONTEXT, Column.SPEED, Column.ARCHITECTURE,
)  # fmt: skip


class ModelsView(QTableView):
    """Signals: `chosen(Item or None)` the current row; `chat_wanted`, `bin_wanted` with an `Item`."""

    chosen = Signal(object)
    chat_wanted = Signal(object)
    bin_wanted = Signal(object)

    def __init__(self, library: Library, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.table = ModelsTable(library, self)
        self._delegate = ModelsDelegate(self)
        self.setModel(self.table)
        self.setItemDelegate(self._delegate)
        self.setAccessibleName(self.tr("Models on this PC"))
        self.setShowGrid(False)
        self.setMouseTracking(True)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self._set_up_headers()
        self.table.dataChanged.connect(self._tell_current)
        self.activated.connect(self._on_activated)
        library.scan_finished.connect(self.select_first)
        theme().changed.connect(self._on_theme)

    def current_item(self) -> Item | None:
        """The chosen file."""
        return self.table.item(self.currentIndex())

    def select(self, path: Path) -> bool:
        """Choose a file; false when the filter hides it."""
        self.table.arrange()  # It may have come this very moment.
        index = self.table.row_of(path)
        if index.isValid():
            self.setCurrentIndex(index)
            self.scrollTo(index)
        return index.isValid()

    @Slot()
    def select_first(self) -> None:
        """Choose the first file when none is chosen."""
        self.table.arrange()
        if self.current_item() is None and self.table.items():
            self.select(self.table.items()[0].entry.path)

    def rename(self) -> None:
        """Edit the name of the chosen file."""
        if self.current_item() is not None:
            self.edit(self.currentIndex().siblingAtColumn(Column.NAME))

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        self.chosen.emit(self.table.item(current))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        item = self.current_item()
        if event.key() == Qt.Key.Key_F2:
            self.rename()
        elif event.key() == Qt.Key.Key_Delete and item is not None:
            self.bin_wanted.emit(item)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and item is not None:
            # Not every platform's style lets Enter activate a row.
            self.chat_wanted.emit(item)
        else:
            super().keyPressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        self._hover(self.indexAt(event.position().toPoint()).row())

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self._hover(-1)
        return super().viewportEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._fit_columns(event.size().width())
        super().resizeEvent(event)

    def _set_up_headers(self) -> None:
        head = self.horizontalHeader()
        head.setHighlightSections(False)
        head.setSectionsClickable(True)
        head.setSortIndicator(Column.NAME, Qt.SortOrder.AscendingOrder)
        head.setFixedHeight(theme().size("row"))
        head.setMinimumSectionSize(48)
        self.setSortingEnabled(True)
        head.setSectionResizeMode(Column.ARCHITECTURE, QHeaderView.ResizeMode.Stretch)
        rows = self.verticalHeader()
        rows.hide()
        rows.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        rows.setDefaultSectionSize(theme().size("row"))

    def _fit_columns(self, room: int) -> None:
        """Widths grow with the text; what has no room then is hidden."""
        larger = theme().scale
        widths = {column: round(width * larger) for column, width in _WIDTHS.items()}
        need = sum(widths.values())
        for column in _FIRST_TO_GO:
            self.setColumnHidden(column, need > room)
            need -= widths[column] if need > room else 0
        head, mode = self.horizontalHeader(), QHeaderView.ResizeMode
        no_architecture = self.isColumnHidden(Column.ARCHITECTURE)
        head.setSectionResizeMode(
            Column.NAME, mode.Stretch if no_architecture else mode.Interactive
        )
        for column, width in widths.items():
            head.resizeSection(column, width)

    @Slot()
    def _tell_current(self) -> None:
        self.chosen.emit(self.current_item())

    @Slot(QModelIndex)
    def _on_activated(self, index: QModelIndex) -> None:
        if (item := self.table.item(index)) is not None:
            self.chat_wanted.emit(item)

    @Slot()
    def _on_theme(self) -> None:
        self.verticalHeader().setDefaultSectionSize(theme().size("row"))
        self.horizontalHeader().setFixedHeight(theme().size("row"))
        self._fit_columns(self.viewport().width())
        self.viewport().update()

    def _hover(self, row: int) -> None:
        if row != self._delegate.hovered_row:
            self._delegate.hovered_row = row
            self.viewport().update()
