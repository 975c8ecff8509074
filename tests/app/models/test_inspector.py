"""The live pane: its text is the metrics, and hidden it does nothing."""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QWidget
from pytestqt.qtbot import QtBot

from app.controller import EngineController
from app.inspector import Inspector
from app.live import speed as speed_module
from app.live.history import POINTS, SPAN_S, History, Prefill, nice_top
from app.live.plot import RatePlot
from app.models.library import Library
from app.page import Services
from app.theme import theme
from engine.metrics import MemoryPart, Metrics
from tests.app.conftest import whole

GB = 1 << 30
MEMORY = (
    MemoryPart("other", "Other programs", 4 * GB),
    MemoryPart("model", "Model", 5 * GB),
    MemoryPart("kv", "Conversation", 2 * GB),
    MemoryPart("work", "Work space", GB),
    MemoryPart("free", "Free", 4 * GB),
)
RUNNING = Metrics(
    running=1,
    decode_rate=77.84,
    prefill_rate=1180.4,
    first_token_s=0.423,
    context_used=6214,
    context_max=131072,
    reused_tokens=4120,
    pages_used=98,
    pages_total=2048,
    steps=17,
    step_ms=12.85,
    prompt_tokens_total=400,
    completion_tokens_total=17,
    memory=MEMORY,
)


@pytest.fixture
def pane(qtbot: QtBot, services: Services) -> Inspector:
    made = whole(Inspector(services))
    qtbot.addWidget(made)
    made.resize(328, 800)
    made.show()
    return made


def test_every_number_is_text(pane: Inspector, controller: EngineController) -> None:
    controller.metrics_changed.emit(RUNNING)
    text = pane.text()
    for part in (
        "77.8",
        "77.8 tokens per second.",
        "Prompt read at 1,180 tokens per second.",
        "0.42 s",
        "12.8 ms",
        "12.0 of 16.0 GB",
        "6,214 of 131,072",
        "98 of 2,048 pages in use",
        "1 running, 0 waiting",
    ):
        assert part in text, part
    assert "4120" in text.replace(",", "")


def test_the_plots_text_is_its_description(pane: Inspector, controller: EngineController) -> None:
    controller.metrics_changed.emit(RUNNING)
    plot = pane.speed.plot
    assert plot is not None and plot.accessibleName()
    assert plot.accessibleDescription().startswith("77.8 tokens per second.")


def test_the_comparison_is_with_what_was_measured_here(
    qtbot: QtBot, pane: Inspector, controller: EngineController, library: Library
) -> None:
    assert "no measurement yet" in pane.text()
    controller.metrics_changed.emit(RUNNING)
    assert "no measurement yet" not in pane.text(), "beside a rate it would be wrong"
    assert "the first measurement of this model" in pane.text()
    with qtbot.waitSignal(controller.model_changed) as caught:
        controller.load(Path("/models/a.gguf"))
    model = caught.args[0]
    library.records.update(model.path, model.file_bytes, decode_rate=38.92)
    controller.metrics_changed.emit(RUNNING)
    assert "2.00× the last run" in pane.text() and "last run 38.9 tok/s" in pane.text()


def test_hidden_it_does_no_work(
    pane: Inspector, controller: EngineController, monkeypatch: pytest.MonkeyPatch
) -> None:
    pane.hide()
    before = pane.text()
    drawn: list[object] = []
    monkeypatch.setattr(pane.speed, "_draw", drawn.append)
    monkeypatch.setattr(pane, "_show", drawn.append)
    controller.metrics_changed.emit(RUNNING)
    assert drawn == [] and pane.text() == before
    assert not pane.speed.quiet_timer.isActive()


def test_paused_the_plot_stands(
    qtbot: QtBot, pane: Inspector, controller: EngineController
) -> None:
    controller.metrics_changed.emit(RUNNING)
    qtbot.mouseClick(pane.header_tools, Qt.MouseButton.LeftButton)
    controller.metrics_changed.emit(replace(RUNNING, decode_rate=1.0))
    assert "77.8" in pane.text() and "paused" in pane.text()
    assert pane.header_tools.accessibleName() == "Go on"


def test_without_data_the_value_says_paused(
    qtbot: QtBot, pane: Inspector, controller: EngineController
) -> None:
    pane.speed.quiet_timer.setInterval(20)
    controller.metrics_changed.emit(RUNNING)
    assert "paused" not in pane.text()
    qtbot.waitUntil(lambda: "paused" in pane.text())
    controller.metrics_changed.emit(RUNNING)
    assert "paused" not in pane.text()


def test_another_model_begins_anew(
    qtbot: QtBot, pane: Inspector, controller: EngineController
) -> None:
    controller.metrics_changed.emit(RUNNING)
    with qtbot.waitSignal(controller.model_changed):
        controller.load(Path("/models/a.gguf"))
    qtbot.waitUntil(lambda: "77.8" not in pane.text())


def test_nothing_loaded_shows_no_invented_number(pane: Inspector) -> None:
    assert not any(character.isdigit() for character in pane.text().replace("60 s", ""))


def test_names_for_a_screen_reader(pane: Inspector) -> None:
    for widget in (*pane.findChildren(QWidget), pane.header_tools):
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            named = widget.accessibleName() or (
                widget.text() if isinstance(widget, QAbstractButton) else ""
            )
            assert named, type(widget).__name__


def test_the_pane_fits_its_width(pane: Inspector, controller: EngineController) -> None:
    controller.metrics_changed.emit(RUNNING)
    assert pane.body.minimumSizeHint().width() <= pane.width()


def test_colours_follow_the_theme(pane: Inspector, controller: EngineController) -> None:
    controller.metrics_changed.emit(RUNNING)
    theme().apply("light")
    light = pane.grab().toImage()
    theme().apply("dark")
    assert pane.grab().toImage() != light


def test_heavy_imports_wait_for_the_first_showing() -> None:
    code = "import sys, app.inspector, app.models.page; print('pyqtgraph' in sys.modules)"
    root = Path(speed_module.__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    assert done.stdout.strip() == "False"


# The last minute


def samples(history: History, *steps: tuple[str, int]) -> float:
    """Feed phases ("read", "write", "idle") of so many tenths of a second; returns the end."""
    now, prompt, written = 100.0, 0, 0
    for phase, n in steps:
        for _ in range(n):
            now += 0.1
            prompt += 50 * (phase == "read")
            written += 5 * (phase == "write")
            history.add(
                now,
                Metrics(
                    running=int(phase != "idle"),
                    decode_rate=50.0 if phase == "write" else 0.0,
                    prefill_rate=500.0 if phase == "read" else 0.0,
                    prompt_tokens_total=prompt,
                    completion_tokens_total=written,
                ),
            )
    return now


def test_prefill_is_a_block_and_never_on_the_line() -> None:
    history = History()
    phases = ("idle", 1), ("read", 20), ("write", 30), ("idle", 5), ("read", 10), ("write", 10)
    now = samples(history, *phases)
    x, y = history.curve(now)
    finite = ~np.isnan(y)
    assert finite.sum() == 40 and set(y[finite]) == {50.0}
    assert [round(p.end - p.start, 1) for p in history.prefills] == [2.0, 1.0]
    assert [p.rate for p in history.prefills] == [500.0, 500.0]
    assert np.max(x) == 0.0 and np.min(x) > -SPAN_S
    assert np.isnan(y[int(np.argmax(finite)) + 30]), "the line breaks between two answers"


@pytest.mark.parametrize(("rate", "at_top"), [(90.0, False), (3.0, True)])
@pytest.mark.parametrize("written", [20, 450])
def test_the_label_of_a_prompt_is_not_on_the_curve(
    qtbot: QtBot, pane: Inspector, rate: float, at_top: bool, written: int
) -> None:
    history = History()
    rates = [100.0] * 30 + [rate] * written  # so that the axis goes to 100
    now = 0.0
    for i, decode in enumerate(rates):
        now += 0.1
        history.add(now, Metrics(running=1, decode_rate=decode, completion_tokens_total=i + 1))
    history.prefills.append(Prefill(3.0 if written > 100 else now - 0.2, 3.5, 500.0))
    pane.speed.begin(Metrics())
    plot = pane.speed.plot
    assert isinstance(plot, RatePlot)
    qtbot.waitExposed(pane)
    plot.draw(history, now, "prefill 500 tok/s")
    assert (plot._label.pos().y() > 0) is at_top


def test_a_prompt_that_is_read_in_one_chunk_takes_its_whole_time() -> None:
    history = History()
    history.add(9.9, Metrics())
    for tenth in range(8):
        history.add(10 + tenth / 10, Metrics(running=1))
    history.add(
        10.8,
        Metrics(running=1, prompt_tokens_total=300, completion_tokens_total=1, prefill_rate=400.0),
    )
    (block,) = history.prefills
    assert (block.start, block.end, block.rate) == (9.9, 10.8, 400.0)


def test_no_more_than_a_minute_and_600_points() -> None:
    history = History()
    now = samples(history, ("read", 5), ("write", 2000))
    x, _ = history.curve(now)
    assert len(x) <= POINTS and np.min(x) >= -SPAN_S
    assert not history.prefills, "what is older than a minute is gone"


def test_what_ran_before_the_pane_was_shown_is_not_plotted() -> None:
    history = History()
    history.begin(Metrics(prompt_tokens_total=900, completion_tokens_total=900))
    history.add(1.0, Metrics(prompt_tokens_total=900, completion_tokens_total=900))
    assert len(history.curve(1.0)[0]) == 0 and not history.prefills


def test_a_model_that_counts_from_zero_again() -> None:
    history = History()
    samples(history, ("read", 5), ("write", 5))
    history.add(200.0, Metrics(running=1, prompt_tokens_total=10, prefill_rate=5.0))
    assert history.prefills[-1].rate == 5.0


@pytest.mark.parametrize(
    ("highest", "top"), [(0, 10), (9.9, 10), (11, 20), (20, 20), (48, 50), (77, 100), (610, 1000)]
)
def test_the_axis_moves_in_steps(highest: float, top: float) -> None:
    assert nice_top(highest) == top
    assert math.isfinite(top)
