"""Makes pages before they are visited, so that the first click on one of them waits for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer, Slot
from PySide6.QtWidgets import QWidget

if TYPE_CHECKING:
    from app.window import MainWindow

EVERY_MS = 20  # a step takes a few milliseconds, so most of the time is left to all else
AT_ONCE = 40


class Ahead(QTimer):
    """Makes one page after the other, a step at each tick, from `begin` on."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window, interval=EVERY_MS)
        self._window = window
        self._begun = False
        self._steps: Iterator[None] = iter(())
        self.timeout.connect(self._step)

    def begin(self) -> None:
        """Make the pages that the rail offers."""
        self._begun = True
        self.again()

    def again(self) -> None:
        """Make what came to the rail since, or what was taken away for another language."""
        if self._begun:
            self._steps = self._all()
            self.start()

    def _all(self) -> Iterator[None]:
        for name in self._window.offered:
            yield from self._window.prepare(name)

    @Slot()
    def _step(self) -> None:
        if next(self._steps, self) is self:
            self.stop()


def settle(part: QWidget, room: QWidget) -> Iterator[None]:
    """Do in steps what Qt does when `part` is first shown in `room`: styles and places of all in it."""
    part.resize(room.size())
    inside = [part, *part.findChildren(QWidget)]
    for at in range(0, len(inside), AT_ONCE):
        for widget in inside[at : at + AT_ONCE]:
            widget.ensurePolished()
        yield
    for widget in inside:
        if (layout := widget.layout()) is not None:
            layout.activate()
    yield
