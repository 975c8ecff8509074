"""The small runs for a sanitizer against a card that only takes notes, and what a sanitizer's words mean."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from engine.ops.cuda_library import Library
from engine.quants import TYPES
from tests.bench.limited import Ended
from tests.gpu import measure_formats, sanitize, small
from tests.kernels.cuda.test_cuda_ops_without_card import Notes, notes, parameters

__all__ = ["notes"]  # a fixture

PROBES = {"read", "product_int8", "product_f16", "pause"}
"""Kernels that no model uses."""

ALIKE = {t.name for t in TYPES.values()} - {"F32", "Q4_K", "IQ2_S"} | {
    f"attention, heads of {dim}" for dim in (128, 256)
}
"""Cases that differ from others in nothing but their kernels' defines."""


def test_small_runs_launch_every_kernel(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace(
        is_faster=lambda *args: True, close=lambda: None, multiply=lambda *args: None
    )
    monkeypatch.setattr(Library, "of", lambda card, allocate, cache: (allocate(32 << 20), made)[1])
    found, launched = small.cases(), set[str]()
    assert ALIKE & set(found)
    for name in found.keys() - ALIKE:
        notes.launches.clear()
        found[name]()
        assert notes.launches and not notes.memory, name
        launched |= {kernel for kernel, *_ in notes.launches}
    assert parameters().keys() - launched == PROBES


def test_a_wrong_result_is_told(notes: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A card that computes nothing has norms of zeros."""
    monkeypatch.setattr(sys, "argv", ["small", "norm and residual"])
    assert small.main() == 1
    monkeypatch.setattr(sys, "argv", ["small", "no such case"])
    assert small.main() == 2


def test_products_stand_beside_their_reference(
    notes: Notes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a card on which every replay takes 20 ms."""
    data = json.loads(measure_formats.REFERENCE.read_text())
    for row in data["us"]:
        row["shape"] = [n // 8 for n in row["shape"]]
    monkeypatch.setattr(measure_formats, "read_bandwidth", lambda: 4e12)
    monkeypatch.setattr(measure_formats, "TOTAL", 1 << 22)
    monkeypatch.setattr(measure_formats.json, "loads", lambda text: data)
    measure_formats.main(["--reference"])
    out = capsys.readouterr().out
    rows = [line.split(" | ") for line in out.splitlines() if line.startswith("| Q")]
    assert len(rows) == 12 and {len(row) for row in rows} == {7}
    ours, theirs, ratio = map(float, re.split(" / | = ", rows[0][3]))
    assert theirs == 25.4 and ratio == pytest.approx(ours / theirs, abs=0.01)
    assert "of 8 are within 5% of the reference with two scales." in out and "4,430" in out
    assert not notes.memory and {name for name, *_ in notes.launches} == {"matmul"}
    measure_formats.main(["--shape", "64,512", "--formats", "Q4_K", "--rows", "1,8"])
    assert "4.50 bits" in capsys.readouterr().out


CLEAN = "========= COMPUTE-SANITIZER\nnoise\n========= ERROR SUMMARY: 0 errors\n"
NO_RACE = "========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n"
RACE = """========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at matmul+0x10 in matmul.cu
=========     and Read access at matmul+0x80 [16 hazards]
=========     Saved host backtrace up to driver entry point
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
OF_CUBLAS = """========= Error: Race reported between Write access at nvjet_sm90_hsh_64x8_TNT+0x1a20
=========     and Read access at nvjet_sm90_hsh_64x8_TNT+0x2b40 [1024 hazards]
========= Error: Race reported between Read access at void cutlass::Kernel2<matmul>(T1::Params)+0x20
=========     and Write access at void cutlass::Kernel2<matmul>(T1::Params)+0x80 [16 hazards]
"""
OF_TWO = "========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)\n"
OF_THREE = OF_TWO.replace("2", "3")
UNNAMED = OF_CUBLAS.replace("Read access at nvjet_sm90_hsh_64x8_TNT+", "Read access at ")


@pytest.mark.parametrize(
    ("done", "problem"),
    (
        (Ended(0, CLEAN, "", 9), ""),
        (Ended(0, NO_RACE, "", 9), ""),
        (Ended(0, RACE, "", 9), "1 hazard displayed (1 error, 0 warnings); Error: Race reported"),
        (Ended(1, RACE, "CUDA error", 9), "1 hazard displayed"),
        (Ended(0, OF_CUBLAS + OF_TWO, "", 9), ""),
        (Ended(0, OF_CUBLAS + OF_THREE, "", 9), "3 hazards displayed"),
        (Ended(0, OF_CUBLAS + RACE, "", 9), "1 hazard displayed"),
        (Ended(0, RACE + OF_CUBLAS + OF_THREE, "", 9), "3 hazards displayed"),
        (Ended(0, UNNAMED + OF_TWO, "", 9), "2 hazards displayed"),
        (Ended(0, 50 * OF_CUBLAS + OF_TWO.replace("2", "100"), "", 9), "100 hazards displayed"),
        (Ended(1, OF_CUBLAS + OF_TWO, "AssertionError: wrong", 9), "ended with 1: AssertionError"),
        (Ended(1, CLEAN, "AssertionError: wrong", 9), "ended with 1: AssertionError: wrong"),
        (Ended(None, "========= COMPUTE-SANITIZER\n", "", 9), "did not end within 9 s"),
        (Ended(0, "", "", 9), "the sanitizer gave no summary"),
        (Ended(255, "========= Error: Device not supported\n", "", 9), "ended with 255: nothing; Error: D"),
    ),
)  # fmt: skip
def test_the_sanitizer_s_words_are_understood(done: Ended, problem: str) -> None:
    found = sanitize.judged(done)
    assert found.startswith(problem) and bool(found) == bool(problem)
    assert "backtrace" not in found


def test_races_inside_cublas_are_told() -> None:
    line = sanitize.Verdict("racecheck", "layers by cuBLAS", "", 1, OF_CUBLAS + OF_TWO).text()
    assert line.endswith("clean, 2 reports inside cuBLAS")
    assert not sanitize.inside_cublas(NO_RACE) and not sanitize.inside_cublas(OF_CUBLAS + RACE)


SANITIZER = """#!{python}
import sys
case = sys.argv[-1]
assert sys.argv[-3:-1] == ["-m", "tests.gpu.small"], sys.argv
tool = sys.argv[sys.argv.index("--tool") + 1]
if "llama" in case:
    sys.exit(f"{{case}} is broken: an error")
n = int("qwen35" in case and tool == "racecheck")
print(f"========= Error: {{case}} by {{tool}}" if n else "")
print(f"========= ERROR SUMMARY: {{n}} errors")
"""


@pytest.mark.skipif(os.name == "nt", reason="the sanitizer is a script")
def test_cases_run_apart_under_each_tool(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool, log = tmp_path / "compute-sanitizer", tmp_path / "log"
    tool.write_text(SANITIZER.format(python=sys.executable))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    flags = ["--sanitizer", str(tool), "--jobs", "2", "--log", str(log)]
    assert sanitize.main([*flags, "--only", "model"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "4 of 8 are clean: memcheck, racecheck."
    assert sum("llama is broken" in line for line in lines) == 2
    assert sum("1 errors; Error: model qwen35" in line for line in lines) == 2
    assert "model qwen3 " not in log.read_text() and "model qwen35 by racecheck" in log.read_text()
    assert sanitize.main(["memcheck", *flags, "--only", "qwen3"]) == 0
    assert sanitize.main(["memcheck", *flags, "--only", "qwen3", "--minutes", "0"]) == 0
    assert sanitize.main(["memcheck", *flags, "--only", "qwen3", "--minutes", "0.001"]) == 1
    assert "no time left" in capsys.readouterr().out


def test_what_cannot_be_done_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, words in (
        (["leakcheck"], "expected memcheck or racecheck"),
        (["--sanitizer", str(tmp_path / "none")], "was not found"),
        (["--sanitizer", __file__, "--only", "xyz"], "no case has xyz"),
    ):
        with pytest.raises(SystemExit):
            sanitize.main(arguments)
        assert words in capsys.readouterr().err
