"""Which device a model runs on, with how it would sit there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QSignalBlocker, Slot
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.forms import Choice
from app.i18n import told
from app.models.words import memory_parts
from app.page import Services
from app.theme import theme
from app.widgets import MemoryBar, button, label
from engine.config import AUTO

if TYPE_CHECKING:
    from engine.devices import Device
    from engine.placement import Estimate


class Chooser(QWidget):
    """A model, a device, the bar of how they fit, and loading it so."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._devices: tuple[Device, ...] = ()
        self._asked = 0
        self._model, self._device = Choice(), Choice()
        self._model.setAccessibleName(self.tr("Model"))
        self._device.setAccessibleName(self.tr("Device of this model"))
        self._bar = MemoryBar()
        self._words = label("", "small", wrap=True)
        self._load = button(self.tr("Load here"), self._on_load, icon="play")
        row = QHBoxLayout()
        row.setSpacing(theme().space(2))
        row.addWidget(self._model, 2)
        row.addWidget(self._device, 1)
        row.addWidget(self._load)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, theme().space(4))
        column.setSpacing(theme().space(2))
        column.addWidget(label(self.tr("Where a model runs"), "section"))
        column.addLayout(row)
        column.addWidget(self._bar)
        column.addWidget(self._words)
        self._model.currentIndexChanged.connect(self._on_model)
        self._device.currentIndexChanged.connect(self._on_device)
        library = services.library
        library.changed.connect(self.show_models)
        services.controller.model_changed.connect(self.show_models)
        self.show_models()

    def set_devices(self, devices: Sequence[Device]) -> None:
        """The devices to choose from, with their memory as it is now."""
        known = [d.id for d in self._devices]
        self._devices = tuple(devices)
        if [d.id for d in devices] == known:
            return
        with QSignalBlocker(self._device):
            self._device.clear()
            self._device.addItem(self.tr("Automatic"), AUTO)
            for device in devices:
                self._device.addItem(device.name, device.id)
        self._on_model()

    @Slot()
    def show_models(self) -> None:
        """List the chat models; the loaded one is chosen at first."""
        chosen = self._model.currentData()
        loaded = self._services.controller.model
        wanted = chosen or (str(loaded.path) if loaded else None)
        items = self._services.library.chat_models()
        if [i.title for i in items] == [
            self._model.itemText(n) for n in range(self._model.count())
        ]:
            self.look()
            return
        with QSignalBlocker(self._model):
            self._model.clear()
            for item in items:
                self._model.addItem(item.title, str(item.entry.path))
            self._model.setCurrentIndex(max(0, self._model.findData(wanted)))
        self._on_model()

    @Slot()
    def look(self) -> None:
        """Estimate anew; the words and the bar follow as soon as they are known."""
        item = self._item()
        self._load.setEnabled(item is not None and self._device.count() > 0)
        if item is None or not self._devices:
            self._bar.set_parts(())
            self._words.setText(self.tr("There is no model yet. Add one on the page Models."))
            return
        self._asked += 1
        asked, devices, library = self._asked, self._devices, self._services.library
        config = replace(self._services.settings.engine_config(), device=self._device.currentData())
        estimate = library.estimator(config)

        def show(found: Estimate | None) -> None:
            if asked == self._asked and found is not None:
                self._bar.set_parts(memory_parts(found.parts), found.device.memory_total)
                self._words.setText(f"{found.device.name}: {told(found.explanation)}")

        library.jobs.run(self, lambda cancel: estimate(item.entry, devices), show)

    @property
    def words(self) -> str:
        """What is said of the choice."""
        return self._words.text()

    def focus_first(self) -> None:
        """The model's list."""
        self._model.setFocus()

    def _item(self) -> Any:
        path = self._model.currentData()
        return self._services.library.item(Path(path)) if path else None

    @Slot()
    def _on_model(self) -> None:
        path, settings = self._model.currentData(), self._services.settings
        device = settings.value.devices.get(path or "", settings.engine_config().device)
        with QSignalBlocker(self._device):
            self._device.setCurrentIndex(max(0, self._device.findData(device)))
        self.look()

    @Slot()
    def _on_device(self) -> None:
        path, device = self._model.currentData(), self._device.currentData()
        if path and device:
            kept = {k: v for k, v in self._services.settings.value.devices.items() if k != path}
            if device != self._services.settings.engine_config().device:
                kept[path] = device
            self._services.settings.update(devices=kept)
        self.look()

    def _on_load(self) -> None:
        if (item := self._item()) is not None:
            self._services.controller.load(item.entry.path)
