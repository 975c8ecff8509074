"""What goes wrong is logged, told, and offered at the next start."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import qWarning
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.crash import KILLED, Watch, diagnostics, fault_file, log_file
from engine.cli import EXIT_NO_DISPLAY

ROOT = Path(__file__).parents[2]


@pytest.fixture
def watch(qapp: QApplication) -> Iterator[Watch]:
    before = (sys.excepthook, threading.excepthook, logging.getLogger().level)
    made = Watch()
    yield made
    made.disarm()
    sys.excepthook, threading.excepthook = before[:2]
    logging.getLogger().setLevel(before[2])


def test_an_error_that_nobody_caught_is_logged_and_told(qtbot: QtBot, watch: Watch) -> None:
    with qtbot.waitSignal(watch.failed) as failed:
        try:
            raise ValueError("bad value")
        except ValueError as error:
            sys.excepthook(ValueError, error, error.__traceback__)
    assert failed.args == ["ValueError: bad value"]
    text = log_file().read_text(encoding="utf-8")
    assert "bad value" in text and "Traceback" in text


def test_an_error_in_a_thread_too(qtbot: QtBot, watch: Watch) -> None:
    def work() -> None:
        raise KeyError("lost")

    with qtbot.waitSignal(watch.failed) as failed:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert "lost" in failed.args[0]


def test_messages_of_qt_are_logged(watch: Watch) -> None:
    qWarning("a warning of Qt")
    assert "a warning of Qt" in log_file().read_text(encoding="utf-8")


def test_the_log_rotates(watch: Watch) -> None:
    for _ in range(300):
        logging.getLogger("test").info("x" * 10_000)
    files = list(log_file().parent.glob("lucebox.log*"))
    assert 2 <= len(files) <= 4
    assert sum(f.stat().st_size for f in files) < 4_100_000


def test_a_crash_is_known_at_the_next_start(watch: Watch, user_folders: Path) -> None:
    script = (
        "import ctypes; from PySide6.QtCore import QCoreApplication; from app.crash import Watch;"
        "app = QCoreApplication([]); watch = Watch(); watch.arm(); ctypes.string_at(0)"
    )
    died = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env=os.environ.copy(),
        capture_output=True,
        timeout=60,
    )
    assert died.returncode != 0
    watch.arm()
    assert "string_at" in watch.former
    watch.disarm()
    again = Watch()
    again.arm()
    again.disarm()
    assert again.former == "", "told once"


def test_a_clean_end_leaves_nothing(watch: Watch) -> None:
    watch.arm()
    watch.disarm()
    assert not fault_file().exists()


def test_a_run_that_was_killed_is_told(watch: Watch) -> None:
    file = fault_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"")
    watch.arm()
    assert watch.former == KILLED


def test_a_log_folder_that_cannot_be_made(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    block = tmp_path / "file"
    block.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(block))
    made = Watch()
    made.arm()
    logging.getLogger("test").warning("still alive")
    made.disarm()
    assert made.former == ""
    assert "no log" in diagnostics()


def test_a_program_without_streams(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", None)
    made = Watch()
    print("nowhere", file=sys.stderr)
    made.disarm()
    assert sys.stderr is not None and sys.stdout is not None


def test_diagnostics_hold_versions_and_the_log(watch: Watch) -> None:
    logging.getLogger("test").info("a line of the log")
    text = diagnostics("State: ready")
    for part in ("Python", "PySide6", "State: ready", "a line of the log", "GB memory"):
        assert part in text


@pytest.mark.skipif(sys.platform != "linux", reason="only X11 and Wayland displays may not answer")
def test_a_display_that_does_not_answer_is_told_in_plain_words(user_folders: Path) -> None:
    environment = {**os.environ, "DISPLAY": ":59000", "QT_QPA_PLATFORM": "xcb"}
    run = subprocess.run(
        [sys.executable, "-m", "engine.cli"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert run.returncode == EXIT_NO_DISPLAY
    assert "generate --demo" in run.stderr and "Abort" not in run.stderr
    assert "system library" in run.stderr, "Qt says no more than that it could not begin"
