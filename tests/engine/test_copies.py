"""Copies into the models folder, and the bin: nothing is overwritten, nothing is half done."""

from __future__ import annotations

import os
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine import copies, files
from engine.copies import BIN, copy_in, discard, folder_problem, in_bin, move_to_bin, restore
from engine.entry import Entry, inspect
from engine.errors import BadRequest, EngineError, LoadCancelled
from engine.files import rename_new, write_atomically
from tests.engine.gguf_writer import model

CASES = Path(__file__).parents[1] / "fixtures" / "gguf"


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def everything(folder: Path) -> list[str]:
    """All files below a folder, hidden ones too."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


@pytest.fixture
def source(tmp_path: Path) -> Entry:
    return inspect(put(tmp_path / "downloads" / "tiny.gguf", model(name="Tiny")))


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return tmp_path / "data" / "models"


def test_a_copy_is_equal_and_the_source_stays(source: Entry, models: Path) -> None:
    steps: list[tuple[int, int]] = []
    copy = copy_in(source, models, lambda done, total: steps.append((done, total)))
    assert copy == models / "tiny.gguf" and copy.read_bytes() == source.path.read_bytes()
    assert everything(models) == ["tiny.gguf"]
    assert steps == sorted(steps) and steps[-1] == (2 * source.size, 2 * source.size)


def test_another_file_of_the_same_name_is_not_touched(source: Entry, models: Path) -> None:
    put(models / "tiny.gguf", b"mine")
    put(models / "tiny (2).gguf", b"mine too")
    assert copy_in(source, models) == models / "tiny (3).gguf"
    assert (models / "tiny.gguf").read_bytes() == b"mine"
    assert (models / "tiny (2).gguf").read_bytes() == b"mine too"


def test_an_equal_copy_is_used_again(source: Entry, models: Path) -> None:
    first = copy_in(source, models)
    seen = first.stat()
    assert copy_in(source, models) == first and first.stat() == seen
    changed = bytearray(source.path.read_bytes())
    changed[-1] ^= 1  # same size, other content
    first.write_bytes(changed)
    assert copy_in(source, models) == models / "tiny (2).gguf"


def test_a_file_in_the_models_folder_stays_where_it_is(models: Path) -> None:
    inside = put(models / "sub" / "x.gguf", model())
    assert copy_in(inspect(inside), models) == inside and everything(models) == ["sub/x.gguf"]


def test_a_set_gets_a_folder_and_still_opens(tmp_path: Path, models: Path) -> None:
    folder = Path(shutil.copytree(CASES / "h12_split", tmp_path / "split"))
    entry = inspect(folder / "tiny-q8-00002-of-00003.gguf")
    copy = copy_in(entry, models)
    assert copy == models / "tiny-q8" / "tiny-q8-00001-of-00003.gguf"
    assert len(inspect(copy).files) == 3
    shutil.rmtree(models / "tiny-q8")
    put(models / "tiny-q8", b"a file in the way")
    assert copy_in(entry, models).parent == models / "tiny-q8 (2)"


def test_companions_come_along(tmp_path: Path, source: Entry, models: Path) -> None:
    helper = put(tmp_path / "downloads" / "mmproj.gguf", model("clip"))
    gone = tmp_path / "gone.gguf"
    copy = copy_in(replace(source, companions=(helper, gone)), models)
    assert copy == models / "tiny" / "tiny.gguf"
    assert everything(models) == ["tiny/mmproj.gguf", "tiny/tiny.gguf"]


def test_an_ollama_blob_gets_the_name_of_its_model(tmp_path: Path, models: Path) -> None:
    blob = put(tmp_path / "blobs" / "sha256-1", model())
    helper = put(tmp_path / "blobs" / "sha256-2", model("clip"))
    entry = replace(inspect(blob), name="hf.co/org/repo:Q4_K_M", companions=(helper,))
    copy_in(entry, models)
    stem = "hf.co-org-repo-Q4_K_M"
    assert everything(models) == [f"{stem}/{stem}.gguf", f"{stem}/mmproj-{stem}.gguf"]


def test_helpers_of_the_same_name_do_not_collide(
    tmp_path: Path, source: Entry, models: Path
) -> None:
    helper = put(tmp_path / "other" / "TINY.gguf", model("clip"))
    copy_in(replace(source, companions=(helper,)), models)
    assert everything(models) == ["tiny/_TINY.gguf", "tiny/tiny.gguf"]


def test_a_full_disk_is_known_before_anything_is_written(
    source: Entry, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies.shutil, "disk_usage", lambda _: SimpleNamespace(free=5 << 20))
    with pytest.raises(EngineError, match=r"5 MB free"):
        copy_in(source, models)
    assert everything(models) == []


def test_a_disk_that_fills_up_meanwhile_leaves_nothing(
    source: Entry, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(copies.os, "fsync", full)
    with pytest.raises(EngineError, match="No space left"):
        copy_in(source, models)
    assert everything(models) == []


def test_cancel_leaves_nothing(source: Entry, models: Path) -> None:
    stop = threading.Event()
    with pytest.raises(LoadCancelled):
        copy_in(source, models, lambda done, total: stop.set(), stop)
    assert everything(models) == [] and source.path.is_file()


def test_a_source_that_grows_is_noticed(source: Entry, models: Path) -> None:
    def grow(done: int, total: int) -> None:
        with open(source.path, "ab") as file:
            file.write(b"more")

    with pytest.raises(EngineError, match="changed while it was copied"):
        copy_in(source, models, grow)
    assert everything(models) == []


def test_a_disk_that_gives_back_other_bytes_is_noticed(
    source: Entry, models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damage(_: int) -> None:
        (part,) = models.rglob("*.gguf.part")
        part.write_bytes(bytes(source.size))

    monkeypatch.setattr(copies.os, "fsync", damage)
    with pytest.raises(EngineError, match="differs from the original"):
        copy_in(source, models)
    assert everything(models) == []


def test_what_a_crash_left_is_cleared_but_not_what_runs(source: Entry, models: Path) -> None:
    old = put(models / ".copy-1.part" / "x.gguf.part", b"x").parent
    put(models / ".copy-2.part" / "y.gguf.part", b"y")
    os.utime(old, (0, 0))
    copy_in(source, models)
    assert everything(models) == [".copy-2.part/y.gguf.part", "tiny.gguf"]


def test_damaged_files_and_useless_folders_are_refused(tmp_path: Path, source: Entry) -> None:
    bad = inspect(put(tmp_path / "bad.gguf", b"<html>"))
    with pytest.raises(BadRequest, match="web page"):
        copy_in(bad, tmp_path / "m")
    with pytest.raises(EngineError, match="could not be copied"):
        copy_in(source, put(tmp_path / "file", b"") / "models")


def test_a_folder_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert folder_problem(tmp_path / "new" / "deep") is None
    assert everything(tmp_path) == []
    assert "cannot be written" in (folder_problem(put(tmp_path / "f", b"") / "x") or "")

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")  # a mode does not stop an administrator

    monkeypatch.setattr(copies.tempfile, "TemporaryFile", refuse)
    assert "Permission denied" in (folder_problem(tmp_path) or "")


# The bin


def ours(path: Path, root: Path) -> Entry:
    return replace(inspect(path), source="Lucebox", root=root)


def test_out_and_back_again(models: Path) -> None:
    path = put(models / "sub" / "x.gguf", model(name="X"))
    data = path.read_bytes()
    binned = move_to_bin(ours(path, models))
    assert not path.exists() and not path.parent.exists() and models.is_dir()
    assert (binned.name, binned.size, binned.path) == ("X", len(data), path)
    assert [b.slot for b in in_bin(models)] == [binned.slot]
    assert restore(binned) == path and path.read_bytes() == data
    assert everything(models) == ["sub/x.gguf"] and in_bin(models) == ()


def test_a_set_moves_whole(models: Path) -> None:
    shutil.copytree(CASES / "h12_split", models / "s")
    binned = move_to_bin(ours(models / "s" / "tiny-q8-00002-of-00003.gguf", models))
    assert not (models / "s").exists()
    assert len(inspect(restore(binned)).files) == 3


def test_the_place_may_be_taken_when_it_comes_back(models: Path) -> None:
    path = put(models / "x.gguf", model(name="old"))
    binned = move_to_bin(ours(path, models))
    put(path, model(name="new"))
    back = restore(binned)
    assert inspect(back).name == "old" and inspect(path).name == "new"
    assert back == models / "x" / "x.gguf"


def test_after_a_restart_the_bin_is_still_known(models: Path) -> None:
    for name in ("a", "b"):
        move_to_bin(ours(put(models / f"{name}.gguf", model(name=name)), models))
    put(models / BIN / "junk" / "origin.json", b"{")
    kept = in_bin(models)
    assert [b.name for b in kept] == ["a", "b"]
    size = inspect(restore(kept[0])).size
    assert size == kept[0].size


def test_discard_frees_the_space(models: Path) -> None:
    binned = move_to_bin(ours(put(models / "x.gguf", model()), models))
    discard(binned)
    assert everything(models) == [] and not (models / BIN).exists()
    with pytest.raises(EngineError, match="could not be brought back"):
        restore(binned)
    with pytest.raises(BadRequest):
        discard(replace(binned, slot=models))
    assert models.is_dir()


def test_files_of_other_programs_are_not_removed(tmp_path: Path, models: Path) -> None:
    path = put(tmp_path / "x.gguf", model())
    for source in ("Ollama", "Elsewhere"):
        with pytest.raises(BadRequest, match="not removed here"):
            move_to_bin(replace(inspect(path), source=source, root=tmp_path))
    with pytest.raises(BadRequest):
        move_to_bin(ours(path, models))
    assert path.is_file()


def test_a_file_that_cannot_move_leaves_the_set_as_it_was(
    models: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CASES / "h12_split", models / "s")
    before = everything(models)

    def stuck(source: Path, target: Path) -> None:
        if "00003-of" in source.name:
            raise PermissionError(13, "in use")
        rename_new(source, target)

    monkeypatch.setattr(copies, "rename_new", stuck)
    with pytest.raises(EngineError, match="in use"):
        move_to_bin(ours(models / "s" / "tiny-q8-00001-of-00003.gguf", models))
    assert everything(models) == before


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_is_moved_and_not_what_it_points_to(tmp_path: Path, models: Path) -> None:
    real = put(tmp_path / "big-disk" / "x.gguf", model())
    models.mkdir(parents=True)
    (models / "x.gguf").symlink_to(real)
    binned = move_to_bin(ours(models / "x.gguf", models))
    assert (binned.slot / "x.gguf").is_symlink() and real.is_file()
    discard(binned)
    assert real.is_file()


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_models_folder_behind_a_link(tmp_path: Path) -> None:
    path = put(tmp_path / "real" / "x.gguf", model())
    (tmp_path / "models").symlink_to(tmp_path / "real")
    entry = replace(
        inspect(tmp_path / "models" / "x.gguf"), source="Lucebox", root=tmp_path / "real"
    )
    assert restore(move_to_bin(entry)) == path


# Files


def test_no_rename_over_another_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = put(tmp_path / "a", b"a"), put(tmp_path / "b", b"b")
    with pytest.raises(FileExistsError):
        rename_new(a, b)

    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(files.os, "link", unsupported)
    with pytest.raises(FileExistsError):
        rename_new(a, b)
    rename_new(a, tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == b"a" and b.read_bytes() == b"b" and not a.exists()


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "x"
    write_atomically(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old" and everything(tmp_path) == ["deep/x"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_written_link_stays_a_link(tmp_path: Path) -> None:
    real = put(tmp_path / "real" / "x", b"old")
    (tmp_path / "x").symlink_to(real)
    write_atomically(tmp_path / "x", b"new")
    assert (tmp_path / "x").is_symlink() and real.read_bytes() == b"new"
