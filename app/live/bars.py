"""Small painted pictures of what drafts bring; each takes well under a millisecond and needs no pyqtgraph."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.live.history import nice_top
from app.theme import theme
from app.widgets.memorybar import paint_fill

STEPS = 64
LEFT = 36  # As the plot of speed.
_MEAN_OF = 8  # Bars that one point of the running mean is of.
_PARTS = ("draft", "model", "work")


def running_mean(lengths: Sequence[int]) -> list[float]:
    """For each bar the mean of it and up to seven before it."""
    means = []
    for i in range(len(lengths)):
        part = lengths[max(0, i + 1 - _MEAN_OF) : i + 1]
        means.append(sum(part) / len(part))
    return means


class _Picture(QWidget):
    """Of a fixed height; what it shows is said by its accessible description."""

    def __init__(self, name: str, height: int) -> None:
        super().__init__()
        self.setAccessibleName(name)
        self.setFixedHeight(height)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme().changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())


class LengthBars(_Picture):
    """Tokens of each of the last 64 verified drafts: the target's own at the bottom, drafted ones above.

    A line is their running mean, and a dashed one what a draft must bring to be worth its time.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, 104)
        self._lengths: tuple[int, ...] = ()
        self._even: float | None = None

    def set(self, lengths: Sequence[int], break_even: float | None) -> None:
        """Show these lengths, the newest at the right."""
        shown = tuple(lengths[-STEPS:])
        if (shown, break_even) != (self._lengths, self._even):
            self._lengths, self._even = shown, break_even
            self.update()

    @property
    def top(self) -> float:
        """The end of the axis: all bars and the dashed line are below it."""
        most = max(*self._lengths, self._even or 0.0, 0.0)
        return 4.0 if most <= 4 else nice_top(most)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(theme().font("micro"))
        half = painter.fontMetrics().height() / 2
        area = QRectF(LEFT, half, self.width() - LEFT, self.height() - 2 * half)
        top = self.top
        _grid(painter, area, [(t, f"{t:g}") for t in (0.0, top / 2, top)], top)
        pitch = area.width() / STEPS
        x = area.right() - pitch * len(self._lengths)
        own = theme().color("plot.target")
        unit = area.height() / top
        points, drafted = [], []
        for length, mean in zip(self._lengths, running_mean(self._lengths), strict=True):
            width = max(pitch - 1, 1)
            painter.fillRect(QRectF(x, area.bottom() - unit, width, unit), own)
            if length > 1:
                tall = (length - 1) * unit
                drafted.append(QRectF(x, area.bottom() - unit - tall, width, tall))
            points.append(QPointF(x + pitch / 2, area.bottom() - mean * unit))
            x += pitch
        _drafted(painter, drafted)
        _line(painter, points)
        if self._even is not None:
            y = round(area.bottom() - self._even * unit) + 0.5
            pen = QPen(theme().color("text.primary"), 1, Qt.PenStyle.CustomDashLine)
            pen.setDashPattern([3, 3])
            painter.setPen(pen)
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))


class PositionBars(_Picture):
    """How often each position of a draft was accepted, from 0 to 100 percent."""

    def __init__(self, name: str) -> None:
        super().__init__(name, 88)
        self._rates: tuple[float, ...] = ()

    def set(self, rates: Sequence[float]) -> None:
        """Show these shares, the first position at the left."""
        if tuple(rates) != self._rates:
            self._rates = tuple(rates)
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(theme().font("micro"))
        row = painter.fontMetrics().height()
        area = QRectF(LEFT, row / 2, self.width() - LEFT, self.height() - 1.5 * row - 2)
        _grid(painter, area, [(0.0, "0"), (0.5, "50"), (1.0, "100")], 1.0)
        if not self._rates:
            return
        pitch = min(area.width() / len(self._rates), 36.0)
        every = 1 + int(painter.fontMetrics().horizontalAdvance("00") // pitch)
        bars = []
        painter.setPen(theme().color("text.muted"))
        for i, rate in enumerate(self._rates):
            tall, x = area.height() * rate, area.left() + i * pitch
            bars.append(QRectF(x, area.bottom() - tall, pitch - 2, tall))
            if i % every == 0:
                place = QRectF(x, area.bottom() + 2, pitch - 2, row)
                painter.drawText(place, Qt.AlignmentFlag.AlignHCenter, str(i + 1))
        _drafted(painter, bars)


class TimeBar(_Picture):
    """A step's time as one bar: draft, verify and sample."""

    def __init__(self, name: str) -> None:
        super().__init__(name, theme().size("memoryBarThin"))
        self._times: tuple[float, ...] = ()

    def set(self, times: Sequence[float]) -> None:
        """Show these times, of any one unit."""
        if tuple(times) != self._times:
            self._times = tuple(times)
            self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        inner = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.fillRect(inner, theme().color("surface.field"))
        total, x = sum(self._times), inner.x()
        for kind, part in zip(_PARTS, self._times, strict=False):
            width = inner.width() * part / total if total else 0.0
            paint_fill(painter, QRectF(x, inner.y(), width, inner.height()), kind, thin=True)
            x += width
        painter.setPen(QPen(theme().color("line.strong"), 1))
        painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))


def _grid(painter: QPainter, area: QRectF, ticks: Sequence[tuple[float, str]], top: float) -> None:
    row = painter.fontMetrics().height()
    for value, text in ticks:
        y = round(area.bottom() - area.height() * value / top)
        painter.fillRect(QRectF(area.left(), y, area.width(), 1), theme().color("line.grid"))
        painter.setPen(theme().color("text.muted"))
        place = QRectF(0, y - row / 2, area.left() - 6, row)
        painter.drawText(place, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, text)


def _drafted(painter: QPainter, bars: Sequence[QRectF]) -> None:
    """Bars in the draft's hue, hatched as a second sign."""
    hue = theme().color("plot.draft")
    hatch = QBrush(theme().color("surface.panel"), Qt.BrushStyle.BDiagPattern)
    for bar in bars:
        painter.fillRect(bar, hue)
        painter.fillRect(bar, hatch)


def _line(painter: QPainter, points: Sequence[QPointF]) -> None:
    """A line of one pixel between two of the ground's colour: it is seen on bars and beside them."""
    ground: QColor = theme().color("surface.panel")
    for offset, color in ((-1, ground), (1, ground), (0, theme().color("plot.mean"))):
        painter.setPen(QPen(color, 1))
        painter.drawPolyline([p + QPointF(0, offset) for p in points])
