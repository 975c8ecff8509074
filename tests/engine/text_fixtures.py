"""The text fixtures: vocabularies, cases, and small vocabularies made on the spot."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from engine.gguf import open_model
from engine.tokenizer import Tokenizer, TokenType

FOLDER = Path(__file__).parent.parent / "fixtures" / "text"
KEY = "tokenizer.ggml."


@cache
def load(name: str) -> Any:
    """One JSON fixture."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def case(name: str, identity: str) -> dict[str, Any]:
    """The case with that id in a fixture."""
    return next(c for c in load(name)["cases"] if c["id"] == identity)


@cache
def vocabulary(name: str) -> dict[str, Any]:
    """The metadata of a vocabulary file; not to be changed."""
    with open_model(FOLDER / name) as file:
        return dict(file.meta)


def tokenizer(name: str, **changes: Any) -> Tokenizer:
    """The tokenizer of a vocabulary file, some keys changed."""
    return Tokenizer.from_gguf(vocabulary(name) | {KEY + k: v for k, v in changes.items()})


def small_vocabulary(extra: list[tuple[str, TokenType]], **keys: int) -> dict[str, Any]:
    """A byte-level vocabulary of the 256 bytes and `extra` tokens."""
    alphabet = [t for t in vocabulary("bpe_vocab.gguf")[KEY + "tokens"] if len(t) == 1][:256]
    return {
        KEY + "model": "gpt2",
        KEY + "pre": "gpt-2",
        KEY + "tokens": [*alphabet, *(text for text, _ in extra)],
        KEY + "token_type": [1] * 256 + [int(kind) for _, kind in extra],
        KEY + "merges": [],
        **{KEY + k: v for k, v in keys.items()},
    }
