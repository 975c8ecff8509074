"""A live server on the loopback address with a tiny model behind it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

import httpx
import pytest

from engine.api.served import Served
from engine.api.server import Server
from engine.config import EngineConfig, Precision, ServerConfig
from engine.engine import Engine
from engine.types import Request
from tests.engine.api.scripted import ScriptedEngine
from tests.engine.engines import running
from tests.engine.oracle import model_path

CONFIG = EngineConfig(threads=2, precision=Precision.EXACT, max_ctx=512, prefill_chunk=64)


@pytest.fixture(scope="session")
def tiny_engine() -> Iterator[Engine]:
    """An engine with the tiny llama model; tests leave it as it is."""
    with running(model_path("llama"), CONFIG) as engine:
        yield engine


@pytest.fixture(scope="session")
def server(tiny_engine: Engine) -> Iterator[Server]:
    """A running server with the tiny model under the name tiny."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    server = Server(ServerConfig(port=0), [Served(tiny_engine, "tiny")])
    server.start()
    yield server
    assert server.stop()


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    """A plain HTTP client of the server."""
    with httpx.Client(base_url=server.url, timeout=60, trust_env=False) as client:
        yield client


@pytest.fixture
def scripted_server() -> Iterator[Callable[..., tuple[Server, ScriptedEngine]]]:
    """Starts servers whose engines say what `reply` gives, behind a prompt that ends in `prompt_end`."""
    running: list[Server] = []

    def start(
        reply: Callable[[Request], Iterable[str]], prompt_end: str = ""
    ) -> tuple[Server, ScriptedEngine]:
        engine = ScriptedEngine(reply, prompt_end=prompt_end)
        server = Server(ServerConfig(port=0), [Served(engine, "scripted")])
        server.start()
        running.append(server)
        return server, engine

    yield start
    for server in running:
        assert server.stop()
