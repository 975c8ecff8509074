"""What the server says of itself, and junk that it is sent."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anthropic
import httpx
import pytest

from engine.api.server import Server
from engine.reasoning import ThinkingLimits
from tests.engine.api.scripted import ScriptedEngine, says


def test_health_needs_nothing(client: httpx.Client) -> None:
    for path in ("/health", "/"):
        answer = client.get(path).json()
        assert answer["status"] == "ok"
        assert answer["models"] == [{"id": "tiny", "state": "ready"}]


def test_models_have_their_context(client: httpx.Client) -> None:
    [model] = client.get("/v1/models").json()["data"]
    assert (model["id"], model["object"], model["context_length"]) == ("tiny", "model", 512)
    assert client.get("/v1/models/tiny").json() == model
    assert client.get("/v1/models/other").status_code == 404


def test_models_can_be_listed_by_anthropics_sdk(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [n for n in os.environ if n.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with anthropic.Anthropic(base_url=server.url, api_key="none") as sdk:
        [model] = sdk.models.list()
        assert (model.id, model.type, sdk.models.retrieve("tiny").id) == ("tiny", "model", "tiny")


def test_codex_gets_its_own_schema(client: httpx.Client) -> None:
    [model] = client.get("/v1/models", params={"client_version": "1.0"}).json()["models"]
    assert (model["slug"], model["context_window"], model["visibility"]) == ("tiny", 512, "list")
    assert model["shell_type"] == "shell_command"
    assert len(model["supported_reasoning_levels"]) == 5


def test_tokens_there_and_back(client: httpx.Client) -> None:
    found = client.post("/tokenize", json={"content": "the thing"}).json()
    assert found["count"] == len(found["tokens"]) and found["max_model_len"] == 512
    assert (
        client.post("/detokenize", json={"tokens": found["tokens"]}).json()["content"]
        == "the thing"
    )
    pieces = client.post("/tokenize", json={"prompt": "the thing", "with_pieces": True}).json()
    assert [one["id"] for one in pieces["tokens"]] == found["tokens"]
    bos = client.post("/tokenize", json={"content": "the thing", "add_special": True}).json()
    assert bos["tokens"][1:] == found["tokens"]
    assert client.post("/tokenize", json={}).status_code == 400
    bad = client.post("/detokenize", json={"tokens": [10**9]})
    assert bad.status_code == 400 and "vocabulary" in bad.json()["error"]["message"]


def test_metrics_are_prometheus_text(client: httpx.Client) -> None:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    line = re.compile(r'[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [-+0-9.e]+')
    for text in answer.text.splitlines():
        assert text.startswith("# ") or line.fullmatch(text), text
    assert 'lucebox_context_tokens_max{model="tiny"} 512' in answer.text
    owners = ("running", "shared", "kept", "free", "ram")
    assert all(f'lucebox_cache_pages{{model="tiny",owner="{o}"}} ' in answer.text for o in owners)
    assert 'lucebox_cache_hits_total{model="tiny"} ' in answer.text


def test_counters_are_told_to_their_last_digit(
    scripted_server: Callable[..., tuple[Server, ScriptedEngine]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server, engine = scripted_server(says("yes"))
    cache = replace(engine.metrics().cache, reused_tokens_total=1_234_567)
    numbers = replace(engine.metrics(), prompt_tokens_total=98_765_432_101, cache=cache)
    monkeypatch.setattr(engine, "metrics", lambda: numbers)
    lines = httpx.get(f"{server.url}/metrics", timeout=60, trust_env=False).text.splitlines()
    assert 'lucebox_prompt_tokens_total{model="scripted"} 98765432101' in lines
    assert 'lucebox_cache_reused_tokens_total{model="scripted"} 1234567' in lines


def test_props_follow_luceboxs_schema(client: httpx.Client) -> None:
    props = client.get("/props").json()
    assert props["server"]["props_schema"] == 2
    assert props["default_generation_settings"]["n_ctx"] == 512
    assert props["model_alias"] == "tiny"
    assert props["model_path"] == "llama.gguf"  # a name, never where it lies
    assert "/v1/chat/completions" in props["api"]["endpoints"]
    assert props["reasoning"]["supported"] is False, "its template knows no marks of thinking"
    assert props["prefix_cache"]["capacity"] > 0 and "lifetime_hits" in props["prefix_cache"]


def test_props_hold_the_models_card_and_its_budgets(
    scripted_server: Callable[..., tuple[Server, ScriptedEngine]],
) -> None:
    server, engine = scripted_server(says("yes"))
    card = {"name": "scripted", "max_tokens": 1000, "hard_limit_reply_budget": 300}
    limits = ThinkingLimits.of_card(card, 16_000)
    engine._info = replace(engine._info, card=card, thinking=limits)
    props = httpx.get(f"{server.url}/props", timeout=60, trust_env=False).json()
    assert props["model_card"] == card
    budgets = props["budget_envelope"]
    assert budgets["max_tokens"] == 1000 and budgets["hard_limit_reply_budget"] == 300
    assert budgets["think_max_tokens"] == budgets["reasoning_effort_tiers"]["high"] == 700
    assert "temperature" in props["sampling"]["supported"]


def test_what_is_not_there_is_told_in_json(client: httpx.Client) -> None:
    for method, path, status in (
        ("GET", "/nothing", 404),
        ("GET", "/v1/chat/completions", 405),
        ("GET", "/v1/chat/completions/", 404),
        ("DELETE", "/v1/models", 405),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/v1/models/..%2f..%2fetc%2fpasswd", 404),
    ):
        answer = client.request(method, path)
        assert answer.status_code == status, path
        assert answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[]", b'"hi"', b"null", b"1", b"\xff\xfe", b"{}" * 10, b"[" * 100_000,
        b'{"messages": [{"role": "user", "content": "\xc4\xe3"}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
        b'{"messages": [{"role": "user", "content": "x"}], "temperature": 1e999}',
        b'{"messages": [{"role": "user", "content": 7}]}',
        b'{"messages": [{"role": "user"}]}',
        b'{"messages": [{"role": "tool", "content": "x"}], "tools": [7]}',
        b'{"messages": [{"role": "user", "content": "x"}], "seed": 1e400}',
    ],
)  # fmt: skip
def test_junk_is_refused_and_harms_nothing(client: httpx.Client, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    answer = client.post("/v1/chat/completions", content=body, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"]["message"]
    assert client.get("/health").status_code == 200


def test_another_content_type_is_refused(client: httpx.Client) -> None:
    # A page may send text/plain anywhere without asking first.
    body = b'{"messages": [{"role": "user", "content": "x"}]}'
    answer = client.post(
        "/v1/chat/completions", content=body, headers={"content-type": "text/plain"}
    )
    assert answer.status_code == 400 and "application/json" in answer.json()["error"]["message"]


def test_a_lone_surrogate_is_answered(client: httpx.Client) -> None:
    headers = {"content-type": "application/json"}
    body = b'{"messages": [{"role": "user", "content": "\\ud800"}], "max_tokens": 1, "\\udfff": 1}'
    answer = client.post("/v1/chat/completions", content=body, headers=headers)
    assert answer.status_code == 400 and answer.json()["error"]["message"]


def test_a_schema_that_cannot_be_kept_is_refused(client: httpx.Client) -> None:
    schema: Any = {
        "type": "object", "properties": {"a": {"type": "string", "pattern": "^(unclosed$"}},
        "required": ["a"], "additionalProperties": False,
    }  # fmt: skip
    form = {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}
    body = {"messages": [{"role": "user", "content": "x"}], "response_format": form}
    answer = client.post("/v1/chat/completions", json=body)
    assert answer.status_code == 400 and answer.json()["error"]["message"]


def test_many_requests_on_one_connection(client: httpx.Client) -> None:
    for _ in range(3):
        assert client.get("/v1/models").status_code == 200
        assert client.post("/v1/chat/completions", json={}).status_code == 400


@pytest.mark.parametrize(
    "data", [b"\x00" * 100, b"GET / HTTP/9.9\r\n\r\n", b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 50_000]
)
def test_what_is_no_http_is_answered_or_closed(server: Server, data: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
        try:
            connection.sendall(data)
            assert connection.recv(100)[:10] in (b"", b"HTTP/1.1 4")
        except (ConnectionResetError, BrokenPipeError):
            pass
    assert httpx.get(f"{server.url}/health", trust_env=False).status_code == 200
