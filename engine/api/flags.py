"""The flags of `lucebox serve`, and Lucebox's flags for what this version cannot do."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from engine.arguments import add_settings, chosen
from engine.config import EngineConfig, ServerConfig, settings_of
from engine.errors import BadRequest

_NO_DRAFTS = "drafts are not served yet"
_NO_DISK = "the prefix cache lives in memory only"
_AUTOMATIC = "it is decided by what the model and the memory need"
_NO_SPLIT = "a model runs on one device"

MISSING = {
    "--draft": _NO_DRAFTS, "--draft-residency": _NO_DRAFTS, "--lazy-draft": _NO_DRAFTS,
    "--draft-swa": _NO_DRAFTS, "--draft-block-size": _NO_DRAFTS, "--draft-device": _NO_DRAFTS,
    "--ddtree": _NO_DRAFTS, "--ddtree-budget": _NO_DRAFTS, "--ddtree-tau": _NO_DRAFTS,
    "--specla": _NO_DRAFTS, "--fast-rollback": _NO_DRAFTS, "--no-fast-rollback": _NO_DRAFTS,
    "--verify-width": _NO_DRAFTS, "--adaptive-experts": "every chosen expert is computed",
    "--target-devices": _NO_SPLIT, "--target-layer-split": _NO_SPLIT, "--peer-access": _NO_SPLIT,
    "--mmproj": "models read text only", "--mmproj-device": "models read text only",
    "--fa-window": "attention always sees the whole context",
    "--cache-type-k": "keys are kept in full precision",
    "--cache-type-v": "values are kept in full precision",
    "--paged-attention": "it is always on; leave it out",
    "--kv-pool-tokens": _AUTOMATIC, "--admission-coalesce-ms": "requests are admitted at once",
    "--decode-kv-offload-mb": "a sequence that must wait is computed again",
    "--prefix-cache-slots": _AUTOMATIC, "--prefill-cache-slots": _AUTOMATIC,
    "--prefix-cache-max-mib": _AUTOMATIC, "--concurrent-prefix-cache-max-mib": _AUTOMATIC,
    "--agent-turn-cache": "states after tool calls are always kept; leave it out",
    "--kv-cache-dir": _NO_DISK, "--kv-cache-budget": _NO_DISK, "--disk-prefix-cache": _NO_DISK,
    "--disk-prefix-cache-compress": _NO_DISK,
    "--kvflash": "all of the context stays in memory",
    "--prefill-compression": "prompts are read whole", "--prefill-drafter": "prompts are read whole",
    "--prefill-threshold": "prompts are read whole", "--prefill-keep-ratio": "prompts are read whole",
    "--prefill-curve": "prompts are read whole", "--prefill-upstream-base": "prompts are read here",
    "--spark": "experts stay where the model is", "--spark-slots": "experts stay where the model is",
    "--spark-vram": "experts stay where the model is", "--expert-device": "experts stay where the model is",
    "--profile": "there are no launch profiles; give the flags themselves",
}  # fmt: skip
"""Lucebox's flags that cannot be honoured, and why; a setting with such a flag takes its place."""


class _Open(argparse.Action):
    """`--model PATH` opens a block: engine flags behind it are that model's own."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        namespace.blocks = [*(namespace.blocks or ()), argparse.Namespace(model=values)]


class _InBlock(argparse.Action):
    """A flag of the last block, or of all models where no block is open yet."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        target = namespace.blocks[-1] if namespace.blocks else namespace
        setattr(target, self.dest, values)


class _Missing(argparse.Action):
    """Refuses a flag by its name."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        raise argparse.ArgumentError(self, MISSING[option])


def add_flags(command: argparse.ArgumentParser) -> None:
    """Give `lucebox serve` its flags."""
    command.add_argument("models", nargs="*", metavar="MODEL", help="a .gguf file")
    command.add_argument("--demo", action="store_true", help="serve the demo model")
    command.add_argument(
        "--model", dest="blocks", action=_Open, metavar="MODEL",
        help="one more model, with its own engine flags behind it",
    )  # fmt: skip
    command.add_argument(
        "--model-name", action=_InBlock, metavar="NAME", help="what clients call the model"
    )
    command.add_argument("--no-cors", action="store_true", help="web pages are not allowed anyway")
    add_settings(command, ServerConfig)
    add_settings(command, EngineConfig, action=_InBlock)
    command.add_argument(
        "--chunk", dest="prefill_chunk", type=int, action=_InBlock, help=argparse.SUPPRESS
    )
    command.add_argument("--target-device", dest="device", action=_InBlock, help=argparse.SUPPRESS)
    command.add_argument(
        "--default-max-tokens", dest="max_tokens", type=int, help=argparse.SUPPRESS
    )
    known = {
        info.flag for cls in (ServerConfig, EngineConfig) for info in settings_of(cls).values()
    }
    for flag in MISSING.keys() - known:
        command.add_argument(flag, nargs="?", action=_Missing, help=argparse.SUPPRESS)


def server_config(args: argparse.Namespace) -> ServerConfig:
    """How to serve, by the command line."""
    config = ServerConfig(**chosen(args, ServerConfig))
    if args.no_cors and config.allowed_origins:
        raise BadRequest("--no-cors and --cors exclude each other.")
    return config


def blocks(args: argparse.Namespace) -> Sequence[tuple[str, str | None, dict[str, Any]]]:
    """Each model's file, its name or None, and its engine settings by the command line."""
    common = chosen(args, EngineConfig)
    found: list[tuple[str, str | None, dict[str, Any]]] = []
    for model in args.models:
        name = args.model_name if len(args.models) == 1 and not args.blocks else None
        found.append((model, name, common))
    if args.model_name and not found:
        raise BadRequest("--model-name goes behind the --model that it names.")
    if args.model_name and found and found[0][1] is None:
        raise BadRequest("--model-name names one of several models; give each with --model.")
    for block in args.blocks or ():
        own = chosen(block, EngineConfig)
        found.append((block.model, getattr(block, "model_name", None), {**common, **own}))
    return found
