"""The engine on a card: load, generate, cancel, let go, short memory, faults, and the commands."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import cli, devices, perplexity
from engine.config import EngineConfig, Precision, SamplingParams
from engine.engine import Engine
from engine.errors import OutOfMemory
from engine.loading import load_model
from engine.ops.cuda import CudaOps
from engine.ops.cuda_trust import Distrust
from engine.ops.numpy_ops import NumpyOps
from engine.types import Finished, FinishReason, Request, TextDelta
from kernels.nvrtc import Nvrtc
from tests.engine import oracle
from tests.engine.listener import Listener
from tests.engine.oracle import expected, model_path
from tests.engine.test_neighbours import neighbours_change_no_bit
from tests.gpu.test_quantised_models import MIXES, VOCABULARY, build, nmse
from tests.gpu.test_quantised_models import step as step_of

ROOT = Path(__file__).parent.parent.parent
DENSE = ("llama", "qwen3")
CONFIG = EngineConfig(
    device="cuda:0", precision=Precision.EXACT, max_ctx=512, prefill_chunk=64, max_concurrency=4
)
GREEDY = SamplingParams(temperature=0, max_tokens=48, ignore_eos=True)


def generate(engine: Engine, ids: list[int], sampling: SamplingParams = GREEDY) -> Listener:
    listener = Listener()
    engine.submit(Request(ids=ids, sampling=sampling), listener)
    end = listener.end()
    assert isinstance(end, Finished), end
    return listener


@pytest.mark.parametrize("architecture", DENSE)
def test_greedy_text_equals_transformers(engine: Engine, architecture: str) -> None:
    truth = expected(architecture)
    info = engine.load(model_path(architecture), CONFIG)
    assert info.architecture == architecture
    assert generate(engine, truth["ids_7"].tolist()).tokens == truth["greedy"].tolist()
    parts = {p.kind: p.bytes for p in engine.metrics().memory}
    card = next(d for d in devices.gpus()[0] if d.id == "cuda:0")
    assert parts["model"] > 1e6 and parts["kv"] > 0 and parts["work"] > 0
    assert sum(parts.values()) == pytest.approx(card.memory_total, rel=0.01)


def test_many_at_once_equal_one_by_one(engine: Engine) -> None:
    engine.load(model_path("qwen3"), CONFIG)
    rng = np.random.default_rng(3)
    prompts = [rng.integers(3, 500, 5 + i).tolist() for i in range(4)]
    settings = [
        SamplingParams(temperature=1.0, seed=i, max_tokens=20 + i, ignore_eos=True)
        for i in range(4)
    ]
    alone = [generate(engine, p, s).tokens for p, s in zip(prompts, settings, strict=True)]
    listeners = [Listener() for _ in prompts]
    for prompt, sampling, listener in zip(prompts, settings, listeners, strict=True):
        engine.submit(Request(ids=prompt, sampling=sampling), listener)
    for listener in listeners:
        assert isinstance(listener.end(), Finished)
    assert [listener.tokens for listener in listeners] == alone


@pytest.mark.parametrize("architecture", oracle.ARCHITECTURES)
def test_neighbours_change_no_bit(engine: Engine, architecture: str) -> None:
    config = replace(CONFIG, precision=Precision.FAST, prefill_chunk=96, max_concurrency=5)
    engine.load(model_path(architecture), config)
    neighbours_change_no_bit(engine)


def test_cancel_one_of_several(engine: Engine) -> None:
    engine.load(model_path("llama"), CONFIG)
    first, second = Listener(), Listener()
    long = SamplingParams(max_tokens=450, ignore_eos=True)
    cancelled = engine.submit(Request(ids=[5, 6, 7], sampling=long), first)
    engine.submit(Request(ids=[8, 9], sampling=GREEDY), second)
    while not isinstance(first.next(), TextDelta):
        pass
    engine.cancel(cancelled)
    end = first.end()
    assert isinstance(end, Finished) and end.reason is FinishReason.CANCELLED
    assert isinstance(second.end(), Finished) and len(second.tokens) == 48


def test_memory_comes_back_and_models_change(engine: Engine, whole_card: Any) -> None:
    engine.load(model_path("llama"), CONFIG)
    engine.unload()
    before, _ = whole_card.memGetInfo()
    for architecture in (*DENSE, *DENSE):
        engine.load(model_path(architecture), CONFIG)
        generate(engine, [5, 6, 7])
    engine.unload()
    assert abs(whole_card.memGetInfo()[0] - before) < 8 << 20
    assert engine.status().state == "empty"


def test_a_model_that_does_not_fit_is_refused_before_anything_is_read(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*args: Any) -> Any:
        raise AssertionError("the card was touched")

    monkeypatch.setattr("engine.loading.make_ops", never)
    small = devices.Device("cuda:0", "cuda", "Small card", 1 << 30, 1 << 29)
    monkeypatch.setattr(devices, "gpus", lambda: ((small,), None))
    config = EngineConfig(device="cuda:0", max_ctx=16_777_216)
    with pytest.raises(OutOfMemory, match=r"weights .* context .* work space .*free"):
        engine.load(model_path("llama"), config)


def test_no_more_memory_is_needed_after_a_load(engine: Engine, whole_card: Any) -> None:
    engine.load(model_path("qwen3"), CONFIG)
    held: list[int] = []
    size, _ = whole_card.memGetInfo()
    while size > 1 << 20:
        try:
            held.append(whole_card.malloc(size))
        except RuntimeError:
            size //= 2
    try:
        listeners = [Listener() for _ in range(4)]
        for n, listener in enumerate(listeners):
            ids = list(range(3, 3 + 40 * n + 1))
            engine.submit(Request(ids=ids, sampling=GREEDY), listener)
        for listener in listeners:
            assert isinstance(listener.end(), Finished)
    finally:
        for address in held:
            whole_card.free(address)


FAULT = """
import ctypes
from dataclasses import replace
from engine.engine import Engine
from engine.errors import DeviceFault
from engine.types import Failed, Finished
from tests.gpu.test_engine import CONFIG, GREEDY
from tests.engine.listener import Listener
from tests.engine.oracle import expected, model_path
from engine.types import Request
from kernels import variants

engine = Engine()
engine.start()
engine.load(model_path("llama"), CONFIG)

def plant(model):
    card = model.ops.card
    card.use()
    kernel = card.kernel(variants.probe(), "read")
    wild = ctypes.c_void_p(0x1234500000)
    card.launch(kernel, (1, 1, 1), 512, (wild, ctypes.c_size_t(1 << 20), wild))

engine.use(plant)
ids = expected("llama")["ids_7"].tolist()
listeners = [Listener(), Listener()]
for listener in listeners:
    engine.submit(Request(ids=ids, sampling=GREEDY), listener)
ends = [listener.end() for listener in listeners]
assert isinstance(ends[0], Failed) and isinstance(ends[0].error, DeviceFault), ends
print(ends[0].error)
assert engine.status().state == "empty"
try:
    engine.load(model_path("llama"), CONFIG)
except DeviceFault as error:
    assert "restart" in str(error) and "processor" in str(error), error
else:
    raise AssertionError("a fault lasts as long as the process")
engine.load(model_path("llama"), replace(CONFIG, device="cpu", threads=2))
engine.submit(Request(ids=ids, sampling=GREEDY), listeners[0])
assert isinstance(listeners[0].end(), Finished), listeners[0].events[-1]
assert listeners[0].tokens[-48:] == expected("llama")["greedy"].tolist()
assert engine.close()
print("loaded on the processor")
"""


def test_a_fault_is_told_and_the_processor_goes_on() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAULT], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fault" in done.stdout and "loaded on the processor" in done.stdout


@pytest.mark.parametrize("architecture", DENSE)
def test_perplexity_is_that_of_transformers(architecture: str) -> None:
    truth = expected(architecture)
    ids = truth["ids_200"].tolist()
    targets = np.asarray(ids[1:])
    want = perplexity.nll(truth["logits_200"][:-1], targets)
    model = load_model(model_path(architecture), replace(CONFIG, precision=Precision.FAST))
    got = np.concatenate([piece.copy() for piece in model.logits(ids)])
    model.close()
    assert perplexity.nll(got[:-1], targets) == pytest.approx(want, rel=0.01)


@pytest.mark.parametrize("precision", Precision)
def test_the_demo_model_s_perplexity_is_that_of_the_processor(
    demo_model: Path, fixtures: Path, precision: Precision
) -> None:
    text = (fixtures / "smollm2" / "text.txt").read_text(encoding="utf-8")
    found = []
    for device in ("cpu", "cuda:0"):
        config = EngineConfig(device=device, precision=precision, max_ctx=512)
        model = load_model(demo_model, config)
        found.append(perplexity.measure(model, text, window=512).value)
        model.close()
    print(f"\n{precision}: {found[1]:.4f} on the card, {found[0]:.4f} on the processor")
    assert found[1] == pytest.approx(found[0], rel=0.01)


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert cli.main([*arguments, "--json", "--device", "cuda:0"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


@pytest.mark.alone
def test_the_bench_on_a_card(capsys: pytest.CaptureFixture[str]) -> None:
    path = str(model_path("qwen3"))
    flags = ("-p", "64,100", "-n", "8", "-d", "0,70", "-r", "2", "--verify", "--profile")
    facts = command(capsys, "bench", path, *flags)
    assert facts["device"] == "cuda:0" and facts["read_gb_s"] > 50
    assert {p["rows"] for p in facts["passes"]} >= {1, 2, 4, 8, 16, 32} and all(
        p["seconds"] > 0 for p in facts["passes"]
    )
    assert all(0 < d["of_read"] < 1 for d in facts["decode"])
    names = {k["name"] for p in facts["profiles"] for k in p["kernels"]}
    assert {"embed", "add_norm", "attention", "swiglu"} <= names


@pytest.mark.alone
def test_the_self_test_passes(capsys: pytest.CaptureFixture[str]) -> None:
    facts = command(capsys, "selftest")
    assert facts["passed"], [c for c in facts["checks"] if not c["passed"]]
    assert facts["int8_tera_s"] > facts["f16_tera_s"] > 10


@pytest.mark.parametrize(
    "distrust", (Distrust(unpacked=frozenset({12})), Distrust(int8=frozenset({12, 14})))
)
def test_what_is_wrong_on_a_card_is_not_used(distrust: Distrust, kernel_cache: Path) -> None:
    seed = int(np.random.default_rng().integers(1 << 30))
    ops, reference = CudaOps("cuda:0", Precision.FAST, kernel_cache, None, distrust), NumpyOps()
    try:
        build(ops, np.random.default_rng(seed), MIXES[0], 64)
        build(reference, np.random.default_rng(seed), MIXES[0], 64)
        tokens = np.random.default_rng(seed).integers(0, VOCABULARY, 60)
        for start, end in ((0, 40), (40, 60)):
            step = step_of(tokens[start:end], start)
            assert nmse(ops.run(step), reference.run(step)) < (2e-3 if distrust.unpacked else 1e-5)
        assert len(ops.notes()) == 1
    finally:
        ops.close()


def test_code_for_an_older_card_runs_as_ptx(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known = Nvrtc.__init__

    def older(self: Nvrtc, newest: int = 99) -> None:
        known(self, newest)
        self.architectures = tuple(a for a in self.architectures if a < 90)

    monkeypatch.setattr(Nvrtc, "__init__", older)
    ops = CudaOps("cuda:0", Precision.FAST, tmp_path)
    try:
        oracle.record(ops, "qwen3")
        truth = expected("qwen3")
        got = ops.run(oracle.step((truth["ids_7"].tolist(), 0, [3])))
        assert (
            np.square(got - truth["logits_7"]).mean() < 1e-4 * np.square(truth["logits_7"]).mean()
        )
    finally:
        ops.close()
