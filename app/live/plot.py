"""The plot of speed; the only file that imports pyqtgraph, and only when it is first shown."""

from __future__ import annotations

import numpy as np
import pyqtgraph as pg
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.live.history import SPAN_S, History, Prefill, nice_top
from app.theme import theme

LEFT = 36  # Least width of the axis; the words below the plot begin there.
_LEAST_BLOCK_S = 0.5  # A shorter prompt is still to be seen.
_LOW = 0.25  # A curve below this share of the height would cross a label at the bottom.


class _Blocks(pg.GraphicsObject):
    """Prompts being read: full-height blocks over their own time, never on the axis of the curve."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[tuple[float, float]] = []
        self.top = 1.0
        self.fill = QColor()
        self.edge = QColor()

    def boundingRect(self) -> QRectF:
        return QRectF(-SPAN_S, 0, SPAN_S, self.top)

    def paint(self, painter: QPainter, *_: object) -> None:
        pixel = self.pixelHeight() or 0.0
        for start, end in self.blocks:
            rect = QRectF(start, 0, end - start, self.top)
            painter.fillRect(rect, self.fill)
            painter.fillRect(QRectF(start, self.top - 2 * pixel, end - start, 2 * pixel), self.edge)


class RatePlot(QWidget):
    """Decode rate of the last 60 s as a line, prompts as blocks; `draw` is all that it does."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._top = 0.0
        self._plot = pg.PlotWidget(parent=self, background=None)
        for part in (self._plot, self._plot.viewport()):
            part.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._plot.setMouseEnabled(x=False, y=False)
        self._plot.setMenuEnabled(False)
        self._plot.hideButtons()
        self._plot.setStyleSheet("background: transparent")
        self._plot.setMinimumSize(0, 0)
        self._plot.setFrameShape(pg.QtWidgets.QFrame.Shape.NoFrame)
        self._plot.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._plot.setXRange(-SPAN_S, 0, padding=0)
        self._plot.getViewBox().setDefaultPadding(0)
        self._plot.hideAxis("bottom")
        self._axis = self._plot.getAxis("left")
        self._axis.setStyle(tickLength=0, tickTextOffset=6)
        self._lines = [pg.InfiniteLine(angle=0) for _ in range(3)]
        self._blocks = _Blocks()
        self._curve = pg.PlotDataItem(connect="finite", antialias=True)
        self._label = pg.TextItem(anchor=(0, 1))
        for item in (*self._lines, self._blocks, self._curve, self._label):
            self._plot.addItem(item)
        self._label.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._plot)
        self.recolor(stale=False)
        self._scale(10.0)

    def recolor(self, stale: bool) -> None:
        """Take the theme's colours; a stale curve is grey."""
        look = theme()
        # A pen of width 1 is the one that pyqtgraph draws fast with antialiasing.
        curve = look.color("line.control" if stale else "plot.target")
        self._curve.setPen(pg.mkPen(curve, width=1))
        self._axis.setPen(QPen(Qt.PenStyle.NoPen))
        self._axis.setTickPen(pg.mkPen(look.color("line.grid")))
        self._axis.setTextPen(look.color("text.faint"))
        micro = look.font("micro")
        metrics = QFontMetrics(micro)
        self._axis.setTickFont(micro)
        self._axis.setWidth(max(LEFT, metrics.horizontalAdvance("1,000") + 4))
        # Room for half of the highest and of the lowest tick's number.
        half = metrics.height() // 2
        self._plot.plotItem.layout.setContentsMargins(0, half, 0, half)
        for line in self._lines:
            line.setPen(pg.mkPen(look.color("line.grid"), width=1))
        self._blocks.fill = look.color("plot.kvSoft")
        self._blocks.edge = look.color("line.control" if stale else "plot.kv")
        self._blocks.update()
        self._label.setColor(look.color("text.muted"))
        # Where the curve goes everywhere, the plate keeps the text readable.
        self._label.fill = pg.mkBrush(look.color("surface.panel"))
        self._label.setFont(look.font("micro"))

    def draw(self, history: History, now: float, prefill_text: str) -> None:
        """Show the minute before `now`; `prefill_text` labels the last prompt."""
        x, y = history.curve(now)
        self._curve.setData(x, y)
        finite = y[~np.isnan(y)]
        top = nice_top(float(np.max(finite)) if len(finite) else 0.0)
        if top != self._top:
            self._scale(top)
        self._show_blocks(list(history.prefills), now)
        self._label.setVisible(bool(history.prefills and prefill_text))
        if history.prefills and prefill_text:
            self._label.setText(prefill_text)
            self._place_label(x, y)

    def _show_blocks(self, prefills: list[Prefill], now: float) -> None:
        self._blocks.blocks = [
            (max(p.start - now, -SPAN_S), max(p.end - now, p.start - now + _LEAST_BLOCK_S))
            for p in prefills
        ]
        self._blocks.update()

    def _place_label(self, x: NDArray[np.float64], y: NDArray[np.float64]) -> None:
        """Beside the last block, at its left near the right edge; below or above the curve there."""
        start, end = self._blocks.blocks[-1]
        left = end > -SPAN_S / 2
        view = self._plot.getViewBox()
        width = self._label.boundingRect().width() * view.viewPixelSize()[0]
        room = (start - width, start) if left else (end, end + width)
        near = y[(x >= room[0]) & (x <= room[1]) & ~np.isnan(y)]
        high = bool(len(near)) and float(np.min(near)) < _LOW * self._top
        self._label.setAnchor(QPointF(1 if left else 0, 0 if high else 1))
        self._label.setPos(start if left else end, self._top if high else 0)

    def _scale(self, top: float) -> None:
        self._top = self._blocks.top = top
        self._plot.setYRange(0, top, padding=0.02)
        ticks = (0.0, top / 2, top)
        self._axis.setTicks([[(t, f"{t:,.0f}") for t in ticks]])
        for line, tick in zip(self._lines, ticks, strict=True):
            line.setPos(tick)
