"""The DFlash drafter on the engine's operations, and as part of the engine, against the reference."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.config import EngineConfig, Precision, SamplingParams, Spec
from engine.draft.files import open_draft
from engine.engine import Engine
from engine.errors import UnsupportedModel
from engine.follow import follow
from engine.gguf import Tensor, open_model
from engine.models.base import model_of
from engine.ops.base import Ops, Shape
from engine.ops.cpu import CpuOps
from engine.ops.numpy_ops import NumpyOps
from engine.quants import by_name
from engine.types import Request, TextDelta, Verified
from engine.weights import load_weights
from tests.engine.draft.drafts import cases, draft_path, expected, target_path
from tests.engine.oracle import LIMITS, step
from tests.reference.numpy_dflash import NumpyDflash


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    engine.start()
    yield engine
    engine.close()


def load(
    engine: Engine,
    family: str,
    draft: Path,
    spec: Spec = Spec.CHAIN,
    budget: int | None = None,
    device: str = "cpu",
) -> None:
    config = EngineConfig(
        draft=str(draft),
        spec=spec,
        budget=budget,
        precision=Precision.EXACT,
        max_ctx=512,
        device=device,
        threads=2,
    )
    engine.load(target_path(family), config)


def answer(engine: Engine, ids: list[int], n: int) -> tuple[list[int], list[int]]:
    """Tokens, and those that each verified draft brought with the target's own one."""
    sampling = SamplingParams(temperature=0, max_tokens=n, ignore_eos=True)
    tokens, produced = [], []
    for event in follow(engine, Request(ids=ids, sampling=sampling)):
        if isinstance(event, TextDelta):
            tokens += event.tokens
        elif isinstance(event, Verified):
            produced.append(event.accepted + 1)
    return tokens, produced


def lengths_in_numpy(family: str, path: Path, prompt: list[int], text: list[int]) -> list[int]:
    """What each draft of the NumPy drafter brings while `text` follows `prompt`."""
    file = open_draft(path)
    ops = NumpyOps()
    with open_model(target_path(family)) as target:
        model = model_of(target.architecture)
        cfg = model.read_config(target)
        draft_cfg = file.config.fitted(cfg.shape, 1e4)
        weights = load_weights(target, model.tensors(cfg), ops)
        ops.allocate(cfg.shape, LIMITS)
        with ops.recording(draft_cfg.capture):
            model.forward(ops, weights, cfg)
    ids = prompt + text
    ops.run(step((ids, 0, [0, 1, 2, 3])))
    features = ops.hidden()
    draft = NumpyDflash(file, draft_cfg, weights.token_embd, weights.output)
    at, produced = len(prompt), []
    while at < len(ids) - 1:
        size = min(draft_cfg.block, len(ids) - at)
        guess = draft.tokens(draft.block(features[:at], ids[at], size), ids[at])
        truth = ids[at + 1 : at + size]
        n = next((i for i, (g, t) in enumerate(zip(guess, truth, strict=True)) if g != t), size - 1)
        produced.append(min(n + 1, len(ids) - 1 - at))
        at += n + 1
    return produced


@pytest.mark.parametrize(("family", "kind", "dialect"), cases())
def test_chains_equal_the_reference(
    engine: Engine, family: str, kind: str, dialect: str, tmp_path: Path
) -> None:
    truth = expected(family, kind)
    path, prompt = draft_path(family, kind, dialect, tmp_path), truth["prompt"].tolist()
    load(engine, family, path)
    tokens, produced = answer(engine, prompt, 64)
    assert tokens == truth["greedy_tokens"].tolist()
    if kind == "swa" and dialect.startswith("lucebox"):
        # Its window begins at the same place for all rows, which the reference's does not.
        want = lengths_in_numpy(family, path, prompt, tokens)
        assert want != truth["step_produced"].tolist()
    else:
        want = truth["step_produced"].tolist()
    assert produced == want


@pytest.mark.parametrize(
    ("family", "budget", "produced"),
    [
        ("dflash_qwen3", 16, [6, 8, 6, 7, 7, 3, 7, 5, 6, 2, 6]),
        ("dflash_qwen3", 22, [6, 8, 6, 7, 7, 4, 8, 8, 2, 5, 2]),
        ("dflash_qwen35", 16, [4, 5, 6, 3, 3, 7, 4, 4, 4, 5, 4, 4, 8, 2]),
    ],
)
def test_trees_equal_the_reference(
    engine: Engine, family: str, budget: int, produced: list[int], tmp_path: Path
) -> None:
    truth = expected(family, "full")
    load(engine, family, draft_path(family, "full", "hf", tmp_path), Spec.TREE, budget)
    tokens, found = answer(engine, truth["prompt"].tolist(), 64)
    assert tokens == truth["greedy_tokens"].tolist() and found == produced


@pytest.mark.parametrize("kind", ["full", "dflash2"])
@pytest.mark.parametrize("family", ["dflash_qwen3", "dflash_qwen35"])
def test_trees_keep_the_text_and_take_fewer_passes(
    engine: Engine, family: str, kind: str, tmp_path: Path
) -> None:
    truth = expected(family, kind)
    load(engine, family, draft_path(family, kind, "hf", tmp_path), Spec.TREE, 16)
    tokens, produced = answer(engine, truth["prompt"].tolist(), 64)
    assert tokens == truth["greedy_tokens"].tolist()
    assert len(produced) <= len(truth["step_produced"])


def test_a_known_prefix_drafts_as_well_as_a_new_one(engine: Engine, tmp_path: Path) -> None:
    truth = expected("dflash_qwen3", "full")
    load(engine, "dflash_qwen3", draft_path("dflash_qwen3", "full", "hf", tmp_path))
    prompt = truth["prompt"].tolist()
    tokens, _ = answer(engine, prompt, 64)
    longer = prompt + tokens[:40]
    first = answer(engine, longer, 20)
    assert first[0][:20] == tokens[40:60]
    assert answer(engine, longer, 20) == first


def test_short_convolutions_equal_the_reference() -> None:
    rng = np.random.default_rng(5)
    wide, taps, groups, rows = 96, 3, 6, 9

    def made(ops: Ops) -> list[Any]:
        ops.allocate(Shape(1, wide, 40, 2, 1, 16), LIMITS)
        values = np.random.default_rng(6)

        def weight(*shape: int) -> Any:
            data = values.standard_normal(shape).astype(np.float32)
            return ops.upload(Tensor("w", shape, by_name("F32"), data.view(np.uint8)))

        embd, own, base, head = (
            weight(40, wide), weight(2 * taps * groups, wide), weight(2 * taps * wide), weight(40, wide)
        )  # fmt: skip
        with ops.recording():
            x = ops.embed(embd)
            ops.scale(x, 1.5)
            kernels = ops.linear(x, own)
            ops.head(
                ops.convolve(ops.convolve(x, kernels, base, 0, taps), kernels, base, 1, taps), head
            )
        return [
            ops.run(step(*spans)).copy()
            for spans in (
                [(rng_ids[:1], 0, [0])],
                [(rng_ids[:2], 3, [0])],
                [(rng_ids, 0, [0]), (rng_ids[:4], 7, [1])],
            )
        ]

    rng_ids = rng.integers(0, 40, rows).tolist()
    cpu = CpuOps(2, Precision.EXACT)
    for got, want in zip(made(cpu), made(NumpyOps()), strict=True):
        assert np.abs(got - want).max() < 1e-4 * np.abs(want).max()
    cpu.close()


def test_a_draft_for_another_model_is_refused_with_both_numbers(
    engine: Engine, tmp_path: Path
) -> None:
    path = draft_path("dflash_qwen35", "full", "hf", tmp_path)
    with pytest.raises(UnsupportedModel, match=r"5 layers.* 6"):
        load(engine, "dflash_qwen3", path)
    assert engine.status().state == "empty"
