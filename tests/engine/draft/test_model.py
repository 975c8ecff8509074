"""A model as drafter for another: same text, pages and states in step with the target, refusals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from engine.config import EngineConfig, Precision, Spec
from engine.engine import Engine
from engine.errors import UnsupportedModel
from engine.types import Finished, Started, Verified
from tests.engine.engines import generate, greedy, ids, preemptions, started, submit
from tests.engine.listener import Listener
from tests.engine.model_copies import Stored, copy_model
from tests.engine.oracle import model_path

CONFIG = EngineConfig(threads=2, precision=Precision.FAST, max_ctx=512, prefill_chunk=64)
TARGETS = ("qwen3", "qwen35")


def loaded(architecture: str, **changes: object) -> Engine:
    return started(model_path(architecture), replace(CONFIG, **changes))  # type: ignore[arg-type]


@pytest.fixture(params=TARGETS)
def engines(request: pytest.FixtureRequest) -> Iterator[tuple[Engine, Engine]]:
    """A model alone, and with itself as drafter, which is then always right."""
    itself = str(model_path(request.param))
    plain = loaded(request.param, spec=Spec.OFF)
    drafting = loaded(request.param, spec=Spec.CHAIN, budget=4, draft=itself)
    yield plain, drafting
    assert plain.close() and drafting.close()


def everything_is_accepted(listener: Listener) -> bool:
    """In all steps but the last, whose guesses the answer may have no room for."""
    found = [e for e in listener.events if isinstance(e, Verified)]
    return len(found) > 1 and all(e.accepted == e.drafted for e in found[:-1])


def test_a_twin_guesses_everything(engines: tuple[Engine, Engine]) -> None:
    plain, drafting = engines
    for n in (3, 64, 150):
        prompt = ids(n, seed=n)
        listener = generate(drafting, prompt)
        assert listener.tokens == generate(plain, prompt).tokens
        assert everything_is_accepted(listener)
    metrics = drafting.metrics().speculation
    assert metrics is not None and metrics.drafter == "model"
    assert metrics.acceptance_length is not None and metrics.acceptance_length > 4
    kinds = {part.kind: part.bytes for part in drafting.metrics().memory}
    assert kinds["draft"] > 1_000_000


def test_two_at_once_have_pages_of_their_own(engines: tuple[Engine, Engine]) -> None:
    prompts = [ids(64, seed=7), ids(60, seed=8)]
    for listener in [submit(engines[1], prompt) for prompt in prompts]:
        assert isinstance(listener.end(), Finished) and everything_is_accepted(listener)


def test_it_follows_through_turns_and_lost_pages(
    engines: tuple[Engine, Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, drafting = engines
    first = ids(150, seed=1)
    answer = generate(plain, first, greedy(60)).tokens
    assert generate(drafting, first, greedy(60)).tokens == answer
    second = first + answer + ids(30, seed=2)
    listener = generate(drafting, second)
    assert listener.tokens == generate(plain, second).tokens
    started = next(e for e in listener.events if isinstance(e, Started))
    assert started.reused_tokens in (209, 210)  # the last token is computed where it was guessed
    assert everything_is_accepted(listener)

    preempted = preemptions(monkeypatch)
    prompts = [ids(100 + 20 * i, seed=10 + i) for i in range(5)]
    alone = [generate(plain, prompt, greedy(250)).tokens for prompt in prompts]
    listeners = [submit(drafting, prompt, greedy(250)) for prompt in prompts]
    assert all(isinstance(listener.end(), Finished) for listener in listeners)
    assert preempted
    assert [listener.tokens for listener in listeners] == alone


def test_a_tree_and_drawn_guesses(engines: tuple[Engine, Engine]) -> None:
    plain, drafting = engines
    how = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    texts = [generate(drafting, ids(20, 3), greedy(seed=seed, **how)).tokens for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
    info = plain.status().model
    assert info is not None
    tree = loaded(info.architecture, spec=Spec.TREE, budget=14, draft=str(info.path))
    for n in (5, 70):
        assert generate(tree, ids(n, n)).tokens == generate(plain, ids(n, n)).tokens
    metrics = tree.metrics().speculation
    assert metrics is not None and metrics.acceptance_length is not None
    assert metrics.acceptance_length > 6
    assert tree.close()


def test_another_vocabulary_is_refused_with_both_numbers(tmp_path: Path) -> None:
    reader = gguf.GGUFReader(model_path("qwen3"))
    tokens = reader.fields["tokenizer.ggml.tokens"].contents()
    with pytest.raises(UnsupportedModel, match=f"{len(tokens) - 1}.*{len(tokens)}"):
        loaded("qwen3", draft=str(shorter(tmp_path / "short.gguf")))


def shorter(path: Path) -> Path:
    """qwen3 with one token less."""
    reader = gguf.GGUFReader(model_path("qwen3"))
    writer = gguf.GGUFWriter(path, "qwen3")
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        of = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        value = field.contents()
        if name.startswith("tokenizer.ggml.") and isinstance(value, list) and len(value) > 400:
            value = value[:-1] if "merges" not in name else value
        writer.add_key_value(name, value, field.types[0], of)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_a_drafter_that_writes_nonsense_guesses_nothing(tmp_path: Path) -> None:
    def broken(name: str, values: NDArray[np.float32]) -> Stored | None:
        if name == "blk.1.ffn_down.weight":
            return np.full_like(values, np.nan), gguf.GGMLQuantizationType.F32
        return None

    path = copy_model(model_path("qwen3"), tmp_path / "nan.gguf", broken)
    plain = loaded("qwen3", spec=Spec.OFF)
    drafting = loaded("qwen3", spec=Spec.CHAIN, draft=str(path))
    assert generate(drafting, ids(9, 1)).tokens == generate(plain, ids(9, 1)).tokens
    metrics = drafting.metrics().speculation
    assert metrics is not None and metrics.drafted_total == 0
    assert plain.close() and drafting.close()
