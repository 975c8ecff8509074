"""Selecting text with the mouse and the keys, opening links, and copying."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, QRectF, Qt, QTimer, QUrl, Slot
from PySide6.QtGui import (
    QClipboard,
    QContextMenuEvent,
    QDesktopServices,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QShortcut,
)
from PySide6.QtWidgets import QMenu, QToolTip

from app.chat import caret
from app.chat.laid import END, Place
from app.chat.row import MessageRow
from app.chat.selection import Spot

if TYPE_CHECKING:
    from app.chat.view import MessageView

SCROLL_MS = 30
SCROLL_STEP = 24


class Pointer(QObject):
    """Turns events of the list's rows into a selection and clicks on links."""

    def __init__(self, view: MessageView) -> None:
        super().__init__(view)
        self._view = view
        self._dragging = False
        self._pressed_link = ""
        self._scroll = QTimer(self, interval=SCROLL_MS)
        self._scroll.timeout.connect(self._on_scroll)
        view.viewport().installEventFilter(self)
        for keys, slot in (
            (QKeySequence.StandardKey.Copy, self.copy),
            (QKeySequence.StandardKey.SelectAll, self.select_message),
        ):
            shortcut = QShortcut(QKeySequence(keys), view)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(slot)

    def watch(self, row: MessageRow) -> None:
        """Take part in what the mouse does to a row."""
        row.installEventFilter(self)

    # Selection

    def _spot(self, point: QPoint) -> Spot | None:
        found = self._view.row_at(point)
        if found is None:
            return None
        index, row = found
        text, place = row.place_at(row.mapFrom(self._view.viewport(), point).toPointF())
        return Spot(index, text, place)

    def _drag_to(self, point: QPoint) -> None:
        if (spot := self._spot(point)) is not None:
            self._view.selection.head = spot
            self._repaint()

    def _repaint(self) -> None:
        for _, row in self._view.rows():
            row.update()

    @Slot()
    def select_message(self) -> None:
        """Select all text of the current message."""
        selection = self._view.selection
        row = selection.rows.get(self._view.current)
        if row is not None:
            selection.anchor, selection.head = Spot(row, 0, Place()), Spot(row, 9, END)
            self._repaint()

    def _extend(self, row: MessageRow, event: QKeyEvent) -> bool:
        """Shift with an arrow, Home or End moves the selection's end inside a message."""
        keyboard = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        far = keyboard == Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.ControlModifier
        plain = keyboard == Qt.KeyboardModifier.ShiftModifier
        if event.key() not in caret.KEYS or not (far or plain) or row.entry is None:
            return False
        selection, index = self._view.selection, self._view.selection.rows[row.entry.message.id]
        self._view.entry_at(index)
        texts, head = row.texts(), selection.head
        if head is None or head.row != index or selection.anchor is None:
            start = next(i for i, (laid, _) in enumerate(texts) if laid is row.entry.main)
            main = texts[start][0]
            place = caret.last(main) if caret.goes_back(event.key()) else caret.first(main)
            head = selection.anchor = Spot(index, start, place)
        laid, rect = texts[min(head.text, len(texts) - 1)]
        place = caret.moved(laid, head.place, event.key(), far)
        selection.head = head._replace(place=place)
        self._show_place(row, caret.rect_of(laid, place).translated(rect.topLeft()))
        self._repaint()
        return True

    def _show_place(self, row: MessageRow, rect: QRectF) -> None:
        """Scroll as far as the moved end needs to be seen."""
        bar, room = self._view.verticalScrollBar(), self._view.viewport().height()
        top, bottom = row.y() + rect.top() - SCROLL_STEP, row.y() + rect.bottom() + SCROLL_STEP
        if top < 0:
            bar.setValue(bar.value() + round(top))
        elif bottom > room:
            bar.setValue(bar.value() + round(bottom - room))

    def text(self) -> str:
        """The selected text."""
        ends = self._view.selection.ends
        if ends is None:
            return ""
        parts = []
        for index in range(ends[0].row, ends[1].row + 1):
            entry = self._view.entry_at(index)
            for i, laid in enumerate(entry.parts()):
                if (chosen := self._view.selection.within(entry.message.id, i)) is not None:
                    parts.append(laid.chosen_text(*chosen))
        return "\n\n".join(p for p in parts if p)

    @Slot()
    def copy(self) -> None:
        """Put the selected text on the clipboard, or else the current message as it was written."""
        text = self.text()
        if not text and self._view.current:
            text = self._view.entry_at(self._view.selection.rows[self._view.current]).message.text
        if text:
            QGuiApplication.clipboard().setText(text)

    # Mouse

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return isinstance(watched, MessageRow) and self._extend(watched, event)
        if kind == QEvent.Type.MouseButtonPress and isinstance(event, QMouseEvent):
            return self._press(watched, event)
        if kind == QEvent.Type.MouseButtonDblClick and isinstance(event, QMouseEvent):
            return self._select_word(event)
        if kind == QEvent.Type.MouseMove and isinstance(event, QMouseEvent):
            self._move(watched, event)
        elif kind == QEvent.Type.MouseButtonRelease and isinstance(event, QMouseEvent):
            self._release(watched, event)
        elif kind == QEvent.Type.ContextMenu and isinstance(event, QContextMenuEvent):
            return self._open_menu(watched, event)
        return False

    def _open_menu(self, watched: QObject, event: QContextMenuEvent) -> bool:
        if not isinstance(watched, MessageRow) or watched.entry is None:
            return False
        menu = self.menu(watched.entry.message.id)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(event.globalPos())
        return True

    def _point(self, event: QMouseEvent) -> QPoint:
        return self._view.viewport().mapFromGlobal(event.globalPosition().toPoint())

    def _press(self, watched: QObject, event: QMouseEvent) -> bool:
        if event.button() != Qt.MouseButton.LeftButton:
            return False
        selection, spot = self._view.selection, self._spot(self._point(event))
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and selection.anchor is not None:
            selection.head = spot
        else:
            selection.anchor = selection.head = spot
        self._dragging = spot is not None
        row = watched if isinstance(watched, MessageRow) else None
        self._pressed_link = row.link_at(event.position()) if row else ""
        self._repaint()
        # Else the viewport below would get the same event and begin another selection.
        return row is not None

    def _move(self, watched: QObject, event: QMouseEvent) -> None:
        if self._dragging and event.buttons() & Qt.MouseButton.LeftButton:
            point = self._point(event)
            self._drag_to(point)
            outside = not 0 <= point.y() < self._view.viewport().height()
            if outside != self._scroll.isActive():
                self._scroll.start() if outside else self._scroll.stop()
        elif isinstance(watched, MessageRow):
            link = watched.link_at(event.position())
            shape = Qt.CursorShape.PointingHandCursor if link else Qt.CursorShape.IBeamCursor
            watched.setCursor(shape)
            if link:
                QToolTip.showText(event.globalPosition().toPoint(), link, watched)

    def _release(self, watched: QObject, event: QMouseEvent) -> None:
        self._scroll.stop()
        self._dragging = False
        clipboard = QGuiApplication.clipboard()
        if clipboard.supportsSelection() and (text := self.text()):
            clipboard.setText(text, QClipboard.Mode.Selection)
        link, self._pressed_link = self._pressed_link, ""
        if not link or self._view.selection.ends is not None or not isinstance(watched, MessageRow):
            return
        if (
            event.button() == Qt.MouseButton.LeftButton
            and watched.link_at(event.position()) == link
        ):
            self.open_link(link)

    def open_link(self, link: str) -> None:
        """Hand an address, which is a safe one by now, to the browser or the mail program."""
        QDesktopServices.openUrl(QUrl(link))

    def _select_word(self, event: QMouseEvent) -> bool:
        spot = self._spot(self._point(event))
        if spot is None:
            return False
        laid = self._view.entry_at(spot.row).parts()[spot.text]
        start, end = laid.word_at(spot.place)
        selection = self._view.selection
        selection.anchor, selection.head = spot._replace(place=start), spot._replace(place=end)
        self._repaint()
        return True

    @Slot()
    def _on_scroll(self) -> None:
        view = self._view
        point = view.viewport().mapFromGlobal(view.cursor().pos())
        bar = view.verticalScrollBar()
        bar.setValue(bar.value() + (SCROLL_STEP if point.y() > 0 else -SCROLL_STEP))
        self._drag_to(point)

    def menu(self, message_id: str) -> QMenu:
        """The menu of a message: what its buttons do, and more."""
        view, menu = self._view, QMenu(self._view)
        entry = view.entry_at(view.selection.rows[message_id])
        chosen = self.text()
        if chosen:
            menu.addAction(self.tr("Copy selected text"), self.copy)

        def add(words: str, action: str) -> None:
            menu.addAction(words, lambda: view.wanted.emit(action, message_id))

        if entry.message.text:
            add(self.tr("Copy message"), "copy")
        if entry.is_user:
            add(self.tr("Edit as a new version"), "edit")
        elif not entry.writing:
            add(self.tr("Answer again"), "regenerate")
        if entry.shown.version > 1:
            add(self.tr("Previous version"), "previous")
        if entry.shown.version < entry.shown.versions:
            add(self.tr("Next version"), "next")
        return menu
