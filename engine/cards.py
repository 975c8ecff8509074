"""Model cards: the sampling defaults that a model's makers recommend."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.config import SamplingParams
from engine.errors import BadRequest
from engine.paths import resources_dir
from engine.reasoning import TIERS, ThinkingLimits

GGUF_KEYS = {
    "general.sampling.temp": "temperature",
    "general.sampling.top_k": "top_k",
    "general.sampling.top_p": "top_p",
    "general.sampling.min_p": "min_p",
    "general.sampling.penalty_repeat": "repetition_penalty",
    "general.sampling.penalty_last_n": "penalty_last_n",
}
"""Keys of the GGUF specification that state sampling defaults."""

_MAX_TOKENS = {"qwen3": 32_768, "gemma4": 16_384, "laguna": 32_768}


def stem(name: str) -> str:
    """A model's name as card files are called: lower case, hyphens, no other punctuation but dots."""
    return re.sub(r"[^\w.-]", "", re.sub(r"[\s_]+", "-", name.strip().lower()))


def read_card(meta: Mapping[str, Any], folder: Path | None = None) -> dict[str, Any] | None:
    """The card named like the model, its base name and size, its base name or its architecture."""
    folder = folder or resources_dir() / "cards"
    for name in _names(meta):
        path = folder / f"{name}.json"
        if path.is_file():
            card: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return card
    return None


def sampling_defaults(meta: Mapping[str, Any], folder: Path | None = None) -> SamplingParams:
    """The file's own recommendation, else its card's, else ours; values out of bounds are left out."""
    card = read_card(meta, folder) or {}
    values = dict(card.get("sampling", {}))
    values |= {ours: meta[key] for key, ours in GGUF_KEYS.items() if key in meta}
    params = SamplingParams()
    for name, value in values.items():
        try:
            params = replace(params, **{name: type(getattr(params, name))(value)})
        except (BadRequest, TypeError, ValueError, AttributeError):
            continue
    return params


def overlaid(card: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A card on which the fields and tiers of `over` take the place of its own."""
    tiers = {**card.get(TIERS, {}), **over.get(TIERS, {})}
    return {**card, **over, **({TIERS: tiers} if tiers else {})}


def thinking_limits(
    meta: Mapping[str, Any], over: Mapping[str, Any] | None = None, folder: Path | None = None
) -> ThinkingLimits:
    """What `over` and then the model's card say of thinking, else what is usual for its family."""
    architecture = str(meta.get("general.architecture", ""))
    usual = next(
        (n for family, n in _MAX_TOKENS.items() if architecture.startswith(family)), 16_000
    )
    return ThinkingLimits.of_card(overlaid(read_card(meta, folder) or {}, over or {}), usual)


def _names(meta: Mapping[str, Any]) -> Iterator[str]:
    name, base = meta.get("general.name"), meta.get("general.basename")
    size = meta.get("general.size_label")
    if isinstance(name, str):
        yield stem(name)
    if isinstance(base, str):
        if isinstance(size, str):
            yield stem(f"{base}-{size}")
        yield stem(base)
    if isinstance(architecture := meta.get("general.architecture"), str):
        yield stem(architecture)
