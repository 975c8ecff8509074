"""The head of the live pane: the number first, then its plot, then the same in words."""

from __future__ import annotations

import time
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.models.words import NONE_YET, rate_text
from app.theme import restyle, theme
from app.widgets import label
from engine.metrics import Metrics

_PLOT_HEIGHT = 112
_LARGE_PX = 16


class SpeedPanel(QWidget):
    """Live decode rate with its comparison, plot and sentence.

    `usual()` gives the rate of the last whole run of this model, or None. pyqtgraph is imported when the
    panel is first shown; while it is hidden or paused nothing is drawn or kept.
    """

    def __init__(self, usual: Callable[[], float | None], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._usual = usual
        self._plot: QWidget | None = None
        self._paused = False
        self._stale = False
        self._rate = 0.0
        self._prefill = 0.0
        self._number = label(NONE_YET, "hero")
        self._unit = label(self.tr("tok/s"), "muted")
        self._compared = label("", "")
        self._reference = label("", "small", wrap=True)
        self._sentence = label("", "small", wrap=True)
        self._place = QVBoxLayout()
        self._build()
        self.quiet_timer = QTimer(self, singleShot=True, interval=theme().motion("staleAfter"))
        self.quiet_timer.timeout.connect(self._on_quiet)
        theme().changed.connect(self._on_theme)
        self._say(Metrics())

    @property
    def plot(self) -> QWidget | None:
        """The plot, once it was shown."""
        return self._plot

    @property
    def paused(self) -> bool:
        """Whether the user stopped the plot."""
        return self._paused

    def set_paused(self, paused: bool) -> None:
        """Stop or go on drawing; the numbers stay as they are meanwhile."""
        self._paused = paused
        if paused:
            self._on_quiet()

    def update_metrics(self, metrics: Metrics) -> None:
        """Take one sample; does nothing while hidden or paused."""
        if self._paused or self._plot is None or not self.isVisible():
            return
        now = time.monotonic()
        self._history.add(now, metrics)
        if metrics.decode_rate > 0:
            self._rate = metrics.decode_rate
        if metrics.prefill_rate > 0:
            self._prefill = metrics.prefill_rate
        self._set_stale(False)
        self._say(metrics)
        self._draw(now)
        self.quiet_timer.start()

    def reset(self, metrics: Metrics) -> None:
        """Begin anew, as for another model."""
        self._rate = self._prefill = 0.0
        if self._plot is not None:
            self._history.clear()
            self._history.begin(metrics)
            self._draw(time.monotonic())
        self.quiet_timer.stop()
        self._set_stale(False)
        self._say(metrics)

    def begin(self, metrics: Metrics) -> None:
        """Make the plot on first use and count from these totals."""
        if self._plot is None:
            from app.live.history import History
            from app.live.plot import RatePlot

            self._history = History()
            plot = RatePlot()
            plot.setFixedHeight(_PLOT_HEIGHT)
            plot.setAccessibleName(self.tr("Speed of the last 60 seconds"))
            self._place.replaceWidget(self._room, plot)
            self._room.deleteLater()
            self._plot = self._rate_plot = plot
            self._say(metrics)
        self._history.begin(metrics)

    def _build(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(theme().space(1))
        head.addWidget(self._number)
        head.addWidget(self._unit, 0, Qt.AlignmentFlag.AlignBottom)
        head.addStretch(1)
        self._unit.setContentsMargins(0, 0, 0, 5)
        self._head = head
        self._room = QWidget()
        self._room.setFixedHeight(_PLOT_HEIGHT)
        ends = QHBoxLayout()
        ends.setContentsMargins(36, 0, 0, 0)
        ends.addWidget(label(self.tr("60 s ago"), "micro"))
        ends.addStretch(1)
        ends.addWidget(label(self.tr("now"), "micro"))
        self._place.setSpacing(0)
        self._place.addWidget(self._room)
        self._place.addLayout(ends)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme().space(1))
        column.addLayout(head)
        self._column = column
        self._place_compared()
        column.addWidget(self._reference)
        column.addSpacing(theme().space(2))
        column.addLayout(self._place)
        column.addSpacing(theme().space(1))
        column.addWidget(self._sentence)

    def _draw(self, now: float) -> None:
        rate = rate_text(self._prefill)
        text = self.tr("prefill {rate} tok/s").format(rate=rate) if self._prefill else ""
        self._rate_plot.draw(self._history, now, text)

    def _say(self, metrics: Metrics) -> None:
        """The numbers as text; the sentence is what a screen reader says of the plot."""
        self._number.setText(rate_text(self._rate) if self._rate else NONE_YET)
        self._compare()
        words = []
        if self._rate:
            words.append(self.tr("{n} tokens per second.").format(n=rate_text(self._rate)))
        if self._prefill:
            words.append(
                self.tr("Prompt read at {n} tokens per second.").format(n=rate_text(self._prefill))
            )
        if self._stale:
            words.append(self.tr("Paused."))
        text = " ".join(words) or self.tr("Nothing is being written.")
        self._sentence.setText(text)
        self.setAccessibleName(self.tr("Speed"))
        self.setAccessibleDescription(text)
        if self._plot is not None:
            self._plot.setAccessibleDescription(text)

    def _compare(self) -> None:
        usual = self._usual()
        kind = "muted"
        if self._stale:
            text = self.tr("paused")
        elif usual and self._rate:
            ratio = self._rate / usual
            if ratio >= 1.05:
                text, kind = self.tr("{n}× the last run").format(n=f"{ratio:.2f}"), "good"
            elif ratio <= 0.95:
                text, kind = self.tr("{n}× the last run").format(n=f"{ratio:.2f}"), "warn"
            else:
                text = self.tr("as the last run")
        else:
            text = ""
        _set_kind(self._compared, kind)
        self._compared.setText(text)
        self._compared.setVisible(bool(text))  # Below the number it would leave a gap.
        if usual:
            said = self.tr("last run {n} tok/s, measured here").format(n=rate_text(usual))
        elif self._rate:
            said = self.tr("the first measurement of this model")
        else:
            said = self.tr("no measurement yet")
        self._reference.setText(said)

    def _set_stale(self, stale: bool) -> None:
        if stale != self._stale:
            self._stale = stale
            self._recolor()

    @Slot()
    def _on_quiet(self) -> None:
        if self._rate or self._prefill:
            self._set_stale(True)
            self._say(Metrics())

    def _place_compared(self) -> None:
        """Beside the number where there is room, below it with larger text."""
        self._head.removeWidget(self._compared)
        self._column.removeWidget(self._compared)
        if large_text():
            self._compared.setContentsMargins(0, 0, 0, 0)
            self._column.insertWidget(1, self._compared)
        else:
            self._compared.setContentsMargins(0, 0, 0, 5)
            self._head.addWidget(self._compared, 0, Qt.AlignmentFlag.AlignBottom)

    @Slot()
    def _on_theme(self) -> None:
        self._place_compared()
        self._recolor()

    @Slot()
    def _recolor(self) -> None:
        _set_kind(self._number, "hero")
        self._number.setEnabled(not self._stale)
        if self._plot is not None:
            self._rate_plot.recolor(self._stale)


def large_text() -> bool:
    """Whether the text is so large that the pane cannot show two things beside each other."""
    return theme().font("ui").pixelSize() >= _LARGE_PX


def _set_kind(shown: QLabel, kind: str) -> None:
    if shown.property("kind") != kind:
        shown.setProperty("kind", kind)
        restyle(shown)
