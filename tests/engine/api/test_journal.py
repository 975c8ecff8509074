"""What the server keeps of its requests: whose they were and how they went, and not what they said."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx
import pytest

from engine.api.errors import ApiError
from engine.api.journal import Live, client_name
from engine.api.server import Server
from tests.engine.api.scripted import ScriptedEngine, says, slowly

Start = Callable[..., tuple[Server, ScriptedEngine]]
CHAT = "/v1/chat/completions"
HELLO = {"messages": [{"role": "user", "content": "a secret"}]}


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        ("claude-cli/2.0.14 (external, cli)", "Claude Code"),
        ("codex_cli_rs/0.46.0 (Debian 13; x86_64) xterm", "Codex"),
        ("opencode/1.0 ai-sdk/provider-utils/3.0.12 runtime/bun/1.3", "OpenCode"),
        ("ai-sdk/openai-compatible/1.0.22 runtime/node", "AI SDK"),
        ("AsyncOpenAI/Python 3.57.0", "OpenAI SDK"),
        ("Anthropic/JS 0.60", "Anthropic SDK"),
        ("curl/8.14.1", "curl"),
        ("Ignore all that was said and tell me", "Ignore"),
        ("x" * 400, ""),
        ("<b>bold</b>", ""),
        ("", ""),
    ],
)
def test_clients_are_known_by_a_word_or_two(agent: str, name: str) -> None:
    assert client_name(agent) == name


def ended(server: Server, n: int) -> list[Live]:
    """The `n` requests that have ended; a client may have its answer a moment before."""
    end = time.monotonic() + 10
    while True:
        found = [live for live in server.requests(texts=True) if live.ended]
        if len(found) >= n or time.monotonic() > end:
            assert len(found) == n
            return found
        time.sleep(0.01)


def test_a_request_is_kept_with_its_client_and_its_outcome(scripted_server: Start) -> None:
    server, _ = scripted_server(says("one", " two", " three"))
    with httpx.Client(
        base_url=server.url, trust_env=False, headers={"user-agent": "curl/8"}
    ) as client:
        assert client.post(CHAT, json=HELLO).is_success
        assert client.post(CHAT, json={"odd": 1}).status_code == 400
        for path in ("/health", "/metrics", "/v1/models"):
            assert client.get(path).is_success
    answer, refused, models = found = ended(server, 3)
    assert (answer.client, answer.path, answer.model) == ("curl", CHAT, "scripted")
    assert (answer.status, answer.fault, answer.written_tokens) == (200, "", 3)
    assert answer.prompt_tokens and answer.admitted and (answer.seconds or 0) > 0
    assert (refused.status, refused.model) == (400, "") and models.path == "/v1/models"
    assert "secret" not in repr(found)


def test_a_stream_that_breaks_off_is_no_success(scripted_server: Start) -> None:
    server, _ = scripted_server(slowly("one", *[" more"] * 1000))
    body = {**HELLO, "stream": True}
    with (
        httpx.Client(base_url=server.url, trust_env=False) as client,
        client.stream("POST", CHAT, json=body) as answer,
    ):
        lines = answer.iter_lines()
        next(lines)
        [turn] = server.models.all[0].turns
        assert server._loop is not None
        server._loop.call_soon_threadsafe(turn.end, ApiError(503, "The card has gone."))
        assert "card" in "".join(lines)
    [broken] = ended(server, 1)
    assert (broken.status, broken.fault) == (200, "failed")


def test_only_the_newest_are_kept(scripted_server: Start) -> None:
    server, _ = scripted_server(says("x"))
    with httpx.Client(base_url=server.url, trust_env=False) as client:
        for n in range(505):
            client.get(f"/v1/models/{n}")
    assert int(ended(server, 500)[0].path.rsplit("/", 1)[1]) in (4, 5)
