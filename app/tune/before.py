"""The right pane of Tune: how fast it was, what would change, what that costs, and applying it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.models.library import Item
from app.models.words import memory_parts, rate_text, verdict_style, verdict_text
from app.page import Services
from app.theme import restyle, theme
from app.tune.staging import Staging
from app.widgets import (
    ElidedLabel,
    Hairline,
    MemoryBar,
    MemoryKeys,
    ScrollBody,
    button,
    gigabytes,
    label,
    scrolling,
)

if TYPE_CHECKING:
    from engine.placement import Estimate

_MARGIN = 16
_SOON_MS = 150


class Before(QWidget):
    """What the wishes of a `Staging` mean, and the buttons that carry them out.

    Signals:
        estimated: the `Estimate` of how the model would sit as wished.
        seen: it came into view, or went.
    """

    estimated = Signal(object)
    seen = Signal()

    def __init__(self, services: Services, staging: Staging) -> None:
        super().__init__()
        self._services, self._staging = services, staging
        self.setWindowTitle(self.tr("Before you apply"))
        self.setAccessibleName(self.tr("Before you apply"))
        self._asked = 0
        self._rate, self._unit = label("", "hero"), label(self.tr("tok/s"), "muted")
        self._faster = ElidedLabel("", "good")
        self._plain = label("", "small", wrap=True)
        self._changes = QVBoxLayout()
        self._verdict = label("", "muted")
        self._bar = MemoryBar(thin=True)
        self._keys = MemoryKeys(columns=1)
        self._memory = label("", "small", wrap=True)
        self._happens = label("", "small", wrap=True)
        self.apply = button(self.tr("Apply"), staging.apply, "main", "check")
        self.automatic = button(self.tr("Automatic"), staging.automatic, icon="retry")
        self.revert = button(self.tr("Undo changes"), staging.revert, kind="quiet")
        self._soon = QTimer(self, interval=_SOON_MS, singleShot=True)
        self._soon.timeout.connect(self._look)

    def build(self) -> Iterator[None]:
        """Put the parts in their places, in steps of a few milliseconds."""
        yield from self._build()
        services, staging = self._services, self._staging
        staging.changed.connect(self.show_all)
        services.controller.state_changed.connect(self.show_all)
        services.library.changed.connect(self._on_item)
        self.show_all()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.seen.emit()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.seen.emit()

    def _build(self) -> Iterator[None]:
        body = ScrollBody()
        column = QVBoxLayout(body)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        speed = QHBoxLayout()
        speed.setSpacing(theme().space(1))
        speed.addWidget(self._rate)
        speed.addWidget(self._unit, 0, Qt.AlignmentFlag.AlignBottom)
        speed.addStretch(1)
        speed.addWidget(self._faster, 0, Qt.AlignmentFlag.AlignBottom)
        first = _part()
        _inside(first).addLayout(speed)
        _inside(first).addWidget(self._plain)
        column.addWidget(first)
        yield
        self._changes.setSpacing(theme().space(1))
        changes = _part(self.tr("Changes"))
        _inside(changes).addLayout(self._changes)
        memory = _part()
        head = QHBoxLayout()
        head.addWidget(label(self.tr("Memory after applying"), "muted"), 1)
        head.addWidget(self._verdict)
        _inside(memory).addLayout(head)
        for widget in (self._bar, self._keys, self._memory):
            _inside(memory).addWidget(widget)
        yield
        happens = _part(self.tr("What happens"))
        _inside(happens).addWidget(self._happens)
        for part in (changes, memory, happens):
            column.addWidget(Hairline())
            column.addWidget(part)
        column.addStretch(1)
        scroll = scrolling(body)
        yield
        foot = QFrame()
        foot.setProperty("kind", "foot")
        buttons = QVBoxLayout(foot)
        buttons.setContentsMargins(_MARGIN, 12, _MARGIN, 12)
        row = QHBoxLayout()
        row.setSpacing(theme().space(2))
        row.addWidget(self.apply)
        row.addWidget(self.automatic)
        row.addStretch(1)
        buttons.addLayout(row)
        buttons.addWidget(self.revert, 0, Qt.AlignmentFlag.AlignLeft)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(scroll, 1)
        whole.addWidget(foot)

    @Slot()
    def show_all(self) -> None:
        """Say what the wishes mean now; the memory follows a moment later."""
        changes, state = self._staging.changes(), self._services.controller.state
        while (item := self._changes.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for change in changes:
            self._changes.addWidget(_line(change.title, f"{change.before} → {change.after}"))
        if not changes:
            self._changes.addWidget(label(self.tr("None yet"), "small"))
        ready = state in ("ready", "failed") and self._staging.path is not None
        self.apply.setEnabled(bool(changes) and ready)
        self.apply.setToolTip("" if changes else self.tr("Nothing would change."))
        self.revert.setEnabled(bool(changes))
        self.automatic.setEnabled(self._staging.path is not None)
        self._happens.setText(self._what_happens(bool(changes)))
        self.show_speed()
        self._soon.start()

    def _what_happens(self, changes: bool) -> str:
        if not changes:
            return self.tr("Choose something; it is told here before it is done.")
        text = self.tr(
            "The model is loaded again; answers under way end, chats stay. If it fails, the model runs"
            " as before."
        )
        item = self._item()
        if item is not None and item.record.load_s:
            took = self.tr("The last load took {n} s.").format(n=f"{item.record.load_s:.1f}")
            text = f"{text} {took}"
        return text

    @Slot()
    def show_speed(self) -> None:
        """How fast the loaded model was when that was measured last."""
        controller = self._services.controller
        model = controller.model
        drafted, rate = None, None
        if model is not None:
            record = self._services.library.records.get(model.path, model.file_bytes)
            rate = record.decode_rate
            drafted = record.drafters.get(controller.config.draft or "")
            if controller.config.spec == "off":
                drafted = None
        self._rate.setText(rate_text(drafted.on if drafted else rate))
        self._faster.setVisible(drafted is not None)
        if drafted is None:
            said = self.tr("last measured while writing") if rate else self.tr("not measured yet")
            self._plain.setText(said)
            return
        kind = "good" if drafted.speedup >= 1.05 else "warn" if drafted.speedup < 0.95 else "muted"
        if self._faster.property("kind") != kind:
            self._faster.setProperty("kind", kind)
            restyle(self._faster)
        self._faster.setText(self.tr("{n}× the speed").format(n=f"{drafted.speedup:.2f}"))
        text = self.tr("measured {day}. Without drafts: {rate}")
        self._plain.setText(text.format(day=drafted.day, rate=rate_text(drafted.off)))

    # Memory

    def _item(self) -> Item | None:
        path = self._staging.path
        item: Item | None = self._services.library.item(path) if path is not None else None
        return item

    @Slot(object)
    def _on_item(self, item: Item) -> None:
        if item.entry.path == self._staging.path:
            self._soon.start()

    @Slot()
    def _look(self) -> None:
        item = self._item()
        if item is None:
            return
        self._asked += 1
        asked, entry = self._asked, item.entry
        estimate = self._services.library.estimator(self._staging.config)

        def work(cancel: object) -> Estimate | None:
            from engine.devices import devices

            return estimate(entry, devices())

        def show(found: Estimate | None) -> None:
            if asked == self._asked and found is not None:
                self._show_memory(found)

        self._services.library.jobs.run(self, work, show, lambda error: None)

    def _show_memory(self, found: Estimate) -> None:
        self.estimated.emit(found)
        parts = memory_parts(found.parts, short=True)
        self._bar.set_parts(parts, found.device.memory_total)
        self._keys.set_parts(parts)
        _, kind = verdict_style(found)
        self._verdict.setText(verdict_text(found))
        if self._verdict.property("kind") != kind:
            self._verdict.setProperty("kind", kind)
            restyle(self._verdict)
        said = self.tr("as the last load measured") if found.measured else self.tr("estimated")
        metrics = self._services.controller.metrics
        held = sum(p.bytes for p in metrics.memory if p.kind in ("model", "draft", "kv", "work"))
        text = self.tr("{size} with a context of {n} tokens, {said}; now {held}")
        self._memory.setText(
            text.format(
                size=gigabytes(found.total),
                n=f"{found.context:,}",
                said=said,
                held=gigabytes(held),
            )
        )


def _part(title: str = "") -> QWidget:
    frame = QWidget()
    column = QVBoxLayout(frame)
    column.setContentsMargins(_MARGIN, 12, _MARGIN, 12)
    column.setSpacing(theme().space(1))
    if title:
        column.addWidget(label(title, "muted"))
    return frame


def _inside(part: QWidget) -> QVBoxLayout:
    column = part.layout()
    assert isinstance(column, QVBoxLayout)
    return column


def _line(name: str, value: str) -> QWidget:
    line = QWidget()
    row = QHBoxLayout(line)
    row.setContentsMargins(0, 0, 0, 0)
    row.addWidget(label(name, "small"))
    shown: QLabel = label(value, "strong", wrap=True)
    shown.setAlignment(Qt.AlignmentFlag.AlignRight)
    row.addWidget(shown, 1)
    line.setAccessibleName(f"{name}: {value}")
    return line
