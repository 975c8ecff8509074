"""What a page shows of a load: progress with numbers and Cancel, or why it failed."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from app.models.opener import Opener
from app.models.task import Task
from app.models.words import memory_parts, translate
from app.page import Services
from app.report import ErrorReport
from app.theme import theme
from app.widgets import (
    EndNote,
    ErrorCard,
    MemoryBar,
    MemoryKeys,
    ProgressLine,
    Shrinkable,
    button,
    done_of,
    gigabytes,
    label,
)
from engine.types import LoadProgress

if TYPE_CHECKING:
    from engine.placement import Estimate

_CARD_WIDTH = 712
_LONG_S = 3.0  # What is compiled already is there before that.
_SURE_S = 2.0  # The first moments of a download are a connection being made: no rate yet.


class LoadPanel(QWidget):
    """Hidden until a load begins; a failed one leaves a card until it is closed or tried again.

    `inset` px at both sides, by default the margin of a page.

    Signals:
        closed: the card was closed or the load is over, and the keyboard needs another place.
    """

    closed = Signal()

    def __init__(
        self,
        services: Services,
        opener: Opener,
        inset: int | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._controller = services.controller
        self._opener = opener
        self._stage_began = 0.0
        self._read = False
        self._progress_was: LoadProgress | None = None
        self._tick = QTimer(self, interval=1000, singleShot=True)
        self._tick.timeout.connect(self._show_progress)
        self._card: ErrorCard | None = None
        self._line = ProgressLine(self.tr("Loading"))
        self._progress = self._make_progress()
        self._column = QVBoxLayout(self)
        side = theme().space(6) if inset is None else inset
        self._column.setContentsMargins(side, theme().space(3), side, 0)
        self._column.addWidget(self._progress)
        self._middle = QHBoxLayout()  # a card that is as wide as it may be stands in its middle
        self._column.addLayout(self._middle)
        self._controller.state_changed.connect(self._on_state)
        self._controller.load_progress.connect(self._on_progress)
        opener.began.connect(self._on_began)
        opener.task_began.connect(self._on_task)
        opener.failed.connect(self.show_failure)
        opener.failure_forgotten.connect(self._dismiss)
        theme().changed.connect(self._fit)
        self._progress.hide()
        self._on_state(self._controller.state)

    @property
    def card(self) -> ErrorCard | None:
        """The card of the last failure, while it shows."""
        return self._card

    def focus_first(self) -> None:
        """The first way out of a failure, or Cancel."""
        if self._card is not None:
            self._card.focus_first()
        else:
            self._cancel.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot(object)
    def show_failure(self, report: ErrorReport) -> None:
        """Put up the card of a failure, in the page and not in the way."""
        self._dismiss()
        card = ErrorCard(report)
        card.dismissed.connect(self._on_closed)
        estimate = self._opener.failed_estimate
        if estimate is not None:
            column = card.layout()
            assert isinstance(column, QVBoxLayout)
            column.insertWidget(1, _bar_of(estimate))
        self._card = card
        self._place = Shrinkable(card)
        self._fit()
        self._middle.addWidget(self._place)
        self._update_visible()
        if self.isVisible():
            card.focus_first()

    @Slot()
    def _fit(self) -> None:
        if self._card is not None:
            self._place.setMaximumWidth(round(_CARD_WIDTH * theme().scale))

    def _make_progress(self) -> QFrame:
        frame = QFrame()
        frame.setProperty("kind", "card")
        row = QHBoxLayout(frame)
        row.setContentsMargins(16, 12, 12, 12)
        row.setSpacing(theme().space(4))
        row.addWidget(self._line, 1)
        self._cancel = button(self.tr("Cancel"), self._opener.cancel)
        row.addWidget(self._cancel)
        return frame

    @Slot(str)
    def _on_state(self, state: str) -> None:
        loading = state == "loading"
        if loading and not self._progress.isVisibleTo(self):
            self._on_began(self._controller.loading)
            if self._controller.progress is not None:  # A page that is built while a model loads.
                self._on_progress(self._controller.progress)
        self._update_visible()

    @Slot(object)
    def _on_began(self, _path: object) -> None:
        self._dismiss()
        self._stage_began = time.monotonic()
        self._read = False
        self._progress_was = None
        self._line.set_progress(0, 1, self._name(), self.tr("opening the file"))

    @Slot(object)
    def _on_task(self, task: Task) -> None:
        self._on_began(None)
        self._line.set_progress(0, 1, task.name, self.tr("beginning"))
        task.progressed.connect(self._on_task_progress)
        for ended in (task.done, task.failed, task.stopped):
            ended.connect(self._update_visible)
        self._update_visible()

    @Slot(tuple)
    def _on_task_progress(self, at: tuple[int, int]) -> None:
        task, (done, total) = self._opener.task, at
        if task is not None and task.running and total:
            numbers = self._numbers(LoadProgress("", done, total))
            self._line.set_progress(done, total, task.name, numbers)

    @Slot(object)
    def _on_progress(self, progress: LoadProgress) -> None:
        if self._progress_was is None or self._progress_was.stage != progress.stage:
            self._stage_began = time.monotonic()
            self._read = self._read or progress.stage == "reading"
        self._progress_was = progress
        self._show_progress()

    @Slot()
    def _show_progress(self) -> None:
        """Also once a second, because nothing comes of it while something is compiled."""
        progress = self._progress_was
        if progress is not None and self._controller.state == "loading":
            self._tick.start()
            done, total = progress.done, progress.total
            if progress.stage != "reading" and total <= 1:
                done, total = (1, 1) if self._read else (0, 1)
            self._line.set_progress(done, total, self._name(), self._numbers(progress))

    @Slot()
    def _on_closed(self) -> None:
        self._opener.forget_failure()
        self.closed.emit()

    @Slot()
    def _dismiss(self) -> None:
        if self._card is not None:
            self._place.hide()
            self._place.deleteLater()
            self._card = None
        self._update_visible()

    @Slot()
    def _update_visible(self) -> None:
        task = self._opener.task
        busy = self._controller.state == "loading" or (task is not None and task.running)
        if not busy and self._cancel.hasFocus():
            self.closed.emit()
        self._progress.setVisible(busy)
        self.setVisible(self._card is not None or busy)

    def _name(self) -> str:
        path = self._controller.loading
        return self.tr("Loading {name}").format(name=path.name if path else "")

    def _numbers(self, progress: LoadProgress) -> str:
        """Read and total, the rate, and the time that is left at that rate."""
        if progress.stage == "warming up":
            return self.tr("warming up")
        if progress.stage == "preparing":
            return self._preparing(progress)
        done, total = done_of(progress.done, progress.total)
        parts = [self.tr("{done} of {total}").format(done=done, total=total)]
        seconds = time.monotonic() - self._stage_began
        if progress.done >= progress.total:
            parts.append(self.tr("finishing"))
        elif progress.done and seconds > _SURE_S:
            rate = progress.done / seconds
            parts.append(self.tr("{rate} a second").format(rate=gigabytes(rate)))
            parts.append(self._left((progress.total - progress.done) / rate))
        return " · ".join(parts)

    def _left(self, seconds: float) -> str:
        if seconds < 90:
            return self.tr("{n} s left").format(n=f"{seconds:.0f}")
        if seconds < 90 * 60:
            return self.tr("{n} min left").format(n=f"{seconds / 60:.0f}")
        return self.tr("{n} h left").format(n=f"{seconds / 3600:.0f}")

    def _preparing(self, progress: LoadProgress) -> str:
        seconds = time.monotonic() - self._stage_began
        if progress.total:
            done = self.tr("{done} of {total} parts").format(
                done=progress.done, total=progress.total
            )
        elif seconds >= _LONG_S:
            done = self.tr("{n} s").format(n=f"{seconds:.0f}")
        else:
            return self.tr("preparing")
        return " · ".join((self.tr("compiling for this PC, only the first time"), done))


def _bar_of(estimate: Estimate) -> QWidget:
    """The memory that was asked for, running past the end of what there is."""
    part = QWidget()
    parts = memory_parts(estimate.parts)
    column = QVBoxLayout(part)
    column.setContentsMargins(24, 0, 24, 16)
    column.setSpacing(theme().space(2))
    end, need = estimate.device.memory_total, sum(p.bytes for p in parts)
    if need > end:
        text = translate("models", "memory ends here, {size}").format(size=gigabytes(end))
        column.addWidget(EndNote(text, end / need))
    column.addWidget(MemoryBar(parts, capacity=end))
    column.addWidget(MemoryKeys(parts, columns=3))
    over = estimate.total - estimate.available
    if over > 0:
        text = translate("models", "{size} over").format(size=gigabytes(over))
        column.addWidget(label(text, "bad"), 0, Qt.AlignmentFlag.AlignRight)
    return part
