"""The drafts that come with Lucebox."""

from __future__ import annotations

import json

import pytest

from engine import demo
from engine.draft.files import open_draft
from engine.draft.shipped import FOLDER, shipped_draft
from engine.gguf import read_header
from engine.ops.base import Shape
from tests.engine.draft.drafts import target_path

MOST_BYTES = 12_000_000


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.gguf")), ids=lambda p: p.stem)
def test_a_shipped_draft_fits_what_its_card_says(path) -> None:  # type: ignore[no-untyped-def]
    card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    made_for = card["made_for"]
    assert card["file"] == path.name and card["licence"] and card["measured"]
    assert path.stat().st_size < MOST_BYTES
    draft = open_draft(path)
    assert draft.config.warnings == ()
    shape = Shape(made_for["n_layers"], made_for["n_embd"], made_for["n_vocab"], 9, 3, 64)
    assert draft.config.fitted(shape, 1e5).warnings == ()


def test_it_is_found_for_its_model_alone() -> None:
    assert shipped_draft(read_header(target_path("dflash_qwen3"))) is None
    if (model := demo.path()) is not None:
        found = shipped_draft(read_header(model))
        assert found is not None and found.name == "SmolLM2-135M-Instruct.DFlash.Q8_0.gguf"
