"""One line on what this PC has; its values appear one by one, in places that are kept for them."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.models.library import Library
from app.theme import theme
from app.widgets import ElidedLabel, gigabytes

if TYPE_CHECKING:
    from engine.devices import Device

# Room in px at the usual text size for the longest usual value, so that nothing moves when it comes.
_PLACES = {"devices": 176, "ram": 150, "disk": 124, "gpu": 198}
_NUMBERS = ("ram", "disk")  # Names give way first.


class HardwareLine(QWidget):
    """Processor, memory, free disk, and the graphics card if there is one."""

    def __init__(self, library: Library, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._library = library
        self._begun = False
        self._places: dict[str, QWidget] = {}
        self._icons: dict[str, QLabel] = {}
        self._words: dict[str, QLabel] = {}
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(theme().space(4))
        for name, width in _PLACES.items():
            self._places[name] = self._place(name)
            self._row.addWidget(self._places[name], width)
        theme().changed.connect(self._fit)
        self._fit()
        self.setAccessibleName(self.tr("This PC"))

    def begin(self) -> None:
        """Look, once; each value is shown when it is known."""
        if self._begun:
            return
        self._begun = True
        ask = self._library.jobs.run
        folder = self._library.models_dir()
        ask(self, lambda cancel: _processor(), self._show_processor)
        ask(self, lambda cancel: free_at(folder), self._show_disk)
        ask(self, lambda cancel: _cards(), self._show_card)

    def text(self) -> str:
        """The whole line as text."""
        return ", ".join(w.text() for w in self._words.values() if w.text())

    @Slot()
    def _fit(self) -> None:
        for name, place in self._places.items():
            width = round(_PLACES[name] * theme().scale)
            place.setMinimumWidth(width if name in _NUMBERS else 0)
            place.setMaximumWidth(width)

    def _place(self, name: str) -> QWidget:
        place = QWidget()
        row = QHBoxLayout(place)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme().space(2))
        self._icons[name] = QLabel()
        self._icons[name].setFixedSize(20, 20)
        self._words[name] = ElidedLabel("", "muted")
        row.addWidget(self._icons[name])
        row.addWidget(self._words[name])
        row.addStretch(1)
        return place

    def _show(self, name: str, text: str) -> None:
        ratio = self.devicePixelRatioF()
        self._icons[name].setPixmap(theme().pixmap(name, "text.muted", 20, ratio))
        self._words[name].setText(text)
        self.setAccessibleDescription(self.text())

    def _show_processor(self, device: Device) -> None:
        self._show("devices", short_name(device.name))
        self._show("ram", self.tr("{n} memory").format(n=gigabytes(device.memory_total)))

    def _show_disk(self, free: int) -> None:
        self._show("disk", self.tr("{n} free").format(n=gigabytes(free)))

    def _show_card(self, cards: tuple[Device, ...]) -> None:
        if cards:
            name = short_name(cards[0].name)
            self._show("gpu", f"{name} {gigabytes(cards[0].memory_total)}")


def short_name(name: str) -> str:
    """A device's name without marks and words that all of its kind bear."""
    for word in (
        "(R)",
        "(TM)",
        "(tm)",
        "NVIDIA GeForce ",
        "NVIDIA ",
        "Intel ",
        " CPU",
        " Processor",
    ):
        name = name.replace(word, "")
    return " ".join(name.partition(" @")[0].partition(" with ")[0].split())


def free_at(folder: Path) -> int:
    """Bytes free where a folder is, or will be; 0 where the system does not say."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    try:
        return shutil.disk_usage(folder).free
    except OSError:
        return 0


def _processor() -> Device:
    from engine.devices import cpu

    return cpu()


def _cards() -> tuple[Device, ...]:
    from engine.devices import gpus

    return gpus()[0]
