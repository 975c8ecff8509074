"""Conversations that are kept on disk: on and off as the settings say, how large, and forgotten."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject, Signal, Slot

from app.page import Services
from engine.config import DiskCacheConfig, changed_settings, disk_cache_config
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.cache.archive import DiskArchive
    from engine.cache.disk import Usage

_CLOSE_S = 1.0


class DiskCache(QObject):
    """Gives the application's engine its archive; outlives the page, ends with the controller.

    All work is done on other threads; one change follows the other, and the newest settings hold.

    Signals:
        changed: anything that a view shows is different.
    """

    changed = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__(services.controller)
        self._services = services
        self._archive: DiskArchive | None = None
        self._applied = DiskCacheConfig()
        self._busy = False
        self._epoch = 0
        self._closing = threading.Event()
        self.held: Usage | None = None
        self.problem = ""
        services.controller.closing.connect(self._on_closing)
        services.settings.changed.connect(self._follow)
        self._follow()

    @classmethod
    def of(cls, services: Services) -> DiskCache:
        """The one of the application, made on first use."""
        found = services.controller.findChild(cls)
        return found if found is not None else cls(services)

    @property
    def config(self) -> DiskCacheConfig:
        """What the user chose."""
        return disk_cache_config(self._services.settings.value)

    @property
    def state(self) -> str:
        """ "off", "changing" or "on"."""
        if self._busy:
            return "changing"
        return "off" if self._archive is None else "on"

    def set_on(self, on: bool) -> None:
        """Keep conversations on disk from now on, or no more; what is there stays."""
        if on and self.config.disk_cache and self.state == "off":
            self._renew()  # it failed before, and is wanted again
            return
        config = dataclasses.replace(self.config, disk_cache=on)
        self._services.settings.update(cache=changed_settings(config))

    def look(self) -> None:
        """Measure what lies on disk."""
        from engine.cache import disk
        from engine.cache.archive import folder_of

        folder, epoch = folder_of(self.config), self._epoch

        def take(held: Usage) -> None:
            if epoch == self._epoch:  # else it was measured before something was deleted
                self._on_held(held)

        self._run(lambda: disk.usage(folder), take)

    def empty(self, forget: bool) -> None:
        """Drop all that is cached, in memory and on disk; with `forget` the files' key too. Chats stay."""
        from engine.cache.archive import empty

        engine, config = self._services.controller.engine, self.config
        self.problem = ""
        self._epoch += 1
        self._run(lambda: empty([engine] if engine else (), config, forget), self._on_held)

    # Work on other threads

    def _run(self, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        self._services.library.jobs.run(self, lambda cancel: work(), then, self._on_failed)

    @Slot()
    def _follow(self) -> None:
        if self.config != self._applied and not self._busy:
            self._renew()

    def _renew(self) -> None:
        former, self._archive = self._archive, None
        self._applied, self._busy, self.problem = self.config, True, ""
        self._services.controller.start()
        self._run(lambda: self._exchange(former, self._applied), self._on_opened)
        self.changed.emit()

    def _exchange(self, former: DiskArchive | None, config: DiskCacheConfig) -> DiskArchive | None:
        from engine.cache.archive import open_archive

        engine = self._engine()
        if engine is None:
            return None
        engine.keep_in(None)
        if former is not None:
            former.close()
        if not config.disk_cache:
            return None
        archive = open_archive(config)
        engine.keep_in(archive)
        return archive

    def _engine(self) -> Any:
        """The application's engine, once it is made; None when the application ends before."""
        while not self._closing.wait(0.02):
            if (engine := self._services.controller.engine) is not None:
                return engine
        return None

    # Back on the GUI thread

    def _on_opened(self, archive: DiskArchive | None) -> None:
        self._busy, self._archive = False, archive
        self.look()
        self._follow()
        self.changed.emit()

    def _on_held(self, held: Usage) -> None:
        if held != self.held:
            self.held = held
            self.changed.emit()

    def _on_failed(self, error: Exception) -> None:
        if not isinstance(error, EngineError):
            raise error
        self._busy, self.problem = False, str(error)
        self._follow()
        self.changed.emit()

    @Slot()
    def _on_closing(self) -> None:
        """What waits to be written has a moment; the window is hidden meanwhile."""
        self._closing.set()
        if (archive := self._archive) is not None:
            with contextlib.suppress(EngineError):
                archive.close(_CLOSE_S)
