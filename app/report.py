"""What the user is told when something fails: what, why, what to do, and the details to copy."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QCoreApplication

from app.i18n import told


@dataclass(frozen=True, slots=True)
class Way:
    """A way out: what is done, what is lost, its need and speed in words ("" unknown), and doing it."""

    title: str
    note: str
    need: str
    speed: str
    take: Callable[[], None]


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """The parts of a failure; `ways` are shown as rows, `fixes` are button texts with what they do, both
    best first."""

    title: str
    why: str
    fixes: tuple[tuple[str, Callable[[], None]], ...] = ()
    details: str = ""
    ways: tuple[Way, ...] = ()


def report_of(error: BaseException, title: str) -> ErrorReport:
    """A report from an exception: an `EngineError` speaks for itself, others are named as our fault."""
    from engine.errors import EngineError

    if isinstance(error, EngineError):
        why = told(str(error))
    else:
        why = QCoreApplication.translate(
            "ErrorReport", "An error in the application: {error}. The log has the details."
        ).format(error=f"{type(error).__name__}: {error}")
    return ErrorReport(title, why, details="".join(traceback.format_exception(error)))
