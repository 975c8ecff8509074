"""Writing with drafts and without, measured on the loaded model: a button, progress, and a table."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.i18n import told
from app.models.records import Drafted
from app.models.task import OnProgress, Task
from app.models.words import NONE_YET, rate_text
from app.page import Services
from app.theme import theme
from app.widgets import Note, ProgressLine, button, label
from engine.errors import EngineError

if TYPE_CHECKING:
    import threading

    from engine.speedup import Comparison, Pair

_COLUMNS = 5


class Trying(QWidget):
    """Runs `engine.speedup.compare` and keeps what came out with the model.

    Signals:
        measured: figures of the loaded model were kept.
    """

    measured = Signal()

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._task: Task | None = None
        self._held = ""
        self.begin = button(self.tr("Try it"), self.start, icon="measure")
        self._stop = button(self.tr("Stop"), self.stop, icon="stop")
        self._day = label("", "small")
        self._line = ProgressLine(self.tr("Measuring"))
        self._note = Note("warn", "")
        self._good = Note("good", "")
        self._table = QWidget()
        self._cells: list[list[QLabel]] = []
        head = QHBoxLayout()
        head.setSpacing(theme().space(2))
        head.addWidget(label(self.tr("Off and on, the same texts"), "section"))
        head.addWidget(self._day, 1)
        head.addWidget(self._stop)
        head.addWidget(self.begin)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme().space(2))
        column.addLayout(head)
        self._hint = label(
            self.tr(
                "The loaded model writes four short texts with drafts and without; it takes some"
                " seconds, and nothing is kept of the texts."
            ),
            "small",
            wrap=True,
        )
        for widget in (self._hint, self._line, self._note, self._table, self._good):
            column.addWidget(widget)
        for widget in (self._line, self._note, self._table, self._good, self._stop):
            widget.hide()
        controller = services.controller
        controller.state_changed.connect(self._update)
        controller.model_changed.connect(self._on_model)
        self._update()

    @property
    def running(self) -> bool:
        """Whether it measures now."""
        return self._task is not None

    @Slot()
    def start(self) -> None:
        """Measure, unless that goes on or cannot be done now."""
        if self.running or not self.begin.isEnabled():
            return
        engine = self._services.controller.engine
        self._note.hide()
        self._good.hide()
        self._line.set_progress(0, 1, self.tr("Measuring"), self.tr("beginning"))

        def work(progress: OnProgress, cancel: threading.Event) -> Comparison:
            from engine.speedup import compare

            return compare(engine, 64, progress, cancel)

        task = self._task = Task(self._services.library.jobs, work, self)
        task.progressed.connect(self._on_progress)
        task.done.connect(self._on_done)
        task.failed.connect(self._on_failed)
        task.stopped.connect(self._end)
        self._update()
        self._stop.setFocus(Qt.FocusReason.OtherFocusReason)

    def hold(self, why: str) -> None:
        """Measure nothing while something else slows this PC; "" lets it be done again."""
        self._held = why
        self._update()

    @Slot()
    def stop(self) -> None:
        """End it; figures of before stay."""
        if self._task is not None:
            self._task.cancel()

    @Slot(tuple)
    def _on_progress(self, at: tuple[int, int, str]) -> None:
        done, total, kind = at
        of = self.tr("{done} of {total}").format(done=done, total=total)
        self._line.set_progress(done, total, self._kind(kind), of)

    @Slot(object)
    def _on_done(self, found: Comparison) -> None:
        self._end()
        controller = self._services.controller
        model, total = controller.model, found.total
        self._show(found)
        if model is None or not total.off or not total.on:
            return
        record = self._services.library.records.get(model.path, model.file_bytes)
        drafted = Drafted(total.off, total.on, total.accepted, date.today().isoformat())
        drafter = controller.config.draft or ""
        self._services.library.measured(
            model.path, model.file_bytes, drafters={**record.drafters, drafter: drafted}
        )
        self.measured.emit()

    @Slot(object)
    def _on_failed(self, error: Exception) -> None:
        self._end()
        known = isinstance(error, EngineError)
        self._note.set_text(told(str(error)) if known else f"{type(error).__name__}: {error}")
        self._note.show()

    @Slot()
    def _end(self) -> None:
        had_focus = self._stop.hasFocus()
        if self._task is not None:
            self._task.deleteLater()
        self._task = None
        self._update()
        if had_focus:
            self.begin.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot(object)
    def _on_model(self, _model: object) -> None:
        self.stop()
        for widget in (self._table, self._good, self._note):
            widget.hide()
        self._day.setText("")

    @Slot()
    def _update(self) -> None:
        controller = self._services.controller
        why = self._held
        if controller.model is None or controller.state != "ready":
            why = self.tr("The model must be loaded and idle.")
        elif controller.config.spec == "off":
            why = self.tr("The model was loaded without drafts. Choose a drafter and apply first.")
        self._line.setVisible(self.running)
        self._stop.setVisible(self.running)
        self.begin.setVisible(not self.running)
        self.begin.setEnabled(not why)
        self.begin.setToolTip(why or self.tr("Measure with drafts and without (F5)"))

    # The table

    def _kind(self, kind: str) -> str:
        known = {
            "code": self.tr("Code"),
            "mathematics": self.tr("Mathematics"),
            "chat": self.tr("Chat"),
            "lists": self.tr("Lists"),
            "all": self.tr("All"),
        }
        return known.get(kind, kind)

    def _show(self, found: Comparison) -> None:
        if not self._cells:
            self._make_table(len(found.pairs) + 1)
        for cells, pair in zip(self._cells, (*found.pairs, found.total), strict=True):
            for cell, text in zip(cells, self._row(pair), strict=True):
                cell.setText(text)
        self._table.setAccessibleDescription(
            "; ".join(", ".join(self._row(pair)) for pair in (*found.pairs, found.total))
        )
        self._day.setText(date.today().isoformat())
        same = all(pair.equal for pair in found.pairs)
        self._good.setVisible(same)
        self._good.set_text(self.tr("The texts are equal, token for token."))
        notes = []
        if not same:
            notes.append(self.tr("A text differs with drafts, which should not be. Report it."))
        if found.paused:
            notes.append(self.tr("Drafts are paused now: they cost more than they bring here."))
        self._note.set_text(" ".join(notes))
        self._note.setVisible(bool(notes))
        self._table.show()
        self._hint.hide()

    def _row(self, pair: Pair) -> tuple[str, ...]:
        speedup = f"{pair.speedup:.2f}×" if pair.speedup else NONE_YET
        accepted = f"{pair.accepted:.2f}" if pair.accepted else NONE_YET
        return self._kind(pair.kind), rate_text(pair.off), rate_text(pair.on), accepted, speedup

    def _make_table(self, rows: int) -> None:
        grid = QGridLayout(self._table)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(theme().space(4))
        grid.setVerticalSpacing(theme().space(1))
        grid.setColumnStretch(0, 1)
        self._table.setAccessibleName(self.tr("Speed with drafts and without"))
        heads = (
            self.tr("Text"), self.tr("Off tok/s"), self.tr("On tok/s"), self.tr("Accepted"),
            self.tr("Speed-up"),
        )  # fmt: skip
        for column, head in enumerate(heads):
            grid.addWidget(label(head, "small"), 0, column, _side(column))
        for row in range(1, rows + 1):
            cells = [label("", "section" if row == rows else "muted") for _ in range(_COLUMNS)]
            for column, cell in enumerate(cells):
                grid.addWidget(cell, row, column, _side(column))
            self._cells.append(cells)


def _side(column: int) -> Qt.AlignmentFlag:
    return Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
