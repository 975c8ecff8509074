"""The model picker."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction
from pytestqt.qtbot import QtBot

from app.chat.header import ChatHeader, ModelMenu
from app.page import Services
from engine.types import ModelInfo


class StubLibrary(QObject):
    """Finds its models when it is told to."""

    scan_finished = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.scanned = self.scanning = False
        self.items: list[Any] = []
        self.opened: list[Path] = []
        self.opener = SimpleNamespace(open=self.opened.append)

    def chat_models(self) -> list[Any]:
        return self.items

    def refresh(self) -> None:
        self.scanning = True

    def find(self, *names: str) -> None:
        self.items = [
            SimpleNamespace(
                title=n, entry=SimpleNamespace(path=Path(f"/m/{n}.gguf"), quant="Q4_0", size=2**30)
            )
            for n in names
        ]
        self.scanning, self.scanned = False, True
        self.scan_finished.emit()


def texts(menu: ModelMenu) -> list[str]:
    return [a.text().split()[0] for a in menu.actions() if not a.isSeparator()]


def test_models_appear_in_the_open_list(qtbot: QtBot, services: Services, load: Any) -> None:
    library = StubLibrary()
    services.library = library
    header = ChatHeader(services)
    qtbot.addWidget(header)
    header.show()
    header.pick()
    (menu,) = header.findChildren(ModelMenu)
    assert texts(menu) == ["Looking", "All"]
    library.find("tiny", "other")
    assert texts(menu) == ["tiny", "other", "All"]
    action: QAction = menu.actions()[1]
    action.trigger()
    assert library.opened == [Path("/m/other.gguf")]
    menu.close()
    qtbot.waitUntil(lambda: not header.findChildren(ModelMenu))
    library.find("tiny")


def test_the_loaded_model_is_shown_and_ticked(qtbot: QtBot, services: Services, load: Any) -> None:
    load()
    library = StubLibrary()
    model: ModelInfo | None = services.controller.model
    assert model is not None
    library.find("tiny")
    library.items[0].entry.path = model.path
    services.library = library
    header = ChatHeader(services)
    qtbot.addWidget(header)
    assert "tiny" in header.picker.accessibleName()
    menu = header.menu()
    assert menu.actions()[0].isChecked()
    with qtbot.waitSignal(services.controller.model_changed):
        header.eject.click()
    assert header.eject.isHidden()
    assert "Choose" in header.picker.accessibleName()
