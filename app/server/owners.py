"""Who holds the pages of keys and values, as a bar with its keys."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QLocale, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QGridLayout, QSizePolicy, QVBoxLayout, QWidget

from app.theme import theme
from app.widgets import label

_HEIGHT = 12
_SQUARE = 10


def _fill(painter: QPainter, rect: QRectF, owner: str) -> None:
    """Steps of the hue of keys and values; what several requests share is hatched, and free is empty."""
    look = theme()
    painter.fillRect(rect, look.color("surface.field" if owner == "free" else "plot.kvSoft"))
    if owner == "running":
        painter.fillRect(rect, look.color("plot.kv"))
    elif owner == "shared":
        painter.fillRect(rect, QBrush(look.color("plot.kv"), Qt.BrushStyle.BDiagPattern))


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

    def set(self, counts: Sequence[int]) -> bool:
        """Show these numbers; whether they are others than before."""
        changed = tuple(counts) != self._counts
        if changed:
            self._counts = tuple(counts)
            self.update()
        return changed

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
    """Pages that one request uses, that several share, that are kept for later, and free ones."""

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        names = {
            "running": self.tr("In use"),
            "shared": self.tr("Shared by requests"),
            "kept": self.tr("Kept for later"),
            "free": self.tr("Free"),
        }
        self._names = tuple(names.values())
        self._bar = _Bar(name, tuple(names))
        self._numbers = [label("0", "small") for _ in names]
        grid = QGridLayout()
        grid.setHorizontalSpacing(theme().space(2))
        grid.setVerticalSpacing(theme().space(1))
        grid.setColumnStretch(1, 1)
        for row, (owner, title) in enumerate(names.items()):
            grid.addWidget(_Square(owner), row, 0)
            grid.addWidget(label(title, "small", wrap=True), row, 1)
            grid.addWidget(self._numbers[row], row, 2, Qt.AlignmentFlag.AlignRight)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme().space(2))
        column.addWidget(self._bar)
        column.addLayout(grid)

    def text(self) -> str:
        """The same in words."""
        return self._bar.accessibleDescription()

    def show_pages(self, running: int, shared: int, kept: int, free: int) -> None:
        """Show so many pages of each."""
        counts = (running, shared, kept, free)
        if not self._bar.set(counts) and self.text():
            return
        shown = [QLocale().toString(count) for count in counts]
        for number, text in zip(self._numbers, shown, strict=True):
            number.setText(text)
        words = (f"{name} {n}" for name, n in zip(self._names, shown, strict=True))
        self._bar.setAccessibleDescription(", ".join(words))
