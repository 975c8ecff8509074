"""A long piece of work with progress and a stop: copying a model, making a draft, measuring."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.models.jobs import Jobs
from engine.errors import LoadCancelled

OnProgress = Callable[..., None]
Work = Callable[[OnProgress, threading.Event], Any]

_SHOW_MS = 100


class Task(QObject):
    """Runs `work(progress, cancel)` beside the GUI thread.

    Signals:
        progressed: what `progress` was last called with, ten times a second.
        done: what came of it.
        failed: the exception; a stopped task only says `stopped`.
    """

    progressed = Signal(tuple)
    done = Signal(object)
    failed = Signal(object)
    stopped = Signal()

    def __init__(
        self, jobs: Jobs, work: Work, parent: QObject | None = None, name: str = ""
    ) -> None:
        super().__init__(parent)
        self.name = name
        self.running = True
        self._at: tuple[Any, ...] = ()
        self._timer = QTimer(self, interval=_SHOW_MS)
        self._timer.timeout.connect(self._show)
        self._timer.start()
        self._cancel = jobs.run(
            self, lambda cancel: work(self._progress, cancel), self._finish, self._fail
        )

    @Slot()
    def cancel(self) -> None:
        """Stop; what was made so far is removed by the work itself."""
        if self.running:
            self._cancel.set()
            self._end()
            self.stopped.emit()

    def _progress(self, *at: Any) -> None:
        self._at = at

    @Slot()
    def _show(self) -> None:
        if self._at:
            self.progressed.emit(self._at)

    def _finish(self, found: Any) -> None:
        self._end()
        self.done.emit(found)

    def _fail(self, error: Exception) -> None:
        # A stopped task has told so already, and its work ends by an error.
        if self.running and not isinstance(error, LoadCancelled):
            self._end()
            self.failed.emit(error)

    def _end(self) -> None:
        self.running = False
        self._timer.stop()
