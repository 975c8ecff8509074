"""`lucebox serve`, `key` and `connect` as processes and in this one."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from engine import cli, keyring_store
from engine.api import auth, command, flags
from engine.api.server import Server
from engine.cards import overlaid
from engine.cli import main
from engine.command_line import EXIT_CODES, build_parser
from engine.config import DiskCacheConfig
from engine.errors import BadRequest
from engine.reasoning import Thinking, ThinkingLimits
from tests.engine.oracle import model_path
from tests.ring import Ring

ROOT = Path(__file__).parents[3]
LLAMA, QWEN3 = str(model_path("llama")), str(model_path("qwen3"))


def parsed(*arguments: str) -> argparse.Namespace:
    return build_parser()[0].parse_args(["serve", *arguments])


def test_engine_flags_belong_to_their_block() -> None:
    args = parsed(
        "--threads", "2", "a.gguf", "--model", "b.gguf", "--max-ctx", "512", "--model-name", "b",
        "--port", "99", "--model", "c.gguf", "--device", "cuda:1", "--threads", "7",
    )  # fmt: skip
    assert flags.blocks(args) == [
        ("a.gguf", None, {"threads": 2}),
        ("b.gguf", "b", {"threads": 2, "max_ctx": 512}),
        ("c.gguf", None, {"threads": 7, "device": "cuda:1"}),
    ]
    assert flags.server_config(args).port == 99


def test_luceboxs_own_names_are_understood() -> None:
    args = parsed(
        "a.gguf", "--model-name", "x", "--chunk", "64", "--target-device", "cpu",
        "--default-max-tokens", "7", "--no-cors", "--max-concurrency", "3", "--ddtree",
        "--ddtree-budget", "22",
    )  # fmt: skip
    assert flags.blocks(args) == [
        (
            "a.gguf",
            "x",
            {
                "prefill_chunk": 64,
                "device": "cpu",
                "max_concurrency": 3,
                "spec": "tree",
                "budget": 22,
            },
        )
    ]
    assert flags.server_config(args).max_tokens == 7


def test_thinking_budgets_take_the_place_of_the_cards() -> None:
    args = parsed(
        "--reasoning-effort-low", "100", "--think-max-tokens", "900", "a.gguf", "--model", "b.gguf",
        "--reasoning-effort-x-high", "500", "--hard-limit-reply-budget", "50",
    )  # fmt: skip
    (_, _, first), (_, _, second) = flags.blocks(args)
    card = {"max_tokens": 4000, "reasoning_effort_tiers": {"low": 7, "high": 2000}}
    limits = ThinkingLimits.of_card(overlaid(card, first["card"]), 1)
    assert (limits.tiers["low"], limits.tiers["high"]) == (100, 900)
    assert limits.max_tokens - limits.reply == 900
    assert limits.think_until(Thinking(budget=5000), 10_000) == 900
    limits = ThinkingLimits.of_card(overlaid(card, second["card"]), 1)
    assert (limits.tiers["low"], limits.tiers["x-high"], limits.reply) == (100, 500, 50)


def test_flags_for_what_is_so_anyway_change_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    given = [word for flag, value in flags.HOLD.items() for word in (flag, value) if word]
    assert flags.blocks(parsed("a.gguf", *given)) == [("a.gguf", None, {})]
    assert flags.blocks(parsed("--paged-attention", "a.gguf")) == [("a.gguf", None, {})]
    assert main(["serve", "a.gguf", "--cache-type-k", "q8_0"]) == 2
    assert "--cache-type-k: " in capsys.readouterr().err
    assert main(["serve", "a.gguf", "--think-max-tokens", "0"]) == 2
    assert "at least 1" in capsys.readouterr().err


def test_lists_may_be_given_several_times() -> None:
    args = parsed("a.gguf", "--cors", "http://a", "--cors", "http://b", "--load-balancing")
    config = flags.server_config(args)
    assert config.allowed_origins == ["http://a", "http://b"] and config.load_balancing
    with pytest.raises(BadRequest, match="exclude"):
        flags.server_config(parsed("a.gguf", "--cors", "http://a", "--no-cors"))
    for no_origin in ("*", "null", "", "localhost:5173", "http://a/page"):
        with pytest.raises(BadRequest, match="http://localhost:5173"):
            flags.server_config(parsed("a.gguf", "--cors", no_origin))


@pytest.mark.parametrize("flag", ["--spark", "--kvflash", "--mmproj", "--fa-window"])
def test_what_is_missing_is_refused_by_name(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", LLAMA, flag, "x"]) == 2
    assert f"{flag}: {flags.MISSING[flag]}" in capsys.readouterr().err


def test_a_name_needs_one_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert flags.blocks(parsed("--demo", "--model-name", "x")) == [(None, "x", {})]
    assert main(["serve", LLAMA, QWEN3, "--model-name", "x"]) == 2
    assert "--model-name" in capsys.readouterr().err
    assert main(["serve"]) == 2
    assert "--demo" in capsys.readouterr().err


def test_a_taken_port_is_told_before_a_model_is_loaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["serve", "missing.gguf", "--port", port]) == 1
    assert port in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_two_models_are_served_until_a_signal_ends_it(number: int) -> None:
    command = [
        sys.executable, "-m", "engine.cli", "serve", "--port", "0", "--threads", "2",
        "--max-ctx", "256", "--model", LLAMA, "--model-name", "one", "--model", LLAMA,
    ]  # fmt: skip
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None and server.stderr is not None
        url = server.stdout.readline().strip()
        try:
            models = httpx.get(f"{url}/v1/models", trust_env=False).json()["data"]
            assert [model["id"] for model in models] == ["one", "llama"]
            body = {
                "model": "llama",
                "messages": [{"role": "user", "content": "x"}],
                "stream": True,
            }
            with httpx.stream(
                "POST", f"{url}/v1/chat/completions", json=body, timeout=60, trust_env=False
            ) as answer:
                assert answer.status_code == 200
                server.send_signal(number)
                answer.read()
            assert server.wait(30) == 0 and "a server is done then: 0" in EXIT_CODES
        finally:
            server.kill()
        said = server.stderr.read()
    assert "Stopping." in said and "Traceback" not in said


def test_without_a_keyring_it_serves_without_a_disk_cache(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(keyring_store, "_keyring", lambda: None)
    config = DiskCacheConfig(disk_cache=True, disk_cache_dir=str(tmp_path))
    with contextlib.ExitStack() as stack:
        assert command._archive(config, stack, cli.Console()) is None
    assert "Note: The disk cache stays off: no keyring" in capsys.readouterr().err
    monkeypatch.setattr(keyring_store, "_keyring", lambda ring=Ring(): ring)
    with contextlib.ExitStack() as stack:
        assert command._archive(config, stack, cli.Console()) is not None
        assert command._archive(DiskCacheConfig(), stack, cli.Console()) is None


def test_the_key_is_shown_and_renewed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyring_store, "_keyring", lambda: None)
    assert main(["key"]) == main(["key"]) == 0
    first, again = capsys.readouterr().out.split()
    assert first == again == auth.api_key()
    assert main(["key", "--renew"]) == 0
    assert capsys.readouterr().out.strip() != first


def test_connect_asks_the_server_for_its_model(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connect", "opencode", "--url", f"{server.url}/v1/"]) == 0
    out, err = capsys.readouterr()
    [model] = json.loads(out)["provider"]["lucebox"]["models"].values()
    assert model["limit"]["context"] == 512 and "opencode" in err
    assert main(["connect", "pi", "--url", server.url, "--model", "other"]) == 2
    assert "tiny" in capsys.readouterr().err
    assert main(["connect", "pi", "--url", "http://127.0.0.1:9"]) == 1
    assert "lucebox serve" in capsys.readouterr().err
