"""The settings page, its forms, and what is remembered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSpinBox,
    QComboBox,
    QFileDialog,
    QLabel,
    QPlainTextEdit,
    QPushButton,
)
from pytestqt.qtbot import QtBot

import app.settings_page as settings_page_module
from app.forms import Field, choice_words
from app.page import Services
from app.settings import (
    Settings,
    load_settings,
)
from app.settings_page import RUN, SettingsPage
from app.widgets import Note, Switch
from engine import paths, settings_store
from engine.config import (
    AppSettings,
    DiskCacheConfig,
    EngineConfig,
    Precision,
    SamplingParams,
    disk_cache_config,
    settings_of,
)
from engine.errors import BadRequest
from tests.app.conftest import whole


@pytest.fixture
def page(qtbot: QtBot, services: Services) -> Iterator[SettingsPage]:
    made = whole(SettingsPage(services))
    qtbot.addWidget(made)
    made.resize(900, 800)
    made.show()
    yield made


def field(page: SettingsPage, name: str) -> Field:
    return next(f for f in page.findChildren(Field) if f.name == name)


def value(page: SettingsPage) -> AppSettings:
    return page.services.settings.value


def test_every_choice_of_a_list_can_be_made(page: SettingsPage) -> None:
    for name in ("theme", "language"):
        combo = field(page, name).findChild(QComboBox)
        for i in range(combo.count()):
            combo.setCurrentIndex(i)
            assert getattr(value(page), name) == combo.itemData(i)


def test_a_change_from_elsewhere_is_shown(page: SettingsPage) -> None:
    page.services.settings.update(theme="dark", load_last_model=False, system_prompt="Be brief.")
    assert field(page, "theme").findChild(QComboBox).currentData() == "dark"
    assert not field(page, "load_last_model").findChild(Switch).isChecked()
    assert page.findChild(QPlainTextEdit).toPlainText() == "Be brief."


def test_the_system_prompt_is_saved_a_moment_later(qtbot: QtBot, page: SettingsPage) -> None:
    page.findChild(QPlainTextEdit).setPlainText("Answer in rhyme.")
    qtbot.waitUntil(lambda: value(page).system_prompt == "Answer in rhyme.")


def test_the_system_prompt_is_saved_when_the_window_closes_at_once(page: SettingsPage) -> None:
    page.findChild(QPlainTextEdit).setPlainText("In haste.")
    assert page.can_close()
    assert value(page).system_prompt == "In haste."


def test_how_models_run_is_remembered(page: SettingsPage) -> None:
    spin = field(page, "threads").findChild(QAbstractSpinBox)
    assert spin.text() == "Automatic"
    spin.setValue(3)
    field(page, "precision").findChild(QComboBox).setCurrentIndex(1)
    assert page.services.settings.engine_config() == EngineConfig(
        threads=3, precision=Precision.EXACT
    )
    spin.setValue(spin.minimum())
    assert page.services.settings.engine_config().threads is None


def test_what_conversations_may_take_on_disk_is_remembered(
    page: SettingsPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    field(page, "disk_cache_limit").findChild(QAbstractSpinBox).setValue(1000)
    assert disk_cache_config(value(page)) == DiskCacheConfig(disk_cache_limit=1000)
    assert page._disk_folder.text() == str(paths.conversations_dir())
    monkeypatch.setattr(QFileDialog, "getExistingDirectory", lambda *_: str(tmp_path))
    page._change_disk_folder()
    assert (
        disk_cache_config(value(page)).disk_cache_dir == page._disk_folder.text() == str(tmp_path)
    )
    page.services.settings.update(cache={})
    assert page._disk_folder.text() == str(paths.conversations_dir())
    assert field(page, "disk_cache_limit").findChild(QAbstractSpinBox).value() == 20_480


def test_a_number_between_automatic_and_the_lowest_becomes_the_lowest(page: SettingsPage) -> None:
    spin = field(page, "max_ctx").findChild(QAbstractSpinBox)
    spin.setValue(5)
    assert page.services.settings.engine_config().max_ctx == 64 and spin.value() == 64


def test_a_models_folder_that_cannot_be_written_is_refused_before_anything_changes(
    page: SettingsPage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """H-GUI-02, second step; the refusal is stubbed because root may write everywhere."""
    folder = tmp_path / "locked"
    folder.mkdir()
    monkeypatch.setattr(settings_page_module, "why_not_writable", lambda path: "Permission denied")
    before = value(page)
    page.use_models_folder(folder)
    assert value(page) == before
    note = next(n for n in page.findChildren(Note) if n.isVisible())
    assert "Permission denied" in note.text and str(folder) in note.text


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_what_is_no_folder_is_refused(page: SettingsPage, tmp_path: Path, kind: str) -> None:
    path = tmp_path / kind
    if kind == "file":
        path.write_text("")
    before = value(page)
    page.use_models_folder(path)
    assert value(page) == before and not list(tmp_path.glob("*/*.part"))


def test_a_new_models_folder_keeps_the_former_one_in_sight(
    page: SettingsPage, tmp_path: Path
) -> None:
    former = paths.models_dir(None)
    former.mkdir(parents=True)
    page.use_models_folder(tmp_path)
    assert value(page).models_dir == str(tmp_path)
    assert value(page).extra_model_dirs == [str(former)]
    page.use_models_folder(former)
    assert value(page).extra_model_dirs == [str(tmp_path)]
    assert list(tmp_path.iterdir()), "the folder holds what it held"


def test_other_folders_can_be_taken_away(page: SettingsPage) -> None:
    page.services.settings.update(extra_model_dirs=["/a", "/b"])
    remove = next(
        b for b in page.findChildren(settings_page_module.IconButton) if b.property("path") == "/a"
    )
    remove.click()
    assert value(page).extra_model_dirs == ["/b"]


def test_reset_can_be_undone(page: SettingsPage) -> None:
    undos = []
    page.services.toast_undo = lambda text, undo: undos.append(undo)
    page.services.settings.update(theme="dark", text_size=150, last_model="/m.gguf")
    page.services.settings.keep_engine_config(EngineConfig(threads=7))
    reset = next(b for b in page.findChildren(QPushButton) if b.text() == "Reset all")
    reset.click()
    assert value(page) == AppSettings(last_model="/m.gguf"), "the last model is no setting"
    assert page.services.settings.engine_config() == EngineConfig()
    undos[0]()
    assert value(page).theme == "dark" and value(page).text_size == 150
    assert page.services.settings.engine_config().threads == 7


def test_diagnostics_are_copied_without_what_the_user_wrote(page: SettingsPage) -> None:
    page.services.settings.update(system_prompt="my secret")
    copy = next(b for b in page.findChildren(QPushButton) if b.text() == "Copy diagnostics")
    copy.click()
    text = QGuiApplication.clipboard().text()
    assert "PySide6" in text and "theme" in text and "my secret" not in text


def test_where_files_live_is_shown(page: SettingsPage) -> None:
    shown = {w.text() for w in page.findChildren(QLabel)}
    assert {str(paths.data_dir()), str(paths.log_dir()), str(paths.settings_file())} <= shown


def test_the_wheel_changes_no_value(qtbot: QtBot, page: SettingsPage) -> None:
    spin = field(page, "max_concurrency").findChild(QAbstractSpinBox)
    assert spin.focusPolicy() != Qt.FocusPolicy.NoFocus
    from PySide6.QtCore import QPoint, QPointF
    from PySide6.QtGui import QWheelEvent
    from PySide6.QtWidgets import QApplication

    wheel = QWheelEvent(
        QPointF(5, 5), QPointF(5, 5), QPoint(0, 120), QPoint(0, 120), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    before = spin.value()
    QApplication.sendEvent(spin, wheel)
    assert spin.value() == before


@pytest.mark.parametrize("cls", [AppSettings, EngineConfig, SamplingParams])
def test_every_declared_setting_can_be_a_form_row(qtbot: QtBot, cls: type) -> None:
    usual = cls()
    for name, info in settings_of(cls).items():
        now = getattr(usual, name)
        if isinstance(now, (list, dict)):
            continue
        row = Field(cls, name, now)
        qtbot.addWidget(row)
        assert info.title in [w.text() for w in row.findChildren(QLabel)]
        told: list[object] = []
        row.edited.connect(lambda n, v, told=told: told.append(v))
        row.set_value(now)
        assert told == [], "showing a value is not a choice"


def test_the_page_covers_what_can_run(page: SettingsPage) -> None:
    names = {f.name for f in page.findChildren(Field)}
    assert set(RUN) <= names
    assert set(settings_of(EngineConfig)) - set(RUN) == {
        "device",
        "draft",
        "draft_residency",  # in Tune
        "chat_template_file",
    }


def test_settings_are_saved_and_come_back(qtbot: QtBot) -> None:
    settings, problem = load_settings()
    assert problem is None
    settings.update(theme="dark")
    qtbot.waitUntil(lambda: paths.settings_file().exists())
    assert json.loads(paths.settings_file().read_text(encoding="utf-8"))["theme"] == "dark"
    assert load_settings()[0].value.theme == "dark"


def test_a_late_save_stays_with_the_file_that_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings, own = load_settings()[0], paths.settings_file()
    settings.update(theme="dark")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "another"))
    settings.flush()
    assert own.exists() and not paths.settings_file().exists()


def test_a_value_out_of_bounds_is_refused() -> None:
    settings = Settings()
    with pytest.raises(BadRequest):
        settings.update(text_size=1000)
    assert settings.value == AppSettings()


def test_settings_that_cannot_be_saved_are_told(
    qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(value: AppSettings, path: Path) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(settings_store, "save", fail)
    settings = Settings()
    with qtbot.waitSignal(settings.save_failed) as failed:
        settings.update(theme="dark")
    assert "Read-only" in failed.args[0]
    assert settings.value.theme == "dark", "the change holds until the window closes"


def test_every_choice_has_words() -> None:
    for cls in (AppSettings, EngineConfig):
        for info in settings_of(cls).values():
            assert [c for c in info.choices if choice_words(c) == c] == []


def test_a_button_in_a_row_says_what_it_does(page: SettingsPage) -> None:
    named = {b.accessibleName() or b.text() for b in page.findChildren(QAbstractButton)}
    assert {"Export all chats…", "Copy diagnostics"} <= named
