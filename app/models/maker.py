"""Making a draft of what its makers publish: what is chosen, how far it is, and what came of it."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

from app.i18n import told
from app.models.task import OnProgress, Task
from app.models.words import translate
from app.page import Services
from engine.errors import EngineError

if TYPE_CHECKING:
    from app.models.library import Library

SCHEMES = ("f16", "q8_0", "q6_k", "q5_k_m", "q4_k_m", "q4_0")


@dataclass(frozen=True, slots=True)
class Source:
    """What was chosen to be converted: bytes of its tensors, bytes in each scheme, and what was guessed."""

    path: Path
    size: int
    sizes: dict[str, int]
    warnings: tuple[str, ...]


class Maker(QObject):
    """One conversion at a time; it goes on while its page is left, and nothing half-made is left of it.

    Signals:
        changed: what is chosen, how far it is, or what came of it.
        made_all: all that was wanted is written; carries the files by scheme.
    """

    changed = Signal()
    made_all = Signal(object)

    def __init__(self, services: Services) -> None:
        super().__init__(services.library)
        self._services = services
        self._library: Library = services.library
        self._arrived: deque[tuple[str, Path]] = deque()
        self._task: Task | None = None
        self._asked = 0
        self.source: Source | None = None
        self.target: Path | None = None
        self.wanted = {"q8_0"}
        self.made: dict[str, Path] = {}
        self.at: tuple[str, int, int] | None = None
        self.problem = ""
        self.misfit: str | None = (
            None  # "" where source and target fit; None where that is not known
        )

    @classmethod
    def of(cls, services: Services) -> Maker:
        """The one maker of the application, made on first use."""
        found = services.library.findChild(cls)
        return found if found is not None else cls(services)

    @property
    def running(self) -> bool:
        """Whether something is being written."""
        return self._task is not None

    @property
    def ready(self) -> bool:
        """Whether it can be begun."""
        return bool(self.source and self.todo and not self.running and not self.misfit)

    @property
    def todo(self) -> list[str]:
        """What is wanted and not written yet."""
        return [scheme for scheme in SCHEMES if scheme in self.wanted - self.made.keys()]

    # What is chosen

    def choose_source(self, path: Path) -> None:
        """Take a folder or a file; what is wrong with it is told in `problem`."""
        if self.running:
            return
        self.source, self.problem, self.made, self.misfit = None, "", {}, None
        self.changed.emit()

        def work(cancel: object) -> Source:
            from engine.convert.make import size_in
            from engine.draft.files import open_draft

            draft = open_draft(path)
            sizes = {scheme: size_in(draft, scheme) for scheme in SCHEMES}
            return Source(path, draft.n_bytes, sizes, draft.config.warnings)

        self._library.jobs.run(self, work, self._on_source, self._on_refused)

    def choose_target(self, path: Path | None) -> None:
        """The model that the draft is for."""
        if not self.running and path != self.target:
            self.target = path
            self._look()

    def want(self, scheme: str, wanted: bool) -> None:
        """Whether a file of this scheme shall be written."""
        self.wanted = self.wanted | {scheme} if wanted else self.wanted - {scheme}
        self.changed.emit()

    def _on_source(self, source: Source) -> None:
        self.source = source
        self._look()

    def _on_refused(self, error: Exception) -> None:
        self.problem = _words(error)
        self.changed.emit()

    def _look(self) -> None:
        """Find out whether draft and model fit each other."""
        self.misfit = None
        self.changed.emit()
        source, target = self.source, self.target
        if source is None or target is None:
            return
        self._asked += 1
        asked = self._asked

        def work(cancel: object) -> str:
            from engine.draft.candidates import candidates

            return next(
                c.problem for c in candidates(target, [source.path]) if c.path == source.path
            )

        def then(problem: str) -> None:
            if asked == self._asked:
                self.misfit = problem
                self.changed.emit()

        self._library.jobs.run(self, work, then, self._on_refused)

    # Making

    def start(self) -> None:
        """Write what is wanted."""
        if not self.ready or self.source is None:
            return
        source, target, folder = self.source.path, self.target, self._library.models_dir()
        wanted = self.todo
        self.problem, self.at = "", ("", 0, 1)
        self._arrived.clear()

        def work(progress: OnProgress, cancel: threading.Event) -> dict[str, Path]:
            from engine.convert.make import make_draft

            return make_draft(
                source, folder, wanted, target, progress,
                lambda *made: self._arrived.append(made), cancel,
            )  # fmt: skip

        task = self._task = Task(self._library.jobs, work, self)
        task.progressed.connect(self._on_progress)
        task.done.connect(self._on_made)
        task.failed.connect(self._on_failed)
        task.stopped.connect(self._end)
        self._services.status(translate("models", "Making a draft"), "draft")
        self.changed.emit()

    def stop(self) -> None:
        """End it; files that are whole stay, and the source is as it was."""
        if self._task is not None:
            self._task.cancel()

    @Slot(tuple)
    def _on_progress(self, at: tuple[str, int, int]) -> None:
        self._take_arrived()
        self.at = at
        self.changed.emit()

    def _take_arrived(self) -> None:
        while self._arrived:
            scheme, path = self._arrived.popleft()
            self.made[scheme] = path
            self._library.add_file(path, lambda: None)

    @Slot(object)
    def _on_made(self, made: dict[str, Path]) -> None:
        self._end()
        self.made_all.emit(made)

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self.problem = _words(error)
        self._end()

    @Slot()
    def _end(self) -> None:
        self._take_arrived()
        if self._task is not None:
            self._task.deleteLater()
        self._task, self.at = None, None
        self._services.status("")
        self.changed.emit()


def _words(error: Any) -> str:
    return (
        told(str(error)) if isinstance(error, EngineError) else f"{type(error).__name__}: {error}"
    )
