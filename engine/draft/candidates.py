"""What may guess for a model: what comes with Lucebox, its own draft layer, its own text, and files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from engine.draft.config import DraftConfig
from engine.draft.files import is_draft, open_draft
from engine.draft.model import check_vocabulary
from engine.draft.safetensors_file import is_safetensors
from engine.draft.shipped import shipped_draft
from engine.errors import EngineError
from engine.gguf import ModelFile, open_model
from engine.models.base import DenseConfig, model_of


@dataclass(frozen=True, slots=True)
class Candidate:
    """One drafter: `value` is what `EngineConfig.draft` takes for it, `path` its file, `size` in bytes.

    `problem` says why it does not fit the model, "" where it does.
    """

    value: str
    path: Path | None = None
    size: int = 0
    shipped: bool = False
    problem: str = ""


def candidates(target: Path, files: Iterable[Path]) -> tuple[Candidate, ...]:
    """All that may guess for a model, the first one being what is chosen where nobody says otherwise.

    `files` are drafts that are known on this PC; only headers are read. Raises as `open_model` for the model
    itself, and nothing for the drafts.
    """
    with open_model(target) as file:
        found = []
        if (ours := shipped_draft(file)) is not None:
            found.append(_of_file(file, ours, shipped=True))
        if getattr(model_of(file.architecture).read_config(file), "n_nextn", 0):
            found.append(Candidate("mtp"))
        found.append(Candidate("ngram"))
        return (*found, *(_of_file(file, path) for path in files if path not in (ours, target)))


def _of_file(target: ModelFile, path: Path, shipped: bool = False) -> Candidate:
    problem, size = "", 0
    try:
        size = _size(path)
        _check(target, path)
    except EngineError as error:
        problem = str(error)
    except OSError as error:
        problem = f"{path.name} cannot be read: {error.strerror or error}."
    return Candidate(str(path), path, size, shipped, problem)


def _size(path: Path) -> int:
    files = path.glob("*.safetensors") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files)


def _check(target: ModelFile, path: Path) -> None:
    """Raise `UnsupportedModel` or `ModelFileError` for a draft that does not fit."""
    if not is_safetensors(path):
        with open_model(path) as file:
            if not is_draft(file.architecture):
                check_vocabulary(target, file)
                return
    fitted_to(target, open_draft(path).config)


def fitted_to(target: ModelFile, draft: DraftConfig) -> DraftConfig:
    """A DFlash draft's configuration for a target that is not loaded; raises as `DraftConfig.fitted`."""
    cfg = model_of(target.architecture).read_config(target)
    dense = cfg if isinstance(cfg, DenseConfig) else cfg.dense
    return draft.fitted(cfg.shape, dense.rope.base, target.name)
