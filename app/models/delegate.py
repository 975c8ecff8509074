"""How the rows of the models table are painted."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt, Slot
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter
from PySide6.QtWidgets import (
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QWidget,
)

from app.models.library import Group, Item
from app.models.table import ITEM_ROLE, Column, Index
from app.models.words import verdict_style
from app.theme import FontName, Weight, theme

Font = tuple[FontName, Weight]

_LEFT = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
_PAD = 12
_ICON = 16
_MARK = 2
_PROBLEM = tuple(Column(c) for c in range(Column.ARCHITECTURE, Column.SOURCE))
_STRONG = {Column.NAME, Column.SIZE, Column.CONTEXT, Column.SPEED}


class ModelsDelegate(QStyledItemDelegate):
    """Paints hairlines, the accent mark of the selected row, section heads and the words on fit.

    A text that runs over several cells is painted by each of them, cut to the cell: spans of the table
    would have to be set anew for all rows whenever one comes.
    """

    def __init__(self, view: QTableView) -> None:
        super().__init__(view)
        self._view = view
        self.hovered_row = -1
        # A page of rows is hundreds of cells: what the theme makes anew each time is kept.
        self._colors: dict[str, QColor] = {}
        self._fonts: dict[Font, tuple[QFont, QFontMetrics]] = {}
        theme().changed.connect(self._forget)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        rect: QRect = option.rect
        item = index.data(ITEM_ROLE)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        if item is not None and (selected or index.row() == self.hovered_row):
            painter.fillRect(rect, self._color("surface.selected" if selected else "surface.hover"))
        painter.fillRect(rect.left(), rect.bottom(), rect.width(), 1, self._color("line.hair"))
        if selected and index.column() == Column.NAME:
            mark = QRect(rect.topLeft(), QSize(_MARK, rect.height() - 1))
            painter.fillRect(mark, self._color("accent.base"))
        painter.save()
        painter.setClipRect(rect)
        if item is None:
            text = index.model().index(index.row(), Column.NAME).data() or ""
            whole = QRect(0, rect.top(), self._view.viewport().width(), rect.height())
            self._text(
                painter,
                whole.adjusted(_PAD, 0, -_PAD, 0),
                text,
                "text.muted",
                ("small", "medium"),
            )
        elif item.group is Group.PROBLEM and index.column() in _PROBLEM:
            self._problem(
                painter, rect, index.model().index(index.row(), Column.ARCHITECTURE).data()
            )
        else:
            self._cell(painter, rect.adjusted(_PAD, 0, -_PAD, 0), index, item)
        painter.restore()

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        size = super().sizeHint(option, index)
        return QSize(size.width(), theme().size("row"))

    def updateEditorGeometry(
        self,
        editor: QWidget,
        option: QStyleOptionViewItem,
        index: Index,
    ) -> None:
        editor.setGeometry(option.rect.adjusted(2, 2, -2, -3))
        if isinstance(editor, QLineEdit):
            editor.setAccessibleName(self.tr("Name to be shown"))
            editor.selectAll()

    def _cell(
        self,
        painter: QPainter,
        rect: QRect,
        index: Index,
        item: Item,
    ) -> None:
        column = Column(index.column())
        text = index.data() or ""
        color = "text.primary" if column in _STRONG else "text.muted"
        font: Font = ("ui", "medium" if column == Column.NAME else "regular")
        icon = ""
        if column == Column.FITS and item.estimate is not None:
            icon, kind = verdict_style(item.estimate)
            color = f"state.{kind}"
        if icon:
            rect = self._icon(painter, rect, icon, color)
        alignment = Qt.AlignmentFlag(index.data(Qt.ItemDataRole.TextAlignmentRole))
        self._text(painter, rect, text, color, font, alignment)

    def _problem(self, painter: QPainter, rect: QRect, text: str) -> None:
        """What is wrong, over the columns that have nothing to say of such a file."""
        view = self._view
        shown = [c for c in _PROBLEM if not view.isColumnHidden(c)]
        left = view.columnViewportPosition(shown[0])
        right = view.columnViewportPosition(shown[-1]) + view.columnWidth(shown[-1])
        whole = QRect(left + _PAD, rect.top(), right - left - 2 * _PAD, rect.height())
        whole = self._icon(painter, whole, "error", "state.bad")
        self._text(painter, whole, text, "state.bad", ("ui", "regular"))

    def _icon(self, painter: QPainter, rect: QRect, name: str, color: str) -> QRect:
        """Paint an icon at the left and return what is left for the text."""
        y = rect.center().y() - _ICON // 2 + 1
        theme().icon(name, color, _ICON).paint(painter, QRect(rect.left(), y, _ICON, _ICON))
        return rect.adjusted(_ICON + 6, 0, 0, 0)

    def _text(
        self,
        painter: QPainter,
        rect: QRect,
        text: str,
        color: str,
        font: Font,
        alignment: Qt.AlignmentFlag = _LEFT,
    ) -> None:
        if not text:
            return
        if font not in self._fonts:
            made = theme().font(*font)
            self._fonts[font] = (made, QFontMetrics(made))
        made, metrics = self._fonts[font]
        painter.setFont(made)
        painter.setPen(self._color(color))
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideRight, rect.width())
        painter.drawText(rect, int(alignment | Qt.TextFlag.TextSingleLine), shown)

    def _color(self, token: str) -> QColor:
        if token not in self._colors:
            self._colors[token] = theme().color(token)
        return self._colors[token]

    @Slot()
    def _forget(self) -> None:
        self._colors.clear()
        self._fonts.clear()
