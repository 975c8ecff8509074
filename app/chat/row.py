"""The widget of one visible message: paints its text, holds its buttons."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QEvent, QPoint, QPointF, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QEnterEvent, QFocusEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from app.chat.drafted import Marks, drafted_share
from app.chat.entry import CARD_X, Entry, Layout
from app.chat.laid import Laid, Place
from app.chat.thinking import summary
from app.chat.tree import State
from app.i18n import told
from app.theme import theme
from app.widgets import IconButton, button, label

if TYPE_CHECKING:
    from app.chat.view import Selection

SPOKEN_LENGTH = 4000
FOLD_PAD = 12
_Part = TypeVar("_Part", bound=QWidget)


class MessageRow(QWidget):
    """Shows an entry; rows are used again for other entries as the list scrolls.

    Its buttons and words are made when they are first shown: all of them take as long as a page of text.

    Signals:
        wanted(action, message id): "copy", "regenerate", "edit", "previous", "next", "fold", "retry",
            "new_chat" or "code:<box>".
        focused(message id): the keyboard came to this message.
    """

    wanted = Signal(str, str)
    focused = Signal(str)

    def __init__(self, selection: Selection, marks: Marks, parent: QWidget) -> None:
        super().__init__(parent)
        self.entry: Entry | None = None
        self._selection, self._marks = selection, marks
        self._place: Layout | None = None
        self._hover = False
        self._current = False
        self._code_buttons: list[QPushButton] = []
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setMouseTracking(True)
        self.setProperty("ringRadius", theme().radius("panel"))

    # Parts

    def _add(self, part: _Part) -> _Part:
        part.setParent(self)
        return part

    def _icon(self, icon: str, name: str, action: str, keys: str = "") -> IconButton:
        made = IconButton(icon, name, f"{name} ({keys})" if keys else name, self, "controlCompact")
        made.clicked.connect(self._emit(action))
        return self._add(made)

    @cached_property
    def _fold(self) -> QPushButton:
        made = self._add(QPushButton(self))
        made.setProperty("kind", "quiet")
        made.setStyleSheet("QPushButton { font-weight: 400; }")
        made.clicked.connect(self._on_fold)
        return made

    @cached_property
    def _folded_text(self) -> QLabel:
        return self._add(label("", "muted"))

    @cached_property
    def _copy(self) -> IconButton:
        return self._icon("copy", self.tr("Copy"), "copy")

    @cached_property
    def _again(self) -> IconButton:
        return self._icon("retry", self.tr("Answer again"), "regenerate", "Ctrl+R")

    @cached_property
    def _edit(self) -> IconButton:
        return self._icon("branch", self.tr("Edit as a new version"), "edit")

    @cached_property
    def _previous(self) -> IconButton:
        return self._icon("chevron-left", self.tr("Previous version"), "previous", "Alt+Left")

    @cached_property
    def _next(self) -> IconButton:
        return self._icon("chevron-right", self.tr("Next version"), "next", "Alt+Right")

    @cached_property
    def _version(self) -> QLabel:
        made = self._add(label("", "small"))
        made.setAlignment(Qt.AlignmentFlag.AlignCenter)
        return made

    @cached_property
    def _note(self) -> QLabel:
        return self._add(label("", "small"))

    @cached_property
    def _retry(self) -> QPushButton:
        return self._add(button(self.tr("Try again"), self._emit("retry"), icon="retry"))

    @cached_property
    def _new(self) -> QPushButton:
        return self._add(button(self.tr("New chat with this question"), self._emit("new_chat")))

    def _show(self, **wanted: bool) -> None:
        """Show or hide parts by name."""
        for name, there in wanted.items():
            if there or self._made(name):
                getattr(self, f"_{name}").setVisible(there)

    def _made(self, *names: str) -> list[QWidget]:
        """Those of the parts that are there."""
        return [self.__dict__[f"_{name}"] for name in names if f"_{name}" in self.__dict__]

    def _emit(self, action: str) -> Callable[[], None]:
        def emit() -> None:
            if self.entry is not None:
                self.wanted.emit(action, self.entry.message.id)

        return emit

    def _on_fold(self) -> None:
        self._emit("fold")()

    # What is shown

    def bind(self, entry: Entry | None) -> None:
        """Show another entry, or none."""
        self.entry = entry
        self._place = None
        self._hover = False
        self.setAccessibleName("")
        if entry is None:
            self.hide()

    def arrange(self) -> None:
        """Take over the entry's text, state and layout."""
        entry = self.entry
        if entry is None:
            return
        before, self._place = self._place, entry.layout()
        place = self._place
        self._arrange_header(entry, place)
        self._arrange_codes(entry, place)
        self._arrange_footer(entry, place)
        self._speak(entry)
        self.update(self._changed(entry, before, place))

    def _changed(self, entry: Entry, before: Layout | None, place: Layout) -> QRect:
        """What has to be painted: all, or of an answer that grows only its end."""
        change = entry.main.take_change()
        if (
            before is None
            or not entry.writing
            or entry.thought
            or before.main.top() != place.main.top()
        ):
            return self.rect()
        end = min(before.main.height(), place.main.height()) - CARD_X - entry.main.head_height
        top = round(place.main.top() + max(min(change - CARD_X, end), 0))
        return QRect(0, top, self.width(), max(self.height(), round(place.height)) - top)

    def _speak(self, entry: Entry) -> None:
        text = entry.main.text[:SPOKEN_LENGTH]
        if entry.is_user:
            name = self.tr("You: {text}").format(text=text)
        else:
            who = entry.message.model or self.tr("Answer")
            name = f"{who}: {text}"
        if entry.message.error:
            name += " " + self.tr("Error: {text}").format(text=told(entry.message.error))
        if not entry.writing or not self.accessibleName():
            self.setAccessibleName(name)

    def _arrange_header(self, entry: Entry, place: Layout) -> None:
        there = place.header is not None
        self._show(fold=there, folded_text=there)
        if place.header is None:
            return
        seconds = entry.message.usage.get("thought_s")
        if entry.thinking_open:
            text = self.tr("Thinking")
        elif seconds:
            text = self.tr("Thought for {n} s").format(n=f"{seconds:.1f}")
        else:
            text = self.tr("Thought")
        icon = "chevron-down" if entry.unfolded else "chevron-right"
        theme().tint(self._fold, icon, "text.muted", theme().size("iconSmall"))
        self._fold.setText(text)
        self._fold.setAccessibleName(f"{text}. {summary(entry.thinking)}")
        self._fold.setAccessibleDescription(
            self.tr("Unfolded") if entry.unfolded else self.tr("Folded")
        )
        size = self._fold.sizeHint()
        top = round(place.header.top() + (place.header.height() - size.height()) / 2)
        self._fold.setGeometry(-FOLD_PAD, top, size.width(), size.height())
        left = size.width() - FOLD_PAD
        room = self.width() - left
        metrics = self._folded_text.fontMetrics()
        line = "" if entry.unfolded else summary(entry.thinking)
        self._folded_text.setText(metrics.elidedText(line, Qt.TextElideMode.ElideRight, room - 8))
        self._folded_text.setGeometry(
            left, round(place.header.top()), room, round(place.header.height())
        )

    def _arrange_codes(self, entry: Entry, place: Layout) -> None:
        heads = [b for b in entry.main.boxes if b.part.piece.kind == "code" and b.part.first]
        while len(self._code_buttons) < len(heads):
            made = button(self.tr("Copy"), kind="quiet", icon="copy")
            made.setProperty("number", len(self._code_buttons))
            made.setParent(self)
            made.clicked.connect(self._on_code)
            self._code_buttons.append(made)
        font = theme().font("small")
        for i, made in enumerate(self._code_buttons):
            made.setFont(font)
            made.setVisible(i < len(heads))
            if i < len(heads):
                box = heads[i]
                language = box.part.piece.language
                made.setAccessibleName(
                    self.tr("Copy code {language}").format(language=language).strip()
                )
                size = made.sizeHint()
                right = place.main.left() + box.left + box.width
                head = entry.main.head_height
                top = place.main.top() + box.y + (head - size.height()) / 2
                made.setGeometry(QRect(QPoint(round(right - size.width() - 4), round(top)), size))

    def _on_code(self) -> None:
        number = self.sender().property("number")
        if self.entry is not None:
            heads = [
                b for b in self.entry.main.boxes if b.part.piece.kind == "code" and b.part.first
            ]
            if number < len(heads):
                self.wanted.emit(
                    f"code:{self.entry.main.boxes.index(heads[number])}", self.entry.message.id
                )

    def _arrange_footer(self, entry: Entry, place: Layout) -> None:
        final = not entry.writing
        failed = entry.message.state is State.FAILED
        quiet = entry.is_user and not self._awake()
        many, note = entry.shown.versions > 1, self._footnote(entry)
        self._show(
            copy=final and not quiet and bool(entry.message.text),
            edit=entry.is_user and not quiet,
            again=final and not entry.is_user and not failed,
            retry=failed,
            new=failed and entry.message.error_kind == "ContextOverflow",
            previous=many,
            next=many,
            version=many,
            note=bool(note),
        )
        if note:
            self._note.setText(note)
        left = self._made("copy", "edit", "again", "retry", "new", "note")
        self._line_up([w for w in left if not w.isHidden()], place.footer)
        if many:
            self._version.setText(f"{entry.shown.version} / {entry.shown.versions}")
            self._previous.setEnabled(entry.shown.version > 1)
            self._next.setEnabled(entry.shown.version < entry.shown.versions)
            self._line_up_right(place.footer)
        self._let_focus()

    def _footnote(self, entry: Entry) -> str:
        message = entry.message
        if entry.is_user:
            return ""
        if entry.writing:
            if entry.shown.progress or not entry.shown.rate:
                return entry.shown.progress
            return self.tr("{n} tok/s").format(n=f"{entry.shown.rate:.1f}")
        cut = self.tr("Cut at the answer length")
        if message.usage.get("context_full"):
            cut = self.tr("Cut off: the context is full")
        elif message.usage.get("loop"):
            cut = self.tr("Ended, since it only repeated itself")
        words = {
            State.STOPPED: self.tr("Stopped"),
            State.LENGTH: cut,
            State.INTERRUPTED: self.tr("Cut off when the application ended"),
        }
        notes = [words[message.state]] if message.state in words else []
        if (rate := message.usage.get("decode_rate")) is not None:
            notes.append(self.tr("{n} tok/s").format(n=f"{rate:.1f}"))
        if self._marks.on and (share := drafted_share(message.usage)) is not None:
            notes.append(self.tr("dotted: drafted, {n} %").format(n=round(100 * share)))
        if message.model and self._awake():
            notes.append(message.model)
        return " · ".join(notes)

    def _line_up(self, widgets: list[QWidget], footer: QRectF) -> None:
        x = -6 if widgets and isinstance(widgets[0], IconButton) else 0
        for widget in widgets:
            size = _size(widget)
            if isinstance(widget, QLabel):
                x += 4 if x > 0 else 0
                size.setWidth(min(size.width(), max(self.width() - x - 100, 40)))
            top = round(footer.top() + (footer.height() - size.height()) / 2)
            widget.setGeometry(x, top, size.width(), size.height())
            x += size.width() + (4 if isinstance(widget, IconButton) else 8)

    def _line_up_right(self, footer: QRectF) -> None:
        x = self.width() + 6
        for widget, gap in ((self._next, 0), (self._version, 2), (self._previous, 2)):
            size = _size(widget)
            x -= size.width() + gap
            top = round(footer.top() + (footer.height() - size.height()) / 2)
            widget.setGeometry(x, top, size.width(), size.height())

    # Hover and focus

    def _awake(self) -> bool:
        focus = self.focusWidget() if self.isAncestorOf(self) else None
        return self._hover or self.hasFocus() or (focus is not None and focus.hasFocus())

    def _set_hover(self, hover: bool) -> None:
        self._hover = hover
        if self.entry is not None and self._place is not None:
            self._arrange_footer(self.entry, self._place)

    def enterEvent(self, event: QEnterEvent) -> None:
        self._set_hover(True)

    def leaveEvent(self, event: QEvent) -> None:
        self._set_hover(False)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._set_hover(self._hover)
        if self.entry is not None:
            self.focused.emit(self.entry.message.id)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._set_hover(self._hover)

    def set_current(self, current: bool) -> None:
        """Let Tab reach this row's buttons only while it is the current one."""
        self._current = current
        policy = Qt.FocusPolicy.StrongFocus if current else Qt.FocusPolicy.ClickFocus
        self.setFocusPolicy(policy)
        self._let_focus()

    def _let_focus(self) -> None:
        first, last = (
            self._made("fold"),
            ("copy", "again", "edit", "previous", "next", "retry", "new"),
        )
        parts = [*first, *self._code_buttons, *self._made(*last)]
        for part in parts:
            part.setFocusPolicy(
                Qt.FocusPolicy.TabFocus if self._current else Qt.FocusPolicy.NoFocus
            )
        # They were made in the order in which they were first shown.
        for before, after in pairwise(parts if self._current else ()):
            QWidget.setTabOrder(before, after)

    # Texts and places

    def texts(self) -> list[tuple[Laid, QRectF]]:
        """The texts that can be selected, with their places."""
        entry, place = self.entry, self._place
        if entry is None or place is None:
            return []
        found = [(entry.main, place.main)]
        if entry.thought is not None and place.thought is not None:
            found.insert(0, (entry.thought, place.thought))
        if entry.error is not None and place.error is not None:
            found.append((entry.error, place.error.adjusted(CARD_X + 24, 10, -CARD_X, -10)))
        return found

    def place_at(self, point: QPointF) -> tuple[int, Place]:
        """Which text of this row, and where in it, is nearest to a point."""
        texts = self.texts()
        nearest = 0
        for i, (_, rect) in enumerate(texts):
            if point.y() >= rect.top():
                nearest = i
        laid, rect = texts[nearest]
        return nearest, laid.place_at(point.x() - rect.x(), point.y() - rect.y())

    def link_at(self, point: QPointF) -> str:
        """The address under a point, "" if none."""
        for laid, rect in self.texts():
            if rect.contains(point):
                return laid.link_at(point.x() - rect.x(), point.y() - rect.y())
        return ""

    # Painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), theme().color("surface.bg"))
        entry, place = self.entry, self._place
        if entry is None or place is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colors, radius = theme(), theme().radius("panel")
        if place.card is not None:
            painter.setPen(colors.color("line.hair"))
            painter.setBrush(colors.color("surface.panel"))
            painter.drawRoundedRect(place.card.adjusted(0.5, 0.5, -0.5, -0.5), radius, radius)
        if place.thought is not None:
            rect = QRectF(7, place.thought.top(), 2, place.thought.height())
            painter.fillRect(rect, colors.color("line.strong"))
        if place.error is not None:
            self._paint_error(painter, place.error)
        clip = QRectF(event.rect())
        for i, (laid, rect) in enumerate(self.texts()):
            painter.save()
            painter.translate(rect.topLeft())
            chosen = self._selection.within(entry.message.id, i)
            drafted = entry.drafted if self._marks.on and laid is entry.main else ()
            laid.draw(painter, clip.translated(-rect.topLeft()), chosen, drafted, entry.shift)
            painter.restore()
        if entry.writing and not entry.thinking_open and not entry.shown.progress:
            mark = entry.main.end_of_text()
            if mark is None:
                mark = QRectF(0, 3, 7, max(place.main.height() - 6, 8))
            painter.fillRect(mark.translated(place.main.topLeft()), colors.color("accent.base"))

    def _paint_error(self, painter: QPainter, rect: QRectF) -> None:
        colors, radius = theme(), theme().radius("block")
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colors.color("state.badSoft"))
        painter.drawRoundedRect(rect, radius, radius)
        icon = colors.pixmap("error", "state.bad", 16, self.devicePixelRatioF())
        painter.drawPixmap(QPointF(rect.left() + CARD_X, rect.top() + 13), icon)


def _size(widget: QWidget) -> QSize:
    """What a part of the footer takes; an icon may not have its size of another text size yet."""
    edge = theme().size("controlCompact")
    return QSize(edge, edge) if isinstance(widget, IconButton) else widget.sizeHint()
