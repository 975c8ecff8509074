"""Folders full of models, and a user without any, for tests of the library."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import stores
from engine.config import AppSettings
from engine.entry import Entry
from engine.library import scan

CASES = Path(__file__).parents[1] / "fixtures" / "gguf"
SOUND = CASES / "h01_valid_v3_align64.gguf"
PROJECTOR = CASES / "h13_looks_like_chat_model-f16.gguf"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without models of any program."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setattr(Path, "home", lambda: folder)
    monkeypatch.setattr(stores, "_OLLAMA_SERVICE", ())
    for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / ".cache"))
    return folder


def put(path: Path, data: bytes | Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.read_bytes() if isinstance(data, Path) else data)
    return path


def found(settings: AppSettings) -> dict[str, Entry]:
    """The last report of each path, by file name; no name is used twice in these tests."""
    entries: dict[str, Entry] = {}
    scan(settings, lambda entry: entries.__setitem__(entry.path.name, entry))
    return entries


def only(root: Path, **extra: list[str]) -> AppSettings:
    return AppSettings(models_dir=str(root), **extra)  # type: ignore[arg-type]
