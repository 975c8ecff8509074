"""The API key: made once, kept out of others' sight, found again."""

from __future__ import annotations

import stat
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from engine import keyring_store
from engine.api import auth, server
from engine.config import ServerConfig
from engine.errors import BadRequest
from tests.ring import Ring


@pytest.fixture
def no_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> Any:
        raise RuntimeError("no keyring")

    monkeypatch.setattr(keyring_store, "_keyring", fail)


def test_the_keyring_keeps_the_key(ring: Ring) -> None:
    assert auth.known_key() is None
    key = auth.api_key()
    assert key.startswith("sk-lucebox-") and len(key) > 40
    assert auth.api_key() == key == next(iter(ring.held.values()))
    assert not auth.key_file().exists()
    assert auth.renew_key() != key


@pytest.mark.usefixtures("no_ring")
def test_without_a_keyring_a_file_of_its_owner_keeps_it() -> None:
    key = auth.api_key()
    assert auth.key_file().read_text(encoding="ascii") == key == auth.api_key()
    if sys.platform != "win32":
        assert stat.S_IMODE(auth.key_file().stat().st_mode) == 0o600
    assert auth.renew_key() != key == key
    assert auth.api_key() != key


def test_a_keyring_that_comes_later_takes_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring_store, "_keyring", lambda: None)
    old = auth.api_key()
    monkeypatch.setattr(keyring_store, "_keyring", lambda ring=Ring(): ring)
    assert auth.api_key() == old
    new = auth.renew_key()
    assert not auth.key_file().exists() and auth.api_key() == new


def test_a_keyring_that_waits_for_somebody_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    locked = threading.Event()
    wait = lambda *_: locked.wait(60)  # noqa: E731
    monkeypatch.setattr(keyring_store, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(
        keyring_store, "_keyring", lambda: SimpleNamespace(get_password=wait, set_password=wait)
    )
    assert auth.api_key() == auth.key_file().read_text(encoding="ascii")
    locked.set()


def test_keys_are_compared() -> None:
    assert auth.same_key("a", "a")
    assert not auth.same_key("a", "b") and not auth.same_key("", "a")
    assert not auth.same_key("\ud800é", "a")


@pytest.mark.parametrize(
    ("host", "needed"),
    [
        ("127.0.0.1", False), ("::1", False), ("localhost", False), ("127.9.9.9", False),
        ("0.0.0.0", True), ("::", True), ("192.168.1.2", True),
    ],
)  # fmt: skip
def test_other_addresses_need_the_key(host: str, needed: bool) -> None:
    assert server.needs_key(ServerConfig(host=host)) is needed
    assert server.needs_key(ServerConfig(host=host, require_key=True))


def test_what_is_no_address_is_told() -> None:
    with pytest.raises(BadRequest, match="127"):
        server.needs_key(ServerConfig(host="my-server"))
