"""Services with a fake engine, and folders of models as users have them."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import shiboken6
from pytestqt.qtbot import QtBot

from app.controller import EngineController
from app.models import library as library_module
from app.models.library import Library
from app.page import Services
from app.settings import Settings
from app.theme import theme
from app.widgets.toast import Said, text_of
from engine.config import AppSettings
from engine.devices import Device
from tests.app.conftest import PATIENCE_MS
from tests.app.fake_engine import FakeEngine
from tests.engine.gguf_writer import model

CASES = Path(__file__).parents[2] / "fixtures" / "gguf"
SOUND = CASES / "h01_valid_v3_align64.gguf"
PROJECTOR = CASES / "h13_looks_like_chat_model-f16.gguf"
BROKEN = CASES / "h02_truncated_data.gguf"


def put(path: Path, data: bytes | Path) -> Path:
    """Write a file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(data, Path):
        shutil.copyfile(data, path)
    else:
        path.write_bytes(data)
    return path


@dataclass
class Seen:
    """What the services were asked to show."""

    pages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    toasts: list[str] = field(default_factory=list)
    undos: list[Any] = field(default_factory=list)
    status: list[str] = field(default_factory=list)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without models of any program."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setattr(Path, "home", lambda: folder)
    for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / ".cache"))
    return folder


@pytest.fixture
def models_dir(tmp_path: Path) -> Path:
    """Our own models folder, empty."""
    folder = tmp_path / "models"
    folder.mkdir()
    return folder


@pytest.fixture
def tree(models_dir: Path, home: Path) -> Path:
    """Two chat models, a projector, a draft and a damaged file, in two programs' folders."""
    put(models_dir / "Alpha-7B-Q4_K_M.gguf", model("llama", "Alpha-7B"))
    put(models_dir / "deep" / "er" / "mmproj-vision-f16.gguf", PROJECTOR)
    put(models_dir / "drafts" / "dflash.gguf", model("dflash", "Swift"))
    put(models_dir / "broken.gguf", BROKEN)
    put(home / ".lmstudio" / "models" / "pub" / "x" / "Beta.gguf", model("qwen3", "Beta"))
    return models_dir


@pytest.fixture
def fake() -> FakeEngine:
    """The engine behind `controller`."""
    return FakeEngine()


@pytest.fixture
def controller(qtbot: QtBot, fake: FakeEngine) -> Iterator[EngineController]:
    """A controller that is shut down in the end."""
    made = EngineController(lambda: fake)
    yield made
    assert made.shutdown(PATIENCE_MS)


@pytest.fixture
def seen() -> Seen:
    """What `services` was asked to show."""
    return Seen()


@pytest.fixture
def services(
    qtbot: QtBot,
    controller: EngineController,
    tmp_path: Path,
    home: Path,
    models_dir: Path,
    seen: Seen,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Services]:
    """Services whose calls are noted in `seen`, on a PC whose free memory does not change."""
    theme()
    pc = Device("cpu", "cpu", "Test PC", 16 << 30, 12 << 30, 4)
    monkeypatch.setattr(library_module, "_devices", lambda: (pc,))
    settings = Settings(AppSettings(models_dir=str(models_dir)))
    made = Services(controller, settings, tmp_path / "chats.sqlite")
    made.library = Library(settings, tmp_path / "models.json")
    made.navigate = lambda page, **kw: seen.pages.append((page, kw))
    made.toast = lambda said: seen.toasts.append(text_of(said))
    made.status = lambda text, icon="": seen.status.append(text)

    def toast_undo(said: Said, undo: Any) -> None:
        seen.toasts.append(text_of(said))
        seen.undos.append(undo)

    made.toast_undo = toast_undo
    yield made
    made.library.close()
    # Not left to the garbage collector: it may run on the engine's thread, where timers must not end.
    for owned in (made.library, settings):
        shiboken6.delete(owned)


@pytest.fixture
def library(services: Services) -> Library:
    """The library of `services`."""
    made: Library = services.library
    return made


def scanned(qtbot: QtBot, library: Library) -> None:
    """Look through all folders, to the end."""
    with qtbot.waitSignal(library.scan_finished):
        library.refresh()
