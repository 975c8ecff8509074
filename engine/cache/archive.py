"""Snapshots on disk: a blob for each page and each state, written by a thread that nobody waits for."""

from __future__ import annotations

import bisect
import contextlib
import logging
import os
import queue
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Sequence as Seq
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from engine import paths
from engine.cache import disk
from engine.cache.disk import DiskStore, Usage
from engine.cache.snapshot import Blob, Snapshot, page_names
from engine.config import DiskCacheConfig
from engine.errors import EngineError
from engine.keyring_store import NoKeyring

if TYPE_CHECKING:
    from engine.engine import Engine

log = logging.getLogger(__name__)

MOST_QUEUED = 1 << 30
"""Bytes that may wait to be written; snapshots beyond them are dropped."""

_STATE = b"state"


def folder_of(config: DiskCacheConfig) -> Path:
    """Where the files lie."""
    return Path(config.disk_cache_dir) if config.disk_cache_dir else paths.conversations_dir()


def open_archive(config: DiskCacheConfig) -> DiskArchive:
    """The archive of this PC; `EngineError` where it cannot be. May wait for the keyring some seconds."""
    folder = folder_of(config)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EngineError(
            f"The disk cache stays off: nothing can be written in {folder} ({reason}). Choose another folder."
        ) from error
    try:
        key = disk.secret_key()
    except NoKeyring:
        wanted = "Windows' Credential Manager" if os.name == "nt" else "GNOME Keyring or KWallet"
        raise EngineError(
            "The disk cache stays off: no keyring answers on this PC, and the key that protects the files is "
            f"kept nowhere else. Unlock or install one ({wanted}); all else works without it."
        ) from None
    store = DiskStore(folder, key, config.disk_cache_limit << 20, config.disk_cache_days * 86400.0)
    return DiskArchive(store)


def empty(engines: Iterable[Engine], config: DiskCacheConfig, forget: bool = False) -> Usage:
    """Drop all that is kept of prompts, in memory and on disk, and with `forget` the key of the files too.

    Without an engine that has an archive the folder of `config` is emptied. Returns what is left on disk;
    raises `EngineError` where that is not as it should be.
    """
    engines = tuple(engines)
    for engine in engines:
        engine.clear_cache()
    archives = _archives(engines)
    for archive in archives:
        archive.forget() if forget else archive.clear()
    if not archives:
        disk.forget_everything(folder_of(config)) if forget else disk.clear(folder_of(config))
    return held(engines, config)


def held(engines: Iterable[Engine], config: DiskCacheConfig) -> Usage:
    """What lies in the folder that engines keep prompts in, else in that of `config`."""
    archives = _archives(engines)
    return disk.usage(archives.pop().store.folder if archives else folder_of(config))


def _archives(engines: Iterable[Engine]) -> set[DiskArchive]:
    return {e.archive for e in engines if isinstance(e.archive, DiskArchive)}


class DiskArchive:
    """The `engine.cache.snapshot.Archive` over a `DiskStore`."""

    def __init__(self, store: DiskStore) -> None:
        self.store = store
        self._queue: queue.SimpleQueue[tuple[int, Snapshot, Callable[[], None]] | None] = (
            queue.SimpleQueue()
        )
        self._queued = 0
        self._lock = threading.Lock()
        self._closed = False
        self._epoch = 0  # a snapshot of an earlier one is not to be written any more
        self._writing = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="disk-cache", daemon=True)
        self._thread.start()

    def reaches(self, fingerprint: bytes, page_tokens: int, tokens: Seq[int]) -> int:
        """As `Archive`."""
        return self._reach(fingerprint, page_names(fingerprint, page_tokens, tokens))

    def read(
        self, fingerprint: bytes, page_tokens: int, tokens: Seq[int], first: int
    ) -> Snapshot | None:
        """As `Archive`."""
        names = page_names(fingerprint, page_tokens, tokens)

        def blob(n: int, ending: bytes = b"") -> Blob | None:
            """Of the page that `n` pages end with, or of the state behind it."""
            return self._get(names[n - 1] + ending, _head(fingerprint, page_tokens, tokens, n))

        n = self._reach(fingerprint, names)
        while n > first:
            state = blob(n, _STATE) if _recurrent(fingerprint) else None
            if state is None and _recurrent(fingerprint):
                n = self._reach(fingerprint, names[: n - 1])
                continue
            pages: list[Blob] = []
            while first + len(pages) < n and (page := blob(first + len(pages) + 1)) is not None:
                pages.append(page)
            if len(pages) == n - first:
                self._use(fingerprint, names[:n])
                known = tuple(tokens[: n * page_tokens])
                return Snapshot(fingerprint, page_tokens, known, tuple(pages), state, first)
            n = self._reach(fingerprint, names[: first + len(pages)])
        return None

    def write(self, snapshot: Snapshot, then: Callable[[], None] = lambda: None) -> None:
        """As `Archive`."""
        with self._lock:
            if self._closed or self._queued + snapshot.n_bytes > MOST_QUEUED:
                return
            self._queued += snapshot.n_bytes
            self._queue.put((self._epoch, snapshot, then))

    def clear(self) -> None:
        """Delete all files, and drop what waits to be written."""
        with self._alone():
            disk.clear(self.store.folder)

    def forget(self) -> None:
        """As `clear`, and the key too; a new one serves from then on. `EngineError` says what is left."""
        with self._alone():
            try:
                disk.forget_everything(self.store.folder)
            finally:
                with contextlib.suppress(NoKeyring):
                    self.store = self.store.with_key(disk.secret_key())

    def close(self, timeout: float | None = 5.0) -> None:
        """Write what waits, for `timeout` s at most, and take no more."""
        with self._lock:
            self._closed = True
        self._queue.put(None)
        self._thread.join(timeout)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No blob is written meanwhile, and none of what was to be written before comes after."""
        with self._lock:
            self._epoch += 1
        with self._writing:
            yield

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            epoch, snapshot, then = job
            try:
                if self._put(snapshot, epoch):
                    then()
            except Exception:
                log.exception("A snapshot could not be written")
            with self._lock:
                self._queued -= snapshot.n_bytes

    def _put(self, snapshot: Snapshot, epoch: int) -> bool:
        """Whether all of it is there now."""
        fingerprint, size = snapshot.fingerprint, snapshot.page_tokens
        names = page_names(fingerprint, size, snapshot.tokens)
        ends = range(snapshot.first + 1, len(names) + 1)
        blobs = [(names[n - 1], page, n) for n, page in zip(ends, snapshot.pages, strict=True)]
        if snapshot.state is not None and names:
            blobs.append((names[-1] + _STATE, snapshot.state, len(names)))
        for name, blob, n in blobs:
            head = _head(fingerprint, size, snapshot.tokens, n)
            with self._writing:
                if epoch != self._epoch:
                    return False
                if name not in self.store and not self.store.put(name, head + blob.tobytes()):
                    return False
        self._use(fingerprint, names)
        return True

    def _use(self, fingerprint: bytes, names: Seq[bytes]) -> None:
        """A conversation counts as used from its end to its beginning; its last state as the beginning."""
        last = [names[-1] + _STATE] if names and _recurrent(fingerprint) else []
        self.store.used([*last, *names])

    def _reach(self, fingerprint: bytes, names: Seq[bytes]) -> int:
        """Pages go from the end of a conversation, so that halving finds how far it is there."""
        n = bisect.bisect_left(names, True, key=lambda name: name not in self.store)
        if _recurrent(fingerprint):
            while n and names[n - 1] + _STATE not in self.store:
                n -= 1
        return n

    def _get(self, name: bytes, head: bytes) -> Blob | None:
        """A blob that was written behind this very head."""
        blob = self.store.get(name)
        if blob is None:
            return None
        if not blob.startswith(head):
            self.store.remove(name)
            return None
        return np.frombuffer(blob, np.uint8, offset=len(head))


def _recurrent(fingerprint: bytes) -> bool:
    """Whether a model of this fingerprint has recurrent states."""
    return fingerprint[-1:] == b"\x01"


def _head(fingerprint: bytes, page_tokens: int, tokens: Seq[int], n: int) -> bytes:
    """What the blob of page n - 1 begins with: the tokens are compared, not only their name."""
    ids = np.asarray(tokens[(n - 1) * page_tokens : n * page_tokens], "<i4")
    return fingerprint + ids.tobytes()
