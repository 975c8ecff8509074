"""Sampling settings of the loaded model: its own defaults, and what the user changed of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from engine.config import AppSettings, SamplingParams, settings_of
from engine.errors import BadRequest
from engine.types import ModelInfo

NAMES = tuple(settings_of(SamplingParams))


def overrides(settings: AppSettings, model: ModelInfo) -> dict[str, Any]:
    """What the user changed for this model; names and values that are not usable are left out."""
    kept: dict[str, Any] = {}
    for name, value in settings.sampling.get(str(model.path), {}).items():
        if name in NAMES and (value is None or isinstance(value, (int, float))):
            try:
                change: dict[str, Any] = {name: value}
                dataclasses.replace(model.sampling, **change)
            except BadRequest:
                continue
            kept[name] = value
    return kept


def effective(settings: AppSettings, model: ModelInfo) -> SamplingParams:
    """The settings that an answer of this model is made with."""
    return dataclasses.replace(model.sampling, **overrides(settings, model))


def changed(
    settings: AppSettings, model: ModelInfo, values: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """`AppSettings.sampling` with this model's values; values equal to its defaults are not kept."""
    kept = {n: v for n, v in values.items() if v != getattr(model.sampling, n)}
    others = {path: v for path, v in settings.sampling.items() if path != str(model.path)}
    return {**others, str(model.path): kept} if kept else others
