"""What all requests together get: tokens a second of the last minute."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.models.words import NONE_YET, rate_text
from app.theme import theme
from app.widgets import label

if TYPE_CHECKING:
    from engine.metrics import Metrics

_PLOT_HEIGHT = 96


class Load(QWidget):
    """A number and its plot; pyqtgraph is imported when it is first shown, and hidden it does nothing."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._plot: QWidget | None = None
        self._number = label(NONE_YET, "strong")
        self._words = label("", "small", wrap=True)
        head = QHBoxLayout()
        head.addWidget(label(self.tr("Load, last 60 s"), "muted", wrap=True), 1)
        head.addWidget(self._number)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme().space(1))
        self._column.addLayout(head)
        self._column.addWidget(self._words)
        theme().changed.connect(self._recolor)

    def text(self) -> str:
        """What it says."""
        return f"{self._number.text()}\n{self._words.text()}"

    def update_metrics(self, metrics: Metrics) -> None:
        """Take one sample."""
        if not self.isVisible():
            return
        if self._plot is None:
            self._make_plot(metrics)
        now = time.monotonic()
        self._history.add(now, metrics)
        reading = metrics.prefill_rate
        text = self.tr("prefill {rate} tok/s").format(rate=rate_text(reading)) if reading else ""
        self._rates.draw(self._history, now, text)
        self._say(metrics)

    def _make_plot(self, metrics: Metrics) -> None:
        from app.live.history import History
        from app.live.plot import RatePlot

        self._history = History()
        self._history.begin(metrics)
        self._plot = self._rates = RatePlot()
        self._plot.setFixedHeight(_PLOT_HEIGHT)
        self._plot.setAccessibleName(self.tr("Load of the last 60 seconds"))
        self._column.insertWidget(1, self._plot)

    def _say(self, metrics: Metrics) -> None:
        rate = rate_text(metrics.decode_rate)
        if metrics.decode_rate:
            number = self.tr("{n} tok/s").format(n=rate)
            words = self.tr("{n} tokens per second, all requests together.").format(n=rate)
        elif metrics.prefill_rate:
            number = NONE_YET
            read = rate_text(metrics.prefill_rate)
            words = self.tr("Prompts are read at {n} tokens per second.").format(n=read)
        else:
            number, words = NONE_YET, self.tr("Nothing is being written.")
        self._number.setText(number)
        self._words.setText(words)
        assert self._plot is not None
        self._plot.setAccessibleDescription(words)

    def _recolor(self) -> None:
        if self._plot is not None:
            self._rates.recolor(stale=False)
