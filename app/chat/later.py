"""Brings the results of futures to the GUI thread."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

log = logging.getLogger(__name__)


class Later(QObject):
    """Calls back on its own thread; after its end nothing is called any more."""

    _done = Signal(object, object)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._done.connect(self._on_done)

    def when(self, future: Future[Any], call: Callable[[Any], object]) -> None:
        """Call with the result once it is there; a failure goes to the log."""

        def done(finished: Future[Any]) -> None:
            try:
                self._done.emit(call, finished)
            except RuntimeError:
                log.debug("A result came after the end of who asked for it.")

        future.add_done_callback(done)

    @Slot(object, object)
    def _on_done(self, call: Callable[[Any], object], future: Future[Any]) -> None:
        try:
            result = future.result()
        except CancelledError:
            return
        except Exception:
            log.exception("Work beside the window failed.")
            return
        call(result)
