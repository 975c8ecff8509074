"""The API key: made here, kept in the system's keyring, or in a file that only its owner can read."""

from __future__ import annotations

import hmac
import logging
import os
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from engine import paths
from engine.errors import EngineError

T = TypeVar("T")

log = logging.getLogger(__name__)

_SERVICE = "lucebox"
_USER = "api-key"
_PATIENCE_S = 5.0  # a locked keyring may ask on a screen that nobody sees


def api_key() -> str:
    """The key, made at the first call."""
    return _read() or renew_key()


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


def _read() -> str | None:
    try:
        if key := key_file().read_text(encoding="ascii").strip():
            return key
    except (OSError, UnicodeDecodeError):
        pass
    return _in_time(lambda: _keyring().get_password(_SERVICE, _USER), None)


def _write_file(key: str) -> None:
    path = key_file()
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(key)
        os.replace(part, path)
    except OSError as error:
        raise EngineError(
            f"The API key cannot be kept in {path}: {error.strerror or error}."
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
