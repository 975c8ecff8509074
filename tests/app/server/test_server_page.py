"""The Server page over a fake engine: clients are heard, settings copied, requests shown, all stopped."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from PySide6.QtCore import QEvent, QModelIndex, QPointF, Qt
from PySide6.QtGui import QEnterEvent, QGuiApplication
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLineEdit
from pytestqt.qtbot import QtBot

from app.page import Services
from app.server.page import ServerPage
from app.server.run import HERE, NETWORK, REACHES, LocalServer
from app.server.table import KEPT, Column, Requests
from app.theme import theme
from engine.api import auth
from engine.api import server as api_server
from engine.api.journal import Live
from engine.api.served import Served
from engine.api.server import Server
from engine.config import AppSettings, server_config
from tests.app.conftest import whole
from tests.app.fake_engine import FakeEngine
from tests.app.models.conftest import Seen


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(url: str, **headers: str) -> httpx.Response:
    return httpx.get(url, headers=headers, timeout=20, trust_env=False)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The keys that were made, the newest last; the keyring of this PC is left alone."""
    made: list[str] = []

    def renew() -> str:
        made.append(f"sk-{len(made)}")
        return made[-1]

    monkeypatch.setattr(auth, "renew_key", renew)
    monkeypatch.setattr(auth, "api_key", lambda: made[-1] if made else renew())
    monkeypatch.setattr(api_server, "api_key", auth.api_key)
    return made


@pytest.fixture
def page(qtbot: QtBot, services: Services, keys: list[str]) -> Iterator[ServerPage]:
    services.settings.update(server={"port": free_port()})
    services.controller.start()
    made = ServerPage(services)
    whole(made)
    qtbot.addWidget(made)
    qtbot.addWidget(made.inspector())
    made.resize(1000, 800)
    made.show()
    yield made


def turn_on(qtbot: QtBot, page: ServerPage) -> str:
    page._switch.click()
    qtbot.waitUntil(lambda: page.server.state == "on")
    return page.server.url


def load(qtbot: QtBot, services: Services) -> None:
    services.controller.load(Path("/models/Alpha-7B.gguf"))
    qtbot.waitUntil(lambda: services.controller.model is not None)


def live(id: str, written: int = 0, admitted: bool = True, **more: Any) -> Live:
    return Live(
        id,
        "/v1/messages",
        "Codex",
        1_700_000_000,
        admitted=admitted,
        written_tokens=written,
        **more,
    )


def cell(table: Requests, row: int, column: Column) -> Any:
    return table.data(table.index(row, column))


def test_the_switch_starts_and_stops_it_beside_the_window(
    qtbot: QtBot, page: ServerPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    start, stop = Server.start, Server.stop

    def started(self: Server) -> None:
        threads.append(threading.current_thread())
        start(self)

    def stopped(self: Server, *timeout: float) -> bool:
        threads.append(threading.current_thread())
        return stop(self, *timeout)

    monkeypatch.setattr(Server, "start", started)
    monkeypatch.setattr(Server, "stop", stopped)
    assert page._state.text() == "Off"
    url = turn_on(qtbot, page)
    assert page._openai.text() == f"{url}/v1" and "On since" in page._state.text()
    assert get(f"{url}/health").json()["status"] == "ok"
    page._switch.click()
    qtbot.waitUntil(lambda: page.server.state == "off")
    with pytest.raises(httpx.TransportError):
        get(f"{url}/health")
    assert len(threads) == 2 and threading.main_thread() not in threads


def test_it_serves_the_application_s_own_model_and_shows_who_uses_it(
    qtbot: QtBot, page: ServerPage, services: Services
) -> None:
    load(qtbot, services)
    url = turn_on(qtbot, page)
    target = page.server.target()
    assert target is not None and target.url == url
    assert [m["id"] for m in get(f"{url}/v1/models").json()["data"]] == [target.model]


def test_the_vocabulary_is_read_on_another_thread_once_server_and_model_are_there(
    qtbot: QtBot, page: ServerPage, services: Services, fake: FakeEngine
) -> None:
    load(qtbot, services)
    assert not fake.vocabulary_threads
    turn_on(qtbot, page)
    qtbot.waitUntil(lambda: len(fake.vocabulary_threads) == 1)
    services.controller.load(Path("/models/Beta-1B.gguf"))
    qtbot.waitUntil(lambda: len(fake.vocabulary_threads) == 2)
    assert threading.main_thread() not in fake.vocabulary_threads


def test_a_taken_port_is_told_in_words_and_a_free_one_is_a_click_away(
    qtbot: QtBot, page: ServerPage, services: Services
) -> None:
    port = page.server.config.port
    with socket.create_server(("127.0.0.1", port)):
        page._switch.click()
        qtbot.waitUntil(lambda: page._problem.isVisible())
        assert f"{port}" in page._problem.text and "--port" not in page._problem.text
        assert page.server.state == "off" and not page._switch.isChecked()
        page._free.click()
        qtbot.waitUntil(lambda: page.server.state == "on")
        assert page._problem.isHidden() and page._free.isHidden()
        kept = server_config(services.settings.value).port
        assert kept not in (port, 0) and page._port.value() == kept
        assert get(f"http://127.0.0.1:{kept}/health").is_success


def test_addresses_follow_the_text_size(page: ServerPage) -> None:
    for size in (150, 100):
        theme().apply(text_size=size)
        assert page._openai.font().pixelSize() == theme().font("mono").pixelSize()


def test_the_key_is_asked_for_shown_copied_and_renewed(
    qtbot: QtBot, page: ServerPage, keys: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REACHES, NETWORK, ("127.0.0.2", True))  # nobody else may reach a test
    assert page.server.reach == HERE and not page._copy_key.isEnabled() and not keys
    turn_on(qtbot, page)
    page._reach.setCurrentIndex(1)
    qtbot.waitUntil(lambda: page.server.state == "on" and page._copy_key.isEnabled())
    url = page.server.url
    assert get(f"{url}/v1/models").status_code == 401
    assert get(f"{url}/v1/models", Authorization="Bearer sk-0").is_success
    assert page._key.echoMode() == QLineEdit.EchoMode.Password
    page._see.click()
    assert page._key.echoMode() == QLineEdit.EchoMode.Normal and page._key.text() == "sk-0"
    assert page._key.cursorPosition() == 0, (
        "where it is longer than its field, its beginning is seen"
    )
    page._copy_key.click()
    assert QGuiApplication.clipboard().text() == "sk-0"
    page._renew.click()
    qtbot.waitUntil(lambda: page._key.text() == "sk-1")
    qtbot.waitUntil(lambda: page.server.state == "on")
    assert get(f"{url}/v1/models", Authorization="Bearer sk-0").status_code == 401
    assert get(f"{url}/v1/models", Authorization="Bearer sk-1").is_success


def test_settings_of_programs_are_copied_once_a_model_is_there(
    qtbot: QtBot, page: ServerPage, services: Services, seen: Seen
) -> None:
    first = page._clients.all[0]
    assert not first._settings.isEnabled() and page._no_model.isVisible()
    page._models.click()
    assert seen.pages[-1][0] == "models"
    load(qtbot, services)
    assert page._no_model.isHidden()
    first._settings.click()
    env = json.loads(QGuiApplication.clipboard().text())["env"]
    assert env["ANTHROPIC_BASE_URL"] == page.server.url
    first._command.click()
    assert QGuiApplication.clipboard().text().startswith("claude ")


def test_the_table_shows_how_far_requests_are_and_how_they_went() -> None:
    table = Requests()
    QAbstractItemModelTester(table, QAbstractItemModelTester.FailureReportingMode.Fatal)

    def states() -> list[str]:
        return [cell(table, row, Column.STATE) for row in range(table.rowCount())]

    table.refresh([live("a", admitted=False), live("b", reused_tokens=60)])
    assert states() == ["reading", "waiting"]
    assert cell(table, 0, Column.CLIENT) == "Codex"
    table.refresh([live("a", status=401, seconds=0.1, admitted=False), live("b", 30, rate=20.0)])
    assert states() == ["writing", "401 no valid key"]
    assert cell(table, 0, Column.RATE) == "20.0"
    table.refresh([live("b", 40, status=200, seconds=1.52), live("c", status=200)])
    assert states() == ["reading", "200, 1.5 s", "401 no valid key"]
    table.refresh(
        [live("c", status=200, seconds=1, fault="failed"), live("d", seconds=1, fault="left")]
    )
    assert states()[:2] == ["client left, stopped", "200, broken off"]
    table.refresh([live("e")])
    table.refresh([])
    assert states()[0] == "ended", "its server was stopped"


def test_the_table_keeps_the_newest_and_a_client_s_words_are_no_markup() -> None:
    table = Requests()
    QAbstractItemModelTester(table, QAbstractItemModelTester.FailureReportingMode.Fatal)
    table.refresh([live("a", text="<img src=x>")])
    assert table.data(table.index(0, Column.TEXT), Qt.ItemDataRole.ToolTipRole) == (
        "<qt>&lt;img src=x&gt;</qt>"
    )
    table.refresh([live("a", seconds=1.0, status=200)])
    assert cell(table, 0, Column.TEXT) == "<img src=x>"
    table.forget_texts()
    assert cell(table, 0, Column.TEXT) == ""
    table.refresh([live(f"n{n}") for n in range(KEPT + 20)])
    assert table.rowCount() == KEPT
    assert table.rowCount(table.index(0, 0)) == 0 and table.data(QModelIndex()) is None


def test_what_is_pointed_at_or_chosen_does_not_move(
    qtbot: QtBot, page: ServerPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [live("a")]
    monkeypatch.setattr(page.server, "requests", lambda texts: list(told))
    page.look()
    view, point = page._view, QPointF(5, 5)
    QGuiApplication.sendEvent(view, QEnterEvent(point, point, point))
    told.append(live("b"))
    page.look()
    assert page.requests.rowCount() == 1 and "pointer" in page._seen.text()
    QGuiApplication.sendEvent(view, QEvent(QEvent.Type.Leave))
    assert page.requests.rowCount() == 2 and "not shown" in page._seen.text()
    page.activateWindow()
    view.setFocus()
    qtbot.waitUntil(view.hasFocus)
    view.setCurrentIndex(page.requests.index(1, 0))
    told.append(live("c"))
    page.look()
    assert page.requests.rowCount() == 2 and "Esc" in view.accessibleDescription()
    qtbot.keyClick(view, Qt.Key.Key_Escape)
    assert page.requests.rowCount() == 3 and not view.held


def test_nothing_is_looked_at_while_hidden_or_paused(page: ServerPage) -> None:
    assert page._timer.isActive()
    page._pause.click()
    assert not page._timer.isActive() and page._pause.accessibleName() == "Go on with the table"
    page._pause.click()
    assert page._timer.isActive()
    page.hide()
    assert not page._timer.isActive()


def test_who_connects_through_one_address_needs_the_key(
    qtbot: QtBot, page: ServerPage, keys: list[str]
) -> None:
    page.server._on_addresses([("127.0.0.3", "eth0"), ("192.0.2.7", "wlan0")])
    names = [page._reach.itemText(n) for n in range(page._reach.count())]
    assert names[3:] == [
        "Through 127.0.0.3 (eth0), with the key",
        "Through 192.0.2.7 (wlan0), with the key",
    ]
    assert page._others.isHidden()
    page._reach.setCurrentIndex(3)
    config = server_config(page.services.settings.value)
    assert (config.host, config.require_key) == ("127.0.0.3", True)
    assert page._openai.text().startswith("http://127.0.0.3:") and page._others.isVisible()
    url = turn_on(qtbot, page)
    assert urlsplit(url).hostname == "127.0.0.3" and keys
    assert get(f"{url}/v1/models").status_code == 401
    assert get(f"{url}/v1/models", Authorization=f"Bearer {keys[-1]}").is_success


def test_the_network_s_addresses_are_named(page: ServerPage, keys: list[str]) -> None:
    page.server._on_addresses([("192.0.2.7", "wlan0"), ("2001:db8::7", "wlan0")])
    page._reach.setCurrentIndex(2)
    port = page.server.config.port
    assert f"http://192.0.2.7:{port}" in page._others.text() and "key" in page._others.text()
    page._reach.setCurrentIndex(0)
    assert page._others.isHidden()


def test_an_address_that_is_chosen_elsewhere_is_kept(
    qtbot: QtBot, page: ServerPage, keys: list[str]
) -> None:
    page.server.configure(host="198.51.100.4")
    assert page._reach.currentText() == "Through 198.51.100.4, with the key"
    page.server._on_addresses([("192.0.2.7", "wlan0")])
    assert page._reach.currentText() == "Through 198.51.100.4, with the key"
    assert page.server.config.host == "198.51.100.4"


def test_it_can_start_with_the_application(page: ServerPage) -> None:
    settings = page.services.settings
    page._at_start.click()
    assert settings.value.serve_at_start
    settings.update(serve_at_start=False)
    assert not page._at_start.isChecked()


def test_the_window_notices_what_clients_load_and_unload(
    qtbot: QtBot, page: ServerPage, services: Services
) -> None:
    load(qtbot, services)
    url = turn_on(qtbot, page)
    name = page.server.target().model  # type: ignore[union-attr]
    with qtbot.waitSignal(services.controller.model_changed):
        assert httpx.post(f"{url}/admin/unload", json={}, timeout=20, trust_env=False).is_success
    assert services.controller.model is None and page._no_model.isVisible()
    with qtbot.waitSignal(services.controller.model_changed):
        body = {"model": name}
        assert httpx.post(f"{url}/admin/load", json=body, timeout=20, trust_env=False).is_success
    assert services.controller.model is not None and page._no_model.isHidden()


def test_closing_stops_it_cleanly_also_in_the_middle_of_an_answer(
    qtbot: QtBot, page: ServerPage, services: Services, fake: FakeEngine
) -> None:
    load(qtbot, services)
    fake.answer, fake.token_s = "word " * 4000, 0.02
    url = turn_on(qtbot, page)
    server, told = page.server._server, []
    assert server is not None

    def ask() -> None:
        body = {"messages": [{"role": "user", "content": "a secret"}]}
        told.append(httpx.post(f"{url}/v1/chat/completions", json=body, timeout=30).status_code)

    client = threading.Thread(target=ask)
    client.start()
    qtbot.waitUntil(lambda: page._going_on == 1)
    shown = [cell(page.requests, 0, column) for column in Column]
    assert "/v1/chat/completions" in shown and "secret" not in "".join(shown)
    assert page._view.isColumnHidden(Column.TEXT)
    page._texts.click()
    assert cell(page.requests, 0, Column.TEXT) == "a secret"
    assert not page._view.isColumnHidden(Column.TEXT) and "are shown" in page._seen.text()
    page._texts.click()
    assert cell(page.requests, 0, Column.TEXT) == "" and page._view.isColumnHidden(Column.TEXT)
    assert services.controller.shutdown()
    assert not server.running
    client.join(10)
    assert told == [503]


def test_it_outlives_its_page_and_everything_has_a_name(
    qtbot: QtBot, page: ServerPage, services: Services
) -> None:
    turn_on(qtbot, page)
    other = ServerPage(services)
    whole(other)
    qtbot.addWidget(other)
    qtbot.addWidget(other.inspector())
    assert other.server is page.server is LocalServer.of(services) and other._switch.isChecked()
    parts = [*page.findChildren(QAbstractButton), *page.findChildren(QComboBox)]
    assert all(p.accessibleName() or getattr(p, "text", str)() for p in parts if p.isVisible())
    fields = [f for f in page.findChildren(QLineEdit) if f.isVisible() and f.isReadOnly()]
    assert fields and all(f.accessibleName() for f in fields)


def test_kept_settings_that_are_not_sound_count_as_none() -> None:
    kept = AppSettings(server={"port": 9000, "host": "127.0.0.1", "body_limit": -1, "odd": 1})
    assert (server_config(kept).port, server_config(kept).body_limit) == (9000, 64)


def test_what_clients_had_loaded_is_told_and_can_go(
    qtbot: QtBot, page: ServerPage, services: Services
) -> None:
    load(qtbot, services)
    turn_on(qtbot, page)
    assert page._guests.isHidden() and page._unload.isHidden()
    guest = FakeEngine()
    guest.load(Path("/models/Beta-4B.gguf"))
    assert page.server._server is not None
    page.server._server.models.all.append(Served(guest, own=True))  # type: ignore[arg-type]
    page.look()
    assert page._guests.isVisible() and "beta-4b" in page._guests.text.lower()
    page._unload.click()
    qtbot.waitUntil(lambda: guest.status().model is None)
    page.look()
    assert page._guests.isHidden() and page._unload.isHidden()
    assert services.controller.model is not None
