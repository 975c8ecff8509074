"""What the driver tells of cards, also where it tells little or nothing."""

from __future__ import annotations

import sys

import pytest

from engine.readings import Watcher, tokens_per_joule
from tests import fake_nvml
from tests.fake_nvml import GB, NvmlError


def test_cards_are_read_and_what_is_not_told_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml.module())
    watcher = Watcher()
    first, second = watcher.read()
    assert (first.id, first.load, first.temperature, first.power) == ("cuda:0", 94, 70, 296.0)
    assert (first.link, first.driver, first.power_limit) == ("PCIe 4.0 x16", "580.95", 350.0)
    assert (first.memory_total, first.memory_used, first.ours) == (24 * GB, 18 * GB, 17 * GB)
    assert (second.temperature, second.power, second.ours, second.link) == (None, None, None, "")
    assert second.display and not first.display
    watcher.close()


def test_a_driver_that_goes_and_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_nvml.module()
    monkeypatch.setitem(sys.modules, "pynvml", module)
    watcher = Watcher()
    assert len(watcher.read()) == 2
    ask = module.nvmlDeviceGetMemoryInfo

    def lost(index: int) -> None:
        raise NvmlError("GPU is lost")

    monkeypatch.setattr(module, "nvmlDeviceGetMemoryInfo", lost)
    assert watcher.read() == ()
    monkeypatch.setattr(module, "nvmlDeviceGetMemoryInfo", ask)
    assert len(watcher.read()) == 2
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert Watcher().read() == ()


def test_tokens_per_joule() -> None:
    assert tokens_per_joule(148.0, 296.0) == 0.5
    assert tokens_per_joule(0.0, 296.0) is None and tokens_per_joule(10.0, None) is None
