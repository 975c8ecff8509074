"""What the guard lets through, with a small application behind it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Message, Receive, Scope, Send

from engine.api import guard
from engine.api.guard import Guard
from engine.config import ServerConfig

PAGE = "http://localhost:5173"


async def length_of_body(scope: Scope, receive: Receive, send: Send) -> None:
    """Answers with the length of the body."""
    body = await Request(scope, receive).body()
    await JSONResponse({"length": len(body)})(scope, receive, send)


def call(
    config: ServerConfig | None = None,
    key: str | None = None,
    method: str = "POST",
    path: str = "/v1/chat/completions",
    host: str = "127.0.0.1:8080",
    body: Any = b"{}",
    **headers: str,
) -> httpx.Response:
    """One request through a guard; `_` in a header's name stands for a hyphen."""
    app = Guard(length_of_body, config or ServerConfig(), key)
    given = {name.replace("_", "-"): value for name, value in headers.items()}

    async def go() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=f"http://{host}") as client:
            return await client.request(method, path, content=body, headers=given)

    return asyncio.run(go())


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8080", 200),
        ("localhost:1234", 200),
        ("LOCALHOST", 200),
        ("[::1]:8080", 200),
        ("192.168.1.7:8080", 200),
        ("app.localhost", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:8080", 403),
    ],
)
def test_only_this_pcs_own_names_are_served(host: str, status: int) -> None:
    assert call(host=host).status_code == status


def test_a_name_may_be_allowed() -> None:
    assert call(
        ServerConfig(allowed_hosts=["Host.Docker.Internal"]), host="host.docker.internal"
    ).is_success


@pytest.mark.parametrize("bad", ["", "a b", "[::1", "x@y.example"])
def test_a_senseless_host_is_refused(bad: str) -> None:
    assert call(Host=bad).status_code == 403


def test_pages_are_refused_unless_listed() -> None:
    assert call(Origin=PAGE).status_code == 403
    assert call(Origin="null").status_code == 403
    assert call(Origin="http://127.0.0.1:8080").status_code == 200
    listed = ServerConfig(allowed_origins=[PAGE + "/"])
    answer = call(listed, Origin=PAGE)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert call(listed, Origin="http://localhost:9999").status_code == 403
    assert "access-control-allow-origin" not in call(listed).headers


def test_a_preflight_names_what_sdks_send() -> None:
    ask = {
        "Access_Control_Request_Method": "POST",
        "Access_Control_Request_Headers": "x-new,openai-beta",
    }
    assert call(method="OPTIONS", Origin=PAGE, **ask).status_code == 403
    answer = call(ServerConfig(allowed_origins=[PAGE]), "key", "OPTIONS", Origin=PAGE, **ask)
    assert answer.status_code == 204
    assert "POST" in answer.headers["access-control-allow-methods"]
    allowed = answer.headers["access-control-allow-headers"]
    assert all(name in allowed for name in ("authorization", "x-stainless-timeout", "x-new"))


def test_a_preflight_cannot_inject_headers() -> None:
    config = ServerConfig(allowed_origins=[PAGE])
    ask = {"Access_Control_Request_Method": "POST", "Access_Control_Request_Headers": "a;b=c"}
    answer = call(config, None, "OPTIONS", Origin=PAGE, **ask)
    assert "a;b" not in answer.headers["access-control-allow-headers"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer right"}, 200),
        ({"Authorization": "bearer right"}, 200),
        ({"x_api_key": "right"}, 200),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Basic right"}, 401),
        ({"Authorization": "Bearer rightly"}, 401),
    ],
)
def test_the_key_is_needed_where_there_is_one(headers: dict[str, str], status: int) -> None:
    answer = call(key="right", **headers)
    assert answer.status_code == status
    if status == 401:
        assert answer.json()["error"]["code"] == "invalid_api_key"
        assert "right" not in answer.text.replace("not the right one", "")
    assert call(key="right", path="/health", method="GET", **headers).status_code == 200


def test_errors_speak_the_dialect_of_their_path() -> None:
    answer = call(key="right", path="/v1/messages")
    assert answer.json()["type"] == "error"
    assert answer.json()["error"]["type"] == "authentication_error"


def test_a_large_body_is_refused_in_json_whether_or_not_it_says_its_length() -> None:
    config = ServerConfig(body_limit=1)

    async def parts() -> Any:
        for _ in range(20):
            yield b"x" * 100_000

    for body in (b"x" * 2_000_000, parts()):
        answer = call(config, body=body)
        assert answer.status_code == 413
        assert answer.json()["error"]["code"] == "request_too_large"
    assert call(config, body=b"x" * (1 << 20)).json() == {"length": 1 << 20}


def test_large_headers_are_refused_also_when_they_come_at_once() -> None:
    assert call(x_one="a" * 30_000, x_two="b" * 30_000).is_success
    for answer in (
        call(x_one="a" * 70_000),
        call(x_one="a" * 30_000, path=f"/v1/models/{'a' * 40_000}"),
    ):
        assert answer.status_code == 431
        assert answer.json()["error"]["code"] == "headers_too_large"


def test_a_body_of_two_lengths_is_refused() -> None:
    answer = call(content_length="2", transfer_encoding="chunked")
    assert answer.status_code == 400
    assert "length" in answer.json()["error"]["message"]


def test_a_body_that_does_not_go_on_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_S", 0.05)
    sent: list[Message] = []

    async def receive() -> Message:
        await asyncio.sleep(60)
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    async def careless(scope: Scope, receive: Receive, send: Send) -> None:
        """As FastAPI does, turn any fault in reading the body into an answer of its own."""
        try:
            await receive()
        except Exception:
            await JSONResponse({}, 400)(scope, receive, send)

    scope = {
        "type": "http", "method": "POST", "path": "/v1/completions",
        "headers": [(b"host", b"127.0.0.1")],
    }  # fmt: skip
    asyncio.run(Guard(careless, ServerConfig(), None)(scope, receive, send))
    assert sent[0]["status"] == 408
    assert json.loads(sent[1]["body"])["error"]["code"] == "timeout"
