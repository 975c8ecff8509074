"""What the bench measures, on tiny models: all figures are there, and the model is as before."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from engine import bench, cli, selftest
from engine.bench import Series, Wanted, measure
from engine.config import EngineConfig, SamplingParams
from engine.engine import Engine
from engine.errors import BadRequest, ContextOverflow
from engine.gguf import read_header
from engine.ops.cuda_probe import KernelTime
from engine.passes import Pass, Profile, pass_costs, profiles, weight_bytes
from engine.types import Request
from tests.engine.listener import Listener
from tests.engine.oracle import ARCHITECTURES, expected, model_path

CONFIG = EngineConfig(device="cpu", threads=2, max_ctx=256, max_concurrency=1)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    engine.start()
    engine.load(model_path("llama"), CONFIG)
    yield engine
    engine.close()


def test_every_figure_that_was_asked_for(engine: Engine) -> None:
    wanted = Wanted((20, 40), 4, (1, 70), 2, (1, 2, 8))
    assert wanted.longest == 80
    rounds: list[str] = []
    report = measure(engine, wanted, rounds.append)
    assert [(p.n_prompt, len(p.rate.values)) for p in report.prefill] == [(20, 2), (40, 2)]
    assert [d.context for d in report.decode] == [1, 70]
    assert all(min(d.rate.values) > 0 and d.of_read is None for d in report.decode)
    assert [(p.context, p.rows) for p in report.passes] == [
        (c, m) for c in (0, 70) for m in (1, 2, 8)
    ]
    assert all(p.seconds > 0 for p in report.passes) and report.weight_bytes > 1e6
    assert "round 2 of 2" in rounds
    facts = json.loads(json.dumps(report.facts()))
    assert facts["n_prompt"] == 20 and facts["prefill"][1]["n_prompt"] == 40
    assert facts["decode"][1]["context"] == 70 and len(facts["passes"]) == 6
    text = report.text()
    for word in ("prefill 40", "decode at 70", "pass 8 at 70", "first of 20", "peak memory"):
        assert word in text


def test_a_measured_model_still_answers_as_before(engine: Engine) -> None:
    truth = expected("llama")
    sampling = SamplingParams(temperature=0, max_tokens=48, ignore_eos=True)
    request = Request(ids=truth["ids_64"].tolist() + truth["ids_7"].tolist(), sampling=sampling)

    def written() -> list[int]:
        listener = Listener()
        engine.submit(request, listener)
        listener.end()
        return listener.tokens

    before = written()
    used = engine.use(lambda model: model.scheduler.pool.n_used)
    engine.use(lambda model: pass_costs(model, 64, (1, 32), repeats=5))
    assert engine.use(lambda model: model.scheduler.pool.n_used) == used
    assert written() == before and len(before) == 48


def test_what_cannot_be_measured_is_refused(engine: Engine) -> None:
    with pytest.raises(ContextOverflow, match="256"):
        measure(engine, Wanted((300,)))
    with pytest.raises(ContextOverflow, match="256"):
        engine.use(lambda model: pass_costs(model, 250, (32,)))
    with pytest.raises(BadRequest, match="graphics card"):
        engine.use(lambda model: profiles(model, 0, (1,)))


def test_a_report_of_a_card() -> None:
    report = bench.Report(
        (), (bench.Decode(4096, Series((500.0, 520.0)), 0.61),),
        (Pass(0, 1, 2e-3), Pass(0, 8, 2.2e-3)),
        (Profile(0, 1, (KernelTime("matmul", 1e-3, 100), KernelTime("norm", 1e-4, 50))),),
        4.43e12, 4 << 30, 1 << 30,
    )  # fmt: skip
    text = report.text()
    for word in ("61.0% of read", "1.10 of one", "matmul", "in  100, 10.00 each", "4,430 GB/s"):
        assert word in text
    assert json.dumps(report.facts())


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_bytes_of_a_token(architecture: str) -> None:
    header = read_header(model_path(architecture))
    whole = sum(info.n_bytes for info in header.infos.values())
    found = weight_bytes(header, on_card=False)
    tied = "output.weight" not in header.infos
    experts = sum(i.n_bytes for i in header.infos.values() if len(i.shape) == 3)
    assert 0 < found <= whole
    if tied and not experts:
        assert found == whole
    if experts:
        used = header.meta["qwen35moe.expert_used_count"] / header.meta["qwen35moe.expert_count"]
        assert found == pytest.approx(
            whole
            - experts * (1 - used)
            - (0 if tied else header.infos["token_embd.weight"].n_bytes)
        )


def test_a_self_test_without_a_card_says_why(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert cli.main(["selftest"]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "nvidia-ml-py" in err and err.count("\n") == 1


def test_a_self_test_tells_its_outcome(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Any] = []

    def run(device: str, progress: Any) -> Any:
        given.append(device)
        progress("testing", 1, 2)
        return SimpleNamespace(
            passed=True, facts=lambda: {"passed": True}, text=lambda: "All well."
        )

    monkeypatch.setattr(selftest, "run", run)
    assert cli.main(["selftest", "--device", "cuda:1"]) == 0
    assert capsys.readouterr().out == "All well.\n" and given == ["cuda:1"]
    assert cli.main(["selftest", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"passed": True}
