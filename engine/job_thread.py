"""Threads for what must not hold up the answers that are being written."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable


class JobThread:
    """One thread, begun when there is something to do: for templates and tokenizers, since a prompt may be
    long or hostile. Jobs keep their order, and one that fails is logged and holds up none behind it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def do(self, job: Callable[[], None]) -> None:
        """Run `job` after those before it."""
        self._jobs.put(job)
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()

    def close(self) -> None:
        """Let the thread end after what is queued."""
        self._jobs.put(None)

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            try:
                job()
            except Exception:
                logging.getLogger(__name__).exception("A job of the thread %s failed", self._name)
