"""The memory bar: who owns how much, always in the same order, hue and pattern."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QLocale, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QWidget

from app.theme import theme
from app.widgets.basic import label

if TYPE_CHECKING:
    from engine.metrics import MemoryPart

# The model that is loaded is the target of speculation, whose hue it has everywhere.
_HUES = {"model": "target"}
ORDER = ("other", "model", "draft", "kv", "work", "free", "reserve")


_GB, _MB, _KB = 2**30, 2**20, 2**10


def gigabytes(size: float, unit: bool = True) -> str:
    """Bytes as a number people read: GB (2^30) with one decimal, MB below 0.1 GB, KB below 1 MB."""
    if size >= 0.1 * _GB or size == 0:
        return _in(size, _GB) + (" GB" if unit else "")
    return f"{_in(size, _MB)} MB" if size >= _MB else f"{_in(max(size, _KB), _KB)} KB"


def done_of(done: float, total: float) -> tuple[str, str]:
    """Two sizes in one unit, MB up to 1 GB, so that the first is seen to grow towards the second."""
    scale, name = (_GB, "GB") if total >= _GB else (_MB, "MB") if total >= _MB else (_KB, "KB")
    return f"{_in(done, scale)} {name}", f"{_in(total, scale)} {name}"


def _in(size: float, scale: int) -> str:
    return QLocale().toString(size / scale, "f", 1 if scale == _GB else 0)


def in_order(parts: Sequence[MemoryPart]) -> list[MemoryPart]:
    """Parts in the bar's order, unknown kinds taken as "work"."""
    known = [p if p.kind in ORDER else dataclasses.replace(p, kind="work") for p in parts]
    return sorted(known, key=lambda p: ORDER.index(p.kind))


def paint_fill(painter: QPainter, rect: QRectF, kind: str, thin: bool) -> None:
    """One block's fill: soft with a strong top edge, or strong when thin; hatches are a second sign."""
    look = theme()
    hue = f"plot.{_HUES.get(kind, kind)}"
    if kind in ("free", "reserve"):
        painter.fillRect(rect, look.color("surface.field"))
        if kind == "reserve":
            _hatch(painter, rect, "line.control", 8)
        return
    painter.fillRect(rect, look.color(hue if thin else f"{hue}Soft"))
    if kind == "draft" and thin:
        _hatch(painter, rect, "surface.bg", 6)
    elif kind == "other":
        _stripe(painter, rect, "surface.bg" if thin else "plot.other", 4)
    if not thin:
        painter.fillRect(QRectF(rect.x(), rect.y(), rect.width(), 3), look.color(hue))


def _stripe(painter: QPainter, rect: QRectF, token: str, pitch: int) -> None:
    """Vertical lines of one pixel."""
    color = theme().color(token)
    x = rect.x() + 1
    while x < rect.right():
        painter.fillRect(QRectF(x, rect.y(), 1, rect.height()), color)
        x += pitch


def _hatch(painter: QPainter, rect: QRectF, token: str, pitch: int) -> None:
    """Lines at 45 degrees, drawn and not tiled, so that they are sharp at every screen scale."""
    painter.save()
    painter.setClipRect(rect, Qt.ClipOperation.IntersectClip)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(theme().color(token), 1))
    height = rect.height()
    # From the widget's own edge, so that the lines of neighbours run on.
    x = (rect.x() - height) // pitch * pitch
    while x < rect.right():
        painter.drawLine(QPointF(x, rect.bottom()), QPointF(x + height, rect.y()))
        x += pitch
    painter.restore()


class MemoryBar(QWidget):
    """A bar of `MemoryPart`s; with `capacity` less than their sum it runs past a line at the end."""

    def __init__(
        self,
        parts: Sequence[MemoryPart] = (),
        thin: bool = False,
        capacity: int | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._thin = thin
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.set_parts(parts, capacity)
        theme().changed.connect(self.update)

    def set_parts(self, parts: Sequence[MemoryPart], capacity: int | None = None) -> None:
        """Show these parts of `capacity` bytes (by default their sum)."""
        self._parts = in_order(parts)
        self._capacity = capacity
        self.setAccessibleName(", ".join(f"{p.title} {gigabytes(p.bytes)}" for p in self._parts))
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, theme().size("memoryBarThin" if self._thin else "memoryBar"))

    def paintEvent(self, event: QPaintEvent) -> None:
        look = theme()
        painter = QPainter(self)
        inner = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.fillRect(inner, look.color("surface.field"))
        total = max(sum(p.bytes for p in self._parts), self._capacity or 0)
        x = inner.x()
        painter.setFont(look.font("small"))
        for part in self._parts:
            width = inner.width() * part.bytes / total if total else 0
            rect = QRectF(x, inner.y(), width, inner.height())
            paint_fill(painter, rect, part.kind, self._thin)
            if not self._thin:
                self._paint_label(painter, rect, part)
            x += width
            if width >= 2:
                painter.fillRect(
                    QRectF(x - 1, inner.y(), 1, inner.height()), look.color("surface.bg")
                )
        if self._capacity is not None and 0 < self._capacity < total:
            self._paint_end(painter, inner, self._capacity / total)
        painter.setPen(QPen(look.color("line.strong"), 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)

    def _paint_end(self, painter: QPainter, inner: QRectF, share: float) -> None:
        """The device's end, and what would lie beyond it."""
        look = theme()
        x = inner.x() + inner.width() * share
        beyond = QRectF(x, inner.y(), inner.right() - x, inner.height())
        painter.fillRect(beyond, look.color("state.badSoft"))
        _hatch(painter, beyond, "state.bad", 8)
        painter.fillRect(QRectF(x - 1, 0, 2, self.height()), look.color("state.bad"))

    def _paint_label(self, painter: QPainter, rect: QRectF, part: MemoryPart) -> None:
        look = theme()
        number = gigabytes(part.bytes, unit=False)
        metrics = painter.fontMetrics()
        name_width = metrics.horizontalAdvance(part.title)
        number_width = metrics.horizontalAdvance(number)
        inside = rect.adjusted(8, 3, -6, 0)
        flags = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft
        if part.kind == "reserve" or inside.width() < number_width:
            return
        whole = inside.width() >= name_width + 8 + number_width
        if part.kind == "other":  # On stripes the text has a plate of its own.
            width = number_width + (name_width + 8 if whole else 0)
            plate = QRectF(inside.x() - 3, inside.y() + 3, width + 6, inside.height() - 6)
            painter.fillRect(plate, look.color("plot.otherSoft"))
        if whole:
            painter.setPen(look.color("text.primary"))
            painter.drawText(inside, flags, part.title)
            inside.setX(inside.x() + name_width + 8)
            painter.setPen(look.color("text.muted"))
        else:
            painter.setPen(look.color("text.primary"))
        painter.drawText(inside, flags, number)


class EndNote(QWidget):
    """Words above a memory bar that run up to the line at the device's end, `share` of the width."""

    def __init__(self, text: str, share: float, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._text = text
        self._share = share
        self.setAccessibleName(text)
        self.setFixedHeight(theme().size("controlCompact") * 3 // 4)
        theme().changed.connect(self.update)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setFont(theme().font("small"))
        painter.setPen(theme().color("state.bad"))
        width = painter.fontMetrics().horizontalAdvance(self._text)
        left = min(max(round(self.width() * self._share) - width - 6, 0), self.width() - width)
        rect = QRectF(left, 0, width + 1, self.height())
        painter.drawText(
            rect, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, self._text
        )


class MemoryKey(QWidget):
    """A 10-px square in a block's fill."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self._kind = kind
        self.setFixedSize(10, 10)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        paint_fill(painter, QRectF(self.rect()), self._kind, thin=True)
        if self._kind in ("free", "reserve"):
            painter.setPen(QPen(theme().color("line.control"), 1))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


class MemoryKeys(QWidget):
    """The keys below a memory bar: square, title, number; `columns` beside each other."""

    def __init__(
        self, parts: Sequence[MemoryPart] = (), columns: int = 2, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._columns = columns
        self._shown: list[tuple[str, str]] = []
        self._numbers: list[QWidget] = []
        self._grid = QGridLayout(self)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(theme().space(2))
        self._grid.setVerticalSpacing(theme().space(1))
        self.set_parts(parts)

    def set_parts(self, parts: Sequence[MemoryPart]) -> None:
        """Show these parts; only numbers change while the owners stay the same."""
        parts = in_order(parts)
        owners = [(p.kind, p.title) for p in parts]
        if owners != self._shown:
            self._rebuild(parts)
            self._shown = owners
        for shown, part in zip(self._numbers, parts, strict=True):
            shown.setText(gigabytes(part.bytes))  # type: ignore[attr-defined]

    def _rebuild(self, parts: Sequence[MemoryPart]) -> None:
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        self._numbers = []
        for i, part in enumerate(parts):
            row, column = divmod(i, self._columns)
            number = label("", "small")
            number.setAlignment(Qt.AlignmentFlag.AlignRight)
            self._grid.addWidget(MemoryKey(part.kind), row, column * 4)
            self._grid.addWidget(label(part.title, "small"), row, column * 4 + 1)
            self._grid.addWidget(number, row, column * 4 + 2)
            self._grid.setColumnStretch(column * 4 + 1, 1)
            if column + 1 < self._columns:
                self._grid.setColumnMinimumWidth(column * 4 + 3, theme().space(4))
            self._numbers.append(number)
