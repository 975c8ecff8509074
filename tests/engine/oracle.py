"""Tiny models with the logits and greedy tokens of transformers in float32."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from engine.gguf import open_model
from engine.models.base import model_of
from engine.ops.base import Limits, Ops, StepInput
from engine.weights import load_weights

FIXTURES = Path(__file__).parent.parent / "fixtures"
ARCHITECTURES = ("llama", "qwen3", "qwen35", "qwen35moe")
LIMITS = Limits(
    rows=256, sequences=4, pages=16, page_tokens=64, pages_per_sequence=4, slots=16, tried=32
)


def model_path(architecture: str) -> Path:
    return FIXTURES / f"{architecture}.gguf"


def expected(architecture: str) -> dict[str, Any]:
    """`ids_N`, `logits_N` (N, n_vocab) for N = 1, 7, 64, 200 and `greedy` after `ids_7`."""
    with np.load(FIXTURES / f"{architecture}.npz") as data:
        return dict(data)


def record(ops: Ops, architecture: str, capture: tuple[int, ...] = ()) -> SimpleNamespace:
    """Load an oracle model into `ops` and record its forward pass; returns its configuration."""
    model = model_of(architecture)
    with open_model(model_path(architecture)) as file:
        cfg = model.read_config(file)
        weights = load_weights(file, model.tensors(cfg), ops)
        ops.allocate(cfg.shape, LIMITS)
        with ops.recording(capture):
            model.forward(ops, weights, cfg)
    return SimpleNamespace(cfg=cfg)


def step(*spans: tuple[list[int], int, list[int]], all_logits: bool = True) -> StepInput:
    """A step from (ids, start, pages) of each sequence; its first page is its state's slot too."""
    tokens, positions, sequence, logit_rows = [], [], [], []
    table = np.zeros((len(spans), LIMITS.pages_per_sequence), np.int32)
    for i, (ids, start, pages) in enumerate(spans):
        tokens += ids
        positions += range(start, start + len(ids))
        sequence += [i] * len(ids)
        table[i, : len(pages)] = pages
        logit_rows += range(len(tokens) - len(ids) if all_logits else len(tokens) - 1, len(tokens))
    arrays = (np.array(x, np.int32) for x in (tokens, positions, sequence))
    slots = [pages[0] for _, _, pages in spans]
    return StepInput(*arrays, table, *(np.array(x, np.int32) for x in (logit_rows, slots)))
