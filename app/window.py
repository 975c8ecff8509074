"""The main window: rail, pages, right pane, status strip, keys."""

from __future__ import annotations

import importlib
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QEvent, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QAction, QCloseEvent, QKeySequence, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QHBoxLayout,
    QMainWindow,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.page import Actions, Page, Services
from app.pane import STRIP, Pane
from app.rail import Rail
from app.settings import window_state
from app.status import StatusStrip
from app.widgets import FocusRing, Toast

__all__ = ["Actions", "MainWindow", "Page", "Services"]

log = logging.getLogger(__name__)

NARROW = 1180
MIN_WIDTH, MIN_HEIGHT = 720, 480


@dataclass(frozen=True, slots=True)
class PageSpec:
    """A page's place in the rail and the class that is imported on the first visit."""

    name: str
    icon: str
    where: str
    bottom: bool = False


PAGES = (
    PageSpec("chat", "chat", "app.chat.page:ChatPage"),
    PageSpec("models", "models", "app.models.page:ModelsPage"),
    PageSpec("settings", "settings", "app.settings_page:SettingsPage", bottom=True),
)


class MainWindow(QMainWindow):
    """Signals: `closing` comes before the window goes, while everything still works."""

    closing = Signal()

    def __init__(self, services: Services, pages: tuple[PageSpec, ...] = PAGES) -> None:
        super().__init__()
        self.setWindowTitle("Lucebox")
        self.setMinimumSize(MIN_WIDTH, MIN_HEIGHT)
        self.services = services
        self._specs = {spec.name: spec for spec in pages}
        self._pages: dict[str, Page] = {}
        self._shown = ""
        self._build()
        services.navigate = self.navigate
        services.toast = self.toast.say
        services.toast_undo = self.toast.say
        services.status = self.status.set_text
        self._add_actions()
        self.retranslate()
        self._restore()

    # Pages

    @property
    def page(self) -> Page | None:
        """The page that is shown."""
        return self._pages.get(self._shown)

    def show_page(self, name: str) -> Page:
        """Show a page by name, building it on the first visit."""
        page = self._pages.get(name) or self._make_page(name)
        self._shown = name
        self.stack.setCurrentWidget(page)
        self.rail.select(name)
        self.pane.show_inspector(page.inspector())
        self._place_pane()
        return page

    @Slot(str)
    def navigate(self, name: str, **kw: Any) -> None:
        """Show a page, put the focus where the user starts, and hand `kw` to it."""
        page = self.show_page(name)
        page.focus_first()
        if kw:
            page.open(**kw)

    def _make_page(self, name: str) -> Page:
        module, _, cls = self._specs[name].where.partition(":")
        page: Page = getattr(importlib.import_module(module), cls)(self.services)
        self._pages[name] = page
        self.stack.addWidget(page)
        return page

    # Parts

    def _build(self) -> None:
        self.rail = Rail()
        for spec in self._specs.values():
            self.rail.add(spec.name, spec.icon, spec.bottom)
        self.rail.set_expert(self.services.settings.value.expert)
        self.rail.chosen.connect(self.navigate)
        self.rail.expert_changed.connect(self._on_expert)
        self.stack = QStackedWidget()
        self.pane = Pane()
        self.pane.toggle_wanted.connect(self.toggle_pane)
        self.splitter = QSplitter(Qt.Orientation.Horizontal)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setHandleWidth(1)
        self.splitter.addWidget(self.stack)
        self.splitter.addWidget(self.pane)
        self.splitter.setStretchFactor(0, 1)
        self.splitter.setStretchFactor(1, 0)
        self.splitter.splitterMoved.connect(self._on_splitter)
        self.status = StatusStrip(self.services.controller)
        middle = QHBoxLayout()
        middle.setSpacing(0)
        middle.addWidget(self.rail)
        middle.addWidget(self.splitter, 1)
        central = QWidget()
        column = QVBoxLayout(central)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(middle, 1)
        column.addWidget(self.status)
        self.setCentralWidget(central)
        self.toast = Toast(self)
        self.ring = FocusRing(self)

    def _add_actions(self) -> None:
        self._actions: dict[str, QAction] = {}
        for name, keys, slot in (
            ("open", "Ctrl+O", self._on_open),
            ("pane", "Ctrl+I", self.toggle_pane),
            ("settings", "Ctrl+,", self._on_settings),
            ("quit", "Ctrl+Q", self.close),
        ):
            action = QAction(self)
            action.setShortcut(QKeySequence(keys))
            action.triggered.connect(slot)
            self.addAction(action)
            self._actions[name] = self.services.actions.add(action)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.LanguageChange:
            self.retranslate()
        super().changeEvent(event)

    def retranslate(self) -> None:
        """Take the words of the current language."""
        titles = {
            "chat": self.tr("Chat"),
            "models": self.tr("Models"),
            "settings": self.tr("Settings"),
        }
        for name in self._specs:
            self.rail.set_title(name, titles.get(name, name))
        self._actions["open"].setText(self.tr("Open a model file"))
        self._actions["pane"].setText(self.tr("Show or hide the right pane"))
        self._actions["settings"].setText(self.tr("Settings"))
        self._actions["quit"].setText(self.tr("Quit"))

    # The right pane

    @Slot()
    def toggle_pane(self) -> None:
        """Fold the right pane to a strip, or unfold it."""
        self.pane.set_folded(not self.pane.folded)
        self._place_pane()

    def _place_pane(self) -> None:
        width = STRIP if self.pane.folded else self.pane.wanted_width
        if self.pane.isVisibleTo(self):
            self.splitter.setSizes([max(self.splitter.width() - width, 1), width])

    @Slot()
    def _on_splitter(self) -> None:
        if not self.pane.folded:
            self.pane.wanted_width = self.pane.width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        was, now = event.oldSize().width() < NARROW, event.size().width() < NARROW
        if was != now or event.oldSize().width() < 0:
            self.pane.set_narrow(now)
            self._place_pane()

    # Slots

    @Slot(bool)
    def _on_expert(self, on: bool) -> None:
        self.services.settings.update(expert=on)

    @Slot()
    def _on_settings(self) -> None:
        self.navigate("settings")

    @Slot()
    def _on_open(self) -> None:
        files, _ = QFileDialog.getOpenFileNames(
            self, self.tr("Open a model file"), "", self.tr("Models (*.gguf);;All files (*)")
        )
        if files:
            self.services.open_paths([Path(f) for f in files])

    # Coming and going

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        QTimer.singleShot(0, self.ring.watch)

    def _restore(self) -> None:
        state = window_state()
        geometry = state.value("geometry")
        if isinstance(geometry, QByteArray):
            self.restoreGeometry(geometry)
        else:
            self.resize(1440, 900)
        width = state.value("pane", 0, int)
        if isinstance(width, int) and width:
            self.pane.wanted_width = width

    def closeEvent(self, event: QCloseEvent) -> None:
        self.closing.emit()
        state = window_state()
        state.setValue("geometry", self.saveGeometry())
        state.setValue("pane", self.pane.wanted_width)
        super().closeEvent(event)
