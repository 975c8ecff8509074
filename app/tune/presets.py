"""Named sets of settings: chosen from a list, saved, and taken away."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Slot
from PySide6.QtWidgets import QHBoxLayout, QInputDialog, QWidget

from app.forms import Choice
from app.page import Services
from app.theme import theme
from app.tune.staging import Staging
from app.widgets import IconButton

_LONGEST = 60


class Presets(QWidget):
    """The list, and what can be done with what is chosen in it."""

    def __init__(self, services: Services, staging: Staging) -> None:
        super().__init__()
        self._services, self._staging = services, staging
        self._choice = Choice()
        self._choice.setAccessibleName(self.tr("Preset"))
        self._choice.setSizeAdjustPolicy(
            Choice.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._choice.setMinimumContentsLength(14)
        self._save = IconButton("plus", self.tr("Save these settings as a preset"))
        self._remove = IconButton("trash", self.tr("Delete this preset"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme().space(1))
        for widget in (self._choice, self._save, self._remove):
            row.addWidget(widget)
        self._choice.currentIndexChanged.connect(self._on_chosen)
        self._save.clicked.connect(self._on_save)
        self._remove.clicked.connect(self._on_remove)
        staging.changed.connect(self.show_presets)
        self.show_presets()

    @Slot()
    def show_presets(self) -> None:
        """List the presets, and mark the one that the wishes are."""
        presets, wished = self._services.settings.value.presets, self._staging.value.engine
        names = sorted(presets, key=str.casefold)
        now = next((name for name in names if presets[name] == wished), None)
        with QSignalBlocker(self._choice):
            self._choice.clear()
            self._choice.addItem(self.tr("Automatic"), "")
            for name in names:
                self._choice.addItem(name, name)
            if wished and now is None:
                self._choice.addItem(self.tr("Own settings"), None)
                self._choice.setCurrentIndex(self._choice.count() - 1)
            else:
                self._choice.setCurrentIndex(max(0, self._choice.findData(now or "")))
        self._save.setEnabled(bool(wished) and now is None)
        self._remove.setEnabled(now is not None)

    @Slot()
    def _on_chosen(self) -> None:
        name = self._choice.currentData()
        if name is not None:
            self._staging.take(self._services.settings.value.presets.get(name, {}))

    @Slot()
    def _on_save(self) -> None:
        title, words = self.tr("Save as a preset"), self.tr("Name")
        name, sure = QInputDialog.getText(self, title, words)
        if sure and name.strip():
            self.save(name.strip()[:_LONGEST])

    def save(self, name: str) -> None:
        """Keep the wishes under a name; a preset of this name is replaced."""
        settings = self._services.settings
        wished = dict(self._staging.value.engine)
        settings.update(presets={**settings.value.presets, name: wished})
        self.show_presets()

    @Slot()
    def _on_remove(self) -> None:
        settings, name = self._services.settings, self._choice.currentData()
        if not name:
            return
        before = settings.value.presets
        settings.update(presets={k: v for k, v in before.items() if k != name})
        self.show_presets()

        def undo() -> None:
            settings.update(presets={**settings.value.presets, name: before[name]})
            self.show_presets()

        self._services.toast_undo(lambda: self.tr("{name} is deleted.").format(name=name), undo)
