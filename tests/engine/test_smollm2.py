"""The demo model, a real one, against transformers in float32 on the same dequantised weights."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine import perplexity
from engine.config import EngineConfig, Precision, SamplingParams
from engine.engine import Engine
from engine.loading import load_model
from engine.types import Finished, Request
from tests.engine.listener import Listener


@pytest.fixture(scope="module")
def reference(fixtures: Path) -> dict[str, Any]:
    """`perplexity` of text.txt in windows of 512, and `greedy` continuations of 64 tokens."""
    data: dict[str, Any] = json.loads((fixtures / "smollm2" / "reference.json").read_text())
    return data


def test_exact_precision_writes_the_greedy_tokens(
    demo_model: Path, reference: dict[str, Any]
) -> None:
    cases = reference["greedy"]
    engine = Engine()
    engine.start()
    config = EngineConfig(
        precision=Precision.EXACT, threads=2, max_ctx=256, max_concurrency=len(cases)
    )
    engine.load(demo_model, config)
    listeners = [Listener() for _ in cases]
    sampling = SamplingParams(temperature=0, max_tokens=64, ignore_eos=True)
    for case, listener in zip(cases, listeners, strict=True):
        engine.submit(Request(ids=case["ids"], sampling=sampling), listener)
    for case, listener in zip(cases, listeners, strict=True):
        assert isinstance(listener.end(), Finished)
        assert listener.tokens == case["tokens"]
    assert engine.close()


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
