"""Settings for other programs."""

from __future__ import annotations

import json
import socket
import threading
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from engine import connect
from engine.connect import CLIENTS, Target
from engine.errors import BadRequest, EngineError

TARGET = Target("http://127.0.0.1:8080", "tiny", 4096, "sk-x")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    return tmp_path


@pytest.mark.parametrize("client", CLIENTS)
def test_settings_name_the_server_the_model_and_the_key(client: str) -> None:
    found = connect.recipe(client, TARGET)
    path = connect.write(found)
    text = path.read_text(encoding="utf-8")
    assert "127.0.0.1:8080" in text and "sk-x" in text
    assert "tiny" in text + found.start
    assert connect.write(found).read_text(encoding="utf-8") == text


def test_what_the_client_had_stays(home: Path) -> None:
    path = home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    old = {"theme": "dark", "provider": {"other": {"a": 1}, "lucebox": {"models": {"old": {}}}}}
    path.write_text(json.dumps(old), encoding="utf-8")
    connect.write(connect.recipe("opencode", TARGET))
    new = json.loads(path.read_text(encoding="utf-8"))
    assert new["theme"] == "dark" and new["provider"]["other"] == {"a": 1}
    assert list(new["provider"]["lucebox"]["models"]) == ["tiny"]
    assert json.loads(path.with_name("opencode.json.bak").read_text(encoding="utf-8")) == old


def test_a_toml_table_is_replaced_and_the_rest_stays(home: Path) -> None:
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    path.write_text(
        'model = "x"\n\n[model_providers.lucebox]\nname = "old"\nbase_url = "old"\n\n'
        "[tui]\na = 1\n",
        encoding="utf-8",
    )
    connect.write(connect.recipe("codex", TARGET))
    new = tomllib.loads(path.read_text(encoding="utf-8"))
    assert new["model"] == "x" and new["tui"] == {"a": 1}
    assert new["model_providers"]["lucebox"]["base_url"] == "http://127.0.0.1:8080/v1"


def test_a_file_that_cannot_be_read_is_left_alone(home: Path) -> None:
    path = home / ".config/opencode/opencode.json"
    path.parent.mkdir(parents=True)
    path.write_text("{ // comment\n}", encoding="utf-8")
    with pytest.raises(EngineError, match="by hand"):
        connect.write(connect.recipe("opencode", TARGET))
    assert path.read_text(encoding="utf-8") == "{ // comment\n}"


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(EngineError, match="lucebox serve"):
        connect.find_target("http://127.0.0.1:9")


@pytest.mark.parametrize(
    "url", ["", "localhost:8080", "ftp://x", "http://", "http://[::1", "http://a b"]
)
def test_what_is_no_address_is_told(url: str) -> None:
    with pytest.raises(BadRequest, match="--url"):
        connect.find_target(url)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "No server answers"),
        (b"HTTP/1.0 200 OK\r\n\r\n<html>", "no Lucebox server"),
        (b'HTTP/1.0 200 OK\r\n\r\n{"data": [{"id": "other"}]}', "no Lucebox server"),
        (b'HTTP/1.0 200 OK\r\n\r\n{"data": []}', "it has none"),
    ],
)
def test_what_answers_and_is_no_server_of_ours_is_told(said: bytes, told: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as client:
                client.recv(1 << 16)
                client.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(EngineError, match=told):
            connect.find_target(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_context_that_the_client_fills_by_itself_is_told(client: str) -> None:
    small = replace(TARGET, context=2048)
    said = connect.advice(client, small)
    assert said is not None and client in said and "2,048" in said
    least = int(said.split("--max-ctx ")[1].split(" ")[0])
    assert connect.advice(client, replace(TARGET, context=least)) is None
    assert connect.advice(client, replace(TARGET, context=least // 4)) is not None
