"""What settings cost or bring, in words with this model's own numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.models.words import translate
from app.widgets import gigabytes
from engine.config import EngineConfig

if TYPE_CHECKING:
    from engine.placement import Estimate

_SHARE = 0.25  # of a context, which each further request gets where there is room


def cost_text(name: str, config: EngineConfig, estimate: Estimate) -> str:
    """What a setting of `EngineConfig` takes or gives where a model runs so; "" for nothing to say."""
    sizes = {part.kind: part.bytes for part in estimate.parts}
    context = max(estimate.context, 1)
    one = sizes.get("kv", 0) / (1 + _SHARE * (config.max_concurrency - 1))
    match name:
        case "max_ctx":
            text = translate(
                "tune", "{size} of KV cache for {n} tokens; each 1,024 more take {more}."
            )
            return text.format(
                size=gigabytes(one), n=f"{context:,}", more=gigabytes(one / context * 1024)
            )
        case "max_concurrency":
            text = translate("tune", "Each request more takes up to {size} of KV cache.")
            return text.format(size=gigabytes(_SHARE * one))
        case "prefill_chunk":
            text = translate(
                "tune",
                "{size} of work space. Larger: long prompts are read faster, others wait longer.",
            )
            return text.format(size=gigabytes(sizes.get("work", 0)))
        case "precision":
            text = translate("tune", "{size} of weights. Fast is quicker; answers hardly differ.")
            return text.format(size=gigabytes(sizes.get("model", 0)))
        case "threads":
            text = translate(
                "tune", "This PC has {n} cores; more threads than these are no faster."
            )
            cores = estimate.device.cores
            return text.format(n=cores) if estimate.device.kind == "cpu" and cores else ""
        case "device":
            return translate("tune", "It would run on {name}.").format(name=estimate.device.name)
        case "budget":
            return translate(
                "tune",
                "More guesses make a pass dearer; automatic weighs that by what passes cost here.",
            )
    return ""
