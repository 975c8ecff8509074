"""Faults of our own while answers are written."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import engine.engine as engine_module
from engine.config import EngineConfig, Precision, SamplingParams
from engine.engine import Engine
from engine.types import Failed, Finished, Request
from tests.engine.engines import running
from tests.engine.listener import Listener
from tests.engine.oracle import model_path

GREEDY = SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)


@pytest.fixture
def engine() -> Iterator[Engine]:
    with running(
        model_path("llama"), EngineConfig(threads=2, precision=Precision.EXACT, max_ctx=256)
    ) as engine:
        yield engine


def test_one_answers_fault_ends_that_answer_only(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept = engine_module.Answer.accept

    def faulty(self: engine_module.Answer, token: int) -> None:
        if self.sequence.tokens[0] == 7:
            raise RuntimeError("a fault of ours")
        accept(self, token)

    monkeypatch.setattr(engine_module.Answer, "accept", faulty)
    bad, good = Listener(), Listener()
    engine.submit(Request(ids=[7, 8, 9], sampling=GREEDY), bad)
    engine.submit(Request(ids=[5, 8, 9], sampling=GREEDY), good)
    failed = bad.end()
    assert isinstance(failed, Failed) and "not foreseen" in str(failed.error)
    assert isinstance(good.end(), Finished)
    monkeypatch.undo()
    again = Listener()
    engine.submit(Request(ids=[7, 8, 9], sampling=GREEDY), again)
    assert isinstance(again.end(), Finished)
