"""What a card is not asked to do, because a self-test found it wrong there; kept from run to run."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from engine.files import write_atomically
from engine.quants import TYPES
from kernels.loader import SOURCES

log = logging.getLogger(__name__)


_REPLACED = ("int8", "packed", "together")
"""Products of formats for which there is another way."""


class Failed(Protocol):
    """A check: what cannot be used if it failed, `_REPLACED` products of a format or a kernel."""

    @property
    def kernel(self) -> str: ...
    @property
    def type_id(self) -> int: ...
    @property
    def passed(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Distrust:
    """Products of formats (ggml's numbers) that are wrong with int8 activations, or in every form.

    The first are computed with f16 activations, the others are kept as f16 numbers. With `apart` products of
    several formats are not computed in one launch. `broken` are kernels without a replacement: with one of
    them no model runs on the card.
    """

    int8: frozenset[int] = frozenset()
    unpacked: frozenset[int] = frozenset()
    broken: tuple[str, ...] = ()
    apart: bool = False

    @classmethod
    def after(cls, checks: Iterable[Failed]) -> Distrust:
        """What failed checks mean."""
        bad = [c for c in checks if not c.passed]
        unpacked = frozenset(c.type_id for c in bad if c.kernel == "packed")
        return cls(
            frozenset(c.type_id for c in bad if c.kernel == "int8") - unpacked,
            unpacked,
            tuple(dict.fromkeys(c.kernel for c in bad if c.kernel not in _REPLACED)),
            any(c.kernel == "together" for c in bad),
        )

    def notes(self, types: frozenset[int] | None = None) -> tuple[str, ...]:
        """Sentences for the user, on `types` alone where they are given."""
        int8 = self.int8 if types is None else self.int8 & types
        unpacked = self.unpacked if types is None else self.unpacked & types
        found = []
        if int8:
            found.append(
                f"This card computed wrong products of {_names(int8)} with 8-bit activations in its"
                " self-test; 16-bit ones are used instead, which is slower."
            )
        if unpacked:
            found.append(
                f"This card computed wrong products of {_names(unpacked)} in its self-test; such weights"
                " are kept as 16-bit numbers instead, which takes more memory and is slower."
            )
        if self.apart:
            found.append(
                "This card computed wrong products of several formats at once in its self-test; they are"
                " computed one after the other instead, which is slower."
            )
        if self.broken:
            found.append(
                f"This card failed its self-test ({'; '.join(self.broken)}), so models cannot run on it."
                " Choose the processor, and please report it with the output of `lucebox selftest`."
            )
        return tuple(found)


def distrust_of(name: str, driver: int, folder: Path | None) -> Distrust:
    """What the last self-test of this card, driver and kernels found; nothing if there was none."""
    if folder is None:
        return Distrust()
    try:
        found = json.loads(_file(name, folder).read_text(encoding="utf-8"))
        if (found["driver"], found["kernels"]) != (driver, fingerprint()):
            return Distrust()
        return Distrust(
            frozenset(int(t) for t in found["int8"]) & frozenset(TYPES),
            frozenset(int(t) for t in found["unpacked"]) & frozenset(TYPES),
            tuple(str(n) for n in found["broken"]),
            bool(found["apart"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return Distrust()


def remember(distrust: Distrust, name: str, driver: int, folder: Path) -> None:
    """Keep it for the next loads; a folder that cannot be written is only logged."""
    facts = {
        "name": name,
        "driver": driver,
        "kernels": fingerprint(),
        "int8": sorted(distrust.int8),
        "unpacked": sorted(distrust.unpacked),
        "broken": list(distrust.broken),
        "apart": distrust.apart,
    }
    try:
        write_atomically(_file(name, folder), json.dumps(facts).encode())
    except OSError as error:
        log.warning("The outcome of the self-test cannot be kept: %s", error)


def fingerprint() -> str:
    """Eight digits that change when a kernel does."""
    digest = hashlib.sha256()
    for path in sorted([*SOURCES.glob("*.cu"), *SOURCES.glob("include/*.cuh")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def version(cuda: int) -> str:
    """CUDA's version of a driver: 12040 is "CUDA 12.4"."""
    return f"CUDA {cuda // 1000}.{cuda % 1000 // 10}"


def _file(name: str, folder: Path) -> Path:
    return folder / f"selftest-{hashlib.sha256(name.encode()).hexdigest()[:12]}.json"


def _names(types: frozenset[int]) -> str:
    return ", ".join(TYPES[t].name for t in sorted(types))
