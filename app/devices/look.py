"""Reads what the page shows, away from the GUI thread, and puts memory under its owners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psutil
from PySide6.QtCore import QCoreApplication

from engine.devices import Device, cpu, gpus
from engine.metrics import MemoryPart
from engine.readings import CardReading, Watcher

_OWNERS = ("model", "draft", "kv", "work")


@dataclass(frozen=True, slots=True)
class Moment:
    """What was read at one time; `problem` is why no card can be used, "" where one can."""

    processor: Device
    load: float
    cards: tuple[CardReading, ...]
    devices: tuple[Device, ...]
    problem: str


class Looker:
    """Reads one moment after the other; what does not change is read once."""

    def __init__(self) -> None:
        self._watcher = Watcher()
        self._cards: tuple[tuple[Device, ...], str | None] | None = None

    def look(self) -> Moment:
        """Not for two threads at once."""
        if self._cards is None:
            self._cards = gpus()
        processor, (cards, problem) = cpu(), self._cards
        load = psutil.cpu_percent(None)
        return Moment(processor, load, self._watcher.read(), (processor, *cards), problem or "")

    def close(self) -> None:
        """Let the driver go."""
        self._watcher.close()


def owners(total: int, used: int, memory: Sequence[MemoryPart], here: bool) -> list[MemoryPart]:
    """Parts of a device's memory: what is in use and free and, where the loaded model is `here`, what the
    engine measured of all of it, as everywhere else.
    """
    measured = {p.kind: p.bytes for p in memory} if here else {}
    held = [p for p in memory if here and p.kind in _OWNERS and p.bytes]
    free = measured.get("free", max(0, total - used))
    other = measured.get("other", max(0, total - free - sum(p.bytes for p in held)))
    known = {
        "model": QCoreApplication.translate("Devices", "Model"),
        "draft": QCoreApplication.translate("Devices", "Draft"),
        "kv": QCoreApplication.translate("Devices", "Context"),
        "work": QCoreApplication.translate("Devices", "Work space"),
    }
    return [
        MemoryPart("other", QCoreApplication.translate("Devices", "Other programs"), other),
        *(MemoryPart(p.kind, known[p.kind], p.bytes) for p in held),
        MemoryPart("free", QCoreApplication.translate("Devices", "Free"), free),
    ]
