"""The engine when its device fails, and when somebody measures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from engine import loading
from engine.config import EngineConfig, Precision, SamplingParams
from engine.devices import Device, cpu
from engine.engine import Engine
from engine.errors import BadRequest, DeviceFault, KernelError, OutOfMemory
from engine.types import Failed, Finished, Request
from tests.engine.engines import started
from tests.engine.listener import Listener
from tests.engine.oracle import model_path

CONFIG = EngineConfig(
    device="cpu", threads=2, precision=Precision.EXACT, max_ctx=512, prefill_chunk=64
)
LONG = Request(ids=[5, 6, 7], sampling=SamplingParams(max_tokens=400, ignore_eos=True))


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = started(model_path("llama"), CONFIG)
    yield engine
    engine.close()


def break_after(engine: Engine, steps: int, error: Exception) -> None:
    """Let the device fail once, in a later step."""

    def plant(model: Any) -> None:
        launch, left = model.runner.launch, [steps]

        def failing(*args: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise error
            return launch(*args)

        model.runner.launch = failing

    engine.use(lambda model: setattr(model, "runner", _Runner(model.runner)))
    engine.use(plant)


class _Runner:
    """The runner, with attributes that can be set."""

    def __init__(self, runner: Any) -> None:
        self.launch, self.logits = runner.launch, runner.logits
        self.collect, self.land = runner.collect, runner.land


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


def test_a_card_that_fails_hands_over_to_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    card = Device("cuda:0", "cuda", "RTX", 24 << 30, 23 << 30)
    monkeypatch.setattr("engine.loading.devices", lambda: (cpu(), card))
    make = loading.make_ops

    def failing(plan: Any, *rest: Any) -> Any:
        if plan.device != "cpu":
            raise KernelError("The GPU's kernels failed.")
        return make(plan, *rest)

    monkeypatch.setattr(loading, "make_ops", failing)
    model = loading.load_model(model_path("llama"), replace(CONFIG, device="auto"))
    try:
        assert model.info.device == "cpu"
        assert "cuda:0 failed. The GPU's kernels failed." in model.info.notes[0]
    finally:
        model.close()
    with pytest.raises(KernelError):
        loading.load_model(model_path("llama"), replace(CONFIG, device="cuda:0"))


def test_the_former_model_leaves_the_card_before_the_processor_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    card = Device("cuda:0", "cuda", "RTX", 24 << 30, 23 << 30)
    monkeypatch.setattr("engine.loading.devices", lambda: (cpu(), card))

    def short(plan: Any, *rest: Any) -> Any:
        raise OutOfMemory("The card is full.")

    monkeypatch.setattr(loading, "make_ops", short)
    with pytest.raises(OutOfMemory):
        loading.load_model(model_path("llama"), replace(CONFIG, device="auto"), leaving=1 << 30)
