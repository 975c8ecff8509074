"""The application's settings as a QObject, saved as they change."""

from __future__ import annotations

import dataclasses
import logging
import threading
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QSettings, QTimer, Signal, Slot

from engine import paths
from engine.config import AppSettings, EngineConfig, changed_settings, config_of, engine_config

log = logging.getLogger(__name__)

SAVE_DELAY_MS = 300


class Settings(QObject):
    """Holds `AppSettings`; changes are saved a moment later, and at `flush`.

    Signals:
        changed: a value changed.
        save_failed: the settings could not be saved; carries the reason.
    """

    changed = Signal()
    save_failed = Signal(str)

    def __init__(self, value: AppSettings | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.value = value or AppSettings()
        # Where a late save belongs, wherever the user's folders are by then.
        self._file = paths.settings_file()
        self._dirty = False
        self._writing = threading.Lock()
        self._told = False
        self._timer = QTimer(self, interval=SAVE_DELAY_MS, singleShot=True)
        self._timer.timeout.connect(self._save_later)

    def update(self, **changes: Any) -> None:
        """Change values by field name; raises `BadRequest` for one outside its bounds."""
        value = dataclasses.replace(self.value, **changes)
        if value == self.value:
            return
        self.value = value
        self._dirty = True
        self._timer.start()
        self.changed.emit()

    def engine_config(self) -> EngineConfig:
        """How models run where nobody says otherwise."""
        return engine_config(self.value)

    def config_of(self, path: Path) -> EngineConfig:
        """How one model runs."""
        return config_of(self.value, path)

    def choose_draft(self, path: Path, draft: str | None) -> None:
        """Remember what guesses for a model: a name or a file, "off", or None for what the engine chooses."""
        kept = {k: v for k, v in self.value.drafts.items() if k != str(path)}
        self.update(drafts=kept | ({str(path): draft} if draft else {}))

    def keep_engine_config(self, config: EngineConfig) -> None:
        """Remember how models are to run from now on."""
        self.update(engine=changed_settings(config))

    def told_once(self) -> bool:
        """Whether the user has been told that settings cannot be saved; True from then on."""
        told, self._told = self._told, True
        return told

    @Slot()
    def flush(self) -> None:
        """Save now what is not saved yet, and wait for it."""
        self._timer.stop()
        if self._dirty:
            self._dirty = False
            self._write(self.value)

    @Slot()
    def _save_later(self) -> None:
        """Save on another thread: a slow disk must not hold up the window."""
        self._dirty = False
        threading.Thread(target=self._write, args=(self.value,), name="settings").start()

    def _write(self, value: AppSettings) -> None:
        with self._writing:
            # A later change was saved meanwhile.
            if value is not self.value:
                return
            try:
                from engine import settings_store

                settings_store.save(value, self._file)
            except Exception as error:
                log.exception("Saving the settings failed.")
                self.save_failed.emit(str(error))


def load_settings() -> tuple[Settings, str | None]:
    """The saved settings and what was wrong with them, if anything."""
    try:
        from engine import settings_store

        value, problem = settings_store.load()
    except Exception as error:
        log.exception("Reading the settings failed.")
        return Settings(), str(error)
    return Settings(value), problem


def window_state() -> QSettings:
    """Where sizes and places of the window are kept; losing it loses nothing else."""
    file = paths.settings_file().with_name("window.ini")
    return QSettings(str(file), QSettings.Format.IniFormat)
