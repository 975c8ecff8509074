"""Tune stages wishes, tells what they mean, applies and undoes them as one, and measures drafts."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QRadioButton
from pytestqt.qtbot import QtBot

from app.models.library import Library
from app.models.records import Drafted, Record
from app.page import Services
from app.tune.page import TunePage
from app.tune.staging import OFF
from engine.config import EngineConfig, Spec, settings_of
from engine.draft.candidates import Candidate
from engine.errors import BadRequest, EngineError, LoadCancelled
from engine.speedup import Comparison, Pair
from tests.app.conftest import whole
from tests.app.fake_engine import FakeEngine
from tests.app.models.conftest import Seen

DRAFT = Path("/drafts/Swift.Q8_0.gguf").absolute()


@pytest.fixture
def loaded(qtbot: QtBot, services: Services, library: Library, tree: Path) -> Path:
    """A chat model that is listed and loaded."""
    library.refresh()
    qtbot.waitUntil(lambda: library.scanned)
    path = tree / "Alpha-7B-Q4_K_M.gguf"
    with qtbot.waitSignal(services.controller.model_changed):
        services.controller.load(path)
    return path


@pytest.fixture
def page(
    qtbot: QtBot, services: Services, loaded: Path, monkeypatch: pytest.MonkeyPatch
) -> TunePage:
    """The page, with a draft that fits and one that does not."""
    found = (
        Candidate(str(DRAFT), DRAFT, 11 << 20, shipped=True),
        Candidate("ngram"),
        Candidate("/drafts/other.gguf", Path("/drafts/other.gguf"), 5, problem="It has 7 tokens."),
    )
    monkeypatch.setattr("engine.draft.candidates.candidates", lambda target, files: found)
    made = TunePage(services)
    qtbot.addWidget(made)
    whole(made)
    made.resize(900, 900)
    made.show()
    qtbot.waitUntil(lambda: len(made.drafters.values) == 5)
    return made


def radio(page: TunePage, name: str) -> QRadioButton:
    return next(b for b in page.findChildren(QRadioButton) if b.accessibleName().startswith(name))


def apply(qtbot: QtBot, page: TunePage) -> None:
    with qtbot.waitSignal(page.services.controller.model_changed):
        page.before.apply.click()


def test_every_drafter_is_listed_and_one_that_does_not_fit_says_why(page: TunePage) -> None:
    assert page.drafters.values == ["", str(DRAFT), "ngram", "/drafts/other.gguf", OFF]
    assert radio(page, "Automatic").isChecked()
    assert radio(page, "Swift").accessibleDescription().startswith("comes with Lucebox")
    refused = radio(page, "other")
    assert not refused.isEnabled() and "It has 7 tokens." in refused.accessibleDescription()


def test_the_list_follows_what_is_found(
    qtbot: QtBot, page: TunePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = (Candidate("ngram"), Candidate("/drafts/new.gguf", Path("/drafts/new.gguf"), 5))
    monkeypatch.setattr("engine.draft.candidates.candidates", lambda target, files: found)
    page.drafters.look()
    with qtbot.waitSignal(page.drafters.listed):
        pass
    assert page.drafters.values == ["", "ngram", "/drafts/new.gguf", OFF]

    def shown() -> list[QRadioButton]:
        return [b for b in page.drafters.findChildren(QRadioButton) if b.isVisible()]

    qtbot.waitUntil(lambda: len(shown()) == 4)
    assert radio(page, "new") in shown()


def test_a_wish_is_told_and_changes_nothing_before_it_is_applied(
    qtbot: QtBot, page: TunePage, services: Services
) -> None:
    radio(page, "What the text repeats").click()
    page.staging.set("max_ctx", 4096)
    assert [(c.before, c.after) for c in page.staging.changes()] == [
        ("automatic", "4,096"),
        ("automatic", "What the text repeats"),
    ]
    assert page.before.apply.isEnabled()
    assert services.settings.value.drafts == {} and services.settings.value.engine == {}
    page.before.revert.click()
    assert page.staging.changes() == [] and not page.before.apply.isEnabled()
    assert radio(page, "Automatic").isChecked()


def test_apply_loads_the_model_keeps_the_wishes_and_can_be_undone(
    qtbot: QtBot, page: TunePage, services: Services, loaded: Path, seen: Seen
) -> None:
    page.staging.set("threads", 3)
    page.staging.set_drafter(OFF)
    apply(qtbot, page)
    assert services.controller.config == EngineConfig(threads=3, spec=Spec.OFF)
    assert services.settings.config_of(loaded) == EngineConfig(threads=3, spec=Spec.OFF)
    assert page.staging.changes() == []
    with qtbot.waitSignal(services.controller.model_changed):
        seen.undos[-1]()
    assert services.settings.config_of(loaded) == services.controller.config == EngineConfig()


def test_a_load_that_fails_keeps_nothing(
    qtbot: QtBot, page: TunePage, services: Services, fake: FakeEngine
) -> None:
    fake.load_error = EngineError("No memory.")
    page.staging.set("max_ctx", 4096)
    with qtbot.waitSignal(services.controller.load_failed):
        page.before.apply.click()
    qtbot.waitUntil(lambda: page.before.apply.isEnabled())
    assert services.settings.value.engine == {}
    assert len(page.staging.changes()) == 1, "the wish stays to be changed"


def test_a_value_out_of_bounds_is_refused(page: TunePage) -> None:
    with pytest.raises(BadRequest):
        page.staging.set("max_ctx", 3)
    assert page.staging.changes() == []


def test_every_setting_of_the_engine_can_be_tuned(page: TunePage) -> None:
    """But the template, which is a file of the model's; drafter, shape and device have rows of their own."""
    shown = {*page._fields, "draft", "spec", "device", "chat_template_file"}
    assert shown == set(settings_of(EngineConfig))


def test_costs_are_told_with_the_models_numbers(qtbot: QtBot, page: TunePage) -> None:
    page.staging.set("max_ctx", 2048)
    qtbot.waitUntil(lambda: "2,048" in page._costs["max_ctx"].text())
    assert "KV cache" in page._costs["max_ctx"].text()


def test_presets_are_saved_chosen_and_deleted(page: TunePage, services: Services) -> None:
    presets = page.presets
    page.staging.set("threads", 2)
    presets.save("Quiet")
    assert services.settings.value.presets == {"Quiet": {"threads": 2}}
    page.staging.revert()
    presets._choice.setCurrentIndex(presets._choice.findData("Quiet"))
    assert page.staging.config.threads == 2
    presets._remove.click()
    assert services.settings.value.presets == {}


FOUND = Comparison(
    "dflash",
    (Pair("code", 10.0, 30.0, 3.5, True), Pair("chat", 10.0, 12.0, 1.5, True)),
    Pair("all", 10.0, 20.0, 2.5, True),
    False,
    (),
)


def test_try_it_shows_both_speeds_and_remembers_them(
    qtbot: QtBot, page: TunePage, services: Services, loaded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.speedup.compare", lambda *args: FOUND)
    with qtbot.waitSignal(page.trying.measured):
        page.trying.begin.click()
    model = services.controller.model
    assert model is not None
    record = services.library.records.get(loaded, model.file_bytes)
    assert record.drafters[""].speedup == 2.0
    assert Record.from_json({"drafters": {"": {"off": 1, "on": "x", "day": "d"}}}) == Record()
    assert page.before._faster.text() == "2.00× the speed"
    assert [c.text() for c in page.trying._cells[-1]] == ["All", "10.0", "20.0", "2.50", "2.00×"]
    assert isinstance(record.drafters[""], Drafted)


def test_measuring_can_be_stopped(
    qtbot: QtBot, page: TunePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def slow(engine: Any, tokens: int, say: Any, cancel: threading.Event) -> None:
        begun.set()
        cancel.wait(10)
        raise LoadCancelled("stopped")

    monkeypatch.setattr("engine.speedup.compare", slow)
    page.trying.begin.click()
    assert begun.wait(5) and page.trying.running
    page.trying._stop.click()
    assert not page.trying.running and page.trying.begin.isVisibleTo(page)
    qtbot.wait(50)
    assert not page.trying._note.isVisibleTo(page)


def test_nothing_is_measured_while_a_draft_is_examined(
    qtbot: QtBot, page: TunePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Event()

    def slow(*args: Any, cancel: threading.Event, **kw: Any) -> None:
        begun.set()
        cancel.wait(60)
        raise LoadCancelled("stopped")

    def measured(engine: Any, tokens: int, say: Any, cancel: threading.Event) -> None:
        cancel.wait(60)
        raise LoadCancelled("stopped")

    monkeypatch.setattr("engine.draft.check.check_draft", slow)
    monkeypatch.setattr("engine.speedup.compare", measured)
    page.trying.start()
    page._examine.click()
    qtbot.waitUntil(begun.is_set)
    assert page.doctor.running and not page.trying.running
    assert not page.trying.begin.isEnabled() and "examined" in page.trying.begin.toolTip()
    page.trying.start()
    assert not page.trying.running
    page.doctor.stop()
    assert page.trying.begin.isEnabled()


def test_without_a_model_there_is_one_thing_to_do(qtbot: QtBot, services: Services) -> None:
    made = TunePage(services)
    qtbot.addWidget(made)
    whole(made)
    assert made._middle.currentIndex() == 1
    assert not made.trying.begin.isEnabled() and made.trying.begin.toolTip()
