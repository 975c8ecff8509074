"""Content that scrolls where there is no room for it."""

from __future__ import annotations

from PySide6.QtWidgets import QScrollArea, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

from app.chat.empty import EmptyChat
from app.report import ErrorReport, Way
from app.widgets import ErrorCard, ScrollBody, Shrinkable, button, label


def test_it_takes_the_height_of_its_content_or_what_there_is(qtbot: QtBot) -> None:
    ways = tuple(Way(f"Way {n}", "costs little", "needs 2.0 GB", "", int) for n in range(3))
    card = ErrorCard(ErrorReport("It does not fit", "It needs more memory. " * 12, ways=ways))
    window = QWidget()
    column = QVBoxLayout(window)
    place = Shrinkable(card)
    column.addWidget(place)
    column.addStretch(1)
    qtbot.addWidget(window)
    window.resize(700, 900)
    window.show()
    qtbot.waitExposed(window)
    whole = card.heightForWidth(card.width())
    qtbot.waitUntil(lambda: place.height() == card.height() == whole)
    for width in range(690, 300, -10):
        window.resize(width, 900)
        qtbot.waitUntil(
            lambda: place.height() == card.height() == card.heightForWidth(place.width())
        )
    window.resize(400, 900)
    qtbot.waitUntil(lambda: place.height() == card.heightForWidth(card.width()) > whole)
    window.resize(400, 200)
    qtbot.waitUntil(lambda: place.height() < 200)
    assert place.verticalScrollBar().maximum() > 0
    assert card.height() >= card.heightForWidth(card.width()), "nothing is squeezed"
    window.resize(400, 160)
    card.focus_first()
    window.resize(400, 200)
    first = card.focusWidget()
    assert first is not None
    qtbot.waitUntil(lambda: not first.visibleRegion().isEmpty())


def test_a_body_scrolls_only_where_its_width_needs_more_height(qtbot: QtBot) -> None:
    body = ScrollBody()
    column = QVBoxLayout(body)
    column.addWidget(label("many words " * 30, wrap=True))
    column.addWidget(button("Below it"))
    column.addStretch(1)
    place = QScrollArea()
    place.setWidgetResizable(True)
    place.setWidget(body)
    qtbot.addWidget(place)
    place.resize(900, 400)
    place.show()
    qtbot.waitExposed(place)
    place.resize(900, body.heightForWidth(900) + 10)
    bar = place.verticalScrollBar()
    assert bar.maximum() == 0
    place.resize(900, body.heightForWidth(900) // 2)
    assert bar.maximum() > 0


def test_starters_are_cut_in_a_narrow_chat(qtbot: QtBot) -> None:
    empty = EmptyChat()
    qtbot.addWidget(empty)
    empty.resize(900, 500)
    empty.show()
    qtbot.waitExposed(empty)
    assert [b.text() for b in empty._buttons] == empty.starters
    empty.resize(300, 500)
    for made, text in zip(empty._buttons, empty.starters, strict=True):
        assert made.text().endswith("…") and made.toolTip() == made.accessibleName() == text
        assert made.sizeHint().width() <= 300
