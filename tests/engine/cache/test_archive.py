"""Snapshots on disk: the longest prefix that is there comes back exact, or less of it, never another."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence as Seq
from pathlib import Path

import numpy as np
import pytest

from engine import keyring_store
from engine.cache import archive as archive_module
from engine.cache import disk
from engine.cache.archive import DiskArchive, open_archive
from engine.cache.disk import DiskStore
from engine.cache.snapshot import Blob, Snapshot
from engine.config import DiskCacheConfig
from engine.errors import EngineError
from tests.ring import Ring

SIZE = 4
PLAIN, RECURRENT = b"model of attention\x00", b"model with states\x01"


def page(fingerprint: bytes, tokens: Seq[int]) -> Blob:
    """What a model would compute for the last page of `tokens`: it depends on all of them."""
    seed = hash((fingerprint, tuple(tokens)))
    return np.random.default_rng(seed & 0xFFFFFFFF).integers(0, 256, 50, np.uint8)


def state(fingerprint: bytes, tokens: Seq[int]) -> Blob:
    return page(fingerprint + b"state", tokens)[:30]


def snapshot(tokens: Seq[int], fingerprint: bytes = PLAIN, first: int = 0) -> Snapshot:
    """Of all full pages of `tokens`."""
    n = len(tokens) // SIZE
    pages = tuple(page(fingerprint, tokens[: (i + 1) * SIZE]) for i in range(first, n))
    kept = tuple(tokens[: n * SIZE])
    end = state(fingerprint, kept) if fingerprint == RECURRENT else None
    return Snapshot(fingerprint, SIZE, kept, pages, end, first)


def archive(folder: Path, limit: int = 1 << 24) -> DiskArchive:
    return DiskArchive(DiskStore(folder, bytes(32), limit, 1e9))


def keep(folder: Path, *kept: Snapshot) -> None:
    """Write with an archive of its own, as another process would."""
    one = archive(folder)
    for each in kept:
        one.write(each)
    one.close(None)


def check(found: Snapshot | None, tokens: Seq[int], fingerprint: bytes, first: int = 0) -> int:
    """Assert that what was found is what a model would compute for its tokens; how many pages it has."""
    if found is None:
        return 0
    n = len(found.tokens) // SIZE
    assert (found.fingerprint, found.page_tokens, found.first) == (fingerprint, SIZE, first)
    assert found.tokens == tuple(tokens[: n * SIZE]) and len(found.pages) == n - first > 0
    for i, blob in enumerate(found.pages, first):
        assert np.array_equal(blob, page(fingerprint, tokens[: (i + 1) * SIZE]))
    if fingerprint == RECURRENT:
        assert found.state is not None
        assert np.array_equal(found.state, state(fingerprint, found.tokens))
    return n


def text(seed: int, n: int) -> list[int]:
    return random.Random(seed).choices(range(100_000), k=n)


@pytest.mark.parametrize("fingerprint", [PLAIN, RECURRENT])
def test_a_new_process_finds_the_longest_prefix(tmp_path: Path, fingerprint: bytes) -> None:
    tokens = text(1, 43)
    keep(tmp_path, snapshot(tokens, fingerprint))
    one = archive(tmp_path)
    assert one.reaches(fingerprint, SIZE, tokens) == 10
    longer = [*tokens[:40], *text(2, 20)]
    assert check(one.read(fingerprint, SIZE, longer, 0), longer, fingerprint) == 10
    assert check(one.read(fingerprint, SIZE, longer, 7), longer, fingerprint, 7) == 10
    assert one.read(fingerprint, SIZE, longer, 10) is None
    other = [*tokens[:21], *text(3, 20)]
    found = check(one.read(fingerprint, SIZE, other, 0), other, fingerprint)
    assert found == (5 if fingerprint == PLAIN else 0)
    assert (
        one.read(fingerprint, SIZE, text(4, 40), 0) is None
        and one.reaches(fingerprint, SIZE, []) == 0
    )
    for foreign in (b"another model\x00", b"another model\x01"):
        assert one.read(foreign, SIZE, tokens, 0) is None
    assert one.read(fingerprint, 2 * SIZE, tokens, 0) is None
    one.close()


def test_only_what_is_missing_is_written(tmp_path: Path) -> None:
    tokens = text(1, 48)
    keep(tmp_path, snapshot(tokens[:40], RECURRENT))
    assert disk.usage(tmp_path).files == 11
    keep(tmp_path, snapshot(tokens, RECURRENT, first=10), snapshot(tokens[:32], RECURRENT))
    assert disk.usage(tmp_path).files == 15
    one = archive(tmp_path)
    for n in (8, 10, 12):
        assert one.reaches(RECURRENT, SIZE, tokens[: n * SIZE + 3]) == n
    assert one.reaches(RECURRENT, SIZE, tokens[: 11 * SIZE]) == 10
    one.close()


@pytest.mark.parametrize("fingerprint", [PLAIN, RECURRENT])
def test_any_damage_shortens_what_is_found(tmp_path: Path, fingerprint: bytes) -> None:
    tokens = text(1, 32)
    parts = [snapshot(tokens[:n], fingerprint) for n in (16, 32)]
    keep(tmp_path, *parts)
    good = {path: path.read_bytes() for path in tmp_path.iterdir()}
    lengths = set()
    for path, data in good.items():
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        one = archive(tmp_path)
        lengths.add(check(one.read(fingerprint, SIZE, tokens, 0), tokens, fingerprint))
        one.close()
        assert not path.exists() or fingerprint == RECURRENT  # an earlier state is not needed
        path.write_bytes(data)
    assert lengths == ({0, 4, 8} if fingerprint == RECURRENT else set(range(8)))


def test_names_that_collide_are_no_hit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def poor(_: bytes, page_tokens: int, tokens: Seq[int]) -> list[bytes]:
        return [b"page %d" % n for n in range(len(tokens) // page_tokens)]

    monkeypatch.setattr(archive_module, "page_names", poor)
    tokens = text(1, 16)
    keep(tmp_path, snapshot(tokens))
    one = archive(tmp_path)
    assert one.read(b"another model\x00", SIZE, tokens, 0) is None
    keep(tmp_path, snapshot(tokens))
    changed = [*tokens[:15], tokens[15] + 1]
    assert check(one.read(PLAIN, SIZE, changed, 0), changed, PLAIN) == 3
    one.close()


@pytest.mark.parametrize("seed", range(4))
def test_random_conversations_with_a_small_disk(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    fingerprint = RECURRENT if seed % 2 else PLAIN
    told: list[list[int]] = [[]]
    hits = 0
    one = archive(tmp_path, 40_000)
    for turn in range(80):
        before = chance.choice(told[-20:])
        tokens = before[: chance.randint(0, len(before))] + text(turn, chance.randint(1, 30))
        first = chance.randint(0, one.reaches(fingerprint, SIZE, tokens))
        hits += (
            check(one.read(fingerprint, SIZE, tokens, first), tokens, fingerprint, first) > first
        )
        told.append(tokens)
        one.write(snapshot(tokens, fingerprint, one.reaches(fingerprint, SIZE, tokens)))
        if chance.random() < 0.2:
            one.close(None)
            one = archive(tmp_path, 40_000)
    one.close(None)
    assert hits > 5
    assert disk.usage(tmp_path).bytes <= 40_000


def test_too_much_at_once_is_dropped_and_a_closed_archive_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_module, "MOST_QUEUED", 100)
    keep(tmp_path, snapshot(text(1, 16)))
    assert disk.usage(tmp_path).files == 0
    one = archive(tmp_path)
    one.close()
    one.write(snapshot(text(1, 4)))
    assert disk.usage(tmp_path).files == 0


def test_it_is_opened_as_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ring = Ring()
    monkeypatch.setattr(keyring_store, "_keyring", lambda: ring)
    folder = tmp_path / "some" / "where"
    tokens = text(1, 16)
    for _ in range(2):
        one = open_archive(DiskCacheConfig(disk_cache_dir=str(folder)))
        found = one.read(PLAIN, SIZE, tokens, 0)
        one.write(snapshot(tokens))
        one.close(None)
    assert check(found, tokens, PLAIN) == 4


@pytest.mark.parametrize("forget", [False, True])
def test_clearing_and_forgetting_also_drop_what_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: bool
) -> None:
    ring = Ring()
    monkeypatch.setattr(keyring_store, "_keyring", lambda: ring)
    one = open_archive(DiskCacheConfig(disk_cache_dir=str(tmp_path)))
    key = dict(ring.held)
    tokens = text(1, 16)
    held, stand = threading.Event(), threading.Event()
    put = one.store.put

    def slow(name: bytes, blob: bytes) -> bool:
        held.set()
        assert stand.wait(20)
        return put(name, blob)

    monkeypatch.setattr(one.store, "put", slow)
    one.write(snapshot(tokens))
    one.write(snapshot(text(2, 16)))
    assert held.wait(20)
    emptying = threading.Thread(target=one.forget if forget else one.clear)
    emptying.start()
    emptying.join(0.1)
    assert emptying.is_alive()
    stand.set()
    emptying.join(20)
    assert (ring.held != key) == forget and len(ring.held) == 1
    one.write(snapshot(text(3, 16)))
    one.close(None)
    again = open_archive(DiskCacheConfig(disk_cache_dir=str(tmp_path)))
    assert [again.reaches(PLAIN, SIZE, text(seed, 16)) for seed in (1, 2, 3)] == [0, 0, 4]
    assert disk.usage(tmp_path).files == 4
    again.close()


def test_it_stays_off_where_it_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise OSError

    monkeypatch.setattr(keyring_store, "_keyring", none)
    with pytest.raises(EngineError, match="stays off: no keyring"):
        open_archive(DiskCacheConfig(disk_cache_dir=str(tmp_path)))
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(EngineError, match="Choose another folder"):
        open_archive(DiskCacheConfig(disk_cache_dir=str(tmp_path / "file")))
    with pytest.raises(EngineError, match="Choose another folder"):
        open_archive(DiskCacheConfig(disk_cache_dir="no\0name"))
