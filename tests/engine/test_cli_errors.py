"""What the `lucebox` command tells of wrong calls and of files that it cannot use: a sentence and a code."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.engine.conftest import Run
from tests.engine.disk import largest_file
from tests.engine.oracle import model_path

LLAMA = str(model_path("llama"))
EXACT = ("--precision", "exact", "--max-ctx", "256", "--threads", "2")


def test_logits_of_too_many_ids_leave_no_file(
    run: Run, tmp_path: Path, ids_file: Callable[[str], Path]
) -> None:
    ids = ids_file(json.dumps([5] * 100))
    out = tmp_path / "out.npy"
    result = run("logits", LLAMA, "--tokens-file", ids, "--out", out, "--max-ctx", "64")
    assert result.code == 2
    assert "100" in result.err
    assert "64" in result.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ids.json", "user"]


@pytest.mark.skipif(os.name == "nt", reason="no limit of a file's size there")
def test_logits_that_find_no_room_leave_no_file(
    run: Run, tmp_path: Path, ids_file: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids, out = ids_file(json.dumps([5] * 100)), tmp_path / "out.npy"
    # A mapping of a file that the disk has no room for ends the process where it is written to.
    monkeypatch.setattr(np, "memmap", None)
    monkeypatch.setattr(np.lib.format, "open_memmap", None)
    with largest_file(60_000):
        result = run("logits", LLAMA, "--tokens-file", ids, "--out", out)
    assert result.code == 1 and "out.npy cannot be written" in result.err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ids.json", "user"]
    assert run("logits", LLAMA, "--tokens-file", ids, "--out", out).code == 0


@pytest.mark.parametrize("command", ["generate", "serve", "version"])
def test_an_unknown_flag_points_to_the_help_of_its_command(run: Run, command: str) -> None:
    given = ["--prompt", "x"] if command == "generate" else []
    result = run(command, *given, "--no-such-flag")
    assert result.code == 2 and not result.out
    assert result.err == (
        f"lucebox {command}: unrecognized arguments: --no-such-flag. "
        f"See lucebox {command} --help.\n"
    )


def test_a_misspelt_flag_is_named_before_what_is_missing_for_it(run: Run) -> None:
    result = run("generate", LLAMA, "--promt", "x", "--json")
    assert result.code == 2 and "--promt (did you mean --prompt?). See" in result.err
    assert "--thread=1 (did you mean --threads?)" in run("serve", "--thread=1").err
    for text in ("-- a text", "--no-flag"):
        assert run("tokenize", LLAMA, *(["--"] if " " not in text else []), text).code == 0


def test_pytorch_is_put_beside_this_program(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(sys.modules, "engine.convert.train.loop", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    result = run("train-draft", LLAMA, "--out", tmp_path / "draft.gguf")
    assert result.code == 1 and f"`{sys.executable} -m pip install torch`" in result.err


@pytest.mark.parametrize("text", ["", "{}", "[1.5]", '["a"]', "[true]", "[1", "\xff", "[" * 9000])
def test_a_faulty_ids_file_is_told(
    run: Run, tmp_path: Path, ids_file: Callable[[str], Path], text: str
) -> None:
    file = ids_file("")
    file.write_bytes(text.encode("latin-1"))
    result = run("logits", LLAMA, "--tokens-file", file, "--out", tmp_path / "o.npy")
    assert result.code == 2
    assert "ids.json" in result.err


@pytest.mark.parametrize("ids", ["[]", "[-1]", "[100000000]", "[99999999999999999999999]"])
def test_ids_outside_the_vocabulary_are_told(
    run: Run, ids_file: Callable[[str], Path], ids: str
) -> None:
    result = run("generate", LLAMA, "--ids", ids_file(ids), *EXACT)
    assert result.code == 2
    assert result.err.startswith("lucebox: ") or "\nlucebox: " in result.err


@pytest.mark.parametrize("text", ["3", '{"messages": 3}', '{"messages": [], "tools": 3}', "[3]"])
def test_faulty_messages_are_told(run: Run, tmp_path: Path, text: str) -> None:
    file = tmp_path / "m.json"
    file.write_text(text)
    result = run("render", LLAMA, "--messages", file)
    assert (result.code, result.out) == (2, "")
    assert result.err


def test_perplexity_needs_a_text(run: Run, tmp_path: Path) -> None:
    empty, binary = tmp_path / "empty", tmp_path / "binary"
    empty.touch()
    binary.write_bytes(b"\xff\xfe\xfd")
    for file in (empty, binary, tmp_path / "missing", tmp_path):
        result = run("perplexity", LLAMA, "--file", file)
        assert (result.code, result.out) == (2, "")


@pytest.mark.parametrize("flags", [("-p", "-1"), ("-r", "0"), ("-p", "500", "--max-ctx", "64")])
def test_bench_refuses_numbers_that_cannot_be(run: Run, flags: tuple[str, ...]) -> None:
    result = run("bench", LLAMA, *flags)
    assert (result.code, result.out) == (2, "")
    assert result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("nonsense",),
        ("--nonsense",),
        ("generate",),
        ("generate", LLAMA),
        ("generate", "--prompt", "x"),
        ("generate", LLAMA, "--demo", "--prompt", "x"),
        ("generate", LLAMA, "--prompt", "x", "--ids", "y"),
        ("generate", LLAMA, "--prompt", "x", "--temperature", "nan"),
        ("generate", LLAMA, "--prompt", "x", "--temperature", "-1"),
        ("generate", LLAMA, "--prompt", "x", "--threads", "0"),
        ("generate", LLAMA, "--prompt", "x", "--threads", "two"),
        ("generate", LLAMA, "--prompt", "x", "--precision", "great"),
        ("generate", LLAMA, "--prompt", "x", "--device", "cuda:7"),
        ("generate", LLAMA, "--prompt", "x", "--system", "y"),
        ("generate", LLAMA, "--prompt", "\udcff"),
        ("generate", LLAMA, "--prompt", "x", "--regex", "\udcff"),
        ("generate", LLAMA, "--prompt", "x", "--stop", "a", "--stop", "\udcff"),
        ("generate", LLAMA, "--prompt", "x", "--chat", "--system", "\udcff"),
        ("tokenize", "--demo", "\udcff"),
        ("connect", "codex", "--url", "localhost"),
        ("generate", LLAMA, "--prompt", "x", "--chat", "--chat-template-file", "missing.jinja"),
        ("tokenize", LLAMA),
        ("perplexity", LLAMA, "--file", LLAMA, "--window", "2"),
        ("serve", ""),
        ("convert-draft", "", "out.gguf"),
        ("quantize-draft", LLAMA, ""),
        ("draft-check", LLAMA, ""),
    ],
)
def test_a_wrong_call_is_one_sentence_and_code_2(run: Run, arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert (result.code, result.out) == (2, "")
    assert len(result.err.strip().splitlines()) == 1
    assert result.err.startswith("lucebox")


@pytest.mark.parametrize(
    "command",
    [
        ("generate", "--prompt", "x"), ("inspect",), ("bench",), ("tokenize", "x"),
        ("perplexity", "--file", __file__), ("generate", "--prompt", "x", "--chat"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fault", ["missing", "empty", "text", "cut", "folder"])
def test_a_bad_model_is_one_sentence_and_code_4(
    run: Run, tmp_path: Path, command: tuple[str, ...], fault: str
) -> None:
    file = tmp_path / "model.gguf"
    if fault == "folder":
        file.mkdir()
    elif fault != "missing":
        whole = Path(LLAMA).read_bytes()
        file.write_bytes({"empty": b"", "text": b"<html>" * 99, "cut": whole[:9999]}[fault])
    result = run(command[0], file, *command[1:])
    assert (result.code, result.out) == (4, "")
    assert len(result.err.strip().splitlines()) == 1
    assert "model.gguf" in result.err


@pytest.mark.parametrize(
    "command",
    [
        ("inspect",), ("draft-check", LLAMA), ("convert-draft",), ("quantize-draft",),
        ("generate", LLAMA, "--prompt", "x", "--draft"),
    ],
)  # fmt: skip
def test_a_name_that_is_too_long_is_told(run: Run, command: tuple[str, ...]) -> None:
    out = ["out.gguf"] if command[0] in ("convert-draft", "quantize-draft") else []
    result = run(*command, "x" * 5000, *out)
    assert (result.code, result.out) == (4, "") and "too long" in result.err


def test_an_unforeseen_error_goes_to_the_log(
    run: Run, monkeypatch: pytest.MonkeyPatch, user_folders: Path
) -> None:
    def fail(path: Path) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("engine.commands.describe", fail)
    result = run("inspect", LLAMA)
    assert (result.code, result.out) == (1, "")
    assert "a bug" in result.err
    assert len(result.err.strip().splitlines()) == 1
    logs = [p.read_text(encoding="utf-8") for p in user_folders.rglob("lucebox-cli.log")]
    assert len(logs) == 1
    assert "Traceback" in logs[0]


def test_logits_never_replace_a_device_or_a_folder(
    run: Run, tmp_path: Path, ids_file: Callable[[str], Path]
) -> None:
    ids = str(ids_file("[1, 2]"))
    for out in (os.devnull, str(tmp_path), "", str(tmp_path / "nowhere" / "o.npy")):
        found = run("logits", LLAMA, "--tokens-file", ids, "--out", out)
        assert found.code == 2 and "--out" in found.err
    assert not Path(os.devnull).is_file()


def test_a_file_name_cannot_write_on_the_terminal(run: Run, tmp_path: Path) -> None:
    found = run("inspect", tmp_path / "a\n\x1b[31mb.gguf")
    assert found.code == 4 and "\x1b" not in found.err and len(found.err.splitlines()) == 1
