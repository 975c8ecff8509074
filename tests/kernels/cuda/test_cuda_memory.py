"""What a model takes of a card, against what is predicted from its file."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.config import EngineConfig, Spec
from engine.devices import Device
from engine.draft.base import Target
from engine.draft.model import ModelDrafter
from engine.draft.mtp import MtpDrafter
from engine.gguf import HeaderSummary, Tensor, open_model
from engine.gguf_header import TensorInfo
from engine.models.base import model_of
from engine.ops.base import Limits
from engine.ops.cuda import CudaOps
from engine.ops.cuda_library import Library
from engine.placement import Plan, estimate, resolve
from engine.quants import by_name
from engine.scheduler import MOST_GUESSED
from engine.weights import load_weights
from tests.engine.draft.drafts import mtp_path
from tests.kernels.cuda.test_cuda_ops_without_card import Notes, Runtime, notes, vector
from tests.reference.blocks import random_tensor

__all__ = ["notes"]

HEADS = {"head_count": 16, "head_count_kv": 4, "key_length": 128, "value_length": 128}
DENSE = {"embedding_length": 2048, "feed_forward_length": 6144}
DENSE |= {f"attention.{key}": n for key, n in HEADS.items()}
DELTA = {"state_size": 128, "inner_size": 4096, "time_step_rank": 32, "group_count": 16}
HYBRID = DENSE | {f"ssm.{key}": n for key, n in DELTA.items()}
EXPERTS = {"count": 64, "used_count": 8, "feed_forward_length": 512}
MIXTURE = HYBRID | {f"expert_{key}": n for key, n in EXPERTS.items()}
MIXTURE |= {"expert_shared_feed_forward_length": 512}


class Ledger(Runtime):
    """Memory that is only counted, on a large card."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(notes)
        self.next = 1 << 40

    def malloc(self, size: int) -> int:
        self.next += -(-size // 256) * 256
        return self.next

    def free(self, address: int) -> None:
        pass

    def memcpy(self, *args: Any) -> None:
        pass

    def memcpyAsync(self, *args: Any) -> None:
        pass

    def memsetAsync(self, *args: Any) -> None:
        pass

    def getDeviceProperties(self, index: int) -> dict[str, Any]:
        return {"multiProcessorCount": 132, "name": b"Test card"}


class Widened(HeaderSummary):
    """A small model as if it had other widths, and all zeros."""

    def __init__(self, path: Path, widths: dict[str, int]) -> None:
        with open_model(path) as file:
            arch, known, meta = file.architecture, file.infos, dict(file.meta)
        meta |= {f"{arch}.{key}": n for key, n in widths.items() if f"{arch}.{key}" in meta}
        words = known["token_embd.weight"].shape[0]
        table = Tensor(
            "", (words, widths["embedding_length"]), by_name("F32"), np.zeros(0, np.uint8)
        )
        self.tensors, self.infos = {"token_embd.weight": table}, {}
        super().__init__((path,), meta, self.infos, 0)
        for spec in model_of(arch).tensors(model_of(arch).read_config(self)):
            if spec.name not in known:
                continue
            kind = by_name("F32" if len(spec.shape) == 1 or spec.shape[-1] % 256 else "Q4_K")
            data = np.zeros((*spec.shape[:-1], kind.row_bytes(spec.shape[-1])), np.uint8)
            self.tensors[spec.name] = Tensor(spec.name, spec.shape, kind, data)
            self.infos[spec.name] = TensorInfo(spec.name, spec.shape, kind, 0, 0, data.nbytes)


@pytest.mark.parametrize("spec", (Spec.OFF, Spec.CHAIN))
@pytest.mark.parametrize("chunk", (512, 2048))
@pytest.mark.parametrize(
    ("name", "widths"), (("qwen3", DENSE), ("qwen35", HYBRID), ("qwen35moe", MIXTURE))
)
def test_a_model_takes_what_was_predicted(
    notes: Notes,
    fixtures: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    widths: dict[str, int],
    chunk: int,
    spec: Spec,
) -> None:
    monkeypatch.setattr(sys.modules["cupy"].cuda, "runtime", Ledger(notes))
    made = SimpleNamespace(is_faster=lambda *args: True, close=lambda: None)
    monkeypatch.setattr(Library, "of", lambda card, allocate, cache: (allocate(32 << 20), made)[1])
    file: Any = Widened(fixtures / f"{name}.gguf", widths)
    device = Device("cuda:0", "cuda", "Test card", 80 << 30, 79 << 30)
    config = EngineConfig(
        device="cuda:0", max_ctx=4096, max_concurrency=2, prefill_chunk=chunk, spec=spec,
        draft=None if spec is Spec.OFF else "ngram",
    )  # fmt: skip
    plan, predicted = resolve(config, file, [device]), estimate(file, config, [device])

    ops, model = CudaOps(), model_of(file.architecture)
    cfg = model.read_config(file)
    weights = load_weights(file, model.tensors(cfg), ops)
    guessed = MOST_GUESSED if spec is not Spec.OFF else 0
    ops.allocate(
        cfg.shape,
        Limits(
            chunk + 2 + guessed, 2, plan.n_pages, plan.page_tokens, 4096 // plan.page_tokens,
            plan.n_slots, guessed,
        ),
    )  # fmt: skip
    with ops.recording():
        model.forward(ops, weights, cfg)
    took = ops.memory()
    parts = {part.kind: part.bytes for part in predicted.parts}
    assert took["kv"] == parts["kv"]
    assert took["model"] == pytest.approx(parts["model"], rel=0.002)
    assert took["work"] == pytest.approx(parts["work"], rel=0.1), (took, parts)
    ops.close()


def drafting(file: Any, draft: str) -> tuple[Plan, dict[str, int], Limits]:
    """What is planned and predicted of a model that drafts, and what it is allocated for."""
    device = Device("cuda:0", "cuda", "Test card", 80 << 30, 79 << 30)
    config = EngineConfig(
        device="cuda:0", max_ctx=4096, max_concurrency=2, prefill_chunk=2048, spec=Spec.CHAIN,
        draft=draft,
    )  # fmt: skip
    plan = resolve(config, file, [device])
    parts = {part.kind: part.bytes for part in estimate(file, config, [device]).parts}
    limits = Limits(
        2048 + 2 + MOST_GUESSED, 2, plan.n_pages, plan.page_tokens, 4096 // plan.page_tokens,
        plan.n_slots, MOST_GUESSED,
    )  # fmt: skip
    return plan, parts, limits


def test_a_draft_layer_takes_what_was_predicted(
    notes: Notes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["cupy"].cuda, "runtime", Ledger(notes))
    monkeypatch.setattr(Library, "of", lambda card, allocate, cache: None)
    path = mtp_path(tmp_path)
    file: Any = Widened(path, HYBRID)
    plan, parts, limits = drafting(file, "mtp")
    ops, model = CudaOps(), model_of(file.architecture)
    cfg = model.read_config(file)
    weights = load_weights(file, model.tensors(cfg), ops)
    ops.allocate(cfg.shape, limits)
    drafter = MtpDrafter(Target(file, cfg, weights, ops, limits, plan))
    with ops.recording(drafter.needs):
        model.forward(ops, weights, cfg)
    kept = 4 * ops._rows * cfg.dense.n_embd  # what the target keeps for it
    assert parts["draft"] == pytest.approx(drafter.memory() + kept, rel=0.05)
    drafter.close()
    ops.close()


@pytest.mark.parametrize(("name", "widths"), (("qwen3", DENSE), ("qwen35", HYBRID)))
def test_a_model_that_drafts_takes_what_was_predicted(
    notes: Notes, fixtures: Path, monkeypatch: pytest.MonkeyPatch, name: str, widths: dict[str, int]
) -> None:
    monkeypatch.setattr(sys.modules["cupy"].cuda, "runtime", Ledger(notes))
    made = SimpleNamespace(is_faster=lambda *args: True, close=lambda: None)
    monkeypatch.setattr(Library, "of", lambda card, allocate, cache: (allocate(32 << 20), made)[1])
    file: Any = Widened(fixtures / f"{name}.gguf", widths)
    monkeypatch.setattr("engine.placement.read_header", lambda path: file)
    plan, parts, limits = drafting(file, "draft.gguf")
    ops, cfg = CudaOps(), model_of(file.architecture).read_config(file)
    ops._library = Library.of(ops.card, lambda size: size, None)
    drafter = ModelDrafter(Target(file, cfg, None, ops, limits, plan), file)
    assert drafter._ops._library is ops._library  # type: ignore[attr-defined]
    assert parts["draft"] == pytest.approx(drafter.memory(), rel=0.08)
    drafter.close()
    ops.close()


def test_weights_that_are_expected_lie_in_one_piece_of_memory(notes: Notes) -> None:
    ops, rng = CudaOps(), np.random.default_rng(1)
    kinds = ("Q4_K", "Q6_K", "F32", "F16", "Q3_K")
    tensors = [*(random_tensor(rng, kind, 48, 512) for kind in kinds), vector(77)]
    before = set(notes.memory)
    ops.expect(tensors)
    (room,) = set(notes.memory) - before
    at = room
    for tensor in tensors:
        weight = ops.upload(tensor)
        assert weight.address == at and at % 256 == 0
        at += -(-weight.size // 256) * 256
    assert np.all(np.frombuffer(ctypes.string_at(weight.address, 4 * 77), np.float32) == 1)
    other = ops.upload(vector(64))
    assert other.address in notes.memory and not room <= other.address < at
    ops.close()
    assert not notes.memory
