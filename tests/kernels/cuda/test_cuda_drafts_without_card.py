"""Drafters on the CUDA operations, against a card that only takes notes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.config import EngineConfig, SamplingParams
from engine.devices import devices
from engine.draft.base import Target, open_drafter
from engine.gguf import open_model
from engine.models.base import model_of
from engine.ops.base import Shape
from engine.ops.cuda import CudaOps
from engine.ops.cuda_library import Library
from engine.ops.cuda_trust import Distrust
from engine.placement import resolve
from engine.types import Sequence
from engine.weights import load_weights
from tests.engine.draft.drafts import draft_path, mtp_path, target_path
from tests.kernels.cuda.test_cuda_ops_without_card import LIMITS, Notes


def target_on(ops: CudaOps, path: Path) -> Target:
    file = open_model(path)
    model = model_of(file.architecture)
    cfg = model.read_config(file)
    weights = load_weights(file, model.tensors(cfg), ops)
    limits = replace(LIMITS, slots=2 if cfg.shape.delta else 0, tried=32)
    ops.allocate(cfg.shape, limits)
    plan = resolve(EngineConfig(device="cpu"), file, devices())
    return Target(file, cfg, weights, ops, limits, plan)


@pytest.mark.parametrize("kind", ["full", "dflash2", "mtp"])
def test_drafters_run_on_a_card(notes: Notes, kind: str, tmp_path: Path) -> None:
    ops = CudaOps("cuda:0", distrust=Distrust())
    sequence = Sequence(1, [3, 4, 5, 6], 4, SamplingParams(), pages=[0])
    if kind == "mtp":
        target = target_on(ops, mtp_path(tmp_path))
        there = set(notes.memory)
        drafter = open_drafter("mtp", target, None)
    else:
        target = target_on(ops, target_path("dflash_qwen3"))
        path = draft_path("dflash_qwen3", kind, "hf", tmp_path)
        there = set(notes.memory)
        drafter = open_drafter("dflash", target, path)
    width = len(drafter.needs) * ops.shape.n_embd
    drafter.observe(sequence, 0, 3, np.zeros((3, width), np.float32))
    assert len(drafter.propose(sequence, 4, 4).tokens) >= 1
    assert any(name == "matmul" for name, *_ in notes.launches)
    if kind != "mtp":
        assert "rank" in [name for name, *_ in notes.launches]
        sequence.tokens.append(7)
        drafter.observe(sequence, 3, 1, ops.join([np.zeros((1, width), np.float32)]))
        drafter.begin(sequence, 4, 7)  # type: ignore[attr-defined]
        notes.launches.clear()
        assert len(drafter.propose(sequence, 4, 12).tokens) >= 1 and not notes.launches
        drafter.begin(sequence, 4, 8)  # type: ignore[attr-defined]
        notes.launches.clear()
        assert len(drafter.propose(sequence, 2, 2).tokens) == 2 and notes.launches
    drafter.close()
    left = sum(len(block) for at, block in notes.memory.items() if at not in there)
    assert left < 20_000  # rows that were joined, and whose memory is used again
    ops.close()
    assert not notes.memory


@pytest.mark.parametrize(("rows", "asked"), [(64, False), (65, True)])
def test_a_prompt_is_multiplied_alike_with_drafts_and_without(
    notes: Notes, monkeypatch: pytest.MonkeyPatch, rows: int, asked: bool
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(Library, "of", lambda card, allocate, folder: calls.append(1))
    for tried in (0, 32):
        ops = CudaOps("cuda:0", distrust=Distrust())
        limits = replace(LIMITS, rows=rows + tried, tried=tried)
        ops.allocate(Shape(1, 512, 99, 8, 2, 64), limits)
        ops.close()
    assert len(calls) == 2 * asked
