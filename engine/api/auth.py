"""The API key: made here, kept in the system's keyring, or in a file that only its owner can read."""

from __future__ import annotations

import hmac
import logging
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from engine import paths
from engine.errors import EngineError
from engine.files import write_atomically

T = TypeVar("T")

log = logging.getLogger(__name__)

_SERVICE = "lucebox"
_USER = "api-key"
_PATIENCE_S = 5.0  # a locked keyring may ask on a screen that nobody sees


def api_key() -> str:
    """The key, made at the first call."""
    return known_key() or renew_key()


def renew_key() -> str:
    """A new key in the place of the old one; `EngineError` where it can be kept nowhere."""
    key = f"sk-lucebox-{secrets.token_urlsafe(32)}"
    if _in_time(lambda: _keyring().set_password(_SERVICE, _USER, key), "no") != "no":
        key_file().unlink(missing_ok=True)
        return key
    _write_file(key)
    return key


def same_key(given: str, key: str) -> bool:
    """Whether two keys are equal, in a time that does not depend on where they differ."""
    return hmac.compare_digest(given.encode("utf-8", "replace"), key.encode())


def key_file() -> Path:
    """Where the key lies on a PC without a keyring."""
    return paths.settings_file().with_name("api-key")


def known_key() -> str | None:
    """The key, None where none was made yet."""
    try:
        if key := key_file().read_text(encoding="ascii").strip():
            return key
    except (OSError, UnicodeDecodeError):
        pass
    return _in_time(lambda: _keyring().get_password(_SERVICE, _USER), None)


def _write_file(key: str) -> None:
    try:
        write_atomically(key_file(), key.encode())  # readable by its owner only
    except OSError as error:
        raise EngineError(
            f"The API key cannot be kept in {key_file()}: {error.strerror or error}."
        ) from error


def _keyring() -> Any:
    """The system's keyring; `keyring.errors.NoKeyringError` where there is none."""
    import keyring
    from keyring.errors import NoKeyringError

    found = keyring.get_keyring()
    if found.priority <= 0:
        raise NoKeyringError
    return found


def _in_time(call: Callable[[], T], otherwise: T) -> T:
    """What a call to the keyring gives, `otherwise` where it fails or does not return in time."""
    found = [otherwise]

    def work() -> None:
        try:
            found[0] = call()
        except Exception as error:
            log.info("The keyring cannot be used: %s", type(error).__name__)

    thread = threading.Thread(target=work, name="keyring", daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    return found[0]
