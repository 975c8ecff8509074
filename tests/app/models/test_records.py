"""Figures and names that outlive the window."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.models.records import Record, Records
from engine.placement import Taken

MODEL = Path("/models/a.gguf")


def test_figures_are_kept_by_file_and_size(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "models.json"
    Records(file).update(MODEL, 10, decode_rate=61.5, load_s=2.0)
    again = Records(file)
    assert again.get(MODEL, 10) == Record(decode_rate=61.5, load_s=2.0)
    assert again.get(MODEL, 11) == Record(), "another file under the same name was not measured"


def test_the_memory_of_a_load_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "models.json"
    taken = Taken("cpu", "fast", 4, 512, 5_000_000_000, 9_000_000, 300_000_000)
    Records(file).update(MODEL, 10, memory=taken)
    assert Records(file).get(MODEL, 10) == Record(memory=taken)
    damaged = json.loads(file.read_text("utf-8"))
    damaged[f"10|{MODEL}"]["memory"]["page"] = -1
    file.write_text(json.dumps(damaged))
    assert Records(file).get(MODEL, 10) == Record()


def test_one_figure_does_not_take_another_away(tmp_path: Path) -> None:
    records = Records(tmp_path / "models.json")
    records.update(MODEL, 10, name="Mine")
    records.update(MODEL, 10, prefill_rate=900.0)
    assert records.get(MODEL, 10) == Record(name="Mine", prefill_rate=900.0)
    records.update(MODEL, 10, name=None)
    assert records.get(MODEL, 10) == Record(prefill_rate=900.0)


@pytest.mark.parametrize("content", ["", "[]", "{", "nonsense", "\x00"])
def test_a_damaged_file_is_put_aside_and_told(tmp_path: Path, content: str) -> None:
    file = tmp_path / "models.json"
    file.write_text(content)
    records = Records(file)
    assert records.problem is not None and "models.json" in records.problem
    assert file.with_name("models.json.bad").read_text() == content
    records.update(MODEL, 10, load_s=1.0)
    assert Records(file).get(MODEL, 10).load_s == 1.0


def test_wrong_figures_are_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "models.json"
    wrong = {"name": 3, "decode_rate": "fast", "prefill_rate": -1, "load_s": True, "new": 1}
    file.write_text(json.dumps({f"10|{MODEL}": wrong, "other": 7}))
    assert Records(file).get(MODEL, 10) == Record()


def test_a_folder_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    records = Records(tmp_path / "file" / "models.json")
    records.update(MODEL, 10, load_s=1.0)
    assert records.get(MODEL, 10).load_s == 1.0
    assert records.problem is not None
