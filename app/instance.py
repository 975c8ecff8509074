"""One running application for each user and data folder; later launches hand it their files."""

from __future__ import annotations

import getpass
import hashlib
import json
import logging
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from engine import paths

log = logging.getLogger(__name__)

CONNECT_MS = 500
ANSWER_MS = 3000
MOST_BYTES = 1_000_000


def server_name() -> str:
    """The socket's name: the same for the same user and data folder, and for nobody else."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    key = f"{user}\n{paths.data_dir().resolve()}"
    return f"lucebox-{hashlib.sha256(key.encode()).hexdigest()[:20]}"


class Instance(QObject):
    """Tries to be the first; see `claim`.

    Attributes:
        answered: False when there is a first that did not answer, so that nothing will happen there.

    Signals:
        called: another launch was made; carries its arguments, {"files": [...], "demo": bool}.
    """

    called = Signal(dict)

    def __init__(self, name: str | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._name = name or server_name()
        self.answered = True
        self._heard: dict[QLocalSocket, bytes] = {}
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._on_connection)

    def claim(self, message: dict[str, Any]) -> bool:
        """True when this launch is the first; else hand `message` to the first and return False."""
        if self._hand_over(message):
            return False
        if self._server.listen(self._name):
            return True
        # A launch at the same moment may have won, or a crash left the socket's file behind.
        if self._hand_over(message):
            return False
        QLocalServer.removeServer(self._name)
        if not self._server.listen(self._name):
            log.warning("Other launches cannot reach this one: %s", self._server.errorString())
        return True

    def release(self) -> None:
        """Let the next launch be the first."""
        self._server.close()

    def _hand_over(self, message: dict[str, Any]) -> bool:
        socket = QLocalSocket()
        socket.connectToServer(self._name)
        if not socket.waitForConnected(CONNECT_MS):
            return False
        socket.write(json.dumps(message).encode() + b"\n")
        sent = socket.waitForBytesWritten(CONNECT_MS)
        self.answered = sent and socket.waitForReadyRead(ANSWER_MS)
        socket.disconnectFromServer()
        return True

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
