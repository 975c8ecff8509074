"""A client's connection: one that sends no request is not held for ever, and streams take a short way."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S = 30.0
"""A request's line and headers must come within this time, from the connection or its first byte on."""


class Connection(H11Protocol):
    """Uvicorn's own, which waits as long as one likes for the end of a request's headers.

    Requests find `write` as `state.write`.
    """

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Expect a request."""
        super().connection_made(transport)
        self._expect()

    def connection_lost(self, exc: Exception | None) -> None:
        """Expect nothing more."""
        self._expect_nothing()
        super().connection_lost(exc)

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
        self.transport.write(b"%x\r\n%s\r\n" % (len(data), data))
        return True

    def _expect(self) -> None:
        self._due = self.loop.call_later(HEAD_S, self.transport.close)

    def _expect_nothing(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
