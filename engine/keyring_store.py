"""Secrets of this application in the system's keyring."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

log = logging.getLogger(__name__)

_SERVICE = "lucebox"
_PATIENCE_S = 5.0  # a locked keyring may ask on a screen that nobody sees


class NoKeyring(Exception):
    """This PC has no keyring, or it is locked."""


def read(name: str) -> str | None:
    """A secret, None where there is none of that name. Raises `NoKeyring`."""
    return _in_time(lambda: _keyring().get_password(_SERVICE, name))


def write(name: str, secret: str) -> None:
    """Keep a secret in the place of a former one. Raises `NoKeyring`."""
    _in_time(lambda: _keyring().set_password(_SERVICE, name, secret))


def delete(name: str) -> None:
    """Forget a secret, if there is one. Raises `NoKeyring` where the keyring does not answer."""
    from keyring.errors import NoKeyringError

    def work() -> None:
        try:
            ring = _keyring()
        except NoKeyringError:
            return
        if ring.get_password(_SERVICE, name) is not None:
            ring.delete_password(_SERVICE, name)

    _in_time(work)


def _keyring() -> Any:
    """The system's keyring; `keyring.errors.NoKeyringError` where there is none."""
    import keyring
    from keyring.errors import NoKeyringError

    found = keyring.get_keyring()
    if found.priority <= 0:
        raise NoKeyringError
    return found


def _in_time(call: Callable[[], T]) -> T:
    """What a call to the keyring gives; `NoKeyring` where it fails or does not return in time."""
    found: list[T] = []

    def work() -> None:
        try:
            found.append(call())
        except Exception as error:
            log.info("The keyring cannot be used: %s", type(error).__name__)

    thread = threading.Thread(target=work, name="keyring", daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    if not found:
        raise NoKeyring
    return found[0]
