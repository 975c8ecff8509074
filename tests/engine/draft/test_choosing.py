"""Which drafter a plan asks for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from engine.config import EngineConfig, Spec
from engine.devices import Device
from engine.draft import choosing, mtp
from engine.errors import UnsupportedModel
from engine.gguf import read_header
from engine.placement import resolve
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
        plan=plan, cfg=SimpleNamespace(n_nextn=n_nextn), ops=SimpleNamespace(accept=None)
    )
    drafter, _ = choosing.choose(target)
    return drafter.name if drafter else None


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
