"""`lucebox cache`, and the flags of `serve` for the disk cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import keyring_store, settings_store
from engine.api import flags
from engine.cache import disk
from engine.cache.disk import DiskStore
from engine.cli import main
from engine.command_line import build_parser
from engine.config import AppSettings, DiskCacheConfig
from tests.ring import Ring


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two blobs and a file of somebody else, chosen in the settings."""
    ring = Ring()
    monkeypatch.setattr(keyring_store, "_keyring", lambda: ring)
    folder = tmp_path / "kept"
    store = DiskStore(folder, disk.secret_key(), 1 << 20, 1e9)
    assert store.put(b"one", bytes(100)) and store.put(b"two", bytes(100))
    (folder / "thesis.txt").write_text("mine")
    settings_store.save(AppSettings(cache={"disk_cache": True, "disk_cache_dir": str(folder)}))
    return folder


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["cache", "--json", *arguments]) == 0
    found: dict[str, object] = json.loads(capsys.readouterr().out)
    return found


def test_it_tells_what_is_kept(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = disk.usage(folder).bytes
    assert shown(capsys) == {"folder": str(folder), "on": True, "files": 2, "bytes": size}
    assert shown(capsys, "--kv-cache-dir", str(folder / "none"))["files"] == 0
    assert main(["cache"]) == 0
    out, err = capsys.readouterr()
    assert out == "0 MB in 2 files\n" and str(folder) in err


@pytest.mark.parametrize("way", ["--clear", "--forget"])
def test_it_deletes_the_files_and_no_other(
    folder: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    key = disk.secret_key()
    assert shown(capsys, way)["files"] == 0
    assert [x.name for x in folder.iterdir()] == ["thesis.txt"]
    assert (disk.secret_key() == key) == (way == "--clear")


def test_the_flags_of_serve() -> None:
    def config(*arguments: str) -> DiskCacheConfig:
        args = build_parser()[0].parse_args(["serve", "a.gguf", *arguments])
        return flags.disk_cache_config(args)

    assert config() == DiskCacheConfig() and not config().disk_cache
    assert config("--disk-cache", "--kv-cache-days", "3").disk_cache_days == 3
    here = config("--kv-cache-dir", "here", "--kv-cache-budget", "100")
    assert (here.disk_cache, here.disk_cache_dir, here.disk_cache_limit) == (True, "here", 100)
