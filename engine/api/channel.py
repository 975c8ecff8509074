"""From the engine's thread to the API's loop: events of a turn, in order, within bounds."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any

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
        for _ in range(len(self._due)):  # who rings meanwhile waits its turn
            self._due.popleft()()


class _Wake:
    """What a task awaits, as a future, but `ring` itself lets the task go on.

    Of a future it would hear a round of the loop later, behind four system calls: those with which the loop
    takes note of the other thread and looks for more.
    """

    _asyncio_future_blocking = False  # who has this can be awaited as a future: `asyncio.isfuture`
    _go_on: Callable[[_Wake], object]
    _context: Context

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._over = False
        self._error: asyncio.CancelledError | None = None

    def ring(self) -> None:
        """Let the task go on, unless it does; called on the loop, but not by a task."""
        if not self._over:
            self._over = True
            self._context.run(self._go_on, self)

    def cancel(self, msg: Any | None = None) -> bool:
        """For the task: let it go on with an error, unless it goes on."""
        if self._over:
            return False
        self._over, self._error = True, asyncio.CancelledError(msg)
        self._loop.call_soon(self._go_on, self, context=self._context)
        return True

    def add_done_callback(self, go_on: Callable[[_Wake], object], *, context: Context) -> None:
        """For the task: how it goes on."""
        self._go_on, self._context = go_on, context

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """For the task: where it runs."""
        return self._loop

    def result(self) -> None:
        """For the task: nothing, or the error."""
        if self._error is not None:
            raise self._error

    def __await__(self) -> Generator[_Wake, None, None]:
        self._asyncio_future_blocking = True
        yield self
        self.result()


class Channel:
    """Events of several requests for one reader, which may be slow: the engine never waits for it.

    Once more than `MOST_BYTES` wait, which is more than an answer of 90,000 tokens, what comes is dropped and
    `on_full` is called, on the engine's thread.
    """

    def __init__(self, bell: Bell, on_full: Callable[[], None]) -> None:
        self._bell = bell
        self._items: deque[Item] = deque()
        self._wake: _Wake | None = None
        self._ready = False  # only the loop knows
        self._told = False  # a wake is on its way: one is enough for many events
        self._came = self._taken = 0  # bytes; only the engine's thread and only the loop write them
        self._on_full = on_full
        self.full = False
        self.closed = False

    def listener(self, choice: int) -> OnEvent:
        """What the engine calls with the events of one request."""

        def listen(event: Event) -> None:
            if self.full or self.closed or isinstance(event, _UNREAD):
                return
            self._items.append((choice, event))
            self._came += _size(event)
            waiting = self._came - self._taken
            if waiting > MOST_BYTES:
                self.full = True
                self._on_full()
            if not self._told and (_shows(event) or waiting > MOST_BYTES // 4):
                self._told = True
                self._ring()

        return listen

    async def take(self) -> list[Item]:
        """All events that have come, at least one; none once the channel is full or closed."""
        items: list[Item] = []
        while not items:
            if not self._ready:
                self._wake = _Wake(self._bell.loop)
                await self._wake
            # In this order: an event that finds the flag up was appended before it goes down.
            self._ready = self._told = False
            self._taken = self._came
            while self._items:
                items.append(self._items.popleft())
            if self.full or self.closed:
                self._ready = True
                return []
        return items

    def close(self) -> None:
        """Take no more, and wake the reader; called on the loop."""
        self.closed = True
        self._items.clear()
        self._bell.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._ready = True
        if self._wake is not None:
            self._wake.ring()

    def _ring(self) -> None:
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
