"""The demo model, a real one, against transformers in float32 on the same dequantised weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import perplexity
from engine.config import EngineConfig, Precision
from engine.loading import load_model
from engine.types import Finished
from tests.engine.engines import greedy, running, submit


@pytest.fixture(scope="module")
def reference(fixtures: Path) -> dict[str, Any]:
    """`perplexity` of text.txt in windows of 512, and `greedy` continuations of 64 tokens."""
    data: dict[str, Any] = json.loads((fixtures / "smollm2" / "reference.json").read_text())
    return data


def test_exact_precision_writes_the_greedy_tokens(
    demo_model: Path, reference: dict[str, Any]
) -> None:
    cases = reference["greedy"]
    config = EngineConfig(
        precision=Precision.EXACT, threads=2, max_ctx=256, max_concurrency=len(cases)
    )
    with running(demo_model, config) as engine:
        listeners = [submit(engine, case["ids"], greedy(64)) for case in cases]
        for case, listener in zip(cases, listeners, strict=True):
            assert isinstance(listener.end(), Finished)
            assert listener.tokens == case["tokens"]


@pytest.mark.parametrize(("precision", "tolerance"), [("exact", 1e-3), ("fast", 1e-2)])
def test_perplexity_equals_transformers(
    demo_model: Path,
    fixtures: Path,
    reference: dict[str, Any],
    precision: str,
    tolerance: float,
) -> None:
    config = EngineConfig(precision=Precision(precision), threads=2, max_ctx=512)
    model = load_model(demo_model, config)
    text = (fixtures / "smollm2" / "text.txt").read_text(encoding="utf-8")
    found = perplexity.measure(model, text, window=512)
    model.close()
    assert found.value == pytest.approx(reference["perplexity"], rel=tolerance)
