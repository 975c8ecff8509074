"""What files are, where they are found, and what is done with dropped ones."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import threading
from pathlib import Path

import pytest

from engine import library, paths
from engine.config import AppSettings
from engine.entry import Entry, inspect, refuse_unless_chat_model
from engine.errors import UnsupportedModel
from engine.gguf import read_header
from engine.library import Dropped, pair, scan, sort_dropped
from engine.stores import folders, ollama_models
from tests.engine.gguf_writer import STRING, U32, gguf, model
from tests.engine.gguf_writer import pair as key

CASES = Path(__file__).parents[1] / "fixtures" / "gguf"
SOUND = CASES / "h01_valid_v3_align64.gguf"
PROJECTOR = CASES / "h13_looks_like_chat_model-f16.gguf"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without models of any program."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setattr(Path, "home", lambda: folder)
    for name in ("HF_HOME", "HF_HUB_CACHE", "OLLAMA_MODELS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / ".cache"))
    return folder


def put(path: Path, data: bytes | Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.read_bytes() if isinstance(data, Path) else data)
    return path


def found(settings: AppSettings) -> dict[str, Entry]:
    """The last report of each path, by file name; no name is used twice in these tests."""
    entries: dict[str, Entry] = {}
    scan(settings, lambda entry: entries.__setitem__(entry.path.name, entry))
    return entries


def only(root: Path, **extra: list[str]) -> AppSettings:
    return AppSettings(models_dir=str(root), **extra)  # type: ignore[arg-type]


# What a file is


def test_a_chat_model(fixtures: Path) -> None:
    entry = inspect(fixtures / "llama.gguf")
    assert (entry.kind, entry.problem, entry.name) == ("chat", "", "Llama")
    assert (entry.architecture, entry.quant, entry.context) == ("llama", "F16", 2048)
    assert entry.n_layers == 4 and entry.n_experts == 0 and entry.n_params > 1_000_000
    assert entry.size == (fixtures / "llama.gguf").stat().st_size
    assert entry.files == (entry.path,) and entry.footprint is not None


@pytest.mark.parametrize(
    "arch",
    [
        "dflash", "dflash-draft", "qwen35-dflash-draft", "gemma4-dflash-draft",
        "deepseek4-dflash-draft", "eagle3", "gemma4-assistant",
    ],
)  # fmt: skip
def test_drafts_are_recognised_and_not_run(tmp_path: Path, arch: str) -> None:
    path = put(tmp_path / "m.gguf", model(arch))
    assert inspect(path).kind == "draft" and not inspect(path).problem
    with pytest.raises(UnsupportedModel, match="draft"):
        refuse_unless_chat_model(read_header(path))


@pytest.mark.parametrize(
    ("arch", "word"),
    [("bert", "embedding"), ("flux", "image"), ("whisper", "audio"), ("", "architecture")],
)
def test_other_kinds_say_what_they_are(tmp_path: Path, arch: str, word: str) -> None:
    path = put(tmp_path / "m.gguf", model(arch))
    entry = inspect(path)
    assert entry.kind == "unknown" and word in entry.problem
    with pytest.raises(UnsupportedModel, match=word):
        refuse_unless_chat_model(read_header(path))


@pytest.mark.parametrize("type_", ["adapter", "imatrix", "mmproj"])
def test_the_type_of_a_file_counts(tmp_path: Path, type_: str) -> None:
    path = put(tmp_path / "m.gguf", model("llama", more=[key("general.type", STRING, type_)]))
    assert inspect(path).kind == ("projector" if type_ == "mmproj" else "unknown")


def test_a_projector_by_its_content_and_not_by_its_name() -> None:
    assert inspect(PROJECTOR).kind == "projector"
    with pytest.raises(UnsupportedModel, match="vision projector"):
        refuse_unless_chat_model(read_header(PROJECTOR))


def test_a_vocabulary_alone_is_no_model(tmp_path: Path) -> None:
    path = put(tmp_path / "v.gguf", gguf([key("general.architecture", STRING, "llama")]))
    assert inspect(path).kind == "unknown" and "no weights" in inspect(path).problem


def test_an_architecture_without_a_model_file(tmp_path: Path) -> None:
    entry = inspect(put(tmp_path / "m.gguf", model("mamba9")))
    assert (entry.kind, entry.problem) == ("chat", "This version cannot run mamba9 yet.")


@pytest.mark.parametrize("case", sorted(CASES.glob("h*.gguf")), ids=lambda p: p.name)
def test_damaged_files_never_raise(case: Path) -> None:
    entry = inspect(case)
    sound = case in (SOUND, PROJECTOR)
    assert (entry.kind in ("chat", "projector")) == sound
    assert bool(entry.problem) != sound and entry.size == case.stat().st_size


def test_a_type_of_the_future_is_not_called_damage() -> None:
    entry = inspect(CASES / "h07_unknown_type_105.gguf")
    assert entry.kind == "unknown" and "105" in entry.problem


def test_what_is_not_there() -> None:
    assert inspect(Path("none.gguf")).kind == "broken"
    assert inspect(Path("/")).kind == "broken"


# Scanning


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


# Other programs


def link(path: Path, target: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    os.symlink(os.path.relpath(target, path.parent), path)
    return path


def test_hugging_face_snapshots_point_to_blobs(home: Path) -> None:
    repo = home / ".cache" / "huggingface" / "hub" / "models--org--name"
    blob = put(repo / "blobs" / "abc", SOUND)
    put(repo / "blobs" / "def.incomplete", b"GGUF")
    first = link(repo / "snapshots" / "1" / "x.gguf", blob)
    link(repo / "snapshots" / "2" / "x.gguf", blob)
    link(repo / "snapshots" / "2" / "gone.gguf", repo / "blobs" / "none")
    reports: list[Entry] = []
    scan(AppSettings(), reports.append)
    assert [(e.path, e.source) for e in reports] == [(first, "Hugging Face")]


def test_a_split_set_in_the_hugging_face_cache(home: Path) -> None:
    repo = home / ".cache" / "huggingface" / "hub" / "models--org--name"
    for i, part in enumerate(sorted((CASES / "h12_split").iterdir())):
        link(repo / "snapshots" / "1" / part.name, put(repo / "blobs" / str(i), part))
    (entry,) = found(AppSettings()).values()
    assert entry.kind == "chat" and len(entry.files) == 3 and entry.n_params == 12


def test_moved_caches_of_other_programs(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("hub", "ollama", "studio/models"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "ollama"))
    put(home / ".lmstudio-home-pointer", f"{tmp_path / 'studio'}\n".encode())
    known = folders(AppSettings())
    assert ("Hugging Face", tmp_path / "hub") in known
    assert ("Ollama", tmp_path / "ollama") in known
    assert ("LM Studio", tmp_path / "studio" / "models") in known


def test_lm_studio_old_and_new(home: Path) -> None:
    put(home / ".lmstudio" / "models" / "org" / "repo" / "new.gguf", SOUND)
    put(home / ".cache" / "lm-studio" / "models" / "org" / "repo" / "old.gguf", SOUND)
    entries = found(AppSettings())
    assert set(entries) == {"new.gguf", "old.gguf"}
    assert {e.source for e in entries.values()} == {"LM Studio"}


def ollama(home: Path, name: str, *layers: tuple[str, bytes]) -> list[Path]:
    """A model as `ollama pull` leaves it; the blobs' paths."""
    root = home / ".ollama" / "models"
    listed, blobs = [], []
    for kind, data in layers:
        digest = hashlib.sha256(data).hexdigest()
        blobs.append(put(root / "blobs" / f"sha256-{digest}", data))
        media = f"application/vnd.ollama.image.{kind}"
        listed.append({"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)})
    put(root / "manifests" / name, json.dumps({"schemaVersion": 2, "layers": listed}).encode())
    return blobs


def test_ollama_models_by_their_tags(home: Path) -> None:
    weights, projector, _ = ollama(
        home, "registry.ollama.ai/library/qwen3/4b",
        ("model", model(name="a")), ("projector", PROJECTOR.read_bytes()), ("license", b"MIT"),
    )  # fmt: skip
    ollama(home, "registry.ollama.ai/me/mine/latest", ("model", model(name="b")))
    ollama(home, "hf.co/org/repo/Q4_K_M", ("model", model(name="c")))
    entries = {e.name: e for e in found(AppSettings()).values()}
    assert {"qwen3:4b", "me/mine:latest", "hf.co/org/repo:Q4_K_M"} <= set(entries)
    assert entries["qwen3:4b"].path in (weights, projector)
    whole = [e for e in found(AppSettings()).values() if e.path == weights]
    assert whole[0].companions == (projector,) and whole[0].source == "Ollama"


def test_two_tags_of_one_blob_are_one_row(home: Path) -> None:
    for tag in ("4b", "latest"):
        ollama(home, f"registry.ollama.ai/library/qwen3/{tag}", ("model", model()))
    assert [e.name for e in found(AppSettings()).values()] == ["qwen3:4b"]


def test_ollama_manifests_that_are_no_use(home: Path) -> None:
    root = home / ".ollama" / "models" / "manifests" / "h" / "n"
    secret = put(home / "secret.gguf", SOUND)
    evil = f"sha256:../../../../{secret.name}"
    model_layer = {"mediaType": "application/vnd.ollama.image.model", "digest": evil}
    put(root / "m" / "escape", json.dumps({"layers": [model_layer]}).encode())
    put(root / "m" / "json", b"{")
    put(root / "m" / "list", b"[]")
    put(root / "m" / "null", b'{"layers": [null]}')
    put(root / "m" / "deep", b"[" * 100_000)
    put(root / "m" / "large", b" " * (2 << 20))
    (blob,) = ollama(home, "registry.ollama.ai/library/pulling/1b", ("model", model()))
    blob.rename(blob.with_name(blob.name + "-partial"))
    assert list(ollama_models(home / ".ollama" / "models")) == []
    assert found(AppSettings()) == {}


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


def test_experts_are_counted(tmp_path: Path) -> None:
    more = [key("llama.expert_count", U32, 8), key("llama.block_count", U32, 2)]
    path = put(tmp_path / "m.gguf", model(more=more))
    assert (inspect(path).n_experts, inspect(path).n_layers) == (8, 2)


def test_numbers_of_the_wrong_type_are_left_out(tmp_path: Path) -> None:
    more = [key("llama.context_length", STRING, "many"), key("general.name", U32, 3)]
    entry = inspect(put(tmp_path / "m.gguf", model(more=more)))
    assert (entry.context, entry.name, entry.kind) == (0, "m", "chat")


def test_the_report_of_a_drop_is_not_changed_by_the_order(tmp_path: Path) -> None:
    a = put(tmp_path / "mmproj-a.gguf", PROJECTOR)
    b = put(tmp_path / "a-Q4_0.gguf", SOUND)
    for order in ([a, b], [b, a]):
        assert sort_dropped(order).models[0].companions == (a,)
