"""Paints a row of the chat list: a title and a line below it, or the name of a group."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import (
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    Slot,
)
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QTextCharFormat, QTextLayout
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.chat.boxes import units
from app.chat.chat_model import ROW_ROLE, ListRow
from app.theme import theme

_Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class _Look:
    """Fonts, sizes and colours, taken from the theme once: rows are measured and painted often."""

    title: QFont
    detail: QFont
    group: QFont
    title_metrics: QFontMetrics
    detail_metrics: QFontMetrics
    row: QSize
    group_row: QSize
    text: QColor
    muted: QColor
    accent: QColor
    selected: QColor
    hover: QColor


class ChatDelegate(QStyledItemDelegate):
    """For rows of `ChatModel`."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._look = self._take_look()
        theme().changed.connect(self._on_theme)

    def _take_look(self) -> _Look:
        look = theme()
        title, detail = look.font("ui"), look.font("micro")
        upper, lower = QFontMetrics(title), QFontMetrics(detail)
        return _Look(
            title, detail, look.font("small"), upper, lower,
            QSize(0, upper.height() + lower.height() + 12), QSize(0, look.size("row")),
            look.color("text.primary"), look.color("text.muted"), look.color("accent.text"),
            look.color("surface.selected"), look.color("surface.hover"),
        )  # fmt: skip

    @Slot()
    def _on_theme(self) -> None:
        self._look = self._take_look()

    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return self._look.row if index.data(ROW_ROLE).chat else self._look.group_row

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        row: ListRow = index.data(ROW_ROLE)
        look = self._look
        rect: QRect = option.rect
        inside = rect.adjusted(20, 0, -16, 0)
        if not row.chat:
            painter.setFont(look.group)
            painter.setPen(look.muted)
            painter.drawText(inside.adjusted(0, 0, 0, -4), Qt.AlignmentFlag.AlignBottom, row.title)
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        if selected or option.state & QStyle.StateFlag.State_MouseOver:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(look.selected if selected else look.hover)
            painter.drawRoundedRect(rect.adjusted(8, 0, -8, 0), 4, 4)
        upper, lower = look.title_metrics, look.detail_metrics
        top = rect.top() + (rect.height() - upper.height() - lower.height()) // 2
        painter.setFont(look.title)
        painter.setPen(look.text)
        words = upper.elidedText(row.title, Qt.TextElideMode.ElideRight, inside.width())
        painter.drawText(inside.left(), top + upper.ascent(), words)
        painter.setFont(look.detail)
        painter.setPen(look.muted)
        words = lower.elidedText(row.detail, Qt.TextElideMode.ElideRight, inside.width())
        at = QPoint(inside.left(), top + upper.height())
        if row.marks:
            self._draw_marked(painter, at, words, row)
        else:
            painter.drawText(at.x(), at.y() + lower.ascent(), words)

    def _draw_marked(self, painter: QPainter, at: QPoint, words: str, row: ListRow) -> None:
        layout = QTextLayout(words, self._look.detail)
        made = QTextCharFormat()
        made.setForeground(self._look.accent)
        made.setFontWeight(600)
        ranges = []
        for start, end in row.marks:
            found = QTextLayout.FormatRange()
            found.start, found.length = units(words[:start]), units(words[start:end])
            found.format = made
            ranges.append(found)
        layout.setFormats(ranges)
        layout.beginLayout()
        layout.createLine()
        layout.endLayout()
        layout.draw(painter, at.toPointF())

    def updateEditorGeometry(
        self, editor: QWidget, option: QStyleOptionViewItem, index: _Index
    ) -> None:
        editor.setGeometry(option.rect.adjusted(8, 4, -8, -4))
