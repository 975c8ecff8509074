"""Figures come from real runs: here with the real engine on a tiny model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.controller import EngineController
from app.inspector import Inspector
from app.models.library import Library
from app.models.opener import opener_of
from app.page import Services
from engine.config import SamplingParams
from engine.metrics import Metrics
from engine.types import Event, Finished, Request
from tests.app.conftest import PATIENCE_MS, whole
from tests.app.models.conftest import scanned


@pytest.fixture
def controller(qtbot: QtBot) -> Iterator[EngineController]:
    """The real engine."""
    made = EngineController()
    yield made
    assert made.shutdown(PATIENCE_MS)


@pytest.fixture
def tiny(fixtures: Path, models_dir: Path) -> Path:
    file = models_dir / "tiny-llama.gguf"
    shutil.copyfile(fixtures / "llama.gguf", file)
    return file


def run(qtbot: QtBot, controller: EngineController, n_prompt: int, n_tokens: int) -> Finished:
    events: list[Event] = []
    ids = [(7 * i) % 100 + 3 for i in range(n_prompt)]
    sampling = SamplingParams(temperature=0, max_tokens=n_tokens, ignore_eos=True)
    controller.submit(Request(ids=ids, sampling=sampling), events.extend)
    qtbot.waitUntil(lambda: bool(events) and controller.state == "ready")
    assert isinstance(events[-1], Finished)
    return events[-1]


def test_from_a_click_to_figures(
    qtbot: QtBot, services: Services, library: Library, controller: EngineController, tiny: Path
) -> None:
    scanned(qtbot, library)
    inspector = whole(Inspector(services))
    qtbot.addWidget(inspector)
    inspector.show()
    opener_of(services).open(tiny)
    qtbot.waitUntil(lambda: controller.state == "ready", timeout=100_000)
    item = library.item(tiny)
    assert item is not None and item.record.load_s is not None
    assert item.record.decode_rate is None, "nothing was written yet"

    taken = item.record.memory
    held = {p.kind: p.bytes for p in controller.metrics.memory}
    assert taken is not None and taken.model == held["model"] and taken.work == held["work"]
    qtbot.waitUntil(lambda: library.item(tiny).estimate.measured)  # type: ignore[union-attr]
    parts = {p.kind: p.bytes for p in library.item(tiny).estimate.parts}  # type: ignore[union-attr]
    assert (parts["model"], parts["work"]) == (held["model"], held["work"])

    shown: list[Metrics] = []
    controller.metrics_changed.connect(shown.append)
    run(qtbot, controller, 120, 40)
    record = library.item(tiny).record  # type: ignore[union-attr]
    assert record.decode_rate is not None and record.prefill_rate is not None
    for kept, rates in (
        (record.decode_rate, [m.decode_rate for m in shown if m.decode_rate > 0]),
        (record.prefill_rate, [m.prefill_rate for m in shown if m.prefill_rate > 0]),
    ):
        assert min(rates) <= kept <= max(rates)
    again = Library(services.settings, library.records._file)
    assert again.records.get(tiny, item.entry.size) == record
    again.close()

    metrics = controller.metrics
    assert metrics.context_used == 160 - 1 or metrics.context_used == 160
    assert f"{metrics.context_used:,} of {metrics.context_max:,}" in inspector.text()
    assert f"{metrics.first_token_s:.2f} s" in inspector.text()


def test_a_short_answer_is_no_measurement(
    qtbot: QtBot, services: Services, library: Library, controller: EngineController, tiny: Path
) -> None:
    scanned(qtbot, library)
    opener_of(services).open(tiny)
    qtbot.waitUntil(lambda: controller.state == "ready", timeout=100_000)
    run(qtbot, controller, 5, 3)
    record = library.item(tiny).record  # type: ignore[union-attr]
    assert record.decode_rate is None and record.prefill_rate is None


def test_a_bad_file_leaves_the_former_model_at_work(
    qtbot: QtBot, services: Services, library: Library, controller: EngineController, tiny: Path
) -> None:
    opener = opener_of(services)
    opener.open(tiny)
    qtbot.waitUntil(lambda: controller.state == "ready", timeout=100_000)
    bad = tiny.with_name("bad.gguf")
    bad.write_bytes(tiny.read_bytes()[:100_000])
    with qtbot.waitSignal(opener.failed) as caught:
        opener.load(bad)
    report = caught.args[0]
    assert "bad.gguf" in report.why and "still ready" in report.why
    assert controller.model is not None and controller.model.path == tiny
    assert run(qtbot, controller, 5, 4).usage.completion_tokens == 4
