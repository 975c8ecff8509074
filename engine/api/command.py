"""`lucebox serve`: the API without a window."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.api import flags
from engine.api.served import Served
from engine.api.server import Server, is_loopback
from engine.arguments import file_path
from engine.cache.archive import DiskArchive, open_archive
from engine.command_model import demo_path, running
from engine.config import DiskCacheConfig, EngineConfig
from engine.engine import Engine
from engine.errors import BadRequest, EngineError

if TYPE_CHECKING:
    from engine.cli import Console


def serve(args: argparse.Namespace, console: Console) -> None:
    """Load the models and serve them until Ctrl-C or the end of the process is asked for."""
    config = flags.server_config(args)
    wanted = [(model, name, EngineConfig(**given)) for model, name, given in flags.blocks(args)]
    if not wanted:
        raise BadRequest("Give the path of a .gguf file, or --demo for the demo model.")
    server = Server(config, [])
    listener = server.bind()  # before the models, so that a taken port is told at once
    with contextlib.ExitStack() as stack:
        stack.callback(listener.close)
        archive = _archive(flags.disk_cache_config(args), stack, console)
        for model, name, engine_config in wanted:
            path = demo_path(console) if model is None else file_path(model, "model")
            engine = _engine(stack, path, engine_config, console)
            engine.keep_in(archive)
            served = Served(engine, name)
            _name_apart(served, server.models.all)
            server.models.all.append(served)
        stop = stack.enter_context(_stop_signal())
        server.start(listener)
        stack.callback(server.stop)
        _say_ready(server, console)
        console.data(server.url)
        while not stop.wait(0.5) and server.running:
            pass
        console.say("Stopping.")


def _archive(
    config: DiskCacheConfig, stack: contextlib.ExitStack, console: Console
) -> DiskArchive | None:
    """Where conversations are kept on disk; None, with a word why, where they cannot be."""
    if not config.disk_cache:
        return None
    try:
        archive = open_archive(config)
    except EngineError as error:
        console.say(f"Note: {error}")
        return None
    stack.callback(archive.close)
    return archive


def _engine(
    stack: contextlib.ExitStack, path: Path, config: EngineConfig, console: Console
) -> Engine:
    engine = stack.enter_context(running(path, config, console))
    engine.read_vocabulary()  # no client waits for it then
    return engine


def _name_apart(served: Served, others: list[Served]) -> None:
    """Two copies of one model are told apart by a number."""
    names = {other.name for other in others}
    if served.given_name is not None and served.given_name in names:
        raise BadRequest(f"Two models are called {served.given_name!r}; give each its own name.")
    base, n = served.name, 2
    while served.name in names:
        served.given_name = f"{base}-{n}"
        n += 1


def _say_ready(server: Server, console: Console) -> None:
    for one in server.models.all:
        console.say(f"Serving {one.name} ({one.info.max_ctx:,} tokens of context).")
    if server.key is not None:
        where = "" if is_loopback(server.config.host) else ", and others can reach this address"
        console.say(f"Clients need the API key{where}; `lucebox key` shows it.")
    console.say(f"OpenAI clients: {server.url}/v1. Anthropic clients: {server.url}. Ctrl-C stops.")


@contextlib.contextmanager
def _stop_signal() -> Iterator[threading.Event]:
    """An event that Ctrl-C or a wish to end sets, once; the next one acts as ever."""
    stop = threading.Event()
    former: dict[int, Any] = {}

    def hear(number: int, _: object) -> None:
        stop.set()
        signal.signal(number, former[number])

    for name in ("SIGINT", "SIGTERM"):
        number = getattr(signal, name)
        former[number] = signal.signal(number, hear)
    try:
        yield stop
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
