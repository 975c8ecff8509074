"""The first screen without a model."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.controller import EngineController
from app.first_run import FirstRunPage
from app.models.library import Library
from app.page import Services
from engine import demo
from engine.errors import EngineError, LoadCancelled
from tests.app.models.conftest import Seen, put
from tests.engine.gguf_writer import model


@pytest.fixture
def page(qtbot: QtBot, services: Services, library: Library) -> FirstRunPage:
    made = FirstRunPage(services)
    qtbot.addWidget(made)
    made.resize(1000, 800)
    with qtbot.waitSignal(library.scan_finished):
        made.show()
    made.focus_first()
    return made


def texts(widget: QWidget) -> str:
    return "\n".join(x.text() for x in widget.findChildren(QLabel) if x.isVisible())


def test_enter_installs_the_demo_and_chats(
    qtbot: QtBot,
    page: FirstRunPage,
    models_dir: Path,
    seen: Seen,
    controller: EngineController,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = threading.Event()

    def install(progress, cancel, folder):  # type: ignore[no-untyped-def]
        assert folder == models_dir
        progress(3 << 20, 94 << 20)
        gate.wait(10)
        return put(folder / "Smol.gguf", model("llama", "Smol"))

    monkeypatch.setattr(demo, "install", install)
    qtbot.keyClick(page.install, Qt.Key.Key_Return)
    qtbot.waitUntil(lambda: "3 MB of 94 MB" in texts(page))
    assert not page.install.isEnabled() and page.install.toolTip()
    focus = page.window().focusWidget()
    assert isinstance(focus, QPushButton) and focus.text() == "Cancel", "Enter opens no file dialog"
    card = page.install.parentWidget()
    assert card is not None and page.panel._progress.width() == card.width()
    gate.set()
    qtbot.waitUntil(lambda: seen.pages == [("chat", {})])
    assert controller.model is not None and controller.model.path.name == "Smol.gguf"


def test_enter_presses_the_button_that_has_the_keyboard(
    qtbot: QtBot, page: FirstRunPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressed: list[str] = []
    monkeypatch.setattr(page, "_on_install", lambda: pressed.append("install"))
    monkeypatch.setattr(
        QFileDialog, "getOpenFileNames", lambda *a: pressed.append("file") or ([], "")
    )
    page.use_file.setFocus()
    qtbot.keyClick(page.use_file, Qt.Key.Key_Return)
    assert pressed == ["file"]


def test_an_installation_can_be_stopped(
    qtbot: QtBot, page: FirstRunPage, monkeypatch: pytest.MonkeyPatch, seen: Seen
) -> None:
    def install(progress, cancel, folder):  # type: ignore[no-untyped-def]
        assert cancel.wait(10)
        raise LoadCancelled("stopped")

    monkeypatch.setattr(demo, "install", install)
    page.focus_first()
    qtbot.keyClick(page.install, Qt.Key.Key_Return)
    cancel = next(b for b in page.panel.findChildren(QPushButton) if b.text() == "Cancel")
    qtbot.mouseClick(cancel, Qt.MouseButton.LeftButton)
    assert page.install.isEnabled() and not page.panel.isVisible()
    assert page.window().focusWidget() is page.install
    qtbot.wait(50)
    assert page.panel.card is None and seen.pages == []


def test_a_failed_installation_says_why(
    qtbot: QtBot, page: FirstRunPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(progress, cancel, folder):  # type: ignore[no-untyped-def]
        raise EngineError("The demo model needs 300 MB and the disk has 20 MB free.")

    monkeypatch.setattr(demo, "install", install)
    qtbot.mouseClick(page.install, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: page.panel.card is not None)
    assert "300 MB" in texts(page) and page.install.isEnabled()


def test_the_hardware_line_is_true(qtbot: QtBot, page: FirstRunPage) -> None:
    from app.widgets import gigabytes
    from engine.devices import cpu

    qtbot.waitUntil(lambda: "memory" in page.hardware.text() and "free" in page.hardware.text())
    assert gigabytes(cpu().memory_total) in page.hardware.text()
    assert page.hardware.accessibleDescription() == page.hardware.text()


def test_models_of_other_programs_are_offered(
    qtbot: QtBot,
    services: Services,
    library: Library,
    tree: Path,
    seen: Seen,
    controller: EngineController,
) -> None:
    for n in range(3):
        put(tree / f"More {n}.gguf", model("llama", f"More {n}"))
    page = FirstRunPage(services)
    qtbot.addWidget(page)
    with qtbot.waitSignal(library.scan_finished):
        page.show()

    def offered() -> list[QPushButton]:
        buttons = page.findChildren(QPushButton)
        return [b for b in buttons if b.text() == "Chat now" and b.isVisible()]

    names = ["Chat now with Alpha-7B", "Chat now with Beta", "Chat now with More 0"]
    qtbot.waitUntil(lambda: [b.accessibleName() for b in offered()] == names)
    chats = offered()
    assert "broken" not in texts(page) and "mmproj" not in texts(page)
    more = next(b for b in page.findChildren(QPushButton) if "more" in b.text())
    assert more.text().startswith("2")
    qtbot.mouseClick(more, Qt.MouseButton.LeftButton)
    assert seen.pages == [("models", {})]
    qtbot.mouseClick(chats[1], Qt.MouseButton.LeftButton)  # the list may be made anew behind a load
    qtbot.waitUntil(lambda: seen.pages[-1] == ("chat", {}))
    assert controller.model is not None and controller.model.path.name == "Beta.gguf"


def test_without_any_model_nothing_is_listed(page: FirstRunPage) -> None:
    assert "Found on this PC" not in texts(page)
    assert "Install and chat" in [b.text() for b in page.findChildren(QPushButton)]


def test_one_accent_button(page: FirstRunPage) -> None:
    main = [b for b in page.findChildren(QPushButton) if b.property("kind") == "main"]
    assert main == [page.install]
