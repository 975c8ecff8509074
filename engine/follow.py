"""A request as an iterator of events, for callers that can wait."""

from __future__ import annotations

import queue
from collections.abc import Iterator

from engine.engine import Engine
from engine.errors import EngineError
from engine.types import Event, Failed, Finished, Request

# Waits end now and then, so that Ctrl-C is noticed on every system.
_WAIT_S = 0.5


def follow(engine: Engine, request: Request) -> Iterator[Event]:
    """Submit a request and yield its events up to `Finished`; raises what it `Failed` with.

    Another thread must serve the engine. A caller that stops early cancels the request.
    """
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    request_id = engine.submit(request, events.put)
    ended = False
    try:
        while not ended:
            try:
                event = events.get(timeout=_WAIT_S)
            except queue.Empty:
                if engine.status().state == "closed":
                    raise EngineError("The engine was closed before the answer was done.") from None
                continue
            ended = isinstance(event, (Finished, Failed))
            if isinstance(event, Failed):
                raise event.error
            yield event
    finally:
        if not ended:
            engine.cancel(request_id)
