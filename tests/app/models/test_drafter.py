"""What guesses for a model is chosen in its details, and a draft's file is offered for the loaded one."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.controller import EngineController
from app.models.details import Details
from app.models.drafter import DrafterChoice
from app.models.library import Item, Library
from app.page import Services
from app.settings import Settings
from engine.config import AppSettings, EngineConfig, Spec
from tests.app.fake_engine import FakeEngine


@pytest.fixture
def scanned(qtbot: QtBot, library: Library, tree: Path) -> Library:
    library.refresh()
    qtbot.waitUntil(lambda: library.scanned)
    return library


@pytest.fixture
def details(qtbot: QtBot, services: Services, scanned: Library) -> Details:
    made = Details(services)
    qtbot.addWidget(made)
    made.show()
    return made


def item(library: Library, name: str) -> Item:
    return next(i for i in library.items if i.entry.path.name == name)


def data(choice: DrafterChoice) -> list[str]:
    return [choice.choice.itemData(i) for i in range(choice.choice.count())]


def test_a_model_has_the_list_of_what_may_guess(
    qtbot: QtBot, services: Services, details: Details, scanned: Library
) -> None:
    alpha = item(scanned, "Alpha-7B-Q4_K_M.gguf")
    draft = str(item(scanned, "dflash.gguf").entry.path)
    details.show_item(alpha)
    choice = details.findChild(DrafterChoice)
    assert data(choice) == ["", "ngram", draft, "off"]
    assert choice.choice.accessibleName() and choice.choice.accessibleDescription()
    choice.choice.setCurrentIndex(2)
    assert services.settings.config_of(alpha.entry.path).draft == draft
    details.show_item(alpha, again=True)
    choice = details.findChildren(DrafterChoice)[-1]
    assert choice.choice.currentData() == draft
    choice.choice.setCurrentIndex(0)
    assert services.settings.value.drafts == {}


def test_a_shipped_draft_is_offered(
    qtbot: QtBot, details: Details, scanned: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = Path("/ours") / f"Small.{'Very-Long-' * 9}DFlash.gguf"
    monkeypatch.setattr("engine.draft.shipped.shipped_draft", lambda header: ours)
    details.show_item(item(scanned, "Alpha-7B-Q4_K_M.gguf"))
    choice = details.findChild(DrafterChoice)
    qtbot.waitUntil(lambda: str(ours) in data(choice))
    assert choice.minimumSizeHint().width() < 300
    assert choice.choice.currentData() == "", "nothing is chosen for the user"


def test_choices_become_the_config_of_one_model(tmp_path: Path) -> None:
    model, draft = tmp_path / "m.gguf", tmp_path / "d.gguf"
    draft.write_bytes(b"GGUF")
    settings = Settings(AppSettings(engine={"spec": "off"}))
    assert settings.config_of(model).spec is Spec.OFF
    settings.choose_draft(model, str(draft))
    found = settings.config_of(model)
    assert (found.draft, found.spec) == (str(draft), Spec.AUTO)
    assert settings.config_of(tmp_path / "other").draft is None
    draft.unlink()
    assert settings.config_of(model).draft is None, "a file that is gone must not stop the load"
    settings.choose_draft(model, "ngram")
    assert settings.config_of(model).draft == "ngram"
    settings = Settings()
    settings.choose_draft(model, "off")
    assert settings.config_of(model).spec is Spec.OFF


def use(details: Details) -> QPushButton | None:
    found = [b for b in details.findChildren(QPushButton) if b.text().startswith("Use it with")]
    return found[-1] if found else None


def loaded(qtbot: QtBot, controller: EngineController, path: Path) -> None:
    with qtbot.waitSignal(controller.model_changed):
        controller.load(path)


def test_a_draft_is_used_with_the_loaded_model(
    qtbot: QtBot, services: Services, controller: EngineController, fake: FakeEngine,
    details: Details, scanned: Library,
) -> None:  # fmt: skip
    alpha = item(scanned, "Alpha-7B-Q4_K_M.gguf").entry.path
    draft = item(scanned, "dflash.gguf")
    details.show_item(draft)
    assert use(details) is None, "without a model there is nothing to use it with"
    loaded(qtbot, controller, alpha)
    button = use(details)
    assert button is not None
    configs: list[EngineConfig | None] = []
    load = controller.load

    def seen(path: Path, config: EngineConfig | None = None) -> None:
        configs.append(config)
        load(path, config)

    controller.load = seen  # type: ignore[method-assign]
    button.click()
    qtbot.waitUntil(lambda: services.settings.value.drafts == {str(alpha): str(draft.entry.path)})
    assert configs[0] is not None and configs[0].draft == str(draft.entry.path)


def test_a_draft_that_is_refused_is_not_kept(
    qtbot: QtBot, services: Services, controller: EngineController, fake: FakeEngine,
    details: Details, scanned: Library,
) -> None:  # fmt: skip
    alpha = item(scanned, "Alpha-7B-Q4_K_M.gguf").entry.path
    details.show_item(item(scanned, "dflash.gguf"))
    loaded(qtbot, controller, alpha)
    fake.load_error = RuntimeError("its vocabulary has 3 tokens, the target's 5")
    button = use(details)
    assert button is not None
    with qtbot.waitSignal(controller.load_failed):
        button.click()
    fake.load_error = None
    qtbot.wait(10)
    loaded(qtbot, controller, alpha)
    assert services.settings.value.drafts == {}
