"""`lucebox generate` with a form, tools and log-probabilities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.cli import main
from tests.engine.oracle import model_path
from tests.engine.test_grammar import SCHEMA, TOOLS

MODEL = ["generate", str(model_path("llama")), "--prompt", "Hello", "--seed", "3", "--threads", "2"]
SHORT = ["--max-tokens", "300", "--max-ctx", "512", "--temperature", "1.2"]


def generated(capsys: pytest.CaptureFixture[str], *flags: str) -> Any:
    assert main([*MODEL, *SHORT, *flags]) == 0
    return capsys.readouterr().out


def test_json_of_a_schema(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "schema.json"
    file.write_text(json.dumps(SCHEMA))
    assert list(json.loads(generated(capsys, "--json-schema", str(file)))) == SCHEMA["required"]


def test_a_call_and_its_log_probabilities(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps([{"name": "get_time", "parameters": {"type": "object"}}]))
    flags = [
        "--chat",
        "--tools",
        str(file),
        "--tool-choice",
        "get_time",
        "--json",
        "--logprobs",
        "2",
    ]
    found = json.loads(generated(capsys, *flags))
    assert {call["name"] for call in found["tool_calls"]} <= {"get_time"}
    assert found["content"] == ""
    assert len(found["logprobs"]) == len(found["ids"])
    assert all(len(row["top"]) == 2 for row in found["logprobs"])
    assert b"".join(bytes(row["bytes"]) for row in found["logprobs"]).decode() == found["text"]


def test_a_form_that_is_not_whole_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    form = ["--regex", "[a-d]{30}", "--temperature", "0", "--json"]
    whole = json.loads(generated(capsys, *form))
    n = whole["completion_tokens"] - 1  # without the end's own
    found = json.loads(generated(capsys, *form, "--max-tokens", str(n)))
    assert found["text"] == whole["text"] and found["finish_reason"] == "length"
    assert not found["form_cut"]
    for most, words in ((str(n - 1), "length limit"), ("0", "length limit")):
        assert main([*MODEL, *SHORT, *form, "--max-tokens", most]) == 1
        out, err = capsys.readouterr()
        assert json.loads(out)["form_cut"]
        assert "lucebox: The answer lacks a part of the form" in err and words in err


def test_a_form_that_only_repeats_itself_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--max-ctx", "2048", "--temperature", "0", "--regex", "(ab){3000}", "--json"]
    assert main([*MODEL, *flags]) == 1
    out, err = capsys.readouterr()
    assert json.loads(out)["loop"] and "form" in err and "repeated itself" in err


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--logprobs", "2"], "add --json"),
        (["--tools", "TOOLS"], "add --chat"),
        (["--chat", "--tool-choice", "auto"], "add --tools"),
        (["--chat", "--tools", "BAD"], "JSON list of tools"),
        (["--chat", "--reasoning-effort", "huge"], "x-high"),
        (["--regex", "a(b"], "unclosed"),
        (["--regex", "(a|b)*" * 2000], "too complex; make it simpler"),
        (["--grammar", "NONE"], "cannot be read"),
    ],
)
def test_flags_that_do_not_fit_are_refused(
    flags: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "TOOLS").write_text(json.dumps(TOOLS))
    (tmp_path / "BAD").write_text('[{"name": "a"}, {"name": "a"}]')
    named = [str(tmp_path / f) if f in ("TOOLS", "BAD", "NONE") else f for f in flags]
    assert main([*MODEL, *named]) == 2
    assert words in capsys.readouterr().err
