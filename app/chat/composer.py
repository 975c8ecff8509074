"""The message box: grows with its text, sends, stops, edits, and takes text files."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from PySide6.QtCore import QEvent, QMimeData, QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QFocusEvent,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.theme import theme
from app.widgets import IconButton, button, label

MAX_LINES = 8
Mode = Literal["send", "stop", "loading", "no model"]


class Editor(QPlainTextEdit):
    """Signals: as named; `files(list[Path])` comes from a drop or a paste."""

    submitted = Signal()
    escaped = Signal()
    up_in_empty = Signal()
    focus_changed = Signal()
    files = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("bare", True)
        self.setProperty("focusRing", False)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setTabChangesFocus(True)
        self.document().setDocumentMargin(0)
        self.document().documentLayout().documentSizeChanged.connect(self._fit)
        self._restyle()
        theme().changed.connect(self._restyle)

    @Slot()
    def _restyle(self) -> None:
        self.setFont(theme().font("body"))
        # The hint is drawn in the viewport's own font, which does not follow.
        self.viewport().setFont(theme().font("body"))
        self._fit()

    @Slot()
    def _fit(self) -> None:
        lines = max(1, min(round(self.document().size().height()), MAX_LINES))
        height = lines * self.fontMetrics().lineSpacing() + 6
        if height != self.height():
            self.setFixedHeight(height)

    def event(self, event: QEvent) -> bool:
        # Where no text can be undone, the keys are the page's: a chat was deleted.
        if (
            isinstance(event, QKeyEvent)
            and event.type() == QEvent.Type.ShortcutOverride
            and event.matches(QKeySequence.StandardKey.Undo)
            and not self.document().isUndoAvailable()
        ):
            event.ignore()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        plain = not event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and plain:
            self.submitted.emit()
        elif event.key() == Qt.Key.Key_Escape:
            self.escaped.emit()
        elif event.key() == Qt.Key.Key_Up and plain and not self.toPlainText():
            self.up_in_empty.emit()
        else:
            super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasUrls() or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        paths = [Path(u.toLocalFile()) for u in source.urls() if u.isLocalFile()]
        if paths:
            self.files.emit(paths)
        else:
            self.insertPlainText(source.text())

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit()


class Composer(QFrame):
    """Signals:
    sent(text): a message is to be sent, or with `editing` a new version of one.
    stopped: the answer is to be stopped.
    edit_last_wanted: Up was pressed in the empty box.
    files(list[Path]): files are to be attached.
    action: the one button that helps where no model is loaded.
    changed(text): what is typed changed.
    """

    sent = Signal(str)
    stopped = Signal()
    edit_last_wanted = Signal()
    files = Signal(object)
    action = Signal()
    changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.editing = ""
        self._kept = ""
        self._mode: Mode = "no model"
        self._early = False  # sent before the model was ready
        self.editor = Editor()
        self.editor.setAccessibleName(self.tr("Message"))
        self.attach = IconButton("attach", self.tr("Attach a text file"))
        self.tune = IconButton("tune", self.tr("Sampling"))
        self.prompt = button(self.tr("System prompt"), kind="quiet")
        self.count = label("", "small")
        self._send = button(self.tr("Send"), icon="send")
        self._stop = button(self.tr("Stop"), icon="stop")
        self._help = button("", self.action.emit, kind="main")
        self._key = label("Esc", "tag")
        self._banner = QFrame()
        self._build()
        self._connect()
        self.set_mode("no model")

    def _build(self) -> None:
        banner = QHBoxLayout(self._banner)
        banner.setContentsMargins(0, 0, 0, 0)
        banner.addWidget(label(self.tr("Editing a message. The former version stays."), "small"), 1)
        banner.addWidget(button(self.tr("Cancel"), self.end_edit, kind="quiet"))
        tools = QHBoxLayout()
        tools.setSpacing(theme().space(1))
        for tool in (self.attach, self.tune, self.prompt):
            tools.addWidget(tool)
        tools.addSpacing(theme().space(2))
        tools.addWidget(self.count, 1)
        for widget in (self._help, self._send, self._stop, self._key):
            tools.addWidget(widget, 0, Qt.AlignmentFlag.AlignVCenter)
        column = QVBoxLayout(self)
        column.setContentsMargins(15, 13, 9, 9)
        column.setSpacing(theme().space(2))
        column.addWidget(self._banner)
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 6, 0)
        row.addWidget(self.editor)
        column.addLayout(row)
        tools.setContentsMargins(0, 0, 0, 0)
        column.addLayout(tools)
        self._banner.hide()

    def _connect(self) -> None:
        self.editor.submitted.connect(self._submit)
        self.editor.escaped.connect(self._escape)
        self.editor.up_in_empty.connect(self.edit_last_wanted)
        self.editor.files.connect(self.files)
        self.editor.focus_changed.connect(self.update)
        self.editor.textChanged.connect(self._on_text)
        self._send.clicked.connect(self._submit)
        self._stop.clicked.connect(self.stopped)
        theme().changed.connect(self.update)

    # State

    def set_mode(self, mode: Mode, hint: str = "", help_text: str = "") -> None:
        """What the button does now; `hint` stands in the empty box, `help_text` on the one button."""
        early, self._early = self._early, self._early and mode == "loading"
        self._mode = mode
        if hint != self.editor.placeholderText():
            self.editor.setPlaceholderText(hint)
            # Qt paints it anew only where something else changes, as below the caret.
            self.editor.viewport().update()
        self._help.setText(help_text)
        self._help.setVisible(mode == "no model" and bool(help_text))
        self._send.setVisible(mode in ("send", "loading"))
        self._stop.setVisible(mode == "stop")
        self._key.setVisible(mode == "stop")
        self._on_state()
        if early and mode == "send":
            QTimer.singleShot(0, self, self._submit)

    @property
    def mode(self) -> Mode:
        """What the button does now."""
        return self._mode

    @property
    def text(self) -> str:
        """What is typed."""
        return self.editor.toPlainText()

    def begin(self, text: str) -> None:
        """Show the draft of a chat; undo goes not back to that of another one."""
        if text != self.text:
            self.set_text(text)
        self.editor.document().clearUndoRedoStacks()

    def set_text(self, text: str) -> None:
        """Replace what is typed, keeping it undoable."""
        cursor = QTextCursor(self.editor.document())
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.insertText(text)
        self.editor.moveCursor(QTextCursor.MoveOperation.End)

    def insert(self, text: str) -> None:
        """Put text in at the cursor, on lines of its own."""
        cursor = self.editor.textCursor()
        before = "" if cursor.atBlockStart() else "\n"
        cursor.insertText(before + text)
        self.editor.ensureCursorVisible()

    def begin_edit(self, message_id: str, text: str) -> None:
        """Edit a sent message; what was typed comes back afterwards."""
        if not self.editing:
            self._kept = self.text
        self.editing = message_id
        self._banner.show()
        self.set_text(text)
        self.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def end_edit(self) -> None:
        """Leave a sent message as it is."""
        if self.editing:
            self.editing = ""
            self._banner.hide()
            self.set_text(self._kept)
            self.editor.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def _submit(self) -> None:
        text = self.text.strip()
        if text and self._mode == "send":
            self.sent.emit(text)
        elif text and self._mode == "loading":
            self._early = True
            self._on_state()
        elif text and self._mode == "no model" and self._help.isVisible():
            self._help.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
    def _escape(self) -> None:
        if self._mode == "stop":
            self.stopped.emit()
        else:
            self.end_edit()

    @Slot()
    def _on_text(self) -> None:
        self._early = False
        self._on_state()
        if not self.editing:
            self.changed.emit(self.text)

    def _on_state(self) -> None:
        self._send.setEnabled(bool(self.text.strip()) and not self._early)
        self._send.setText(self.tr("Waiting for the model") if self._early else self.tr("Send"))
        hint = "" if self._send.isEnabled() else self.tr("Type a message first")
        if self._early:
            hint = self.tr("It is sent when the model is ready, unless you type on.")
        self._send.setToolTip(hint)

    def kept_text(self) -> str:
        """What is typed apart from an edit: the draft of the chat."""
        return self._kept if self.editing else self.text

    # Look

    def sizeHint(self) -> QSize:
        return QSize(theme().size("measure"), super().sizeHint().height())

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """The free space belongs to the text, which lies in the same frame."""
        self.editor.setFocus(Qt.FocusReason.MouseFocusReason)
        super().mousePressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        look, focused = theme(), self.editor.hasFocus()
        width = 2.0 if focused else 1.0
        color = "accent.base" if focused else "line.strong"
        painter.setPen(QPen(look.color(color), width))
        painter.setBrush(look.color("surface.field"))
        radius, inset = look.radius("composer"), width / 2
        rect = QRectF(self.rect()).adjusted(inset, inset, -inset, -inset)
        painter.drawRoundedRect(rect, radius, radius)
