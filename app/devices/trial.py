"""The self-test of a card: a button, how far it is, and a result that can be copied."""

from __future__ import annotations

from collections import deque
from typing import Any

from PySide6.QtCore import QTimer, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from app.i18n import told
from app.models.jobs import Jobs
from app.theme import theme
from app.widgets import Note, ProgressLine, button, label
from engine.errors import EngineError

_EVERY_MS = 100


class Trial(QWidget):
    """Hidden until a test is begun."""

    def __init__(self, jobs: Jobs, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._jobs = jobs
        self._told: deque[tuple[str, int, int]] = deque(maxlen=1)
        self.running = False
        self._title = label(self.tr("Self-test"), "section")
        self._line = ProgressLine(self.tr("Preparing…"))
        self._good, self._bad = Note("good", ""), Note("bad", "")
        self._text = QPlainTextEdit()
        self._text.setReadOnly(True)
        self._text.setTabChangesFocus(True)
        self._text.setFixedHeight(200)
        self._text.setAccessibleName(self.tr("Result of the self-test"))
        self._copy = button(self.tr("Copy result"), self._on_copy, icon="copy")
        row = QHBoxLayout()
        row.addWidget(self._copy)
        row.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, theme().space(4))
        column.setSpacing(theme().space(2))
        for widget in (self._title, self._line, self._good, self._bad, self._text):
            column.addWidget(widget)
        column.addLayout(row)
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self._on_tick)
        theme().changed.connect(self._fit)
        self._fit()
        self.hide()

    def begin(self, device: str) -> None:
        """Test a card, unless a test runs."""
        if self.running:
            return
        self.running = True
        self._told.clear()
        for widget in (self._good, self._bad, self._text, self._copy):
            widget.hide()
        self._line.set_progress(0, 1, self.tr("Preparing…"))
        self._line.show()
        self.show()
        self._timer.start()

        def work(cancel: object) -> Any:
            from engine import selftest

            return selftest.run(device, lambda *progress: self._told.append(progress))

        self._jobs.run(self, work, self._on_done, self._on_failed)

    @property
    def text(self) -> str:
        """The result as it is copied."""
        return self._text.toPlainText()

    def _fit(self) -> None:
        family = theme().font("mono").families()[0]
        self._text.setStyleSheet(f"QPlainTextEdit {{ font-family: '{family}'; }}")

    @Slot()
    def _on_tick(self) -> None:
        if not self._told:
            return
        stage, done, total = self._told[-1]
        words = self.tr("Compiling kernels") if stage == "preparing" else self.tr("Testing")
        of = self.tr("{done} of {total}").format(done=done, total=total) if total else ""
        self._line.set_progress(done, total, words, of)

    def _on_done(self, report: Any) -> None:
        if report.passed:
            self._end(
                self._good, self.tr("Every kernel agrees with NumPy on this card."), report.text()
            )
        else:
            text = self.tr("Something is wrong on this card; it is not used from now on.")
            self._end(self._bad, text, report.text())

    def _on_failed(self, error: Exception) -> None:
        known = isinstance(error, EngineError)
        text = told(str(error)) if known else f"{type(error).__name__}: {error}"
        self._end(self._bad, self.tr("The self-test could not run to its end."), text)

    def _end(self, note: Note, verdict: str, text: str) -> None:
        self.running = False
        self._timer.stop()
        self._line.hide()
        note.set_text(verdict)
        self._text.setPlainText(text)
        for widget in (note, self._text, self._copy):
            widget.show()
        self._text.setFocus()

    @Slot()
    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text)
