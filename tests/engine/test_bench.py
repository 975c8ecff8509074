"""What the bench measures, on tiny models: all figures are there, and the model is as before."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine import bench, cli, selftest
from engine.bench import Series, Wanted, measure
from engine.config import EngineConfig, SamplingParams, Spec
from engine.draft.forced import forced
from engine.engine import Engine
from engine.errors import BadRequest, ContextOverflow
from engine.gguf import read_header
from engine.ops.base import StepInput
from engine.ops.cuda_probe import KernelTime
from engine.passes import Pass, Profile, pass_costs, profiles, tried, weight_bytes
from engine.runner import Runner
from engine.types import Draft, Request
from tests.engine.draft.drafts import draft_path, target_path
from tests.engine.engines import running
from tests.engine.listener import Listener
from tests.engine.oracle import ARCHITECTURES, expected, model_path

CONFIG = EngineConfig(device="cpu", threads=2, max_ctx=256, max_concurrency=1)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with running(model_path("llama"), CONFIG) as engine:
        yield engine


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


def test_drafts_bring_what_they_are_made_to(tmp_path: Path) -> None:
    draft = draft_path("dflash_qwen3", "full", "hf", tmp_path)
    config = replace(CONFIG, spec=Spec.CHAIN, draft=str(draft))
    with running(target_path("dflash_qwen3"), config) as engine:
        report = measure(engine, Wanted((8,), 40, (1,), 2, (1, 16, 32), accept=5))
        (found,) = report.forced
        assert found.accepted == 5.0 and 7 < found.rows <= 8  # the last draft has less room
        assert found.speedup == pytest.approx(found.accepted / found.steps_of_one)
        assert found.draft_ms > 0 and found.verify_ms > 0 and min(found.rate.values) > 0
        assert "accept 5.00" in report.text() and json.dumps(report.facts())
        after = engine.use(lambda model: (type(model.runner), model.speculation is not None))
        assert after == (Runner, True)


def test_a_tree_is_accepted_along_its_first_path() -> None:
    draft = Draft((10, 11, 20, 12), (-1, 0, -1, 1))
    assert forced(draft, 99, 1) == ((99,), (0,))
    assert forced(draft, 99, 3) == ((10, 11, 99), (0, 1, 2))
    assert forced(draft, 99, 9) == ((10, 11, 12, 99), (0, 1, 2, 4))


def test_guesses_of_a_pass_stand_where_a_tree_has_them() -> None:
    pages = np.zeros((1, 1), np.int32)
    index = np.arange(22, dtype=np.int32)
    step = tried(StepInput(index, 40 + index, np.zeros(22, np.int32), pages, index))
    assert step.tried.tolist() == [1]
    depth = {-1: 39}
    for row, (parent, position) in enumerate(zip(step.parents, step.positions, strict=True)):
        assert parent < row
        depth[row] = depth[int(parent)] + 1
        assert position == depth[row]
    assert max(step.positions) == 55 and len(set(zip(step.parents, index, strict=True))) == 22


def test_the_command_refuses_to_accept_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", str(model_path("llama")), "--accept", "0"]) == 2
    assert "--accept: found 0" in capsys.readouterr().err
