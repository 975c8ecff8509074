"""The pane of the cache: numbers of the engine, the switch of the disk cache, and emptying it all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.page import Services
from app.server.cache import CachePane
from app.server.disk import DiskCache
from engine import keyring_store
from engine.cache import disk
from engine.cache.archive import DiskArchive
from engine.cache.metrics import CacheMetrics
from engine.metrics import MemoryPart, Metrics
from tests.app.fake_engine import FakeEngine
from tests.ring import Ring


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "kept"


@pytest.fixture
def pane(qtbot: QtBot, services: Services, ring: Ring, folder: Path) -> Iterator[CachePane]:
    services.settings.update(cache={"disk_cache_dir": str(folder)})
    made = CachePane(DiskCache.of(services))
    qtbot.addWidget(made)
    qtbot.addWidget(made.header_tools)
    made.resize(320, 900)
    made.show()
    yield made
    made._disk._on_closing()


def numbers() -> Metrics:
    cache = CacheMetrics(
        running_pages=12, shared_pages=8, kept_pages=20, free_pages=8, ram_pages=300, ram_states=4,
        ram_bytes=3 << 30, ram_limit=8 << 30, reused_tokens_total=6000,
        owners=(("Claude Code", 17), ("", 9), (None, 6), ("Codex", 4), ("curl", 3), ("API", 1)),
    )  # fmt: skip
    held = (MemoryPart("kv", "", 1 << 30),)
    return Metrics(cache=cache, prompt_tokens_total=4000, prefill_rate=100.0, memory=held)


def test_it_tells_what_the_cache_saves_and_holds(pane: CachePane) -> None:
    assert "No prompt" in pane.text() and "No model" in pane.text()
    pane.show_numbers(numbers())
    for words in (
        "60 %", "6,000 of 10,000", "about 60 s", "40 of 48", "Claude Code 17", "This app 9",
        "Codex 4", "Other clients 4", "Shared by clients 6", "Free 8", "1.0 GB; 20 are",
        "3.0 GB of 8.0 GB", "300 pages and 4 states",
    ):  # fmt: skip
        assert words in pane.text(), words
    one = CacheMetrics(kept_pages=5, free_pages=3, owners=(("Codex", 5),))
    pane.show_numbers(Metrics(cache=one))
    assert "Codex 5, Free 3" in pane.text()
    assert not {"This app", "Other clients", "Shared by clients"} & set(pane.text().split("\n"))


def test_the_load_is_drawn_only_while_it_is_seen(pane: CachePane) -> None:
    pane.hide()
    pane.show_numbers(Metrics(decode_rate=50.0))
    assert pane.load._plot is None
    pane.show()
    pane.show_numbers(Metrics(decode_rate=50.0))
    assert pane.load._plot is not None and "50" in pane.load.text()
    pane.show_numbers(Metrics())
    assert "Nothing" in pane.load.text()


def test_the_switch_keeps_conversations_from_now_on(
    qtbot: QtBot, pane: CachePane, services: Services, fake: FakeEngine, folder: Path
) -> None:
    cache = pane._disk
    qtbot.waitUntil(lambda: cache.state == "off")
    assert "Off. Keeps" in pane._on_disk.text() and pane._forget.isHidden()
    pane._switch.click()
    qtbot.waitUntil(lambda: cache.state == "on")
    assert isinstance(fake.archive, DiskArchive) and fake.archive.store.folder == folder
    assert services.settings.value.cache["disk_cache"] and pane._forget.isVisible()
    assert "of at most 20.0 GB, encrypted" in pane._on_disk.text()
    former = fake.archive
    services.settings.update(cache=services.settings.value.cache | {"disk_cache_limit": 100})
    qtbot.waitUntil(lambda: fake.archive not in (former, None))
    qtbot.waitUntil(lambda: cache.state == "on")
    assert "of at most 100 MB" in pane._on_disk.text()
    pane._switch.click()
    qtbot.waitUntil(lambda: cache.state == "off")
    assert fake.archive is None and not pane._switch.isChecked()


def test_without_a_keyring_it_stays_off_and_says_so(
    qtbot: QtBot, pane: CachePane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring_store, "_keyring", lambda: None)
    for _ in range(2):
        pane._switch.click()
        qtbot.waitUntil(lambda: pane._problem.isVisible())
        assert "no keyring" in pane._problem.text
        assert pane._disk.state == "off" and not pane._switch.isChecked()


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize("forget", [True, False])
def test_emptying_asks_first_and_says_what_stays(
    qtbot: QtBot,
    pane: CachePane,
    fake: FakeEngine,
    ring: Ring,
    folder: Path,
    on: bool,
    forget: bool,
) -> None:
    key = disk.secret_key()
    stored = ring.held["lucebox", "disk-cache"]
    assert disk.DiskStore(folder, key, 1 << 20, 1e9).put(b"name", bytes(1000))
    pane._disk._services.controller.start()
    if on:
        pane._switch.click()
        qtbot.waitUntil(lambda: pane._disk.state == "on")
    else:
        pane._disk.look()
    qtbot.waitUntil(lambda: pane._forget.isVisible() and bool(pane._disk.held))
    qtbot.waitUntil(lambda: pane._disk._services.controller.engine is not None)
    ask = pane._forget if forget else pane._clear
    ask.click()
    assert pane.question.isVisible() and "Your chats stay" in pane.question._note.text
    assert pane.question._leave.hasFocus() or not pane.isActiveWindow()
    qtbot.keyClick(pane.question, Qt.Key.Key_Escape)
    assert pane.question.isHidden() and not fake.cleared and disk.usage(folder).files == 1
    ask.click()
    pane.question._do.click()

    def emptied() -> bool:
        """A look at the disk may show it empty before the key is renewed."""
        left = ring.held.get(("lucebox", "disk-cache"))
        renewed = left != stored and (left is None) == (not on)
        whole = fake.cleared == 1 and disk.usage(folder).files == 0
        return whole and pane._disk.held == disk.Usage(0, 0) and renewed == forget

    qtbot.waitUntil(emptied)
    assert (disk.secret_key() != key) == forget


def test_what_could_not_be_forgotten_is_told(
    qtbot: QtBot, pane: CachePane, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    assert disk.DiskStore(folder, disk.secret_key(), 1 << 20, 1e9).put(b"name", bytes(1000))
    monkeypatch.setattr(disk, "_remove", lambda path: None)
    pane._disk.look()
    qtbot.waitUntil(lambda: pane._forget.isVisible())
    pane._forget.click()
    pane.question._do.click()
    qtbot.waitUntil(lambda: pane._problem.isVisible())
    assert "1 of the files" in pane._problem.text
