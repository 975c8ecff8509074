"""What real shapes take of a card, against the sum that is predicted: needs files, see `--models`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.config import EngineConfig, Spec
from engine.devices import devices
from engine.engine import Engine
from engine.gguf import read_header
from engine.placement import estimate
from engine.readings import Watcher
from engine.types import Request
from tests.engine.listener import Listener
from tests.engine.oracle import model_path
from tests.gpu.test_engine import GREEDY

MIB = 1 << 20
OWNERS = ("model", "draft", "kv", "work")


@pytest.fixture
def models(request: pytest.FixtureRequest) -> Path:
    folder = request.config.getoption("--models", None)
    if folder is None:
        pytest.skip("no folder of models was given")
    return Path(folder)


def held(runtime: Any) -> int:
    """Bytes of the card that this process holds; where the driver does not tell, that all do."""
    card = next(iter(Watcher().read()), None)
    if card is not None and card.ours:
        return card.ours
    free, total = runtime.memGetInfo()
    return int(total - free)


@pytest.mark.parametrize(
    ("name", "draft"),
    (
        ("qwen3-0.6b-q8", ""),
        ("qwen3-8b-q4", ""),
        ("qwen35-0.8b-q8", ""),
        ("qwen35-0.8b-bf16", ""),
        ("qwen35-27b", "D"),
        ("qwen35moe-35b-a3b", ""),
    ),
)
def test_a_model_takes_what_was_predicted(
    engine: Engine, whole_card: Any, models: Path, name: str, draft: str
) -> None:
    path, guesser = models / f"{name}.gguf", models / f"{draft}.gguf"
    if not path.exists() or (draft and not guesser.exists()):
        pytest.skip(f"{path} is not there")
    whole_card.setDevice(0)
    whole_card.free(0)
    before = held(whole_card)
    engine.load(model_path("llama"), EngineConfig(device="cuda:0", max_ctx=256))
    engine.unload()
    begun = held(whole_card)  # what the driver keeps from here on is not the model's
    config = EngineConfig(
        device="cuda:0", max_ctx=8192, max_concurrency=1,
        spec=Spec.CHAIN if draft else Spec.OFF, draft=str(guesser) if draft else None,
    )  # fmt: skip
    predicted = estimate(read_header(path), config, devices())
    engine.load(path, config)
    listener = Listener()
    ids = np.random.default_rng(1).integers(10, 200, 3000).tolist()
    engine.submit(Request(ids=ids, sampling=GREEDY), listener)
    listener.end()
    took = held(whole_card) - begun
    owned = {part.kind: part.bytes for part in engine.metrics().memory}
    parts = {part.kind: part.bytes for part in predicted.parts if part.kind in OWNERS}
    print(f"\n{name}: {took / MIB:,.0f} MiB, predicted {predicted.total / MIB:,.0f}")
    for kind in OWNERS:
        is_held, foreseen = owned.get(kind, 0) / MIB, parts.get(kind, 0) / MIB
        print(f"  {kind:<8}{is_held:>10,.1f} MiB, predicted {foreseen:>10,.1f}")
    beyond = took - sum(owned.get(kind, 0) for kind in OWNERS)
    driver = f"context {before / MIB:,.0f}, what a first model leaves {(begun - before) / MIB:,.0f}"
    print(f"  code, graphs and what allocations are rounded by {beyond / MIB:,.1f} MiB; {driver}")
    assert took == pytest.approx(predicted.total, rel=0.03)
