"""The engine end to end on a tiny model: requests in, events out, whatever else happens."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import engine.engine as engine_module
from engine import devices
from engine.config import EngineConfig, Precision, SamplingParams
from engine.devices import Device
from engine.engine import Engine
from engine.errors import (
    BadRequest,
    ContextOverflow,
    EngineError,
    KernelError,
    LoadCancelled,
    ModelFileError,
    NumericError,
    OutOfMemory,
)
from engine.gguf import open_model
from engine.loading import LoadedModel, load_model
from engine.types import (
    Accepted,
    Event,
    Failed,
    Finished,
    FinishReason,
    LoadProgress,
    PrefillProgress,
    Request,
    Started,
)
from tests.engine import engines
from tests.engine.engines import greedy, ids, running, started
from tests.engine.listener import Listener
from tests.engine.oracle import ARCHITECTURES, expected, model_path

CONFIG = EngineConfig(threads=2, precision=Precision.EXACT, max_ctx=512, prefill_chunk=64)
GREEDY = greedy(48)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running(model_path("llama"), CONFIG) as engine:
        yield engine


@pytest.fixture
def own_engine() -> Iterator[Engine]:
    """An engine that the test may break."""
    engine = started(model_path("llama"), CONFIG)
    yield engine
    engine.close()


def generate(engine: Engine, ids: list[int], sampling: SamplingParams = GREEDY) -> Listener:
    return engines.generate(engine, ids, sampling)


def error_of(engine: Engine, request: Request) -> Exception:
    listener = Listener()
    engine.submit(request, listener)
    end = listener.end()
    assert isinstance(end, Failed), end
    return end.error


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_greedy_text_equals_transformers(architecture: str) -> None:
    truth = expected(architecture)
    with running(model_path(architecture), CONFIG) as engine:
        assert generate(engine, truth["ids_7"].tolist()).tokens == truth["greedy"].tolist()


def test_events_come_in_order_with_their_numbers(engine: Engine) -> None:
    prompt = ids(150, seed=1)
    listener = generate(engine, prompt)
    kinds = [type(e) for e in listener.events]
    assert kinds[:2] == [Accepted, Started] and kinds[-1] is Finished
    reads = [e for e in listener.events if isinstance(e, PrefillProgress)]
    assert [e.done for e in reads] == sorted(e.done for e in reads) and reads[-1].done == 150
    assert len(reads) > 1
    end = listener.events[-1]
    assert isinstance(end, Finished) and end.reason is FinishReason.LENGTH
    usage = end.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (150, 48)
    assert usage.first_token_s is not None and usage.first_token_s > 0
    assert usage.prefill_s > 0 and usage.decode_s > 0 and usage.decode_rate
    assert engine.tokenizer is not None
    assert listener.text == engine.tokenizer.decode(listener.tokens)


@pytest.mark.parametrize(
    ("n_prompt", "most", "full"), [(500, None, True), (500, 5, False), (500, 12, True)]
)
def test_a_length_tells_whether_the_context_was_full(
    engine: Engine, n_prompt: int, most: int | None, full: bool
) -> None:
    sampling = SamplingParams(temperature=0, max_tokens=most, ignore_eos=True)
    end = generate(engine, ids(n_prompt), sampling).events[-1]
    assert isinstance(end, Finished) and end.reason is FinishReason.LENGTH
    assert end.context_full is full


def test_many_at_once_equal_one_by_one(engine: Engine) -> None:
    settings = [
        SamplingParams(temperature=1.0, seed=i, max_tokens=20 + i, ignore_eos=True)
        for i in range(6)
    ]
    prompts = [ids(5 + 37 * i, seed=10 + i) for i in range(6)]
    alone = [generate(engine, p, s).tokens for p, s in zip(prompts, settings, strict=True)]
    listeners = [Listener() for _ in prompts]
    for prompt, sampling, listener in zip(prompts, settings, listeners, strict=True):
        engine.submit(Request(ids=prompt, sampling=sampling), listener)
    for listener in listeners:
        assert isinstance(listener.end(), Finished)
    assert [listener.tokens for listener in listeners] == alone


def test_other_seed_other_text(engine: Engine) -> None:
    texts = {
        tuple(
            generate(engine, ids(5), SamplingParams(temperature=1.5, seed=s, max_tokens=16)).tokens
        )
        for s in (1, 2, 3)
    }
    assert len(texts) == 3


def test_a_reused_prefix_gives_the_same_text(engine: Engine) -> None:
    prompt = ids(200, seed=3)
    first = generate(engine, prompt)
    again = generate(engine, prompt)
    started = again.events[1]
    assert isinstance(started, Started) and started.reused_tokens == 192
    assert again.tokens == first.tokens


def test_equal_prompts_at_once_hold_their_prefix_once(engine: Engine) -> None:
    prompt = ids(200, seed=4)
    listeners = [Listener() for _ in range(3)]
    for listener in listeners:
        engine.submit(Request(ids=prompt, sampling=GREEDY), listener)
    ends = [listener.end() for listener in listeners]
    assert sorted(e.usage.reused_tokens for e in ends) == [0, 192, 192]
    assert len({tuple(listener.tokens) for listener in listeners}) == 1


def test_cancel_ends_at_the_next_step(engine: Engine) -> None:
    listener = Listener()
    sampling = SamplingParams(temperature=0, ignore_eos=True)
    request_id = engine.submit(Request(ids=ids(5), sampling=sampling), listener)
    while not listener.tokens:
        listener.next()
    engine.cancel(request_id)
    end = listener.end()
    assert isinstance(end, Finished) and end.reason is FinishReason.CANCELLED
    assert len(listener.tokens) < 400
    engine.cancel(request_id)
    engine.cancel(987654)


def test_what_takes_long_to_encode_holds_nobody_up_and_can_be_cancelled(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    template, release = own_engine.chat_template, threading.Event()
    assert template is not None

    def slow(*_: object, **__: object) -> list[int]:
        assert release.wait(30)
        return ids(5)

    writing, waiting = Listener(), Listener()
    endless = SamplingParams(temperature=0, ignore_eos=True)
    own_engine.submit(Request(ids=ids(5), sampling=endless), writing)
    while not writing.tokens:
        writing.next()
    monkeypatch.setattr(type(template), "encode", slow)
    messages = [{"role": "user", "content": "hello"}]
    request_id = own_engine.submit(Request(messages=messages, sampling=GREEDY), waiting)
    n = len(writing.tokens)
    while len(writing.tokens) < n + 5:
        writing.next()
    own_engine.cancel(request_id)
    end = waiting.end()
    assert isinstance(end, Finished) and end.reason is FinishReason.CANCELLED
    release.set()
    assert waiting.queue.empty()


def test_a_stop_string_cuts_the_text(engine: Engine) -> None:
    prompt = ids(9, seed=5)
    text = generate(engine, prompt).text
    stop = text[10:14]
    listener = generate(engine, prompt, SamplingParams(temperature=0, max_tokens=48, stop=(stop,)))
    end = listener.events[-1]
    assert isinstance(end, Finished) and end.reason is FinishReason.STOP and end.stop == stop
    assert listener.text == text[: text.index(stop)]


def test_answer_lengths_at_the_edges(engine: Engine) -> None:
    none = generate(engine, ids(5), SamplingParams(max_tokens=0))
    assert none.tokens == [] and isinstance(none.events[-1], Finished)
    one = generate(engine, ids(5), SamplingParams(max_tokens=1))
    assert len(one.tokens) <= 1
    full = generate(engine, ids(500), SamplingParams(temperature=0, ignore_eos=True))
    assert len(full.tokens) == 12


def test_what_cannot_be_served_says_why(engine: Engine) -> None:
    bad = [
        (Request(ids=[]), "at least one token"),
        (Request(ids=[1, 999_999]), "999999 is outside"),
        (Request(), "found 0"),
        (Request(ids=[1], text="a"), "found 2"),
    ]
    for request, words in bad:
        error = error_of(engine, request)
        assert isinstance(error, BadRequest) and words in str(error)
    overflow = error_of(engine, Request(ids=ids(600)))
    assert isinstance(overflow, ContextOverflow)
    assert "600" in str(overflow) and "512" in str(overflow)
    assert generate(engine, ids(3)).tokens


def test_text_and_messages_are_requests_too(engine: Engine) -> None:
    for request in (
        Request(text="the thing", sampling=GREEDY),
        Request(messages=[{"role": "user", "content": "hello"}], sampling=GREEDY),
    ):
        listener = Listener()
        engine.submit(request, listener)
        assert isinstance(listener.end(), Finished)
        assert listener.tokens


def test_without_a_model_a_request_is_refused() -> None:
    engine = Engine()
    engine.start()
    assert "No model" in str(error_of(engine, Request(ids=[1])))
    assert engine.status().state == "empty"
    engine.close()
    assert engine.status().state == "closed"
    with pytest.raises(BadRequest):
        engine.submit(Request(ids=[1]), Listener())


def test_a_failed_load_leaves_the_former_model(own_engine: Engine, tmp_path: Path) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(model_path("qwen3").read_bytes()[:100_000])
    listener = Listener()
    own_engine.submit(
        Request(ids=ids(5), sampling=SamplingParams(temperature=0, ignore_eos=True)), listener
    )
    with pytest.raises(ModelFileError):
        own_engine.load(bad, CONFIG)
    assert own_engine.status().state == "ready"
    end = listener.end()
    assert isinstance(end, Finished) and end.reason is FinishReason.LENGTH
    assert generate(own_engine, expected("llama")["ids_7"].tolist()).tokens == (
        expected("llama")["greedy"].tolist()
    )


def test_where_memory_holds_one_model_the_former_goes_first_and_comes_back(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_alone(path: Path, *rest: object) -> LoadedModel:
        if own_engine.status().model is not None:
            raise OutOfMemory("Too little for two.")
        if path.name == "missing.gguf":
            raise ModelFileError("It is not there.")
        return load_model(path, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(engine_module, "load_model", only_alone)
    assert own_engine.load(model_path("qwen3"), CONFIG).architecture == "qwen3"
    with pytest.raises(ModelFileError):
        own_engine.load(Path("missing.gguf"), CONFIG)
    model = own_engine.status().model
    assert model is not None and model.architecture == "qwen3"
    assert generate(own_engine, ids(4)).tokens


def test_a_load_can_be_cancelled(own_engine: Engine) -> None:
    cancel = threading.Event()

    def stop_early(progress: LoadProgress) -> None:
        cancel.set()

    with pytest.raises(LoadCancelled):
        own_engine.load(model_path("qwen3"), CONFIG, stop_early, cancel)
    model = own_engine.status().model
    assert model is not None and model.architecture == "llama"
    assert generate(own_engine, ids(4)).tokens


def test_a_load_can_be_cancelled_while_kernels_are_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, closed, cancel = threading.Event(), threading.Event(), threading.Event()
    stages = []

    class SlowOps:
        def __init__(self, *_: object) -> None:
            gate.wait(30)

        def close(self) -> None:
            closed.set()

    def on_progress(progress: LoadProgress) -> None:
        stages.append(progress.stage)
        cancel.set()

    monkeypatch.setattr("engine.ops.cpu.CpuOps", SlowOps)
    with pytest.raises(LoadCancelled):
        load_model(model_path("llama"), CONFIG, on_progress, cancel)
    assert stages == ["preparing"] and not gate.is_set()
    gate.set()
    assert closed.wait(10), "what comes after all is freed"


def test_a_load_can_be_cancelled_while_its_program_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from engine.ops.cpu import CpuOps

    gate, closed, cancel = threading.Event(), threading.Event(), threading.Event()
    allocate, close = CpuOps.allocate, CpuOps.close

    def slow(self: CpuOps, *args: Any) -> None:
        cancel.set()
        gate.wait(30)
        allocate(self, *args)

    def told(self: CpuOps) -> None:
        close(self)
        closed.set()

    monkeypatch.setattr(CpuOps, "allocate", slow)
    monkeypatch.setattr(CpuOps, "close", told)
    with pytest.raises(LoadCancelled):
        load_model(model_path("llama"), CONFIG, cancel=cancel)
    assert not closed.is_set(), "it is in use"
    gate.set()
    assert closed.wait(30)


def test_a_load_can_be_cancelled_inside_a_large_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.weights._PIECE", 4096)
    cancel = threading.Event()
    read: list[int] = []

    def on_progress(progress: LoadProgress) -> None:
        if progress.stage == "reading":
            read.append(progress.done)
            cancel.set()

    with pytest.raises(LoadCancelled):
        load_model(model_path("llama"), CONFIG, on_progress, cancel)
    assert read == [4096]


def test_loading_another_model_ends_what_runs(own_engine: Engine) -> None:
    listener = Listener()
    sampling = SamplingParams(temperature=0, ignore_eos=True)
    own_engine.submit(Request(ids=ids(5), sampling=sampling), listener)
    while not listener.tokens:
        listener.next()
    stages = []
    info = own_engine.load(model_path("qwen3"), CONFIG, lambda p: stages.append(p.stage))
    assert info.architecture == "qwen3" and {"reading", "warming up"} <= set(stages)
    assert isinstance(listener.end(), Finished)
    truth = expected("qwen3")
    assert generate(own_engine, truth["ids_7"].tolist()).tokens == truth["greedy"].tolist()
    own_engine.unload()
    assert own_engine.status().state == "empty" and own_engine.tokenizer is None


def test_nan_names_the_layer(tmp_path: Path) -> None:
    with open_model(model_path("llama")) as file:
        good = file.tensors["blk.2.ffn_down.weight"].data.tobytes()
    data = model_path("llama").read_bytes()
    at = data.index(good)
    broken = tmp_path / "nan.gguf"
    broken.write_bytes(data[:at] + b"\x00\x7e" * (len(good) // 2) + data[at + len(good) :])
    with running(broken, CONFIG) as engine:
        error = error_of(engine, Request(ids=ids(5)))
    assert isinstance(error, NumericError) and "layer 2 of 4" in str(error)


def test_a_failing_step_fails_its_requests_only(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = own_engine._model
    assert model is not None
    with monkeypatch.context() as patch:

        def fail(*_: object) -> None:
            raise RuntimeError("boom")

        patch.setattr(model.runner.ops, "run", fail)
        error = error_of(own_engine, Request(ids=ids(5)))
        assert isinstance(error, KernelError) and "boom" in str(error)
    assert generate(own_engine, ids(5)).tokens
    model.scheduler.pool.check()


def test_a_listener_that_raises_harms_nobody(own_engine: Engine) -> None:
    def bad(event: Event) -> None:
        raise RuntimeError("listener")

    own_engine.submit(Request(ids=ids(5), sampling=GREEDY), bad)
    assert generate(own_engine, ids(5)).tokens
    assert own_engine.status().running == 0


def test_metrics_count_what_happened(own_engine: Engine) -> None:
    generate(own_engine, ids(100, seed=8))
    metrics = own_engine.metrics()
    assert metrics.prompt_tokens_total == 100
    assert metrics.completion_tokens_total == 47
    assert metrics.context_used == 147 and metrics.context_max == 512
    assert metrics.prefill_rate > 0 and metrics.decode_rate > 0
    assert metrics.first_token_s is not None
    assert metrics.running == 0 and metrics.pages_used == 0 and metrics.pages_total > 0
    kinds = {part.kind: part.bytes for part in metrics.memory}
    assert kinds["model"] > 0 and kinds["kv"] > 0 and kinds["free"] > 0


@pytest.mark.parametrize("held", [0, 1 << 40])
def test_owners_of_memory_sum_to_all_of_it(
    own_engine: Engine, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    pc = Device("cpu", "cpu", "Test PC", 16 << 30, 12 << 30, 4)
    monkeypatch.setattr(devices, "cpu", lambda: pc)
    monkeypatch.setattr(devices, "own_memory", lambda: held)
    own_engine._memory_at = 0.0
    memory = {part.kind: part.bytes for part in own_engine.metrics().memory}
    assert sum(memory.values()) == pc.memory_total
    owned = memory["model"] + memory["kv"] + memory["work"]
    # What was never written is still free for the system, and is not the memory of other programs.
    assert memory["other"] == (4 << 30) - (owned if held else 0)


def test_a_card_that_is_not_there_is_said_at_load(own_engine: Engine) -> None:
    with pytest.raises(BadRequest, match="cuda:0"):
        own_engine.load(model_path("llama"), EngineConfig(device="cuda:0"))
    assert generate(own_engine, ids(4)).tokens


def test_close_while_generating_ends_the_answer(own_engine: Engine) -> None:
    listener = Listener()
    sampling = SamplingParams(temperature=0, ignore_eos=True)
    own_engine.submit(Request(ids=ids(5), sampling=sampling), listener)
    while not listener.tokens:
        listener.next()
    assert own_engine.close(timeout=5)
    end = listener.end()
    assert isinstance(end, Finished) and end.reason is FinishReason.CANCELLED


def test_every_error_is_fit_to_be_shown(engine: Engine) -> None:
    for request in (Request(ids=[]), Request(ids=ids(600))):
        error = error_of(engine, request)
        assert isinstance(error, EngineError) and str(error).endswith(".")
