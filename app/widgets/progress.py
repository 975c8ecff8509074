"""A progress line: four pixels high, always with numbers."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from app.theme import theme
from app.widgets.basic import label


class ProgressLine(QWidget):
    """A thin bar with a text left and right above it."""

    def __init__(self, name: str = "", parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._texts = [name, ""]
        self._left = label(name, "small")
        self._right = label("", "small")
        for text in (self._left, self._right):
            text.setMinimumWidth(1)
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setRange(0, 1000)
        self._bar.setAccessibleName(name)
        words = QHBoxLayout()
        words.addWidget(self._left)
        words.addStretch(1)
        words.addWidget(self._right)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme().space(1))
        column.addLayout(words)
        column.addWidget(self._bar)

    def set_progress(self, done: float, total: float, left: str = "", right: str = "") -> None:
        """Show `done` of `total`; `left` names the stage, `right` holds the numbers."""
        share = min(max(done / total, 0.0), 1.0) if total > 0 else 0.0
        self._bar.setValue(round(share * 1000))
        self._texts = [left or self._texts[0], right]
        self._bar.setAccessibleName(self._texts[0])
        self._bar.setAccessibleDescription(right)
        self._show_texts()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_texts()

    def _show_texts(self) -> None:
        """Both texts where there is room; else the name gives way first."""
        metrics, (left, right) = self._left.fontMetrics(), self._texts
        room = self.width() - theme().space(3)
        numbers = metrics.elidedText(right, Qt.TextElideMode.ElideRight, room * 3 // 4)
        rest = room - metrics.horizontalAdvance(numbers)
        self._right.setText(numbers)
        self._left.setText(metrics.elidedText(left, Qt.TextElideMode.ElideMiddle, rest))
        self.setToolTip(f"{left}\n{right}" if numbers != right or self._left.text() != left else "")
