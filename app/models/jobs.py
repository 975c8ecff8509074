"""Slow work beside the GUI thread: files are read there, results come back here."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import shiboken6
from PySide6.QtCore import QObject, Qt, Signal, Slot

_WORKERS = 3  # A scan, a copy and the check of a dropped file may run beside each other.


class Jobs(QObject):
    """Runs functions on a few threads and calls back on the thread that made this object.

    A callback is skipped when its owner is gone; an error without `failed` is raised here, where the
    application's exception hook logs it.
    """

    _arrived = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pool = ThreadPoolExecutor(_WORKERS, thread_name_prefix="models")
        self._finished: deque[tuple[QObject, Callable[[], None]]] = deque()
        self._cancels: set[threading.Event] = set()
        self._closed = False
        self._arrived.connect(self._drain, Qt.ConnectionType.QueuedConnection)

    def run(
        self,
        owner: QObject,
        work: Callable[[threading.Event], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None = None,
    ) -> threading.Event:
        """Start `work(cancel)`; `then(result)` or `failed(error)` follows unless it was cancelled."""
        cancel = threading.Event()
        if not self._closed:
            self._cancels.add(cancel)
            self._pool.submit(self._work, owner, work, then, failed, cancel)
        return cancel

    def post(self, owner: QObject, call: Callable[[], None]) -> None:
        """Have `call` run on the GUI thread; from any thread."""
        self._finished.append((owner, call))
        if not self._closed:
            self._arrived.emit()

    def close(self) -> None:
        """Cancel all work and wait for none of it."""
        self._closed = True
        for cancel in tuple(self._cancels):
            cancel.set()
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _work(
        self,
        owner: QObject,
        work: Callable[[threading.Event], Any],
        then: Callable[[Any], None],
        failed: Callable[[Exception], None] | None,
        cancel: threading.Event,
    ) -> None:
        try:
            result = work(cancel)
        except Exception as error:  # Handed on: nothing may be lost on a worker thread.
            problem = error
            if failed is None:
                self.post(owner, lambda: _raise(problem))
            else:
                self.post(owner, lambda: failed(problem))
        else:
            # Asked again on arrival: a cancel on the GUI thread may come between.
            self.post(owner, lambda: None if cancel.is_set() else then(result))
        finally:
            self._cancels.discard(cancel)

    @Slot()
    def _drain(self) -> None:
        while self._finished:
            owner, call = self._finished.popleft()
            if shiboken6.isValid(owner):
                call()


def _raise(error: Exception) -> None:
    raise error
