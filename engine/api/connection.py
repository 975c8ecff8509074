"""A client's connection: one that sends or takes nothing is not held for ever; streams take a short way."""

from __future__ import annotations

import asyncio
import socket

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 30.0
"""A request's line and headers must come within this time, from the connection or its first byte on."""


STALL_S = 120.0
"""A client that takes nothing of what waits for it is given up after this time, or up to twice of it."""

_SEND_BUFFER = 64 << 10
"""Bytes that the system holds for a client. Where it chooses, it holds megabytes and tells only of room for
a third of them: a client that reads 10 kB/s would look like one that reads nothing."""


class Connection(H11Protocol):
    """Uvicorn's own, which waits as long as one likes for the end of a request's headers, and for a client to
    take its answer.

    Requests find `write` as `state.write`.
    """

    _due: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a request, unless too many clients are connected."""
        super().connection_made(transport)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            return transport.abort()
        transport.set_write_buffer_limits(0)  # writing is paused as long as anything waits
        transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER
        )
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._expect_nothing()
        self.resume_writing()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for the client to take what was written, as long as it takes any of it."""
        super().pause_writing()
        self._look_again()

    def resume_writing(self) -> None:
        """The client has taken all; nothing is to be waited for."""
        if self._stalled is not None:
            self._stalled.cancel()
        super().resume_writing()

    def data_received(self, data: bytes) -> None:
        """Take what came; what begins a request must go on. Behind a client's last request is none."""
        if self.conn.their_state is h11.MUST_CLOSE:
            return  # Uvicorn would answer it in the middle of the answer that is being written.
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._expect_nothing()
        elif self._due is None and not self.transport.is_closing():
            self._expect()

    def handle_events(self) -> None:
        """Do what a request's parts ask for."""
        super().handle_events()
        if self.scope is not None:
            self.scope["state"]["write"] = self.write

    def write(self, data: bytes) -> bool:
        """Send a piece of an answer that has begun and has no length; False where only `send` can.

        Past all layers of the application and h11's states: they take as long as all else that is done for a
        token.
        """
        cycle = self.cycle
        if not data or self.flow.write_paused or cycle.disconnected or not cycle.response_started:
            return False
        if cycle.response_complete or self.scope["http_version"] != "1.1":
            return False
        if not self.transport.is_closing():  # asyncio warns of what nobody can take any more
            self.transport.write(b"%x\r\n%s\r\n" % (len(data), data))
        return True

    def _look_again(self) -> None:
        left = self.transport.get_write_buffer_size()
        self._stalled = self.loop.call_later(STALL_S, self._look, left)

    def _look(self, before: int) -> None:
        if self.transport.get_write_buffer_size() == before:
            self.transport.abort()  # `close` would wait for the client
        else:
            self._look_again()

    def _expect(self) -> None:
        self._due = self.loop.call_later(HEAD_S, self.transport.close)

    def _expect_nothing(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
