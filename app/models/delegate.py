"""How the rows of the models table are painted."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRect, QSize, Qt
from PySide6.QtGui import QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import QLineEdit, QStyle, QStyledItemDelegate, QStyleOptionViewItem, QWidget

from app.models.library import Group, Item
from app.models.table import GROUP_ROLE, ITEM_ROLE, Column
from app.models.words import verdict_style
from app.theme import theme

_PAD = 12
_ICON = 16
_MARK = 2
_STRONG = {Column.NAME, Column.SIZE, Column.CONTEXT, Column.SPEED}


class ModelsDelegate(QStyledItemDelegate):
    """Paints hairlines, the accent mark of the selected row, section heads and the words on fit."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.hovered_row = -1

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        look = theme()
        rect: QRect = option.rect
        item = index.data(ITEM_ROLE)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        if item is not None and (selected or index.row() == self.hovered_row):
            painter.fillRect(rect, look.color("surface.selected" if selected else "surface.hover"))
        painter.fillRect(rect.left(), rect.bottom(), rect.width(), 1, look.color("line.hair"))
        if item is None:
            if index.column() == Column.NAME:
                text = index.data() or ""
                self._text(painter, rect.adjusted(_PAD, 0, -_PAD, 0), text, "text.muted",
                           look.font("small", "medium"))  # fmt: skip
            return
        if selected and index.column() == Column.NAME:
            painter.fillRect(QRect(rect.topLeft(), QSize(_MARK, rect.height() - 1)),
                             look.color("accent.base"))  # fmt: skip
        self._cell(painter, rect.adjusted(_PAD, 0, -_PAD, 0), index, item)

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        size = super().sizeHint(option, index)
        return QSize(size.width(), theme().size("row"))

    def updateEditorGeometry(
        self,
        editor: QWidget,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        editor.setGeometry(option.rect.adjusted(2, 2, -2, -3))
        if isinstance(editor, QLineEdit):
            editor.setAccessibleName(self.tr("Name to be shown"))
            editor.selectAll()

    def _cell(
        self,
        painter: QPainter,
        rect: QRect,
        index: QModelIndex | QPersistentModelIndex,
        item: Item,
    ) -> None:
        look = theme()
        column = Column(index.column())
        text = index.data() or ""
        color = "text.primary" if column in _STRONG else "text.muted"
        font = look.font("ui", "medium" if column == Column.NAME else "regular")
        icon = ""
        if index.data(GROUP_ROLE) is Group.PROBLEM:
            if column == Column.ARCHITECTURE:
                icon, color = "error", "state.bad"
        elif column == Column.FITS and item.estimate is not None:
            icon, kind = verdict_style(item.estimate)
            color = f"state.{kind}"
        if icon:
            ratio = painter.device().devicePixelRatioF()
            y = rect.center().y() - _ICON // 2 + 1
            painter.drawPixmap(rect.left(), y, look.pixmap(icon, color, _ICON, ratio))
            rect = rect.adjusted(_ICON + 6, 0, 0, 0)
        alignment = Qt.AlignmentFlag(index.data(Qt.ItemDataRole.TextAlignmentRole))
        self._text(painter, rect, text, color, font, alignment)

    @staticmethod
    def _text(
        painter: QPainter,
        rect: QRect,
        text: str,
        color: str,
        font: QFont,
        alignment: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter,
    ) -> None:
        painter.setFont(font)
        painter.setPen(theme().color(color))
        shown = QFontMetrics(font).elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, int(alignment | Qt.TextFlag.TextSingleLine), shown)
