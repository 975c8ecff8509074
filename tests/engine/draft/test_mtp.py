"""The draft layer of Qwen3.5 files against transformers and llama.cpp, and at work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.config import EngineConfig, Plan, Precision, SamplingParams, Spec
from engine.devices import devices
from engine.draft import mtp
from engine.draft.base import Target
from engine.engine import Engine
from engine.gguf import open_model, read_header
from engine.loading import load_model
from engine.models.base import model_of
from engine.ops.base import Ops
from engine.ops.cpu import CpuOps
from engine.ops.numpy_ops import NumpyOps
from engine.placement import estimate
from engine.types import Sequence, Started, Verified
from engine.weights import load_weights
from tests.engine.draft.drafts import mtp_path
from tests.engine.engines import generate, greedy, started
from tests.engine.model_copies import copy_model
from tests.engine.oracle import FIXTURES, LIMITS, model_path, step

BACKENDS = {"numpy": NumpyOps, "cpu": lambda: CpuOps(2, Precision.EXACT)}
ORACLES = ("mtp_qwen35", "qwen35_mtp")
CONFIG = EngineConfig(
    threads=2, precision=Precision.EXACT, max_ctx=512, prefill_chunk=16, spec=Spec.CHAIN
)
PLAN: Any = Plan(Path(), "cpu", 2, Precision.EXACT, 256, 4, 64, 64, 16, 16, None)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("mtp")
    trained = mtp_path(folder)
    layer = {
        name.removeprefix("tensor "): values.astype(np.float32)
        for name, values in expected("qwen35_mtp").items()
        if name.startswith("tensor ")
    }
    numbers = {"qwen35.block_count": 5, "qwen35.nextn_predict_layers": 1}
    random = copy_model(
        model_path("qwen35"), folder / "qwen35_mtp.gguf", numbers=numbers, more=layer
    )
    return {"mtp_qwen35": trained, "qwen35_mtp": random}


def expected(name: str) -> dict[str, Any]:
    with np.load(FIXTURES / f"draft/{name}.npz") as data:
        return dict(data)


def drafter(ops: Ops, path: Path) -> tuple[mtp.MtpDrafter, Target]:
    """The draft layer beside a recorded target."""
    with open_model(path) as file:
        model = model_of(file.architecture)
        cfg = model.read_config(file)
        weights = load_weights(file, model.tensors(cfg), ops)
        ops.allocate(cfg.shape, LIMITS)
        target = Target(file, cfg, weights, ops, LIMITS, PLAN)
        made = mtp.open_drafter(target, None)
        with ops.recording(made.needs):
            model.forward(ops, weights, cfg)
    return made, target


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("oracle", ORACLES)
def test_every_row_equals_the_reference(oracle: str, backend: str, files: dict[str, Path]) -> None:
    truth, ops = expected(oracle), BACKENDS[backend]()
    made, _ = drafter(ops, files[oracle])
    hidden = truth["target_hidden_postnorm" if oracle == "mtp_qwen35" else "h_nextn"]
    if oracle == "mtp_qwen35":
        ids = [*truth["prompt"].tolist(), int(truth["greedy_tokens"][0])]
    else:
        ids = truth["ids"].tolist()
    want = truth["mtp_logits"]
    n = len(want)
    rows = step((ids[1 : n + 1], 0, [3, 1]))
    got = made._ops.run(replace(rows, given=hidden[:n]))
    assert np.abs(got - want).max() < 2e-3 * want.std()
    assert np.abs(made._ops.hidden() - truth["mtp_hidden"]).max() < 1e-3
    made.close()
    ops.close()


@pytest.mark.parametrize("oracle", ORACLES)
def test_a_chain_of_guesses_equals_the_reference(oracle: str, files: dict[str, Path]) -> None:
    truth, ops = expected(oracle), CpuOps(2, Precision.EXACT)
    made, _ = drafter(ops, files[oracle])
    if oracle == "mtp_qwen35":
        ids = [*truth["prompt"].tolist(), int(truth["greedy_tokens"][0])]
        want = truth["draft3_tokens"].tolist()
    else:
        ids, want = truth["ids"].tolist(), truth["chain_drafts"].tolist()
    sequence = Sequence(1, ids, len(ids), SamplingParams(temperature=0), pages=[2, 5])
    n, done = len(ids) - 1, 0
    for size in (7, n - 8, 1):
        ops.run(step((ids[done : done + size], done, [2, 5])))
        made.observe(sequence, done, size, ops.hidden())
        done += size
    assert list(made.propose(sequence, len(want), len(want)).tokens) == want
    made.close()
    ops.close()


def loaded(path: Path, **changes: object) -> Engine:
    return started(path, replace(CONFIG, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [1, 3])
def test_a_text_is_drafted_and_accepted_as_the_reference_does(
    n: int, files: dict[str, Path]
) -> None:
    truth = expected("mtp_qwen35")
    engine = loaded(files["mtp_qwen35"], budget=n)
    listener = generate(engine, truth["prompt"].tolist(), greedy(64))
    assert listener.tokens == truth["greedy_tokens"].tolist()
    found = [e.accepted + 1 for e in listener.events if isinstance(e, Verified)]
    # The first token comes with the prompt, and the last step of all may have nothing left to guess.
    want = truth[f"spec_produced_n{n}"].tolist()
    assert found[: len(want) - 1] == want[:-1]
    metrics = engine.metrics().speculation
    assert metrics is not None and metrics.drafter == "mtp" and metrics.state == "on"
    assert metrics.acceptance_length is not None
    # The metrics also count what the last draft guessed right beyond the answer's end.
    assert 0 <= metrics.acceptance_length * len(found[-64:]) - sum(found[-64:]) < n + 0.01
    assert engine.close()


@pytest.mark.parametrize("spec", [Spec.CHAIN, Spec.TREE, Spec.AUTO])
def test_nothing_changes_a_text(spec: Spec, files: dict[str, Path]) -> None:
    plain = loaded(files["mtp_qwen35"], spec=Spec.OFF)
    engine = loaded(files["mtp_qwen35"], spec=spec, budget=None if spec is Spec.AUTO else 12)
    truth = expected("mtp_qwen35")
    first = truth["prompt"].tolist() + truth["greedy_tokens"].tolist()
    for how in ({}, {"repetition_penalty": 1.2}, {"logit_bias": {40: 3.0}}):
        for length in (20, 64, 100):
            want = generate(plain, first[:length], greedy(**how)).tokens
            assert generate(engine, first[:length], greedy(**how)).tokens == want
    # The second turn knows the first one's pages, the draft layer's too.
    second = first[:100] + generate(plain, first[:100]).tokens + [7, 8, 9]
    listener = generate(engine, second)
    assert listener.tokens == generate(plain, second).tokens
    started = next(e for e in listener.events if isinstance(e, Started))
    assert started.reused_tokens in (139, 140)  # the last token is computed where it was guessed
    assert engine.close() and plain.close()


def test_drawn_guesses_come_again_with_their_seed(files: dict[str, Path]) -> None:
    engine = loaded(files["mtp_qwen35"], budget=3)
    prompt = expected("mtp_qwen35")["prompt"].tolist()
    texts = [
        generate(engine, prompt, greedy(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, seed=seed))
        for seed in (1, 1, 2)
    ]
    assert texts[0].tokens == texts[1].tokens != texts[2].tokens
    accepted = [e.accepted for e in texts[0].events if isinstance(e, Verified)]
    assert sum(accepted) > 5
    assert engine.close()


def test_its_memory_is_foreseen(files: dict[str, Path]) -> None:
    config = replace(CONFIG, precision=Precision.FAST)
    header = read_header(files["mtp_qwen35"])
    with_it = {p.kind: p.bytes for p in estimate(header, config, devices()).parts}
    without = {
        p.kind: p.bytes for p in estimate(header, replace(config, spec=Spec.OFF), devices()).parts
    }
    model = load_model(files["mtp_qwen35"], config)
    assert model.speculation is not None
    drafter: Any = model.speculation.drafter
    held = drafter._ops.memory()
    assert with_it["draft"] == held["model"] + held["kv"] and "draft" not in without
    assert with_it["kv"] == model.ops.memory()["kv"]
    assert with_it["model"] == without["model"]
    model.close()


def test_a_draft_file_is_foreseen_too(files: dict[str, Path]) -> None:
    header, draft = read_header(model_path("qwen3")), model_path("llama")
    config = replace(CONFIG, draft=str(draft))
    alone = estimate(header, CONFIG, devices())
    found = {p.kind: p.bytes for p in estimate(header, config, devices()).parts}
    other = {p.kind: p.bytes for p in estimate(read_header(draft), CONFIG, devices()).parts}
    assert found["draft"] == other["model"] + other["kv"]
    assert found["kv"] == next(p.bytes for p in alone.parts if p.kind == "kv")
    missing = replace(CONFIG, draft="nowhere.gguf")
    assert estimate(header, missing, devices()).total == alone.total


def test_a_layer_that_is_not_whole_is_left_out_with_a_word(tmp_path: Path) -> None:
    numbers = {"qwen35.block_count": 5, "qwen35.nextn_predict_layers": 1}
    path = copy_model(model_path("qwen35"), tmp_path / "m.gguf", numbers=numbers)
    engine = started(path, CONFIG)
    info = engine.status().model
    assert info is not None
    assert any("blk.4." in note and "left out" in note for note in info.notes)
    generate(engine, [5, 6, 7])
    metrics = engine.metrics().speculation
    assert metrics is None or metrics.drafter == "ngram"
    assert engine.close()
