"""Models with recurrent state, end to end: their prefixes, mixed types, and blocks that are not run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from engine.config import EngineConfig, Precision, Spec
from engine.devices import devices
from engine.engine import Engine
from engine.errors import NumericError, UnsupportedModel
from engine.gguf import open_model, read_header
from engine.loading import load_model
from engine.models.base import model_of
from engine.ops.base import Ops
from engine.ops.cpu import CpuOps
from engine.ops.numpy_ops import NumpyOps
from engine.placement import estimate
from engine.types import Failed, Finished, Started
from engine.weights import check_tensors, load_weights
from tests.engine.engines import generate, greedy, ids, preemptions, running, started, submit
from tests.engine.model_copies import Stored, as_type, copy_model
from tests.engine.oracle import LIMITS, expected, model_path, step
from tests.kernels.cpu.helpers import tensor

HYBRIDS = ("qwen35", "qwen35moe")
CONFIG = EngineConfig(threads=2, precision=Precision.EXACT, max_ctx=512, prefill_chunk=64)


@pytest.fixture(params=HYBRIDS)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with running(model_path(request.param), CONFIG) as engine:
        yield engine


def answer(engine: Engine, prompt: list[int], n: int = 40) -> tuple[list[int], int]:
    """The text, and how many tokens of the prompt were known."""
    listener = generate(engine, prompt, greedy(n))
    first = listener.events[1]
    assert isinstance(first, Started)
    return listener.tokens, first.reused_tokens


def test_the_second_turn_goes_on_from_a_kept_state(engine: Engine) -> None:
    first = ids(150, seed=1)
    text, reused = answer(engine, first, 60)
    assert reused == 0
    second = first + text + ids(30, seed=2)
    text, reused = answer(engine, second)
    assert reused == 209  # all but the last token, which was not computed
    model = engine.status().model
    assert model is not None
    fresh = started(model.path, CONFIG)
    assert answer(fresh, second) == (text, 0)
    assert fresh.close()


def test_many_at_once_equal_one_by_one_even_when_pages_run_out(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    preempted = preemptions(monkeypatch)
    prompts = [ids(100 + 20 * i, seed=10 + i) for i in range(5)]
    alone = [answer(engine, prompt, 250)[0] for prompt in prompts]
    assert not preempted
    listeners = [submit(engine, prompt, greedy(250)) for prompt in prompts]
    assert all(isinstance(listener.end(), Finished) for listener in listeners)
    assert preempted
    assert [listener.tokens for listener in listeners] == alone


def mixed(name: str, values: NDArray[np.float32]) -> Stored | None:
    """Types as a real file mixes them, where the tiny dimensions allow."""
    if values.ndim == 1 or "conv1d" in name or "gate_inp" in name:
        return None
    if values.shape[-1] % 256 == 0:
        kind = "Q6_K" if "blk.2" in name else "Q4_K"
        return tensor(kind, values.shape).data, gguf.GGMLQuantizationType[kind]
    kinds = {"ffn_up": "Q4_0", "ffn_gate": "Q5_1", "ffn_down": "Q5_0", "ssm_alpha": "BF16"}
    return as_type(values, next((k for part, k in kinds.items() if part in name), "Q8_0"))


def recorded(ops: Ops, path: Path) -> Ops:
    with open_model(path) as file:
        model = model_of(file.architecture)
        cfg = model.read_config(file)
        weights = load_weights(file, model.tensors(cfg), ops)
        ops.allocate(cfg.shape, LIMITS)
        with ops.recording():
            model.forward(ops, weights, cfg)
    return ops


@pytest.mark.parametrize("architecture", HYBRIDS)
def test_a_file_of_many_types_agrees_with_the_reference(architecture: str, tmp_path: Path) -> None:
    path = copy_model(model_path(architecture), tmp_path / "mixed.gguf", mixed)
    with open_model(path) as file:
        assert {"Q4_K", "Q6_K", "Q8_0", "Q4_0", "Q5_1"} <= {
            t.type.name for t in file.tensors.values()
        }
    text = ids(100, seed=4)
    whole = step((text, 0, [0, 1]))
    truth = recorded(NumpyOps(), path).run(whole)
    for precision, allowed in ((Precision.EXACT, 1e-8), (Precision.FAST, 1e-2)):
        ops = recorded(CpuOps(2, precision), path)
        got = ops.run(whole).copy()
        assert ((got - truth) ** 2).mean() < allowed * truth.var()
        for start, end in ((0, 1), (1, 60), (60, 100)):
            part = ops.run(step((text[start:end], start, [2, 3])))
            np.testing.assert_array_equal(part, got[start:end])
        ops.close()


@pytest.mark.parametrize("architecture", HYBRIDS)
def test_a_block_that_drafts_is_left_alone_where_nobody_drafts(
    architecture: str, tmp_path: Path
) -> None:
    with open_model(model_path(architecture)) as file:
        layer = {
            name.replace("blk.3.", "blk.4."): t.dequantize()
            for name, t in file.tensors.items()
            if name.startswith("blk.3.")
        }
    more = {"eh_proj.weight": (128, 256), "enorm.weight": (128,), "hnorm.weight": (128,)}
    layer |= {f"blk.4.nextn.{name}": np.ones(shape, np.float32) for name, shape in more.items()}
    numbers = {f"{architecture}.block_count": 5, f"{architecture}.nextn_predict_layers": 1}
    path = copy_model(model_path(architecture), tmp_path / "m.gguf", numbers=numbers, more=layer)
    off = replace(CONFIG, spec=Spec.OFF)
    engine, truth = started(path, off), expected(architecture)
    tokens, _ = answer(engine, truth["ids_7"].tolist(), 48)
    assert tokens == truth["greedy"].tolist()
    assert engine.close()
    found = {part.kind: part.bytes for part in estimate(read_header(path), off, devices()).parts}
    plain = estimate(read_header(model_path(architecture)), off, devices())
    for part in plain.parts:
        if part.kind in ("model", "kv", "work"):
            assert found[part.kind] == part.bytes


def test_a_row_kept_as_a_vector_is_a_matrix_of_one_row(tmp_path: Path) -> None:
    def flat(name: str, values: NDArray[np.float32]) -> Stored | None:
        if "gate_inp_shexp" in name:
            return values.reshape(-1), gguf.GGMLQuantizationType.F32
        return None

    path = copy_model(model_path("qwen35moe"), tmp_path / "m.gguf", flat)
    engine, truth = started(path, CONFIG), expected("qwen35moe")
    assert answer(engine, truth["ids_7"].tolist(), 48)[0] == truth["greedy"].tolist()
    assert engine.close()


@pytest.mark.parametrize(
    ("architecture", "name", "layer"),
    [
        ("qwen35", "blk.1.ssm_dt.bias", 1),
        ("qwen35", "blk.3.attn_q.weight", 3),
        ("qwen35moe", "blk.2.ffn_gate_inp.weight", 2),
        ("qwen35moe", "blk.1.ffn_down_exps.weight", 1),
    ],
)
def test_nan_names_the_layer(architecture: str, name: str, layer: int, tmp_path: Path) -> None:
    def broken(found: str, values: NDArray[np.float32]) -> Stored | None:
        if found == name:
            return np.full_like(values, np.nan), gguf.GGMLQuantizationType.F32
        return None

    path = copy_model(model_path(architecture), tmp_path / "nan.gguf", broken)
    engine = started(path, CONFIG)
    end = submit(engine, ids(5), greedy(4)).end()
    assert isinstance(end, Failed) and isinstance(end.error, NumericError)
    assert f"layer {layer} of 4" in str(end.error)
    assert engine.close()


@pytest.mark.parametrize("architecture", HYBRIDS)
@pytest.mark.parametrize("precision", list(Precision))
def test_every_logit_in_pieces_equals_the_oracle(architecture: str, precision: Precision) -> None:
    truth = expected(architecture)
    model = load_model(
        model_path(architecture), EngineConfig(threads=1, precision=precision, max_ctx=256)
    )
    got = np.concatenate([piece.copy() for piece in model.logits(truth["ids_200"].tolist())])
    model.close()
    allowed = 2e-3 if precision is Precision.EXACT else 2e-2
    want = truth["logits_200"]
    assert np.abs(got - want).max() < allowed * want.std()


def test_a_file_that_also_has_a_projector_gives_its_text_part(tmp_path: Path) -> None:
    more = {n: np.zeros((32, 32), np.float32) for n in ("v.patch_embd.weight", "mm.0.weight")}
    both = copy_model(model_path("qwen35"), tmp_path / "both.gguf", more=more)
    with open_model(both) as file:
        model = model_of(file.architecture)
        specs = check_tensors(file, model.tensors(model.read_config(file)))
    with open_model(model_path("qwen35")) as plain:
        assert [s.name for s in specs] == [
            s.name for s in check_tensors(plain, model.tensors(model.read_config(plain)))
        ]
    assert not any(s.name in more for s in specs)
    strange = copy_model(
        model_path("qwen35"), tmp_path / "x.gguf", more={"vx.weight": more["mm.0.weight"]}
    )
    with open_model(strange) as file, pytest.raises(UnsupportedModel, match=r"vx\.weight"):
        check_tensors(file, model.tensors(model.read_config(file)))
