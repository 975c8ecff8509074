"""One running application for each data folder; later launches hand it their files."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QLockFile, QObject, Signal, Slot

from engine import paths

if TYPE_CHECKING:
    from app.handover import Receiver

START_MS = (
    20_000  # how long a launch that has just become the first may take to listen, on a slow PC
)


class Instance(QObject):
    """Tries to be the first; see `claim`. The first then calls `listen`.

    Attributes:
        answered: False when there is a first that did not answer, so that nothing will happen there.

    Signals:
        called: another launch was made; carries its arguments, {"files": [...], "demo": bool}.
    """

    called = Signal(dict)

    def __init__(self, folder: Path | None = None, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.answered = True
        self._folder = folder or paths.data_dir()
        self._lock = QLockFile(str(self._folder / "instance.lock"))
        self._lock.setStaleLockTime(0)
        self._receiver: Receiver | None = None

    def claim(self, message: dict[str, Any]) -> bool:
        """True when this launch is the first; else hand `message` to the first and return False.

        A file's lock decides, since that takes no time; sockets where the folder cannot be written.
        """
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
        if self._lock.tryLock(0):
            return True
        from app.handover import hand_over, socket_name

        held = self._lock.error() == QLockFile.LockError.LockFailedError
        answered = hand_over(socket_name(self._folder), message, START_MS if held else 0)
        if answered is None and not held:
            return True
        self.answered = bool(answered)
        return False

    @Slot()
    def listen(self) -> None:
        """Hear later launches from now on."""
        from app.handover import Receiver, socket_name

        self._receiver = Receiver(socket_name(self._folder), self)
        self._receiver.called.connect(self.called)

    def release(self) -> None:
        """Let the next launch be the first."""
        if self._receiver is not None:
            self._receiver.close()
            self._receiver = None
        self._lock.unlock()
