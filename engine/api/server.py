"""The API's thread: a loop of its own that serves until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import socket
import sys
import threading
from collections.abc import Sequence

import uvicorn

from engine.api.app import make_app
from engine.api.auth import api_key
from engine.api.connection import Connection
from engine.api.guard import HEADER_LIMIT
from engine.api.journal import Live
from engine.api.served import Models, Served
from engine.config import ServerConfig
from engine.connect import address
from engine.errors import BadRequest, EngineError

log = logging.getLogger(__name__)

_GRACE_S = 3
_START_S = 30.0
_BACKLOG = 1024
_MOST_CONNECTIONS = 2048


class Server:
    """Offers engines to clients on this PC, or on the network where the user said so.

    `start` and `stop` may be called from any thread, and again. The engines go on when it stops, except
    those that it loaded itself.
    """

    def __init__(self, config: ServerConfig, served: Sequence[Served]) -> None:
        self.config = config
        self.models = Models(config, list(served))
        self.key = api_key() if needs_key(config) else None
        self._uvicorn: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failure: BaseException | None = None
        self.port = config.port

    @property
    def url(self) -> str:
        """Where clients on this PC reach it, without /v1."""
        return address(self.config.host, self.port)

    @property
    def running(self) -> bool:
        """Whether clients are served now."""
        return self._thread is not None and self._thread.is_alive()

    def requests(self, texts: bool = False) -> list[Live]:
        """What is being answered and the newest that was, the oldest first; texts only with `texts`."""
        return self.models.journal.lives(texts)

    def guests(self) -> list[str]:
        """The models that clients had loaded beside those it was given; from any thread."""
        return [one.name for one in list(self.models.all) if one.own and one.loaded]

    def unload_guests(self) -> None:
        """Free the memory of these; what they are writing ends."""
        for one in list(self.models.all):
            if one.own and self._loop is not None:
                asyncio.run_coroutine_threadsafe(one.unload(parked=False), self._loop)

    def bind(self) -> socket.socket:
        """Take the address; `EngineError` where that cannot be had."""
        host, port = self.config.host, self.config.port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # asyncio sends small pieces at once only on sockets that say they are TCP.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):  # Windows: nobody else may take the port too
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
            else:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((host, port))
            listener.listen(_BACKLOG)
        except (OSError, OverflowError) as error:
            listener.close()
            reason = getattr(error, "strerror", None) or error
            raise EngineError(
                f"The address {host}:{port} cannot be used: {reason}. Choose another with --port or --host."
            ) from error
        self.port = listener.getsockname()[1]
        return listener

    def start(self, listener: socket.socket | None = None) -> None:
        """Serve from now on, on `listener` or on an address of its own; returns when clients are heard."""
        if self.running:
            return
        listener = listener or self.bind()
        self._failure = None
        self.models.closing = False
        most = most_connections()
        config = uvicorn.Config(
            make_app(self.models, self.key),
            http=Connection,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            ws="none",
            h11_max_incomplete_event_size=HEADER_LIMIT,
            timeout_graceful_shutdown=_GRACE_S,
            limit_concurrency=most,
            backlog=min(_BACKLOG, most // 2),  # so many are accepted before any is looked at
        )
        self._uvicorn = uvicorn.Server(config)
        ready = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(self._uvicorn, listener, ready), name="api", daemon=True
        )
        self._thread.start()
        ready.wait(_START_S)
        if self._failure is not None:
            raise EngineError(f"The server could not start: {self._failure}.") from self._failure

    def stop(self, timeout: float = 10.0) -> bool:
        """End all answers and stop listening; False when that took over `timeout` s."""
        if self._thread is None or self._uvicorn is None:
            return True
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self.models.close)
        self._uvicorn.should_exit = True
        self._thread.join(timeout)
        for one in self.models.all:
            if one.own:
                one.engine.close()
        return not self._thread.is_alive()

    def _run(self, server: uvicorn.Server, listener: socket.socket, ready: threading.Event) -> None:
        async def serve() -> None:
            self._loop = asyncio.get_running_loop()
            work = asyncio.ensure_future(server.serve([listener]))
            while not server.started and not work.done():
                await asyncio.sleep(0.005)
            ready.set()
            await work

        try:
            asyncio.run(serve())
        except BaseException as error:
            self._failure = error
            log.exception("The server ended")
        finally:
            listener.close()
            ready.set()


def most_connections() -> int:
    """How many clients may be connected at once: half of the files that the system lets this program open, so
    that chats and settings can be written whatever clients do."""
    if sys.platform == "win32":  # it has no such limit
        return _MOST_CONNECTIONS
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * _MOST_CONNECTIONS
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return most // 2


def needs_key(config: ServerConfig) -> bool:
    """Whether clients must send the API key: always, where others can reach the address."""
    return config.require_key or not is_loopback(config.host)


def is_loopback(host: str) -> bool:
    """Whether an address is reached from this PC only; `BadRequest` for what is no address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError as error:
        raise BadRequest(
            f"The address {host!r} is none; expected one such as 127.0.0.1, or 0.0.0.0 for all."
        ) from error
