"""The model that a command works on: its file by the arguments, and loading it while the user is told."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine import demo, paths
from engine.arguments import chosen, file_path
from engine.config import EngineConfig
from engine.engine import Engine
from engine.errors import BadRequest
from engine.loading import LoadedModel, load_model
from engine.types import LoadProgress, ModelInfo

if TYPE_CHECKING:
    from engine.cli import Console


def model_path(args: argparse.Namespace, console: Console) -> Path:
    """The model file of the arguments; raises `BadRequest` unless they name one."""
    if args.demo == (args.model is not None):
        raise BadRequest("Give one model: the path of a .gguf file, or --demo for the demo model.")
    return demo_path(console) if args.demo else file_path(args.model, "model")


def demo_path(console: Console) -> Path:
    """The demo model, which is installed where it is missing."""
    if (path := demo.path()) is not None:
        return path
    console.say(f"Installing the demo model in {paths.data_dir()}.")
    return demo.install(lambda done, total: console.progress(f"{done * 100 // total} %"))


@contextlib.contextmanager
def serving(
    args: argparse.Namespace, console: Console, config: dict[str, Any] | None = None
) -> Iterator[tuple[Engine, ModelInfo]]:
    """An engine with the model of the arguments, served by a thread; `config` yields to the flags."""
    settings = EngineConfig(**{**(config or {}), **chosen(args, EngineConfig)})
    with running(model_path(args, console), settings, console) as engine:
        info = engine.status().model
        assert info is not None
        yield engine, info


@contextlib.contextmanager
def running(path: Path, settings: EngineConfig, console: Console) -> Iterator[Engine]:
    """An engine with a model, served by a thread."""
    engine = Engine()
    engine.start()
    try:
        _say_loaded(engine.load(path, settings, _loading(path, console)), console)
        yield engine
    finally:
        engine.close()


@contextlib.contextmanager
def loaded(
    args: argparse.Namespace, console: Console, config: dict[str, Any]
) -> Iterator[LoadedModel]:
    """A model for one sequence at a time; `config` yields to the flags."""
    settings = EngineConfig(max_concurrency=1, **{**config, **chosen(args, EngineConfig)})
    path = model_path(args, console)
    model = load_model(path, settings, _loading(path, console))
    try:
        _say_loaded(model.info, console)
        yield model
    finally:
        model.close()


def _loading(path: Path, console: Console) -> Callable[[LoadProgress], None]:
    def show(progress: LoadProgress) -> None:
        share = f", {progress.done * 100 // progress.total} %" if progress.total else ""
        console.progress(f"Loading {path.name}: {progress.stage}{share}")

    return show


def _say_loaded(info: ModelInfo, console: Console) -> None:
    console.clear()
    for note in (*info.warnings, *info.notes):
        console.say(f"Note: {note}")
