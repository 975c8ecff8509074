"""The comparison with llama.cpp, with a peer that only answers."""

from __future__ import annotations

import json
import math
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.config import EngineConfig, Spec
from engine.draft.files import tensor_specs
from engine.ops.base import Shape
from tests.bench import compare_llama_cpp as compare
from tests.bench import limited, synth_draft
from tests.engine.oracle import model_path

PEER = """#!{python}
import json, sys
flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert flags["-fa"] == "1" and flags["-ngl"] == "99" and flags["-o"] == "jsonl"
print("loading")
for depth in flags.get("-d", "0").split(","):
    for n in flags["-p"].split(","):
        if n == "7":
            sys.exit("GGML_ASSERT(rows) failed\\n[a trace]")
        row = dict(n_prompt=int(n), n_gen=0, n_depth=int(depth), avg_ns=1e9 * int(n))
        if n != "0":
            print(json.dumps(row))
    if int(flags["-n"]):
        print(json.dumps(dict(n_prompt=0, n_gen=int(flags["-n"]), n_depth=int(depth), avg_ns=2e9)))
"""


@pytest.fixture
def peer(tmp_path: Path) -> Path:
    peer = tmp_path / "llama-bench"
    peer.write_text(PEER.format(python=sys.executable))
    peer.chmod(peer.stat().st_mode | stat.S_IXUSR)
    return peer


def compared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *flags: str
) -> tuple[dict[str, Any], dict[str, Any], str]:
    """All that it found, its lines by name, and what it told."""
    arguments = [str(model_path("llama")), "--device", "cpu", "-n", "4", "-r", "1", *flags]
    monkeypatch.setattr(sys, "argv", ["compare", *arguments])
    assert compare.main() == 0
    out, told = capsys.readouterr()
    found = json.loads(out)
    return found, {line["what"]: line for line in found["lines"]}, told


@pytest.mark.skipif(os.name == "nt", reason="the peer is a script")
def test_every_figure_stands_beside_the_peer_s(
    peer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = "--peer", str(peer), "-p", "20", "-d", "0,64", "--fused"
    _, lines, _ = compared(monkeypatch, capsys, *flags)
    assert lines["prefill 20"]["peer"] == lines["fused prefill 20"]["peer"] == 1.0
    assert lines["decode at 64"]["peer"] == 2.0 and lines["first token of 20"]["peer"] == 20_000.0
    assert lines["pass of 8 at 64"]["peer"] == 8000.0
    assert lines["pass of 8 at 64 in passes of one"]["peer"] == 8.0
    assert lines["pass of 8 at 64 in decode steps"]["peer"] == 16.0
    for what, line in lines.items():
        less = what.startswith(("pass", "first"))
        better = line["peer"] / line["ours"] if less else line["ours"] / line["peer"]
        assert line["ratio"] == pytest.approx(better) and line["ratio"] > 0


@pytest.mark.skipif(os.name == "nt", reason="the peer is a script")
def test_a_peer_that_dies_leaves_out_what_it_died_of(
    peer: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = "--peer", str(peer), "-p", "20", "-d", "0,64", "--passes", "4,7,9"
    found, lines, told = compared(monkeypatch, capsys, *flags)
    for depth in (0, 64):
        assert lines[f"pass of 7 at {depth}"]["peer"] is None
        assert lines[f"pass of 9 at {depth}"]["peer"] == 9000.0
        assert lines[f"decode at {depth}"]["peer"] and f"pass of 1 at {depth}" in lines
    assert found["peer_failures"] == 2 * [
        "In its passes the peer ended with 1: GGML_ASSERT(rows) failed"
    ]
    assert told.count("GGML_ASSERT") == 2 and "a trace" not in told


def test_a_peer_that_hangs_is_asked_no_more_and_what_it_told_is_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    row = json.dumps({"n_prompt": 4, "n_gen": 0, "n_depth": 0, "avg_ns": 5e8})
    asked = []

    def run(command: list[str], limit_s: float) -> limited.Ended:
        asked.append(command)
        return limited.Ended(None, f'{row}\n{{"n_pro', "", limit_s)

    monkeypatch.setattr(limited, "run", run)
    found = compare.peer(Path("bench"), Path("m.gguf"), [], 0, [0], [4, 9, 16], 1, limit_s=2)
    assert found.seconds == {(4, 0, 0): 0.5} and len(asked) == 1
    assert found.failures == ["In its passes the peer did not end within 2 s: nothing"]


@pytest.mark.skipif(os.name == "nt", reason="POSIX shell")
def test_a_program_is_stopped_with_all_that_it_started() -> None:
    # What is left of it would hold its output open, and be waited for.
    done = limited.run(["sh", "-c", "sleep 1000 & sleep 1000"], 0.1, alone=True)
    assert done.code is None and "did not end" in done.problem
    assert "no-such" in limited.run(["/no-such/program"], 1).problem
    done = limited.run(["sh", "-c", "echo Error: so; echo on >&2; echo wide error >&2; exit 3"], 60)
    assert (done.problem, done.out) == ("ended with 3: wide error", "Error: so\n")


def test_a_draft_is_only_there_for_what_it_brings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    load, loaded = compare.Engine.load, []

    def noted(engine: Any, path: Path, config: EngineConfig) -> Any:
        loaded.append((config.spec, config.draft))
        return load(engine, path, config)

    monkeypatch.setattr(compare.Engine, "load", noted)
    draft = str(model_path("llama"))
    flags = "-p", "20", "--passes", "1,4", "--draft", draft, "--accept", "3"
    found, lines, _ = compared(monkeypatch, capsys, *flags)
    assert loaded == [(Spec.OFF, None), (Spec.CHAIN, draft)]
    assert "prefill 20" in lines and "decode at 0" in lines and "pass of 4 at 0" in lines
    parts = [
        lines[f"forced drafts at 0, {part} in decode steps"]["ours"]
        for part in ("draft", "verify", "sample", "elsewhere")
    ]
    (forced,) = found["ours"]["forced"]
    whole = lines["forced drafts at 0, a step in decode steps"]["ours"]
    assert sum(parts) == pytest.approx(whole) and whole == pytest.approx(forced["steps_of_one"])
    assert parts[0] > 0 and parts[1] > 0


def test_writing_has_its_share_of_the_card_s_bandwidth() -> None:
    decode = {"context": 1, "tok_s": {"median": 500.0}, "of_read": 0.8}
    facts = {"prefill": [], "decode": [decode], "passes": [], "forced": []}
    assert [(x["what"], x["ours"]) for x in compare.table(facts, {}, 4)] == [
        ("decode at 0", 500.0),
        ("of read bandwidth at 0", 0.8),
    ]


def test_a_random_draft_fits_the_model_that_it_has_the_shapes_of(tmp_path: Path) -> None:
    cfg = replace(synth_draft.published(6, 128, 256), n_vocab=512, mask=505)
    made = synth_draft.write(tmp_path / "draft.gguf", cfg, "q4_k_m")
    assert made.config.warnings == () and made.config.fitted(Shape(6, 128, 512, 4, 2, 64), 1e4)
    kinds = {name: tensor.type.name for name, tensor in made.tensors.items()}
    # Rows of 128 are no whole blocks of a K-quant.
    assert kinds["blk.4.attn_q.weight"] == "Q8_0" and kinds["blk.4.ffn_down.weight"] == "Q6_K"
    numbers = [tensor.dequantize() for tensor in made.tensors.values()]
    assert all(np.isfinite(n).all() and np.abs(n).max() > 0 for n in numbers)
    whole = synth_draft.PRESETS["qwen35-27b"]
    weights = sum(math.prod(s.shape) for s in tensor_specs(replace(whole, n_vocab=0)))
    assert weights == pytest.approx(1.73e9, rel=0.001) and whole.capture == (1, 16, 31, 46, 61)
