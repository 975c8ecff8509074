"""From the engine's thread to the API's loop: events of a turn, in order, within bounds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from engine.types import Event, OnEvent, PrefillProgress, Switched, TextDelta, Verified

MOST_BYTES = 32 << 20
_EVENT_BYTES = 350  # with all its parts
_LOGPROB_BYTES = 170
_UNREAD = (PrefillProgress, Verified, Switched)

Item = tuple[int, Event]


class Bell:
    """Wakes the readers of a loop from other threads; one call into the loop, which costs a system call, is
    for all that are to wake until it comes."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._due: deque[Callable[[], None]] = deque()
        self._rung = False

    def ring(self, wake: Callable[[], None]) -> None:
        """Have `wake` called on the loop; `RuntimeError` where that has ended."""
        self._due.append(wake)
        if not self._rung:
            self._rung = True
            self.loop.call_soon_threadsafe(self._answer)

    def _answer(self) -> None:
        # In this order: who finds it rung is due already.
        self._rung = False
        while self._due:
            self._due.popleft()()


class Channel:
    """Events of several requests for one reader, which may be slow: the engine never waits for it.

    Once more than `MOST_BYTES` wait, which is more than an answer of 90,000 tokens, what comes is dropped and
    `on_full` is called, on the engine's thread.
    """

    def __init__(self, bell: Bell, on_full: Callable[[], None]) -> None:
        self._bell = bell
        self._items: deque[Item] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._ready = False  # only the loop knows
        self._told = False  # a wake is on its way: one is enough for many events
        self._bytes = 0
        self._on_full = on_full
        self.full = False
        self.closed = False

    def listener(self, choice: int) -> OnEvent:
        """What the engine calls with the events of one request."""

        def listen(event: Event) -> None:
            if self.full or self.closed or isinstance(event, _UNREAD):
                return
            self._items.append((choice, event))
            self._bytes += _size(event)
            if self._bytes > MOST_BYTES:
                self.full = True
                self._on_full()
            if not self._told and (_shows(event) or self._bytes > MOST_BYTES // 4):
                self._told = True
                self._wake()

        return listen

    async def take(self) -> list[Item]:
        """All events that have come, at least one; none once the channel is full or closed."""
        if not self._ready:
            self._waiter = self._bell.loop.create_future()
            await self._waiter
        # In this order: an event that finds the flag up was appended before it goes down.
        self._ready = self._told = False
        items = []
        while self._items:
            items.append(self._items.popleft())
        self._bytes -= sum(_size(event) for _, event in items)
        if self.full or self.closed:
            self._ready = True
            return []
        return items

    def close(self) -> None:
        """Take no more, and wake the reader; called on the loop."""
        self.closed = True
        self._items.clear()
        self._go_on()

    def _go_on(self) -> None:
        self._ready = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _wake(self) -> None:
        try:
            self._bell.ring(self._go_on)
        except RuntimeError:  # the loop has ended, and with it every reader
            self.closed = True


def _shows(event: Event) -> bool:
    """Whether anybody wants to hear of an event at once; a token need not complete a character."""
    return not isinstance(event, TextDelta) or bool(event.pieces or event.logprobs)


def _size(event: Event) -> int:
    if not isinstance(event, TextDelta):
        return _EVENT_BYTES
    logprobs = sum(1 + len(row.top) for row in event.logprobs) if event.logprobs else 0
    return _EVENT_BYTES + len(event.text) + _LOGPROB_BYTES * logprobs
