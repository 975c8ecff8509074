"""The list of messages: only what is visible has a widget, and only what is near has a layout."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice

from PySide6.QtCore import QPoint, QRect, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QShowEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QSizePolicy, QWidget

from app.chat.colors import Lexers
from app.chat.column import Column
from app.chat.drafted import Marks
from app.chat.entry import Entry, Shown, Styles
from app.chat.mouse import Pointer
from app.chat.row import MessageRow
from app.chat.selection import Selection, Spot
from app.chat.style import Style
from app.chat.tree import Message
from app.theme import theme
from app.widgets import button

# Layout work in one turn of the event loop: more than half of a frame is left for painting.
SLICE_S = 0.003
WAIT_MS = 4
# Messages around the visible ones that are laid out ahead, and that are kept.
NEAR = 20
FAR = 30
UNLOAD = 4
GAP = 4
MARGIN = 24


class MessageView(QAbstractScrollArea):
    """Shows messages in a column; follows the end until the reader scrolls away from it.

    Signals:
        wanted(action, message id): see `MessageRow.wanted`.
        pinned_changed(bool): whether the view follows the end.
    """

    wanted = Signal(str, str)
    pinned_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Ignored)
        self.setProperty("bare", True)
        self.setProperty("focusRing", False)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName(self.tr("Messages"))
        self.selection, self.marks = Selection(), Marks()
        self.pointer = Pointer(self)
        self._lexers = Lexers(self)
        self._lexers.ready.connect(self._on_language)
        self._entries: list[Entry] = []
        self._column = Column(MARGIN, GAP)
        self._rows: dict[str, MessageRow] = {}
        self._pool: list[MessageRow] = []
        self._current, self._anchor = "", (0, 0.0)
        self._pinned, self._placing = True, False
        self._work = QTimer(self, singleShot=True)
        self._work.timeout.connect(self._on_work)
        self._jump = button(self.tr("Jump to latest"), self.to_end, icon="chevron-down")
        self._jump.setParent(self)
        self._jump.hide()
        self.verticalScrollBar().valueChanged.connect(self._on_scrolled)
        theme().changed.connect(self._on_theme)
        self._on_theme()

    # What is shown

    def set_messages(self, messages: Sequence[Message]) -> None:
        """Show a path of messages; layouts of those that stay are kept."""
        known = {e.message.id: e for e in self._entries}
        heights = dict(zip(known, self._column.heights, strict=True))
        same = bool(messages) and bool(known) and messages[0].id in known
        self._entries, width = [], self._width()
        for message in messages:
            entry = known.get(message.id)
            if entry is None or entry.message is not message:
                entry = Entry(message, self._styles, self._lexers)
                entry.set_width(width)
            else:
                entry.refresh()
            self._entries.append(entry)
        self.selection.clear()
        self.selection.rows = {e.message.id: i for i, e in enumerate(self._entries)}
        for message_id in [m for m in self._rows if m not in self.selection.rows]:
            self._recycle(message_id)
        self._column.fill(heights.get(e.message.id) or e.estimate() for e in self._entries)
        if same:
            for i in self._visible():
                self._measure(i)
            self._fill()
            return
        self._pinned, self._current = True, ""
        self._sync_bar()
        # To take in 300 messages is enough for one turn.
        self._work.start(0)

    def set_shown(self, message_id: str, shown: Shown) -> None:
        """Change what stands around a message."""
        entry = self._entry(message_id)
        if entry is not None and entry.shown != shown:
            entry.shown = shown
            if (row := self._rows.get(message_id)) is not None:
                row.arrange()

    def refresh(self, message_id: str) -> None:
        """Take over a message's new text and state."""
        if (entry := self._entry(message_id)) is not None:
            entry.refresh()
            self._fill()
            self._measure(self.selection.rows[message_id])

    def _entry(self, message_id: str) -> Entry | None:
        at = self.selection.rows.get(message_id)
        return self._entries[at] if at is not None else None

    @property
    def current(self) -> str:
        """The id of the message that the keyboard is at, "" if none."""
        return self._current

    @property
    def pinned(self) -> bool:
        """Whether the view follows the end."""
        return self._pinned

    def busy(self) -> bool:
        """Whether something visible or near is still to be laid out."""
        return self._work.isActive()

    # Heights and places

    def _width(self) -> float:
        return float(min(theme().size("measure"), max(self.width() - 2 * MARGIN, 120)))

    def _visible(self) -> range:
        top = self.verticalScrollBar().value()
        return self._column.between(top, top + self.viewport().height())

    def _sync_bar(self) -> None:
        """Fit the scroll bar, holding what the reader looks at where it is."""
        bar = self.verticalScrollBar()
        height = self.viewport().height()
        self._placing = True
        bar.setPageStep(height)
        bar.setRange(0, max(round(self._column.total) - height, 0))
        if self._pinned:
            bar.setValue(bar.maximum())
        else:
            row, within = self._anchor
            bar.setValue(round(self._column.top(row) + within))
        self._placing = False

    def _remember(self) -> None:
        value = self.verticalScrollBar().value()
        # Not the message of which only the end shows: its height may still be an estimate.
        row = self._column.at(value + 2 * MARGIN)
        self._anchor = (row, value - self._column.top(row))

    @Slot(int)
    def _on_scrolled(self, value: int) -> None:
        if self._placing:
            return
        bar = self.verticalScrollBar()
        self._set_pinned(value >= bar.maximum() - self._styles.answer.body.height)
        self._remember()
        self._fill()

    def _set_pinned(self, pinned: bool) -> None:
        if pinned != self._pinned:
            self._pinned = pinned
            self.pinned_changed.emit(pinned)
        self._place_jump()

    def _place_jump(self) -> None:
        bar = self.verticalScrollBar()
        self._jump.setVisible(not self._pinned and bar.maximum() - bar.value() > 60)
        size = self._jump.sizeHint()
        x, y = (self.width() - size.width()) // 2, self.height() - size.height() - 8
        self._jump.setGeometry(QRect(QPoint(x, y), size))

    def to_end(self) -> None:
        """Show the newest text and follow it."""
        self._set_pinned(True)
        self._fill()

    def show_message(self, message_id: str, focus: bool = True) -> None:
        """Scroll so that a message begins near the top; with `focus` it becomes the current one."""
        at = self.selection.rows.get(message_id)
        if at is None:
            return
        self._pinned = False
        self._anchor = (at, -float(MARGIN))
        self._fill()
        self._remember()
        if focus:
            self._go(at, scroll=False)

    def select(self, start: Spot, end: Spot) -> None:
        """Select a stretch of one message and bring it into view."""
        self.selection.anchor, self.selection.head = start, end
        self.show_message(self._entries[start.row].message.id, focus=False)
        row = self._rows.get(self._entries[start.row].message.id)
        texts = row.texts() if row is not None else []
        if start.text < len(texts):
            laid, rect = texts[start.text]
            box = laid.boxes[start.place.box]
            within = rect.top() + box.y + box.runs[start.place.run].at.y()
            self._anchor = (start.row, max(within - self.viewport().height() / 3, -float(MARGIN)))
            self._fill()
            self._remember()
        for shown in self._rows.values():
            shown.update()

    def messages(self) -> list[Message]:
        """The messages that are shown."""
        return [e.message for e in self._entries]

    def code(self, message_id: str, box: int) -> str:
        """The whole code that a box of a message shows."""
        entry = self._entry(message_id)
        return entry.main.code_of(entry.main.boxes[box]) if entry is not None else ""

    # Layout work

    def _fill(self, whole: bool = True) -> None:
        """Lay out what is visible as far as the time of one slice goes, and give it widgets.

        Unless `whole`, widgets that must be made may wait too.
        """
        deadline = time.perf_counter() + SLICE_S
        late = False
        for _ in range(len(self._entries) + 1):
            self._sync_bar()
            visible = self._visible()
            order = reversed(visible) if self._pinned else visible
            todo = next((i for i in order if not self._entries[i].done), None)
            if todo is None:
                break
            late = not self._entries[todo].advance(deadline)
            self._measure(todo)
            if late or time.perf_counter() > deadline:
                late = True
                break
        self._sync_bar()
        late = not self._place_rows(float("inf") if whole else deadline) or late
        if late or self._next_near() is not None:
            # What is only near can wait: layout and painting should not add up to one long turn.
            self._work.start(0 if late else WAIT_MS)

    def _measure(self, i: int) -> None:
        entry = self._entries[i]
        height = entry.layout().height
        if not entry.done:
            height = max(height, self._column.heights[i])
        self._column.set_height(i, height)
        if (row := self._rows.get(entry.message.id)) is not None:
            row.arrange()

    def _next_near(self) -> int | None:
        """The entry nearest to the visible ones that has no layout yet."""
        visible = self._visible()
        if not visible or not self.isVisible():
            return None
        for distance in range(NEAR + 1):
            for i in (visible.stop - 1 + distance, visible.start - distance):
                if 0 <= i < len(self._entries) and not self._entries[i].done:
                    return i
        return None

    @Slot()
    def _on_work(self) -> None:
        visible = self._visible()
        if any(not self._entries[i].done for i in visible):
            return self._fill(whole=False)
        deadline = time.perf_counter() + SLICE_S / 2
        while (i := self._next_near()) is not None and time.perf_counter() < deadline:
            self._entries[i].advance(deadline)
            self._measure(i)
        self._unload_far(visible)
        self._sync_bar()
        if not self._place_rows(deadline) or self._next_near() is not None:
            self._work.start(WAIT_MS)

    def _unload_far(self, visible: range) -> None:
        """Let go of layouts that are far from what is shown, some at a time."""
        kept = range(visible.start - FAR, visible.stop + FAR)
        far = (e for i, e in enumerate(self._entries) if i not in kept and e.main.boxes)
        for entry in islice(far, UNLOAD):
            entry.unload()

    def _place_rows(self, deadline: float) -> bool:
        """Put widgets where visible messages are; false if some that must be made have to wait."""
        made = waiting = False
        visible = self._visible()
        wanted = {self._entries[i].message.id for i in visible}
        for message_id in [m for m in self._rows if m not in wanted]:
            self._recycle(message_id)
        for i in visible:
            entry = self._entries[i]
            row = self._rows.get(entry.message.id)
            new = row is None or row.entry is not entry
            if row is None:
                if made and time.perf_counter() > deadline:
                    waiting = True
                    continue
                row, made = self._pool.pop() if self._pool else self._new_row(), True
                self._rows[entry.message.id] = row
            if new:
                row.bind(entry)
                row.set_current(entry.message.id == self._current)
            place = self._place(i)
            if row.geometry() != place:
                row.setGeometry(place)
            if new:
                row.arrange()
                row.show()
        self._place_jump()
        return not waiting

    def _place(self, i: int) -> QRect:
        """Where the row of an entry belongs on the viewport."""
        width = round(self._width())
        # By the whole width, so that the column stands above the message box, bar or no bar.
        left = (self.width() - width + 1) // 2
        top = round(self._column.top(i)) - self.verticalScrollBar().value()
        return QRect(left, top, width, round(self._column.heights[i]))

    def _new_row(self) -> MessageRow:
        row = MessageRow(self.selection, self.marks, self.viewport())
        row.wanted.connect(self._on_wanted)
        row.focused.connect(self._on_focused)
        self.pointer.watch(row)
        row.hide()
        return row

    def _recycle(self, message_id: str) -> None:
        row = self._rows.pop(message_id)
        if row.hasFocus() or row.isAncestorOf(self.focusWidget() or self):
            self.setFocus(Qt.FocusReason.OtherFocusReason)
        row.bind(None)
        self._pool.append(row)

    # Events

    def resizeEvent(self, event: QResizeEvent) -> None:
        column = self._width()
        changed = [entry.set_width(column) for entry in self._entries]
        if any(changed):
            heights = zip(self._entries, self._column.heights, strict=True)
            self._column.fill(h if e.main.boxes else e.estimate() for e, h in heights)
        self._fill(whole=False) if self._rows else self._work.start(0)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._fill(whole=False)

    def paintEvent(self, event: QPaintEvent) -> None:
        QPainter(self.viewport()).fillRect(event.rect(), theme().color("surface.bg"))

    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Rows are placed by `_fill`, which the scroll bar's change calls."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        if event.angleDelta().y() > 0:
            # Even a small turn up says that the reader wants to stay; the end must not pull back.
            self._remember()
            self._set_pinned(False)
        super().wheelEvent(event)

    @Slot()
    def _on_theme(self) -> None:
        self._styles = Styles(Style(theme()), Style(theme(), muted=True))
        self.verticalScrollBar().setSingleStep(self._styles.answer.body.height)
        for entry in self._entries:
            entry.set_styles(self._styles)
            entry.set_width(self._width())
        for row in self._rows.values():
            row.arrange()
        self._fill()

    @Slot(str)
    def _on_language(self, language: str) -> None:
        for entry in self._entries:
            entry.main.recolor(language)
        self._fill()

    @Slot(str, str)
    def _on_wanted(self, action: str, message_id: str) -> None:
        entry = self._entry(message_id)
        if entry is not None and action == "fold":
            self._set_pinned(False)
            self._remember()
            entry.unfolded = not entry.unfolded
            entry.refresh()
            entry.set_width(self._width())
            self._measure(self.selection.rows[message_id])
            self._fill()
            return
        self.wanted.emit(action, message_id)

    @Slot(str)
    def _on_focused(self, message_id: str) -> None:
        if message_id != self._current:
            if (old := self._rows.get(self._current)) is not None:
                old.set_current(False)
            self._current = message_id
            self._rows[message_id].set_current(True)

    # Keys

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        if (row := self._rows.get(self._current)) is not None:
            row.setFocus(Qt.FocusReason.OtherFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves: dict[int, Callable[[], None]] = {
            Qt.Key.Key_Up: lambda: self._step(-1),
            Qt.Key.Key_Down: lambda: self._step(1),
            Qt.Key.Key_PageUp: lambda: self._page(-1),
            Qt.Key.Key_PageDown: lambda: self._page(1),
            Qt.Key.Key_Home: lambda: self._go(0),
            Qt.Key.Key_End: lambda: self._go(len(self._entries) - 1),
        }
        if (move := moves.get(event.key())) is not None and not event.modifiers():
            move()
        else:
            super().keyPressEvent(event)

    def _page(self, by: int) -> None:
        bar = self.verticalScrollBar()
        if by < 0:
            self._remember()
            self._set_pinned(False)
        bar.setValue(bar.value() + by * (bar.pageStep() - 2 * self._styles.answer.body.height))

    def _step(self, by: int) -> None:
        """Go to the next message; one taller than the view is first scrolled through."""
        at = self.selection.rows.get(self._current)
        if at is None:
            visible = self._visible()
            self._go(visible.stop - 1 if by < 0 else visible.start)
            return
        bar = self.verticalScrollBar()
        top, bottom = self._column.top(at), self._column.bottom(at)
        hidden = bottom > bar.value() + bar.pageStep() if by > 0 else top < bar.value()
        if hidden and bottom - top > bar.pageStep() - 40:
            if by < 0:
                self._set_pinned(False)
            bar.setValue(bar.value() + by * 3 * self._styles.answer.body.height)
        else:
            self._go(at + by)

    def _go(self, at: int, scroll: bool = True) -> None:
        if not 0 <= at < len(self._entries):
            return
        bar = self.verticalScrollBar()
        top, bottom = self._column.top(at), self._column.bottom(at)
        if scroll and (top < bar.value() or bottom > bar.value() + bar.pageStep()):
            below = bottom > bar.value() + bar.pageStep() and bottom - top < bar.pageStep()
            self._set_pinned(False)
            bar.setValue(round(bottom + MARGIN - bar.pageStep() if below else top - MARGIN))
            self._remember()
            self._fill()
        if (row := self._rows.get(self._entries[at].message.id)) is not None:
            row.setFocus(Qt.FocusReason.OtherFocusReason)

    def rows(self) -> list[tuple[int, MessageRow]]:
        """The rows on screen with their place in the list, from the top."""
        return sorted((self.selection.rows[m], r) for m, r in self._rows.items())

    def entry_at(self, index: int) -> Entry:
        """The entry of a place in the list, laid out to the end."""
        entry = self._entries[index]
        entry.advance(float("inf"))
        return entry

    def row_at(self, point: QPoint) -> tuple[int, MessageRow] | None:
        """The row nearest to a point of the viewport."""
        rows = self.rows()
        above = [r for r in rows if r[1].y() <= point.y()]
        return above[-1] if above else rows[0] if rows else None
