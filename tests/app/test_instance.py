"""One application for each user and data folder."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QThread
from PySide6.QtNetwork import QLocalServer, QLocalSocket
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

import app.instance
from app.instance import Instance, server_name

MESSAGE = {"files": ["/a b/ü.gguf"], "demo": False}


@pytest.fixture
def name(qapp: QApplication) -> Iterator[str]:
    made = f"lucebox-test-{uuid.uuid4().hex}"
    yield made
    QLocalServer.removeServer(made)


class Caller(QThread):
    """A second launch, which blocks while the first answers."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.first: bool | None = None

    def run(self) -> None:
        self.first = Instance(self.name).claim(MESSAGE)


def test_the_first_is_the_first(name: str) -> None:
    assert Instance(name).claim(MESSAGE)


def test_a_second_launch_hands_its_files_over(qtbot: QtBot, name: str) -> None:
    first = Instance(name)
    assert first.claim({"files": [], "demo": False})
    caller = Caller(name)
    with qtbot.waitSignal(first.called, timeout=5000) as called:
        caller.start()
    qtbot.waitUntil(caller.isFinished, timeout=5000)
    assert caller.first is False
    assert called.args == [{"files": [str(Path("/a b/ü.gguf"))], "demo": False}]


def test_a_first_that_does_not_answer_is_noticed(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Nobody serves the first one's events here."""
    monkeypatch.setattr(app.instance, "ANSWER_MS", 50)
    first = Instance(name)
    assert first.claim(MESSAGE)
    second = Instance(name)
    assert not second.claim(MESSAGE)
    assert not second.answered


def test_after_the_end_the_next_is_first(name: str) -> None:
    first = Instance(name)
    assert first.claim(MESSAGE)
    first.release()
    assert Instance(name).claim(MESSAGE)


def test_a_socket_that_a_crash_left_is_taken_over(name: str, tmp_path: Path) -> None:
    server = QLocalServer()
    assert server.listen(name)
    file = Path(server.fullServerName())
    kept = tmp_path / "kept"
    file.rename(kept)
    server.close()
    kept.rename(file)
    assert file.exists(), "a dead socket lies there"
    assert Instance(name).claim(MESSAGE)


def test_nonsense_is_ignored(qtbot: QtBot, name: str, caplog: pytest.LogCaptureFixture) -> None:
    first = Instance(name)
    assert first.claim(MESSAGE)
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
            socket.connectToServer(name)
            assert socket.waitForConnected(2000)
            socket.write(bad)
            socket.flush()
            QCoreApplication.processEvents()
            socket.abort()
    qtbot.waitUntil(lambda: "cannot be read" in caplog.text, timeout=5000)
    caller = Caller(name)
    with qtbot.waitSignal(first.called, timeout=5000):
        caller.start()
    qtbot.waitUntil(caller.isFinished, timeout=5000)


def test_the_name_depends_on_the_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    before = server_name()
    assert before == server_name()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "elsewhere"))
    assert server_name() != before
