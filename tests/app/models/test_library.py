"""Finding models beside the GUI thread."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.models.library import Group, Library
from app.models.opener import opener_of
from app.page import Services
from engine import library as engine_library
from engine.config import EngineConfig
from engine.copies import Binned
from tests.app.models.conftest import PROJECTOR, SOUND, put, scanned
from tests.engine.gguf_writer import model


def names(library: Library) -> dict[str, Group]:
    return {item.entry.path.name: item.group for item in library.items}


def test_files_of_all_folders_are_sorted_into_groups(
    qtbot: QtBot, library: Library, tree: Path
) -> None:
    scanned(qtbot, library)
    assert names(library) == {
        "Alpha-7B-Q4_K_M.gguf": Group.CHAT,
        "Beta.gguf": Group.CHAT,
        "mmproj-vision-f16.gguf": Group.HELPER,
        "dflash.gguf": Group.HELPER,
        "broken.gguf": Group.PROBLEM,
    }
    assert [i.title for i in library.chat_models()] == ["Alpha-7B", "Beta"]
    assert all(i.estimate is not None for i in library.chat_models())


def test_every_depth_is_searched_and_a_loop_does_not_hang(
    qtbot: QtBot, library: Library, models_dir: Path
) -> None:
    for path in ("a.gguf", "d1/b.gguf", "d1/d2/c.gguf", "d1/d2/d3/d4/e.gguf", "UPPER.GGUF"):
        put(models_dir / path, SOUND)
    put(models_dir / "half.gguf.part", b"GGUF")
    put(models_dir / "notes.txt", b"x")
    os.symlink("a.gguf", models_dir / "link.gguf")
    os.symlink("..", models_dir / "d1" / "loop")
    scanned(qtbot, library)
    assert sorted(names(library)) == ["UPPER.GGUF", "a.gguf", "b.gguf", "c.gguf", "e.gguf"]


def test_rows_appear_while_the_scan_runs(
    qtbot: QtBot, library: Library, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, scan = threading.Event(), engine_library.scan

    def slow(settings, on_entry, cancel):  # type: ignore[no-untyped-def]
        scan(settings, on_entry, cancel)
        gate.wait(10)

    monkeypatch.setattr(engine_library, "scan", slow)
    library.refresh()
    qtbot.waitUntil(lambda: len(library.items) == 5)
    assert library.scanning and not library.scanned
    gate.set()
    qtbot.waitUntil(lambda: library.scanned)
    assert not library.scanning


def test_gone_files_leave_and_others_stay_the_same_rows(
    qtbot: QtBot, library: Library, tree: Path
) -> None:
    scanned(qtbot, library)
    changed: list[object] = []
    removed: list[Path] = []
    library.changed.connect(changed.append)
    library.removed.connect(removed.append)
    (tree / "broken.gguf").unlink()
    scanned(qtbot, library)
    assert [p.name for p in removed] == ["broken.gguf"]
    assert changed == [], "a second look reports nothing new"


def test_a_cancelled_scan_keeps_what_it_found(qtbot: QtBot, library: Library, tree: Path) -> None:
    scanned(qtbot, library)
    library.refresh()
    library.cancel_scan()
    assert not library.scanning
    qtbot.wait(50)
    assert len(library.items) == 5


def test_estimates_follow_the_settings_and_the_loaded_model(
    qtbot: QtBot, library: Library, services: Services, tree: Path
) -> None:
    scanned(qtbot, library)
    path = tree / "Alpha-7B-Q4_K_M.gguf"

    def context() -> int:
        found = library.item(path)
        assert found is not None and found.estimate is not None
        return found.estimate.context

    assert context() != 640
    services.settings.keep_engine_config(EngineConfig(max_ctx=640))
    qtbot.waitUntil(lambda: context() == 640)
    before = library.item(path).estimate.available  # type: ignore[union-attr]
    opener = opener_of(services)
    opener.leaving = lambda: 1 << 30  # type: ignore[method-assign]
    library.estimate_anew()
    qtbot.waitUntil(
        lambda: library.item(path).estimate.available == before + (1 << 30)  # type: ignore[union-attr]
    )


def test_a_device_that_is_gone_leaves_estimates(
    qtbot: QtBot, library: Library, services: Services, tree: Path
) -> None:
    services.settings.keep_engine_config(EngineConfig(device="cuda:7"))
    scanned(qtbot, library)
    assert all(i.estimate is not None for i in library.chat_models())


def test_a_scan_that_fails_ends(qtbot: QtBot, library: Library, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    monkeypatch.setattr(engine_library, "scan", fail)
    scanned(qtbot, library)
    assert not library.scanning


def test_a_file_elsewhere_is_remembered_and_can_be_forgotten(
    qtbot: QtBot, library: Library, services: Services, tmp_path: Path
) -> None:
    file = put(tmp_path / "Downloads" / "Gamma.gguf", model("llama", "Gamma"))
    with qtbot.waitSignal(library.changed):
        library.add([engine_library.inspect(file)], lambda: None)
    assert services.settings.value.extra_model_dirs == [str(file)]
    scanned(qtbot, library)
    item = library.item(file)
    assert item is not None and item.entry.source == "Elsewhere"
    assert library.forget(item)
    assert file.exists() and library.item(file) is None
    assert services.settings.value.extra_model_dirs == []


def test_a_file_in_a_known_folder_needs_no_remembering(
    qtbot: QtBot, library: Library, services: Services, tree: Path
) -> None:
    file = tree / "Alpha-7B-Q4_K_M.gguf"
    with qtbot.waitSignal(library.changed):
        library.add([engine_library.inspect(file)], lambda: None)
    assert services.settings.value.extra_model_dirs == []
    item = library.item(file)
    assert item is not None and item.entry.source == "Lucebox"


def test_a_file_that_comes_during_a_scan_stays(
    qtbot: QtBot, library: Library, tree: Path, tmp_path: Path
) -> None:
    file = put(tmp_path / "Gamma.gguf", model("llama", "Gamma"))
    library.refresh()
    library.add([engine_library.inspect(file)], lambda: None)
    qtbot.waitUntil(lambda: library.scanned and library.item(file) is not None)
    assert len(library.items) == 6


def test_the_bin_gives_back(qtbot: QtBot, library: Library, tree: Path) -> None:
    scanned(qtbot, library)
    path = tree / "Alpha-7B-Q4_K_M.gguf"
    item = library.item(path)
    assert item is not None
    binned: list[Binned] = []
    errors: list[Exception] = []
    library.bin(item, binned.append, errors.append)
    qtbot.waitUntil(lambda: bool(binned))
    assert not path.exists() and library.item(path) is None
    library.restore(binned[0], errors.append)
    qtbot.waitUntil(lambda: library.item(path) is not None)
    assert path.exists() and errors == []


def test_models_of_other_programs_are_not_binned(
    qtbot: QtBot, library: Library, tree: Path, home: Path
) -> None:
    scanned(qtbot, library)
    beta = next(i for i in library.items if i.title == "Beta")
    errors: list[Exception] = []
    library.bin(beta, lambda _: None, errors.append)
    qtbot.waitUntil(lambda: bool(errors))
    assert "LM Studio" in str(errors[0]) and beta.entry.path.exists()


def test_a_name_of_the_users_and_back(qtbot: QtBot, library: Library, tree: Path) -> None:
    scanned(qtbot, library)
    path = tree / "Alpha-7B-Q4_K_M.gguf"
    library.rename(path, "  Work horse ")
    assert library.item(path).title == "Work horse"  # type: ignore[union-attr]
    library.rename(path, " ")
    assert library.item(path).title == "Alpha-7B"  # type: ignore[union-attr]


def test_names_with_other_letters(qtbot: QtBot, library: Library, models_dir: Path) -> None:
    folders = ("模型　テスト", "Ünïcödé Љубав/sub dir", "space at end ", "emoji 🦙")
    for folder in folders:
        put(models_dir / folder / "m.gguf", SOUND)
    put(models_dir / "Љубав.gguf", PROJECTOR)
    scanned(qtbot, library)
    found = {str(i.entry.path.parent.relative_to(models_dir)) for i in library.items}
    assert found == {*folders, "."}
