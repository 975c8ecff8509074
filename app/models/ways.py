"""What could be done about a model that does not fit, each with what it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from app.models.words import rate_text, translate
from app.report import Way
from app.widgets import gigabytes
from engine.config import EngineConfig, Precision

if TYPE_CHECKING:
    from app.models.library import Item, Library
    from engine.placement import Estimate

MOST = 3
_LEAST_CONTEXT = 512

Load = Callable[[Path, EngineConfig], None]


def ways_out(
    library: Library, item: Item, estimate: Estimate, config: EngineConfig, load: Load
) -> tuple[Way, ...]:
    """Ways to use a model that does not fit, least loss first: other settings, then a smaller model."""
    ways: list[Way] = []
    for title, note, changed in _settings(config, estimate):
        fits = library.estimate_of(item.entry, changed, (estimate.device,))
        if fits is None or fits.verdict == "too large" or len(ways) == MOST:
            continue
        ways.append(
            Way(title, note, _needs(fits), _speed(item), _bound(load, item.entry.path, changed))
        )
        if changed.max_ctx != config.max_ctx:
            break  # A still smaller context only loses more.
    if not ways:
        ways = [
            Way(
                f"{other.title} {other.entry.quant or ''}".strip(),
                translate("models", "A smaller model on this PC, {n} tokens of context").format(
                    n=f"{other.estimate.context:,}"
                ),
                _needs(other.estimate),
                _speed(other),
                _bound(load, other.entry.path, config),
            )
            for other in _smaller(library, item)
            if other.estimate is not None
        ]
    return tuple(ways)


def _settings(config: EngineConfig, estimate: Estimate) -> Iterator[tuple[str, str, EngineConfig]]:
    """Title, what is lost, and settings; each step keeps what the former gave up."""
    context = estimate.context
    if config.precision is Precision.EXACT:
        config = replace(config, precision=Precision.FAST)
        yield (
            translate("models", "Compute in 8 bits"),
            translate("models", "Precision fast: smaller and quicker, answers hardly differ"),
            config,
        )
    if config.max_concurrency > 1:
        config = replace(config, max_concurrency=1)
        yield (
            translate("models", "One request at a time"),
            translate("models", "Others wait; the context stays at {n} tokens").format(
                n=f"{context:,}"
            ),
            replace(config, max_ctx=config.max_ctx or context),
        )
    half = context // 2
    while half >= _LEAST_CONTEXT:
        yield (
            translate("models", "Context {n}").format(n=f"{half:,}"),
            translate("models", "Instead of {n} tokens").format(n=f"{context:,}"),
            replace(config, max_ctx=half),
        )
        half //= 2


def _smaller(library: Library, item: Item) -> list[Item]:
    """The largest other chat models that fit."""
    found = [
        i
        for i in library.chat_models()
        if i.estimate is not None
        and i.estimate.verdict != "too large"
        and i.entry.path != item.entry.path
    ]
    return sorted(found, key=lambda i: i.entry.size, reverse=True)[:MOST]


def _needs(estimate: Estimate) -> str:
    return translate("models", "needs {size}").format(size=gigabytes(estimate.total))


def _speed(item: Item) -> str:
    rate = item.record.decode_rate
    if not rate:
        return ""
    return translate("models", "{n} tok/s, measured").format(n=rate_text(rate))


def _bound(load: Load, path: Path, config: EngineConfig) -> Callable[[], None]:
    return lambda: load(path, config)
