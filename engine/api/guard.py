"""What every request must pass: its host, its origin, its key and its size. CORS is answered here too."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from engine.api.auth import same_key
from engine.api.errors import ApiError, error_body, error_headers
from engine.config import ServerConfig

HEADER_LIMIT = 64 << 10
"""Bytes of a request's path and headers, at most."""

OPEN_PATHS = frozenset({"/", "/health"})
"""Paths that need no key."""

BODY_S = 60.0
"""A body that does not go on for this long is given up."""

_DRAIN = 4  # times the limit: a refused body is read so far, so that its sender hears the refusal
_METHODS = "GET, POST, DELETE, OPTIONS"
_HEADERS = (
    "authorization, content-type, x-api-key, anthropic-version, anthropic-beta, openai-beta,"
    " openai-organization, openai-project, x-stainless-arch, x-stainless-async,"
    " x-stainless-helper-method, x-stainless-lang, x-stainless-os, x-stainless-package-version,"
    " x-stainless-retry-count, x-stainless-runtime, x-stainless-runtime-version, x-stainless-timeout"
)

_NAMES = re.compile(r"[A-Za-z0-9-]+(, ?[A-Za-z0-9-]+)*")


class Guard:
    """An ASGI application around another one that lets only sound requests through."""

    def __init__(self, app: ASGIApp, config: ServerConfig, key: str | None) -> None:
        """`key`: what clients must send, None where none is needed."""
        self._app = app
        self._key = key
        self._limit = config.body_limit << 20
        self._origins = {origin.rstrip("/").lower() for origin in config.allowed_origins}
        self._hosts = {name.lower() for name in config.allowed_hosts} | _own_names()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        headers = Headers(scope=scope)
        allowed = self._allowed_origin(headers)
        outbound = _with_origin(send, allowed) if allowed else send
        try:
            _check_head(scope, headers)
            self._check_host(headers)
            self._check_origin(headers, allowed)
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                return await _preflight(outbound, headers)
            self._check_key(scope["path"], headers)
            length = headers.get("content-length", "0")
            if length.isdecimal() and int(length) > self._limit:
                await self._drain(receive)
                raise _too_large(self._limit)
        except ApiError as error:
            return await _refuse(outbound, scope["path"], error)
        body = _Body(receive, self._limit)

        async def unless_refused(message: Message) -> None:
            # FastAPI answers a fault in reading the body in its own way.
            if body.error is None:
                await outbound(message)

        try:
            await self._app(scope, body.receive, unless_refused)
        except ApiError:
            if body.error is None:
                raise
        if body.error is not None:
            if body.error.status == 413:
                await self._drain(receive)
            await _refuse(outbound, scope["path"], body.error)

    def _check_host(self, headers: Headers) -> None:
        """Against DNS rebinding: a page's own name that was made to point here is no name of this PC."""
        if not _is_known_host(headers.get("host", ""), self._hosts):
            raise ApiError(
                403, "The Host header names no host of this server. Allow it with --allow-host NAME.",
                "host_not_allowed",
            )  # fmt: skip

    def _check_origin(self, headers: Headers, allowed: str | None) -> None:
        origin = headers.get("origin")
        if origin is None or allowed is not None:
            return
        if origin.lower() in (f"http://{headers.get('host', '').lower()}",):
            return
        raise ApiError(
            403, "Web pages may not use this server. Allow this one with --cors ORIGIN.",
            "origin_not_allowed",
        )  # fmt: skip

    def _check_key(self, path: str, headers: Headers) -> None:
        if self._key is None or path in OPEN_PATHS:
            return
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else ""
        given = given or headers.get("x-api-key", "") or headers.get("api-key", "")
        if not given:
            raise ApiError(
                401, "The API key is missing. `lucebox key` shows it; send it as a bearer token.",
                "invalid_api_key",
            )  # fmt: skip
        if not same_key(given, self._key):
            raise ApiError(
                401, "The API key is not the right one; `lucebox key` shows it.", "invalid_api_key"
            )

    def _allowed_origin(self, headers: Headers) -> str | None:
        origin = headers.get("origin")
        if origin is not None and ("*" in self._origins or origin.lower() in self._origins):
            return origin
        return None

    async def _drain(self, receive: Receive) -> None:
        left = self._limit * _DRAIN
        try:
            async with asyncio.timeout(BODY_S):
                while left > 0:
                    message = await receive()
                    left -= len(message.get("body", b""))
                    if message["type"] == "http.disconnect" or not message.get("more_body"):
                        return
        except TimeoutError:
            return


class _Body:
    """A request's body, counted and timed while it is read."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = self._left = limit
        self._done = False
        self.error: ApiError | None = None

    async def receive(self) -> Message:
        """The next part; `ApiError` for too much of it, or when it does not go on."""
        if self._done:
            return await self._receive()
        try:
            async with asyncio.timeout(BODY_S):
                message = await self._receive()
        except TimeoutError:
            self.error = ApiError(408, "The request's body did not go on.", "timeout")
            raise self.error from None
        self._left -= len(message.get("body", b""))
        self._done = not message.get("more_body", False)
        if self._left < 0:
            self.error = _too_large(self._limit)
            raise self.error
        return message


def _check_head(scope: Scope, headers: Headers) -> None:
    size = len(scope["path"]) + len(scope.get("query_string", b""))
    if size + sum(len(name) + len(value) for name, value in headers.raw) > HEADER_LIMIT:
        raise ApiError(
            431, f"The headers are larger than {HEADER_LIMIT >> 10} KiB.", "headers_too_large"
        )
    if "content-length" in headers and "transfer-encoding" in headers:
        raise ApiError(400, "A body has either a length or chunks; the headers tell of both.")


def _too_large(limit: int) -> ApiError:
    return ApiError(413, f"The request is larger than {limit >> 20} MiB.", "request_too_large")


def _is_known_host(host: str, names: Iterable[str]) -> bool:
    """Whether a Host header is an address, which no page can claim, or a name of this PC."""
    try:
        name = (urlsplit(f"//{host}").hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    if name in names or name.endswith(".localhost"):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _own_names() -> set[str]:
    name = socket.gethostname().lower()
    return {"localhost", name, f"{name}.local"}


async def _refuse(send: Send, path: str, error: ApiError) -> None:
    headers = {"content-type": "application/json", **error_headers(error)}
    await _send(send, error.status, headers, error_body(path, error))


async def _preflight(send: Send, headers: Headers) -> None:
    asked = headers.get("access-control-request-headers", "")
    names = f"{_HEADERS}, {asked}" if _NAMES.fullmatch(asked) else _HEADERS
    await _send(
        send,
        204,
        {
            "access-control-allow-methods": _METHODS,
            "access-control-allow-headers": names,
            "access-control-max-age": "600",
        },
        b"",
    )


async def _send(send: Send, status: int, headers: dict[str, str], body: bytes) -> None:
    if status != 204:
        headers = {**headers, "content-length": str(len(body))}
    pairs = [(k.encode("latin-1"), v.encode("latin-1")) for k, v in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def _with_origin(send: Send, origin: str) -> Send:
    """Tell the browser that this origin may read the answer."""
    pairs = [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"vary", b"Origin"),
    ]

    async def outbound(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *pairs]}
        await send(message)

    return outbound
