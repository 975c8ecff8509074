"""Where the server listens, and that it starts and stops."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from engine.api import connection
from engine.api import server as server_module
from engine.api.served import Served
from engine.api.server import Server, most_connections
from engine.config import ServerConfig
from engine.errors import BadRequest, EngineError
from engine.types import Request
from tests.engine.api.scripted import ScriptedEngine, says
from tests.engine.api.scripted import slowly as one_by_one


def make(**settings: object) -> Server:
    config = ServerConfig(**{"port": 0, **settings})  # type: ignore[arg-type]
    return Server(config, [Served(ScriptedEngine(says("x")), "a")])


def test_sockets_send_small_pieces_at_once() -> None:
    # asyncio does so only where the listening socket names its protocol.
    with make().bind() as listener:
        assert listener.proto == socket.IPPROTO_TCP


def test_starting_and_stopping_may_be_repeated() -> None:
    server = make()
    assert not server.running and server.stop()
    for _ in range(2):
        server.start()
        server.start()
        assert server.running
        assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 200
        assert server.stop() and server.stop()
        assert not server.running
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/health", trust_env=False)


def test_what_cannot_be_listened_on_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=f"{port}.*--port"):
            make(port=port).start()
    with pytest.raises(BadRequest, match="Port"):
        make(port=70_000)
    with pytest.raises(BadRequest, match="address"):
        make(host="nowhere.example")


@pytest.mark.skipif(not socket.has_ipv6, reason="IPv6")
def test_ipv6() -> None:
    server = make(host="::1")
    try:
        server.start()
    except EngineError:
        pytest.skip("no IPv6 loopback address")
    assert server.url.startswith("http://[::1]:")
    assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 200
    assert server.stop()


def test_others_may_reach_it_with_the_key_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.api.server.api_key", lambda: "sk-right")
    server = make(host="0.0.0.0")
    server.start()
    assert server.url.startswith("http://127.0.0.1:")
    models = f"{server.url}/v1/models"
    assert httpx.get(models, trust_env=False).status_code == 401
    key = {"authorization": "Bearer sk-right"}
    assert httpx.get(models, headers=key, trust_env=False).status_code == 200
    assert server.stop()


def test_a_head_that_does_not_come_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 1.0)
    server = Server(ServerConfig(port=0), [Served(ScriptedEngine(slowly), "a")])
    server.start()
    begun = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"

    def connect(data: bytes) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", server.port), 10)
        made.sendall(data)
        return made

    def ended(one: socket.socket) -> bool:
        with one:
            while one.recv(1 << 16):
                pass
        return True

    try:
        silent, half, again = connect(b""), connect(begun), connect(begun + b"\r\n")
        assert again.recv(1 << 16).startswith(b"HTTP/1.1 200")
        again.sendall(begun)
        late = connect(begun)
        late.sendall(b"\r\n")
        assert late.recv(1 << 16).startswith(b"HTTP/1.1 200")
        late.close()
        # An answer may take as long as it likes.
        body = {"messages": [{"role": "user", "content": "hi"}]}
        start = time.monotonic()
        answer = httpx.post(f"{server.url}/v1/chat/completions", json=body, trust_env=False)
        assert answer.status_code == 200 and time.monotonic() - start > 1.2
        assert all(map(ended, (silent, half, again)))
    finally:
        assert server.stop()


def test_too_many_connections_are_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "most_connections", lambda: 6)
    server = make()
    server.start()

    def connect() -> socket.socket:
        return socket.create_connection(("127.0.0.1", server.port), 10)

    def connected() -> int:
        assert server._uvicorn is not None
        return len(server._uvicorn.server_state.connections)

    try:
        first = [connect() for _ in range(6)]
        with connect() as refused, contextlib.suppress(ConnectionResetError):
            assert refused.recv(1) == b""
        for one in first:
            one.close()
        end = time.monotonic() + 10
        while connected() and time.monotonic() < end:
            time.sleep(0.01)
        assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 200
    finally:
        assert server.stop()


@pytest.mark.parametrize(
    ("limits", "most"),
    [((1024, 1024), 512), ((256, 10_240), 2048), ((20_000, 20_000), 2048), ((-1, -1), 2048)],
)
def test_clients_leave_files_for_others(
    limits: tuple[int, int], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    resource = pytest.importorskip("resource")
    now = [limits]
    monkeypatch.setattr(resource, "RLIM_INFINITY", -1)
    monkeypatch.setattr(resource, "getrlimit", lambda _: now[0])
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: now.insert(0, limits))
    assert most_connections() == most
    assert now[0][0] == -1 or now[0][0] >= 2 * most


def slowly(request: Request) -> Iterator[str]:
    time.sleep(1.5)
    yield "x"


@pytest.mark.parametrize("version", ("1.0", "1.1"))
def test_streams_take_the_short_way_where_they_are_in_chunks(
    version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways: list[bool] = []
    write = connection.Connection.write

    def told(self: connection.Connection, data: bytes) -> bool:
        ways.append(write(self, data))
        return ways[-1]

    monkeypatch.setattr(connection.Connection, "write", told)
    words = [f"w{n} " for n in range(20)]
    server = Server(
        ServerConfig(port=0), [Served(ScriptedEngine(one_by_one(*words, "\N{SNOWMAN}" * 300)), "a")]
    )
    server.start()
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], "stream": True}).encode()
    try:
        with socket.create_connection(("127.0.0.1", server.port), 30) as client:
            for _ in range(2 if version == "1.1" else 1):  # on the same connection
                head = f"POST /v1/chat/completions HTTP/{version}\r\nHost: localhost\r\n"
                head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                client.sendall(head.encode() + body)
                response = http.client.HTTPResponse(client)
                response.begin()
                assert (response.getheader("transfer-encoding") == "chunked") == (version == "1.1")
                found = response.read().decode()
                events = found.removesuffix("\n\n").split("\n\n")
                assert events[-1] == "data: [DONE]"
                chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-1]]
                text = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
                assert "".join(text) == "".join(words) + "\N{SNOWMAN}" * 300
    finally:
        assert server.stop()
    assert len(ways) > 20 and set(ways) == {version == "1.1"}


@pytest.mark.parametrize("head", ("HTTP/1.0\r\n", "HTTP/1.1\r\nConnection: close\r\n"))
def test_what_comes_behind_a_clients_last_request_is_not_read(head: str) -> None:
    server = Server(ServerConfig(port=0), [Served(ScriptedEngine(one_by_one(*"abcdefgh")), "a")])
    server.start()
    body = json.dumps({"messages": [{"role": "user", "content": "x"}], "stream": True}).encode()
    head += f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    try:
        with socket.create_connection(("127.0.0.1", server.port), 30) as client:
            client.sendall(f"POST /v1/chat/completions {head}\r\n\r\n".encode() + body)
            found = client.recv(1 << 16)
            client.sendall(b"\r\n")
            while data := client.recv(1 << 16):
                found += data
    finally:
        assert server.stop()
    assert found.count(b"HTTP/1.") == 1 and b"data: [DONE]" in found
