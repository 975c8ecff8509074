"""Whom the pages of keys and values are for, as a bar with its keys."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QLocale, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from app.theme import theme
from app.widgets import label

_HEIGHT = 12
_SQUARE = 10


_CLIENTS = 3  # with a row of their own; those with the most pages
_STRENGTHS = {"0": 1.0, "1": 0.6, "2": 0.3}


def _fill(painter: QPainter, rect: QRectF, owner: str) -> None:
    """Steps of the hue of keys and values; what several clients share is hatched, and free is empty."""
    look = theme()
    painter.fillRect(rect, look.color("surface.field" if owner == "free" else "plot.kvSoft"))
    hue = look.color("plot.kv")
    if owner == "shared":
        painter.fillRect(rect, QBrush(hue, Qt.BrushStyle.BDiagPattern))
    elif owner in _STRENGTHS:
        hue.setAlphaF(_STRENGTHS[owner])
        painter.fillRect(rect, hue)


class _Square(QWidget):
    """The key of one owner."""

    def __init__(self, owner: str) -> None:
        super().__init__()
        self._owner = owner
        self.setFixedSize(_SQUARE, _SQUARE)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        _fill(painter, QRectF(self.rect()), self._owner)
        painter.setPen(
            QPen(theme().color("plot.kv" if self._owner != "free" else "line.control"), 1)
        )
        painter.drawRect(self.rect().adjusted(0, 0, -1, -1))


class _Bar(QWidget):
    """The pages of all owners side by side."""

    def __init__(self, name: str, owners: Sequence[str]) -> None:
        super().__init__()
        self._owners = owners
        self._counts: tuple[int, ...] = (0,) * len(owners)
        self.setAccessibleName(name)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        theme().changed.connect(self.update)

    def set(self, counts: Sequence[int]) -> None:
        """Show these numbers."""
        if tuple(counts) != self._counts:
            self._counts = tuple(counts)
            self.update()

    def sizeHint(self) -> QSize:
        return QSize(200, _HEIGHT)

    def paintEvent(self, event: QPaintEvent) -> None:
        look, painter = theme(), QPainter(self)
        inner = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.fillRect(inner, look.color("surface.field"))
        total, x = max(sum(self._counts), 1), inner.x()
        for owner, count in zip(self._owners, self._counts, strict=True):
            width = inner.width() * count / total
            _fill(painter, QRectF(x, inner.y(), width, inner.height()), owner)
            x += width
            if width >= 2:
                gap = QRectF(x - 1, inner.y(), 1, inner.height())
                painter.fillRect(gap, look.color("surface.bg"))
        painter.setPen(QPen(look.color("line.strong"), 1))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 2, 2)


class Owners(QWidget):
    """Pages that are for each of the first clients, for the others, for several together, and free ones."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._keys = (*_STRENGTHS, "others", "shared", "free")
        self._bar = _Bar(name, self._keys)
        self._rows = [
            (_Square(key), label("", "small", wrap=True), label("", "small")) for key in self._keys
        ]
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme().space(2))
        grid.setVerticalSpacing(theme().space(1))
        grid.setColumnStretch(1, 1)
        for n, (square, title, number) in enumerate(self._rows):
            grid.addWidget(square, n, 0)
            grid.addWidget(title, n, 1)
            grid.addWidget(number, n, 2, Qt.AlignmentFlag.AlignRight)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme().space(2))
        column.addWidget(self._bar)
        column.addLayout(grid)

    def text(self) -> str:
        """The same in words."""
        return self._bar.accessibleDescription()

    def show_pages(self, owners: Sequence[tuple[str | None, int]], free: int) -> None:
        """Show so many pages of each; an owner without a name is this application, None several together."""
        clients = [(name or self.tr("This app"), n) for name, n in owners if name is not None]
        first, others = clients[:_CLIENTS], clients[_CLIENTS:]
        first += [("", 0)] * (_CLIENTS - len(first))
        shown = [
            *first,
            (self.tr("Other clients"), sum(n for _, n in others)),
            (self.tr("Shared by clients"), dict(owners).get(None, 0)),
            (self.tr("Free"), free),
        ]
        words = []
        for key, row, (name, n) in zip(self._keys, self._rows, shown, strict=True):
            _, title, number = row
            title.setText(name)
            number.setText(QLocale().toString(n))
            there = bool(n) or key == "free"
            for part in row:
                part.setVisible(there)
            if there:
                words.append(f"{name} {number.text()}")
        self._bar.set([n for _, n in shown])
        self._bar.setAccessibleDescription(", ".join(words))
