"""How a launch hands its files to the application that runs: one line of JSON over a local socket."""

from __future__ import annotations

import getpass
import hashlib
import json
import logging
import time
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtNetwork import QLocalServer, QLocalSocket

log = logging.getLogger(__name__)

CONNECT_MS = 500
RETRY_MS = 50
ANSWER_MS = 10_000
MOST_BYTES = 1_000_000


def socket_name(folder: Path) -> str:
    """The same for the same user and data folder, and for nobody else."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    key = f"{user}\n{folder.resolve()}"
    return f"lucebox-{hashlib.sha256(key.encode()).hexdigest()[:20]}"


def hand_over(name: str, message: dict[str, Any], wait_ms: int = 0) -> bool | None:
    """Give `message` to the one that listens: whether it answered, None where nobody listens.

    One that has just started listens a moment later; `wait_ms` is how long to try.
    """
    end = time.monotonic() + wait_ms / 1000
    while True:
        socket = QLocalSocket()
        socket.connectToServer(name)
        if socket.waitForConnected(CONNECT_MS):
            break
        if time.monotonic() > end:
            return None
        time.sleep(RETRY_MS / 1000)
    socket.write(json.dumps(message).encode() + b"\n")
    answered = socket.waitForBytesWritten(CONNECT_MS) and socket.waitForReadyRead(ANSWER_MS)
    socket.disconnectFromServer()
    return answered


class Receiver(QObject):
    """Hears what later launches hand over; only the first makes one, so a socket there is a crash's rest.

    Signals:
        called: another launch was made; carries its arguments, {"files": [...], "demo": bool}.
    """

    called = Signal(dict)

    def __init__(self, name: str, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._heard: dict[QLocalSocket, bytes] = {}
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)
        if not self._server.listen(name):
            QLocalServer.removeServer(name)
            if not self._server.listen(name):
                log.warning("Other launches cannot reach this one: %s", self._server.errorString())

    def close(self) -> None:
        """Hear no more."""
        self._server.close()

    @Slot()
    def _on_connection(self) -> None:
        while self._server.hasPendingConnections():
            socket = self._server.nextPendingConnection()
            self._heard[socket] = b""
            socket.readyRead.connect(self._read)
            socket.disconnected.connect(self._forget)
        self._read()

    @Slot()
    def _read(self) -> None:
        """Take what has come: one line of JSON for each connection."""
        for socket in list(self._heard):
            self._heard[socket] += bytes(socket.readAll().data())
            line, end, _ = self._heard[socket].partition(b"\n")
            if end:
                self._heard[socket] = b""
                socket.write(b"ok\n")
                socket.flush()
                self._take(line)
            elif len(line) > MOST_BYTES:
                socket.abort()

    @Slot()
    def _forget(self) -> None:
        for socket in list(self._heard):
            if socket.state() == QLocalSocket.LocalSocketState.UnconnectedState:
                del self._heard[socket]
                socket.deleteLater()

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line)
            files = [str(Path(f)) for f in message["files"] if isinstance(f, str)]
            self.called.emit({"files": files, "demo": message.get("demo") is True})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("Another launch sent something that cannot be read: %s", error)
