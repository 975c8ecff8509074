"""Server: other programs on this PC, or on the network, use the loaded model."""

from __future__ import annotations

import time
from collections.abc import Iterator

from PySide6.QtCore import QLocale, QSignalBlocker, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from app.forms import Choice, Whole
from app.i18n import told
from app.page import Page, Services
from app.server.cache import CachePane
from app.server.clients import Clients
from app.server.run import GUARDED, HERE, NETWORK, REACHES, LocalServer
from app.server.table import Requests, RequestsView
from app.theme import theme
from app.widgets import IconButton, Note, Switch, button, label
from engine.types import Metrics

EVERY_MS = 500


class ServerPage(Page):
    """Looks at requests and cache twice a second while it is seen and not paused."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self.title, self.icon = self.tr("Server"), "server"
        self.server = LocalServer.of(services)
        self._cache = CachePane()
        self.requests = Requests(self)
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self.look)
        self._switch = Switch(self.tr("Local API"))
        self._state = label("", "muted")
        self._none = label(
            self.tr("None yet. Switch the server on, and start one of the programs above."), "muted"
        )
        header = QFrame()
        header.setProperty("kind", "header")
        row = QHBoxLayout(header)
        row.setContentsMargins(24, 0, 16, 0)
        row.setSpacing(theme().space(3))
        row.addWidget(label(self.title, "lead"))
        row.addWidget(self._switch)
        row.addWidget(self._state, 1)
        body = QWidget()
        self._column = QVBoxLayout(body)
        self._column.setContentsMargins(24, 16, 24, 16)
        self._column.setSpacing(theme().space(2))
        self._scroll_below(header, body).setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def build(self) -> Iterator[None]:
        self._column.addLayout(self._make_notice())
        yield
        grid = QGridLayout()
        self._column.addLayout(grid)
        self._add_addresses(grid)
        yield
        self._add_reach(grid)
        yield
        self._add_key(grid)
        yield
        self._column.addSpacing(theme().space(2))
        self._column.addWidget(label(self.tr("Settings for your programs"), "section"))
        self._clients = Clients(self.server.target)
        self._clients.copied.connect(self._copy)
        self._column.addWidget(self._clients)
        for _ in self._clients.build():
            yield
        self._column.addSpacing(theme().space(2))
        self._column.addLayout(self._make_table_head())
        self._column.addWidget(self._none)
        yield
        view = RequestsView(self.requests)
        yield
        self._column.addWidget(view, 1)
        yield
        self._switch.toggled.connect(self.server.set_on)
        self.server.changed.connect(self._show)
        self.services.controller.model_changed.connect(self._show)
        self._show()
        self.server.read_key()

    def inspector(self) -> QWidget:
        return self._cache

    def focus_first(self) -> None:
        self._switch.setFocus(Qt.FocusReason.OtherFocusReason)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.look()
        self._timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._timer.stop()

    @Slot()
    def look(self) -> None:
        """Show the requests and the cache of this moment."""
        self.requests.refresh(self.server.requests(), time.monotonic())
        engine = self.services.controller.engine
        metrics = engine.metrics() if engine is not None else Metrics()
        self._cache.show_numbers(metrics, *self.requests.reuse())
        self._none.setVisible(not self.requests.rowCount())
        self._show_state()

    # Building

    def _make_notice(self) -> QHBoxLayout:
        self._problem, self._no_model = Note("bad", ""), Note("warn", "")
        self._no_model.set_text(
            self.tr("No model is loaded, so that requests are refused until one is.")
        )
        self._free = button(self.tr("Use a free port"), self.server.take_free_port)
        self._models = button(self.tr("Choose a model"), self._on_models)
        row = QHBoxLayout()
        row.setSpacing(theme().space(2))
        for note, fix in ((self._problem, self._free), (self._no_model, self._models)):
            row.addWidget(note, 1)
            row.addWidget(fix)
        return row

    def _add_addresses(self, grid: QGridLayout) -> None:
        grid.setHorizontalSpacing(theme().space(4))
        grid.setVerticalSpacing(theme().space(1))
        for column, stretch in enumerate((2, 2, 1)):
            grid.setColumnStretch(column, stretch)
        self._openai, self._anthropic = _Shown(), _Shown()
        openai, anthropic = self.tr("Address for OpenAI clients"), self.tr("Address for Anthropic")
        copy_first = self._copier(self._openai, self.tr("Copy the address for OpenAI clients"))
        copy_second = self._copier(self._anthropic, self.tr("Copy the address for Anthropic"))
        _place(grid, 0, 0, openai, self._openai, copy_first)
        _place(grid, 0, 1, anthropic, self._anthropic, copy_second)

    def _add_reach(self, grid: QGridLayout) -> None:
        self._port = Whole()
        self._port.setRange(1, 65535)
        self._port.setKeyboardTracking(False)
        self._port.lineEdit().setTextMargins(theme().space(2), 0, theme().space(2), 0)
        self._port.valueChanged.connect(self._on_port)
        self._reach = Choice()
        self._reach.setSizeAdjustPolicy(
            Choice.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon
        )
        self._reach.setMinimumContentsLength(12)
        for name, words in (
            (HERE, self.tr("Programs on this PC")),
            (GUARDED, self.tr("Programs on this PC, with the key")),
            (NETWORK, self.tr("The network, with the key")),
        ):
            self._reach.addItem(words, name)
        self._reach.currentIndexChanged.connect(self._on_reach)
        _place(grid, 0, 2, self.tr("Port"), self._port)
        _place(grid, 2, 0, self.tr("Who can connect"), self._reach)

    def _add_key(self, grid: QGridLayout) -> None:
        self._key = _Shown()
        self._key.setEchoMode(QLineEdit.EchoMode.Password)
        self._see = IconButton("eye", self.tr("Show the key"))
        self._see.setCheckable(True)
        self._see.toggled.connect(self._on_see)
        self._copy_key = self._copier(self._key, self.tr("Copy the key"))
        self._renew = IconButton(
            "retry", self.tr("Make a new key"), self.tr("Make a new key; the old one ends at once")
        )
        self._renew.clicked.connect(self.server.renew_key)
        _place(grid, 2, 1, self.tr("Key"), self._key, self._see, self._copy_key, self._renew)

    def _copier(self, field: QLineEdit, name: str) -> IconButton:
        made = IconButton("copy", name)
        made.clicked.connect(lambda: self._copy(field.text()))
        return made

    def _make_table_head(self) -> QHBoxLayout:
        self._pause = IconButton("pause", self.tr("Pause the table"))
        self._pause.setCheckable(True)
        self._pause.toggled.connect(self._on_pause)
        row = QHBoxLayout()
        row.setSpacing(theme().space(3))
        row.addWidget(label(self.tr("Requests"), "section"))
        row.addWidget(label(self.tr("while this page is open; prompts are not shown"), "small"), 1)
        row.addWidget(self._pause)
        return row

    # Showing

    @Slot()
    def _show(self) -> None:
        server, config = self.server, self.server.config
        with QSignalBlocker(self._port), QSignalBlocker(self._reach):
            self._port.setValue(config.port)
            self._reach.setCurrentIndex(list(REACHES).index(server.reach))
        self._openai.setText(f"{server.url}/v1")
        self._anthropic.setText(server.url)
        for field in (self._openai, self._anthropic):
            field.setCursorPosition(0)
        needed = server.reach != HERE
        self._key.setText(server.key if needed else "")
        self._key.setPlaceholderText("" if needed else self.tr("Not needed"))
        for part in (self._key, self._see, self._copy_key, self._renew):
            part.setEnabled(needed and bool(server.key))
        loaded = self.services.controller.model is not None
        self._problem.set_text(told(server.problem))
        self._problem.setVisible(bool(server.problem))
        self._free.setVisible(server.port_taken)
        lacking = not loaded and not server.problem
        self._no_model.setVisible(lacking)
        self._models.setVisible(lacking)
        why_not = "" if loaded else self.tr("Load a model first: its name is part of the settings.")
        if loaded and needed and not server.key:
            why_not = self.tr("The key is being fetched.")
        self._clients.show_target(why_not)
        self._show_state()

    def _show_state(self) -> None:
        state, since = self.server.state, self.server.since
        with QSignalBlocker(self._switch):
            self._switch.setChecked(state in ("on", "starting"))
        self._switch.update()
        if state == "on" and since is not None:
            begun = QLocale().toString(since.time(), QLocale.FormatType.ShortFormat)
            text = self.tr("On since {time}, requests now: {n}")
            words = text.format(time=begun, n=self.requests.going_on)
        else:
            words = {
                "starting": self.tr("Starting…"),
                "stopping": self.tr("Stopping…"),
            }.get(state, self.tr("Off"))
        self._state.setText(words)
        self._switch.setAccessibleDescription(words)

    # Doing

    @Slot(str)
    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.services.toast(self.tr("Copied."))

    @Slot(bool)
    def _on_see(self, seen: bool) -> None:
        mode = QLineEdit.EchoMode.Normal if seen else QLineEdit.EchoMode.Password
        self._key.setEchoMode(mode)
        self._see.set_name(self.tr("Hide the key") if seen else self.tr("Show the key"))

    @Slot(bool)
    def _on_pause(self, paused: bool) -> None:
        self._pause.set_icon("play" if paused else "pause")
        self._pause.set_name(
            self.tr("Go on with the table") if paused else self.tr("Pause the table")
        )
        if paused:
            self._timer.stop()
        elif self.isVisible():
            self.look()
            self._timer.start()

    @Slot(int)
    def _on_port(self, port: int) -> None:
        self.server.configure(port=port)

    @Slot()
    def _on_reach(self) -> None:
        host, require_key = REACHES[self._reach.currentData()]
        self.server.configure(host=host, require_key=require_key)

    def _on_models(self) -> None:
        self.services.navigate("models")


class _Shown(QLineEdit):
    """What is only read and copied, in letters of one width, which follow the text size."""

    def __init__(self) -> None:
        super().__init__()
        self.setReadOnly(True)
        theme().changed.connect(self._fit)
        self._fit()

    @Slot()
    def _fit(self) -> None:
        self.setFont(theme().font("mono"))


def _place(grid: QGridLayout, row: int, column: int, title: str, *parts: QWidget) -> None:
    """A title over a field with its buttons."""
    name = label(title, "small")
    name.setBuddy(parts[0])
    name.setContentsMargins(0, theme().space(2) if row else 0, 0, 0)
    parts[0].setAccessibleName(title)
    line = QHBoxLayout()
    line.setSpacing(2)
    line.addWidget(parts[0], 1)
    for part in parts[1:]:
        line.addWidget(part)
    grid.addWidget(name, row, column)
    grid.addLayout(line, row + 1, column)
