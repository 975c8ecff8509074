"""Python's garbage collection, kept on the GUI thread."""

from __future__ import annotations

import gc

from PySide6.QtCore import QObject, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication

CHECK_MS = 50
# A collection takes as long as there are objects in it: many small ones stay below a frame's time. The
# count of young objects is less those old ones that went, so a low count means little, but idleness.
YOUNG, MIDDLE, OLD, OLD_AT_WORK = 200, 2, 200, 2000


class Collector(QObject):
    """Takes collection over from Python, which runs it in whatever thread happens to allocate.

    A cycle that holds a widget would then be taken apart on the engine's thread, and Qt crashes.
    Make one in the GUI thread once the QApplication is there. It begins with the first `keep`, for to go
    through all that the start brings takes 20 ms; `end` gives the work back.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        gc.disable()
        self._timer = QTimer(self, interval=CHECK_MS)
        self._timer.timeout.connect(self.check)

    @Slot()
    def check(self) -> None:
        """Collect what is due; all that has lived long only while the user is elsewhere, or at last."""
        young, middle, old = gc.get_count()
        if young <= YOUNG:
            return
        away = QGuiApplication.applicationState() != Qt.ApplicationState.ApplicationActive
        if middle <= MIDDLE:
            gc.collect(0)
        elif old <= (OLD if away else OLD_AT_WORK):
            gc.collect(1)
        else:
            gc.collect()

    def keep(self) -> None:
        """Leave what exists now out of later collections: imported modules stay to the end."""
        gc.freeze()
        self._timer.start()

    def end(self) -> None:
        """Let Python collect as it likes again."""
        self._timer.stop()
        gc.unfreeze()
        gc.enable()
