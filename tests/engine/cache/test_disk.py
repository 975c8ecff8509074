"""Blobs on disk: what was put comes back exactly or not at all, whatever happens to the files."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine import keyring_store
from engine.cache import disk
from engine.cache.disk import DiskStore
from engine.errors import EngineError
from engine.keyring_store import NoKeyring
from tests.ring import Ring

ROOT = Path(__file__).parents[3]
KEY, OTHER_KEY = bytes(range(32)), bytes(32)
DAY = 86400.0


class Clock:
    """A time that a test sets."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def store(
    folder: Path, key: bytes = KEY, limit: int = 1 << 20, clock: Clock | None = None
) -> DiskStore:
    return DiskStore(folder, key, limit, 30 * DAY, clock or Clock())


def put(where: DiskStore, name: bytes, blob: bytes) -> None:
    """As `put`, with the file's time that of the test's clock."""
    assert where.put(name, blob)
    where.used([name])


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_a_blob_comes_back_in_another_store(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "cache"
    blobs = {bytes([n]): random.Random(n).randbytes(n * 100) for n in range(8)}
    first = store(folder)
    for name, blob in blobs.items():
        put(first, name, blob)
    put(first, b"\x03", b"newer")
    again = store(folder)
    assert {name: again.get(name) for name in blobs} == blobs | {b"\x03": b"newer"}
    assert b"\x03" in again and b"unknown" not in again and again.get(b"unknown") is None
    assert disk.usage(folder).files == 8


@pytest.mark.skipif(os.name == "nt", reason="POSIX modes")
def test_only_the_owner_can_read_the_files(tmp_path: Path) -> None:
    put(store(tmp_path / "cache"), b"name", b"blob")
    assert (tmp_path / "cache").stat().st_mode & 0o777 == 0o700
    assert files(tmp_path / "cache")[0].stat().st_mode & 0o777 == 0o600


def test_nothing_can_be_read_from_a_file_or_its_name(tmp_path: Path) -> None:
    blob = b"the user's secret words " * 20
    put(store(tmp_path), b"model and tokens", blob)
    file = files(tmp_path)[0]
    first = file.read_bytes()
    assert blob[:12] not in first and b"tokens" not in first and b"tokens".hex() not in file.name
    put(store(tmp_path), b"model and tokens", blob)
    assert files(tmp_path) == [file]
    assert file.read_bytes()[20:] != first[20:]  # never the same nonce twice


def damages(good: bytes) -> list[bytes]:
    """Every byte changed, every shorter file, more behind it, other things altogether."""
    flipped = [good[:i] + bytes([good[i] ^ 1 << i % 8]) + good[i + 1 :] for i in range(len(good))]
    cut = [good[:n] for n in range(len(good))]
    chance = random.Random(5)
    noise = [chance.randbytes(chance.randrange(200)) for _ in range(100)]
    return [*flipped, *cut, *noise, good + b"\0", good + good, bytes(len(good))]


def test_a_damaged_file_is_not_there_and_removed(tmp_path: Path) -> None:
    one = store(tmp_path)
    put(one, b"name", b"a blob of some bytes")
    file = files(tmp_path)[0]
    good = file.read_bytes()
    for bad in damages(good):
        file.write_bytes(bad)
        os.utime(file, (Clock().now, Clock().now))
        assert one.get(b"name") is None, bad
        assert not file.exists()
    file.write_bytes(good)
    os.utime(file, (Clock().now, Clock().now))
    assert one.get(b"name") == b"a blob of some bytes"


def test_one_blob_never_comes_back_under_the_name_of_another(tmp_path: Path) -> None:
    one = store(tmp_path)
    put(one, b"first", b"1")
    first = files(tmp_path)[0]
    put(one, b"second", b"2")
    second = next(x for x in files(tmp_path) if x != first)
    second.write_bytes(first.read_bytes())
    assert one.get(b"second") is None and one.get(b"first") == b"1"


def test_files_of_another_key_are_removed_and_those_of_others_stay(tmp_path: Path) -> None:
    put(store(tmp_path, OTHER_KEY), b"name", b"blob")
    foreign = tmp_path / "thesis.txt"
    foreign.write_text("mine")
    (tmp_path / "0123.lbxcache").write_text("not one of ours")
    assert store(tmp_path).get(b"name") is None
    assert {x.name for x in files(tmp_path)} == {"thesis.txt", "0123.lbxcache"}


@pytest.mark.parametrize("make", [Path.mkdir, lambda p: p.symlink_to(ROOT / "README.md"),
                                  getattr(os, "mkfifo", Path.mkdir)])  # fmt: skip
def test_what_is_no_plain_file_is_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    one = store(tmp_path)
    put(one, b"name", b"blob")
    file = files(tmp_path)[0]
    file.unlink()
    make(file)
    before = (ROOT / "README.md").read_bytes()
    assert one.get(b"name") is None
    one.put(b"name", b"new")
    assert one.get(b"name") in (b"new", None)
    assert (ROOT / "README.md").read_bytes() == before


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    clock = Clock()
    one = store(tmp_path, limit=11_000, clock=clock)
    for n in range(9):
        clock.now += 1
        put(one, bytes([n]), bytes(1000))
    clock.now += 1
    one.used([b"\x00", b"\x01"])
    for n in range(9, 13):
        clock.now += 1
        put(one, bytes([n]), bytes(1000))
    there = [n for n in range(13) if bytes([n]) in one]
    assert disk.usage(tmp_path).bytes <= 11_000
    assert {0, 1, 9, 10, 11, 12} <= set(there) and 2 not in there
    assert not one.put(b"large", bytes(11_000)) and len(there) == disk.usage(tmp_path).files


def test_what_others_build_on_stays_longer(tmp_path: Path) -> None:
    one = store(tmp_path)
    for name in (b"root", b"branch", b"leaf"):
        one.put(name, bytes(1000))
    one.used([b"root", b"branch", b"leaf"])
    assert b"leaf" in one
    shrunk = store(tmp_path, limit=2400)
    assert b"root" in shrunk and b"branch" in shrunk and b"leaf" not in shrunk


def test_old_files_go(tmp_path: Path) -> None:
    clock = Clock()
    one = store(tmp_path, clock=clock)
    put(one, b"old", b"1")
    clock.now += 20 * DAY
    put(one, b"new", b"2")
    clock.now += 20 * DAY
    assert one.get(b"old") is None and one.get(b"new") == b"2"
    clock.now += 20 * DAY
    store(tmp_path, clock=clock)
    assert files(tmp_path) == []


def test_what_a_crash_left_half_written_goes(tmp_path: Path) -> None:
    clock = Clock()
    put(store(tmp_path, clock=clock), b"name", b"blob")
    name = files(tmp_path)[0].name
    (tmp_path / f".{name}-x1.part").write_bytes(b"half")
    (tmp_path / f".{name}-x2.part").write_bytes(b"being written")
    os.utime(tmp_path / f".{name}-x1.part", (clock.now - DAY, clock.now - DAY))
    os.utime(tmp_path / f".{name}-x2.part", (clock.now, clock.now))
    store(tmp_path, clock=clock)
    assert {x.name for x in files(tmp_path)} == {name, f".{name}-x2.part"}


def test_a_disk_that_fails_is_a_store_that_holds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    one = store(tmp_path / "file")
    assert not one.put(b"name", b"blob") and one.get(b"name") is None

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    one = store(tmp_path / "full")
    monkeypatch.setattr(disk, "replace_file", full)
    assert not one.put(b"name", b"blob") and one.get(b"name") is None


_HAMMER = """
import random, sys
from pathlib import Path
from engine.cache.disk import DiskStore
store = DiskStore(Path(sys.argv[1]), bytes(range(32)), 40_000, 1e9)
chance = random.Random(int(sys.argv[2]))
hits = 0
for _ in range(400):
    n = chance.randrange(40)
    name, blob = b"%d" % n, (b"%d" % n) * 400
    if chance.random() < 0.5:
        store.put(name, blob)
    elif (found := store.get(name)) is not None:
        assert found == blob
        hits += 1
        store.used([name])
print(hits)
"""


def test_two_processes_share_a_folder(tmp_path: Path) -> None:
    runs = [
        subprocess.Popen([sys.executable, "-c", _HAMMER, str(tmp_path), str(seed)], cwd=ROOT,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for seed in range(2)
    ]  # fmt: skip
    for run in runs:
        out, err = run.communicate(timeout=100)
        assert run.returncode == 0, err
        assert int(out) > 20
    DiskStore(tmp_path, KEY, 40_000, 1e9)
    assert disk.usage(tmp_path).bytes <= 40_000


def test_the_key_is_kept_in_the_keyring_only(ring: Ring, tmp_path: Path) -> None:
    key = disk.secret_key()
    assert len(key) == 32 and disk.secret_key() == key
    assert list(ring.held) == [("lucebox", "disk-cache")]
    put(store(tmp_path, key), b"name", b"blob")
    disk.forget_everything(tmp_path)
    assert not ring.held and files(tmp_path) == []
    assert disk.secret_key() != key


def test_a_damaged_key_is_replaced(ring: Ring) -> None:
    for bad in ("", "short", "é", "AAAA"):
        ring.held["lucebox", "disk-cache"] = bad
        assert len(disk.secret_key()) == 32


def test_without_a_keyring_there_is_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from keyring.errors import NoKeyringError

    def none() -> None:
        raise NoKeyringError

    monkeypatch.setattr(keyring_store, "_keyring", none)
    with pytest.raises(NoKeyring):
        disk.secret_key()


def test_forgetting_says_what_is_left(
    ring: Ring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store(tmp_path, disk.secret_key()), b"name", b"blob")
    with monkeypatch.context() as held:
        held.setattr(disk, "_remove", lambda path: None)
        with pytest.raises(EngineError, match="1 of the files"):
            disk.forget_everything(tmp_path)
    assert not ring.held

    def locked(*_: str) -> None:
        raise OSError("locked")

    monkeypatch.setattr(keyring_store, "_keyring", lambda: SimpleNamespace(get_password=locked))
    with pytest.raises(EngineError, match="keyring did not answer"):
        disk.forget_everything(tmp_path)
    assert files(tmp_path) == []
