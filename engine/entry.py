"""What one file on this PC is: a chat model, a helper of one, something else, or damaged."""

from __future__ import annotations

import contextlib
import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from engine.errors import EngineError, UnsupportedModel
from engine.footprint import Footprint
from engine.gguf import HeaderSummary, part_of, read_header
from engine.models.base import is_known

LUCEBOX, ELSEWHERE = "Lucebox", "Elsewhere"
CHAT, PROJECTOR, DRAFT, UNKNOWN, BROKEN = "chat", "projector", "draft", "unknown", "broken"

_DRAFTS = frozenset({"dflash", "dspark", "eagle", "eagle3", "medusa"})
_DRAFT_ENDINGS = ("-draft", "-assistant", "_assistant")
_PROJECTORS = frozenset({"clip", "mmproj"})
_NOT_CHAT = {
    "an embedding model": (
        "bert", "nomic-bert", "nomic-bert-moe", "jina-bert-v2", "jina-bert-v3", "modern-bert",
        "neo-bert", "eurobert", "gemma-embedding", "t5encoder",
    ),
    "an image or video generator": (
        "flux", "sd1", "sdxl", "sd3", "aura", "ltxv", "hyvid", "wan", "hidream", "cosmos", "lumina2",
        "qwen_image", "z_image", "pig",
    ),
    "an audio model": ("whisper", "wavtokenizer-dec", "outetts", "snac"),
}  # fmt: skip
_TYPES = {
    "adapter": "This is an adapter (LoRA), which changes another model and cannot run by itself.",
    "imatrix": "These are statistics for making quantised models, not a model.",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One model on this PC; a split set is one entry.

    `files` are its parts, `path` the first; `kind` is "chat", "projector", "draft", "unknown" or
    "broken"; `problem` says why it cannot be used, "" if it can; `size` in bytes; `context` tokens; 0 and
    "" where the file does not say. `root` is the folder of `source` in which it was found; `companions`
    are projectors and drafts that seem to belong to it.
    """

    path: Path
    files: tuple[Path, ...]
    name: str
    kind: str
    problem: str = ""
    size: int = 0
    architecture: str = ""
    quant: str = ""
    context: int = 0
    n_params: int = 0
    n_layers: int = 0
    n_experts: int = 0
    source: str = ELSEWHERE
    root: Path = Path()
    companions: tuple[Path, ...] = ()
    footprint: Footprint | None = None

    def facts(self) -> dict[str, Any]:
        """What the file itself says, as JSON; where it lies is left out."""
        facts = {name: getattr(self, name) for name in _FACTS}
        facts["footprint"] = dataclasses.asdict(self.footprint) if self.footprint else None
        return facts


_FACTS = (
    "name", "kind", "size", "architecture", "quant", "context", "n_params", "n_layers", "n_experts",
)  # fmt: skip


def from_facts(path: Path, files: tuple[Path, ...], facts: dict[str, Any]) -> Entry:
    """The entry of `Entry.facts`; `KeyError`, `TypeError` or `ValueError` for facts of another version."""
    footprint = _footprint(facts["footprint"])
    values = {name: type(getattr(_EMPTY, name))(facts[name]) for name in _FACTS}
    architecture = values["architecture"]
    return Entry(
        path, files, **values, problem=_problem(values["kind"], architecture), root=path.parent,
        footprint=footprint,
    )  # fmt: skip


def _footprint(facts: dict[str, Any]) -> Footprint:
    names = {f.name for f in dataclasses.fields(Footprint)} - {"draft", "shipped"}
    drafts = (facts["draft"], facts["shipped"])
    draft, shipped = (None if found is None else _footprint(found) for found in drafts)
    return Footprint(**{name: int(facts[name]) for name in names}, draft=draft, shipped=shipped)


_EMPTY = Entry(Path(), (), "", "")


def inspect(path: Path) -> Entry:
    """What a file is, by its header; never raises: what is wrong with it is in `problem`."""
    path = Path(path)
    try:
        header = read_header(path)
    except UnsupportedModel as error:
        return _unreadable(path, UNKNOWN, str(error))
    except EngineError as error:
        return _unreadable(path, BROKEN, str(error))
    except (OSError, MemoryError, RecursionError) as error:
        return _unreadable(path, BROKEN, f"{path.name}: the file cannot be read: {error}.")
    return _describe(header)


def kind_of(header: HeaderSummary) -> tuple[str, str]:
    """Kind of a sound file, and why it is not a chat model ("" for one)."""
    arch, meta = header.architecture, header.meta
    type_ = meta.get("general.type")
    if arch in _PROJECTORS or type_ == "mmproj":
        return PROJECTOR, (
            "This is a vision projector (mmproj): it lets a chat model see images and cannot chat by "
            "itself. Open the chat model that it belongs to."
        )
    if arch in _DRAFTS or arch.endswith(_DRAFT_ENDINGS):
        return DRAFT, (
            "This is a draft, a helper that speeds up one chat model and cannot chat by itself. Open "
            "the chat model that it belongs to."
        )
    if isinstance(type_, str) and type_ in _TYPES:
        return UNKNOWN, _TYPES[type_]
    for what, names in _NOT_CHAT.items():
        if arch in names:
            return UNKNOWN, f"This is {what} ({arch}), not a chat model."
    if not arch:
        return (
            UNKNOWN,
            "The file does not name its architecture, so it is not a model that can run.",
        )
    if not header.infos:
        return (
            UNKNOWN,
            "The file holds a vocabulary and no weights, so it is not a model that can run.",
        )
    return CHAT, ""


def refuse_unless_chat_model(header: HeaderSummary) -> None:
    """Raise `UnsupportedModel` for a projector, a draft or anything else that is no chat model."""
    kind, why = kind_of(header)
    if kind != CHAT:
        raise UnsupportedModel(f"{header.path.name}: {why}")


def _problem(kind: str, architecture: str) -> str:
    """Why a chat model cannot run here; "" if it can, and for helpers, which are sound as they are."""
    if kind == CHAT and not is_known(architecture):
        return f"This version cannot run {architecture} yet."
    return ""


def _describe(header: HeaderSummary) -> Entry:
    arch = header.architecture
    kind, why = kind_of(header)

    def number(key: str) -> int:
        value = header.meta.get(f"{arch}.{key}")
        return value if type(value) is int and 0 <= value < 1 << 40 else 0

    return Entry(
        path=header.path,
        files=header.files,
        name=header.name,
        kind=kind,
        problem=why if kind == UNKNOWN else _problem(kind, arch),
        size=header.file_bytes,
        architecture=arch,
        quant=header.quant,
        context=number("context_length"),
        n_params=header.n_params,
        n_layers=number("block_count"),
        n_experts=number("expert_count"),
        root=header.path.parent,
        footprint=Footprint.of(header),
    )


def _unreadable(path: Path, kind: str, problem: str) -> Entry:
    """An entry for a file that cannot be read; of a split set all parts that are there are counted."""
    part = part_of(path.name)
    files = [path]
    if part:
        stem, _, count = part
        wanted = {
            f"{stem}-{no:05d}-of-{count:05d}.gguf".lower()
            for no in range(1, min(count, 10_000) + 1)
        }
        with contextlib.suppress(OSError):
            files = sorted(p for p in path.parent.iterdir() if p.name.lower() in wanted) or files
    size = 0
    for file in files:
        try:
            size += file.stat().st_size if file.is_file() else 0
        except OSError:
            continue
    name = part[0] if part else path.stem
    return Entry(files[0], tuple(files), name, kind, problem, size, root=path.parent)
