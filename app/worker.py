"""The engine's serving loop in a worker thread of Qt."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot

log = logging.getLogger(__name__)


def make_engine() -> Any:
    """The real engine; imported here because it is heavy."""
    from engine.engine import Engine

    return Engine()


class EngineWorker(QObject):
    """Owns the engine and serves it until `engine.close()`; lives in a QThread, never has a parent.

    Attributes:
        engine: None until `ready` is set, and for good when `error` is set.
        ready: set once the engine exists or could not be made.

    Signals:
        finished: the serving loop ended.
    """

    finished = Signal()

    def __init__(self, factory: Callable[[], Any] = make_engine) -> None:
        super().__init__()
        self._factory = factory
        self.engine: Any = None
        self.error: BaseException | None = None
        self.ready = threading.Event()

    @Slot()
    def run(self) -> None:
        """Make the engine and serve; an error ends up in `error`, never in Qt."""
        try:
            self.engine = self._factory()
            self.ready.set()
            self.engine.serve()
        except BaseException as error:
            log.exception("The engine's thread ended with an error.")
            self.error = error
        finally:
            self.ready.set()
            self.finished.emit()
