"""What guesses for a model: chosen in its details, or offered for a draft's file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, QSignalBlocker, Slot
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.forms import Choice
from app.models.opener import opener_of
from app.page import Services
from app.theme import theme
from app.widgets import label
from engine.config import Spec

if TYPE_CHECKING:
    from app.models.library import Item

OFF = Spec.OFF.value


class DrafterChoice(QWidget):
    """The list of what may guess for one chat model; a choice holds from its next load."""

    def __init__(self, services: Services, item: Item) -> None:
        super().__init__()
        self._settings = services.settings
        self._path = item.entry.path
        self.choice = Choice()
        self.choice.setAccessibleName(self.tr("What guesses for this model"))
        note = self.tr("Guesses never change the text. Holds from the next load.")
        self.choice.setAccessibleDescription(note)
        # A long name must not widen the pane.
        self.choice.setSizeAdjustPolicy(
            Choice.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme().space(1))
        title = label(self.tr("Drafts"), "muted")
        title.setBuddy(self.choice)
        column.addWidget(title)
        column.addWidget(self.choice)
        column.addWidget(label(note, "small", wrap=True))
        add = self.choice.addItem
        add(self.tr("Automatic"), "")
        add(self.tr("What the text repeats"), "ngram")
        if item.entry.footprint is not None and item.entry.footprint.draft:
            add(self.tr("The model's own draft layer"), "mtp")
        for other in services.library.items:
            if other.entry.kind == "draft" and not other.entry.problem:
                add(other.title, str(other.entry.path))
        add(self.tr("Off"), OFF)
        self._show()
        self.choice.currentIndexChanged.connect(self._on_chosen)
        services.library.jobs.run(self, self._look, self._on_shipped)

    def _show(self) -> None:
        """Show what is kept; a file that is not listed is listed by its name."""
        kept = self._settings.value.drafts.get(str(self._path)) or ""
        with QSignalBlocker(self.choice):
            if self.choice.findData(kept) < 0:
                self.choice.insertItem(1, Path(kept).name, kept)
            self.choice.setCurrentIndex(self.choice.findData(kept))

    def _look(self, cancel: object) -> Path | None:
        from engine.draft.shipped import shipped_draft
        from engine.gguf import read_header

        return shipped_draft(read_header(self._path))

    @Slot(object)
    def _on_shipped(self, found: Path | None) -> None:
        if found is None:
            return
        name = self.tr("{name}, comes with Lucebox").format(name=found.stem)
        at = self.choice.findData(str(found))
        with QSignalBlocker(self.choice):
            if at < 0:
                self.choice.insertItem(1, name, str(found))
            else:
                self.choice.setItemText(at, name)

    @Slot()
    def _on_chosen(self) -> None:
        self._settings.choose_draft(self._path, self.choice.currentData() or None)


class Offer(QObject):
    """Loads the model again with a draft; only where that succeeds the choice is kept.

    A draft that does not fit fails the load, which says why with both numbers.
    """

    def __init__(self, services: Services, draft: Path, parent: QObject) -> None:
        super().__init__(parent)
        self._services, self._draft = services, draft
        controller = services.controller
        assert controller.model is not None
        self._path = controller.model.path
        config = services.settings.config_of(self._path)
        spec = Spec.AUTO if config.spec is Spec.OFF else config.spec
        controller.model_changed.connect(self._on_model)
        opener_of(services).load(self._path, replace(config, draft=str(draft), spec=spec))
        controller.state_changed.connect(self._on_state)

    @Slot(object)
    def _on_model(self, model: Any) -> None:
        if model is not None and model.path == self._path:
            self._services.settings.choose_draft(self._path, str(self._draft))

    @Slot(str)
    def _on_state(self, state: str) -> None:
        """Loaded, failed or cancelled; `model_changed` comes before this is really deleted."""
        if state in ("idle", "ready", "failed"):
            self.deleteLater()
