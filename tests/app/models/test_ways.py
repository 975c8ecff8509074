"""What is offered where a model does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton
from pytestqt.qtbot import QtBot

from app.models.library import Item, Library
from app.models.records import Record
from app.models.ways import ways_out
from app.report import ErrorReport, Way
from app.widgets import ErrorCard
from engine.config import EngineConfig, Precision
from engine.devices import Device
from engine.entry import Entry
from engine.footprint import Footprint
from engine.placement import Estimate, estimate

GIB = 1 << 30


@pytest.fixture
def loads() -> list[tuple[Path, EngineConfig]]:
    return []


def item(name: str, weights: float, device: Device, config: EngineConfig) -> Item:
    """A model of 32 layers with 8 heads of 128 dims for keys and values."""
    footprint = Footprint(int(weights * GIB), 0, 131_072, 32 * 8 * 256, 400_000, 128_256)
    path = Path(f"/models/{name}.gguf")
    entry = Entry(path, (path,), name, "chat", size=int(weights * GIB), footprint=footprint)
    found = estimate(entry, config, (device,))
    return Item(entry, found, Record(decode_rate=12.5))


def pc(free: float) -> Device:
    return Device("cpu", "cpu", "Test PC", 16 * GIB, int(free * GIB), 4)


def offered(
    library: Library, wanted: Item, config: EngineConfig, loads: list[tuple[Path, EngineConfig]]
) -> tuple[Way, ...]:
    assert isinstance(wanted.estimate, Estimate) and wanted.estimate.verdict == "too large"
    load = lambda path, config: loads.append((path, config))  # noqa: E731
    return ways_out(library, wanted, wanted.estimate, config, load)


def test_less_is_lost_first(library: Library, loads: list[tuple[Path, EngineConfig]]) -> None:
    config = EngineConfig(max_ctx=65_536, max_concurrency=4, precision=Precision.EXACT)
    wanted = item("Eight", 4.7, pc(free=14), config)
    ways = offered(library, wanted, config, loads)
    assert [w.title for w in ways] == [
        "Compute in 8 bits",
        "One request at a time",
        "Context 32,768",
    ]
    assert all(w.need.startswith("needs ") and w.speed == "12.5 tok/s, measured" for w in ways)
    for way in ways:
        way.take()
    assert [c.max_ctx for _, c in loads] == [65_536, 65_536, 32_768]
    assert [c.max_concurrency for _, c in loads] == [4, 1, 1]
    for _, changed in loads:
        assert estimate(wanted.entry, changed, (pc(free=14),)).verdict != "too large"


def test_what_would_not_help_is_not_offered(
    library: Library, loads: list[tuple[Path, EngineConfig]]
) -> None:
    config = EngineConfig(max_ctx=65_536)
    (way,) = offered(library, item("Eight", 4.7, pc(free=7.5), config), config, loads)
    assert way.title == "Context 8,192" and "65,536" in way.note


def test_where_no_setting_helps_smaller_models_are_named(
    library: Library, loads: list[tuple[Path, EngineConfig]], monkeypatch: pytest.MonkeyPatch
) -> None:
    config, device = EngineConfig(), pc(free=8)
    models = [item(n, w, device, config) for n, w in (("One", 0.7), ("Four", 2.4), ("Big", 30))]
    monkeypatch.setattr(library, "chat_models", lambda: models)
    ways = offered(library, models[-1], config, loads)
    assert [w.title for w in ways] == ["Four", "One"]
    ways[0].take()
    assert loads == [(Path("/models/Four.gguf"), config)]


def test_rows_of_a_card(qtbot: QtBot) -> None:
    done: list[str] = []
    ways = tuple(
        Way(title, "costs little", "needs 2.0 GB", "", lambda t=title: done.append(t))  # type: ignore[misc]
        for title in ("First", "Second")
    )
    card = ErrorCard(
        ErrorReport("It does not fit", "why", (("Load anyway", lambda: None),), ways=ways)
    )
    qtbot.addWidget(card)
    card.show()
    card.activateWindow()
    card.focus_first()
    qtbot.waitUntil(lambda: card.focusWidget() is not None)
    assert card.focusWidget().accessibleName() == "Apply and load: First"
    qtbot.keyClick(card.focusWidget(), Qt.Key.Key_Space)
    assert done == ["First"]
    texts = {w.text() for w in card.findChildren(QLabel)}
    assert {"First", "Second", "costs little", "needs 2.0 GB"} <= texts
    mains = [b.text() for b in card.findChildren(QPushButton) if b.property("kind") == "main"]
    assert mains == ["Apply and load"], "one main button a card"
