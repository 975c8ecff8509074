"""The command palette (Ctrl+K) and the key map (F1): every action by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QSize,
    Qt,
    Slot,
)
from PySide6.QtGui import QAction, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QScrollArea,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.commands import keys, plain
from app.page import Actions
from app.theme import theme
from app.widgets import ScrollBody, button, label

if TYPE_CHECKING:
    from app.window import MainWindow

_ACTION = Qt.ItemDataRole.UserRole
WIDTH, MOST_ROWS = 560, 10


class _Row(QStyledItemDelegate):
    """An action's name at the left, its keys at the right."""

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(0, theme().size("row"))

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        look = theme()
        rect = option.rect
        view = cast(QListWidget, option.widget)
        if view.currentIndex() == index:
            painter.fillRect(rect, look.color("surface.selected"))
            painter.fillRect(rect.x(), rect.y(), 2, rect.height(), look.color("accent.base"))
        inside = rect.adjusted(16, 0, -16, 0)
        action = cast(QAction, index.data(_ACTION))
        painter.setPen(look.color("text.primary"))
        painter.setFont(look.font("ui"))
        left = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        painter.drawText(inside, left, plain(action.text()))
        painter.setPen(look.color("text.muted"))
        painter.setFont(look.font("small"))
        right = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.drawText(inside, right, keys(action))


class Palette(QFrame):
    """A popup: type a part of a name, Enter does it, Esc goes back."""

    def __init__(self, actions: Actions, window: MainWindow) -> None:
        super().__init__(window, Qt.WindowType.Popup)
        self._window = window
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setProperty("kind", "palette")
        self.setAccessibleName(self.tr("Commands"))
        self._actions = actions
        self._field = QLineEdit()
        self._field.setPlaceholderText(self.tr("Type a command"))
        self._field.setAccessibleName(self.tr("Type a command"))
        self._field.setProperty("bare", True)
        self._field.setProperty("focusRing", False)
        self._field.setProperty("large", True)
        self._field.textChanged.connect(self._fill)
        self._field.installEventFilter(self)
        self._list = QListWidget()
        self._list.setAccessibleName(self.tr("Commands"))
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setItemDelegate(_Row(self._list))
        self._list.itemClicked.connect(self._on_chosen)
        self._none = label(self.tr("No command has this name."), "muted")
        self._none.setContentsMargins(16, 8, 16, 8)
        column = QVBoxLayout(self)
        column.setContentsMargins(1, 1, 1, 8)
        column.setSpacing(0)
        column.addWidget(self._field)
        column.addWidget(self._list)
        column.addWidget(self._none)
        self._fill("")
        self.setFixedWidth(round(WIDTH * theme().scale))
        centre = window.mapToGlobal(window.rect().center())
        top = window.mapToGlobal(window.rect().topLeft())
        self.move(centre.x() - self.width() // 2, top.y() + window.height() // 8)

    def open(self) -> None:
        """Show it with the focus in the field."""
        self.show()
        self._field.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.KeyPress:
            return False
        key = cast(QKeyEvent, event).key()
        if key in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            step = 1 if key == Qt.Key.Key_Down else -1
            count = max(self._list.count(), 1)
            self._list.setCurrentRow((self._list.currentRow() + step) % count)
            return True
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            item = self._list.currentItem()
            if item is not None:
                self._on_chosen(item)
            return True
        return False

    @Slot(str)
    def _fill(self, text: str) -> None:
        self._list.clear()
        words = text.casefold().split()
        for action in self._actions.all():
            name = plain(action.text())
            if not name or not action.isEnabled():
                continue
            if all(word in name.casefold() for word in words):
                item = QListWidgetItem(name)
                item.setData(_ACTION, action)
                self._list.addItem(item)
        self._list.setCurrentRow(0)
        rows = self._list.count()
        self._list.setVisible(rows > 0)
        self._none.setVisible(rows == 0)
        self._list.setFixedHeight(min(max(rows, 1), MOST_ROWS) * theme().size("row"))
        self.adjustSize()

    @Slot(QListWidgetItem)
    def _on_chosen(self, item: QListWidgetItem) -> None:
        action = cast(QAction, item.data(_ACTION))
        self.close()
        self._window.bring(action.parent())
        action.trigger()


class KeyMap(QDialog):
    """All keys, in two columns."""

    def __init__(self, actions: Actions, window: QWidget) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(self.tr("Keys"))
        rows = [(plain(a.text()), keys(a)) for a in actions.all() if a.text() and keys(a)]
        rows += [
            (self.tr("Send the message"), self.tr("Enter")),
            (self.tr("New line in the message"), self.tr("Shift+Enter")),
            (self.tr("Next part of the window"), "F6"),
            (self.tr("Select text in the message that has the keyboard"), self.tr("Shift+arrows")),
        ]
        body = ScrollBody()
        grid = QGridLayout(body)
        grid.setContentsMargins(8, 8, 16, 8)
        grid.setHorizontalSpacing(theme().space(8))
        grid.setVerticalSpacing(theme().space(2))
        for i, (name, key) in enumerate(dict(rows).items()):
            grid.addWidget(label(name), i, 0)
            grid.addWidget(label(key, "tag"), i, 1, Qt.AlignmentFlag.AlignLeft)
        grid.setColumnStretch(0, 1)
        grid.setRowStretch(len(rows), 1)
        scroll = QScrollArea()
        scroll.setWidgetResizable(True)
        scroll.setWidget(body)
        scroll.setMinimumWidth(
            body.sizeHint().width() + scroll.verticalScrollBar().sizeHint().width()
        )
        scroll.setAccessibleName(self.tr("Keys"))
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 20, 24, 20)
        column.setSpacing(theme().space(4))
        column.addWidget(label(self.tr("Keys"), "title"))
        column.addWidget(scroll, 1)
        close = button(self.tr("Close"), kind="main")
        close.clicked.connect(self.accept)
        column.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)
        self.resize(QSize(520, 560) * theme().scale)
