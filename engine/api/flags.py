"""The flags of `lucebox serve`, and those of Lucebox Hub's server for what this version cannot do."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from engine.arguments import add_settings, chosen
from engine.cards import overlaid
from engine.config import DiskCacheConfig, EngineConfig, ServerConfig, settings_of
from engine.errors import BadRequest
from engine.parser import whole
from engine.reasoning import TIERS

_BY_FILE = "the draft's own file says it"
_BY_GAIN = "what is guessed is chosen by what pays; --spec and --budget bound it"
_BESIDE = "the draft runs where its model does"
_WHOLE = "prompts are read whole"
_BY_PAGE = "--disk-cache writes every full page once, whatever the conversation"
_AUTOMATIC = "it is decided by what the model and the memory need"
_ONE_BUDGET = "--prefix-cache-max-mib bounds all that is kept in RAM"
_NO_SPLIT = "a model runs on one device"
_EXPERTS = "experts stay where the model is"
_FULL = "keys and values are kept in f16"
_DEEPSEEK = "there is no DeepSeek V4 here"

MISSING = {
    "--draft-device": _BESIDE,
    "--draft-ipc-bin": _BESIDE, "--draft-ipc-work-dir": _BESIDE, "--draft-ipc-ring-cap": _BESIDE,
    "--draft-swa": _BY_FILE, "--draft-block-size": _BY_FILE,
    "--ddtree-tau": _BY_GAIN, "--specla": _BY_GAIN, "--specla-top-k": _BY_GAIN,
    "--fast-rollback": _BY_GAIN, "--no-fast-rollback": _BY_GAIN, "--verify-width": _BY_GAIN,
    "--adaptive-experts": "every chosen expert is computed",
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


HOLD = {
    "--paged-attention": None, "--fast-rollback": None, "--fa-window": "0", "--draft-swa": "0",
    "--cache-type-k": "f16", "--cache-type-v": "f16", "--prefill-cache-slots": "0",
    "--prefill-compression": "off", "--disk-prefix-cache": "full", "--model-routing": "name",
}  # fmt: skip
"""The values of these flags that are no wish for anything missing: it is so anyway."""

BUDGETS = {
    "--think-max-tokens": (
        "think_max_tokens",
        "most tokens for thinking, however much is asked for",
    ),
    "--hard-limit-reply-budget": (
        "hard_limit_reply_budget",
        "tokens kept for the answer behind it",
    ),
}
_EFFORTS = ("low", "medium", "high", "x-high", "max")


class _Open(argparse.Action):
    """`--model PATH` opens a block: engine flags behind it are that model's own."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        namespace.blocks = [*(namespace.blocks or ()), argparse.Namespace(model=values)]


class _InBlock(argparse.Action):
    """A flag of the last block, or of all models where no block is open yet."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        target = namespace.blocks[-1] if namespace.blocks else namespace
        setattr(target, self.dest, self.const if self.nargs == 0 else values)


class _OnCard(argparse.Action):
    """A field of the model's card, or one of its tiers, in the last block or for all models."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        target = namespace.blocks[-1] if namespace.blocks else namespace
        field, _, tier = self.dest.partition(".")
        over = {field: {tier: values} if tier else values}
        target.card = overlaid(getattr(target, "card", None) or {}, over)


class _Missing(argparse.Action):
    """Refuses a flag by its name, but for values that ask for nothing."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        if option not in HOLD or (values or None) != HOLD[option]:
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
    group = command.add_argument_group("thinking", "In place of what the model's card says.")
    for flag, (field, help) in BUDGETS.items():
        group.add_argument(
            flag, dest=field, type=tokens, action=_OnCard, metavar="TOKENS", help=help
        )
    for effort in _EFFORTS:
        group.add_argument(
            f"--reasoning-effort-{effort}", dest=f"{TIERS}.{effort}", type=tokens, action=_OnCard,
            metavar="TOKENS", help=f"tokens for thinking where a request asks for the effort {effort}",
        )  # fmt: skip
    classes = (ServerConfig, DiskCacheConfig, EngineConfig)
    known = {info.flag for cls in classes for info in settings_of(cls).values()}
    for flag in MISSING.keys() - known:
        nargs = 0 if HOLD.get(flag, "") is None else "?"
        command.add_argument(flag, nargs=nargs, action=_Missing, help=argparse.SUPPRESS)


def tokens(text: str) -> int:
    """A number of tokens on the command line, at least 1."""
    if (found := whole(text)) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected at least 1")
    return found


def engine_settings(args: argparse.Namespace) -> dict[str, Any]:
    """How to run a model, by the flags for all models or by those of one block."""
    card = getattr(args, "card", None)
    return {**chosen(args, EngineConfig), **({"card": card} if card else {})}


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
    common = engine_settings(args)
    first = [*([None] if args.demo else []), *args.models]
    if args.model_name and not first:
        raise BadRequest("--model-name goes behind the --model that it names.")
    if args.model_name and len(first) + len(args.blocks or ()) > 1:
        raise BadRequest("--model-name names one of several models; give each with --model.")
    found = [(model, args.model_name or None, common) for model in first]
    for block in args.blocks or ():
        own = engine_settings(block)
        if "card" in own:
            own["card"] = overlaid(common.get("card", {}), own["card"])
        found.append((block.model, getattr(block, "model_name", None), {**common, **own}))
    return found
