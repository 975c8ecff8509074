"""Clients that are slow to take their answers, and clients that take nothing."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import socket
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import uvicorn
from uvicorn.server import ServerState

from engine.api import connection
from engine.api.connection import Connection
from engine.api.server import Server
from engine.types import Request
from tests.engine.api.scripted import ScriptedEngine

CONFIG = uvicorn.Config(lambda scope: None, http=Connection, log_config=None)
Start = Callable[..., tuple[Server, ScriptedEngine]]


def endless(request: Request) -> Iterator[str]:
    return ("word " * 400 for _ in itertools.count())


def large(request: Request) -> Iterator[str]:
    return ("word " * 400 for _ in range(1200))


def ask(server: Server, stream: bool) -> socket.socket:
    """A client that has asked for a chat, and takes nothing yet."""
    client = socket.socket()
    client.settimeout(10)
    # Where the system chooses, it takes megabytes for a client before that reads anything.
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
    client.connect(("127.0.0.1", server.port))
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], "stream": stream}).encode()
    head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json"
    client.sendall(f"{head}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
    return client


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def connections(server: Server) -> list[Connection]:
    assert server._uvicorn is not None
    return list(server._uvicorn.server_state.connections)  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", [True, False])
def test_who_takes_nothing_loses_the_connection_and_the_answer(
    scripted_server: Start, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    monkeypatch.setattr(connection, "STALL_S", 0.2)
    server, engine = scripted_server(endless if stream else large)
    with ask(server, stream) as client:
        until(lambda: bool(engine.requests) and not connections(server))
        until(lambda: server.models.all[0].in_flight == 0)
        until(lambda: engine.cancelled == ([1] if stream else []))
        with contextlib.suppress(ConnectionResetError):
            while client.recv(1 << 20):  # what the system held for it
                pass


def test_a_little_that_a_client_takes_is_seen(scripted_server: Start) -> None:
    server, _ = scripted_server(endless)
    with ask(server, stream=True) as client:
        until(lambda: any(one.flow.write_paused for one in connections(server)))
        [stuck] = connections(server)

        def waits() -> int:
            return stuck.transport.get_write_buffer_size()

        def still() -> bool:
            before = waits()
            time.sleep(0.5)
            return before == waits() > 0

        until(still)
        before, taken = waits(), 0
        while waits() == before:
            taken += len(client.recv(1 << 14))
            assert taken < 600_000
            time.sleep(0.01)


class Transport(asyncio.Transport):
    """Holds as many bytes as a test says."""

    def __init__(self) -> None:
        self.held = 0
        self.aborted = False
        self.written: list[bytes] = []
        self._socket = socket.socket()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return self._socket if name == "socket" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high == 0

    def get_write_buffer_size(self) -> int:
        return self.held

    def is_closing(self) -> bool:
        return self.aborted

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def abort(self) -> None:
        self.aborted = True
        self._socket.close()


def test_nothing_is_written_to_who_has_gone() -> None:
    async def go() -> None:
        one, transport = Connection(CONFIG, ServerState(), {}), Transport()
        one.connection_made(transport)
        one.cycle = SimpleNamespace(
            disconnected=False, response_started=True, response_complete=False
        )  # type: ignore[assignment]
        one.scope = {"http_version": "1.1"}  # type: ignore[typeddict-item]
        assert one.write(b"heard") and transport.written == [b"5\r\nheard\r\n"]
        transport.abort()
        assert one.write(b"lost") and len(transport.written) == 1

    asyncio.run(go())


def test_who_takes_anything_in_time_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def go() -> None:
        due: list[Callable[[], None]] = []
        loop = asyncio.get_running_loop()

        def call_later(
            delay: float, call: Callable[..., None], *args: object
        ) -> asyncio.TimerHandle:
            if delay == connection.STALL_S:
                due.append(lambda: call(*args))
            return asyncio.TimerHandle(0, call, args, loop)

        monkeypatch.setattr(loop, "call_later", call_later)
        one, transport = Connection(CONFIG, ServerState(), {}, loop), Transport()
        one.connection_made(transport)
        transport.held = 1000
        one.pause_writing()
        for held in (999, 998, 500):
            transport.held = held
            due.pop()()
            assert not transport.aborted
        due.pop()()
        assert transport.aborted and not due

    asyncio.run(go())
