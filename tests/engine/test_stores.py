"""Models of other programs, in the folders where those keep them."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from engine.config import AppSettings
from engine.entry import Entry
from engine.library import scan
from engine.stores import folders, ollama_models
from tests.engine.gguf_writer import model
from tests.engine.model_folders import CASES, PROJECTOR, SOUND, found, home, put

pytestmark = pytest.mark.usefixtures("home")
__all__ = ["home"]  # a fixture


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
