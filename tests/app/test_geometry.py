"""A saved place of the window that does not fit the screens of today (H-GUI-03)."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect, QSize
from pytestqt.qtbot import QtBot

from app.geometry import TITLE_BAR, repaired
from app.page import Services
from app.settings import window_state
from app.theme import theme
from app.window import LEAST, USUAL, MainWindow
from tests.app.conftest import STUBS

SCREEN = QRect(0, 0, 1536, 864)
BAD = [
    QRect(-3000, -2000, 1200, 800),
    QRect(5000, 200, 1200, 800),
    QRect(0, -40, 9000, 6000),
    QRect(100, 100, 0, 0),
    QRect(-1199, 863, 1200, 800),
    QRect(0, 0, 10, 10),
]


@pytest.mark.parametrize("saved", BAD)
@pytest.mark.parametrize(
    "screens", [[SCREEN], [SCREEN, QRect(1536, -200, 1920, 1080)], [QRect(0, 0, 640, 400)]]
)
def test_the_window_is_on_a_screen(saved: QRect, screens: list[QRect]) -> None:
    rect = repaired(saved, screens, LEAST, USUAL)
    screen = next(s for s in screens if s.contains(rect))
    assert rect.y() >= screen.y() + min(TITLE_BAR, screen.height() // 4)
    least = LEAST.boundedTo(QSize(screen.width(), rect.height()))
    assert rect.width() >= least.width()
    assert rect.height() >= min(LEAST.height(), screen.height() * 3 // 4)


def test_a_good_place_is_kept() -> None:
    second = QRect(1536, 0, 1920, 1080)
    for good in (QRect(100, 100, 1200, 700), QRect(1700, 100, 1200, 800)):
        assert repaired(good, [SCREEN, second], LEAST, USUAL) == good


def test_no_screen_at_all() -> None:
    assert repaired(QRect(5, 5, 0, 0), [], LEAST, USUAL).size() == USUAL


@pytest.mark.parametrize("saved", BAD[:4])
def test_the_real_window_comes_back_from_a_bad_place(
    qtbot: QtBot, services: Services, saved: QRect
) -> None:
    window_state().setValue("place", saved)
    window = MainWindow(services, STUBS)
    qtbot.addWidget(window)
    window.show()
    assert window.screen().availableGeometry().contains(window.geometry())


def test_place_and_pane_are_remembered(qtbot: QtBot, window: MainWindow) -> None:
    place = QRect(40, 60, 700 + 20, 500)
    window.setGeometry(place)
    window.pane.wanted_width = 300
    window.close()
    again = MainWindow(window.services, STUBS)
    qtbot.addWidget(again)
    assert again.geometry() == place
    assert again.pane.wanted_width == 300


def test_damaged_notes_are_not_trusted(qtbot: QtBot, services: Services) -> None:
    state = window_state()
    state.setValue("place", "nonsense")
    state.setValue("pane", "wide")
    state.setValue("maximized", "perhaps")
    window = MainWindow(services, STUBS)
    qtbot.addWidget(window)
    assert window.pane.wanted_width > 0 and window.width() >= LEAST.width()


def test_larger_text_keeps_the_window_larger_where_the_screen_is(window: MainWindow) -> None:
    window.resize(LEAST)
    screen = window.screen().availableSize()
    for size in (110, 200, 100):
        theme().apply(text_size=size)
        assert window.minimumSize() == (LEAST * (size / 100)).boundedTo(screen)


def test_a_window_that_opens_with_larger_text_is_large_enough_for_it(
    qtbot: QtBot, services: Services
) -> None:
    theme().apply(text_size=110)
    made = MainWindow(services, STUBS, at_once=False)
    qtbot.addWidget(made)
    assert made.minimumSize() == LEAST * 1.1
