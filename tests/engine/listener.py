"""Collects what the engine tells of a request."""

from __future__ import annotations

import queue

from engine.types import Event, Failed, Finished, TextDelta


class Listener:
    """Collects the events of one request."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.queue.put(event)

    def next(self) -> Event:
        event = self.queue.get(timeout=30)
        self.events.append(event)
        return event

    def end(self) -> Finished | Failed:
        while not isinstance(event := self.next(), (Finished, Failed)):
            pass
        return event

    @property
    def tokens(self) -> list[int]:
        return [t for e in self.events if isinstance(e, TextDelta) for t in e.tokens]

    @property
    def text(self) -> str:
        return "".join(e.text for e in self.events if isinstance(e, TextDelta))
