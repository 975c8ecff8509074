"""The engine when its device fails, and when somebody measures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.config import EngineConfig, Precision, SamplingParams
from engine.engine import Engine
from engine.errors import BadRequest, DeviceFault, OutOfMemory
from engine.types import Failed, Finished, Request
from tests.engine.listener import Listener
from tests.engine.oracle import model_path

CONFIG = EngineConfig(
    device="cpu", threads=2, precision=Precision.EXACT, max_ctx=512, prefill_chunk=64
)
LONG = Request(ids=[5, 6, 7], sampling=SamplingParams(max_tokens=400, ignore_eos=True))


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    engine.start()
    engine.load(model_path("llama"), CONFIG)
    yield engine
    engine.close()


def break_after(engine: Engine, steps: int, error: Exception) -> None:
    """Let the device fail once, in a later step."""

    def plant(model: Any) -> None:
        run, left = model.runner.run, [steps]

        def failing(*args: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise error
            return run(*args)

        model.runner.run = failing

    engine.use(lambda model: setattr(model, "runner", _Runner(model.runner)))
    engine.use(plant)


class _Runner:
    """The runner, with attributes that can be set."""

    def __init__(self, runner: Any) -> None:
        self.run, self.logits = runner.run, runner.logits


def test_a_fault_ends_all_requests_and_the_model_can_be_loaded_again(engine: Engine) -> None:
    break_after(engine, 6, DeviceFault("The card stopped with a fault: illegal address."))
    listeners = [Listener() for _ in range(3)]
    for listener in listeners:
        engine.submit(LONG, listener)
    for listener in listeners:
        end = listener.end()
        assert isinstance(end, Failed) and isinstance(end.error, DeviceFault)
    status = engine.status()
    assert (status.state, status.model, status.running) == ("empty", None, 0)
    engine.load(model_path("llama"), CONFIG)
    listener = Listener()
    engine.submit(
        Request(ids=[5], sampling=SamplingParams(max_tokens=3, ignore_eos=True)), listener
    )
    assert isinstance(listener.end(), Finished)


def test_short_memory_in_a_step_fails_its_requests_only(engine: Engine) -> None:
    break_after(engine, 3, OutOfMemory("The card ran out of memory."))
    listener = Listener()
    engine.submit(LONG, listener)
    end = listener.end()
    assert isinstance(end, Failed) and isinstance(end.error, OutOfMemory)
    assert engine.status().state == "ready"
    engine.submit(Request(ids=[5], sampling=SamplingParams(max_tokens=3)), listener)
    assert isinstance(listener.end(), Finished)


def test_work_with_the_loaded_model_comes_back_or_raises(engine: Engine) -> None:
    assert engine.use(lambda model: model.plan.device) == "cpu"
    with pytest.raises(ZeroDivisionError):
        engine.use(lambda model: 1 // 0)
    engine.unload()
    with pytest.raises(BadRequest, match="No model"):
        engine.use(lambda model: 0)
