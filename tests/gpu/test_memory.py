"""What real shapes take of a card, against the sum that is predicted: needs files, see `--models`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from engine.engine import Engine
from tests.bench.memory import measure


@pytest.fixture
def models(request: pytest.FixtureRequest) -> Path:
    folder = request.config.getoption("--models", None)
    if folder is None:
        pytest.skip("no folder of models was given")
    return Path(folder)


@pytest.mark.parametrize(
    ("name", "draft"),
    (
        ("qwen3-0.6b-q8", ""),
        ("qwen3-8b-q4", ""),
        ("qwen35-0.8b-q8", ""),
        ("qwen35-0.8b-bf16", ""),
        ("qwen35-27b", "qwen35-27b.draft"),
        ("qwen35moe-35b-a3b", ""),
    ),
)
def test_a_model_takes_what_was_predicted(
    engine: Engine, whole_card: Any, models: Path, name: str, draft: str
) -> None:
    path = models / f"{name}.gguf"
    guesser = models / f"{draft}.gguf" if draft else None
    if missing := [p for p in (path, guesser) if p and not p.exists()]:
        pytest.skip(f"{missing[0]} is not there")
    held = measure(engine, path, guesser, whole_card)
    print(f"\n{name}: {held.text()}")
    assert held.off < 0.03
