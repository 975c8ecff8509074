"""Finding words in the open chat."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QWidget

from app.chat.boxes import units
from app.chat.laid import Laid, Place
from app.chat.selection import Spot
from app.chat.view import MessageView
from app.theme import theme
from app.widgets import IconButton, label


class FindBar(QFrame):
    """A line with a field; the place found is selected in the messages."""

    def __init__(self, view: MessageView, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._view = view
        self._found: list[tuple[int, int]] = []
        self._at = -1
        self.setProperty("kind", "header")
        self.edit = QLineEdit()
        self.edit.setPlaceholderText(self.tr("Find in this chat"))
        self.edit.setAccessibleName(self.tr("Find in this chat"))
        self.count = label("", "small")
        before = IconButton("chevron-left", self.tr("Previous place"), size="controlCompact")
        after = IconButton("chevron-right", self.tr("Next place"), size="controlCompact")
        close = IconButton("close", self.tr("Close"), size="controlCompact")
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 6, 16, 6)
        row.setSpacing(theme().space(2))
        row.addWidget(self.edit, 1)
        for widget in (self.count, before, after, close):
            row.addWidget(widget)
        before.clicked.connect(self._on_before)
        after.clicked.connect(self._on_after)
        close.clicked.connect(self.end)
        self.edit.textChanged.connect(self._on_text)
        self.edit.installEventFilter(self)
        self.hide()

    @Slot()
    def begin(self) -> None:
        """Show the bar and put the keyboard into it."""
        self.show()
        self.edit.setFocus()
        self.edit.selectAll()
        self._on_text(self.edit.text())

    @Slot()
    def end(self) -> None:
        """Hide the bar; what was found stays selected."""
        self.hide()
        self._view.setFocus()

    @Slot(str)
    def _on_text(self, text: str) -> None:
        wanted = text.casefold()
        self._found = []
        for row, message in enumerate(self._view.messages()):
            count = message.text.casefold().count(wanted) if wanted else 0
            self._found += [(row, n) for n in range(count)]
        self._at = -1
        self._step(-1 if self._found else 1)

    @Slot()
    def _on_before(self) -> None:
        self._step(-1)

    @Slot()
    def _on_after(self) -> None:
        self._step(1)

    def _step(self, by: int) -> None:
        if not self._found:
            nothing = self.tr("nothing found") if self.edit.text() else ""
            self.count.setText(nothing)
            return
        start = self._at if self._at >= 0 or by > 0 else 0
        self._at = (start + by) % len(self._found)
        row, nth = self._found[self._at]
        self._select(row, nth, self.edit.text().casefold())
        self.count.setText(f"{self._at + 1} / {len(self._found)}")

    def mark(self, row: int, word: str) -> None:
        """Select the first place of a word in one message."""
        self._select(row, 0, word.casefold())

    def _select(self, row: int, nth: int, wanted: str) -> None:
        entry = self._view.entry_at(row)
        places = [(i, p) for i, laid in enumerate(entry.parts()) for p in _places(laid, wanted)]
        if not places:
            # The words stand in a part that is folded, or in marks that are not shown.
            self._view.show_message(entry.message.id, focus=False)
            return
        text, (start, end) = places[min(nth, len(places) - 1)]
        self._view.select(Spot(row, text, start), Spot(row, text, end))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            key = event.key()
            if key == Qt.Key.Key_Escape:
                self.end()
                return True
            if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
                self._step(-1 if back else 1)
                return True
        return False


def _places(laid: Laid, wanted: str) -> list[tuple[Place, Place]]:
    found = []
    for b, box in enumerate(laid.boxes):
        for r, run in enumerate(box.runs):
            text = run.text.casefold()
            if len(text) != len(run.text):
                text = run.text
            at = text.find(wanted)
            while at >= 0:
                start = units(run.text[:at])
                end = start + units(run.text[at : at + len(wanted)])
                found.append((Place(b, r, start), Place(b, r, end)))
                at = text.find(wanted, at + len(wanted))
    return found
