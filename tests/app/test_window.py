"""The frame: rail, pages, pane, keys, notes, languages."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QLabel,
    QLineEdit,
    QListWidget,
    QScrollArea,
    QSlider,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.i18n import Language
from app.palette import KeyMap, Palette
from app.pane import STRIP
from app.rail import RailButton
from app.theme import theme
from app.widgets import Banner, FocusRing, IconButton, Switch, button
from app.window import LEAST, MainWindow
from tests.app.fake_engine import FakeEngine
from tests.app.stub_pages import StubPage

CTRL = Qt.KeyboardModifier.ControlModifier
SHIFT = Qt.KeyboardModifier.ShiftModifier


def stub(window: MainWindow) -> StubPage:
    return cast(StubPage, window.page)


def rail_item(window: MainWindow, name: str) -> RailButton:
    return next(b for b in window.rail.findChildren(RailButton) if b.property("page") == name)


def test_pages_are_built_once_and_only_when_visited(qtbot: QtBot, window: MainWindow) -> None:
    assert window.stack.count() == 1
    chat = window.page
    qtbot.mouseClick(rail_item(window, "models"), Qt.MouseButton.LeftButton)
    assert window.shown == "models" and window.stack.count() == 2
    qtbot.mouseClick(rail_item(window, "chat"), Qt.MouseButton.LeftButton)
    assert window.page is chat and window.stack.count() == 2


def test_the_rail_shows_where_one_is(window: MainWindow) -> None:
    for name in ("models", "settings", "chat"):
        window.navigate(name)
        checked = [
            b.property("page") for b in window.rail.findChildren(RailButton) if b.isChecked()
        ]
        assert checked == [name]


@pytest.mark.parametrize(
    ("key", "page"),
    [(Qt.Key.Key_1, "chat"), (Qt.Key.Key_2, "models"), (Qt.Key.Key_Comma, "settings")],
)
def test_keys_of_the_pages(qtbot: QtBot, window: MainWindow, key: Qt.Key, page: str) -> None:
    window.navigate("settings" if page != "settings" else "chat")
    qtbot.keyClick(window, key, CTRL)
    assert window.shown == page
    assert stub(window).field.hasFocus(), "the focus is where the user starts"


def test_navigate_hands_its_wish_to_the_page(window: MainWindow) -> None:
    window.services.navigate("models", path=Path("a.gguf"))
    assert stub(window).opened == [{"path": Path("a.gguf")}]


@pytest.mark.parametrize(
    ("key", "modifier", "wish"),
    [
        (Qt.Key.Key_N, CTRL, {"new": True}),
        (Qt.Key.Key_L, CTRL, {"pick": True}),
        (Qt.Key.Key_F, CTRL | SHIFT, {"search": True}),
    ],
)
def test_chat_keys_work_from_other_pages(
    qtbot: QtBot,
    window: MainWindow,
    key: Qt.Key,
    modifier: Qt.KeyboardModifier,
    wish: dict[str, bool],
) -> None:
    window.navigate("models")
    qtbot.keyClick(window, key, modifier)
    assert window.shown == "chat"
    assert stub(window).opened == [wish]


def test_a_new_chat_can_be_begun_from_everywhere(qtbot: QtBot, window: MainWindow) -> None:
    window.navigate("chat")
    qtbot.keyClick(window, Qt.Key.Key_N, CTRL)
    window.rail.focus_first()
    qtbot.keyClick(window, Qt.Key.Key_N, CTRL)
    assert stub(window).opened == [{"new": True}, {"new": True}]


@pytest.mark.parametrize("key", [Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space])
def test_every_kind_of_button_is_pressed_by_enter_and_space(
    qtbot: QtBot, window: MainWindow, key: Qt.Key
) -> None:
    pressed: list[str] = []
    page = stub(window)
    made: list[QAbstractButton] = [
        button("Plain", lambda: pressed.append("plain")), IconButton("copy", "Icon"), Switch("Switch"),
    ]  # fmt: skip
    made[1].clicked.connect(lambda: pressed.append("icon"))
    made[2].clicked.connect(lambda: pressed.append("switch"))
    for one in made:
        page.layout().addWidget(one)  # type: ignore[union-attr]
        one.show()
        one.setFocus()
        qtbot.keyClick(one, key)
    assert pressed == ["plain", "icon", "switch"]
    item = rail_item(window, "models")
    item.setFocus()
    qtbot.keyClick(item, key)
    assert window.shown == "models"


def test_f6_goes_round_the_parts(qtbot: QtBot, window: MainWindow) -> None:
    seen = []
    for _ in range(3):
        qtbot.keyClick(window, Qt.Key.Key_F6)
        focus = window.focusWidget()
        parts = {"rail": window.rail, "page": window.stack, "pane": window.pane}
        seen.append(next(n for n, p in parts.items() if p.isAncestorOf(focus)))
    assert seen == ["pane", "rail", "page"]
    qtbot.keyClick(window, Qt.Key.Key_F6, SHIFT)
    assert window.rail.isAncestorOf(window.focusWidget())


def test_tab_order_is_rail_then_page_then_pane(qtbot: QtBot, window: MainWindow) -> None:
    window.rail.focus_first()
    order: list[str] = []
    for _ in range(40):
        focus = window.focusWidget()
        for name, part in (("rail", window.rail), ("page", window.stack), ("pane", window.pane)):
            if part.isAncestorOf(focus) and (not order or order[-1] != name):
                order.append(name)
        qtbot.keyClick(focus, Qt.Key.Key_Tab)
        if window.focusWidget() is None or len(order) > 3:
            break
    assert order[:3] == ["rail", "page", "pane"]


def test_the_pane_folds_and_is_remembered(qtbot: QtBot, window: MainWindow) -> None:
    assert window.pane.isVisible() and window.pane.width() > 200
    qtbot.keyClick(window, Qt.Key.Key_I, CTRL)
    qtbot.waitUntil(lambda: window.pane.width() == STRIP)
    button = window.pane.findChild(QToolButton)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: window.pane.width() > 200)


def test_the_rail_can_go(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.keyClick(window, Qt.Key.Key_B, CTRL)
    assert not window.rail.isVisible()
    qtbot.keyClick(window, Qt.Key.Key_F6)
    qtbot.keyClick(window, Qt.Key.Key_F6)
    assert window.stack.isAncestorOf(window.focusWidget())
    qtbot.keyClick(window, Qt.Key.Key_2, CTRL)
    assert window.shown == "models"
    qtbot.keyClick(window, Qt.Key.Key_B, CTRL)
    assert window.rail.isVisible()


def test_a_page_without_inspector_has_no_pane(window: MainWindow) -> None:
    window.navigate("models")
    assert not window.pane.isVisible()
    window.navigate("chat")
    assert window.pane.isVisible()


def test_a_narrow_window_folds_the_pane_and_a_wide_one_gives_it_back(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.resize(1000, 700)
    qtbot.waitUntil(lambda: window.pane.width() == STRIP)
    window.resize(1400, 700)
    qtbot.waitUntil(lambda: window.pane.width() > 200)
    qtbot.keyClick(window, Qt.Key.Key_I, CTRL)
    window.resize(1000, 700)
    window.resize(1400, 700)
    assert window.pane.folded, "folded by hand stays folded"


def test_text_size_keys(qtbot: QtBot, window: MainWindow) -> None:
    settings = window.services.settings
    qtbot.keyClick(window, Qt.Key.Key_Plus, CTRL)
    assert settings.value.text_size == 110
    for _ in range(20):
        qtbot.keyClick(window, Qt.Key.Key_Minus, CTRL)
    assert settings.value.text_size == 70, "the bound holds"
    qtbot.keyClick(window, Qt.Key.Key_0, CTRL)
    assert settings.value.text_size == 100


def test_the_folded_pane_holds_its_button_at_every_text_size(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.toggle_pane()
    for size in (70, 100, 150, 200):
        theme().apply(text_size=size)
        button = window.pane.findChild(QToolButton)
        qtbot.waitUntil(
            lambda b=button: window.pane.rect().contains(  # type: ignore[misc]
                b.rect().translated(b.mapTo(window.pane, QPoint()))
            )
        )


def test_expert_is_a_setting(qtbot: QtBot, window: MainWindow) -> None:
    window.rail.set_expert(True)
    assert window.services.settings.value.expert
    window.services.settings.update(expert=False)
    assert not window.rail.expert


def test_the_palette_finds_and_does(qtbot: QtBot, window: MainWindow) -> None:
    done: list[str] = []
    action = QAction("Do a &rare thing", window)
    action.triggered.connect(lambda: done.append("rare"))
    window.services.actions.add(action)
    qtbot.keyClick(window, Qt.Key.Key_K, CTRL)
    palette = window.findChild(Palette)
    field, found = palette.findChild(QLineEdit), palette.findChild(QListWidget)
    assert found.count() > 5
    qtbot.keyClicks(field, "RARE thing")
    assert [found.item(i).text() for i in range(found.count())] == ["Do a rare thing"]
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert done == ["rare"]
    qtbot.waitUntil(lambda: window.findChild(Palette) is None)


def test_f1_shows_every_key(qtbot: QtBot, window: MainWindow) -> None:
    qtbot.keyClick(window, Qt.Key.Key_F1)
    keymap = window.findChild(KeyMap)
    shown = {w.text() for w in keymap.findChildren(QLabel)}
    for action in window.services.actions.all():
        assert action.text() in shown and action.shortcut().toString() in shown
    keymap.close()


def test_an_action_goes_with_its_owner(qtbot: QtBot, window: MainWindow) -> None:
    action = QAction("Short-lived", window)
    window.services.actions.add(action)
    action.deleteLater()
    qtbot.waitUntil(lambda: "Short-lived" not in [a.text() for a in window.services.actions.all()])


def test_dialogs_leave_nothing_behind(qtbot: QtBot, window: MainWindow) -> None:
    actions = window.services.actions

    def once() -> None:
        for made in (Palette(actions, window), KeyMap(actions, window)):
            made.open()
            made.close()
        QApplication.processEvents()
        QApplication.sendPostedEvents(None, 0)

    once()
    before = len(QApplication.allWidgets())
    for _ in range(20):
        once()
    qtbot.waitUntil(lambda: len(QApplication.allWidgets()) <= before)


def test_a_note_is_shown_once_and_can_be_closed(qtbot: QtBot, window: MainWindow) -> None:
    for _ in range(3):
        window.say("warn", lambda: "Settings cannot be saved.")
    notes = window.findChildren(Banner)
    assert len(notes) == 1
    qtbot.mouseClick(notes[0].findChildren(QToolButton)[-1], Qt.MouseButton.LeftButton)
    qtbot.waitUntil(lambda: not window.findChildren(Banner))


def test_first_run_stands_in_for_the_chat_until_a_model_is_there(
    qtbot: QtBot, window: MainWindow
) -> None:
    window.begin_first_run()
    assert window.shown == "first_run" and rail_item(window, "chat").isChecked()
    window.navigate("models")
    window.navigate("chat")
    assert window.shown == "first_run"
    window.services.controller.load(Path("a.gguf"))
    qtbot.waitUntil(lambda: window.shown == "chat")


def test_another_language_builds_the_pages_anew(
    qtbot: QtBot, language: Language, window: MainWindow
) -> None:
    page = stub(window)
    page.field.setText("half a message")
    language.apply("ko")
    qtbot.waitUntil(lambda: window.page is not page)
    assert page.closed == 1, "it could save first"
    assert stub(window).opened == [{"text": "half a message"}]
    assert rail_item(window, "chat").text() == "채팅"


@pytest.mark.parametrize("where", ["field", "button", "side"])
def test_another_language_leaves_the_keyboard_where_it_was(
    qtbot: QtBot, language: Language, window: MainWindow, where: str
) -> None:
    page = stub(window)
    getattr(page, where).setFocus()
    language.apply("ko")
    qtbot.waitUntil(lambda: window.page is not page)
    assert window.focusWidget() is getattr(stub(window), where)
    window.rail.focus_first()
    focus = window.focusWidget()
    language.apply("en")
    qtbot.waitUntil(lambda: rail_item(window, "chat").text() == "Chat")
    assert window.focusWidget() is focus, "what is not built anew keeps it"


def test_a_place_that_is_gone_gives_the_keyboard_to_the_page(
    qtbot: QtBot, language: Language, window: MainWindow
) -> None:
    page = stub(window)
    late = QLineEdit(page)
    late.show()
    late.setFocus()
    language.apply("ko")
    qtbot.waitUntil(lambda: window.page is not page)
    assert stub(window).field.hasFocus()


def test_another_language_does_not_wait_for_an_answer(
    qtbot: QtBot, language: Language, window: MainWindow, fake: FakeEngine
) -> None:
    from engine.types import Request

    controller = window.services.controller
    fake.answer, fake.token_s = "word " * 10_000, 0.005
    controller.load(Path("a.gguf"))
    qtbot.waitUntil(lambda: controller.state == "ready")
    page = window.page
    request_id = controller.submit(Request(messages=[]), lambda batch: None)
    language.apply("ko")
    qtbot.waitUntil(lambda: window.page is not page)
    assert controller.state == "generating"
    controller.cancel(request_id)


def test_the_status_strip_tells_the_state(
    qtbot: QtBot, window: MainWindow, fake: FakeEngine
) -> None:
    def said() -> str:
        return " ".join(w.text() for w in window.status.findChildren(QLabel) if w.isVisible())

    assert "No model loaded" in said()
    window.services.controller.load(Path("Tiny.gguf"))
    qtbot.waitUntil(lambda: "Ready Tiny Q4_1" in said())
    assert "8,192" in said() and "GB" in said()
    window.services.status("Looking for models", "search")
    assert "Looking for models" in said()
    window.services.status("")
    assert "Looking" not in said()
    window.services.controller.load(Path("bad.gguf"))
    qtbot.waitUntil(lambda: "Ready" in said())


def test_the_status_strip_tells_who_reaches_the_server(window: MainWindow) -> None:
    def said() -> str:
        return " ".join(w.text() for w in window.status.findChildren(QLabel) if w.isVisible())

    window.status.set_server("127.0.0.1:8080", False)
    assert "Server 127.0.0.1:8080" in said()
    window.status.set_server("127.0.0.1:8080", True)
    assert "Server, for other PCs too 127.0.0.1:8080" in said()
    window.status.set_server("", False)
    assert "Server" not in said()


def test_the_status_strip_gives_way_in_a_narrow_window(qtbot: QtBot, window: MainWindow) -> None:
    window.status.set_device("A processor with quite a long name and some more words")
    window.services.controller.load(Path("Model-with-a-long-name-Instruct.gguf"))
    qtbot.waitUntil(lambda: window.services.controller.state == "ready")
    window.services.status("Looking in known folders: 12 models found", "search")
    window.resize(LEAST)
    assert window.width() == LEAST.width()
    shown = [w.text() for w in window.status.findChildren(QLabel) if w.isVisible()]
    assert not any("processor" in text for text in shown)
    window.resize(1400, 700)
    shown = [w.text() for w in window.status.findChildren(QLabel) if w.isVisible()]
    assert any("processor" in text for text in shown)


def test_closing_tells_the_pages_and_the_listeners(qtbot: QtBot, window: MainWindow) -> None:
    order: list[str] = []
    page = stub(window)
    window.closing.connect(lambda: order.append("closing" if page.closed == 0 else "late"))
    window.close()
    assert order == ["closing"] and page.closed == 1


def test_keys_before_the_first_page_change_nothing(qtbot: QtBot, services: object) -> None:
    from app.page import Services
    from tests.app.conftest import STUBS

    window = MainWindow(cast(Services, services), STUBS)
    qtbot.addWidget(window)
    with qtbot.waitActive(window):
        window.show()
        window.activateWindow()
    qtbot.keyClick(window.windowHandle(), Qt.Key.Key_Space)
    assert not window.rail.expert


def test_the_first_picture_is_announced(qtbot: QtBot, services: object) -> None:
    from app.page import Services
    from tests.app.conftest import STUBS

    window = MainWindow(cast(Services, services), STUBS)
    qtbot.addWidget(window)
    with qtbot.waitSignal(window.painted):
        window.show()


def test_a_dialog_has_a_ring_too(qtbot: QtBot, window: MainWindow) -> None:
    window.ring.by_keyboard()
    qtbot.keyClick(window, Qt.Key.Key_F1)
    keymap = window.findChild(KeyMap)
    qtbot.waitUntil(lambda: keymap.focusWidget() is not None and keymap.isActiveWindow())
    ring = keymap.findChild(FocusRing)
    qtbot.keyClick(keymap.windowHandle(), Qt.Key.Key_Tab)
    assert ring.isVisible()
    assert ring.geometry().contains(keymap.focusWidget().mapTo(keymap, QPoint(0, 0)))
    keymap.close()


def test_in_a_list_the_ring_is_around_the_row(qtbot: QtBot, window: MainWindow) -> None:
    rows = QListWidget(window)
    rows.addItems([str(i) for i in range(40)])
    rows.setGeometry(100, 100, 200, 200)
    rows.show()
    window.ring.by_keyboard()
    rows.setFocus()
    for row in (0, 39):
        rows.setCurrentRow(row)
        where = rows.visualItemRect(rows.item(row))
        where.moveTopLeft(rows.viewport().mapTo(window, where.topLeft()))
        qtbot.waitUntil(lambda where=where: window.ring.geometry() == where)  # type: ignore[misc]


def test_the_ring_of_a_slider_goes_with_its_knob(window: MainWindow) -> None:
    slider = QSlider(Qt.Orientation.Horizontal, window)
    slider.setGeometry(100, 100, 200, 20)
    slider.show()
    window.ring.by_keyboard()
    slider.setFocus()
    first = window.ring.geometry()
    assert first.width() == first.height() < 40 and first.left() < 110
    slider.setValue(slider.maximum())
    slider.grab()
    assert window.ring.geometry() == first.translated(window.ring.x() - first.x(), 0)
    assert window.ring.geometry().right() > 290


def test_the_ring_stays_inside_what_scrolls(qtbot: QtBot, window: MainWindow) -> None:
    area = QScrollArea(window)
    tall = QWidget()
    tall.setFixedSize(150, 900)
    tall.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    area.setWidget(tall)
    area.setGeometry(100, 100, 200, 200)
    area.show()
    window.ring.by_keyboard()
    tall.setFocus()
    assert window.ring.isVisible() and window.ring.height() == area.viewport().height() + 8


def test_the_ring_follows_the_keyboard_only(qtbot: QtBot, window: MainWindow) -> None:
    ring, item = window.ring, rail_item(window, "models")
    qtbot.mouseClick(item, Qt.MouseButton.LeftButton, pos=QPoint(5, 5))
    assert not ring.isVisible()
    window.rail.focus_first()
    handle = window.windowHandle()
    qtbot.keyClick(handle, Qt.Key.Key_Tab)
    focus = window.focusWidget()
    assert ring.isVisible()
    where = focus.mapTo(window, QPoint(0, 0))
    assert ring.geometry().contains(where) and ring.width() == focus.width() + 8
    qtbot.mouseClick(handle, Qt.MouseButton.LeftButton, pos=QPoint(600, 300))
    assert not ring.isVisible()
