"""The status strip: what the engine does, where, and how full it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QLocale, QSize, Qt, Slot
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLayout, QWidget

from app.controller import EngineController
from app.theme import theme
from app.widgets import ElidedLabel, gigabytes, label

if TYPE_CHECKING:
    from engine.metrics import Metrics
    from engine.types import LoadProgress, ModelInfo

ROOMY = 960
"""px from which the device and the server are named too."""

_DOTS = {
    "idle": "",
    "loading": "accent.base",
    "ready": "state.good",
    "generating": "accent.base",
    "stopping": "state.warn",
    "failed": "state.bad",
}


class _Dot(QWidget):
    """A filled dot in the state's colour, hollow when nothing is loaded; a word stands beside it."""

    def __init__(self) -> None:
        super().__init__()
        self._color = ""
        self.setFixedSize(8, 8)

    def set_color(self, token: str) -> None:
        self._color = token
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if self._color:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme().color(self._color))
            painter.drawEllipse(1, 1, 6, 6)
        else:
            painter.setPen(QPen(theme().color("text.muted"), 1))
            painter.drawEllipse(1, 1, 5, 5)


class Cell(QFrame):
    """A part of the strip: muted word, strong value, hairline at the right; a name may be cut."""

    def __init__(self, *before: QWidget, named: bool = False) -> None:
        super().__init__()
        self.setProperty("kind", "cell")
        self.word = label("", "small")
        self.value = ElidedLabel("", "strong") if named else label("", "strong")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 0, 12, 0)
        row.setSpacing(6)
        for widget in (*before, self.word, self.value):
            row.addWidget(widget)
        self.hide()

    def show_text(self, word: str, value: str) -> None:
        """Set both texts; an empty cell hides."""
        self.word.setText(word)
        self.word.setVisible(bool(word))
        self.value.setText(value)
        self.value.setVisible(bool(value))
        self.setAccessibleName(f"{word} {value}".strip())
        self.setVisible(bool(word or value))


class StatusStrip(QFrame):
    """State and model, device, memory, context, server; at the right a text for background work."""

    def __init__(self, controller: EngineController, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("kind", "status")
        self._controller = controller
        self._dot = _Dot()
        self._state = Cell(self._dot, named=True)
        self._device = Cell(named=True)
        self._memory = Cell()
        self._context = Cell()
        self._server = Cell()
        self._right_icon = QLabel()
        self._right_name = ""
        self._right = ElidedLabel("", "small")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 12, 0)
        row.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        row.setSpacing(0)
        for cell in (self._state, self._device, self._memory, self._context, self._server):
            row.addWidget(cell)
        row.addStretch(1)
        row.addWidget(self._right_icon)
        row.addSpacing(6)
        row.addWidget(self._right)
        self._device_name = self._served_at = ""
        self._to_others = False
        self._progress: LoadProgress | None = None
        controller.state_changed.connect(self._on_state)
        controller.model_changed.connect(self._on_model)
        controller.metrics_changed.connect(self._on_metrics)
        controller.load_progress.connect(self._on_progress)
        controller.watch_metrics(self)
        theme().changed.connect(self._fit)
        self._fit()
        self._on_state()

    def set_device(self, name: str) -> None:
        """Name where the model runs, as "AMD Ryzen 7 5800X"."""
        self._device_name = name
        self._make_room()

    def set_server(self, place: str, to_others: bool) -> None:
        """Say where the local API is served, as "127.0.0.1:8080", and whether `to_others`; "" for nowhere."""
        self._served_at, self._to_others = place, to_others
        self._make_room()

    def set_text(self, text: str, icon: str = "") -> None:
        """The right end: background work such as a scan; "" clears it."""
        self._right.setText(text)
        self._right_name = icon if text else ""
        self._paint_icon()

    def minimumSizeHint(self) -> QSize:
        """The strip gives way before it keeps the window from getting narrower."""
        return QSize(0, theme().size("status"))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        roomy = self.width() >= ROOMY
        self._device.show_text("", self._device_name if roomy else "")
        word = self.tr("Server, for other PCs too") if self._to_others else self.tr("Server")
        shown = roomy and self._served_at
        self._server.show_text(word if shown else "", self._served_at if shown else "")

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.LanguageChange:
            self._on_state()
            self._on_metrics(self._controller.metrics)
            self._make_room()
        super().changeEvent(event)

    def _fit(self) -> None:
        self.setFixedHeight(theme().size("status"))
        self._paint_icon()

    def _paint_icon(self) -> None:
        self._right_icon.setVisible(bool(self._right_name))
        if self._right_name:
            pixmap = theme().pixmap(self._right_name, "text.muted", 16, self.devicePixelRatioF())
            self._right_icon.setPixmap(pixmap)

    @Slot()
    def _on_state(self) -> None:
        state = self._controller.state
        words = {
            "idle": self.tr("No model loaded"),
            "loading": self.tr("Loading"),
            "ready": self.tr("Ready"),
            "generating": self.tr("Writing"),
            "stopping": self.tr("Stopping"),
            "failed": self.tr("Not loaded"),
        }
        self._dot.set_color(_DOTS[state])
        model = self._controller.model
        name = f"{model.name} {model.quant}".strip() if model else ""
        if state == "loading":
            path = self._controller.loading
            name = path.stem if path else name
            name = f"{name}  {self._stage()}".strip()
        else:
            self._progress = None
        if state == "idle":
            self._state.show_text("", words[state])
        else:
            self._state.show_text(words[state], name)

    def _stage(self) -> str:
        """How far the load is: a percentage while the file is read, then what is done to it."""
        progress = self._progress
        if progress is None:
            return ""
        if progress.stage == "preparing":
            return self.tr("preparing")
        if progress.stage == "warming up":
            return self.tr("warming up")
        share = progress.done / progress.total if progress.total else 0.0
        return f"{QLocale().toString(share * 100, 'f', 0)} %"

    @Slot(object)
    def _on_progress(self, progress: LoadProgress) -> None:
        self._progress = progress
        self._on_state()

    @Slot(object)
    def _on_model(self, model: ModelInfo | None) -> None:
        self._on_state()
        if model is None:
            self._memory.show_text("", "")
            self._context.show_text("", "")

    @Slot(object)
    def _on_metrics(self, metrics: Metrics) -> None:
        if self._controller.model is None:
            return
        if metrics.memory:
            # As in the live pane: what is in use, other programs included.
            whole = sum(p.bytes for p in metrics.memory)
            used = whole - sum(p.bytes for p in metrics.memory if p.kind in ("free", "reserve"))
            both = self.tr("{used} of {total}").format(
                used=gigabytes(used, unit=False), total=gigabytes(whole)
            )
            self._memory.show_text(self.tr("Memory"), both)
        if metrics.context_max:
            locale = QLocale()
            both = self.tr("{used} of {total}").format(
                used=locale.toString(metrics.context_used),
                total=locale.toString(metrics.context_max),
            )
            self._context.show_text(self.tr("Context"), both)
