"""The `lucebox` command: stdout is data, stderr is talk."""

from __future__ import annotations

import argparse
import errno
import gc
import json
import logging
import logging.handlers
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from engine import paths
from engine.errors import (
    BadRequest,
    EngineError,
    LoadCancelled,
    ModelFileError,
    OutOfMemory,
    UnsupportedModel,
)
from engine.parser import EXIT_USAGE
from engine.version import version

EXIT_OK = 0
EXIT_FAILED = 1
EXIT_NO_DISPLAY = 3
EXIT_MODEL = 4
EXIT_MEMORY = 5
EXIT_STOPPED = 130
EXIT_PIPE = 141

NO_DISPLAY = """There is no display, so the window cannot open. These commands need none:

    lucebox generate --demo --prompt "Hello"    (from the checkout: ./start generate ...)
    lucebox bench --demo
    lucebox --help"""

log = logging.getLogger(__name__)


class Console:
    """Where a command writes: data to stdout, talk to stderr."""

    def __init__(self, quiet: bool = False) -> None:
        self.quiet = quiet
        self.live = not quiet and sys.stderr.isatty()
        self._progress = False

    def data(self, text: str, end: str = "\n") -> None:
        """Write what the command is for."""
        self.clear()
        sys.stdout.write(text + end)
        sys.stdout.flush()

    def json(self, facts: dict[str, Any] | list[int]) -> None:
        """Write what the command is for as JSON, in one line."""
        self.data(json.dumps(facts, ensure_ascii=False, allow_nan=False))

    def say(self, text: str) -> None:
        """Tell the user something, unless that was not wanted."""
        self.clear()
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    def progress(self, text: str) -> None:
        """Show how far a long task is, in place; only on a terminal."""
        if self.live:
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
            self._progress = True

    def clear(self) -> None:
        """Take the progress line away."""
        if self._progress:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._progress = False


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; without a command open the application."""
    try:
        return _main(list(sys.argv[1:] if argv is None else argv))
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return EXIT_STOPPED


def _main(arguments: list[str]) -> int:
    if not arguments:
        return open_app(arguments)  # at once: the flags of all commands take longer than the window
    from engine.command_line import build_parser  # here, for the window needs none of it

    parser, commands = build_parser()
    if opens_the_window(arguments, commands):
        return open_app(arguments)
    try:
        args = parser.parse_args(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else EXIT_USAGE
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        print("lucebox: stdout is closed, so there is nowhere to write.", file=sys.stderr)
        return EXIT_FAILED
    for stream in (sys.stdout, sys.stderr):
        _use_utf8(stream)
    console = Console(getattr(args, "quiet", False))
    handler = _start_log()
    try:
        return _run(args, console)
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def _run(args: argparse.Namespace, console: Console) -> int:
    """Carry out a command; every failure becomes one sentence and an exit code."""
    try:
        if args.command == "version":
            console.data(version())
        else:
            # Loaded here, so that help and version need no NumPy.
            from engine import commands, draft_commands

            name = args.command.replace("-", "_")
            getattr(commands if hasattr(commands, name) else draft_commands, name)(args, console)
        return EXIT_OK
    except BrokenPipeError:
        _drop_output()
        return EXIT_PIPE
    except (KeyboardInterrupt, LoadCancelled):
        console.clear()
        print("Stopped.", file=sys.stderr)
        return EXIT_STOPPED
    except EngineError as error:
        console.clear()
        print(f"lucebox: {_printable(str(error))}", file=sys.stderr)
        return exit_code(error)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            return _unforeseen(args, error, console)
        _drop_output()
        console.clear()
        print(
            "lucebox: The disk that the output or the log goes to is full. Make room and try again.",
            file=sys.stderr,
        )
        return EXIT_FAILED
    except Exception as error:
        return _unforeseen(args, error, console)


def _unforeseen(args: argparse.Namespace, error: Exception, console: Console) -> int:
    log.error("The command %s failed", args.command, exc_info=error)
    console.clear()
    print(
        f"lucebox: An error that was not foreseen: {type(error).__name__}: {error}. "
        f"{_log_file()} has the details; please report it.",
        file=sys.stderr,
    )
    return EXIT_FAILED


def _drop_output() -> None:
    """What is still buffered must not be written to a broken stdout when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _printable(text: str) -> str:
    """A file's name may hold line ends and escape codes; a message is one line of plain text."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def exit_code(error: EngineError) -> int:
    """The documented exit code of an error."""
    if isinstance(error, (ModelFileError, UnsupportedModel)):
        return EXIT_MODEL
    if isinstance(error, OutOfMemory):
        return EXIT_MEMORY
    return EXIT_USAGE if isinstance(error, BadRequest) else EXIT_FAILED


def opens_the_window(arguments: Sequence[str], commands: Sequence[str]) -> bool:
    """Whether a command line asks for the application: nothing, `--demo`, or model files first."""
    if not arguments:
        return True
    first = arguments[0]
    if first in commands or first in ("-h", "--help"):
        return False
    return first == "--demo" or first.lower().endswith(".gguf") or os.path.exists(first)


def open_app(arguments: Sequence[str]) -> int:
    """Open the window where there is a display."""
    if sys.platform == "linux" and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    ):
        print(NO_DISPLAY, file=sys.stderr)
        return EXIT_NO_DISPLAY
    gc.disable()  # the application's collector takes over; to look for garbage in imports takes 20 ms
    from app.main import main as run

    code = run(arguments)
    # All is saved and ended. Python would now look for garbage in everything that numba made, for seconds.
    gc.freeze()
    return code


def _use_utf8(stream: IO[Any]) -> None:
    """Write UTF-8 whatever the locale; what is not a character of it is written escaped."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure:
        reconfigure(encoding="utf-8", errors="backslashreplace")


def _log_file() -> Path:
    return paths.log_dir() / "lucebox-cli.log"


def _start_log() -> logging.Handler:
    """Send warnings and tracebacks to a rotating file, which appears with the first of them."""
    try:
        paths.log_dir().mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = logging.handlers.RotatingFileHandler(
            _log_file(), maxBytes=1 << 20, backupCount=2, encoding="utf-8", delay=True
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setLevel(logging.WARNING)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.getLogger().addHandler(handler)
    return handler


if __name__ == "__main__":
    sys.exit(main())
