"""Sampling defaults: the file's own word, then the card's, then ours."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cards import read_card, sampling_defaults, stem
from engine.config import SamplingParams
from engine.paths import resources_dir


def test_names_become_file_names() -> None:
    assert stem(" Qwen3.6 27B_(Instruct)!") == "qwen3.6-27b-instruct"
    assert "/" not in stem("../../etc/passwd")


@pytest.mark.parametrize(
    "card", sorted((resources_dir() / "cards").glob("*.json")), ids=lambda p: p.stem
)
def test_every_card_is_complete_and_in_bounds(card: Path) -> None:
    data = json.loads(card.read_text(encoding="utf-8"))
    assert {"name", "source", "verified_at", "max_tokens"} <= set(data)
    assert card.stem == stem(card.stem)
    SamplingParams(**data["sampling"])


def test_a_card_is_found_by_name_base_name_or_architecture(tmp_path: Path) -> None:
    for name in ("my-model", "base-7b", "base", "arch"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"name": name}))
    meta = {
        "general.name": "My Model",
        "general.basename": "base",
        "general.size_label": "7B",
        "general.architecture": "arch",
    }
    for key, expected in (
        ("general.name", "my-model"),
        ("general.size_label", "base-7b"),
        ("general.basename", "base"),
        ("general.architecture", "arch"),
    ):
        card = read_card(meta, tmp_path)
        assert card is not None and card["name"] == expected
        del meta[key]
    assert read_card({}, tmp_path) is None


def test_the_file_wins_over_the_card_and_bad_values_are_left_out() -> None:
    meta = {
        "general.architecture": "qwen3",
        "general.sampling.temp": 0.25,
        "general.sampling.top_p": 7.0,
        "general.sampling.min_p": "much",
    }
    params = sampling_defaults(meta)
    assert params.temperature == 0.25
    assert (params.top_k, params.top_p) == (20, 0.95)
    assert sampling_defaults({}) == SamplingParams()
