"""Slow work beside the GUI thread: files are read there, results come back here."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal, Slot

_WORKERS = 3  # A scan, a copy and the check of a dropped file may run beside each other.
_CLOSE_S = 1.0

Work = Callable[[threading.Event], Any]


class Jobs(QObject):
    """Runs functions on a few threads and calls back on the thread that made this object.

    A callback is skipped when its owner is gone; an error without `failed` is raised here, where the
    application's exception hook logs it. The threads are daemons: a disk that hangs does not keep the
    application from ending.
    """

    _arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._waiting: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._finished: deque[tuple[QObject, Callable[[], None]]] = deque()
        self._cancels: set[threading.Event] = set()
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._arrived.connect(self._drain, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        owner: QObject,
        work: Work,
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> threading.Event:
        """Start `work(cancel)`; `then(result)` or `failed(error)` follows unless it was cancelled."""
        cancel = threading.Event()
        if self._closed:
            return cancel
        if not self._threads:
            for n in range(_WORKERS):
                thread = threading.Thread(target=self._serve, name=f"models-{n}", daemon=True)
                thread.start()
                self._threads.append(thread)
        self._cancels.add(cancel)
        self._waiting.put(lambda: self._work(owner, work, then, failed, cancel))
        return cancel

    def close(self) -> None:
        """Cancel all work and wait a moment for it to end."""
        self._closed = True
        for cancel in tuple(self._cancels):
            cancel.set()
        for _ in self._threads:
            self._waiting.put(None)
        deadline = time.monotonic() + _CLOSE_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._finished.clear()

    def _serve(self) -> None:
        while (job := self._waiting.get()) is not None:
            job()
            del job  # What it held may be widgets' last callers: not kept until the next job.

    def _work(
        self,
        owner: QObject,
        work: Work,
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None,
        cancel: threading.Event,
    ) -> None:
        if self._closed:
            return
        try:
            result = work(cancel)
        except Exception as error:  # Handed on: nothing may be lost on a worker thread.
            problem = error
            if failed is None:
                self._post(owner, lambda: _raise(problem))
            else:
                self._post(owner, lambda: failed(problem))
        else:
            # Asked again on arrival: a cancel on the GUI thread may come between.
            self._post(owner, lambda: None if cancel.is_set() else then(result))
        finally:
            self._cancels.discard(cancel)

    def _post(self, owner: QObject, call: Callable[[], None]) -> None:
        if not self._closed:
            self._finished.append((owner, call))
            self._arrived.emit()

    @Slot()
    def _drain(self) -> None:
        while self._finished:
            owner, call = self._finished.popleft()
            if shiboken6.isValid(owner):
                call()


def _raise(error: Exception) -> None:
    raise error
