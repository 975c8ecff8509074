"""Python's garbage collection, kept on the GUI thread."""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, QTimer, Slot

CHECK_MS = 250


class Collector(QObject):
    """Takes collection over from Python, which runs it in whatever thread happens to allocate.

    A cycle that holds a widget would then be taken apart on the engine's thread, and Qt crashes.
    Make one in the GUI thread once the QApplication is there. It begins with the first `keep`, for to go
    through all that the start brings takes 20 ms; `end` gives the work back.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._thresholds = gc.get_threshold()
        gc.disable()
        self._timer = QTimer(self, interval=CHECK_MS)
        self._timer.timeout.connect(self.check)

    @Slot()
    def check(self) -> None:
        """Collect the oldest generation that is due, and with it the younger ones."""
        due = -1
        for count, most in zip(gc.get_count(), self._thresholds, strict=True):
            if not most or count <= most:
                break
            due += 1
        if due >= 0:
            gc.collect(due)

    def keep(self) -> None:
        """Leave what exists now out of later collections: imported modules stay to the end."""
        gc.freeze()
        self._timer.start()

    def end(self) -> None:
        """Let Python collect as it likes again."""
        self._timer.stop()
        gc.unfreeze()
        gc.enable()
