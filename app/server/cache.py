"""The right pane of the Server page: what the cache saves, and how full it is."""

from __future__ import annotations

from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.theme import theme
from app.widgets import Hairline, ProgressLine, gigabytes, label
from engine.types import Metrics


class CachePane(QWidget):
    """Number first; all of it is from the engine's metrics and from the requests in the table."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle(self.tr("Cache"))
        self._share = label("", "hero")
        self._words = label("", "muted", wrap=True)
        self._pages = ProgressLine(self.tr("Pages in use"))
        self._held = label("", "small", wrap=True)
        self._last = label("", "small", wrap=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 16, 16, 16)
        column.setSpacing(theme().space(2))
        column.addWidget(self._share)
        column.addWidget(self._words)
        column.addWidget(self._last)
        column.addWidget(Hairline())
        column.addWidget(self._pages)
        column.addWidget(self._held)
        column.addStretch(1)
        self.show_numbers(Metrics(), 0, 0)

    def text(self) -> str:
        """All that it says, for tests and screen readers."""
        shown = (self._share, self._words, self._last, self._held)
        return "\n".join([x.text() for x in shown] + [self._pages.toolTip()])

    def show_numbers(self, metrics: Metrics, reused: int, prompts: int) -> None:
        """Show a moment; `reused` of `prompts` tokens of the last requests were in the cache."""
        number = QLocale().toString
        if prompts:
            self._share.setText(f"{reused * 100 // prompts} %")
            text = self.tr("of the prompts reused: {reused} of {all} tokens of the requests here.")
            self._words.setText(text.format(reused=number(reused), all=number(prompts)))
        else:
            self._words.setText(self.tr("No request has been read yet."))
        self._share.setVisible(bool(prompts))
        last = self.tr("Newest answer: {n} tokens of its prompt were in the cache.")
        self._last.setText(last.format(n=number(metrics.reused_tokens)))
        self._last.setVisible(bool(metrics.completion_tokens_total))
        used, total = metrics.pages_used, metrics.pages_total
        of = self.tr("{used} of {total}").format(used=number(used), total=number(total))
        self._pages.set_progress(used, total, right=of if total else self.tr("No model is loaded"))
        held = sum(part.bytes for part in metrics.memory if part.kind == "kv")
        self._held.setText(self.tr("They hold {size}.").format(size=gigabytes(held)))
        self._held.setVisible(bool(held))
