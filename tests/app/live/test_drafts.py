"""What the live pane says about drafts is what the engine measured, as text and as pictures."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtGui import QImage
from pytestqt.qtbot import QtBot

from app.controller import EngineController
from app.i18n import Language
from app.inspector import Inspector
from app.live.bars import LengthBars, PositionBars, TimeBar, running_mean
from app.page import Services
from app.theme import theme
from engine.metrics import Metrics, SpeculationMetrics
from engine.types import Switch
from tests.app.conftest import whole

NOW = SpeculationMetrics(
    drafter="dflash",
    state="on",
    accepted_lengths=(3, 5) * 32,
    by_position=(0.84, 0.5),
    draft_ms=3.1,
    verify_ms=9.4,
    sample_ms=0.4,
    speedup=2.0,
    drafted_total=400,
    accepted_total=192,
)


@pytest.fixture
def pane(qtbot: QtBot, services: Services) -> Inspector:
    made = whole(Inspector(services))
    qtbot.addWidget(made)
    made.resize(328, 1200)
    made.show()
    return made


def say(controller: EngineController, now: SpeculationMetrics | None) -> None:
    controller.metrics_changed.emit(Metrics(running=1, speculation=now))


def test_every_value_is_text(pane: Inspector, controller: EngineController) -> None:
    say(controller, NOW)
    text = pane.text()
    for part in (
        "A DFlash draft guesses.",
        "2.00× the speed",
        "4.0 mean of 64",
        "Break-even at 2.0 (dashed).",
        "first 84 %",
        "1:\xa084\xa0%, 2:\xa050\xa0%",
        "12.9 ms",
        "3.1 ms",
        "9.4 ms",
        "0.4 ms",
    ):
        assert part in text, part


def test_pictures_are_said_to_a_screen_reader(
    pane: Inspector, controller: EngineController
) -> None:
    say(controller, NOW)
    panel = pane.drafts
    for picture in (panel.lengths, panel.positions, panel.times):
        assert picture.accessibleName()
    assert panel.lengths.accessibleDescription().startswith("4.0 tokens a step")
    assert panel.positions.accessibleDescription() == "1:\xa084\xa0%, 2:\xa050\xa0%"
    assert panel.times.accessibleDescription() == "Draft 3.1 ms, verify 9.4 ms, sample 0.4 ms"


@pytest.mark.parametrize(
    "now", [None, SpeculationMetrics("ngram", "on")], ids=["no drafter", "no draft yet"]
)
def test_where_nothing_drafts_nothing_is_said(
    pane: Inspector, controller: EngineController, now: SpeculationMetrics | None
) -> None:
    say(controller, NOW)
    assert pane.drafts.isVisible()
    say(controller, now)
    assert not pane.drafts.isVisible() and "Drafts" not in pane.text()


def test_a_pause_and_a_failure_say_why(pane: Inspector, controller: EngineController) -> None:
    say(controller, replace(NOW, state="paused", switch=Switch("paused", 0.8, 64)))
    assert "0.80× over 64 steps" in pane.text()
    assert "paused" in pane.text() and "cost more than they brought" in pane.text()
    say(controller, replace(NOW, state="failed", problem="The drafter dflash failed: no room"))
    assert "The drafter dflash failed: no room" in pane.text()


def test_without_a_verified_draft_there_is_no_invented_number(
    pane: Inspector, controller: EngineController
) -> None:
    say(controller, NOW)
    say(controller, SpeculationMetrics("ngram", "on", drafted_total=3))
    assert "No draft was verified yet." in pane.text()
    assert "9.4 ms" not in pane.text() and "84 %" not in pane.text()


def test_the_running_mean_is_of_eight() -> None:
    assert running_mean([]) == []
    assert running_mean([1, 3, 5]) == [1, 2, 3]
    assert running_mean([9] + [1] * 8)[-1] == 1


def test_the_axis_moves_in_steps(qtbot: QtBot) -> None:
    bars = LengthBars("x")
    qtbot.addWidget(bars)
    bars.set((2, 4), None)
    assert bars.top == 4
    bars.set((2, 9), None)
    assert bars.top == 10
    bars.set((2, 17), None)
    assert bars.top == 20
    bars.set((2, 4), 5.2)
    assert bars.top == 10


def colours(image: QImage, x: int) -> list[str]:
    return [image.pixelColor(x, y).name() for y in range(image.height())]


def test_the_newest_bar_is_at_the_right_with_the_own_token_below(qtbot: QtBot) -> None:
    bars = LengthBars("x")
    qtbot.addWidget(bars)
    bars.resize(36 + 64 * 4, bars.height())
    bars.set((1,) * 63 + (4,), None)
    image = bars.grab().toImage()
    own, drafted = theme().color("plot.target").name(), theme().color("plot.draft").name()
    newest, oldest = colours(image, bars.width() - 4), colours(image, 36)
    assert own in newest and drafted in newest and newest.index(drafted) < newest.index(own)
    assert own in oldest and drafted not in oldest


def test_same_values_are_not_painted_again(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    for made, values in (
        (LengthBars("x"), ((1, 2), 1.5)),
        (PositionBars("x"), ((0.5,),)),
        (TimeBar("x"), ((1.0, 2.0, 3.0),)),
    ):
        qtbot.addWidget(made)
        painted: list[object] = []
        monkeypatch.setattr(made, "update", lambda: painted.append(1))  # noqa: B023
        made.set(*values)
        made.set(*values)
        assert len(painted) == 1


@pytest.mark.parametrize("size", [100, 150])
@pytest.mark.parametrize("spoken", ["en", "ko"])
def test_it_fits_the_pane(
    qtbot: QtBot, services: Services, controller: EngineController, language: Language,
    spoken: str, size: int,
) -> None:  # fmt: skip
    language.apply(spoken)
    theme().apply(text_size=size)
    made = whole(Inspector(services))
    qtbot.addWidget(made)
    made.resize(328, 1200)
    made.show()
    long = replace(NOW, accepted_lengths=(31, 32) * 32, by_position=(0.99,) * 31)
    say(controller, long)
    assert made.drafts.minimumSizeHint().width() <= made.width() - 32
