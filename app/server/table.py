"""The requests of other programs, newest first: whose, how far, how they went; what they say if asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from enum import IntEnum
from html import escape
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import (
    QAbstractTableModel,
    QEvent,
    QLocale,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
    Slot,
)
from PySide6.QtGui import QColor, QEnterEvent, QFocusEvent, QFontMetrics, QHideEvent, QKeyEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableView, QWidget

from app.theme import theme

if TYPE_CHECKING:
    from engine.api.journal import Live

Index = QModelIndex | QPersistentModelIndex

KEPT = 500


class Column(IntEnum):
    """The columns, in order."""

    TIME = 0
    CLIENT = 1
    PATH = 2
    MODEL = 3
    TEXT = 4
    PROMPT = 5
    REUSED = 6
    OUT = 7
    RATE = 8
    STATE = 9


_NUMBERS = (Column.PROMPT, Column.REUSED, Column.OUT, Column.RATE)
_WIDTHS = {
    Column.TIME: 92,
    Column.CLIENT: 112,
    Column.PATH: 172,
    Column.PROMPT: 72,
    Column.REUSED: 72,
    Column.OUT: 64,
    Column.RATE: 64,
    Column.STATE: 164,
}
# What is wider in some fonts, and is to be seen whole.
_SAMPLES = {
    Column.TIME: "00:00:00",
    Column.CLIENT: "Anthropic SDK",
    Column.PATH: "/v1/chat/completions",
}
_SIDES = 32
# Hidden in this order where there is little room.
_FIRST_TO_GO = (Column.TIME, Column.RATE, Column.REUSED, Column.PATH)
_LEAST_MODEL = 110


class Requests(QAbstractTableModel):
    """What `update` was told; what is not told any more has ended, and the newest of these stay."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Live] = []
        self._titles = {
            Column.TIME: self.tr("Time"),
            Column.CLIENT: self.tr("Client"),
            Column.PATH: self.tr("Path"),
            Column.MODEL: self.tr("Model"),
            Column.TEXT: self.tr("Says"),
            Column.PROMPT: self.tr("Prompt"),
            Column.REUSED: self.tr("Reused"),
            Column.OUT: self.tr("Out"),
            Column.RATE: self.tr("tok/s"),
            Column.STATE: self.tr("State"),
        }
        self._refusals = {
            400: self.tr("refused"),
            401: self.tr("no valid key"),
            403: self.tr("not allowed"),
            404: self.tr("not there"),
            405: self.tr("not possible"),
            408: self.tr("too slow"),
            413: self.tr("too large"),
            431: self.tr("too large"),
            499: self.tr("client left"),
            503: self.tr("not available"),
        }

    def forget_texts(self) -> None:
        """Keep nothing of what the requests say."""
        for n, live in enumerate(self._rows):
            if live.text:
                self._put(n, replace(live, text=""))

    def refresh(self, lives: Sequence[Live]) -> None:
        """Show these, the oldest first; those that are there stay, and what was seen of their texts."""
        now = {live.id: live for live in lives}
        for n, before in enumerate(self._rows):
            if (live := now.pop(before.id, None)) is not None:
                if before.text and live.ended:
                    live = replace(live, text=before.text)
                if live != before:
                    self._put(n, live)
            elif not before.ended:  # its server was stopped
                self._put(n, replace(before, seconds=0.0, status=0))
        self._add(list(now.values()))

    def _put(self, n: int, live: Live) -> None:
        self._rows[n] = live
        self.dataChanged.emit(self.index(n, 0), self.index(n, len(Column) - 1))

    def _add(self, fresh: list[Live]) -> None:
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
        live, column = self._rows[index.row()], Column(index.column())
        if role == Qt.ItemDataRole.DisplayRole:
            return self._text(live, column)
        if role == Qt.ItemDataRole.ToolTipRole:  # a client's words are no markup
            return f"<qt>{escape(self._text(live, column))}</qt>"
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return _alignment(column)
        if role == Qt.ItemDataRole.ForegroundRole:
            return _color(live, column)
        return None

    def _text(self, live: Live, column: Column) -> str:
        numbers = QLocale()
        match column:
            case Column.TIME:
                return datetime.fromtimestamp(live.since).strftime("%H:%M:%S")
            case Column.CLIENT:
                return live.client
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
                return numbers.toString(live.rate, "f", 1) if live.rate else ""
            case Column.STATE:
                return self._state(live)

    def _state(self, live: Live) -> str:
        if live.seconds is None:
            if not live.admitted:
                return self.tr("waiting")
            return self.tr("writing") if live.written_tokens else self.tr("reading")
        if live.fault == "left":
            return self.tr("client left, stopped")
        if live.fault == "failed":
            return self.tr("{status}, broken off").format(status=live.status)
        if not live.status:
            return self.tr("ended")
        if live.status >= 400:
            return f"{live.status} {self._refusals.get(live.status, self.tr('failed'))}"
        seconds = QLocale().toString(live.seconds, "f", 1)
        return self.tr("{status}, {n} s").format(status=live.status, n=seconds)


def _color(live: Live, column: Column) -> QColor | None:
    if column == Column.STATE and live.ended:
        if live.fault == "left":
            return theme().color("state.warn")
        if live.fault or live.status >= 400:
            return theme().color("state.bad")
    return theme().color("text.muted") if live.ended or column == Column.TIME else None


def _alignment(column: int) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column in _NUMBERS else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter


class RequestsView(QTableView):
    """The table on screen; what is read there is not to move.

    Signals:
        held_changed: `held` is another.
    """

    held_changed = Signal()

    def __init__(self, model: Requests, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._hovered = False
        self._held = ""
        self.setModel(model)
        model.rowsInserted.connect(self._hold)
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

    @property
    def held(self) -> str:
        """Why the rows are to stay as they are: "hover" or "focus"; empty where they may change."""
        return self._held

    @Slot()
    def _hold(self) -> None:
        held = "focus" if self.hasFocus() and self.currentIndex().isValid() else ""
        held = "hover" if self._hovered and self.model().rowCount() else held
        if held != self._held:
            self._held = held
            self.held_changed.emit()

    def enterEvent(self, event: QEnterEvent) -> None:
        super().enterEvent(event)
        self._hovered = True
        self._hold()

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hovered = False
        self._hold()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._hovered = False
        self._hold()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._hold()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._hold()

    def currentChanged(self, current: Index, previous: Index) -> None:
        super().currentChanged(current, previous)
        self._hold()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.currentIndex().isValid():
            self.setCurrentIndex(QModelIndex())
        else:
            super().keyPressEvent(event)

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
        row = theme().size("rowDense")
        self.verticalHeader().setDefaultSectionSize(row)
        self.horizontalHeader().setFixedHeight(theme().size("row"))
        self.setMinimumHeight(theme().size("row") + 5 * row)
        if self.isVisible():  # else it gets its width, and is painted, when it is shown
            self._fit_columns(self.viewport().width())
            self.viewport().update()

    def _fit_columns(self, room: int) -> None:
        larger = theme().scale
        text = QFontMetrics(theme().font("ui"))
        widths = {column: round(width * larger) for column, width in _WIDTHS.items()}
        for column, sample in _SAMPLES.items():
            widths[column] = max(widths[column], text.horizontalAdvance(sample) + _SIDES)
        least = round(_LEAST_MODEL * larger)
        if self._widest == Column.TEXT:
            widths[Column.MODEL] = least
        need = sum(widths.values()) + least
        for column in _FIRST_TO_GO:
            self.setColumnHidden(column, need > room)
            need -= widths[column] if need > room else 0
        for column, width in widths.items():
            self.horizontalHeader().resizeSection(column, width)
