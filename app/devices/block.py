"""One device: its name, what it does at the moment, and who holds its memory."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.theme import theme
from app.widgets import MemoryBar, MemoryKeys, gigabytes, label
from engine.metrics import MemoryPart


class DeviceBlock(QWidget):
    """A line of words over a memory bar with its keys."""

    def __init__(self, icon: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._icon = icon
        self._picture = QLabel()
        self._name = label("", "strong")
        self._about = label("", "small", wrap=True)
        self._now = label("", "small")
        self._used = label("", "strong")
        self._bar = MemoryBar()
        self._keys = MemoryKeys(columns=3)
        head = QHBoxLayout()
        head.setSpacing(theme().space(2))
        head.addWidget(self._picture)
        head.addWidget(self._name)
        head.addWidget(self._about, 1)
        head.addWidget(self._now)
        head.addSpacing(theme().space(4))
        head.addWidget(self._used)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, theme().space(4))
        column.setSpacing(theme().space(2))
        column.addLayout(head)
        column.addWidget(self._bar)
        column.addWidget(self._keys)
        theme().changed.connect(self._fit)
        self._fit()

    def show_device(self, name: str, about: str, now: str, parts: Sequence[MemoryPart]) -> None:
        """Show what was read just now; `parts` sum to the whole memory."""
        total = sum(p.bytes for p in parts)
        free = sum(p.bytes for p in parts if p.kind == "free")
        self._name.setText(name)
        self._about.setText(about)
        self._now.setText(now)
        used = self.tr("{used} of {total}").format(
            used=gigabytes(total - free, unit=False), total=gigabytes(total)
        )
        self._used.setText(used)
        self._bar.set_parts(parts)
        self._keys.set_parts(parts)
        self.setAccessibleName(name)
        self.setAccessibleDescription(", ".join(t for t in (about, now, used) if t))

    def text(self) -> str:
        """All words, as a screen reader gets them."""
        return f"{self.accessibleName()}: {self.accessibleDescription()}"

    def _fit(self) -> None:
        ratio = self.devicePixelRatioF()
        self._picture.setPixmap(theme().pixmap(self._icon, "text.muted", 20, ratio))
        self._picture.setAlignment(Qt.AlignmentFlag.AlignVCenter)
