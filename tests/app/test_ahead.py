"""Pages that are made before they are visited, and what waits across a change of language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QInputMethodEvent, QInputMethodQueryEvent
from PySide6.QtWidgets import QApplication, QLineEdit, QListWidget, QWidget
from pytestqt.qtbot import QtBot

from app.i18n import Language
from app.page import PageSpec, Services
from app.palette import Palette
from app.widgets import Banner, IconButton
from app.window import MainWindow
from tests.app.stub_pages import InspectedPage, StubPage

HERE = "tests.app.test_ahead"
MADE: list[QWidget] = []


class SlowPage(InspectedPage):
    """Has two steps, of which one may fail."""

    fails = False

    def __init__(self, services: Services, parent: QWidget | None = None) -> None:
        super().__init__(services, parent)
        MADE.append(self)
        self.steps = 0
        self.hear = QAction("Hear", self)
        self.addAction(self.services.actions.add(self.hear))

    def build(self) -> Iterator[None]:
        for _ in range(2):
            self.steps += 1
            if self.steps == 2 and self.fails:
                raise RuntimeError("no")
            yield


class RarePage(SlowPage):
    """The Expert's."""


PAGES = (
    PageSpec("chat", "chat", "tests.app.stub_pages:StubPage"),
    PageSpec("models", "models", f"{HERE}:SlowPage"),
    PageSpec("tune", "tune", f"{HERE}:RarePage", expert=True),
)


@pytest.fixture
def window(qtbot: QtBot, services: Services) -> Iterator[MainWindow]:
    MADE.clear()
    made = MainWindow(services, PAGES)
    qtbot.addWidget(made)
    made.resize(1400, 800)
    made.show()
    made.navigate("chat")
    yield made


def pages() -> list[type]:
    return [type(p) for p in MADE]


def slow(window: MainWindow) -> SlowPage:
    return cast(SlowPage, window.page)


def test_what_the_rail_offers_is_made_and_nothing_else_moves(
    qtbot: QtBot, window: MainWindow
) -> None:
    chat = window.page
    window.ahead.begin()
    qtbot.waitUntil(lambda: not window.ahead.isActive())
    assert pages() == [SlowPage] and window.page is chat and not window.pane.isVisible()
    window.services.settings.update(expert=True)
    qtbot.waitUntil(lambda: not window.ahead.isActive())
    assert pages() == [SlowPage, RarePage]
    made = MADE[0]
    window.navigate("models")
    assert window.page is made and window.pane.isVisible() and slow(window).side.isVisible()
    assert pages() == [SlowPage, RarePage]


def test_a_visit_goes_on_with_what_is_half_made(qtbot: QtBot, window: MainWindow) -> None:
    steps = window.prepare("models")
    while not MADE or cast(SlowPage, MADE[0]).steps < 1:
        next(steps)
    window.navigate("models")
    assert window.page is MADE[0] and slow(window).steps == 2
    assert list(steps) == [], "and nothing is left for who began"
    assert pages() == [SlowPage]


def test_beginning_again_keeps_what_is_half_made(qtbot: QtBot, window: MainWindow) -> None:
    window.ahead.begin()
    qtbot.waitUntil(lambda: MADE != [])
    window.services.settings.update(text_size=110)
    qtbot.waitUntil(lambda: not window.ahead.isActive())
    window.navigate("models")
    assert window.page is MADE[0] and pages() == [SlowPage]


def test_what_is_half_made_in_the_old_language_is_made_anew(
    qtbot: QtBot, window: MainWindow, language: Language
) -> None:
    window.ahead.begin()
    qtbot.waitUntil(lambda: MADE != [])
    chat = window.page
    language.apply("ko")
    qtbot.waitUntil(lambda: window.page is not chat)
    qtbot.waitUntil(lambda: not window.ahead.isActive())
    assert pages() == [SlowPage, SlowPage]
    window.navigate("models")
    assert window.page is MADE[1]


def test_closing_leaves_nothing_half_made(qtbot: QtBot, window: MainWindow) -> None:
    steps = window.prepare("models")
    while window.stack.count() == 1:
        next(steps)
    window.close()
    assert window.stack.count() == 1 and not window.ahead.isActive()


def test_a_page_that_cannot_be_made_is_tried_again_by_the_next_visit(
    qtbot: QtBot, window: MainWindow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SlowPage, "fails", True)
    with pytest.raises(RuntimeError):
        window.navigate("models")
    assert window.shown == "chat" and window.stack.count() == 1
    monkeypatch.setattr(SlowPage, "fails", False)
    window.navigate("models")
    assert window.page is MADE[1]


def test_tab_comes_to_the_pane_after_a_page_that_was_made_later(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.services.settings.update(expert=True)
    window.navigate("models")
    window.navigate("tune")
    for name in ("models", "tune"):
        window.navigate(name)
        seen = [cast(QWidget, window.focusWidget())]
        while not window.pane.isAncestorOf(seen[-1]):
            qtbot.keyClick(seen[-1], Qt.Key.Key_Tab)
            seen.append(cast(QWidget, window.focusWidget()))
        page = slow(window)
        assert seen[:2] == [page.field, page.button] and len(seen) == 3


def test_the_palette_goes_to_the_page_whose_command_it_is(qtbot: QtBot, window: MainWindow) -> None:
    window.ahead.begin()
    qtbot.waitUntil(lambda: not window.ahead.isActive())
    heard: list[str] = []
    cast(SlowPage, MADE[0]).hear.triggered.connect(lambda: heard.append(window.shown))
    qtbot.keyClick(window, Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
    palette = window.findChild(Palette)
    assert palette is not None
    field, found = palette.findChild(QLineEdit), palette.findChild(QListWidget)
    qtbot.keyClicks(field, "hear")
    assert found.count() == 1
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert heard == ["models"]


def test_notes_speak_the_language_of_the_window(
    qtbot: QtBot, window: MainWindow, language: Language
) -> None:
    def words() -> str:
        return QApplication.translate("Banner", "Close this note")

    def shown() -> list[str]:
        return [n.text for n in window.notes.findChildren(Banner)]

    for kind in ("warn", "bad"):
        window.say(cast(Any, kind), lambda kind=kind: f"{kind}: {words()}")  # type: ignore[misc]
    window.notes.say_about("model", [lambda: f"model: {words()}"])
    before = shown()
    first = window.notes.findChildren(Banner)[0]
    first.findChildren(IconButton)[-1].click()
    language.apply("ko")
    qtbot.waitUntil(lambda: all("Close" not in text for text in shown()))
    assert [text.split(":")[0] for text in before] == ["warn", "bad", "model"]
    assert [text.split(":")[0] for text in shown()] == ["bad", "model"], "what is closed stays so"
    names = [b.accessibleName() for b in window.notes.findChildren(IconButton)]
    assert names == [words()] * 2 and "Close this note" not in names
    window.notes.say_about("model", [])
    assert [text.split(":")[0] for text in shown()] == ["bad"]


@pytest.mark.parametrize("committed", [True, False])
def test_korean_that_is_composed_before_there_is_a_page_is_kept(
    qtbot: QtBot, services: Services, committed: bool
) -> None:
    made = MainWindow(services, PAGES)
    qtbot.addWidget(made)
    made.show()
    asked = QInputMethodQueryEvent(Qt.InputMethodQuery.ImEnabled)
    QApplication.sendEvent(made, asked)
    assert asked.value(Qt.InputMethodQuery.ImEnabled) is True

    def compose(preedit: str, commit: str) -> None:
        event = QInputMethodEvent(preedit, [])
        event.setCommitString(commit)
        QApplication.sendEvent(made, event)

    compose("ㅎ", "")
    compose("하", "")
    compose("ㄴ", "하")
    compose("나", "")
    if committed:
        compose("", "나")
    made.navigate("chat")
    page = cast(StubPage, made.page)
    assert page.opened == [{"type": "하나"}]
    made.navigate("chat")
    assert len(page.opened) == 1


def test_the_window_takes_no_composed_text_from_a_page(
    window: MainWindow,
) -> None:
    event = QInputMethodEvent("", [])
    event.setCommitString("가")
    QApplication.sendEvent(window, event)
    window.navigate("models")
    window.navigate("chat")
    assert cast(StubPage, window.page).opened == []
