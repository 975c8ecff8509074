"""The Devices page over a faked driver: values, owners, choice of a device, self-test, keyboard."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QAbstractButton, QComboBox, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.devices.look import owners
from app.devices.page import DevicesPage
from app.page import Services
from engine import devices, selftest
from engine.errors import KernelError
from engine.metrics import MemoryPart
from tests import fake_nvml

GB = 1 << 30


@pytest.fixture
def two_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml.module())
    monkeypatch.setattr(devices, "_missing_part", lambda: None)


@pytest.fixture
def page(qtbot: QtBot, services: Services) -> Iterator[DevicesPage]:
    made = DevicesPage(services)
    qtbot.addWidget(made)
    made.resize(1000, 800)
    made.show()
    yield made


def wait_for_cards(qtbot: QtBot, page: DevicesPage) -> None:
    qtbot.waitUntil(lambda: len(page._cards) == 2)


@pytest.mark.usefixtures("two_cards")
def test_every_card_and_the_processor_are_shown(qtbot: QtBot, page: DevicesPage) -> None:
    wait_for_cards(qtbot, page)
    first, second = page._cards["cuda:0"].text(), page._cards["cuda:1"].text()
    for word in ("RTX 3090", "PCIe 4.0 x16", "580.95", "94 %", "70 °C", "296 W", "18.0 of 24.0 GB"):
        assert word in first
    assert "RTX 3060" in second and "°C" not in second
    assert "cores" in page._processor.text() and "CPU" in page._processor.text()
    assert page._problem.isHidden() and page._test.isEnabled() and page._card.isVisible()
    named = [*page.findChildren(QAbstractButton), *page.findChildren(QComboBox)]
    assert all(w.accessibleName() or getattr(w, "text", str)() for w in named if w.isVisible())


@pytest.mark.usefixtures("two_cards")
def test_reading_happens_beside_the_window_and_only_while_it_is_seen(
    qtbot: QtBot, page: DevicesPage
) -> None:
    wait_for_cards(qtbot, page)
    threads: list[threading.Thread] = []
    look = page._looker.look

    def noted() -> Any:
        threads.append(threading.current_thread())
        return look()

    page._looker.look = noted  # type: ignore[method-assign]
    page.look()
    qtbot.waitUntil(lambda: bool(threads) and not page._looking)
    assert threading.main_thread() not in threads
    page.hide()
    assert not page._timer.isActive()


def test_without_a_card_the_reason_and_the_cure_are_told(
    qtbot: QtBot, page: DevicesPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    qtbot.waitUntil(lambda: page._problem.isVisible())
    assert "driver" in page._problem.text()
    assert not page._test.isEnabled() and page._test.toolTip() == page._problem.text()


def test_memory_goes_to_its_owners_and_is_what_the_engine_says_where_the_model_is() -> None:
    told = {"other": 4, "model": 5, "kv": 2, "free": 13}
    held = [MemoryPart(kind, "", n * GB) for kind, n in told.items()]
    # Pages that are not written yet are free in the system's eyes; the status strip counts them as used.
    parts = owners(24 * GB, 10 * GB, held, here=True)
    assert {p.kind: p.bytes // GB for p in parts} == told
    assert sum(p.bytes for p in parts) == 24 * GB
    assert [p.kind for p in owners(24 * GB, 10 * GB, held, here=False)] == ["other", "free"]
    assert {p.kind: p.bytes // GB for p in owners(24 * GB, 10 * GB, held[1:3], here=True)} == {
        "other": 3, "model": 5, "kv": 2, "free": 14,
    }  # fmt: skip


@pytest.mark.usefixtures("two_cards", "tree")
def test_a_model_s_device_is_chosen_and_kept_with_how_it_fits(
    qtbot: QtBot, page: DevicesPage, services: Services, tree: Path
) -> None:
    services.library.begin()
    wait_for_cards(qtbot, page)
    chooser = page.chooser
    qtbot.waitUntil(lambda: chooser._model.count() == 2 and chooser._device.count() == 4)
    chooser._model.setCurrentIndex(0)
    chooser._device.setCurrentIndex(chooser._device.findData("cuda:1"))
    qtbot.waitUntil(lambda: "RTX 3060" in chooser.words)
    path = Path(chooser._model.currentData())
    assert services.settings.value.devices == {str(path): "cuda:1"}
    assert services.settings.config_of(path).device == "cuda:1"
    assert services.settings.config_of(path / "other").device == "auto"
    chooser._device.setCurrentIndex(0)
    assert services.settings.value.devices == {}


@pytest.mark.usefixtures("two_cards")
def test_the_self_test_shows_its_result_to_copy(
    qtbot: QtBot, page: DevicesPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(device: str, progress: Any) -> Any:
        progress("testing", 3, 10)
        return SimpleNamespace(passed=device == "cuda:0", text=lambda: f"report of {device}")

    monkeypatch.setattr(selftest, "run", run)
    wait_for_cards(qtbot, page)
    page._test.click()
    qtbot.waitUntil(lambda: page.trial.text == "report of cuda:0")
    assert page.trial._good.isVisible() and page.trial._bad.isHidden()
    page.trial._copy.click()
    assert QGuiApplication.clipboard().text() == "report of cuda:0"
    page.trial.begin("cuda:1")
    qtbot.waitUntil(lambda: page.trial.text == "report of cuda:1")
    assert page.trial._bad.isVisible() and page.trial._good.isHidden()

    def fails(device: str, progress: Any) -> Any:
        raise KernelError("No CuPy.")

    monkeypatch.setattr(selftest, "run", fails)
    page.trial.begin("cuda:0")
    qtbot.waitUntil(lambda: page.trial.text == "No CuPy.")
    assert page.trial.findChild(QPlainTextEdit).isReadOnly()
