"""Bytes on the wire: JSON, server-sent events, and answers that end when their client leaves."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from pydantic_core import PydanticSerializationError, to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

T = TypeVar("T")

KEEP_ALIVE_S = 15.0

DONE = b"data: [DONE]\n\n"

log = logging.getLogger(__name__)


def json_bytes(value: Any) -> bytes:
    """Compact JSON; a lone surrogate, which UTF-8 has no bytes for, comes out escaped."""
    try:
        return to_json(value, inf_nan_mode="null")  # several times as fast as json
    except PydanticSerializationError:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def frame(value: Any, event: str | None = None) -> bytes:
    """One server-sent event with JSON in it."""
    name = f"event: {event}\n".encode() if event else b""
    return b"%sdata: %s\n\n" % (name, json_bytes(value))


class JsonResponse(Response):
    """A JSON body written by `json_bytes`."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The body."""
        return json_bytes(content)


def leaving(request: Request) -> asyncio.Future[Any]:
    """A task that ends when the client leaves; to be cancelled by who needs it no more."""
    return asyncio.ensure_future(_gone(request.receive))


async def until_left(request: Request, work: Coroutine[Any, Any, T]) -> T | None:
    """The result of `work`, or None when the client leaves first; `work` is cancelled then."""
    task = asyncio.ensure_future(work)
    gone = leaving(request)
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        await _end(task, gone)


class EventStream(Response):
    """Server-sent events from an iterator of frames, which is closed when the client leaves.

    A comment is sent after `KEEP_ALIVE_S` without a frame, so that nobody takes a long prompt for a dead
    connection. `gone` is the client's `leaving`. `failure` makes the last frames from an exception of the
    iterator, and `close` is called in the end, also when nothing was sent. `write` is that of `Connection`.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        frames: AsyncIterator[bytes],
        gone: asyncio.Future[Any],
        failure: Callable[[Exception], bytes],
        close: Callable[[], None],
        write: Callable[[bytes], bool] | None = None,
    ) -> None:
        super().__init__(None)
        self._direct = write
        self._frames = frames
        self._gone = gone
        self._failure = failure
        self._close = close
        self._written = 0.0

    def init_headers(self, headers: Any = None) -> None:
        """Without a length, and never kept by anything in between."""
        self.raw_headers = [
            (b"content-type", b"text/event-stream; charset=utf-8"),
            (b"cache-control", b"no-cache"),
            (b"x-accel-buffering", b"no"),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all frames."""
        work = asyncio.ensure_future(self._send_all(send))
        alive = asyncio.ensure_future(self._keep_alive(send))
        try:
            await asyncio.wait({work, self._gone}, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                work.result()
        finally:
            self._close()
            await _end(work, self._gone, alive)

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            async with contextlib.aclosing(self._frames) as frames:  # type: ignore[type-var]
                async for data in frames:
                    await self._write(send, data)
        except Exception as error:
            await self._write(send, self._failure(error))
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, send: Send, data: bytes) -> None:
        if self._direct is None or not self._direct(data):
            await send({"type": "http.response.body", "body": data, "more_body": True})
        self._written = asyncio.get_running_loop().time()

    async def _keep_alive(self, send: Send) -> None:
        """Say now and then that the server lives."""
        loop = asyncio.get_running_loop()
        self._written = loop.time()
        while True:
            wait = self._written + KEEP_ALIVE_S - loop.time()
            if wait > 0:
                await asyncio.sleep(wait)
            else:
                await self._write(send, b": keep-alive\n\n")


async def _gone(receive: Callable[[], Awaitable[Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _end(*tasks: asyncio.Future[Any]) -> None:
    """Cancel what still runs and wait until it has ended; its own errors were seen or do not matter."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
