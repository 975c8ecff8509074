"""What the commands about drafts do; `engine.draft_cli` has their arguments."""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.arguments import chosen, file_path, read_ids
from engine.command_model import model_path, serving
from engine.config import EngineConfig, Precision
from engine.convert import drafts
from engine.convert.config import TrainConfig
from engine.draft.check import check_draft, show
from engine.draft.files import DraftFile
from engine.errors import BadRequest, EngineError
from engine.placement import size_text
from engine.speedup import compare

if TYPE_CHECKING:
    from engine.cli import Console


def convert_draft(args: argparse.Namespace, console: Console) -> None:
    """Write a draft as GGUF."""
    source, out = file_path(args.source, "draft"), file_path(args.out, "file to write")
    target = None if args.target is None else file_path(args.target, "target")
    with _stoppable() as cancel:
        made = drafts.convert_draft(
            source, out, args.type, args.dialect, target, _progress(console), cancel
        )
    _say_written(made, out, console)
    if args.dialect == "llama.cpp" and target is None and "tokenizer.ggml.model" not in made.meta:
        console.say(
            "Without --target it has no tokenizer, which llama.cpp asks for; Lucebox does not."
        )


def quantize_draft(args: argparse.Namespace, console: Console) -> None:
    """Write a draft with fewer bits."""
    source, out = file_path(args.source, "draft"), file_path(args.out, "file to write")
    with _stoppable() as cancel:
        made = drafts.quantize_draft(source, out, args.scheme, _progress(console), cancel)
    _say_written(made, out, console)


def draft_check(args: argparse.Namespace, console: Console) -> None:
    """Say how well a draft guesses, and what is wrong with it."""
    if args.demo and args.draft is None:
        args.draft, args.model = args.model, None
    if args.draft is None:
        raise BadRequest("Give the draft too: lucebox draft-check MODEL DRAFT.")
    draft = file_path(args.draft, "draft")
    if not 8 <= args.tokens <= 512:
        raise BadRequest(f"--tokens: found {args.tokens}, expected 8 to 512.")
    ids = read_ids(args.ids) if args.ids is not None else None
    config = EngineConfig(**{"precision": Precision.EXACT, **chosen(args, EngineConfig)})
    report = check_draft(
        model_path(args, console), draft, config, ids, args.tokens,
        lambda done, total, what: console.progress(f"{what}, {done} of {total}"),
    )  # fmt: skip
    console.clear()
    if args.json:
        console.json(asdict(report))
    else:
        console.data(show(report))


def draft_bench(args: argparse.Namespace, console: Console) -> None:
    """Measure writing with drafts and without."""
    if not 8 <= args.tokens <= 4096:
        raise BadRequest(f"--tokens: found {args.tokens}, expected 8 to 4,096.")
    with serving(args, console, {"max_concurrency": 1}) as (engine, info):
        found = compare(
            engine, args.tokens, lambda done, total, kind: console.progress(f"{done} of {total}, {kind}")
        )  # fmt: skip
    console.clear()
    if args.json:
        console.json({"model": info.name, **found.facts()})
    else:
        console.data(f"{info.name}, drafter: {found.drafter or 'none'}")
        console.data(found.text())


def train_draft(args: argparse.Namespace, console: Console) -> None:
    """Train a draft for a model."""
    config = TrainConfig(**chosen(args, TrainConfig))
    try:
        from engine.convert.train.loop import train_draft as train
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        pip = subprocess.list2cmdline([sys.executable, "-m", "pip", "install", "torch"])
        raise EngineError(
            f"Training needs PyTorch, which is not installed. Put it beside Lucebox with `{pip}`."
        ) from error
    said = ""

    def report(stage: str, share: float, word: str) -> None:
        nonlocal said
        if console.live:
            console.progress(f"{stage}, {share:.0%}: {word}")
        elif f"{stage} {share:.1f}" != said:
            said = f"{stage} {share:.1f}"
            console.say(f"{stage}, {share:.0%}: {word}")

    out = file_path(args.out, "file to write")
    work = None if args.work is None else file_path(args.work, "folder for work")
    start = None if args.start is None else file_path(args.start, "draft to start from")
    with _stoppable() as cancel:
        made = train(model_path(args, console), out, config, work, report, cancel, start)
    if args.json:
        console.json({**asdict(made), "path": str(made.path)})
        return
    for kind, tokens in made.acceptance.items():
        console.data(f"{kind:<10}{tokens:6.2f} tokens a pass")
    console.say(f"{made.path}: {made.steps:,} steps on {made.texts:,} texts.")


@contextlib.contextmanager
def _stoppable() -> Iterator[threading.Event]:
    """An event that Ctrl-C sets by way of the exception that ends the command."""
    cancel = threading.Event()
    try:
        yield cancel
    finally:
        cancel.set()


def _progress(console: Console) -> Any:
    return lambda done, total: console.progress(f"Writing, {done * 100 // max(1, total)} %")


def _say_written(made: DraftFile, out: Path, console: Console) -> None:
    for warning in made.config.warnings:
        console.say(f"Note: {warning}")
    cfg = made.config
    layers = ", ".join(map(str, cfg.capture)) or "not said"
    console.say(
        f"{out}: {size_text(out.stat().st_size)}, {cfg.n_layers} layers, blocks of {cfg.block}, reads"
        f" layers {layers} of the target."
    )
