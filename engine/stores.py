"""Where other programs keep their models: Hugging Face, LM Studio and Ollama. Read, never changed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine import paths
from engine.config import AppSettings
from engine.entry import ELSEWHERE, LUCEBOX

HUGGING_FACE, LM_STUDIO, OLLAMA = "Hugging Face", "LM Studio", "Ollama"

_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_MODEL = "application/vnd.ollama.image.model"
_PROJECTOR = "application/vnd.ollama.image.projector"
_MOST_MANIFEST = 1 << 20
_OLLAMA_SERVICE = ("/usr/share/ollama/.ollama/models", "/var/lib/ollama/models")


def folders(settings: AppSettings) -> list[tuple[str, Path]]:
    """(source, folder) of every place to look in that exists; our own first, each folder once."""
    home = Path.home()
    wanted = [(LUCEBOX, paths.models_dir(settings.models_dir))]
    wanted += [(LM_STUDIO, folder) for folder in _lm_studio(home)]
    wanted += [(HUGGING_FACE, _theirs("HF_HUB_CACHE") or _hugging_face(home) / "hub")]
    wanted += [(OLLAMA, folder) for folder in _ollama(home)]
    wanted += [(ELSEWHERE, Path(folder)) for folder in settings.extra_model_dirs]
    found: list[tuple[str, Path]] = []
    seen: set[tuple[int, int]] = set()
    for source, folder in wanted:
        try:
            status = folder.stat()
            usable = folder.is_dir()
        except (OSError, ValueError):
            continue
        if usable and (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            found.append((source, folder))
    return found


def _theirs(variable: str) -> Path | None:
    """A folder that the user gave another program by its own environment variable."""
    value = os.environ.get(variable)
    return Path(value).expanduser() if value else None


def _hugging_face(home: Path) -> Path:
    return _theirs("HF_HOME") or (_theirs("XDG_CACHE_HOME") or home / ".cache") / "huggingface"


def _lm_studio(home: Path) -> Iterator[Path]:
    """Its models folders, old and new; a pointer file names a home that was moved."""
    try:
        moved = (home / ".lmstudio-home-pointer").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        moved = ""
    if moved:
        yield Path(moved) / "models"
    yield home / ".lmstudio" / "models"
    yield home / ".cache" / "lm-studio" / "models"


def _ollama(home: Path) -> Iterator[Path]:
    """Its models folders: the user's, and those of the service that its Linux installer sets up."""
    chosen = _theirs("OLLAMA_MODELS")
    if chosen:
        yield chosen
    yield home / ".ollama" / "models"
    yield from map(Path, _OLLAMA_SERVICE)


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """One tag of an Ollama folder: its name as `ollama list` shows it, weights and projectors."""

    name: str
    weights: Path
    projectors: tuple[Path, ...]


def ollama_models(folder: Path) -> Iterator[OllamaModel]:
    """The models of an Ollama folder whose files are all there; unfinished ones are passed over."""
    manifests = folder / "manifests"
    for parent, dirs, files in os.walk(manifests):
        dirs.sort()
        for file in sorted(files):
            path = Path(parent, file)
            layers = _layers(path)
            weights = [
                b for kind, digest in layers if kind == _MODEL and (b := _blob(folder, digest))
            ]
            extra = [digest for kind, digest in layers if kind == _PROJECTOR]
            if len(weights) != 1:
                continue
            projectors = tuple(b for digest in extra if (b := _blob(folder, digest)))
            yield OllamaModel(_ollama_name(path.relative_to(manifests)), weights[0], projectors)


def _layers(manifest: Path) -> list[tuple[str, str]]:
    """(media type, digest) of a manifest's layers; empty for one that is damaged or of another kind."""
    try:
        if manifest.stat().st_size > _MOST_MANIFEST:
            return []
        content: Any = json.loads(manifest.read_text(encoding="utf-8"))
        return [(str(layer["mediaType"]), str(layer["digest"])) for layer in content["layers"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return []


def _blob(folder: Path, digest: str) -> Path | None:
    """The file of a digest, or None if it is not there; nothing but a SHA-256 becomes a path."""
    match = _DIGEST.fullmatch(digest)
    if not match:
        return None
    path = folder / "blobs" / f"sha256-{match[1]}"
    return path if os.path.isfile(path) else None


def _ollama_name(manifest: Path) -> str:
    """`registry.ollama.ai/library/qwen3/4b` -> "qwen3:4b"; other hosts and owners stay in the name."""
    *front, tag = manifest.parts
    if front[:1] == ["registry.ollama.ai"]:
        front = front[1:]
        if front[:1] == ["library"]:
            front = front[1:]
    return f"{'/'.join(front)}:{tag}"
