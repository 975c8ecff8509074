"""The flags of `lucebox serve`, and those of Lucebox Hub's server for what this version cannot do."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from engine.arguments import add_settings, chosen
from engine.config import DiskCacheConfig, EngineConfig, ServerConfig, settings_of
from engine.errors import BadRequest

_BY_FILE = "the draft's own file says it"
_BY_GAIN = "what is guessed is chosen by what pays; --spec and --budget bound it"
_BESIDE = "the draft runs where its model does"
_BY_CARD = "the model's card says it, and a request may give its own budget"
_WHOLE = "prompts are read whole"
_BY_PAGE = "--disk-cache writes every full page once, whatever the conversation"
_AUTOMATIC = "it is decided by what the model and the memory need"
_ONE_BUDGET = "--prefix-cache-max-mib bounds all that is kept in RAM"
_NO_SPLIT = "a model runs on one device"
_EXPERTS = "experts stay where the model is"
_FULL = "keys and values are kept as they are computed"
_DEEPSEEK = "there is no DeepSeek V4 here"

MISSING = {
    "--draft-device": _BESIDE,
    "--draft-ipc-bin": _BESIDE, "--draft-ipc-work-dir": _BESIDE, "--draft-ipc-ring-cap": _BESIDE,
    "--draft-swa": _BY_FILE, "--draft-block-size": _BY_FILE,
    "--ddtree-tau": _BY_GAIN, "--specla": _BY_GAIN, "--specla-top-k": _BY_GAIN,
    "--fast-rollback": _BY_GAIN, "--no-fast-rollback": _BY_GAIN, "--verify-width": _BY_GAIN,
    "--adaptive-experts": "every chosen expert is computed",
    "--think-max-tokens": _BY_CARD, "--hard-limit-reply-budget": _BY_CARD,
    "--reasoning-effort-low": _BY_CARD, "--reasoning-effort-medium": _BY_CARD,
    "--reasoning-effort-high": _BY_CARD, "--reasoning-effort-x-high": _BY_CARD,
    "--reasoning-effort-max": _BY_CARD,
    "--target-devices": _NO_SPLIT, "--target-layer-split": _NO_SPLIT, "--peer-access": _NO_SPLIT,
    "--target-split-mode": _NO_SPLIT, "--target-split-fast-rollback": _NO_SPLIT,
    "--target-shard-ipc-bin": _NO_SPLIT, "--target-shard-ipc-work-dir": _NO_SPLIT,
    "--mmproj": "models read text only", "--mmproj-device": "models read text only",
    "--fa-window": "attention always sees the whole context",
    "--cache-type-k": _FULL, "--cache-type-v": _FULL,
    "--kvflash": "all of the context stays in memory",
    "--kvflash-policy": "all of the context stays in memory",
    "--kvflash-tau": "all of the context stays in memory",
    "--paged-attention": "it is always on", "--kv-pool-tokens": _AUTOMATIC,
    "--admission-coalesce-ms": "requests are admitted at once",
    "--decode-kv-offload-mb": _ONE_BUDGET, "--concurrent-prefix-cache-max-mib": _ONE_BUDGET,
    "--prefix-cache-slots": _ONE_BUDGET, "--prefill-cache-slots": _ONE_BUDGET,
    "--kv-cache-min-tokens": _BY_PAGE, "--kv-cache-interval": _BY_PAGE,
    "--kv-cache-cold-max": _BY_PAGE, "--disk-prefix-cache": _BY_PAGE,
    "--disk-prefix-cache-compress": _BY_PAGE,
    "--prefill-compression": _WHOLE, "--prefill-threshold": _WHOLE, "--prefill-keep-ratio": _WHOLE,
    "--prefill-curve": _WHOLE, "--prefill-drafter": _WHOLE, "--prefill-skip-park": _WHOLE,
    "--prefill-upstream-base": _WHOLE, "--prefill-upstream-key": _WHOLE,
    "--prefill-upstream-model": _WHOLE,
    "--spark": _EXPERTS, "--spark-slots": _EXPERTS, "--spark-vram": _EXPERTS, "--freq": _EXPERTS,
    "--collect-routing": _EXPERTS, "--expert-device": _EXPERTS,
    "--ds4-fused-decode": _DEEPSEEK, "--ds4-expert-top-k": _DEEPSEEK, "--ds4-prefill": _DEEPSEEK,
    "--ds4-fused-verify-f16-kv": _DEEPSEEK, "--ds4-expert-placement": _DEEPSEEK,
    "--ds4-router-bias": _DEEPSEEK, "--ds4-protected-experts": _DEEPSEEK,
    "--model-routing": "models are chosen by their names, or with --load-balancing by load",
    "--load-balancing-primary-gpu": "the first model is the first choice",
    "--profile": "there are no launch profiles; give the flags themselves",
    "--list-devices": "use `lucebox devices`",
}  # fmt: skip
"""Flags of Lucebox Hub's server that are refused, and why; a setting with such a flag takes its place."""


class _Open(argparse.Action):
    """`--model PATH` opens a block: engine flags behind it are that model's own."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        namespace.blocks = [*(namespace.blocks or ()), argparse.Namespace(model=values)]


class _InBlock(argparse.Action):
    """A flag of the last block, or of all models where no block is open yet."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        target = namespace.blocks[-1] if namespace.blocks else namespace
        setattr(target, self.dest, self.const if self.nargs == 0 else values)


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
    add_settings(command, DiskCacheConfig)
    add_settings(command, EngineConfig, action=_InBlock)
    command.add_argument(
        "--chunk", dest="prefill_chunk", type=int, action=_InBlock, help=argparse.SUPPRESS
    )
    command.add_argument("--target-device", dest="device", action=_InBlock, help=argparse.SUPPRESS)
    command.add_argument(
        "--ddtree", dest="spec", nargs=0, const="tree", action=_InBlock, help=argparse.SUPPRESS
    )
    command.add_argument(
        "--lazy-draft", dest="draft_residency", nargs=0, const="request-scoped", action=_InBlock,
        help=argparse.SUPPRESS,
    )  # fmt: skip
    command.add_argument(
        "--ddtree-budget", dest="budget", type=int, action=_InBlock, help=argparse.SUPPRESS
    )
    command.add_argument(
        "--default-max-tokens", dest="max_tokens", type=int, help=argparse.SUPPRESS
    )
    classes = (ServerConfig, DiskCacheConfig, EngineConfig)
    known = {info.flag for cls in classes for info in settings_of(cls).values()}
    for flag in MISSING.keys() - known:
        command.add_argument(flag, nargs="?", action=_Missing, help=argparse.SUPPRESS)


def server_config(args: argparse.Namespace) -> ServerConfig:
    """How to serve, by the command line."""
    config = ServerConfig(**chosen(args, ServerConfig))
    if args.no_cors and config.allowed_origins:
        raise BadRequest("--no-cors and --cors exclude each other.")
    return config


def disk_cache_config(args: argparse.Namespace) -> DiskCacheConfig:
    """How to keep conversations on disk; a folder for them is the wish to."""
    given = chosen(args, DiskCacheConfig)
    return DiskCacheConfig(**{"disk_cache": "disk_cache_dir" in given, **given})


def blocks(args: argparse.Namespace) -> Sequence[tuple[str | None, str | None, dict[str, Any]]]:
    """Each model's file (None: the demo model), its name or None, and its engine settings."""
    common = chosen(args, EngineConfig)
    first = [*([None] if args.demo else []), *args.models]
    if args.model_name and not first:
        raise BadRequest("--model-name goes behind the --model that it names.")
    if args.model_name and len(first) + len(args.blocks or ()) > 1:
        raise BadRequest("--model-name names one of several models; give each with --model.")
    found = [(model, args.model_name or None, common) for model in first]
    for block in args.blocks or ():
        own = chosen(block, EngineConfig)
        found.append((block.model, getattr(block, "model_name", None), {**common, **own}))
    return found
