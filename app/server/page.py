"""Server: other programs on this PC, or on the network, use the loaded model."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QLocale, QSignalBlocker, Qt, QTimer, Slot
from PySide6.QtGui import QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)

from app.forms import Choice, Whole, words
from app.i18n import told
from app.page import Page, Services
from app.server.cache import CachePane
from app.server.clients import Clients
from app.server.disk import DiskCache
from app.server.run import GUARDED, HERE, NETWORK, LocalServer
from app.server.table import Requests, RequestsView
from app.theme import theme
from app.widgets import IconButton, Note, ScrollBody, Switch, button, label
from engine.config import AppSettings, info_of
from engine.metrics import Metrics

EVERY_MS = 500


class ServerPage(Page):
    """Looks at requests and cache twice a second while it is seen and not paused."""

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        self.title = self.tr("Server")
        self.server = LocalServer.of(services)
        self._cache = CachePane(DiskCache.of(services))
        self.requests = Requests(self)
        self._view = RequestsView(self.requests)
        self._going_on = 0
        self._guests = Note("warn", "")
        self._unload = button(self.tr("Unload"), self.server.unload_guests)
        self._show_guests()
        self._texts = IconButton("eye", "")
        self._seen = label("", "small")
        self._timer = QTimer(self, interval=EVERY_MS)
        self._timer.timeout.connect(self.look)
        self._switch = Switch(self.tr("Local API"))
        self._state = label("", "muted")
        self._none = label("", "muted")
        header, row = self._make_header()
        row.setSpacing(theme().space(3))
        row.addWidget(self._switch)
        row.addWidget(self._state, 1)
        self._at_start = Switch(words(info_of(AppSettings, "serve_at_start").title))
        start = label(self._at_start.accessibleName(), "muted")
        start.setBuddy(self._at_start)
        row.addWidget(start)
        row.addWidget(self._at_start)
        body = ScrollBody()
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
        self._view.held_changed.connect(self._on_held)
        self._column.addWidget(self._view, 1)
        yield
        self._switch.toggled.connect(self.server.set_on)
        self._at_start.toggled.connect(self._on_at_start)
        self.services.settings.changed.connect(self._show_at_start)
        self._show_at_start()
        self.server.changed.connect(self._show)
        self.services.controller.model_changed.connect(self._show)
        self._show()
        self.server.read_key()
        self.server.look_for_addresses()

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
        lives = self.server.requests(self._texts.isChecked())
        self._going_on = sum(not live.ended for live in lives)
        if not self._view.held:
            self.requests.refresh(lives)
        engine = self.services.controller.engine
        metrics = engine.metrics() if engine is not None else Metrics()
        self._cache.show_numbers(metrics)
        self._show_none()
        self._show_state()
        self._show_guests()

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
        for note, fix in (
            (self._problem, self._free),
            (self._no_model, self._models),
            (self._guests, self._unload),
        ):
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
        self._reach.currentIndexChanged.connect(self._on_reach)
        _place(grid, 0, 2, self.tr("Port"), self._port)
        _place(grid, 2, 0, self.tr("Who can connect"), self._reach)
        self._others = label("", "small", wrap=True)
        grid.addWidget(self._others, 4, 0, 1, 3)

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
        self._texts.setCheckable(True)
        self._texts.toggled.connect(self._on_texts)
        row = QHBoxLayout()
        row.setSpacing(theme().space(3))
        row.addWidget(label(self.tr("Requests"), "section"))
        row.addWidget(self._seen, 1)
        row.addWidget(self._texts)
        row.addWidget(self._pause)
        self._show_texts(False)
        return row

    # Showing

    @Slot()
    def _show(self) -> None:
        server, config = self.server, self.server.config
        with QSignalBlocker(self._port), QSignalBlocker(self._reach):
            self._port.setValue(config.port)
            self._show_reach()
        self._openai.setText(f"{server.url}/v1")
        self._anthropic.setText(server.url)
        needed = server.reach != HERE
        self._key.setText(server.key if needed else "")
        for field in (self._openai, self._anthropic, self._key):
            field.setCursorPosition(0)
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

    def _show_guests(self) -> None:
        """What else is in memory, since a client asked for it."""
        guests = self.server.guests()
        text = self.tr("A client had this loaded beside the model of the window: {names}")
        self._guests.set_text(text.format(names=", ".join(guests)))
        for part in (self._guests, self._unload):
            part.setVisible(bool(guests))

    def _show_reach(self) -> None:
        """The choices, and how others reach this PC."""
        server = self.server
        choices = {
            HERE: self.tr("Programs on this PC"),
            GUARDED: self.tr("Programs on this PC, with the key"),
            NETWORK: self.tr("The network, with the key"),
        }
        one = self.tr("Through {address} ({card}), with the key")
        for host, card in server.addresses:
            choices[host] = one.format(address=host, card=card)
        choices.setdefault(
            server.reach, self.tr("Through {address}, with the key").format(address=server.reach)
        )
        if list(choices) != [self._reach.itemData(n) for n in range(self._reach.count())]:
            self._reach.clear()
            for name, title in choices.items():
                self._reach.addItem(title, name)
        self._reach.setCurrentIndex(self._reach.findData(server.reach))
        urls = ", ".join(server.urls_of_others)
        if urls:
            text = self.tr("Other PCs reach it at {urls}, and need the key.").format(urls=urls)
        elif server.reach not in (HERE, GUARDED):
            text = self.tr("Other PCs reach it too, and need the key.")
        else:
            text = ""
        self._others.setText(text)
        self._others.setVisible(bool(text))

    @Slot()
    def _show_at_start(self) -> None:
        with QSignalBlocker(self._at_start):
            self._at_start.setChecked(self.services.settings.value.serve_at_start)
        self._at_start.update()

    def _show_none(self) -> None:
        if self.server.state == "on":
            text = self.tr("None yet. Start one of the programs above.")
        else:
            text = self.tr("None yet. Switch the server on, and start one of the programs above.")
        self._none.setText(text)
        self._none.setVisible(not self.requests.rowCount())

    def _show_state(self) -> None:
        state, since = self.server.state, self.server.since
        with QSignalBlocker(self._switch):
            self._switch.setChecked(state in ("on", "starting"))
        self._switch.update()
        if state == "on" and since is not None:
            begun = QLocale().toString(since.time(), QLocale.FormatType.ShortFormat)
            text = self.tr("On since {time}, requests now: {n}")
            said = text.format(time=begun, n=self._going_on)
        else:
            said = {
                "starting": self.tr("Starting…"),
                "stopping": self.tr("Stopping…"),
            }.get(state, self.tr("Off"))
        self._state.setText(said)
        self._switch.setAccessibleDescription(said)

    # Doing

    @Slot(str)
    def _copy(self, text: str) -> None:
        QGuiApplication.clipboard().setText(text)
        self.services.toast(lambda: self.tr("Copied."))

    @Slot(bool)
    def _on_see(self, seen: bool) -> None:
        mode = QLineEdit.EchoMode.Normal if seen else QLineEdit.EchoMode.Password
        self._key.setEchoMode(mode)
        self._see.set_name(self.tr("Hide the key") if seen else self.tr("Show the key"))

    @Slot(bool)
    def _on_texts(self, shown: bool) -> None:
        self._show_texts(shown)
        self._view.show_texts(shown)
        if not shown:
            self.requests.forget_texts()
        if not self._pause.isChecked():
            self.look()

    def _show_texts(self, shown: bool) -> None:
        name = self.tr("Hide the prompts") if shown else self.tr("Show what the prompts begin with")
        self._texts.set_name(name)
        self._show_seen()

    def _show_seen(self) -> None:
        """What the table shows, or why it stands still."""
        if self._view.held == "hover":
            text = self.tr("frozen while the pointer is over the table")
        elif self._view.held == "focus":
            text = self.tr("frozen while a row is chosen; Esc lets go")
        elif self._texts.isChecked():
            text = self.tr("prompts are shown while they are answered, and kept nowhere")
        else:
            text = self.tr("prompts are not shown or kept")
        self._seen.setText(text)
        self._view.setAccessibleDescription(text)

    @Slot()
    def _on_held(self) -> None:
        self._show_seen()
        if not self._view.held and self._timer.isActive():
            self.look()

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
        self.server.set_reach(self._reach.currentData())

    @Slot(bool)
    def _on_at_start(self, on: bool) -> None:
        self.services.settings.update(serve_at_start=on)

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
