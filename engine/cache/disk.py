"""Blobs that survive restarts: encrypted files in one folder, of which the least recently used go first."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine import keyring_store
from engine.errors import EngineError, ModelFileError
from engine.files import replace_file
from engine.gguf_header import open_regular
from engine.keyring_store import NoKeyring

log = logging.getLogger(__name__)

MOST_BLOB = 1 << 30
"""Longest blob; AES-GCM takes less than 2 GiB at once."""

_KEY_NAME = "disk-cache"
_KEY_BYTES = 32
_MAGIC = b"LBXCACHE\x01"
_NONCE, _TAG = 12, 16
_AROUND = len(_MAGIC) + _NONCE + _TAG
_ENDING = ".lbxcache"
_FILE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{40}\.lbxcache")
_PART = re.compile(r"\.[0-9a-f]{8}-[0-9a-f]{40}\.lbxcache-[^/\\]*\.part")
_PART_S = 3600.0  # a file that is written for so long is of a process that has gone
_SWEEP_EVERY = 64  # others may write too
_ROOM = 0.9  # of the limit is left by a sweep, so that the next blob needs none


@dataclass(frozen=True, slots=True)
class Usage:
    """What lies on disk."""

    files: int
    bytes: int


def secret_key() -> bytes:
    """The key of all files, made at the first call. Raises `NoKeyring`: it is kept nowhere else."""
    if (key := _known_key()) is None:
        made = base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
        keyring_store.write(_KEY_NAME, made)
        key = _known_key()  # of two processes that make one, both take the later
    if key is None:
        raise NoKeyring
    return key


def _known_key() -> bytes | None:
    try:
        key = base64.b64decode(keyring_store.read(_KEY_NAME) or "", validate=True)
    except ValueError:
        return None
    return key if len(key) == _KEY_BYTES else None


def forget_everything(folder: Path) -> None:
    """Delete all files of the cache and their key, so that what a disk still holds of them stays unreadable.

    Raises `EngineError` that says what is left.
    """
    clear(folder)
    try:
        keyring_store.delete(_KEY_NAME)
    except NoKeyring:
        raise EngineError(
            "The keyring did not answer, so the key of the disk cache is still in it; the files are deleted. "
            "Unlock the keyring and do it again."
        ) from None
    if left := usage(folder).files:
        raise EngineError(
            f"{left:,} of the files in {folder} could not be deleted. Their key is, so that nobody can read "
            "them; delete them by hand."
        )


def clear(folder: Path) -> None:
    """Delete all files of the cache in a folder, whatever their key."""
    for entry in _entries(folder):
        _remove(Path(entry.path))


def usage(folder: Path) -> Usage:
    """How much the cache holds in a folder, whatever the key."""
    sizes = [status.st_size for entry in _entries(folder) if (status := _status(entry))]
    return Usage(len(sizes), sum(sizes))


class DiskStore:
    """Blobs by name; several processes may share the folder. May be used from any thread.

    Names and contents are readable with the key alone. What is damaged, cut off, too old or of another key
    counts as not there and is removed; files of others are left alone. A disk that fails is a store that
    holds less: nothing here raises `OSError`.
    """

    def __init__(
        self,
        folder: Path,
        key: bytes,
        limit_bytes: int,
        most_age_s: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.folder = folder
        self._limit = limit_bytes
        self._most_age_s = most_age_s
        self._clock = clock
        self._cipher = AESGCM(_derived(key, b"content"))
        self._naming = _derived(key, b"names")
        self._ours = _derived(key, b"key id").hex()[:8]
        self._lock = threading.Lock()
        self._held = 0  # bytes, as far as this process knows
        self._puts = 0
        self._failed = False
        self.sweep()

    def with_key(self, key: bytes) -> DiskStore:
        """The same folder and limits under another key, for which nothing is there."""
        return DiskStore(self.folder, key, self._limit, self._most_age_s, self._clock)

    def put(self, name: bytes, blob: bytes) -> bool:
        """Keep a blob in the place of a former one; False where the disk or the limit does not let it."""
        size = len(blob) + _AROUND
        if len(blob) > MOST_BLOB or size > self._limit * _ROOM:
            return False
        path, bound = self._place(name)
        nonce = secrets.token_bytes(_NONCE)
        data = b"".join((_MAGIC, nonce, self._cipher.encrypt(nonce, blob, bound)))
        with self._lock:
            self._puts += 1
            if self._held + size > self._limit or self._puts % _SWEEP_EVERY == 0:
                self._sweep(size)
            self._held += size
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(path, data, lasting=False)  # one that a power cut damages is not taken
        except OSError as error:
            if not self._failed:
                log.warning("The disk cache in %s cannot be written: %s", self.folder, error)
            self._failed = True
            return False
        self._failed = False
        return True

    def get(self, name: bytes) -> bytes | None:
        """The blob of that name, exactly as it was put, or None."""
        path, bound = self._place(name)
        data = self._read(path)
        if data is None:
            return None
        start = len(_MAGIC) + _NONCE
        try:
            if data[: len(_MAGIC)] != _MAGIC:
                raise InvalidTag
            return self._cipher.decrypt(data[len(_MAGIC) : start], memoryview(data)[start:], bound)
        except InvalidTag:
            _remove(path)
            return None

    def __contains__(self, name: bytes) -> bool:
        """Whether there is a file for the name; what is in it only `get` can tell."""
        return os.path.isfile(self._place(name)[0])

    def used(self, names: Sequence[bytes]) -> None:
        """Count these as just used, each a little later than the next: what others build on stays longer."""
        now = int(self._clock() * 1e9)
        for n, name in enumerate(names):
            with contextlib.suppress(OSError):
                os.utime(self._place(name)[0], ns=(now - n * 1000, now - n * 1000))

    def remove(self, name: bytes) -> None:
        """Drop one blob."""
        _remove(self._place(name)[0])

    def sweep(self) -> None:
        """Remove what is too old, of another key or left over by a crash, and the oldest beyond the limit."""
        with self._lock:
            self._sweep(0)

    def _sweep(self, room: int) -> None:
        now = self._clock()
        kept: list[tuple[float, int, Path]] = []
        for entry in _entries(self.folder):
            path, status = Path(entry.path), _status(entry)
            if status is None:
                continue
            age = now - status.st_mtime
            if entry.name.endswith(_ENDING):
                stale = age > self._most_age_s or not entry.name.startswith(self._ours)
            else:
                stale = age > _PART_S
            if stale:
                _remove(path)
            elif entry.name.endswith(_ENDING):
                kept.append((status.st_mtime, status.st_size, path))
        self._held = sum(size for _, size, _ in kept)
        if self._held + room <= self._limit:
            return
        for _, size, path in sorted(kept):
            if self._held + room <= self._limit * _ROOM:
                break
            _remove(path)
            self._held -= size

    def _place(self, name: bytes) -> tuple[Path, bytes]:
        """A blob's file, and what binds the content to the name: another's content does not open under it."""
        digest = hmac.new(self._naming, name, hashlib.sha256).digest()
        return self.folder / f"{self._ours}-{digest.hex()[:40]}{_ENDING}", digest

    def _read(self, path: Path) -> bytes | None:
        """A file whose size and age can be right; any other one is removed."""
        if not os.path.lexists(path):
            return None
        with contextlib.suppress(ModelFileError, OSError, MemoryError), open_regular(path) as file:
            status = os.fstat(file.fileno())
            young = self._clock() - status.st_mtime <= self._most_age_s
            if young and _AROUND <= status.st_size <= MOST_BLOB + _AROUND:
                return file.read(MOST_BLOB + _AROUND)
        _remove(path)
        return None


def _derived(key: bytes, use: bytes) -> bytes:
    """A key of its own for each use."""
    return hmac.new(key, b"lucebox disk cache: " + use, hashlib.sha256).digest()


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Files of the cache in a folder, half-written ones too; never one that bears another's name."""
    try:
        with os.scandir(folder) as found:
            yield from (x for x in found if _FILE.fullmatch(x.name) or _PART.fullmatch(x.name))
    except OSError:
        return


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except OSError:
        return None


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
