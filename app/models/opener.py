"""From a chosen model to a chat with it; the same way for the table, a drop and first run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.models.measuring import Measuring
from app.models.task import OnProgress, Task, Work
from app.models.words import reason_text, translate
from app.page import Services
from app.report import ErrorReport, Way, report_of
from app.widgets import gigabytes
from engine.config import EngineConfig
from engine.types import ModelInfo

if TYPE_CHECKING:
    from app.models.library import Item, Library
    from engine.library import Entry
    from engine.placement import Estimate


class Opener(QObject):
    """Loads what was chosen and goes to the chat when it is ready.

    `failed_estimate` tells how the model of the last failure would sit on this PC, where that is known.

    Signals:
        began: a load began; carries the path.
        task_began: a copy or an installation began; carries the `Task`.
        failed: it failed, or would not fit; carries an `ErrorReport` with ways out for this model.
        failure_forgotten: the last failure was read, or something else went well.
    """

    began = Signal(object)
    failed = Signal(object)
    failure_forgotten = Signal()
    task_began = Signal(object)

    def __init__(self, services: Services, library: Library) -> None:
        super().__init__(library)
        self._services = services
        self._library = library
        self._wanted: Path | None = None
        self._from = ""
        self.failed_estimate: Estimate | None = None
        self.task: Task | None = None
        controller = services.controller
        controller.model_changed.connect(self._on_model)
        controller.load_failed.connect(self._on_failed)

    def open(self, path: Path) -> None:
        """Load a model and then show the chat; one that would not fit shows its ways out first."""
        self.forget_failure()
        model = self._services.controller.model
        if model is not None and model.path == path:
            self._services.navigate("chat")
            return
        if self._services.controller.loading == path:
            return  # A second click while it loads.
        item = self._library.item(path)
        if item is not None and item.entry.problem:
            title = translate("models", "{name} cannot be used").format(name=path.name)
            why = reason_text(path, item.entry.problem)
            self.report(title, why, item.entry.problem)
            return
        if item is None or item.entry.footprint is None:
            self.load(path)
            return
        entry = item.entry

        def decide(estimate: Estimate | None) -> None:
            if estimate is None or estimate.verdict != "too large":
                self.load(path)
            else:
                self._refuse(item, estimate)

        self._library.estimate(self, entry, decide)

    def load(self, path: Path, config: EngineConfig | None = None) -> None:
        """Load without asking."""
        self._wanted, self._from = path, self._services.page
        self._services.controller.load(path, config)
        self.began.emit(path)

    def cancel(self) -> None:
        """Stop what is under way; the former model stays, and nothing half-made is left."""
        self._wanted = None
        if self.task is not None:
            self.task.cancel()
        self._services.controller.cancel_load()

    def install_demo(self) -> None:
        """Install the demo model and chat with it."""

        def work(progress: OnProgress, cancel: threading.Event) -> Path:
            from engine import demo

            return demo.install(progress, cancel, self._library.models_dir())

        self._begin(translate("models", "Installing SmolLM2-135M"), work)

    def copy_in(self, entry: Entry) -> None:
        """Copy a model and its helpers to the models folder, and chat with the copy."""

        def work(progress: OnProgress, cancel: threading.Event) -> Path:
            from engine.library import copy_in

            return copy_in(entry, self._library.models_dir(), progress, cancel)

        self._begin(translate("models", "Copying {name}").format(name=entry.name), work)

    def report(self, title: str, why: str, details: str = "") -> None:
        """Show what is wrong with something that was to be opened."""
        self.failed_estimate = None
        self.failed.emit(ErrorReport(title, self._and_still(why), (), details or why))

    def forget_failure(self) -> None:
        """Take the card of the last failure away, on every page."""
        self.failed_estimate = None
        self.failure_forgotten.emit()

    def _begin(self, name: str, work: Work) -> None:
        if self.task is not None:
            self.task.cancel()
            self.task.deleteLater()
        self.task = Task(self._library.jobs, work, self, name)
        self.task.done.connect(self._on_made)
        self.task.failed.connect(self._on_not_made)
        self.task_began.emit(self.task)

    @Slot(object)
    def _on_made(self, path: Path) -> None:
        def listed() -> None:
            item = self._library.item(path)
            if item is None or item.entry.kind == "chat":
                self.open(path)

        self._library.add_file(path, listed)

    @Slot(object)
    def _on_not_made(self, error: Exception) -> None:
        name = self.task.name if self.task is not None else ""
        self.failed_estimate = None
        title = translate("models", "Not done: {what}").format(what=name)
        self.failed.emit(report_of(error, title))

    def leaving(self) -> int:
        """Bytes that the loaded model gives back before another one comes."""
        from engine.devices import own_memory

        model, memory = self._services.controller.model, self._services.controller.metrics.memory
        owned = sum(p.bytes for p in memory if p.kind in ("model", "draft", "kv", "work"))
        # On the processor, what was never written is not taken yet and cannot be given back.
        return owned if model is not None and model.device != "cpu" else min(owned, own_memory())

    def _refuse(self, item: Item, estimate: Estimate) -> None:
        entry = item.entry
        title = translate("models", "{name} does not fit with {n} tokens of context").format(
            name=entry.name, n=f"{estimate.context:,}"
        )
        why = translate(
            "models", "It needs {need} and {free} can be used on {device}: {over} are missing."
        ).format(
            need=gigabytes(estimate.total),
            free=gigabytes(estimate.available),
            device=estimate.device.name,
            over=gigabytes(estimate.total - estimate.available),
        )
        details = f"{entry.path}\n{estimate.explanation}"
        self.failed_estimate = estimate
        anyway: tuple[tuple[str, Callable[[], None]], ...] = ()
        if estimate.total <= estimate.device.memory_total:
            anyway = ((translate("models", "Load anyway"), partial(self.load, entry.path)),)
        ways = self._ways_out(item, estimate)
        self.failed.emit(ErrorReport(title, self._and_still(why), anyway, details, ways))

    def _ways_out(self, item: Item, estimate: Estimate) -> tuple[Way, ...]:
        from app.models.ways import ways_out

        config = self._services.controller.usual_config()
        return ways_out(self._library, item, estimate, config, self.load)

    def _and_still(self, why: str) -> str:
        model = self._services.controller.model
        if model is None:
            return why
        still = translate("models", "Nothing was loaded; {name} is still ready.")
        return f"{why} {still.format(name=model.name)}"

    @Slot(object)
    def _on_model(self, model: ModelInfo | None) -> None:
        if model is not None and self._library.item(model.path) is None:
            self._library.add_file(model.path, lambda: None)  # Given at the start.
        if model is not None and model.path == self._wanted:
            self._wanted = None
            # Who went on to another page meanwhile is left alone there.
            if self._services.page == self._from:
                self._services.navigate("chat")

    @Slot(object)
    def _on_failed(self, report: ErrorReport) -> None:
        path, self._wanted = self._wanted, None
        item = self._library.item(path) if path is not None else None
        estimate = item.estimate if item is not None else None
        if estimate is not None and estimate.verdict == "fits":
            estimate = None
        self.failed_estimate = estimate
        again: tuple[tuple[str, Callable[[], None]], ...] = ()
        if path is not None:
            again = ((translate("models", "Try again"), partial(self.load, path)),)
        ways = self._ways_out(item, estimate) if item is not None and estimate is not None else ()
        self.failed.emit(
            replace(report, why=self._and_still(report.why), fixes=report.fixes + again, ways=ways)
        )


def opener_of(services: Services) -> Opener:
    """The one opener of the application.

    It is made on first use, which is when the first page is built; from then on what it opens is measured,
    and the folders are looked through, so that every page has models to choose from.
    """
    library: Library = services.library
    if library.opener is None:
        library.opener = Opener(services, library)
        Measuring(services.controller, library)
        QTimer.singleShot(0, library, library.begin)
    return library.opener
