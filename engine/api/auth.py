"""The API key: made here, kept in the system's keyring, or in a file that only its owner can read."""

from __future__ import annotations

import hmac
import secrets
from pathlib import Path

from engine import keyring_store, paths
from engine.errors import EngineError
from engine.files import write_atomically
from engine.keyring_store import NoKeyring

_NAME = "api-key"


def api_key() -> str:
    """The key, made at the first call."""
    return known_key() or renew_key()


def renew_key() -> str:
    """A new key in the place of the old one; `EngineError` where it can be kept nowhere."""
    key = f"sk-lucebox-{secrets.token_urlsafe(32)}"
    try:
        keyring_store.write(_NAME, key)
    except NoKeyring:
        _write_file(key)
    else:
        key_file().unlink(missing_ok=True)
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
    try:
        return keyring_store.read(_NAME)
    except NoKeyring:
        return None


def _write_file(key: str) -> None:
    try:
        write_atomically(key_file(), key.encode())  # readable by its owner only
    except OSError as error:
        raise EngineError(
            f"The API key cannot be kept in {key_file()}: {error.strerror or error}."
        ) from error
