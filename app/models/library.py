"""The models on this PC as the GUI sees them: found in the background, kept on the GUI thread."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QCoreApplication, QObject, QTimer, Signal, Slot

from app.models.jobs import Jobs
from app.models.records import Record, Records
from engine import paths
from engine.config import EngineConfig
from engine.errors import BadRequest

if TYPE_CHECKING:
    from app.models.opener import Opener
    from engine.copies import Binned
    from engine.devices import Device
    from engine.library import Dropped, Entry
    from engine.placement import Estimate

_BATCH_MS = 100  # Found files appear in steps that the eye takes as steady.
_BUDGET_S = 0.008  # And in no step so many that the window would miss a frame.
_log = logging.getLogger(__name__)


class Group(IntEnum):
    """The sections of the table, in order."""

    CHAT = 0
    HELPER = 1
    PROBLEM = 2


_GROUP_OF = {"chat": Group.CHAT, "projector": Group.HELPER, "draft": Group.HELPER}


@dataclass(frozen=True, slots=True)
class Item:
    """One row: what the file is, whether it fits (None: not a chat model), what was measured."""

    entry: Entry
    estimate: Estimate | None
    record: Record

    @property
    def title(self) -> str:
        """The user's name for it, else the file's own."""
        return self.record.name or self.entry.name

    @property
    def group(self) -> Group:
        """The section of the table."""
        if self.entry.problem:
            return Group.PROBLEM
        return _GROUP_OF.get(self.entry.kind, Group.PROBLEM)


Found = tuple["Entry", "Estimate | None"]


class Library(QObject):
    """Owns the list of models of this PC.

    Signals: `changed(Item)` new or different; `removed(Path)`; `scanning_changed(bool)`;
    `scan_finished()` after a whole scan, also one that found nothing; `bin_changed()`.
    """

    changed = Signal(object)
    removed = Signal(object)
    scanning_changed = Signal(bool)
    scan_finished = Signal()
    bin_changed = Signal()

    def __init__(self, settings: Any, records_file: Path, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self.records = Records(records_file)
        self.jobs = Jobs(self)
        self.opener: Opener | None = None
        self._engine_settings = settings.value.engine
        settings.changed.connect(self._on_settings)
        self._items: dict[Path, Item] = {}
        self._seen: set[Path] = set()
        self._found: deque[Found] = deque()
        self._scan: threading.Event | None = None
        self._whole = False
        self.scanned = False
        self._timer = QTimer(self)
        self._timer.setInterval(_BATCH_MS)
        self._timer.timeout.connect(self._take_found)
        app = QCoreApplication.instance()
        if app is not None:
            app.aboutToQuit.connect(self.close)

    @property
    def items(self) -> tuple[Item, ...]:
        """All known files, in the order in which they were found."""
        return tuple(self._items.values())

    @property
    def scanning(self) -> bool:
        """Whether a scan is under way."""
        return self._scan is not None

    def item(self, path: Path) -> Item | None:
        """The row of one file."""
        return self._items.get(path)

    def chat_models(self) -> list[Item]:
        """What can be talked to, by name."""
        found = [i for i in self._items.values() if i.group is Group.CHAT]
        return sorted(found, key=lambda i: i.title.casefold())

    @Slot()
    def begin(self) -> None:
        """Look through all folders, unless that was done or is being done."""
        if not self.scanned and not self.scanning:
            self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Look through all folders again; rows appear as they are found, gone files leave at the end."""
        self.cancel_scan()
        self._seen = set()
        self._whole = False
        found: deque[Found] = deque()
        self._found = found
        settings = self._settings.value
        estimate = self.estimator()

        def scan(cancel: threading.Event) -> None:
            from engine import library

            devices = _devices()
            library.scan(
                settings, lambda entry: found.append((entry, estimate(entry, devices))), cancel
            )

        self._scan = self.jobs.run(self, scan, self._scan_done, self._scan_failed)
        self._timer.start()
        self.scanning_changed.emit(True)

    def cancel_scan(self) -> None:
        """Stop looking; what was found stays."""
        if self._scan is not None:
            self._scan.set()
            self._end_scan()

    def check(
        self, owner: QObject, paths: Iterable[Path], then: Callable[[Dropped], None]
    ) -> threading.Event:
        """Find out beside the GUI thread what some dropped files and folders are."""
        wanted = list(paths)

        def work(cancel: threading.Event) -> Dropped:
            from engine.library import sort_dropped

            return sort_dropped(wanted, cancel)

        return self.jobs.run(owner, work, then)

    def estimate(
        self, owner: QObject, entry: Entry, then: Callable[[Estimate | None], None]
    ) -> None:
        """How a file would sit on this PC now."""
        estimate = self.estimator()
        self.jobs.run(owner, lambda cancel: estimate(entry, _devices()), then)

    def estimate_of(
        self, entry: Entry, config: EngineConfig, devices: Sequence[Device]
    ) -> Estimate | None:
        """How a file would sit with other settings, at once; None where the question does not arise."""
        return self.estimator(config)(entry, devices)

    def estimate_anew(self) -> None:
        """Estimate all files again, as after another model or other settings."""
        estimate, entries = self.estimator(), [i.entry for i in self._items.values()]

        def work(cancel: threading.Event) -> list[Found]:
            devices = _devices()
            return [(entry, estimate(entry, devices)) for entry in entries]

        def then(found: list[Found]) -> None:
            for entry, new in found:
                item = self._items.get(entry.path)
                if item is not None and item.entry == entry:
                    self._put(entry, new)

        self.jobs.run(self, work, then)

    def estimator(
        self, config: EngineConfig | None = None
    ) -> Callable[[Entry, Sequence[Device]], Estimate | None]:
        """A function for any thread: settings, real loads and the loaded model as they are now."""
        leaving = self.opener.leaving() if self.opener is not None else 0
        config, records = config or self._settings.engine_config(), self.records

        def estimate(entry: Entry, devices: Sequence[Device]) -> Estimate | None:
            if entry.kind != "chat" or entry.footprint is None:
                return None
            from engine import placement

            taken = records.get(entry.path, entry.size).memory
            try:
                return placement.estimate(entry, config, devices, leaving, taken)
            except BadRequest:  # a device that is not there any more
                return placement.estimate(
                    entry, replace(config, device=devices[0].id), devices, leaving, taken
                )

        return estimate

    @Slot()
    def _on_settings(self) -> None:
        if self._settings.value.engine != self._engine_settings:
            self._engine_settings = self._settings.value.engine
            self.estimate_anew()

    def add(self, entries: Sequence[Entry], done: Callable[[], None]) -> None:
        """List files that were checked; those outside of the known folders are remembered."""
        settings = self._settings.value
        estimate = self.estimator()

        def work(cancel: threading.Event) -> tuple[list[Found], list[str]]:
            from engine.library import folders

            devices, known = _devices(), [(s, f.resolve()) for s, f in folders(settings)]
            found, outside = [], []
            for entry in entries:
                path = entry.path.resolve()
                home = next(((s, f) for s, f in known if path.is_relative_to(f)), None)
                if home is None:
                    outside.append(str(entry.path))
                else:
                    entry = replace(entry, source=home[0], root=home[1])
                found.append((entry, estimate(entry, devices)))
            return found, outside

        def then(result: tuple[list[Found], list[str]]) -> None:
            known = self._settings.value.extra_model_dirs
            new = [p for p in result[1] if p not in known]
            if new:
                self._settings.update(extra_model_dirs=[*known, *new])
            for entry, estimate in result[0]:
                self._seen.add(entry.path)  # A scan that is under way began without it.
                self._put(entry, estimate)
            done()

        self.jobs.run(self, work, then)

    def add_file(self, path: Path, done: Callable[[], None]) -> None:
        """List a file that was just made."""
        self.check(self, [path], lambda d: self.add([*d.models, *d.companions], done))

    def bin(
        self, item: Item, done: Callable[[Binned], None], failed: Callable[[Exception], None]
    ) -> None:
        """Move a model of our folder to the bin; `done` gets what `restore` needs."""

        def work(cancel: threading.Event) -> Binned:
            from engine.library import move_to_bin

            return move_to_bin(item.entry)

        def then(binned: Binned) -> None:
            self._remove(item.entry.path)
            self.bin_changed.emit()
            done(binned)

        self.jobs.run(self, work, then, failed)

    def restore(self, binned: Binned, failed: Callable[[Exception], None]) -> None:
        """Bring a model back from the bin."""

        def work(cancel: threading.Event) -> Path:
            from engine.library import restore

            return restore(binned)

        def then(path: Path) -> None:
            self.add_file(path, lambda: None)
            self.bin_changed.emit()

        self.jobs.run(self, work, then, failed)

    def in_bin(self, owner: QObject, then: Callable[[tuple[Binned, ...]], None]) -> None:
        """What is in the bin of our models folder."""
        folder = self.models_dir()

        def work(cancel: threading.Event) -> tuple[Binned, ...]:
            from engine.library import in_bin

            return in_bin(folder)

        self.jobs.run(owner, work, then)

    def empty_bin(self, binned: Sequence[Binned]) -> None:
        """Delete binned models for good."""

        def work(cancel: threading.Event) -> None:
            from engine.library import discard

            for one in binned:
                discard(one)

        self.jobs.run(self, work, lambda _: self.bin_changed.emit())

    def models_dir(self) -> Path:
        """Our own folder."""
        return paths.models_dir(self._settings.value.models_dir)

    def forget(self, item: Item) -> bool:
        """Take a file off the list that is on it only because it was opened here; the file stays."""
        known = self._settings.value.extra_model_dirs
        if str(item.entry.path) not in known:
            return False
        self._settings.update(extra_model_dirs=[p for p in known if p != str(item.entry.path)])
        self._remove(item.entry.path)
        return True

    def rename(self, path: Path, name: str) -> None:
        """Give a file another name to be shown; an empty one brings its own name back."""
        item = self._items[path]
        wanted = name.strip()
        chosen = wanted if wanted and wanted != item.entry.name else None
        record = self.records.update(path, item.entry.size, name=chosen)
        self._items[path] = replace(item, record=record)
        self.changed.emit(self._items[path])

    def measured(self, path: Path, size: int, **figures: Any) -> None:
        """Keep figures of a real run: the fields of `Record`."""
        record = self.records.update(path, size, **figures)
        if (item := self._items.get(path)) is not None and item.entry.size == size:
            self._items[path] = replace(item, record=record)
            self.changed.emit(self._items[path])

    @Slot()
    def close(self) -> None:
        """Stop all work; for the end of the application."""
        self._timer.stop()
        self.jobs.close()

    def _put(self, entry: Entry, estimate: Estimate | None) -> None:
        item = Item(entry, estimate, self.records.get(entry.path, entry.size))
        if self._items.get(entry.path) != item:
            self._items[entry.path] = item
            self.changed.emit(item)

    def _remove(self, path: Path) -> None:
        if self._items.pop(path, None) is not None:
            self.removed.emit(path)

    @Slot()
    def _take_found(self) -> None:
        until = time.monotonic() + _BUDGET_S
        while self._found and time.monotonic() < until:
            entry, estimate = self._found.popleft()
            self._seen.add(entry.path)
            self._put(entry, estimate)
        if self._whole and not self._found:
            self._whole = False
            for path in [p for p in self._items if p not in self._seen]:
                self._remove(path)
            self.scanned = True
            self._end_scan()
            self.scan_finished.emit()

    def _scan_done(self, _: None) -> None:
        self._whole = True
        self._take_found()

    def _scan_failed(self, error: Exception) -> None:
        _log.error("The scan of the model folders failed.", exc_info=error)
        self._end_scan()
        self.scan_finished.emit()

    def _end_scan(self) -> None:
        self._scan = None
        self._timer.stop()
        self.scanning_changed.emit(False)


def _devices() -> tuple[Device, ...]:
    from engine.devices import devices

    return devices()
