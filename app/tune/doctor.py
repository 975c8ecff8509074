"""The draft doctor in the window: how well a draft guesses, what was compared, and why not better."""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from app.i18n import told
from app.live.bars import PositionBars
from app.models.jobs import Jobs
from app.theme import theme
from app.widgets import Note, ProgressLine, button, label
from engine.errors import EngineError, LoadCancelled

if TYPE_CHECKING:
    import threading

    from engine.draft.check import Report

_EVERY_MS = 100


class Doctor(QWidget):
    """Examines one draft at a time.

    Signals:
        ended: an examination is over, with a report or without.
    """

    ended = Signal()

    def __init__(self, jobs: Jobs) -> None:
        super().__init__()
        self._jobs = jobs
        self._cancel: threading.Event | None = None
        self._told: deque[tuple[int, int, str]] = deque(maxlen=1)
        self.report: Report | None = None
        self._what = label("", "small")
        self._line = ProgressLine(self.tr("Examining"))
        self._stop = button(self.tr("Stop"), self.stop, icon="stop")
        self._copy = button(self.tr("Copy report"), self._on_copy, kind="quiet", icon="copy")
        self._bars = PositionBars(self.tr("Accepted at draft position, percent"))
        self._summary = label("", "small", wrap=True)
        self._good, self._bad = Note("good", ""), Note("bad", "")
        self._list = QWidget()
        self._grid = QGridLayout(self._list)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setVerticalSpacing(theme().space(1))
        self._grid.setColumnStretch(1, 1)
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self._on_tick)
        head = QHBoxLayout()
        head.setSpacing(theme().space(2))
        head.addWidget(label(self.tr("Draft doctor"), "section"))
        head.addWidget(self._what, 1)
        head.addWidget(self._stop)
        head.addWidget(self._copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme().space(2))
        column.addLayout(head)
        for widget in (
            self._line, self._bars, self._summary, self._good, self._bad, self._list,
        ):  # fmt: skip
            column.addWidget(widget)
        self._show_parts(report=False)

    @property
    def running(self) -> bool:
        """Whether an examination goes on."""
        return self._cancel is not None

    def begin(self, target: Path, draft: Path) -> None:
        """Examine a draft for a model, in place of what is being examined."""
        self.stop()
        self.report = None
        self._told.clear()
        self._what.setText(
            self.tr("{draft} on {model}").format(draft=draft.stem, model=target.stem)
        )
        self._line.set_progress(0, 1, self.tr("Loading the model once more"), "")

        def work(cancel: threading.Event) -> Report:
            from engine.draft.check import check_draft

            return check_draft(
                target, draft, on_progress=lambda *progress: self._told.append(progress),
                cancel=cancel,
            )  # fmt: skip

        self._cancel = self._jobs.run(self, work, self._on_done, self._on_failed)
        self._timer.start()
        self._show_parts(report=False)

    @Slot()
    def stop(self) -> None:
        """End the examination."""
        if self._cancel is not None:
            self._cancel.set()
            self._end(report=False)

    def text(self) -> str:
        """The report as it is copied."""
        from engine.draft.check import show

        return show(self.report) if self.report is not None else ""

    @Slot()
    def _on_tick(self) -> None:
        if self._told:
            done, total, what = self._told[-1]
            known = {
                "writing": self.tr("The model writes"),
                "drafting": self.tr("The draft guesses"),
            }
            words = known.get(what, self.tr("Trying other settings"))
            of = self.tr("{done} of {total}").format(done=done, total=total)
            self._line.set_progress(done, total, words, of)

    def _on_done(self, report: Report) -> None:
        self.report = report
        self._end(report=True)
        self._bars.set(report.by_position)
        mean = self.tr("{n} tokens per step").format(n=f"{report.acceptance_length:.2f}")
        places = ", ".join(
            f"{i}: {100 * share:.0f}\N{NO-BREAK SPACE}%"
            for i, share in enumerate(report.by_position, 1)
        )
        self._summary.setText(f"{mean}; {places}")
        self._bars.setAccessibleDescription(self._summary.text())
        note = self._bad if report.cause else self._good
        note.set_text(told(report.advice))
        note.show()
        self._show_list(report)

    def _on_failed(self, error: Exception) -> None:
        if self._cancel is None:
            return
        self._end(report=False)
        if not isinstance(error, LoadCancelled):
            known = isinstance(error, EngineError)
            self._bad.set_text(told(str(error)) if known else f"{type(error).__name__}: {error}")
            self._bad.show()

    def _end(self, report: bool) -> None:
        self._cancel = None
        self._timer.stop()
        self._show_parts(report)
        self.ended.emit()

    def _show_parts(self, report: bool) -> None:
        running = self.running
        self._line.setVisible(running)
        self._stop.setVisible(running)
        for part in (self._copy, self._bars, self._summary, self._list):
            part.setVisible(report)
        self._good.hide()
        self._bad.hide()

    def _show_list(self, report: Report) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for row, (name, value) in enumerate(self._facts(report.settings)):
            self._grid.addWidget(label(name, "small"), row, 0)
            self._grid.addWidget(label(value, "strong", wrap=True), row, 1)
        row = self._grid.rowCount()
        for warning in report.warnings:
            self._grid.addWidget(label(told(warning), "warn", wrap=True), row, 0, 1, 2)
            row += 1

    def _facts(self, found: dict[str, Any]) -> list[tuple[str, str]]:
        def listed(values: Any) -> str:
            return ", ".join(f"{v:.3g}" if isinstance(v, float) else str(v) for v in values)

        windows = {w for w in found["windows"] if w}
        return [
            (self.tr("Captured layers"), listed(found["capture"])),
            (self.tr("Size of their outputs"), listed(found["output_rms"])),
            (self.tr("Size of the draft's norm"), f"{found['norm_rms']:.3g}"),
            (self.tr("Rope base"), f"{found['rope_base']:,.0f}"),
            (self.tr("Mask token"), f"{found['mask']:,} {found['mask_text']}".strip()),
            (self.tr("Block"), self.tr("%n token(s)", None, int(found["block"]))),
            (self.tr("Sliding window"), listed(sorted(windows)) if windows else self.tr("none")),
        ]

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text())
