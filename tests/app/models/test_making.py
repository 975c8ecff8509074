"""A dropped draft is converted for a model with progress and a stop, examined, and used."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QMainWindow
from pytestqt.qtbot import QtBot

from app.drop import DropTarget
from app.models.library import Library
from app.models.maker import Maker
from app.models.making import MakeDraftPage
from app.page import Services
from engine.draft.check import Report
from engine.errors import LoadCancelled
from tests.app.conftest import whole
from tests.app.models.conftest import Seen
from tests.engine.draft.drafts import FIXTURES, target_path

FAMILY = "dflash_qwen3"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "Swift-DFlash"
    shutil.copytree(FIXTURES / FAMILY / "full", folder)
    return folder


@pytest.fixture
def target(qtbot: QtBot, library: Library, models_dir: Path) -> Path:
    """The model of the draft, listed."""
    path = models_dir / "Big.gguf"
    shutil.copy(target_path(FAMILY), path)
    library.refresh()
    qtbot.waitUntil(lambda: library.scanned)
    return path


@pytest.fixture
def page(qtbot: QtBot, services: Services, target: Path, source: Path) -> MakeDraftPage:
    made = MakeDraftPage(services)
    qtbot.addWidget(made)
    whole(made)
    made.show()
    made.open(source=source, target=target)
    qtbot.waitUntil(lambda: made.maker.misfit is not None)
    return made


def test_a_dropped_draft_is_made_and_used(
    qtbot: QtBot, page: MakeDraftPage, services: Services, target: Path, models_dir: Path
) -> None:
    assert page._fits.text() == "They fit together." and page._start.isEnabled()
    page._ticks["f16"].click()
    with qtbot.waitSignal(page.maker.made_all):
        page._start.click()
    assert {p.name for p in page.maker.made.values()} == {
        "Swift-DFlash.F16.gguf",
        "Swift-DFlash.Q8_0.gguf",
    }
    assert page._states["q8_0"].text() == "Written, read back, checked"
    assert page._states["q4_0"].text() == "" and not page._start.isVisibleTo(page)
    page._ticks["q4_0"].click()
    assert page._start.isVisibleTo(page) and page.maker.todo == ["q4_0"]
    qtbot.waitUntil(lambda: services.library.item(page.maker.made["q8_0"]) is not None)
    with qtbot.waitSignal(services.controller.model_changed):
        page._use.click()
    draft = services.settings.config_of(target).draft
    assert draft == str(models_dir / "Swift-DFlash.Q8_0.gguf")


def test_a_draft_for_another_model_is_refused_before_it_is_made(
    qtbot: QtBot, page: MakeDraftPage
) -> None:
    page.open(source=FIXTURES / "dflash_qwen35" / "full")
    qtbot.waitUntil(lambda: bool(page.maker.misfit))
    assert "layers" in page._fits.text() and not page._start.isEnabled()


def test_what_is_no_draft_is_told(qtbot: QtBot, page: MakeDraftPage, tmp_path: Path) -> None:
    page.open(source=tmp_path)
    qtbot.waitUntil(lambda: bool(page.maker.problem))
    assert page._problem.isVisibleTo(page) and not page._start.isEnabled()


def test_making_can_be_cancelled(
    qtbot: QtBot, page: MakeDraftPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def slow(*args: Any) -> None:
        begun.set()
        args[-1].wait(10)
        raise LoadCancelled("stopped")

    monkeypatch.setattr("engine.convert.make.make_draft", slow)
    page._start.click()
    assert begun.wait(5) and page._stop.isVisibleTo(page) and not page._ticks["f16"].isEnabled()
    page._stop.click()
    assert not page.maker.running and page._start.isVisibleTo(page) and not page.maker.problem


def test_the_doctor_tells_what_it_found(
    qtbot: QtBot, page: MakeDraftPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {
        "capture": [1, 2], "output_rms": [1.0, 2.0], "rope_base": 1e4, "eps": 1e-6, "norm_rms": 1.0,
        "mask": 5, "mask_text": "<m>", "block": 8, "windows": (0, 0), "dialect": "x", "causal": (),
    }  # fmt: skip
    report = Report(2.5, (0.6, 0.3), {"chat": 2.5}, settings, ("A guess.",), "", "Fine.", {})
    monkeypatch.setattr("engine.draft.check.check_draft", lambda *args, **kw: report)
    with qtbot.waitSignal(page.doctor.ended):
        page.doctor.begin(Path("m.gguf"), Path("d.gguf"))
    assert page.doctor._summary.text().startswith("2.50 tokens per step; 1: 60")
    assert "sound: Fine." in page.doctor.text()


def test_leaving_the_page_does_not_end_it(services: Services) -> None:
    assert Maker.of(services) is Maker.of(services)


def test_a_dropped_folder_opens_the_page(
    qtbot: QtBot, services: Services, target: Path, source: Path, seen: Seen
) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    DropTarget(window, window, services).open_paths([source])
    qtbot.waitUntil(lambda: ("make_draft", {"source": source}) in seen.pages)
