"""Tune: what guesses for the loaded model, how it runs, what each setting costs, and what drafts bring."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtGui import QAction, QKeySequence, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.forms import Choice, Field, Row, choice_words, words
from app.i18n import told
from app.live.drafts import DraftPanel
from app.models.loading import LoadPanel
from app.models.opener import opener_of
from app.page import Page, Services
from app.theme import theme
from app.tune.before import Before
from app.tune.costs import cost_text
from app.tune.doctor import Doctor
from app.tune.drafters import Drafters
from app.tune.presets import Presets
from app.tune.staging import OFF, Staging
from app.tune.trying import Trying
from app.widgets import EmptyState, Hairline, ScrollBody, button, label
from engine.config import AUTO, EngineConfig, info_of
from engine.errors import EngineError
from engine.metrics import Metrics

DRAFTS = ("budget", "draft_residency")
RUN = ("max_ctx", "precision", "threads", "max_concurrency", "prefill_chunk", "prefix_cache_mib")
_SHAPES = ("auto", "chain", "tree")


class TunePage(Page):
    """Wishes are staged here and applied in the pane; nothing changes before that."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self.title = self.tr("Tune")
        self.staging = Staging(services, self)
        self._whole = False
        self._fields: dict[str, Field] = {}
        self._costs: dict[str, QLabel] = {}
        header, self._head = self._make_header()
        self._head.setSpacing(theme().space(3))
        self._head.addStretch(1)
        self._body = ScrollBody()
        self._column = QVBoxLayout(self._body)
        self._column.setContentsMargins(24, 16, 24, 24)
        self._column.setSpacing(theme().space(2))
        self._middle = QStackedWidget()
        self._middle.addWidget(self._body)
        scroll = self._scroll_below(header, self._middle)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    def build(self) -> Iterator[None]:
        yield
        self.presets = Presets(self.services, self.staging)
        self._head.addWidget(self.presets)
        yield
        self.before = Before(self.services, self.staging)
        yield
        yield from self.before.build()
        yield
        self._foot = self._make_foot()
        layout = self.layout()
        assert layout is not None
        layout.addWidget(self._foot)
        yield
        self._column.addWidget(LoadPanel(self.services, opener_of(self.services), inset=0))
        yield
        self._middle.addWidget(self._empty())
        yield
        self._column.addLayout(self._make_head())
        self.drafters = Drafters(self.services, self.staging)
        self.drafters.listed.connect(self._show)
        self._column.addWidget(self.drafters)
        yield
        self._add_shape()
        for name in DRAFTS:
            yield
            self._add(Field(EngineConfig, name, None))
        self._column.addWidget(Hairline())
        self._column.addSpacing(theme().space(2))
        yield
        self.trying = Trying(self.services)
        self.trying.measured.connect(self._on_measured)
        self._column.addWidget(self.trying)
        yield
        self.doctor = Doctor(self.services.library.jobs)
        self.doctor.ended.connect(lambda: self.trying.hold(""))
        self.doctor.hide()
        self._column.addWidget(self.doctor)
        self.live = DraftPanel()
        self._column.addWidget(self.live)
        self._live_line = Hairline()
        self._column.addWidget(self._live_line)
        yield
        self._column.addSpacing(theme().space(4))
        self._column.addWidget(label(self.tr("How models run"), "section"))
        note = self.tr("Each of these needs the model to be loaded again, which Apply does.")
        self._column.addWidget(label(note, "small", wrap=True))
        self._add_device()
        for name in RUN:
            yield
            self._add(Field(EngineConfig, name, None))
        self._column.addStretch(1)
        yield
        self._add_actions()
        self.staging.changed.connect(self._show)
        self.before.estimated.connect(self._show_costs)
        controller = self.services.controller
        controller.watch_metrics(self)
        controller.metrics_changed.connect(self._on_metrics)
        controller.model_changed.connect(self._show)
        self._whole = True
        self._show()
        self._on_metrics(controller.metrics)
        yield
        self.drafters.look()
        yield
        # Else it is done when the page is first shown, together with all else.
        self._column.activate()

    def inspector(self) -> QWidget:
        return self.before

    def focus_first(self) -> None:
        first = self._use if self._middle.currentIndex() else self._shape
        first.setFocus(Qt.FocusReason.OtherFocusReason)
        if first is self._shape:
            self.drafters.focus_first()

    def open(self, **kw: Any) -> None:
        """`measure=True`: try it; `doctor=True`: examine the draft."""
        if kw.get("measure"):
            self.trying.start()
        if kw.get("doctor"):
            self._on_doctor()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._on_metrics(self.services.controller.metrics)

    # Building

    def _empty(self) -> QWidget:
        card = EmptyState(
            self.tr("No model is loaded"),
            self.tr("What can be tuned, and what that costs, depends on the model."),
            [(self.tr("Choose a model"), self._on_models, "models")],
        )
        self._use = next(b for b in card.findChildren(QWidget) if b.focusPolicy())
        return card.in_the_middle()

    def _make_foot(self) -> QFrame:
        """What the pane offers, while it is folded away."""
        foot = QFrame()
        foot.setProperty("kind", "foot")
        row = QHBoxLayout(foot)
        row.setContentsMargins(24, 12, 24, 12)
        row.setSpacing(theme().space(2))
        self._pending = label("", "small", wrap=True)
        self._apply = button(self.tr("Apply"), self.staging.apply, "main", "check")
        row.addWidget(self._pending, 1)
        row.addWidget(button(self.tr("Undo changes"), self.staging.revert, kind="quiet"))
        row.addWidget(self._apply)
        foot.hide()
        self.before.seen.connect(self._show_foot)
        return foot

    def _make_head(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(theme().space(2))
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(label(self.tr("Speculation"), "section"))
        said = self.tr(
            "A small drafter guesses ahead and the model checks all guesses in one pass; the text stays"
            " the same."
        )
        texts.addWidget(label(said, "small", wrap=True))
        row.addLayout(texts, 1)
        self._examine = button(self.tr("Draft doctor"), self._on_doctor, icon="measure")
        row.addWidget(self._examine)
        row.addWidget(button(self.tr("Make a draft…"), self._on_make, icon="draft"))
        return row

    def _add_shape(self) -> None:
        info = info_of(EngineConfig, "spec")
        self._shape = Choice()
        for shape in _SHAPES:
            self._shape.addItem(choice_words(shape), shape)
        self._shape.setFixedWidth(theme().size("measure") // 3)
        self._shape.currentIndexChanged.connect(self._on_shape)
        self._column.addWidget(Row(self.tr("Shape of drafts"), words(info.help), self._shape))

    def _add_device(self) -> None:
        info = info_of(EngineConfig, "device")
        self._device = Choice()
        self._device.addItem(choice_words(AUTO), AUTO)
        self._device.setFixedWidth(theme().size("measure") // 3)
        self._device.currentIndexChanged.connect(self._on_device)
        self._column.addWidget(Hairline())
        row = Row(words(info.title), words(info.help), self._device)
        self._column.addWidget(row)
        self._add_cost("device", row)

        def work(cancel: object) -> list[tuple[str, str]]:
            from engine.devices import devices

            return [(d.name, d.id) for d in devices()]

        self.services.library.jobs.run(self, work, self._show_devices)

    def _show_devices(self, found: list[tuple[str, str]]) -> None:
        with QSignalBlocker(self._device):
            for name, device in found:
                self._device.addItem(name, device)
        self._show()

    def _add(self, field: Field) -> None:
        self._fields[field.name] = field
        field.edited.connect(self._on_edited)
        self._column.addWidget(Hairline())
        self._column.addWidget(field)
        self._add_cost(field.name, field)

    def _add_cost(self, name: str, row: Row) -> None:
        self._costs[name] = label("", "small", wrap=True)
        self._costs[name].hide()
        row.texts.addWidget(self._costs[name])

    def _add_actions(self) -> None:
        measure = QAction(self.tr("Measure with drafts and without"), self)
        measure.setShortcut(QKeySequence(Qt.Key.Key_F5))
        measure.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        measure.triggered.connect(self.trying.start)
        self.addAction(measure)
        self.services.actions.add(measure)

    # Showing

    @Slot()
    def _show(self) -> None:
        loaded = self.services.controller.model is not None
        self._middle.setCurrentIndex(0 if loaded else 1)
        config = self.staging.config
        off = self.staging.drafter == OFF
        with QSignalBlocker(self._shape), QSignalBlocker(self._device):
            self._shape.setCurrentIndex(max(0, self._shape.findData(str(config.spec))))
            self._device.setCurrentIndex(max(0, self._device.findData(self.staging.device)))
        self._shape.setEnabled(not off)
        for name, field in self._fields.items():
            field.set_value(getattr(config, name))
        for name in DRAFTS:
            self._fields[name].setEnabled(not off)
        self._show_foot()
        self._examine.setEnabled(self._doctor_draft() is not None)
        self._examine.setToolTip(
            "" if self._examine.isEnabled() else self.tr("Only a draft's file can be examined.")
        )

    @Slot()
    def _show_foot(self) -> None:
        changes = self.staging.changes()
        self._foot.setVisible(bool(changes) and not self.before.isVisible())
        said = "; ".join(f"{c.title}: {c.before} → {c.after}" for c in changes)
        self._pending.setText(said)
        self._apply.setEnabled(self.services.controller.state in ("ready", "failed"))

    @Slot(object)
    def _show_costs(self, estimate: Any) -> None:
        for name, shown in self._costs.items():
            text = cost_text(name, self.staging.config, estimate)
            shown.setText(text)
            shown.setVisible(bool(text))

    @Slot(object)
    def _on_metrics(self, metrics: Metrics) -> None:
        if self._whole and self.isVisible():
            there = self.live.show_metrics(metrics)
            self.live.setVisible(there)
            self._live_line.setVisible(there)

    # Doing

    @Slot(str, object)
    def _on_edited(self, name: str, value: Any) -> None:
        try:
            self.staging.set(name, value)
        except EngineError as error:
            self.services.toast(told(str(error)))
            self._show()

    @Slot()
    def _on_shape(self) -> None:
        self._on_edited("spec", self._shape.currentData())

    @Slot()
    def _on_device(self) -> None:
        self.staging.set_device(self._device.currentData())

    @Slot()
    def _on_measured(self) -> None:
        self.drafters.show_figures()
        self.before.show_speed()
        self._on_metrics(self.services.controller.engine.metrics())

    def _doctor_draft(self) -> Any:
        return self.drafters.file_of(self.staging.drafter)

    def _on_doctor(self) -> None:
        draft, path = self._doctor_draft(), self.staging.path
        if draft is not None and path is not None:
            self.trying.stop()
            self.doctor.show()
            self.doctor.begin(path, draft)
            self.trying.hold(self.tr("A draft is being examined. Wait for it, or stop it."))

    def _on_make(self) -> None:
        self.services.navigate("make_draft")

    def _on_models(self) -> None:
        self.services.navigate("models")
