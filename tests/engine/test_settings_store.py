"""Settings survive damage, other versions and places that cannot be written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import files, paths
from engine.config import AppSettings
from engine.errors import EngineError
from engine.settings_store import load, save


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "Ünïcödé 模型" / "settings.json"
    monkeypatch.setattr(paths, "settings_file", lambda: path)
    return path


def put(path: Path, content: bytes | dict[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())


def test_the_first_start_has_defaults_and_no_complaint(file: Path) -> None:
    assert load() == (AppSettings(), None) and not file.exists()


def test_everything_comes_back(file: Path) -> None:
    settings = AppSettings(
        models_dir="/data/模型 テスト", extra_model_dirs=["/a b ", "🦙"], theme="dark", language="ko",
        text_size=150, expert=True, load_last_model=False, last_model="x.gguf",
        system_prompt="Sei\n\"höflich\"", sampling={"x.gguf": {"temperature": 0.2, "top_k": 5}},
    )  # fmt: skip
    save(settings)
    assert load() == (settings, None)


def test_paths_that_are_not_utf8_come_back(file: Path) -> None:
    settings = AppSettings(last_model="/m/\udcff.gguf")
    save(settings)
    assert load() == (settings, None)


def test_keys_of_other_versions_stay(file: Path) -> None:
    put(file, {"of_the_future": {"a": [1]}, "theme": "dark"})
    save(AppSettings(theme="light"))
    content = json.loads(file.read_text(encoding="utf-8"))
    assert content["of_the_future"] == {"a": [1]} and content["theme"] == "light"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe\x00", b"[" * 100_000,
        b'{"text_size": 1' + b"0" * 5000 + b"}",
    ],
)  # fmt: skip
def test_a_damaged_file_is_reported_and_kept(file: Path, content: bytes) -> None:
    put(file, content)
    settings, problem = load()
    assert settings == AppSettings() and problem and "damaged" in problem
    assert file.read_bytes() == content
    save(AppSettings(theme="dark"))
    assert load() == (AppSettings(theme="dark"), None)
    assert file.with_name("settings.json.bad").read_bytes() == content


def test_a_second_damaged_file_does_not_replace_the_first(file: Path) -> None:
    for content in (b"one", b"two"):
        put(file, content)
        save(AppSettings())
    assert file.with_name("settings.json.bad").read_bytes() == b"one"
    assert file.with_name("settings.json.bad2").read_bytes() == b"two"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("theme", "purple"), ("theme", 3), ("theme", None), ("text_size", 5000), ("text_size", "big"),
        ("text_size", True), ("text_size", float("nan")), ("expert", "yes"), ("expert", 1),
        ("extra_model_dirs", "x"), ("extra_model_dirs", [1]), ("models_dir", 5),
        ("sampling", []), ("sampling", {"m": 3}), ("system_prompt", ["x"]),
    ],
)  # fmt: skip
def test_one_bad_value_costs_only_itself(file: Path, name: str, value: object) -> None:
    sound = {"language": "ko", "last_model": "m.gguf"}
    put(file, {**sound, name: value})
    settings, problem = load()
    assert settings == AppSettings(**sound)
    assert problem and "replaced" in problem
    before = file.read_bytes()
    save(settings)
    assert load() == (settings, None)
    assert file.with_name("settings.json.bad").read_bytes() == before


@pytest.mark.parametrize(
    "bad", [{"temperature": 99}, {"temperature": "hot"}, {"top_k": True}, {"top_p": None}]
)
def test_bad_sampling_of_one_model_spares_the_others(file: Path, bad: dict[str, object]) -> None:
    put(file, {"sampling": {"a": {"temperature": 0.5}, "b": bad, "c": {"of_the_future": 1}}})
    settings, problem = load()
    assert settings.sampling == {"a": {"temperature": 0.5}, "c": {"of_the_future": 1}}
    assert problem and "Sampling of b" in problem


def test_a_folder_that_cannot_be_written(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(file, {"theme": "dark"})

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")  # a mode does not stop an administrator

    monkeypatch.setattr(files.tempfile, "mkstemp", refuse)
    with pytest.raises(EngineError, match=r"cannot be saved.*Permission denied"):
        save(AppSettings())
    assert load()[0].theme == "dark"


def test_places_that_are_no_files(file: Path) -> None:
    file.mkdir(parents=True)
    settings, problem = load()
    assert settings == AppSettings() and problem and "cannot be read" in problem
    with pytest.raises(EngineError, match="cannot be saved"):
        save(settings)


def test_what_json_cannot_hold_is_refused_and_the_old_file_stays(file: Path) -> None:
    save(AppSettings(theme="dark"))
    for value in (float("nan"), object()):
        with pytest.raises(EngineError, match="cannot be saved"):
            save(AppSettings(sampling={"m": {"x": value}}))
    assert load() == (AppSettings(theme="dark"), None)


def test_a_file_edited_on_windows_is_read(file: Path) -> None:
    put(file, b"\xef\xbb\xbf" + b'{"theme": "dark"}\r\n')
    assert load() == (AppSettings(theme="dark"), None)
