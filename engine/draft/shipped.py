"""Drafts that come with Lucebox, and which model each is for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine import paths
from engine.gguf import HeaderSummary

FOLDER = paths.resources_dir() / "drafts"


def shipped_draft(target: HeaderSummary) -> Path | None:
    """The draft that was made for a model, by what its header says; None if there is none."""
    for path in sorted(FOLDER.glob("*.gguf")):
        card = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        if _is(target, card["made_for"]):
            return path
    return None


def _is(target: HeaderSummary, made_for: dict[str, Any]) -> bool:
    meta, arch = target.meta, target.architecture
    embd = target.infos.get("token_embd.weight")
    return embd is not None and made_for == {
        "architecture": arch,
        "basename": meta.get("general.basename"),
        "size_label": meta.get("general.size_label"),
        "n_embd": meta.get(f"{arch}.embedding_length"),
        "n_layers": meta.get(f"{arch}.block_count"),
        "n_vocab": embd.shape[0] if embd.shape else 0,
    }
