"""What this PC measured with each model, and the names its user gave: one small JSON file."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from engine.placement import Taken


@dataclass(frozen=True, slots=True)
class Drafted:
    """What a drafter brought when it was measured: tokens a second without it (`off`) and with (`on`), and
    tokens a verified draft; `day` is an ISO date."""

    off: float
    on: float
    accepted: float | None
    day: str

    @property
    def speedup(self) -> float:
        """How many times as fast as without."""
        return self.on / self.off

    @classmethod
    def from_json(cls, found: Any) -> Drafted | None:
        """From a record; None for one that is not sound."""
        if not isinstance(found, Mapping) or not isinstance(found.get("day"), str):
            return None
        off, on = _positive(found.get("off")), _positive(found.get("on"))
        if off is None or on is None:
            return None
        return cls(off, on, _positive(found.get("accepted")), found["day"])


@dataclass(frozen=True, slots=True)
class Record:
    """One model's notes. Rates in tokens a second, `load_s` in seconds, `memory` of the last load; None
    is not measured yet. `drafters` are those that were measured, by `EngineConfig.draft`; "" is the usual."""

    name: str | None = None
    decode_rate: float | None = None
    prefill_rate: float | None = None
    load_s: float | None = None
    memory: Taken | None = None
    drafters: Mapping[str, Drafted] = field(default_factory=dict)

    @classmethod
    def from_json(cls, found: Any) -> Record:
        """A record of the values that are sound; others become None."""
        if not isinstance(found, Mapping):
            return cls()
        name = found.get("name")
        numbers = {n: _positive(found.get(n)) for n in ("decode_rate", "prefill_rate", "load_s")}
        drafters = found.get("drafters")
        drafted = drafters.items() if isinstance(drafters, Mapping) else ()
        sound = {name: Drafted.from_json(value) for name, value in drafted}
        return cls(
            name=name if isinstance(name, str) and name.strip() else None,
            memory=Taken.from_json(found.get("memory")),
            drafters={name: value for name, value in sound.items() if value is not None},
            **numbers,
        )


class Records:
    """Notes of all models by file and size, so that a replaced file starts without figures.

    `problem` says what was wrong with the file when it was read; the bad file is kept beside.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.problem: str | None = None
        self._records = self._read()

    def get(self, path: Path, size: int) -> Record:
        """The notes of one model; empty ones where nothing is known."""
        return self._records.get(_key(path, size), Record())

    def update(self, path: Path, size: int, **changes: Any) -> Record:
        """Change some notes of one model and write the file; a value of None clears."""
        record = replace(self.get(path, size), **changes)
        if record == Record():
            self._records.pop(_key(path, size), None)
        else:
            self._records[_key(path, size)] = record
        self._write()
        return record

    def _read(self) -> dict[str, Record]:
        try:
            found = json.loads(self._file.read_text("utf-8"))
            if not isinstance(found, dict):
                raise ValueError("expected an object by model file")
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            self.problem = (
                f"{self._file.name} could not be read ({error}); started without figures."
            )
            # A file that cannot be moved stays where it is.
            with contextlib.suppress(OSError):
                os.replace(self._file, self._file.with_name(self._file.name + ".bad"))
            return {}
        return {key: Record.from_json(value) for key, value in found.items()}

    def _write(self) -> None:
        part = self._file.with_name(self._file.name + ".part")
        text = json.dumps({k: asdict(r) for k, r in self._records.items()}, indent=1)
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(text, "utf-8")
            os.replace(part, self._file)
        except OSError as error:
            # Figures are a comfort: a full disk must not stop a chat.
            self.problem = f"{self._file} could not be written ({error.strerror or error})."


def _key(path: Path, size: int) -> str:
    return f"{size}|{path}"


def _positive(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if math.isfinite(value) and value > 0 else None
