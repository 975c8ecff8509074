"""The `lucebox` command on tiny models: what it writes, what it says, how it ends."""

from __future__ import annotations

import gc
import io
import json
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine import cli, demo
from engine.cli import main
from engine.config import EngineConfig, SamplingParams, settings_of
from tests.engine.conftest import Run
from tests.engine.oracle import ARCHITECTURES, expected, model_path

ROOT = Path(__file__).parents[2]
LLAMA = str(model_path("llama"))
QWEN3 = str(model_path("qwen3"))
EXACT = ("--precision", "exact", "--max-ctx", "256", "--threads", "2")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_generate_writes_the_greedy_tokens_of_the_reference(
    run: Run, ids_file: Callable[[str], Path], architecture: str
) -> None:
    truth = expected(architecture)
    ids = ids_file(json.dumps(truth["ids_7"].tolist()))
    result = run(
        "generate", model_path(architecture), "--ids", ids, "--temperature", "0",
        "--max-tokens", "48", "--ignore-eos", "--json", *EXACT,
    )  # fmt: skip
    assert result.code == 0
    assert result.json["ids"] == truth["greedy"].tolist()
    assert result.json["finish_reason"] == "length"
    assert result.json["context_full"] is False
    assert result.json["prompt_tokens"] == 7
    assert result.json["completion_tokens"] == 48
    assert result.json["first_token_s"] > 0


def test_generate_streams_the_same_text_as_json_holds(run: Run) -> None:
    call = ("generate", LLAMA, "--prompt", "hello", "--seed", "7", "--max-tokens", "12", *EXACT)
    plain, as_json = run(*call), run(*call, "--json")
    assert plain.code == as_json.code == 0
    assert plain.out == as_json.json["text"]
    assert "12 written" in plain.err
    assert run(*call, "--quiet").err == ""


def test_the_seed_decides_the_text(run: Run) -> None:
    call = ("generate", LLAMA, "--prompt", "hello", "--max-tokens", "12", "--json", *EXACT)
    one, same, other = (run(*call, "--seed", seed).json["ids"] for seed in ("1", "1", "2"))
    assert one == same != other


def test_generate_ends_at_a_stop_text(run: Run) -> None:
    call = ("generate", LLAMA, "--prompt", "hello", "--temperature", "0", "--max-tokens", "20")
    whole = run(*call, "--json", *EXACT).json["text"]
    stop = whole[len(whole) // 2 :][:3]
    result = run(*call, "--json", "--stop", stop, *EXACT).json
    assert result["text"] == whole[: whole.index(stop)]
    assert (result["finish_reason"], result["stop"]) == ("stop", stop)


def test_a_chat_message_goes_through_the_template(
    run: Run, tmp_path: Path, ids_file: Callable[[str], Path]
) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]
    file = tmp_path / "m.json"
    file.write_text(json.dumps(messages))
    ids = run("render", LLAMA, "--messages", file, "--ids").out
    greedy = ("--temperature", "0", "--max-tokens", "8", "--json", *EXACT)
    chat = run("generate", LLAMA, "--chat", "--system", "Be brief.", "--prompt", "Hi", *greedy)
    plain = run("generate", LLAMA, "--ids", ids_file(ids), *greedy)
    assert chat.json["ids"] == plain.json["ids"]
    assert chat.json["prompt_tokens"] == len(json.loads(ids))


def test_a_prompt_can_come_from_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO("grüße 🙂".encode()), encoding="ascii")
    monkeypatch.setattr(sys, "stdin", stdin)
    piped = run("tokenize", LLAMA, "-")
    assert piped.json == run("tokenize", LLAMA, "grüße 🙂").json


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_logits_are_those_of_the_reference(
    run: Run, tmp_path: Path, ids_file: Callable[[str], Path], architecture: str
) -> None:
    truth = expected(architecture)
    out = tmp_path / "out.npy"
    ids = ids_file(json.dumps(truth["ids_200"].tolist()))
    result = run("logits", model_path(architecture), "--tokens-file", ids, "--out", out)
    assert (result.code, result.out) == (0, "")
    found, right = np.load(out), truth["logits_200"]
    assert found.dtype == np.float32
    assert found.shape == right.shape
    assert np.abs(found - right).max() < 2e-3 * right.std()
    assert [p.name for p in tmp_path.iterdir() if "part" in p.name] == []


def test_tokenize_writes_ids_that_other_commands_read(
    run: Run, ids_file: Callable[[str], Path]
) -> None:
    ids = run("tokenize", LLAMA, "hello there")
    assert all(type(i) is int for i in ids.json)
    pieces = run("tokenize", LLAMA, "hello there", "--pieces").out.splitlines()
    assert [int(line.split("\t")[0]) for line in pieces] == ids.json
    result = run(
        "generate", LLAMA, "--ids", ids_file(ids.out), "--max-tokens", "1", "--json", *EXACT
    )
    assert result.json["prompt_tokens"] == len(ids.json)


def test_render_writes_the_prompt_alone(run: Run, tmp_path: Path) -> None:
    file, template = tmp_path / "m.json", tmp_path / "t.jinja"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": "Hi"}], "tools": None}))
    template.write_text("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
                        "{% if add_generation_prompt %}<answer>{% endif %}")  # fmt: skip
    call = ("render", LLAMA, "--messages", file, "--chat-template-file", template)
    assert run(*call).out == "<user>Hi<answer>"
    assert run(*call, "--no-generation-prompt").out == "<user>Hi"


def test_a_template_file_is_read_alike_for_showing_and_for_answering(
    run: Run, tmp_path: Path
) -> None:
    """Some editors begin a file with a mark, which is no part of it."""
    file, template = tmp_path / "m.json", tmp_path / "t.jinja"
    file.write_text(json.dumps([{"role": "user", "content": "Hi"}]))
    template.write_text("{{ messages[0].content }}", encoding="utf-8-sig")
    given = ("--chat-template-file", template)
    shown = run("render", LLAMA, "--messages", file, "--ids", *given).json
    answer = run(
        "generate", LLAMA, "--chat", "--prompt", "Hi", "--max-tokens", "1", "--json", *EXACT, *given
    )
    assert answer.json["prompt_tokens"] == len(shown)


@pytest.mark.parametrize("window", [16, 64])
def test_perplexity_is_that_of_the_logits(
    run: Run, tmp_path: Path, ids_file: Callable[[str], Path], window: int
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("The quick brown fox jumps over the lazy dog. " * 8, encoding="utf-8")
    ids = run("tokenize", LLAMA, text.read_text(encoding="utf-8")).json
    call = ("perplexity", LLAMA, "--file", text, "--window", str(window), "--precision", "exact")
    result = run(*call, "--json").json
    total, n = 0.0, 0
    for start in range(0, len(ids), window):
        piece = ids[start : start + window]
        if len(piece) < 2:
            break
        out = tmp_path / "out.npy"
        run("logits", LLAMA, "--tokens-file", ids_file(json.dumps(piece)), "--out", out)
        logits = np.load(out).astype(np.float64)
        for row, target in zip(logits, piece[1:], strict=False):
            total += np.log(np.exp(row - row.max()).sum()) + row.max() - row[target]
            n += 1
    assert result["n_scored"] == n
    assert result["perplexity"] == pytest.approx(np.exp(total / n), rel=1e-4)
    assert float(run(*call).out) == pytest.approx(result["perplexity"], abs=1e-3)


def test_inspect_lists_the_file(run: Run) -> None:
    facts = run("inspect", QWEN3, "--json").json
    assert facts["architecture"] == "qwen3"
    assert facts["kind"] == "chat"
    assert facts["problem"] == ""
    assert sum(t["tensors"] for t in facts["types"]) == len(facts["tensors"])
    assert sum(t["bytes"] for t in facts["types"]) == sum(t["bytes"] for t in facts["tensors"])
    assert {t["kernel"] for t in facts["types"]} <= {"blocks", "dense"}
    assert {t["card"] for t in facts["types"]} == {"f16, 16 bits", "f32, 32 bits"}
    assert facts["metadata"]["general.architecture"] == "qwen3"
    assert facts["metadata"]["tokenizer.ggml.tokens"]["length"] > 16
    shown = run("inspect", QWEN3, "--tensors", "--metadata").out
    assert "token_embd.weight" in shown
    assert "general.architecture = 'qwen3'" in shown
    # Which kernel each tensor gets, and not only each type.
    of_type = {t["type"]: (t["kernel"], t["card"]) for t in facts["types"]}
    assert all((t["kernel"], t["card"]) == of_type[t["type"]] for t in facts["tensors"])
    line = next(line for line in shown.splitlines() if "token_embd.weight" in line)
    assert "dense" in line and "f16, 16 bits" in line


def test_bench_measures_what_it_says(run: Run) -> None:
    result = run("bench", LLAMA, "-p", "20", "-n", "5", "-r", "2", "--json", "--threads", "2")
    facts = result.json
    assert (facts["n_prompt"], facts["n_decode"], facts["threads"]) == (20, 5, 2)
    for key in ("prefill_tok_s", "decode_tok_s", "first_token_s"):
        values = facts[key]["values"]
        assert len(values) == 2
        assert min(values) > 0
        assert min(values) <= facts[key]["median"] <= max(values)
    assert facts["peak_memory_bytes"] > Path(LLAMA).stat().st_size
    shown = run("bench", LLAMA, "-p", "20", "-n", "0", "-r", "1").out
    assert "prefill 20" in shown
    assert "decode" not in shown


def test_devices_begin_with_the_processor(run: Run) -> None:
    facts = run("devices", "--json").json
    assert facts["devices"][0]["id"] == "cpu"
    assert facts["devices"][0]["cores"] >= 1
    assert run("devices").out.startswith("cpu")


def test_version(run: Run) -> None:
    assert run("version").out.startswith("0.")
    assert run("--version").out == run("version").out


def test_the_demo_model_is_installed_when_it_is_asked_for(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "install", lambda on_progress: Path(LLAMA))
    result = run("tokenize", "--demo", "hello")
    assert result.json == run("tokenize", LLAMA, "hello").json
    assert "demo model" in result.err


def test_every_setting_with_a_flag_can_be_given(run: Run, capsys: Any) -> None:
    shown = run("generate", "--help").out
    for cls in (EngineConfig, SamplingParams):
        for name, info in settings_of(cls).items():
            assert info.flag in shown or name == "max_concurrency"


def test_every_exit_code_is_documented(run: Run) -> None:
    shown = run("--help").out
    codes = {value for name, value in vars(cli).items() if name.startswith("EXIT_CO") is False
             and name.startswith("EXIT_")}  # fmt: skip
    for code in codes:
        assert f"\n  {code} " in shown


def test_without_a_display_the_window_is_refused(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    result = run()
    assert (result.code, result.out) == (3, "")
    assert "generate" in result.err


@pytest.mark.parametrize("arguments", [[], ["--demo"], [LLAMA], ["gone.GGUF"]])
def test_files_and_nothing_open_the_window(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    opened: list[list[str]] = []
    monkeypatch.setattr(cli, "open_app", lambda given: opened.append(list(given)) or 0)
    assert main(arguments) == 0
    assert opened == [arguments]


def test_nothing_is_taken_apart_after_the_window(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []
    app = types.ModuleType("app.main")
    app.main = lambda given: ran.append(list(given)) or 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "app.main", app)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    gc.unfreeze()
    try:
        assert cli.open_app(["--demo"]) == 3
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    assert ran == [["--demo"]]


def test_logits_go_to_the_target_of_a_link(
    run: Run, tmp_path: Path, ids_file: Callable[[str], Path]
) -> None:
    target, link = tmp_path / "target.npy", tmp_path / "link.npy"
    link.symlink_to(target)
    ids = str(ids_file("[1, 2]"))
    assert run("logits", LLAMA, "--tokens-file", ids, "--out", str(link)).code == 0
    assert link.is_symlink() and np.load(target).shape == (2, 512)
