"""The draft doctor: drafts that are wrong on purpose are told apart."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.cli import main
from engine.config import EngineConfig, Precision
from engine.draft.check import LOW, Report, check_draft, judge, show
from engine.errors import UnsupportedModel
from tests.engine.draft.drafts import draft_path, expected, target_path

FAMILY = "dflash_qwen3"


def check(
    tmp_path: Path, change: Callable[[dict[str, Any]], Any] | None = None, kind: str = "full"
) -> Report:
    home = shutil.copytree(draft_path(FAMILY, kind, "hf", tmp_path), tmp_path / "draft")
    if change is not None:
        config = json.loads((home / "config.json").read_text())
        change(config)
        (home / "config.json").write_text(json.dumps(config))
    return examined(home)


def examined(home: Path) -> Report:
    ids = expected(FAMILY, "full")["prompt"].tolist()
    config = EngineConfig(precision=Precision.EXACT, threads=2)
    return check_draft(target_path(FAMILY), home, config, ids, tokens=40)


def test_layers_counted_from_one(tmp_path: Path) -> None:
    found = check(tmp_path, lambda c: c["dflash_config"].update(target_layer_ids=[2, 3, 5]))
    assert found.cause == "layers" and "1, 2, 4" in found.advice
    assert found.tried["layers: 1, 2, 4"] == max(found.tried.values()) > 1


def test_one_layer_too_late_is_seen_where_acceptance_hardly_tells(tmp_path: Path) -> None:
    layers = [2, 3, 5]  # of the sliding draft, whose acceptance stays as it is
    found = check(tmp_path, lambda c: c["dflash_config"].update(target_layer_ids=layers), "swa")
    assert found.cause == "layers" and "1, 2, 4" in found.advice
    assert found.tried["layers: 1, 2, 4"] == max(found.tried.values()) > 1.05


@pytest.mark.parametrize("kind", ["full", "swa"])
def test_nothing_is_found_wrong_with_a_sound_draft(kind: str, tmp_path: Path) -> None:
    assert check(tmp_path, None, kind).cause in ("", "template")


def test_a_window_that_is_too_short(tmp_path: Path) -> None:
    found = check(tmp_path, lambda c: c.update(sliding_window=2), "swa")
    assert found.cause == "window" and "the whole context" in found.advice


def test_a_wrong_rope_base(tmp_path: Path) -> None:
    found = check(tmp_path, lambda c: c.update(rope_theta=10.0))
    assert found.cause == "rope" and "10000" in found.advice


def test_a_wrong_mask_token(tmp_path: Path) -> None:
    found = check(tmp_path, lambda c: c["dflash_config"].update(mask_token_id=17))
    assert found.cause == "mask" and "505" in found.advice


def test_a_mask_beside_the_right_one_is_seen_where_acceptance_is_not_hopeless(
    tmp_path: Path,
) -> None:
    found = check(tmp_path, lambda c: c["dflash_config"].update(mask_token_id=506), "swa")
    assert found.acceptance_length > LOW
    assert found.cause == "mask" and "505" in found.advice


def test_another_template(tmp_path: Path) -> None:
    # The toy language knows no chats: the draft is good in it, and bad behind any template.
    found = check(tmp_path)
    assert found.texts["ids"] > 5 > found.texts["chat"]
    assert found.cause == "template"


def test_a_draft_of_another_model(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    from engine.draft.safetensors_file import read_tensors

    home = shutil.copytree(draft_path(FAMILY, "full", "hf", tmp_path), tmp_path / "draft")
    rng = np.random.default_rng(3)
    weights = {n: t.dequantize() for n, t in read_tensors(home / "model.safetensors").items()}
    # Alike in everything but what was learnt.
    mixed = {n: rng.permuted(w.reshape(-1)).reshape(w.shape) for n, w in weights.items()}
    save_file(mixed, home / "model.safetensors")
    found = examined(home)
    assert found.cause == "pairing" and found.acceptance_length < 1.3
    assert {name.partition(":")[0] for name in found.tried} >= {"layers", "rope", "mask"}


def test_a_draft_that_cannot_fit_is_refused(tmp_path: Path) -> None:
    other = draft_path("dflash_qwen35", "full", "hf", tmp_path)
    with pytest.raises(UnsupportedModel, match="layers"):
        examined(other)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ids = tmp_path / "ids.json"
    ids.write_text(json.dumps(expected(FAMILY, "full")["prompt"].tolist()))
    draft = draft_path(FAMILY, "full", "lucebox-a", tmp_path)
    arguments = ["draft-check", str(target_path(FAMILY)), str(draft), "--ids", str(ids), "-q"]
    assert main([*arguments, "--tokens", "16", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["settings"]["capture"] == [1, 2, 4] and found["settings"]["mask"] == 505
    assert len(found["settings"]["output_rms"]) == 3 and len(found["by_position"]) == 7
    assert main([*arguments, "--tokens", "3"]) == 2


def test_findings_in_words() -> None:
    # A change that makes a hopeless draft a little less so is not its cause.
    assert judge({"chat": 1.2, "plain": 1.1}, 1.2, ("rope: 10000", 1.3))[0] == "pairing"
    assert judge({"chat": 1.1}, 1.1, ("layers: 1, 2", 2.0))[0] == "layers"
    assert judge({"chat": 1.2, "plain": 2.5}, 2.5, None)[0] == "template"
    assert judge({"chat": 2.0, "plain": 4.5}, 4.5, None)[0] == ""
    cause, advice = judge({"chat": 2.0, "plain": 4.5}, 4.5, ("layers: 1, 2", 4.4))
    assert cause == "layers" and "likelier (4.40 tokens a pass, and 4.50 as it is)" in advice
    settings = {
        "capture": [1, 2], "output_rms": [1.0, 2.0], "rope_base": 1e4, "eps": 1e-6, "norm_rms": 1.0,
        "mask": 5, "mask_text": "<m>", "block": 8, "windows": (0, 0),
    }  # fmt: skip
    text = show(Report(2.5, (0.5,), {"chat": 2.5}, settings, (), "", "Fine.", {}))
    assert "2.50 tokens a pass" in text and "layers 1, 2" in text and "sound" in text
