"""Work that cannot be stopped, on a thread of its own: waiting for it can."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

from engine.errors import LoadCancelled

_POLL_S = 0.1

T = TypeVar("T")


def beside(
    work: Callable[[], T], cancel: threading.Event, undo: Callable[[T], object] = lambda _: None
) -> T:
    """The result of `work`, or its error; `LoadCancelled` at once when `cancel` is set.

    The work then goes on to its end, and `undo` gets what came of it.
    """
    done: Future[T] = Future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            if done.set_running_or_notify_cancel():
                done.set_exception(error)
            return
        if done.set_running_or_notify_cancel():
            done.set_result(result)
        else:
            undo(result)

    threading.Thread(target=run, name="beside", daemon=True).start()
    while not cancel.is_set():
        if wait([done], _POLL_S).done:
            return done.result()
    if not done.cancel():
        undo(done.result())
    raise LoadCancelled("The load was stopped.")
