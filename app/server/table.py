"""The requests of other programs, newest first: what they are and how far; what they say only if asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QLocale,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
)
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app.theme import theme

if TYPE_CHECKING:
    from engine.api.turn import Live

Index = QModelIndex | QPersistentModelIndex

KEPT = 500


class Column(IntEnum):
    """The columns, in order."""

    TIME = 0
    PATH = 1
    MODEL = 2
    TEXT = 3
    PROMPT = 4
    REUSED = 5
    OUT = 6
    RATE = 7
    STATE = 8


_NUMBERS = (Column.PROMPT, Column.REUSED, Column.OUT, Column.RATE)
_WIDTHS = {
    Column.TIME: 88,
    Column.PATH: 190,
    Column.PROMPT: 84,
    Column.REUSED: 84,
    Column.OUT: 72,
    Column.RATE: 72,
    Column.STATE: 110,
}
# Hidden in this order where there is little room.
_FIRST_TO_GO = (Column.TIME, Column.RATE, Column.REUSED)
_LEAST_MODEL, _USUAL_ROW = 110, 36


@dataclass(slots=True)
class Row:
    """A request as it was seen last; `began` is when it was first seen to write, and from which token."""

    live: Live
    ended: bool = False
    began: tuple[float, int] | None = None
    rate: float = 0.0


class Requests(QAbstractTableModel):
    """What `update` was told; what is not told any more has ended, and the newest of these stay."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []
        self._titles = {
            Column.TIME: self.tr("Time"),
            Column.PATH: self.tr("Path"),
            Column.MODEL: self.tr("Model"),
            Column.TEXT: self.tr("Says"),
            Column.PROMPT: self.tr("Prompt"),
            Column.REUSED: self.tr("Reused"),
            Column.OUT: self.tr("Out"),
            Column.RATE: self.tr("tok/s"),
            Column.STATE: self.tr("State"),
        }

    @property
    def going_on(self) -> int:
        """How many have not ended."""
        return sum(not row.ended for row in self._rows)

    def forget_texts(self) -> None:
        """Keep nothing of what the requests say."""
        for row in self._rows:
            row.live = replace(row.live, text="")
        self._tell(self._rows)

    def refresh(self, lives: Sequence[Live], now: float) -> None:
        """Show what goes on `now` (a time in s), the oldest first."""
        known = {row.live.id: row for row in self._rows}
        there = {live.id for live in lives}
        fresh = [Row(live) for live in lives if live.id not in known]
        before = [row for row in self._rows if not row.ended]
        for live in lives:
            if (row := known.get(live.id)) is not None:
                row.live = live
        for row in before:
            row.ended = row.live.id not in there
            _measure(row, now)
        self._tell(before)
        self._add(fresh)

    def _tell(self, changed: Iterable[Row]) -> None:
        places = {id(row): n for n, row in enumerate(self._rows)}
        for row in changed:
            n = places[id(row)]
            self.dataChanged.emit(self.index(n, 0), self.index(n, len(Column) - 1))

    def _add(self, fresh: list[Row]) -> None:
        if not fresh:
            return
        self.beginInsertRows(QModelIndex(), 0, len(fresh) - 1)
        self._rows[:0] = reversed(fresh)
        self.endInsertRows()
        if len(self._rows) > KEPT:
            self.beginRemoveRows(QModelIndex(), KEPT, len(self._rows) - 1)
            del self._rows[KEPT:]
            self.endRemoveRows()

    # Qt's side

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(Column)

    def headerData(
        self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole
    ) -> Any:
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.DisplayRole:
            return self._titles[Column(section)]
        return _alignment(section) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        row, column = self._rows[index.row()], Column(index.column())
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self._text(row, column)
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.ForegroundRole and (row.ended or column < Column.PROMPT):
            return theme().color("text.muted")
        return None

    def _text(self, row: Row, column: Column) -> str:
        live, numbers = row.live, QLocale()
        match column:
            case Column.TIME:
                return datetime.fromtimestamp(live.since).strftime("%H:%M:%S")
            case Column.PATH:
                return live.path
            case Column.MODEL:
                return live.model
            case Column.TEXT:
                return live.text
            case Column.PROMPT:
                return numbers.toString(live.prompt_tokens) if live.prompt_tokens else ""
            case Column.REUSED:
                return numbers.toString(live.reused_tokens) if live.admitted else ""
            case Column.OUT:
                return numbers.toString(live.written_tokens) if live.written_tokens else ""
            case Column.RATE:
                return numbers.toString(row.rate, "f", 1) if row.rate else ""
            case Column.STATE:
                return self._state(row)

    def _state(self, row: Row) -> str:
        if row.ended:
            return self.tr("ended")
        if not row.live.admitted:
            return self.tr("waiting")
        return self.tr("writing") if row.live.written_tokens else self.tr("reading")


def _measure(row: Row, now: float) -> None:
    written = row.live.written_tokens
    if row.ended or not written:
        return
    if row.began is None:
        row.began = now, written
    elif now > row.began[0] and written > row.began[1]:
        row.rate = (written - row.began[1]) / (now - row.began[0])


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in _NUMBERS else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


class RequestsView(QTableView):
    """The table on screen."""

    def __init__(self, model: Requests, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setModel(model)
        self.setAccessibleName(self.tr("Requests of other programs"))
        self.setShowGrid(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setTabKeyNavigation(False)
        self.setWordWrap(False)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head = self.horizontalHeader()
        head.setHighlightSections(False)
        head.setMinimumSectionSize(48)
        self.show_texts(False)
        theme().changed.connect(self._fit)
        self._fit()

    def show_texts(self, shown: bool) -> None:
        """Show or hide the beginnings of the prompts; what stretches is the widest column."""
        head = self.horizontalHeader()
        self.setColumnHidden(Column.TEXT, not shown)
        self._widest = Column.TEXT if shown else Column.MODEL
        for column in (Column.MODEL, Column.TEXT):
            mode = QHeaderView.ResizeMode
            stretch = column == self._widest
            head.setSectionResizeMode(column, mode.Stretch if stretch else mode.Interactive)
        if self.isVisible():
            self._fit_columns(self.viewport().width())

    def resizeEvent(self, event: Any) -> None:
        self._fit_columns(event.size().width())
        super().resizeEvent(event)

    def _fit(self) -> None:
        self.setFont(theme().font("ui"))
        row = round(theme().size("row") * 28 / _USUAL_ROW)
        self.verticalHeader().setDefaultSectionSize(row)
        self.horizontalHeader().setFixedHeight(theme().size("row"))
        self.setMinimumHeight(theme().size("row") + 5 * row)
        if self.isVisible():  # else it gets its width, and is painted, when it is shown
            self._fit_columns(self.viewport().width())
            self.viewport().update()

    def _fit_columns(self, room: int) -> None:
        larger = theme().size("row") / _USUAL_ROW
        widths = {column: round(width * larger) for column, width in _WIDTHS.items()}
        least = round(_LEAST_MODEL * larger)
        if self._widest == Column.TEXT:
            widths[Column.MODEL] = least
        need = sum(widths.values()) + least
        for column in _FIRST_TO_GO:
            self.setColumnHidden(column, need > room)
            need -= widths[column] if need > room else 0
        for column, width in widths.items():
            self.horizontalHeader().resizeSection(column, width)
