"""A short run of `stress`, which has the long one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from engine.api.served import Served
from engine.api.server import Server
from engine.config import ServerConfig
from engine.engine import Engine
from tests.engine.api import stress


@pytest.fixture
def wide(tiny_engine: Engine) -> Iterator[Server]:
    """A server that lets many wait."""
    config = ServerConfig(port=0, routing_queue_limit=1000)
    server = Server(config, [Served(tiny_engine, "tiny")])
    server.start()
    yield server
    assert server.stop()


def test_many_clients_get_their_own_answers(wide: Server, tiny_engine: Engine) -> None:
    report = asyncio.run(stress.run(wide.url, clients=24, seconds=4))
    assert not report.faults[:5]
    assert set(report.done) == {"whole", "stream", "leave", "slow", "junk", "other"}
    end = time.monotonic() + 10
    while wide.models.all[0].in_flight or tiny_engine.status().running:
        assert time.monotonic() < end
        time.sleep(0.05)
    assert not wide.models.all[0].turns
