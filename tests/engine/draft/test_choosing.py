"""Which drafter a plan asks for."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.config import EngineConfig, Spec
from engine.devices import Device
from engine.draft import choosing, mtp, shipped
from engine.errors import UnsupportedModel
from engine.gguf import read_header
from engine.loading import load_model
from engine.placement import estimate, resolve
from tests.engine.draft.drafts import draft_path, target_path
from tests.engine.gguf_writer import model

GB = 1 << 30
CPU = Device("cpu", "cpu", "Processor", 32 * GB, 20 * GB, 4)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path | None]]:
    """What drafters are opened, by module and file."""
    seen: list[tuple[str, Path | None]] = []

    def opened(kind: str, target: object, path: Path | None) -> SimpleNamespace:
        seen.append((kind, path))
        return SimpleNamespace(name=kind)

    monkeypatch.setattr(choosing, "open_drafter", opened)
    return seen


def choose(path: Path, n_nextn: int = 0, **changes: Any) -> str | None:
    header = read_header(path)
    plan = resolve(EngineConfig(**changes), header, [CPU])
    target: Any = SimpleNamespace(
        plan=plan,
        cfg=SimpleNamespace(n_nextn=n_nextn),
        ops=SimpleNamespace(accept=None),
        file=header,
    )
    drafter = choosing.choose(target).drafter
    return drafter.name if drafter else None


@pytest.fixture
def model_with_a_draft(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model for which a draft comes with Lucebox."""
    draft = draft_path("dflash_qwen3", "full", "lucebox-a", tmp_path)
    path = target_path("dflash_qwen3")
    meta = read_header(path).meta
    made_for = {
        "architecture": "qwen3",
        "basename": meta.get("general.basename"),
        "size_label": meta.get("general.size_label"),
        "n_embd": 128,
        "n_layers": 6,
        "n_vocab": 512,
    }
    draft.with_suffix(".json").write_text(json.dumps({"made_for": made_for}))
    monkeypatch.setattr(shipped, "FOLDER", tmp_path)
    return path


def test_what_comes_with_lucebox_is_taken_unless_the_user_has_it_otherwise(
    model_with_a_draft: Path, asked: list[Any]
) -> None:
    path = model_with_a_draft
    assert choose(path) == choose(path, n_nextn=1) == choose(path, spec=Spec.TREE) == "dflash"
    assert [file.name for _, file in asked] == ["dflash_qwen3-full.lucebox-a.gguf"] * 3
    assert choose(path, draft="ngram") == "ngram"
    asked.clear()
    assert choose(path, spec=Spec.OFF) is None and asked == []


def test_what_comes_with_lucebox_counts_in_the_estimate(model_with_a_draft: Path) -> None:
    header = read_header(model_with_a_draft)

    def draft_bytes(**changes: Any) -> int:
        parts = estimate(header, EngineConfig(**changes), [CPU]).parts
        return sum(part.bytes for part in parts if part.kind == "draft")

    assert draft_bytes() > 0
    assert draft_bytes(spec=Spec.OFF) == draft_bytes(draft="ngram") == 0


def test_a_draft_of_ours_that_fails_never_fails_the_load(
    model_with_a_draft: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    header = read_header(model_with_a_draft)

    def opened(kind: str, target: object, path: Path | None) -> SimpleNamespace:
        if kind == "dflash":
            raise UnsupportedModel("It was made for 3 layers.")
        return SimpleNamespace(name=kind)

    monkeypatch.setattr(choosing, "open_drafter", opened)
    target: Any = SimpleNamespace(
        plan=resolve(EngineConfig(), header, [CPU]),
        cfg=SimpleNamespace(),
        ops=SimpleNamespace(accept=None),
        file=header,
    )
    chosen = choosing.choose(target)
    assert chosen.drafter is not None and chosen.drafter.name == "ngram" and chosen.file is None
    assert "dflash_qwen3-full.lucebox-a" in chosen.note
    assert "It was made for 3 layers." in chosen.note


def test_a_drafter_is_chosen_by_name(tmp_path: Path, asked: list[Any]) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(model(name="Big"))
    assert choose(path) == "ngram"
    assert choose(path, n_nextn=1) == "mtp"
    assert choose(path, n_nextn=1, draft="ngram") == "ngram"
    assert choose(path, draft="mtp") == "mtp"
    assert [file for _, file in asked] == [None] * 4
    assert choose(path, draft="mtp", spec=Spec.OFF) is None


def test_a_model_without_draft_layers_refuses_mtp(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(model(name="Big"))
    target: Any = SimpleNamespace(cfg=SimpleNamespace(n_nextn=0), file=read_header(path))
    with pytest.raises(UnsupportedModel, match=r"m\.gguf has 0 draft layers .* ngram"):
        mtp.open_drafter(target, None)


def test_a_file_is_not_taken_for_a_name(
    tmp_path: Path, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(model(name="Big"))
    draft = tmp_path / "ngram"
    draft.write_bytes(model(name="Small"))
    monkeypatch.chdir(tmp_path)
    assert choose(path, draft="./ngram") == "model"
    assert asked == [("model", draft)]


def test_pages_of_another_draft_of_ours_are_not_taken_for_this_ones(
    model_with_a_draft: Path, tmp_path: Path
) -> None:
    def fingerprint() -> bytes:
        loaded = load_model(model_with_a_draft, EngineConfig(threads=1, max_ctx=256))
        assert loaded.speculation is not None and loaded.speculation.drafter.name == "dflash"
        loaded.close()
        return loaded.scheduler.cache.fingerprint

    first = fingerprint()
    assert fingerprint() == first
    (ours,) = tmp_path.glob("*.gguf")
    draft_path("dflash_qwen3", "swa", "lucebox-a", tmp_path).replace(ours)
    assert fingerprint() != first
