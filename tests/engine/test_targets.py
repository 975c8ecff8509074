"""The wanted figures and the run that judges them, with a small model and a peer that only answers."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.engine import Engine
from tests.bench import compare_llama_cpp as compare
from tests.bench import limited, memory, synth_draft, targets
from tests.engine.oracle import model_path
from tests.engine.test_compare import peer

__all__ = ["peer"]  # a fixture

COMMANDS = {
    "speed": ["tests.bench.compare_llama_cpp", "-p", "20", "-n", "4", "-r", "1", "--passes", "7,8"],
    "api": ["tests.bench.no_such_module"],
    "drafts": ["tests.bench.compare_llama_cpp"],
}
RUNS = [
    {
        "issue": 4, "file": "small", "kind": "speed",
        "wanted": {
            "decode at 0": {"ratio": 0.001}, "pass of 8 at 0": {"most": 1e-6},
            "pass of 7 at 0": {"ratio": 1.0}, "pass of 8 at 0 in passes of one": {"least": 1e-6},
        },
    },
    {"issue": 3, "file": "small", "kind": "api", "wanted": {"streamed token, ms": {"most": 1.0}}},
    {"issue": 5, "file": "absent", "kind": "drafts", "wanted": {"forced": {"least": 1.0}}},
]  # fmt: skip


def cells(table: str) -> dict[str, list[str]]:
    """Rows of the table by what they tell."""
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {row[2]: row for row in rows}


@pytest.mark.skipif(os.name == "nt", reason="the peer is a script")
def test_figures_are_measured_once_and_judged_and_failures_told(
    peer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(model_path("llama"), tmp_path / "small.gguf")
    wanted, out = tmp_path / "wanted.json", tmp_path / "found" / "out.json"
    wanted.write_text(json.dumps({"commands": COMMANDS, "runs": RUNS}))
    arguments = [str(tmp_path), "--wanted", str(wanted), "--device", "cpu", "--json", str(out)]

    assert targets.main([*arguments, "--peer", str(peer)]) == 1
    table, told = capsys.readouterr()
    rows = cells(table)
    assert [row[-1] for row in list(rows.values())[1:]] == ["?", "yes", "**no**", "?", "yes", "?"]
    assert rows["decode at 0"][4] == "2.00" and rows["decode at 0"][6] == "0.001 x"
    assert "2 hold, 1 do not, 3 are not known." in table and "GGML_ASSERT" in table
    assert "no_such_module" in table and "absent.gguf is not in" in told
    assert targets.Record.at(out).runs["small speed"]["facts"]["model"] == "small.gguf"

    def never(*_: object, **__: object) -> limited.Ended:
        raise AssertionError("it was measured before")

    with monkeypatch.context() as patch:
        patch.setattr(limited, "run", never)
        assert targets.main([*arguments, "--peer", str(peer), "--only", "4"]) == 0
        assert targets.main([*arguments, "--only", "small,absent", "--minutes", "0.001"]) == 1
        assert "small api: left for another time" in capsys.readouterr().err
    assert targets.main([*arguments, "--only", "3"]) == 1
    assert "small api: It ended with 1" in capsys.readouterr().err


@pytest.mark.parametrize("text", ("{", "[]", '{"runs": 3}'))
def test_a_file_that_is_no_record_is_left_alone(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.json"
    out.write_text(text)
    with pytest.raises(SystemExit):
        targets.main([str(tmp_path), "--json", str(out)])
    assert out.read_text() == text and "no record of earlier runs" in capsys.readouterr().err


SYNTH = """
import pathlib, sys
flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
pathlib.Path(flags["--out"]).write_text(flags["--preset"])
if flags["--preset"] == "full":
    sys.exit("OSError: the disk is full, an error")
"""


def test_missing_files_are_made_whole_or_not_at_all(tmp_path: Path) -> None:
    synth = tmp_path / "synth.py"
    synth.write_text(SYNTH)
    files = targets.Files(tmp_path / "models", synth)
    assert files.model("qwen", 60).read_text() == "qwen"
    with pytest.raises(targets.Missing, match="the disk is full"):
        files.model("full", 60)
    assert [p.name for p in (tmp_path / "models").iterdir()] == ["qwen.gguf"]


@pytest.mark.skipif(os.name == "nt", reason="looks into /proc")
def test_what_a_model_takes_of_a_card_is_what_was_not_there_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    free = iter((90 << 20, 80 << 20, 50 << 20))
    runtime = SimpleNamespace(
        setDevice=lambda index: None, free=lambda address: None,
        memGetInfo=lambda: (next(free), 100 << 20),
    )  # fmt: skip
    monkeypatch.setattr(memory, "DEVICE", "cpu")
    monkeypatch.setattr(memory, "Watcher", lambda: SimpleNamespace(read=lambda: ()))
    engine = Engine()
    engine.start()
    try:
        held = memory.measure(engine, model_path("qwen3"), None, runtime)
    finally:
        engine.close()
    assert (held.took, held.driver) == (30 << 20, (10 << 20, 10 << 20))
    assert held.foreseen["model"] > 0 and held.owned["kv"] > 0
    assert held.off == abs(held.took - held.predicted) / held.predicted
    assert "kv" in held.text() and held.lines()[0]["ours"] == held.off


def test_every_wanted_figure_is_one_that_its_run_tells() -> None:
    held = memory.Held(1, 1, {}, {}, (0, 0), 1, 1.0, 1)
    one = {"median": 1.0}
    api = {
        "prompt_tokens": 1000, "request_ms": one, "token_ms": one, "cached_turn": {"ratio": 1.0}
    }  # fmt: skip
    known = {
        "memory": held.lines(),
        "app": targets.LINES["app"]({"ratio": 1.0}),
        "api": targets.LINES["api"](api),
    }
    runs = targets.read_runs(targets.WANTED)
    assert {run.issue for run in runs} == {3, 4, 5, 6}
    assert len({run.name for run in runs}) == len(runs)
    for run in runs:
        assert not run.draft or run.draft in synth_draft.PRESETS
        names = {line["what"] for line in known.get(run.kind) or compared(run)}
        assert set(run.wanted) <= names, run.name
        for bound in run.wanted.values():
            assert len(bound) == 1 and set(bound) <= {"ratio", "least", "most"}


def compared(run: targets.Run) -> list[targets.Line]:
    """Lines that a comparison with these flags would tell."""
    flags = dict(zip(run.command, run.command[1:], strict=False))
    decode = [{"context": 512, "tok_s": {"median": 5.0}, "of_read": 0.5}]
    prompts = [
        {"n_prompt": n, "tok_s": {"median": 1.0}, "first_token_s": {"median": 1.0}}
        for n in compare.numbers(flags["-p"])
        if n
    ]
    passes = [
        {"rows": m, "context": 512, "seconds": 1.0} for m in compare.numbers(flags["--passes"])
    ]
    parts = dict.fromkeys(("draft_ms", "verify_ms", "sample_ms", "step_ms", "steps_of_one"), 1.0)
    forced = {
        "context": 512,
        "rate": {"median": 1.0},
        "accepted": 5,
        "rows": 16,
        "speedup": 2,
        **parts,
    }
    facts = {
        "prefill": prompts, "fused": prompts if "--fused" in run.command else [], "decode": decode,
        "passes": passes, "forced": [forced] if "--accept" in run.command else [],
    }  # fmt: skip
    return compare.table(facts, {}, 128)
