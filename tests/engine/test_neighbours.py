"""A request whose numbers overflow, beside others: it alone fails, and nobody's text changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from engine.config import EngineConfig, Precision, SamplingParams
from engine.engine import Engine
from engine.errors import NumericError
from engine.ops.base import Ops
from engine.ops.cpu import CpuOps
from engine.ops.numpy_ops import NumpyOps
from engine.runner import BadLogits, Runner
from engine.sampling import Sampler
from engine.types import (
    Draft,
    Event,
    Failed,
    Finished,
    Request,
    Sequence,
    Span,
    Started,
    Step,
    TextDelta,
)
from tests.engine.engines import ids, running
from tests.engine.listener import Listener
from tests.engine.model_copies import Stored, copy_model
from tests.engine.oracle import ARCHITECTURES, LIMITS, model_path, record

POISON = 511
"""The token that overflows in layer 3 of 4; no other one does."""
COLUMN = 7
"""Of the residual: only the poison has anything there."""
INTO = ("attn_output", "ssm_out", "ffn_down", "ffn_down_exps", "ffn_down_shexp")
"""The matrices that write to the residual."""


def with_poison(name: str, values: NDArray[np.float32]) -> Stored | None:
    _, _, part = name.removesuffix(".weight").rpartition(".")
    if name == "token_embd.weight":
        values = values.copy()
        values[:, COLUMN] = 0
        values[POISON, COLUMN] = 8
    elif part in INTO:
        values = values.copy()
        values[..., COLUMN, :] = 0
    elif name in ("blk.3.ffn_up.weight", "blk.3.ffn_up_shexp.weight"):
        values = values.copy()
        values[..., COLUMN] = 3e38
    else:
        return None
    return values, gguf.GGMLQuantizationType.F32


@pytest.fixture(params=ARCHITECTURES)
def engine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engine]:
    folder = tmp_path_factory.mktemp("poison")
    path = copy_model(model_path(request.param), folder / "model.gguf", with_poison)
    with running(path, EngineConfig(threads=2, max_ctx=512, precision=Precision.EXACT)) as engine:
        yield engine


class Heard(Listener):
    """Notes when its request ends among others."""

    def __init__(self, ended: list[Heard]) -> None:
        super().__init__()
        self.ended = ended

    def __call__(self, event: Event) -> None:
        if isinstance(event, (Finished, Failed)):
            self.ended.append(self)
        super().__call__(event)


def together(engine: Engine, *requests: Request) -> list[Heard]:
    """The requests, begun at once; what they heard, in the order in which they ended."""
    gate, ended = threading.Event(), list[Heard]()
    heard = [Heard(ended) for _ in requests]
    engine.submit(Request(ids=[5], sampling=SamplingParams(max_tokens=1)), lambda _: gate.wait(30))
    for request, listener in zip(requests, heard, strict=True):
        engine.submit(request, listener)
    gate.set()
    for listener in heard:
        listener.end()
    assert set(ended) == set(heard)
    return ended


def neighbours_change_no_bit(engine: Engine) -> None:
    """What is written, and how likely each token was, beside others that read and write as when alone."""
    sampling = SamplingParams(temperature=0, max_tokens=20, ignore_eos=True)
    requests = [
        Request(ids=ids(n, seed=n), sampling=sampling, prefix_cache=False, logprobs=2)
        for n in (40, 1, 230, 33, 100)
    ]

    def heard(listener: Listener) -> list[object]:
        assert isinstance(listener.events[-1], Finished), listener.events[-1]
        deltas = [e for e in listener.events if isinstance(e, TextDelta)]
        return [listener.tokens, [likely for e in deltas for likely in e.logprobs]]

    alone = [heard(one) for request in requests for one in together(engine, request)]
    assert sorted(map(str, map(heard, together(engine, *requests)))) == sorted(map(str, alone))


@pytest.mark.parametrize("alike", (None, 32))
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_neighbours_change_no_bit(
    architecture: str, alike: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CpuOps, "alike", lambda self: alike)
    config = EngineConfig(
        threads=2, max_ctx=512, prefill_chunk=96, max_concurrency=5, precision=Precision.FAST
    )
    with running(model_path(architecture), config) as engine:
        neighbours_change_no_bit(engine)


def test_one_that_overflows_late_spoils_nobody_beside_it(engine: Engine) -> None:
    greedy = SamplingParams(
        temperature=0, max_tokens=24, ignore_eos=True, logit_bias={POISON: -100.0}
    )

    def alone(prompt: list[int]) -> list[int]:
        listener = Listener()
        engine.submit(Request(ids=prompt, sampling=greedy, prefix_cache=False), listener)
        assert isinstance(listener.end(), Finished)
        return listener.tokens

    prompts = [ids(70, seed=1), ids(66, seed=2)]
    expected = [alone(prompt) for prompt in prompts]
    forced = replace(greedy, logit_bias={POISON: 100.0})
    for bad in (
        Request(ids=[*ids(66, seed=3), POISON], sampling=greedy),  # in its prompt
        Request(ids=ids(12, seed=4), sampling=forced),  # in its answer
    ):
        first, *others = together(
            engine, *(Request(ids=prompt, sampling=greedy) for prompt in prompts), bad
        )
        end = first.events[-1]
        assert isinstance(end, Failed) and isinstance(end.error, NumericError)
        assert "layer 3 of 4" in str(end.error)
        assert sorted(other.tokens for other in others) == sorted(expected)
    for prompt, answer in zip(prompts, expected, strict=True):
        more = [*prompt, *answer, *ids(5, seed=5)]
        wanted, listener = alone(more), Listener()
        engine.submit(Request(ids=more, sampling=greedy), listener)
        assert isinstance(listener.end(), Finished) and listener.tokens == wanted
        started = listener.events[1]
        assert isinstance(started, Started) and started.reused_tokens >= 64


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    "make", (NumpyOps, lambda: CpuOps(2, Precision.FAST)), ids=("numpy", "cpu")
)
def test_looking_for_the_layer_touches_one_sequence(
    architecture: str, make: Callable[[], Ops]
) -> None:
    ops = make()
    runner = Runner(ops, LIMITS, record(ops, architecture).cfg.shape)
    params = SamplingParams(temperature=0)
    sequences = [
        Sequence(i, ids(6, seed=i), 6, params, pages=[2 * i, 2 * i + 1], slot=i) for i in range(3)
    ]
    samplers = {i: Sampler(params, 512, 0) for i in range(3)}
    runner.run(Step(tuple(Span(s, 0, tuple(s.tokens), True) for s in sequences)), samplers)
    draft = Draft.chain([8, 9])
    spans = tuple(
        Span(s, 6, (7, *d.tokens) if d else (7,), True, d)
        for s, d in zip(sequences, (draft, None, draft), strict=True)
    )
    runner.run(Step(spans), samplers)
    for i in (0, 2):
        ops.accept(i, (0, 1))

    def held(i: int) -> list[bytes]:
        page = np.zeros(ops.page_bytes(), np.uint8)
        found = []
        for number in sequences[i].pages:
            ops.read_page(number, page)
            found.append(page.tobytes())
        if ops.state_bytes():
            state = np.zeros(ops.state_bytes(), np.uint8)
            ops.read_state(i, state)
            found.append(state.tobytes())
        return found

    before = [held(i) for i in range(3)]
    for failing in (1, 2):
        assert "finite" in str(runner.explain(spans[failing], BadLogits()))
        others = [i for i in range(3) if i != failing]
        assert [held(i) for i in others] == [before[i] for i in others]
        before = [held(i) for i in range(3)]
    ops.close()
