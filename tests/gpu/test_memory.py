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
from engine.types import Request
from tests.engine.listener import Listener
from tests.engine.oracle import model_path
from tests.gpu.test_engine import GREEDY


@pytest.fixture
def models(request: pytest.FixtureRequest) -> Path:
    folder = request.config.getoption("--models", None)
    if folder is None:
        pytest.skip("no folder of models was given")
    return Path(folder)


@pytest.mark.parametrize(
    ("name", "draft"),
    (("qwen3-8b-q4", ""), ("qwen35-0.8b-q8", ""), ("qwen35-27b", "D"), ("qwen35moe-35b-a3b", "")),
)
def test_a_model_takes_what_was_predicted(
    engine: Engine, whole_card: Any, models: Path, name: str, draft: str
) -> None:
    path, guesser = models / f"{name}.gguf", models / f"{draft}.gguf"
    if not path.exists() or (draft and not guesser.exists()):
        pytest.skip(f"{path} is not there")
    whole_card.setDevice(0)
    engine.load(model_path("llama"), EngineConfig(device="cuda:0", max_ctx=256))
    engine.unload()  # what the driver keeps from here on is not the model's
    config = EngineConfig(
        device="cuda:0", max_ctx=8192, max_concurrency=1,
        spec=Spec.CHAIN if draft else Spec.OFF, draft=str(guesser) if draft else None,
    )  # fmt: skip
    predicted = estimate(read_header(path), config, devices())
    before, _ = whole_card.memGetInfo()
    engine.load(path, config)
    listener = Listener()
    ids = np.random.default_rng(1).integers(10, 200, 3000).tolist()
    engine.submit(Request(ids=ids, sampling=GREEDY), listener)
    listener.end()
    took = before - whole_card.memGetInfo()[0]
    owned = {part.kind: part.bytes for part in engine.metrics().memory}
    print(f"\n{name}: {took / 2**20:,.0f} MiB, predicted {predicted.total / 2**20:,.0f}")
    for part in predicted.parts:
        if part.kind in ("model", "draft", "kv", "work"):
            held = owned.get(part.kind, 0) / 2**20
            print(f"  {part.title:<14}{held:>10,.0f} MiB, predicted {part.bytes / 2**20:>10,.0f}")
    assert took == pytest.approx(predicted.total, rel=0.03)
