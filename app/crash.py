"""Logs, hooks and what is known of a crash: nothing that goes wrong stays unseen."""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import logging.handlers
import os
import platform
import sys
import threading
import types
from pathlib import Path
from typing import IO

import PySide6
from PySide6.QtCore import (
    QMessageLogContext,
    QObject,
    QtMsgType,
    Signal,
    qInstallMessageHandler,
    qVersion,
)

from engine import paths

log = logging.getLogger(__name__)

LOG_BYTES, LOG_FILES = 1_000_000, 3
TAIL_BYTES = 20_000
KILLED = "No stacks were left: the process was ended from outside, as when memory runs out."

_LEVELS = {
    QtMsgType.QtDebugMsg: logging.DEBUG,
    QtMsgType.QtInfoMsg: logging.INFO,
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}


def log_file() -> Path:
    """The newest of the rotating logs."""
    return paths.log_dir() / "lucebox.log"


def fault_file() -> Path:
    """Where Python writes the stacks when the process dies by a signal."""
    return paths.log_dir() / "fault.txt"


class Watch(QObject):
    """Takes every unhandled error of this process; make one, early, and keep it.

    Attributes:
        former: the stacks that the last run left when it died, or what is known without any; else "".

    Signals:
        failed: an exception that nobody caught, as text; may come from any thread, so connect queued.
    """

    failed = Signal(str)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.former = ""
        self._fault: IO[str] | None = None
        self._armed_before = faulthandler.is_enabled()
        _give_streams()
        self._start_log()
        sys.excepthook = self._on_exception
        threading.excepthook = self._on_thread_exception
        qInstallMessageHandler(_on_qt_message)

    def arm(self) -> None:
        """Read what the last run left and begin a new fault file; only the first instance calls this."""
        file = fault_file()
        try:
            if file.exists():
                left = file.read_text(encoding="utf-8", errors="replace").strip()
                # A clean end takes the file away; who is killed from outside leaves it empty.
                self.former = left or KILLED
            file.parent.mkdir(parents=True, exist_ok=True)
            self._fault = file.open("w", encoding="utf-8")
            faulthandler.enable(self._fault)
        except OSError as error:
            log.warning("No fault file: %s", error)
            faulthandler.enable()

    def disarm(self) -> None:
        """Give the hooks back and close the files, at a clean end."""
        faulthandler.disable()
        if self._armed_before:
            faulthandler.enable(sys.__stderr__ or sys.stderr)
        if self._fault is not None:
            self._fault.close()
            self._fault = None
            with contextlib.suppress(OSError):
                fault_file().unlink()
        sys.excepthook = sys.__excepthook__
        threading.excepthook = threading.__excepthook__
        qInstallMessageHandler(None)
        logging.getLogger().removeHandler(self._handler)
        logging.getLogger().removeHandler(self._talk)
        self._handler.close()

    def _start_log(self) -> None:
        form = logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s")
        self._handler: logging.Handler
        try:
            log_file().parent.mkdir(parents=True, exist_ok=True)
            self._handler = logging.handlers.RotatingFileHandler(
                log_file(), maxBytes=LOG_BYTES, backupCount=LOG_FILES, encoding="utf-8"
            )
        except OSError:
            self._handler = logging.StreamHandler()
        self._handler.setFormatter(form)
        self._talk = logging.StreamHandler()
        self._talk.setLevel(logging.ERROR)
        root = logging.getLogger()
        root.addHandler(self._handler)
        root.addHandler(self._talk)
        root.setLevel(logging.INFO)

    def _on_exception(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: types.TracebackType | None,
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        log.critical("An error that nobody caught", exc_info=(kind, error, trace))
        self.failed.emit(f"{kind.__name__}: {error}")

    def _on_thread_exception(self, args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None:
            self._on_exception(args.exc_type, args.exc_value, args.exc_traceback)


def _give_streams() -> None:
    """A windowed program has no stderr, and a write to None would be an error of its own."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open to the end


_LIBRARIES = """If there is one, a system library that Qt needs is missing: ./start looks for those and
installs them, or prints the line that does."""


def _on_qt_message(kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
    if kind == QtMsgType.QtFatalMsg and "platform plugin" in message:
        # A display is named that does not answer; Qt would abort now, with words for developers.
        from engine import cli

        log.info("%s", message)
        print(cli.NO_DISPLAY, file=sys.stderr)
        print(f"\n{_LIBRARIES}", file=sys.stderr)
        os._exit(cli.EXIT_NO_DISPLAY)
    level = _LEVELS.get(kind, logging.WARNING)
    logging.getLogger("qt").log(level, "%s", message)


def diagnostics(extra: str = "") -> str:
    """What a bug report needs: versions, system, `extra` and the log's end; no text of any chat."""
    import psutil

    from engine.version import version

    lines = [
        f"Lucebox {version()}, Python {platform.python_version()}, PySide6 {PySide6.__version__},"
        f" Qt {qVersion()}",
        f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} CPUs,"
        f" {psutil.virtual_memory().total / 2**30:.1f} GB memory",
    ]
    if extra:
        lines += ["", extra.rstrip()]
    lines += ["", f"Log ({log_file()}):", _tail(log_file())]
    return "\n".join(lines)


def _tail(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            stream.seek(0, os.SEEK_END)
            stream.seek(max(stream.tell() - TAIL_BYTES, 0))
            return stream.read().decode("utf-8", "replace").strip()
    except OSError as error:
        return f"no log: {error}"
