"""The real pages with a keyboard and a screen reader."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QApplication,
    QComboBox,
    QHeaderView,
    QLabel,
    QLineEdit,
    QScrollArea,
    QScrollBar,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.chat.page import ChatPage
from app.i18n import Language
from app.models.library import Library
from app.page import Services
from app.rail import RailButton
from app.theme import theme
from app.tune.page import TunePage
from app.window import LEAST, PAGES, MainWindow

INTERACTIVE = (
    QAbstractButton,
    QLineEdit,
    QComboBox,
    QAbstractSpinBox,
    QAbstractSlider,
    QAbstractItemView,
)


@pytest.fixture
def real(
    qtbot: QtBot, services: Services, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MainWindow]:
    """The window with its real pages."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(Path, "home", lambda: home)
    services.library = Library(services.settings, tmp_path / "models.json")
    window = MainWindow(services)
    qtbot.addWidget(window)
    window.resize(1400, 800)
    with qtbot.waitActive(window):
        window.show()
        window.activateWindow()
    yield window
    window.close()
    services.library.jobs.close()


def name_of(widget: QWidget) -> str:
    found = QAccessible.queryAccessibleInterface(widget)
    return found.text(QAccessible.Text.Name) if found is not None else ""


def reachable(window: MainWindow) -> list[QWidget]:
    """What the keyboard or the mouse can use now, parts of compound widgets left out."""
    compound = (QAbstractSpinBox, QComboBox, QLineEdit)
    return [
        w
        for w in window.findChildren(QWidget)
        if w.isVisible()
        and isinstance(w, INTERACTIVE)
        and not isinstance(w, (QScrollBar, QHeaderView))
        and not isinstance(w.parentWidget(), compound)
    ]


@pytest.mark.parametrize("page", [spec.name for spec in PAGES])
def test_everything_has_a_name(qtbot: QtBot, real: MainWindow, page: str) -> None:
    real.navigate(page)
    QApplication.processEvents()
    found = reachable(real)
    assert len(found) > 5
    areas = [a for a in real.findChildren(QScrollArea) if a.isVisible() and a.focusPolicy()]
    named = {w.buddy() for w in real.findChildren(QLabel)}
    nameless = [
        f"{type(w).__name__} in {type(w.parentWidget()).__name__}"
        for w in (*found, *areas)
        # The name of a list is its value on Linux.
        if not name_of(w)
        or (isinstance(w, QComboBox) and w not in named and not w.accessibleDescription())
    ]
    assert nameless == []


@pytest.mark.parametrize("page", [spec.name for spec in PAGES])
def test_the_tab_key_goes_round(qtbot: QtBot, real: MainWindow, page: str) -> None:
    real.navigate(page)
    QApplication.processEvents()
    real.rail.focus_first()
    start = real.focusWidget()
    seen = []
    for _ in range(150):
        focus = real.focusWidget()
        seen.append(focus)
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
        if real.focusWidget() is start:
            break
        assert real.focusWidget() is not focus, f"{type(focus).__name__} keeps the focus"
    assert real.focusWidget() is start, "it comes back to where it began"
    assert any(real.stack.isAncestorOf(w) for w in seen)
    assert all(w.isVisible() and w.isEnabled() for w in seen)


@pytest.mark.parametrize("page", ["models", "tune", "settings"])
def test_the_tab_key_goes_down_a_page_also_through_what_came_later(
    qtbot: QtBot, real: MainWindow, page: str
) -> None:
    with qtbot.waitSignal(real.services.controller.model_changed):
        real.services.controller.load(Path("/models/tiny.gguf"))
    real.resize(1400, 3000)
    real.navigate(page)
    shown = real.page
    assert shown is not None
    if isinstance(shown, TunePage):
        qtbot.waitUntil(lambda: len(shown.drafters.values) > 1)
    QApplication.processEvents()
    places = []
    widget = shown.nextInFocusChain()
    while widget is not shown:
        takes_it = widget.isVisible() and widget.focusPolicy() & Qt.FocusPolicy.TabFocus
        if takes_it and shown.isAncestorOf(widget) and widget.focusProxy() is None:
            places.append((widget.mapTo(shown, widget.rect().center()).y(), widget))
        widget = widget.nextInFocusChain()
    row = theme().size("control")
    wrong = [(a, b) for (y, a), (below, b) in itertools.pairwise(places) if below < y - row]
    assert not wrong


def test_the_window_can_be_made_small_again_after_large_text(
    qtbot: QtBot, real: MainWindow
) -> None:
    """What folds itself in a narrow window does not keep it wide."""
    for size, width in ((150, 900), (100, LEAST.width())):
        theme().apply(text_size=size)
        for spec in PAGES:
            real.navigate(spec.name)
            QApplication.processEvents()
        real._fit()
        real.resize(LEAST)
        assert real.width() <= width
        real.resize(1400, 800)


def test_pages_for_experts_are_in_the_rail_when_wanted_or_shown(real: MainWindow) -> None:
    def items() -> list[str]:
        found = [b for b in real.rail.findChildren(RailButton) if b.isVisible()]
        return [b.property("page") for b in found]

    assert items() == ["chat", "models", "settings"]
    real.rail.set_expert(True)
    assert items() == ["chat", "models", "tune", "devices", "server", "settings"]
    real.navigate("devices")
    real.rail.set_expert(False)
    assert items() == ["chat", "models", "devices", "settings"]
    real.navigate("chat")
    assert items() == ["chat", "models", "settings"]


def test_the_rail_is_a_choice_of_one_page(qtbot: QtBot, real: MainWindow) -> None:
    real.rail.set_expert(True)
    real.navigate("models")
    said = {}
    for item in real.rail.findChildren(RailButton):
        found = QAccessible.queryAccessibleInterface(item)
        assert found.role() == QAccessible.Role.RadioButton
        said[found.text(QAccessible.Text.Name)] = bool(found.state().checked)
    assert [name for name, chosen in said.items() if chosen] == ["Models"]


def test_in_the_rail_arrows_choose_a_page_and_tab_goes_on_to_expert(
    qtbot: QtBot, real: MainWindow
) -> None:
    def focused() -> str:
        focus = real.focusWidget()
        return name_of(focus) if real.rail.isAncestorOf(focus) else ""

    real.navigate("chat")
    real.rail.focus_first()
    assert focused() == "Chat"
    qtbot.keyClick(real.focusWidget(), Qt.Key.Key_Tab)
    assert focused() == "Expert"
    qtbot.keyClick(real.focusWidget(), Qt.Key.Key_Backtab)
    for name in ("Models", "Settings"):
        qtbot.keyClick(real.focusWidget(), Qt.Key.Key_Down)
        assert focused() == name and real.shown == name.lower()
    qtbot.keyClick(real.focusWidget(), Qt.Key.Key_Backtab)
    assert focused() == "Expert", "Settings comes after it"


def test_what_is_typed_before_there_is_a_page_comes_into_the_message_box(
    qtbot: QtBot, real: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.window.MOST_TYPED", 6)
    qtbot.keyClicks(real.focusWidget(), "What")
    qtbot.keyClick(real.focusWidget(), Qt.Key.Key_Backspace)
    qtbot.keyClick(real.focusWidget(), Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    qtbot.keyClick(real.focusWidget(), Qt.Key.Key_Return)
    qtbot.keyClicks(real.focusWidget(), "t if so")
    real.navigate("models")
    for _ in range(2):
        real.navigate("chat")
        assert isinstance(real.page, ChatPage) and real.page.composer.text == "What i"


def test_chat_has_the_cursor_in_the_message_box(real: MainWindow) -> None:
    real.navigate("chat")
    focus = real.focusWidget()
    assert real.page is not None and real.page.isAncestorOf(focus)
    assert focus.inputMethodQuery(Qt.InputMethodQuery.ImEnabled), "one can type at once"


def test_shortcuts_are_given_once(real: MainWindow) -> None:
    """The same keys in the window and in a page would do nothing at all."""
    for name in ("chat", "models", "settings"):
        real.navigate(name)
        QApplication.processEvents()
        keys: dict[str, list[str]] = {}
        for action in real.services.actions.all():
            inside = action.parent() is real or (
                real.page is not None
                and isinstance(action.parent(), QWidget)
                and (action.parent() is real.page or real.page.isAncestorOf(action.parent()))
            )
            if action.isEnabled() and inside:
                for shortcut in action.shortcuts():
                    keys.setdefault(shortcut.toString(), []).append(action.text())
        assert (name, {k: v for k, v in keys.items() if len(v) > 1}) == (name, {})


class Flashes(QObject):
    """Notes widgets that come up as windows of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            self.seen.append(type(watched).__name__)
        return False


def test_no_part_of_a_page_flashes_as_a_window(
    qtbot: QtBot, qapp: QApplication, real: MainWindow
) -> None:
    """A widget that is shown before it has a parent is a window for a moment, and takes the focus."""
    flashes = Flashes()
    qapp.installEventFilter(flashes)
    try:
        for spec in PAGES:
            real.navigate(spec.name)
            QApplication.processEvents()
    finally:
        qapp.removeEventFilter(flashes)
    assert flashes.seen == []


def test_pages_built_anew_leave_nothing_behind(
    qtbot: QtBot, real: MainWindow, language: Language
) -> None:
    def there_and_back() -> int:
        for name in ("ko", "en"):
            language.apply(name)
            for spec in PAGES:
                QApplication.processEvents()
                real.navigate(spec.name)
        QApplication.processEvents()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        gc.collect()
        return len(QApplication.allWidgets())

    there_and_back()
    before = there_and_back()
    assert there_and_back() == before
    assert there_and_back() == before
