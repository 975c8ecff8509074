"""The live pane beside the chat: what the engine does now, each number as text."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QVBoxLayout, QWidget

from app.live.drafts import DraftPanel
from app.live.speed import SpeedPanel, large_text
from app.models.words import NONE_YET, memory_parts, rate_text
from app.page import Services
from app.theme import theme
from app.widgets import (
    Hairline,
    IconButton,
    MemoryBar,
    MemoryKeys,
    ScrollBody,
    gigabytes,
    label,
    scrolling,
)
from engine.metrics import Metrics

_MARGIN = 16


class Inspector(QWidget):
    """Speed, drafts, times, memory and context of the running model.

    Every number comes from the controller's `metrics_changed`. Hidden or folded, it does no work.
    `header_tools` belongs into the head of the pane that shows this. It is whole once `build` has ended.
    """

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self.setWindowTitle(self.tr("Live"))
        self.setAccessibleName(self.tr("Live"))
        self.speed = SpeedPanel(self._usual_rate)
        self.drafts = DraftPanel()
        self._first = _Row(self.tr("First token after"))
        self._prompt = _Row(self.tr("Prompt reading"))
        self._step = _Row(self.tr("Time per step"))
        self._requests = _Row(self.tr("Requests"))
        self._memory_total = label("", "section")
        self._bar = MemoryBar(thin=True)
        self._keys = MemoryKeys()
        self._context = label("", "section")
        self._context_bar = QProgressBar()
        self._context_note = label("", "small", wrap=True)
        self._pages = label("", "small", wrap=True)
        self.header_tools = self._pause = IconButton("pause", self.tr("Pause the plot"))
        self._pause.setCheckable(True)
        self._pause.toggled.connect(self._on_pause)

    def build(self) -> Iterator[None]:
        """Put the parts in their places, in steps of a few milliseconds."""
        self.body = ScrollBody()
        column = QVBoxLayout(self.body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scrolling(self.body))
        parts = (self.speed, self.drafts, self._times(), self._memory(), self._contexts())
        for part in parts:
            yield
            frame = self._framed(part, line=part is not self.speed)
            if part is self.drafts:
                self._drafts_frame = frame
            column.addWidget(frame)
        column.addStretch(1)
        yield
        self._on_theme()
        theme().changed.connect(self._on_theme)
        controller = self._services.controller
        controller.watch_metrics(self)
        controller.metrics_changed.connect(self._on_metrics)
        controller.model_changed.connect(self._on_model)
        yield
        self.speed.begin(controller.metrics)
        yield
        self._show(controller.metrics)

    def text(self) -> str:
        """All that the pane says, line by line."""
        shown = (x for x in self.findChildren(QLabel) if x.isVisibleTo(self))
        return "\n".join(x.text() for x in shown if x.text())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.speed.begin(self._services.controller.metrics)
        self._show(self._services.controller.metrics)

    @staticmethod
    def _framed(part: QWidget, line: bool) -> QWidget:
        """A part with its margins, and a line above it."""
        frame, inside = QWidget(), QVBoxLayout()
        whole = QVBoxLayout(frame)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        if line:
            whole.addWidget(Hairline())
        inside.setContentsMargins(_MARGIN, theme().space(3), _MARGIN, theme().space(3))
        inside.addWidget(part)
        whole.addLayout(inside)
        return frame

    def _times(self) -> QWidget:
        part, column = _section()
        for row in (self._first, self._prompt, self._step, self._requests):
            column.addWidget(row)
        return part

    def _memory(self) -> QWidget:
        part, column = _section()
        column.addLayout(_titled(self.tr("Memory"), self._memory_total))
        column.addWidget(self._bar)
        column.addWidget(self._keys)
        self._keys_place = column
        return part

    def _contexts(self) -> QWidget:
        part, column = _section()
        self._context_bar.setTextVisible(False)
        self._context_bar.setRange(0, 1000)
        self._context_bar.setAccessibleName(self.tr("Context used"))
        column.addLayout(_titled(self.tr("Context"), self._context))
        column.addWidget(self._context_bar)
        column.addWidget(self._context_note)
        column.addWidget(self._pages)
        return part

    @Slot()
    def _on_theme(self) -> None:
        """Larger text leaves room for one key beside another no more."""
        keys = MemoryKeys(columns=1 if large_text() else 2)
        self._keys_place.replaceWidget(self._keys, keys)
        self._keys.deleteLater()
        self._keys = keys
        self._show_memory(self._services.controller.metrics)

    @Slot(bool)
    def _on_pause(self, paused: bool) -> None:
        self.speed.set_paused(paused)
        self._pause.set_icon("play" if paused else "pause")
        self._pause.set_name(self.tr("Go on") if paused else self.tr("Pause the plot"))

    @Slot(object)
    def _on_metrics(self, metrics: Metrics) -> None:
        if self.isVisible():
            self._show(metrics)
            self.speed.update_metrics(metrics)

    @Slot(object)
    def _on_model(self, _model: object) -> None:
        self.speed.reset(Metrics())

    def _show(self, metrics: Metrics) -> None:
        first = metrics.first_token_s
        self._first.set(NONE_YET if first is None else self.tr("{n} s").format(n=f"{first:.2f}"))
        if metrics.prefill_rate > 0:
            self._prompt.set(self.tr("{n} tok/s").format(n=rate_text(metrics.prefill_rate)))
        elif not metrics.prompt_tokens_total:
            self._prompt.set(NONE_YET)
        self._step.set(
            self.tr("{n} ms").format(n=f"{metrics.step_ms:.1f}") if metrics.steps else NONE_YET
        )
        self._requests.set(
            self.tr("{running} running, {queued} waiting").format(
                running=metrics.running, queued=metrics.queued
            )
            if metrics.running or metrics.queued
            else self.tr("none")
        )
        self._drafts_frame.setVisible(self.drafts.show_metrics(metrics))
        self._show_memory(metrics)
        self._show_context(metrics)

    def _show_memory(self, metrics: Metrics) -> None:
        parts = memory_parts(metrics.memory, short=True)
        total = sum(p.bytes for p in parts)
        used = total - sum(p.bytes for p in parts if p.kind in ("free", "reserve"))
        self._memory_total.setText(
            self.tr("{used} of {total}").format(
                used=gigabytes(used, unit=False), total=gigabytes(total)
            )
            if parts
            else NONE_YET
        )
        self._bar.set_parts(parts)
        self._keys.set_parts(parts)

    def _show_context(self, metrics: Metrics) -> None:
        used, most = metrics.context_used, metrics.context_max
        self._context.setText(
            self.tr("{used} of {most}").format(used=f"{used:,}", most=f"{most:,}")
            if most
            else NONE_YET
        )
        self._context_bar.setValue(round(1000 * used / most) if most else 0)
        self._context_bar.setAccessibleDescription(self._context.text())
        self._context_note.setText(
            self.tr("%Ln token(s) reused from the last turn", None, metrics.reused_tokens)
            if metrics.reused_tokens
            else ""
        )
        self._context_note.setVisible(bool(metrics.reused_tokens))
        self._pages.setText(
            self.tr("{used} of {total} pages in use").format(
                used=f"{metrics.pages_used:,}", total=f"{metrics.pages_total:,}"
            )
            if metrics.pages_total
            else ""
        )

    def _usual_rate(self) -> float | None:
        model, library = self._services.controller.model, self._services.library
        if model is None or library is None:
            return None
        rate: float | None = library.records.get(model.path, model.file_bytes).decode_rate
        return rate


class _Row(QWidget):
    """A name on the left and its value on the right."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name
        self._value = label(NONE_YET, "small")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(label(name, "small"))
        row.addStretch(1)
        row.addWidget(self._value)

    def set(self, text: str) -> None:
        """Show a value."""
        if self._value.text() != text:
            self._value.setText(text)
            self.setAccessibleName(f"{self._name}: {text}")


def _section() -> tuple[QWidget, QVBoxLayout]:
    part = QWidget()
    column = QVBoxLayout(part)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(theme().space(1))
    return part, column


def _titled(title: str, value: QLabel) -> QHBoxLayout:
    row = QHBoxLayout()
    row.addWidget(label(title, "muted"))
    row.addStretch(1)
    row.addWidget(value)
    return row
