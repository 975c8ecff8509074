"""How many tokens a text is, counted beside the GUI thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from PySide6.QtCore import QObject, QTimer, Slot

from app.chat.later import Later
from app.controller import EngineController

DELAY_MS = 300


class TokenCounter(QObject):
    """Counts the text given last, a moment after it stopped changing."""

    def __init__(
        self, controller: EngineController, tell: Callable[[int], None], parent: QObject
    ) -> None:
        super().__init__(parent)
        self._controller = controller
        self._tell = tell
        self._text = ""
        self._later = Later(self)
        self._pool = ThreadPoolExecutor(1, "token count")
        self._timer = QTimer(self, interval=DELAY_MS, singleShot=True)
        self._timer.timeout.connect(self._count)

    def count(self, text: str) -> None:
        """Count a text; `tell` is called with the number, if no other text came meanwhile."""
        self._text = text
        self._timer.start()

    @Slot()
    def _count(self) -> None:
        tokenizer = getattr(self._controller.engine, "tokenizer", None)
        text = self._text
        if tokenizer is None:
            return
        future = self._pool.submit(lambda: len(tokenizer.encode(text)))
        self._later.when(future, lambda n: self._tell(n) if text == self._text else None)
