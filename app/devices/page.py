"""Devices: what each card and the processor do and hold, where a model runs, and the self-test of a card."""

from __future__ import annotations

from PySide6.QtCore import QLocale, Qt, QTimer, Slot
from PySide6.QtGui import QHideEvent, QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.devices.block import DeviceBlock
from app.devices.chooser import Chooser
from app.devices.look import Looker, Moment, owners
from app.devices.trial import Trial
from app.forms import Choice
from app.i18n import told
from app.models.hardware import short_name
from app.page import Page, Services
from app.theme import theme
from app.widgets import Hairline, ScrollBody, button, label
from engine.readings import CardReading, tokens_per_joule

EVERY_MS = 1000


class DevicesPage(Page):
    """Reads once a second while it is seen, on another thread."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self.title = self.tr("Devices")
        self._looker, self._looking = Looker(), False
        self._cards: dict[str, DeviceBlock] = {}
        self._last: Moment | None = None
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self.look)
        self._processor = DeviceBlock("ram")
        self._problem = label("", "muted", wrap=True)
        self.chooser = Chooser(services)
        self.trial = Trial(services.library.jobs)
        self._card = Choice()
        self._card.setAccessibleName(self.tr("Card to test"))
        self._test = button(self.tr("Self-test"), self._on_test, icon="measure")
        self._test.setEnabled(False)
        self._build()

    def focus_first(self) -> None:
        self.chooser.focus_first()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.look()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    def can_close(self) -> bool:
        self._timer.stop()
        return True

    @Slot()
    def look(self) -> None:
        """Read anew, unless the last reading is still under way."""
        if self._looking:
            return
        self._looking = True
        self.services.library.jobs.run(
            self, lambda cancel: self._looker.look(), self._show, self._on_failed
        )

    # Building

    def _build(self) -> None:
        header, row = self._make_header()
        row.addStretch(1)
        row.addWidget(self._card)
        row.addWidget(self._test)
        self._card.hide()
        body = ScrollBody()
        self._column = QVBoxLayout(body)
        self._column.setContentsMargins(24, 16, 24, 24)
        self._column.setSpacing(theme().space(2))
        self._blocks = QVBoxLayout()
        self._column.addLayout(self._blocks)
        self._column.addWidget(self._problem)
        self._column.addWidget(self._processor)
        self._column.addWidget(Hairline())
        self._column.addWidget(self.chooser)
        self._column.addWidget(self.trial)
        self._column.addStretch(1)
        self._problem.hide()
        scroll = self._scroll_below(header, body)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)

    # Showing

    def _show(self, moment: Moment) -> None:
        self._looking = False
        controller = self.services.controller
        where = controller.model.device if controller.model else ""
        memory = controller.metrics.memory
        for card in moment.cards:
            if card.id not in self._cards:
                self._cards[card.id] = DeviceBlock("gpu")
                self._blocks.addWidget(self._cards[card.id])
                self._card.addItem(short_name(card.name), card.id)
            parts = owners(card.memory_total, card.memory_used, memory, where == card.id)
            driver = self.tr("driver {version}").format(version=card.driver)
            about = ", ".join(part for part in (card.link, driver) if part)
            now = self._now(card, where == card.id)
            self._cards[card.id].show_device(short_name(card.name), about, now, parts)
        self._card.setVisible(self._card.count() > 1)
        self._test.setEnabled(bool(moment.cards) and not moment.problem and not self.trial.running)
        self._test.setToolTip(told(moment.problem))
        self._problem.setText(told(moment.problem))
        self._problem.setVisible(bool(moment.problem))
        device = moment.processor
        cores = self.tr("{name}, {n} cores").format(name=short_name(device.name), n=device.cores)
        load = self.tr("CPU {n} %").format(n=round(moment.load))
        used = device.memory_total - device.memory_free
        parts = owners(device.memory_total, used, memory, where == "cpu")
        self._processor.show_device(self.tr("Memory"), cores, load, parts)
        if self._last is None or [d.id for d in self._last.devices] != [
            d.id for d in moment.devices
        ]:
            self.chooser.set_devices(moment.devices)
        self._last = moment

    def _now(self, card: CardReading, here: bool) -> str:
        """Load, temperature, power, and what a joule buys while the model here writes."""
        found = []
        if card.load is not None:
            found.append(f"{card.load} %")
        if card.temperature is not None:
            found.append(f"{card.temperature} °C")
        if card.power is not None:
            found.append(f"{card.power:.0f} W")
        rate = self.services.controller.metrics.decode_rate if here else 0.0
        if (worth := tokens_per_joule(rate, card.power)) is not None:
            number = QLocale().toString(worth, "f", 2)
            found.append(self.tr("{n} tokens per joule").format(n=number))
        return " · ".join(found)

    def _on_failed(self, error: Exception) -> None:
        self._looking = False
        self._problem.setText(told(str(error)))
        self._problem.show()

    def _on_test(self) -> None:
        self.trial.begin(self._card.currentData() or "cuda:0")
        self._test.setEnabled(False)
