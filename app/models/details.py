"""The right pane of the models page: will it fit, how fast was it, what goes with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.focus import tab_through
from app.models.drafter import DrafterChoice, Offer
from app.models.library import Group, Item, Library
from app.models.words import (
    kind_text,
    memory_parts,
    rate_text,
    reason_text,
    summary,
    verdict_style,
    verdict_text,
)
from app.page import Services
from app.theme import theme
from app.widgets import (
    ElidedLabel,
    Hairline,
    IconButton,
    MemoryBar,
    MemoryKeys,
    Note,
    ScrollBody,
    button,
    label,
    scrolling,
)

if TYPE_CHECKING:
    from engine.placement import Estimate

_MARGIN = 16


class Details(QWidget):
    """One file in full.

    Signals:
        chat_wanted, bin_wanted: with the `Item`.
    """

    chat_wanted = Signal(object)
    bin_wanted = Signal(object)

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._services = services
        self._library: Library = services.library
        self._item: Item | None = None
        self.header_tools = label("", "small")
        self._body = QWidget()
        self._scroll = scrolling(QWidget())
        self._chat = button(self.tr("Chat with it"), self._on_chat, "main", "chat")
        self._folder = button(self.tr("Show file"), self.show_file, icon="folder")
        self._bin = IconButton("trash", self.tr("Move to the bin"))
        self._build()
        self.show_item(None)
        services.controller.model_changed.connect(self._on_model)

    @property
    def item(self) -> Item | None:
        """What is shown."""
        return self._item

    @Slot(object)
    def show_item(self, item: Item | None, again: bool = False) -> None:
        """Show a file; None says that none is chosen."""
        if item == self._item and self._item is not None and not again:
            return
        self._item = item
        self.setWindowTitle(item.title if item else self.tr("No model chosen"))
        self.header_tools.setText(item.entry.quant if item and item.entry.quant else "")
        self._top.setVisible(item is not None and item.group is Group.CHAT)
        self._foot.setVisible(item is not None)
        body = ScrollBody()
        self._column = QVBoxLayout(body)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        if item is not None:
            self._fill(item)
        self._column.addStretch(1)
        self._scroll.setWidget(body)
        tab_through(self._chat, body)

    def _build(self) -> None:
        self._top = QWidget()
        row = QHBoxLayout(self._top)
        row.setContentsMargins(_MARGIN, _MARGIN, _MARGIN, 0)
        row.addWidget(self._chat)
        row.addStretch(1)
        self._foot = QFrame()
        self._foot.setProperty("kind", "foot")
        foot = QHBoxLayout(self._foot)
        foot.setContentsMargins(_MARGIN, 12, _MARGIN, 12)
        foot.addWidget(self._folder)
        foot.addStretch(1)
        foot.addWidget(self._bin)
        self._bin.clicked.connect(self._on_bin)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._top)
        column.addWidget(self._scroll, 1)
        column.addWidget(self._foot)

    def _fill(self, item: Item) -> None:
        entry = item.entry
        if item.group is Group.PROBLEM:
            why = reason_text(entry.path, entry.problem) or self.tr("This file cannot be used.")
            self._section(Note("bad", why), self._line(self.tr("Kind"), kind_text(entry)))
            self._file(entry.path)
            return
        if item.estimate is not None:
            self._section(*self._fit(item.estimate))
        else:
            belongs = self.tr("It goes with a chat model and cannot chat by itself.")
            self._section(
                label(summary(entry), "muted", wrap=True), label(belongs, "small", wrap=True)
            )
        if item.group is Group.CHAT:
            self._section(label(self.tr("Speed"), "muted"), *self._speed(item))
            make = button(self.tr("Make a draft for it…"), self._on_make, "quiet", "draft")
            self._section(DrafterChoice(self._services, item), make)
            make.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        loaded = self._services.controller.model
        if entry.kind == "draft" and loaded is not None:
            text = self.tr("Use it with {model}").format(model=loaded.name)
            self._section(button(text, self._on_use, icon="play"))
        if entry.companions:
            self._section(
                label(self.tr("Goes with it"), "muted"),
                *[self._companion(path) for path in entry.companions],
            )
        self._file(entry.path)

    def _file(self, path: Path) -> None:
        self._section(
            label(self.tr("File"), "muted"), label(str(path), "small", wrap=True), last=True
        )

    def _fit(self, estimate: Estimate) -> list[QWidget]:
        head = QWidget()
        row = QHBoxLayout(head)
        row.setContentsMargins(0, 0, 0, theme().space(1))
        row.setSpacing(6)
        icon, kind = verdict_style(estimate)
        parts = memory_parts(estimate.parts)
        title = self.tr("On this PC, {n} tokens").format(n=f"{estimate.context:,}")
        picture = QLabel()
        picture.setPixmap(theme().pixmap(icon, f"state.{kind}", 16, self.devicePixelRatioF()))
        row.addWidget(label(title, "muted", wrap=True), 1)
        row.addWidget(picture)
        row.addWidget(label(verdict_text(estimate), kind))
        said = self.tr("as the last load measured") if estimate.measured else self.tr("estimated")
        return [
            head,
            MemoryBar(parts, capacity=estimate.device.memory_total),
            MemoryKeys(parts, columns=1),
            label(said, "small"),
        ]

    def _speed(self, item: Item) -> list[QWidget]:
        record = item.record
        none = self.tr("no measurement yet")
        rate = self.tr("{n} tok/s")
        return [
            self._line(
                self.tr("Writing, last measured"),
                rate.format(n=rate_text(record.decode_rate)) if record.decode_rate else none,
            ),
            self._line(
                self.tr("Prompt reading"),
                rate.format(n=rate_text(record.prefill_rate)) if record.prefill_rate else none,
            ),
            self._line(
                self.tr("Load from disk"),
                self.tr("{n} s").format(n=f"{record.load_s:.1f}") if record.load_s else none,
            ),
        ]

    def _companion(self, path: Path) -> QWidget:
        item = self._library.item(path)
        return self._line(path.name, kind_text(item.entry) if item is not None else "")

    @staticmethod
    def _line(name: str, value: str) -> QWidget:
        line = QWidget()
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(label(name, "small", wrap=True), 1)
        row.addWidget(ElidedLabel(value, "small"))
        line.setAccessibleName(f"{name}: {value}")
        return line

    def _section(self, *widgets: QWidget, last: bool = False) -> None:
        frame = QWidget()
        column = QVBoxLayout(frame)
        column.setContentsMargins(_MARGIN, _MARGIN, _MARGIN, _MARGIN)
        column.setSpacing(theme().space(1))
        for widget in widgets:
            column.addWidget(widget)
            if isinstance(widget, (MemoryBar, Note)):
                column.addSpacing(theme().space(1))
        self._column.addWidget(frame)
        if not last:
            self._column.addWidget(Hairline())

    @Slot(object)
    def _on_model(self, _model: object) -> None:
        """A draft can be used with another model now."""
        if self._item is not None and self._item.entry.kind == "draft":
            self.show_item(self._item, again=True)

    def _on_use(self) -> None:
        if self._item is not None and self._services.controller.model is not None:
            Offer(self._services, self._item.entry.path, self)

    def _on_make(self) -> None:
        if self._item is not None:
            self._services.navigate("make_draft", target=self._item.entry.path)

    def _on_chat(self) -> None:
        self.chat_wanted.emit(self._item)

    def show_file(self) -> None:
        if self._item is not None:
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._item.entry.path.parent)))

    def _on_bin(self) -> None:
        self.bin_wanted.emit(self._item)
