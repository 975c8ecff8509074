"""The comparison with llama.cpp, with a peer that only answers."""

from __future__ import annotations

import json
import math
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine.draft.files import tensor_specs
from engine.ops.base import Shape
from tests.bench import compare_llama_cpp as compare
from tests.bench import synth_draft
from tests.engine.oracle import model_path

PEER = """#!{python}
import json, sys
flags = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert flags["-fa"] == "1" and flags["-ngl"] == "99" and flags["-o"] == "jsonl"
print("loading")
for depth in flags.get("-d", "0").split(","):
    for n in flags["-p"].split(","):
        print(json.dumps(dict(n_prompt=int(n), n_gen=0, n_depth=int(depth), avg_ns=1e9 * int(n))))
    if int(flags["-n"]):
        print(json.dumps(dict(n_prompt=0, n_gen=int(flags["-n"]), n_depth=int(depth), avg_ns=2e9)))
"""


@pytest.mark.skipif(os.name == "nt", reason="the peer is a script")
def test_every_figure_stands_beside_the_peer_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    peer = tmp_path / "llama-bench"
    peer.write_text(PEER.format(python=sys.executable))
    peer.chmod(peer.stat().st_mode | stat.S_IXUSR)
    flags = ["--peer", str(peer), "--device", "cpu", "-p", "20", "-n", "4", "-d", "0,64", "-r", "1"]
    monkeypatch.setattr(sys, "argv", ["compare", str(model_path("llama")), *flags])
    assert compare.main() == 0
    found = json.loads(capsys.readouterr().out)
    lines = {line["what"]: line for line in found["lines"]}
    assert lines["prefill 20"]["peer"] == 1.0 and lines["decode at 64"]["peer"] == 2.0
    assert lines["pass of 8 at 64"]["peer"] == 8000.0
    for line in lines.values():
        better = (
            line["ours"] / line["peer"]
            if "pass" not in line["what"]
            else line["peer"] / line["ours"]
        )
        assert line["ratio"] == pytest.approx(better) and line["ratio"] > 0


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
