"""The main window: rail, pages, right pane, status strip."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Generator, Iterator
from typing import Any

from PySide6.QtCore import QEvent, QObject, QRect, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import (
    QCloseEvent,
    QGuiApplication,
    QInputMethodEvent,
    QKeyEvent,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import (
    QAbstractButton,
    QHBoxLayout,
    QMainWindow,
    QSplitter,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid

from app.ahead import Ahead, settle
from app.commands import Commands
from app.focus import focus_at, place_of
from app.geometry import repaired
from app.notes import Action, Kind, Notes, Words
from app.page import PAGES, Actions, Page, PageSpec, Services
from app.pane import Pane
from app.rail import Rail
from app.settings import window_state
from app.status import StatusStrip
from app.theme import theme
from app.widgets import FocusRing, Toast

__all__ = ["Actions", "MainWindow", "Page", "Services"]

log = logging.getLogger(__name__)

NARROW = 1180
LEAST, USUAL = QSize(720, 480), QSize(1440, 900)  # at the usual text size
MOST_TYPED = 1000
_NO_TEXT = (
    Qt.KeyboardModifier.ControlModifier
    | Qt.KeyboardModifier.AltModifier
    | Qt.KeyboardModifier.MetaModifier
)


class MainWindow(QMainWindow):
    """Shows pages by name; empty until `complete`, so that it is seen sooner.

    Signals:
        closing: the window is about to close; everything still works.
        painted: the first picture is on the screen; heavy imports may begin.
    """

    closing = Signal()
    painted = Signal()

    def __init__(
        self,
        services: Services,
        pages: tuple[PageSpec, ...] | None = None,
        at_once: bool = True,
    ) -> None:
        """Without `at_once` it completes itself once its empty frame is on the screen."""
        super().__init__()
        self.setWindowTitle("Lucebox")
        self._fit()
        self.services = services
        self._specs = {spec.name: spec for spec in pages or PAGES}
        self._pages: dict[str, Page] = {}
        self._making: dict[str, Generator[None]] = {}
        self._shown = ""
        self._stale = False
        self._first_run = False
        self._seen = False
        self._typed, self._composed = "", ""  # before there was a page to type into
        self.setAttribute(Qt.WidgetAttribute.WA_InputMethodEnabled)
        self._whole = False
        self._restore()
        if at_once:
            self.complete()

    def complete(self) -> None:
        """Make the parts, unless they are there."""
        if self._whole:
            return
        self._build()
        services = self.services
        services.navigate = self.navigate
        services.toast = self.toast.say
        services.toast_undo = self.toast.say
        services.status = self.status.set_text
        services.settings.changed.connect(self._on_settings)
        services.controller.model_changed.connect(self._on_model)
        theme().changed.connect(self._fit)
        self.commands = Commands(self)
        self.ahead = Ahead(self)
        self.retranslate()
        self._restore_pane()
        self._whole = True
        if self.isVisible():
            self.ring.watch()
            self.pane.set_narrow(self.width() < NARROW)
            self._place_pane()
        self.setFocus()  # Else the first switch has it, and what is typed before there is a page turns it.

    # Pages

    @property
    def page_names(self) -> list[str]:
        """The pages that have an item in the rail, in its order."""
        return [spec.name for spec in self._specs.values() if not spec.under]

    @property
    def offered(self) -> list[str]:
        """The pages whose items are seen, in the rail's order."""
        expert = self.services.settings.value.expert
        return [name for name in self.page_names if expert or not self._specs[name].expert]

    @property
    def page(self) -> Page | None:
        """The page that is shown."""
        return self._pages.get(self._shown)

    @property
    def shown(self) -> str:
        """The name of the page that is shown, "" before the first."""
        return self._shown

    def titles(self) -> dict[str, str]:
        """The pages' words in the rail."""
        known = {
            "chat": self.tr("Chat"),
            "models": self.tr("Models"),
            "tune": self.tr("Tune"),
            "devices": self.tr("Devices"),
            "server": self.tr("Server"),
            "settings": self.tr("Settings"),
        }
        return {name: known.get(name, name) for name in self.page_names}

    def show_page(self, name: str) -> Page:
        """Show a page by name, building it on the first visit."""
        if name == "chat" and self._first_run:
            name = "first_run"
        for _ in self.prepare(name):
            pass
        page = self._pages[name]
        self._shown = self.services.page = name
        self.stack.setCurrentWidget(page)
        self.rail.select(self._specs[name].under or name)
        self.pane.show_inspector(page.inspector())
        self._place_pane()
        return page

    def navigate(self, name: str, **kw: Any) -> None:
        """Show a page, put the focus where the user starts, and hand `kw` to its `open`."""
        page = self.show_page(name)
        page.focus_first()
        if kw:
            page.open(**kw)
        typed = self._typed + self._composed
        if typed and self._shown == "chat":
            self._typed = self._composed = ""
            page.open(type=typed)

    def bring(self, place: QObject | None) -> None:
        """Show the page that something belongs to, unless it is the one that is shown."""
        for name, page in self._pages.items():
            if page is place and name != self._shown:
                return self.navigate(name)

    def begin_first_run(self) -> None:
        """Show the first-run page in place of the chat until a model is loaded."""
        self._first_run = True
        self.navigate("chat")

    def prepare(self, name: str) -> Iterator[None]:
        """Make a page in steps, between which the window may answer; who asks later goes on with it."""
        while name not in self._pages:
            if name not in self._making:
                self._making[name] = self._make(name)
            next(self._making[name], None)
            yield

    def _make(self, name: str) -> Generator[None]:
        """The steps of making a page; before the first one is shown, it is seen growing."""
        module, _, cls = self._specs[name].where.partition(":")
        page: Page = getattr(importlib.import_module(module), cls)(self.services)
        inspector: QWidget | None = None
        try:
            yield
            self.stack.addWidget(page)
            if not self._shown:
                self.stack.setCurrentWidget(page)
            yield from page.build()
            inspector = page.inspector()
            yield
            if self._shown:
                yield from settle(page, self.stack)
            if inspector is not None:
                self.pane.hold(inspector)
                yield from settle(inspector, self.pane)
        except BaseException:  # It failed, or is not wanted any more.
            if isValid(self):
                self._drop(page, inspector)
            raise
        finally:
            del self._making[name]
        self._pages[name] = page
        # Tab goes in the order of adding: the page, what the pane shows for it, and the pane's button.
        self.setTabOrder(self.previousInFocusChain() or self, self.pane.fold_button)

    def _stop_making(self) -> None:
        for steps in list(self._making.values()):
            steps.close()

    def _renew_pages(self) -> None:
        """Build the pages anew after a change of language, which Qt tells of more than once."""
        if not self._stale:
            return
        self._stale = False
        self.notes.renew()
        self._stop_making()
        for name, page in list(self._pages.items()):
            self._renew_page(name, page)
        self.ahead.again()

    def _renew_page(self, name: str, page: Page) -> None:
        """Take a page away; the one that is shown comes back as it was, with the keyboard where it was."""
        page.can_close()
        memory, inspector, focus = page.memory(), page.inspector(), self.focusWidget()
        in_page = place_of(page, focus)
        in_pane = place_of(inspector, focus) if inspector is not None else None
        del self._pages[name]
        self._drop(page, inspector)
        if name != self._shown:
            return
        page = self.show_page(name)
        page.open(**memory)
        inspector = page.inspector()
        if in_pane is not None and inspector is not None:
            kept = focus_at(inspector, in_pane)
        else:
            kept = in_page is None or focus_at(page, in_page)
        if not kept:
            page.focus_first()

    def _drop(self, page: Page, inspector: QWidget | None) -> None:
        self.pane.forget(inspector)
        self.stack.removeWidget(page)
        page.deleteLater()

    # Parts

    def _build(self) -> None:
        self.rail = Rail()
        for name in self.page_names:
            spec = self._specs[name]
            self.rail.add(name, spec.icon, spec.bottom, spec.expert)
        self.rail.set_expert(self.services.settings.value.expert)
        self.rail.chosen.connect(self.navigate)
        self.rail.expert_changed.connect(self._on_expert)
        self.stack = QStackedWidget()
        self.pane = Pane()
        self.pane.toggle_wanted.connect(self.toggle_pane)
        self.content = self.splitter = QSplitter(Qt.Orientation.Horizontal)
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
        self.notes = Notes()
        column.addWidget(self.notes)
        column.addLayout(middle, 1)
        column.addWidget(self.status)
        self.setCentralWidget(central)
        self.toast = Toast(self, self.content)
        self.ring = FocusRing(self)

    @Slot()
    def _fit(self) -> None:
        """Larger text needs a larger window, as large as the screen at most."""
        self.setMinimumSize((LEAST * theme().scale).boundedTo(self.screen().availableSize()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        focus = self.focusWidget()
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if enter and isinstance(focus, QAbstractButton) and focus.isEnabled():
            focus.click()  # Icons, switches and pages of the rail know only Space.
        elif self.page is None and not event.modifiers() & _NO_TEXT:
            if event.key() == Qt.Key.Key_Backspace:
                self._typed = self._typed[:-1]
            elif event.text().isprintable():
                self._typed = (self._typed + event.text())[:MOST_TYPED]
        else:
            super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        """Korean and other scripts that are composed, before there is a page to type into."""
        if self.page is None:
            self._typed = (self._typed + event.commitString())[:MOST_TYPED]
            self._composed = event.preeditString()
        super().inputMethodEvent(event)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.LanguageChange and self._whole:
            self.retranslate()
            self._stale = True
            QTimer.singleShot(0, self, self._renew_pages)
        super().changeEvent(event)

    def say(
        self, kind: Kind, words: Words, details: str = "", action: Action | None = None
    ) -> None:
        """A note across the window's top until the user closes it: see `Notes.say`."""
        self.complete()
        self.notes.say(kind, words, details, action=action)

    def retranslate(self) -> None:
        """Take the words of the current language."""
        self.commands.retranslate()
        for name, title in self.titles().items():
            self.rail.set_title(name, title, self.commands.key_of(f"page.{name}"))

    def jump(self, step: int) -> None:
        """Move the focus to the next (1) or the previous (-1) part: rail, page, pane."""
        parts: list[QWidget] = [p for p in (self.rail, self.stack, self.pane) if p.isVisible()]
        focus = self.focusWidget()
        now = next((i for i, p in enumerate(parts) if focus and p.isAncestorOf(focus)), -step)
        target = parts[(now + step) % len(parts)]
        self.ring.by_keyboard()
        if target is self.stack:
            if self.page is not None:
                self.page.focus_first()
        elif isinstance(target, (Rail, Pane)):
            target.focus_first()

    def toggle_rail(self) -> None:
        """Hide the rail, or bring it back; its pages' keys work all the same."""
        self.rail.setVisible(not self.rail.isVisible())

    # The right pane

    def toggle_pane(self) -> None:
        """Fold the right pane to a strip, or unfold it."""
        self.pane.set_folded(not self.pane.folded)
        self._place_pane()

    def _place_pane(self) -> None:
        width = self.pane.strip if self.pane.folded else self.pane.wanted_width
        if self.pane.isVisibleTo(self):
            self.splitter.setSizes([max(self.splitter.width() - width - 1, 1), width])

    @Slot()
    def _on_splitter(self) -> None:
        if not self.pane.folded:
            self.pane.wanted_width = self.pane.width()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if not self._whole:
            return
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
        self.rail.set_expert(self.services.settings.value.expert)
        self.ahead.again()

    @Slot(object)
    def _on_model(self, model: object) -> None:
        if model is None or not self._first_run:
            return
        self._first_run = False
        if self._shown == "first_run":
            self.navigate("chat")

    # Coming and going

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Expose, QEvent.Type.Paint) and not self._seen:
            self._seen = True
            watched.removeEventFilter(self)
            # The picture is painted while this event is handled, so it is there after it.
            QTimer.singleShot(0, self, self._on_seen)
        return False

    @Slot()
    def _on_seen(self) -> None:
        log.info("The window is on the screen.")
        self.complete()
        QTimer.singleShot(0, self, self.painted.emit)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._whole:
            self.ring.watch()
        if not self._seen:
            self.windowHandle().installEventFilter(self)

    def _restore(self) -> None:
        state = window_state()
        saved = state.value("place")
        screens = QGuiApplication.screens()
        primary = QGuiApplication.primaryScreen()
        screens.sort(key=lambda s: s is not primary)
        areas = [s.availableGeometry() for s in screens]
        usual = USUAL.boundedTo(areas[0].size() * 0.9) if areas else USUAL
        if not isinstance(saved, QRect):
            saved = QRect(areas[0].topLeft(), usual) if areas else QRect(0, 0, 0, 0)
            saved.moveCenter(areas[0].center() if areas else saved.center())
        self.setGeometry(repaired(saved, areas, self.minimumSize(), usual))
        if state.value("maximized", False, bool) is True:
            self.setWindowState(Qt.WindowState.WindowMaximized)

    def _restore_pane(self) -> None:
        state = window_state()
        width = state.value("pane", 0, int)
        if isinstance(width, int) and width:
            self.pane.wanted_width = width
        self.pane.set_folded(state.value("folded", False, bool) is True)

    def _remember(self) -> None:
        state = window_state()
        state.setValue("place", self.normalGeometry())
        state.setValue("maximized", self.isMaximized())
        state.setValue("pane", self.pane.wanted_width)
        state.setValue("folded", self.pane.folded and not self.pane.narrow)

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.isVisible():
            if self._whole:
                self._remember()
            self.closing.emit()
            for page in self._pages.values():
                page.can_close()
        if self._whole:
            self.ahead.stop()
        self._stop_making()
        super().closeEvent(event)
