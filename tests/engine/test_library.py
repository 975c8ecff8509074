"""Where models are found, and what is done with dropped ones."""

from __future__ import annotations

import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from engine import library, paths
from engine.entry import Entry, inspect
from engine.library import Dropped, pair, scan, sort_dropped
from tests.engine.gguf_writer import model
from tests.engine.model_folders import CASES, PROJECTOR, SOUND, found, home, only, put

pytestmark = pytest.mark.usefixtures("home")
__all__ = ["home"]  # a fixture


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The folders of the public bug report H-GUI-06."""
    root = tmp_path / "scan"
    for name in ("a.gguf", "d1/b.gguf", "d1/d2/c.gguf", "d1/d2/d3/d4/e.gguf", "UPPER.GGUF"):
        put(root / name, SOUND)
    put(root / "half.gguf.part", b"GGUF")
    put(root / "notes.txt", b"x")
    return root


def test_every_depth_and_nothing_twice(tree: Path) -> None:
    os.symlink("a.gguf", tree / "0-link.gguf")
    os.symlink("..", tree / "d1" / "loop")
    os.symlink(tree, tree / "d1" / "d2" / "again")
    reports: list[Entry] = []
    scan(only(tree), reports.append)
    names = [entry.path.name for entry in reports]
    assert sorted(names) == ["UPPER.GGUF", "a.gguf", "b.gguf", "c.gguf", "e.gguf"]
    assert {entry.source for entry in reports} == {"Lucebox"}
    assert {entry.root for entry in reports} == {tree}


def test_links_upwards_are_not_followed(tree: Path) -> None:
    put(tree.parent / "private" / "x.gguf", SOUND)
    for name, target in (("up", tree.parent), ("all", Path(tree.anchor)), ("side", tree / "d1")):
        os.symlink(target, tree / name)
    assert len(found(only(tree / "d1" / "d2"))) == 2
    assert "x.gguf" not in found(only(tree))


def test_hard_links_and_links_in_other_folders_are_shown_once(tree: Path, tmp_path: Path) -> None:
    os.link(tree / "a.gguf", tree / "copy.gguf")
    other = tmp_path / "other"
    other.mkdir()
    os.symlink(tree / "d1" / "b.gguf", other / "b.gguf")
    os.symlink(tree / "d1", other / "d1")
    reports: list[Entry] = []
    scan(only(tree, extra_model_dirs=[str(other), str(tree)]), reports.append)
    assert len(reports) == 5


def test_names_with_other_letters(tmp_path: Path) -> None:
    names = ["模型　テスト", "Ünïcödé Љубав/sub dir", "space at end ", "emoji 🦙"]
    for i, name in enumerate(names):
        put(tmp_path / "names" / name / f"{name[:4]}{i}.gguf", SOUND)
    entries = found(only(tmp_path / "names"))
    assert len(entries) == 4 and all(e.kind == "chat" for e in entries.values())
    assert {
        e.path.parent.relative_to(tmp_path / "names").as_posix() for e in entries.values()
    } == set(names)


def test_files_of_a_mac_and_of_unfinished_work_are_passed_over(tmp_path: Path) -> None:
    put(tmp_path / "m" / "._x.gguf", b"\0\5\x16\7")
    put(tmp_path / "m" / ".copy-1.part" / "y.gguf", SOUND)
    put(tmp_path / "m" / library.BIN / "1" / "z.gguf", SOUND)
    assert found(only(tmp_path / "m")) == {}


def test_a_split_set_is_one_row(tmp_path: Path) -> None:
    shutil.copytree(CASES / "h12_split", tmp_path / "m")
    entries = list(found(only(tmp_path / "m")).values())
    assert len(entries) == 1
    assert [f.name[8:13] for f in entries[0].files] == ["00001", "00002", "00003"]
    assert entries[0].size == sum(p.stat().st_size for p in (tmp_path / "m").iterdir())


def test_a_set_with_a_missing_part_is_one_row_that_says_so(tmp_path: Path) -> None:
    shutil.copytree(CASES / "h12_split", tmp_path / "m")
    (tmp_path / "m" / "tiny-q8-00001-of-00003.gguf").unlink()
    entries = list(found(only(tmp_path / "m")).values())
    assert len(entries) == 1 and entries[0].kind == "broken" and len(entries[0].files) == 2
    assert "tiny-q8-00001-of-00003.gguf" in entries[0].problem and entries[0].name == "tiny-q8"


def test_single_files_among_the_folders(tmp_path: Path) -> None:
    path = put(tmp_path / "downloads" / "x.gguf", SOUND)
    put(tmp_path / "downloads" / "other.gguf", PROJECTOR)
    entries = found(only(tmp_path / "none", extra_model_dirs=[str(path), "/no/such", "a\0b"]))
    assert list(entries) == ["x.gguf"] and entries["x.gguf"].source == "Elsewhere"


def test_cancel_stops_the_scan(tree: Path) -> None:
    stop, reports = threading.Event(), []

    def on_entry(entry: Entry) -> None:
        reports.append(entry)
        stop.set()

    scan(only(tree), on_entry, stop)
    assert len(reports) == 1


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose headers are read."""
    names: list[str] = []

    def noted(path: Path) -> Entry:
        names.append(Path(path).name)
        return inspect(path)

    monkeypatch.setattr(library, "inspect", noted)
    return names


def test_only_new_and_changed_files_are_read_again(tree: Path, reads: list[str]) -> None:
    first = found(only(tree))
    assert len(reads) == 5
    reads.clear()
    assert found(only(tree)) == first and reads == []
    put(tree / "a.gguf", model("qwen3", name="Changed"))
    put(tree / "new.gguf", SOUND)
    second = found(only(tree))
    assert sorted(reads) == ["a.gguf", "new.gguf"] and second["a.gguf"].name == "Changed"


def test_damaged_files_are_read_each_time(tmp_path: Path, reads: list[str]) -> None:
    put(tmp_path / "m" / "x.gguf", b"GGUF")
    for _ in range(2):
        assert found(only(tmp_path / "m"))["x.gguf"].kind == "broken"
    assert reads == ["x.gguf"] * 2


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[1]", b'{"version": 1}', b'{"version": 1, "files": 5}', b"\xff\xfe",
        b'{"version": 99, "files": {}}',
    ],
)  # fmt: skip
def test_a_damaged_cache_is_made_again(tree: Path, reads: list[str], content: bytes) -> None:
    put(paths.cache_dir() / "library.json", content)
    assert len(found(only(tree))) == 5 and len(reads) == 5
    found(only(tree))
    assert len(reads) == 5


def test_wrong_facts_in_the_cache_are_not_believed(tree: Path, reads: list[str]) -> None:
    first = found(only(tree))
    file = paths.cache_dir() / "library.json"
    content = json.loads(file.read_text())
    for i, known in enumerate(content["files"].values()):
        known["facts"] = [{}, None, {"kind": 1}, {**known["facts"], "footprint": None}, "x"][i]
    file.write_text(json.dumps(content))
    reads.clear()
    assert found(only(tree)) == first and len(reads) == 5


def test_gone_files_leave_the_cache_but_not_when_cancelled(tree: Path) -> None:
    found(only(tree))
    file = paths.cache_dir() / "library.json"
    stop = threading.Event()
    scan(only(tree), lambda entry: stop.set(), stop)
    assert len(json.loads(file.read_text())["files"]) == 5
    shutil.rmtree(tree / "d1")
    found(only(tree))
    assert len(json.loads(file.read_text())["files"]) == 2


def test_a_cache_that_cannot_be_written_harms_nothing(tree: Path) -> None:
    put(paths.cache_dir(), b"a file where a folder should be")
    assert len(found(only(tree))) == 5


# Helpers and drops


def test_a_projector_in_a_model_s_folder_goes_with_it(tmp_path: Path) -> None:
    put(tmp_path / "m" / "vision-7b" / "vision-7b-Q4_K_M.gguf", SOUND)
    put(tmp_path / "m" / "vision-7b" / "mmproj-model-f16.gguf", PROJECTOR)
    put(tmp_path / "m" / "flat" / "other.gguf", model())
    entries = found(only(tmp_path / "m"))
    own = entries["vision-7b-Q4_K_M.gguf"].companions
    assert [c.name for c in own] == ["mmproj-model-f16.gguf"]
    assert entries["other.gguf"].companions == ()


def entry(name: str, kind: str = "chat") -> Entry:
    return Entry(Path(name), (Path(name),), name, kind)


@pytest.mark.parametrize(
    ("helper", "goes_with"),
    [
        ("mmproj-gemma-4-12b-f16.gguf", ["gemma-4-12b-it-Q4_K_M.gguf", "gemma-4-12b-it-Q8_0.gguf"]),
        ("gemma-4-31b-mmproj.gguf", ["gemma-4-31b-it-IQ4_XS.gguf"]),
        ("mmproj-F16.gguf", []),
        ("gemma-mmproj.gguf", [
            "gemma-4-12b-it-Q4_K_M.gguf", "gemma-4-12b-it-Q8_0.gguf", "gemma-4-31b-it-IQ4_XS.gguf",
        ]),
        ("mmproj-llava.gguf", []),
    ],
)  # fmt: skip
def test_names_decide_in_a_folder_of_many(helper: str, goes_with: list[str]) -> None:
    names = ("gemma-4-12b-it-Q4_K_M", "gemma-4-12b-it-Q8_0", "gemma-4-31b-it-IQ4_XS", "qwen3-8b")
    chats = [entry(f"{name}.gguf") for name in names]
    paired = pair([*chats, entry(helper, "projector")])
    assert [e.path.name for e in paired if e.companions] == goes_with


def test_an_unlike_name_goes_with_the_only_model_if_dropped_together() -> None:
    both = [entry("qwen3-8b.gguf"), entry("mmproj-llava.gguf", "projector")]
    assert pair(both)[0].companions == ()
    assert pair(both, together=True)[0].companions == (Path("mmproj-llava.gguf"),)


def reasons(dropped: Dropped) -> dict[str, str]:
    return {path.name: why for path, why in dropped.ignored}


def test_a_mixed_drop(tmp_path: Path) -> None:
    wanted = [
        put(tmp_path / "vision-7b-Q4_K_M.gguf", SOUND),
        put(tmp_path / "mmproj-vision-7b-f16.gguf", PROJECTOR),
        put(tmp_path / "README.md", b"# read me"),
        put(tmp_path / "photo.png", b"\x89PNG\r\n\x1a\n"),
    ]
    dropped = sort_dropped(wanted)
    (chat,) = dropped.models
    assert chat.path == wanted[0] and chat.companions == (wanted[1],)
    assert [e.kind for e in dropped.companions] == ["projector"]
    assert "not a model" in reasons(dropped)["README.md"]
    assert "picture" in reasons(dropped)["photo.png"]


def test_drops_that_are_no_models_say_why(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    wanted = [
        tmp_path / "none.gguf",
        tmp_path / "empty",
        put(tmp_path / "x.gguf.part", b"GGUF"),
        put(tmp_path / "x.safetensors", b"x"),
        put(tmp_path / "bad.gguf", b"<html>"),
        put(tmp_path / "bert.gguf", model("bert")),
    ]
    dropped = sort_dropped(wanted)
    assert dropped.models == () and dropped.companions == ()
    words = {
        "none.gguf": "no such file", "empty": "no .gguf", "x.gguf.part": "not finished",
        "x.safetensors": "GGUF format", "bad.gguf": "web page", "bert.gguf": "embedding",
    }  # fmt: skip
    assert set(reasons(dropped)) == set(words)
    assert all(word in reasons(dropped)[name] for name, word in words.items())


def test_names_that_no_system_takes_are_passed_over(tmp_path: Path) -> None:
    names = [tmp_path / ("x" * 300 + ".gguf"), Path("a\0b.gguf")]
    assert [why for _, why in sort_dropped(names).ignored] == ["There is no such file."] * 2
    settings = only(names[0], extra_model_dirs=[str(name) for name in names])
    assert found(settings) == {} and all(inspect(name).kind == "broken" for name in names)


def test_a_dropped_folder_is_searched_and_a_set_is_one_model(tmp_path: Path) -> None:
    root = tmp_path / "d"
    shutil.copytree(CASES / "h12_split", root / "deep" / "er")
    put(root / "notes.txt", b"")
    dropped = sort_dropped([root])
    assert len(dropped.models) == 1 and dropped.ignored == ()
    parts = sorted((root / "deep" / "er").iterdir())
    assert len(sort_dropped(parts).models) == 1
    assert sort_dropped([parts[2]]).models[0].path == parts[0]


def test_the_same_file_twice_is_one_model(tmp_path: Path) -> None:
    path = put(tmp_path / "x.gguf", SOUND)
    assert len(sort_dropped([path, path, tmp_path]).models) == 1


def test_a_blob_without_ending_is_known_by_its_bytes(tmp_path: Path) -> None:
    path = put(tmp_path / "sha256-abc", model(name="Blob"))
    assert sort_dropped([path]).models[0].name == "Blob"


def test_the_report_of_a_drop_is_not_changed_by_the_order(tmp_path: Path) -> None:
    a = put(tmp_path / "mmproj-a.gguf", PROJECTOR)
    b = put(tmp_path / "a-Q4_0.gguf", SOUND)
    for order in ([a, b], [b, a]):
        assert sort_dropped(order).models[0].companions == (a,)
