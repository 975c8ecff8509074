"""The models page as its user meets it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.controller import EngineController
from app.models.library import Library
from app.models.loading import LoadPanel
from app.models.opener import opener_of
from app.models.page import ModelsPage
from app.page import Services
from app.theme import theme
from app.widgets import ErrorCard, MemoryBar
from engine.entry import inspect
from engine.errors import ModelFileError, OutOfMemory
from engine.types import LoadProgress
from tests.app.fake_engine import FakeEngine
from tests.app.models.conftest import PROJECTOR, Seen, put, scanned
from tests.engine.gguf_writer import model


@pytest.fixture
def page(qtbot: QtBot, services: Services, library: Library, tree: Path) -> ModelsPage:
    made = ModelsPage(services)
    qtbot.addWidget(made)
    qtbot.addWidget(made.inspector())
    made.resize(1100, 800)
    with qtbot.waitSignal(library.scan_finished):
        made.show()
    made.focus_first()
    return made


def texts(widget: QWidget) -> str:
    return "\n".join(label.text() for label in widget.findChildren(QLabel))


def alpha(tree: Path) -> Path:
    return tree / "Alpha-7B-Q4_K_M.gguf"


def test_the_first_visit_scans_and_chooses_the_first_model(page: ModelsPage, tree: Path) -> None:
    assert page.view.current_item().entry.path == alpha(tree)  # type: ignore[union-attr]
    assert page.details.windowTitle() == "Alpha-7B"


def test_enter_loads_and_goes_to_the_chat(
    qtbot: QtBot, page: ModelsPage, controller: EngineController, seen: Seen, tree: Path
) -> None:
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: seen.pages == [("chat", {})])
    assert controller.model is not None and controller.model.path == alpha(tree)


def test_who_went_on_to_another_page_stays_there(
    qtbot: QtBot, page: ModelsPage, controller: EngineController, seen: Seen, services: Services
) -> None:
    opener_of(services).began.connect(lambda path: setattr(services, "page", "settings"))
    with qtbot.waitSignal(controller.model_changed):
        qtbot.keyClick(page.view, Qt.Key.Key_Return)
    assert seen.pages == []


def test_a_loaded_model_is_not_loaded_again(
    qtbot: QtBot, page: ModelsPage, controller: EngineController, seen: Seen
) -> None:
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: len(seen.pages) == 1)
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    assert controller.state == "ready" and len(seen.pages) == 2


def test_a_model_that_was_given_at_the_start_is_listed(
    qtbot: QtBot, page: ModelsPage, controller: EngineController, library: Library, tmp_path: Path
) -> None:
    file = put(tmp_path / "elsewhere" / "given.gguf", model("llama", "Given"))
    controller.load(file)
    qtbot.waitUntil(lambda: library.item(file) is not None)
    assert str(file) in page.services.settings.value.extra_model_dirs


def test_a_helper_is_not_a_chat_model(
    qtbot: QtBot, page: ModelsPage, controller: EngineController, seen: Seen, tree: Path
) -> None:
    page.view.select(tree / "drafts" / "dflash.gguf")
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    assert controller.loading is None and "not a chat model" in seen.toasts[0]
    assert not page.details.findChildren(QPushButton)[0].isVisible()


def test_a_file_with_a_problem_says_it_instead_of_loading(
    qtbot: QtBot, page: ModelsPage, controller: EngineController, tree: Path
) -> None:
    page.view.select(tree / "broken.gguf")
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    assert page.panel.card is not None and "broken.gguf" in texts(page.panel.card)
    assert controller.loading is None


def test_what_goes_with_a_model_is_named(
    qtbot: QtBot, page: ModelsPage, library: Library, tree: Path
) -> None:
    put(tree / "pair" / "Vision-8B-Q4_K_M.gguf", model("llama", "Vision-8B"))
    put(tree / "pair" / "mmproj-Vision-8B-f16.gguf", PROJECTOR)
    scanned(qtbot, library)
    page.open(path=tree / "pair" / "Vision-8B-Q4_K_M.gguf")
    assert "mmproj-Vision-8B-f16.gguf\nVision projector" in texts(page.details)


def test_arrows_pass_over_the_heads(qtbot: QtBot, page: ModelsPage, tree: Path) -> None:
    seen = []
    for _ in range(6):
        seen.append(page.view.current_item().title)  # type: ignore[union-attr]
        qtbot.keyClick(page.view, Qt.Key.Key_Down)
    assert seen[:2] == ["Alpha-7B", "Beta"] and seen[-1] == "broken"


def test_f2_renames(qtbot: QtBot, page: ModelsPage, library: Library, tree: Path) -> None:
    qtbot.keyClick(page.view, Qt.Key.Key_F2)
    editor = page.view.findChild(QLineEdit)
    assert editor is not None and editor.text() == "Alpha-7B"
    editor.setText("Aleph")
    qtbot.keyClick(editor, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: library.item(alpha(tree)).title == "Aleph")  # type: ignore[union-attr]
    assert page.details.windowTitle() == "Aleph"


def test_delete_can_be_undone(
    qtbot: QtBot, page: ModelsPage, library: Library, seen: Seen, tree: Path
) -> None:
    qtbot.keyClick(page.view, Qt.Key.Key_Delete)
    qtbot.waitUntil(lambda: bool(seen.undos))
    assert not alpha(tree).exists() and "Alpha-7B" in seen.toasts[0]
    seen.undos[0]()
    qtbot.waitUntil(lambda: library.item(alpha(tree)) is not None)
    assert alpha(tree).exists()


def test_backspace_deletes_nothing(qtbot: QtBot, page: ModelsPage, tree: Path) -> None:
    qtbot.keyClick(page.view, Qt.Key.Key_Backspace)
    qtbot.wait(20)
    assert alpha(tree).exists() and page.view.current_item() is not None


def test_filter_and_its_empty_answer(qtbot: QtBot, page: ModelsPage) -> None:
    field = page.findChild(QLineEdit)
    assert field is not None
    qtbot.keyClicks(field, "beta")
    assert [i.title for i in page.view.table.items()] == ["Beta"]
    qtbot.keyClicks(field, "zzz")
    assert "No model matches" in texts(page)


def test_a_file_that_just_came_is_shown_whatever_the_filter_was(
    qtbot: QtBot, page: ModelsPage, library: Library, tmp_path: Path
) -> None:
    field = page.findChild(QLineEdit)
    assert field is not None
    qtbot.keyClicks(field, "beta")
    file = put(tmp_path / "Gamma.gguf", model("llama", "Gamma"))
    library.add([inspect(file)], lambda: page.open(path=file))
    qtbot.waitUntil(lambda: page.details.windowTitle() == "Gamma")
    assert field.text() == "" and page.view.current_item().entry.path == file  # type: ignore[union-attr]


def test_no_model_at_all_has_one_action(
    qtbot: QtBot, services: Services, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = ModelsPage(services)
    qtbot.addWidget(page)
    qtbot.addWidget(page.inspector())
    with qtbot.waitSignal(library.scan_finished):
        page.show()
    offered = [b for b in page.findChildren(QPushButton) if b.text() == "Use a file…"]
    assert len(offered) == 1
    qtbot.waitUntil(offered[0].isVisible)
    assert "No model on this PC yet" in texts(page)


def test_the_addends_sum_up(page: ModelsPage) -> None:
    estimate = page.view.current_item().estimate  # type: ignore[union-attr]
    assert estimate is not None
    assert sum(p.bytes for p in estimate.parts) == estimate.device.memory_total
    bar = page.details.findChild(MemoryBar)
    assert bar is not None and "Model weights" in bar.accessibleName()
    assert f"{estimate.context:,} tokens" in texts(page.details)


def test_speeds_are_measured_or_said_to_be_missing(
    qtbot: QtBot, page: ModelsPage, library: Library, tree: Path
) -> None:
    assert texts(page.details).count("no measurement yet") == 3
    item = page.view.current_item()
    assert item is not None
    library.measured(item.entry.path, item.entry.size, decode_rate=61.25, load_s=2.04)
    qtbot.waitUntil(lambda: "61.2 tok/s" in texts(page.details))
    shown = texts(page.details)
    assert "2.0 s" in shown
    assert shown.count("no measurement yet") == 1


def test_a_damaged_file_says_what_to_do(page: ModelsPage, tree: Path) -> None:
    page.view.select(tree / "broken.gguf")
    shown = texts(page.details)
    assert "broken.gguf" in shown and "again" in shown
    assert not page.details.findChildren(QPushButton)[0].isVisible()


# Loading


def test_progress_with_cancel(
    qtbot: QtBot, page: ModelsPage, controller: EngineController, fake: FakeEngine, seen: Seen
) -> None:
    fake.load_s = 60
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "of 4.0 GB" in texts(page.panel))
    cancel = next(b for b in page.panel.findChildren(QPushButton) if b.text() == "Cancel")
    qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: controller.state == "idle")
    assert not page.panel.isVisible() and page.panel.card is None and seen.pages == []


def test_the_time_that_is_left_is_in_a_fitting_unit(
    qtbot: QtBot, page: ModelsPage, fake: FakeEngine, controller: EngineController
) -> None:
    fake.load_s = 60
    page.view.chat_wanted.emit(page.view.current_item())
    qtbot.waitUntil(lambda: "of 4.0 GB" in texts(page.panel))
    for already, words in ((1, ""), (9, "81 s left"), (300, "45 min left"), (9100, "23 h left")):
        controller.load_progress.emit(LoadProgress("reading", 100 << 20, 1000 << 20))
        page.panel._stage_began = time.monotonic() - already
        page.panel._tick.timeout.emit()
        assert words in texts(page.panel) and ("left" in texts(page.panel)) == bool(words)
    controller.cancel_load()
    qtbot.waitUntil(lambda: controller.loading is None)


def test_compiling_is_told_while_it_lasts(
    qtbot: QtBot, page: ModelsPage, fake: FakeEngine, controller: EngineController
) -> None:
    fake.load_s = 60
    page.view.chat_wanted.emit(page.view.current_item())
    qtbot.waitUntil(lambda: "of 4.0 GB" in texts(page.panel))
    for progress, words in (
        (LoadProgress("preparing", 0, 0), "preparing"),
        (LoadProgress("preparing", 3, 12), "only the first time · 3 of 12 parts"),
    ):
        controller.load_progress.emit(progress)
        assert words in texts(page.panel)
    late = LoadPanel(page.services, opener_of(page.services))
    qtbot.addWidget(late)
    late.resize(800, 80)
    late.show()
    assert "of 4.0 GB" in texts(late), "a panel that comes later knows as much"
    controller.load_progress.emit(LoadProgress("preparing", 0, 0))
    page.panel._stage_began -= 7
    page.panel._tick.timeout.emit()
    assert "only the first time · 7 s" in texts(page.panel)
    controller.cancel_load()
    qtbot.waitUntil(lambda: controller.loading is None)


def test_a_failed_load_shows_a_card_and_keeps_the_former_model(
    qtbot: QtBot, page: ModelsPage, controller: EngineController, fake: FakeEngine, tree: Path
) -> None:
    with qtbot.waitSignal(controller.model_changed):
        controller.load(tree / "Alpha-7B-Q4_K_M.gguf")
    fake.load_error = ModelFileError("Beta.gguf is cut off: found 10 bytes, expected 4,000.")
    page.view.select(page.view.table.items()[1].entry.path)
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: page.panel.card is not None)
    card = page.panel.card
    assert card is not None and card.isVisible()
    assert "found 10 bytes, expected 4,000" in texts(card)
    assert "Alpha-7B-Q4_K_M is still ready" in texts(card)
    assert controller.model is not None and controller.model.path == alpha(tree)
    again = next(b for b in card.findChildren(QPushButton) if b.text() == "Try again")
    qtbot.mouseClick(again, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: controller.model.path.name == "Beta.gguf")  # type: ignore[union-attr]
    assert page.panel.card is None


def test_what_does_not_fit_shows_ways_out_before_anything_is_loaded(
    qtbot: QtBot,
    page: ModelsPage,
    library: Library,
    controller: EngineController,
    monkeypatch: pytest.MonkeyPatch,
    tree: Path,
) -> None:
    from app.models import library as module
    from engine.devices import Device

    device = Device("cpu", "cpu", "Small PC", 1 << 28, 1 << 20, 1)
    monkeypatch.setattr(module, "_devices", lambda: (device,))
    file = put(tree / "Large.gguf", LARGE)
    scanned(qtbot, library)
    page.view.select(file)
    assert page.view.current_item().estimate.verdict == "too large"  # type: ignore[union-attr]
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: page.panel.card is not None)
    card = page.panel.card
    assert isinstance(card, ErrorCard)
    shown = texts(card)
    assert "does not fit" in shown and "Small PC" in shown and "MB" in shown
    assert card.findChild(MemoryBar) is not None
    assert controller.state == "idle"
    anyway = next(b for b in card.findChildren(QPushButton) if b.text() == "Load anyway")
    qtbot.mouseClick(anyway, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: controller.model is not None)


def test_a_card_can_be_closed(
    qtbot: QtBot, page: ModelsPage, fake: FakeEngine, controller: EngineController
) -> None:
    fake.load_error = OutOfMemory("Needs 13.2 GB, 10.9 GB are free.")
    qtbot.keyClick(page.view, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: page.panel.card is not None)
    close = next(b for b in page.panel.card.findChildren(QPushButton) if b.text() == "Close")  # type: ignore[union-attr]
    qtbot.mouseClick(close, Qt.MouseButton.LeftButton)
    assert page.panel.card is None and not page.panel.isVisible()
    assert page.view.hasFocus(), "not what comes first in the window"


# For all


def test_everything_that_can_be_focused_has_a_name(page: ModelsPage) -> None:
    page.details.show()
    for root in (page, page.details):
        for widget in root.findChildren(QWidget):
            if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
                named = widget.accessibleName() or (
                    widget.text() if isinstance(widget, QAbstractButton) else ""
                )
                assert named, f"{type(widget).__name__} {widget.objectName()} has no name"


def test_tab_goes_from_top_to_bottom(qtbot: QtBot, page: ModelsPage) -> None:
    page.activateWindow()
    field = page.findChild(QLineEdit)
    assert field is not None
    order = []
    widget: QWidget | None = field
    while widget is not None and widget is not page.view:
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus and widget.isVisible():
            order.append(widget.mapTo(page, QPoint(0, 0)).x())
        widget = widget.nextInFocusChain()
    assert widget is page.view, "the table comes after the filter"
    assert order == sorted(order), "and before it all goes from left to right"


@pytest.mark.parametrize("width", [560, 700, 900, 1400])
def test_narrow_windows_hide_columns_and_never_scroll_sideways(
    page: ModelsPage, width: int
) -> None:
    page.resize(width, 600)
    assert page.view.horizontalScrollBar().maximum() == 0


def test_the_look_can_change_while_it_is_shown(page: ModelsPage) -> None:
    theme().apply("light")
    light = page.grab().toImage()
    theme().apply("dark")
    assert page.grab().toImage() != light
    theme().apply(text_size=150)
    assert page._top.height() == theme().size("header")


LARGE = model("llama", "Large")
