"""A short notice below the header, where it covers nothing that is typed, with Undo if there is any."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QTimer, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from app.theme import theme
from app.widgets.basic import button, label

STAY_MS = 8000

Said = str | Callable[[], str]
"""A text, or what gives one in the language that there is when it is asked."""


def text_of(said: Said) -> str:
    """The text now."""
    return said if isinstance(said, str) else said()


class Toast(QFrame):
    """One notice at a time; a new one takes the place of the old one."""

    def __init__(self, window: QWidget, area: QWidget | None = None) -> None:
        super().__init__(window)
        self._area = area or window
        self.setProperty("kind", "toast")
        self._text = label("")
        self._button = button("")
        self._button.clicked.connect(self._on_undo)
        self._undo: Callable[[], None] | None = None
        self._said: Said = ""
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 8, 8, 8)
        row.setSpacing(theme().space(4))
        row.addWidget(self._text)
        row.addWidget(self._button)
        self._timer = QTimer(self, singleShot=True, interval=STAY_MS)
        self._timer.timeout.connect(self.hide)
        window.installEventFilter(self)
        self.hide()

    def say(self, said: Said, undo: Callable[[], None] | None = None) -> None:
        """Show a text for some seconds; with `undo` a button calls it.

        After a change of language it is asked for again, and what is text already goes.
        """
        self._said, self._undo = said, undo
        self._button.setVisible(undo is not None)
        self._write()
        self.show()
        self.raise_()
        self._timer.start()

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.LanguageChange and self.isVisible():
            if isinstance(self._said, str):
                self.hide()
            else:
                self._write()
        super().changeEvent(event)

    def _write(self) -> None:
        try:
            text = text_of(self._said)
        except RuntimeError:  # who said it is gone, with a page in another language
            self.hide()
            return
        self._text.setText(text)
        self._button.setText(self.tr("Undo"))
        self.setAccessibleName(text)
        self._place()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return False

    def _place(self) -> None:
        self.adjustSize()
        window = self.window()
        corner = self._area.mapTo(window, QPoint(0, 0))
        x = corner.x() + (self._area.width() - self.width()) // 2
        self.move(x, corner.y() + theme().size("header") + theme().space(3))

    @Slot()
    def _on_undo(self) -> None:
        undo, self._undo = self._undo, None
        self.hide()
        if undo is not None:
            undo()
