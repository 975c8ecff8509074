"""One application for each data folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtNetwork import QLocalSocket
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app import handover, instance
from app.handover import socket_name
from app.instance import Instance

ROOT = Path(__file__).parents[2]
MESSAGE = {"files": ["/a b/ü.gguf"], "demo": False}


CALL = """
import json, os, sys
from pathlib import Path
from app.instance import Instance
launch = Instance(Path(sys.argv[1]))
print(launch.claim(json.loads(sys.argv[2])), launch.answered, flush=True)
if "dies" in sys.argv:
    launch.listen()
    os._exit(9)
"""


def launch(folder: Path, *more: str) -> subprocess.Popen[str]:
    """A launch of another process; prints whether it is the first, and whether the first answered."""
    command = [sys.executable, "-c", CALL, str(folder), json.dumps(MESSAGE), *more]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def said(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=20)[0].strip()


def claimed(folder: Path) -> Instance:
    """The first launch; it does not listen yet."""
    made = Instance(folder)
    assert made.claim({"files": [], "demo": False})
    return made


def is_told(
    qtbot: QtBot, first: Instance, folder: Path, meanwhile: Callable[[], None] = lambda: None
) -> None:
    """Another launch hands its files over to the first and is answered; then the first ends."""
    with qtbot.waitSignal(first.called) as called:
        second = launch(folder)
        meanwhile()
    assert said(second) == "False True"
    assert called.args == [MESSAGE]
    first.release()


def test_the_first_is_the_first(qapp: QApplication, tmp_path: Path) -> None:
    assert Instance(tmp_path / "new").claim(MESSAGE)


def test_a_second_launch_hands_its_files_over(qtbot: QtBot, tmp_path: Path) -> None:
    first = claimed(tmp_path)
    first.listen()
    is_told(qtbot, first, tmp_path)


def test_a_first_that_has_just_started_is_waited_for(qtbot: QtBot, tmp_path: Path) -> None:
    first = claimed(tmp_path)

    def meanwhile() -> None:
        qtbot.wait(600)
        first.listen()

    is_told(qtbot, first, tmp_path, meanwhile)


@pytest.mark.parametrize("listens", (True, False))
def test_a_first_that_does_not_answer_is_noticed(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, listens: bool
) -> None:
    """Nobody serves the first one's events here."""
    monkeypatch.setattr(handover, "ANSWER_MS", 50)
    monkeypatch.setattr(instance, "START_MS", 50)
    first = claimed(tmp_path)
    if listens:
        first.listen()
    second = Instance(tmp_path)
    assert not second.claim(MESSAGE)
    assert not second.answered
    first.release()


def test_after_the_end_the_next_is_first(qapp: QApplication, tmp_path: Path) -> None:
    first = claimed(tmp_path)
    first.listen()
    first.release()
    assert Instance(tmp_path).claim(MESSAGE)


def test_what_a_crash_left_is_taken_over(qtbot: QtBot, tmp_path: Path) -> None:
    died = launch(tmp_path, "dies")
    assert said(died) == "True True" and died.returncode == 9
    assert (tmp_path / "instance.lock").exists(), "a dead lock lies there"
    first = claimed(tmp_path)
    first.listen()
    is_told(qtbot, first, tmp_path)


def test_where_no_lock_can_be_written_the_socket_decides(qtbot: QtBot, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    folder = blocked / "data"
    first = claimed(folder)
    first.listen()
    is_told(qtbot, first, folder)


def test_nonsense_is_ignored(
    qtbot: QtBot, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = claimed(tmp_path)
    first.listen()
    with qtbot.assertNotEmitted(first.called, wait=100):
        for bad in (
            b"\xff\xfe\n",
            b"[]\n",
            b'{"files": 3}\n',
            b'"text"\n',
            b"{}\n",
            b"x" * 2_000_000,
        ):
            socket = QLocalSocket()
            socket.connectToServer(socket_name(tmp_path))
            assert socket.waitForConnected(2000)
            socket.write(bad)
            socket.flush()
            QCoreApplication.processEvents()
            socket.abort()
    qtbot.waitUntil(lambda: "cannot be read" in caplog.text)
    is_told(qtbot, first, tmp_path)


def test_the_name_depends_on_the_data_folder(tmp_path: Path) -> None:
    name = socket_name(tmp_path)
    assert name == socket_name(tmp_path)
    assert name != socket_name(tmp_path / "elsewhere")
