"""`lucebox connect`: settings with which other programs use this server."""

from __future__ import annotations

import ipaddress
import json
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from engine.api import auth
from engine.errors import BadRequest, EngineError
from engine.files import write_atomically

NO_KEY = "lucebox"
"""What clients that must have a key send to a server that needs none."""

_WAIT_S = 10.0
_MOST_BYTES = 1 << 24
_ANSWER = 8192
# What was seen of their system prompts and tools in November 2026, in tokens.
_OWN_PROMPTS = {"claude-code": 20_100, "codex": 6_400, "opencode": 7_600, "pi": 1_400}


@dataclass(frozen=True, slots=True)
class Target:
    """The server and model to use: `url` without /v1, `context` in tokens."""

    url: str
    model: str
    context: int
    key: str = NO_KEY

    @property
    def answer(self) -> int:
        """Tokens of the context that clients shall keep free for an answer."""
        return min(_ANSWER, self.context // 2)


@dataclass(frozen=True, slots=True)
class Recipe:
    """One client's settings: a text for one of its files, and how the client is started with them.

    `merge` puts the text into what the file holds already.
    """

    file: Path
    text: str
    start: str
    merge: Callable[[str, str], str]


def address(host: str, port: int) -> str:
    """The URL, without /v1, under which programs on this PC reach a server that listens on `host`."""
    if host in ("0.0.0.0", "::", ""):
        host = "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def own_addresses() -> list[tuple[str, str]]:
    """(address, network card) of this PC in its networks, those that others can reach alone."""
    import psutil

    found = []
    for card, ways in psutil.net_if_addrs().items():
        for way in ways:
            try:
                ip = ipaddress.ip_address(way.address)
            except ValueError:
                continue  # a hardware address, or one that is good for one card only
            if not (ip.is_loopback or ip.is_link_local or ip.is_multicast):
                found.append((str(ip), card))
    return sorted(found, key=lambda one: (":" in one[0], one))


def find_target(url: str, key: str | None = None, model: str | None = None) -> Target:
    """Ask a running server for its models; `EngineError` where none answers or it has no such model.

    A server on this PC that asks for a key gets the one that is kept here.
    """
    _refuse_unless_url(url)
    found = _models(url, key)
    if found is None and key is None and _is_here(url):
        key = auth.known_key()
        found = _models(url, key)
    if found is None:
        raise EngineError(f"The server at {url} wants its API key; give it with --key.")
    for name, context in found.items():
        if context and model in (None, name):
            return Target(url, name, context, key or NO_KEY)
    wanted, names = f" {model!r}" if model else "", ", ".join(found) or "none"
    raise BadRequest(f"The server has no model{wanted} that is ready; it has {names}.")


def _refuse_unless_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        sound = False
    if not sound or re.search(r"[\s\x00-\x1f]", url):
        raise BadRequest(f"--url: found {url!r}, expected one such as http://127.0.0.1:8080.")


def _models(url: str, key: str | None) -> dict[str, int | None] | None:
    """Each model of a server and its context, if it is ready; None where it wants another key."""
    # Slow to import, and of no use to who only wants a recipe.
    import http.client
    import urllib.error
    import urllib.request

    request = urllib.request.Request(f"{url}/v1/models")
    if key is not None:
        request.add_header("Authorization", f"Bearer {key}")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=_WAIT_S) as answer:
            found = answer.read(_MOST_BYTES)
    except urllib.error.HTTPError as error:
        if error.code == 401:
            return None
        raise EngineError(f"The server at {url} refused: {error.reason}.") from error
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise EngineError(
            f"No server answers at {url}. Start one with `lucebox serve MODEL`, or give its --url."
        ) from error
    try:
        return {model["id"]: model["context_length"] for model in json.loads(found)["data"]}
    except (ValueError, KeyError, TypeError) as error:
        raise EngineError(
            f"What answers at {url} is no Lucebox server; give the address of one with --url."
        ) from error


def _is_here(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def recipe(client: str, target: Target, home: Path | None = None) -> Recipe:
    """The settings of one of `CLIENTS`, whose files are in the user's home."""
    return CLIENTS[client](target, home or Path.home())


def advice(client: str, target: Target) -> str | None:
    """What to do where the client's own prompt and an answer do not fit the context; some sum up forever."""
    prompt = _OWN_PROMPTS[client]
    if prompt + target.answer <= target.context:
        return None
    least = -(-(prompt + _ANSWER) // 1024) * 1024
    return (
        f"The prompt of {client} takes about {prompt:,} tokens by itself, and the context of the model holds"
        f" {target.context:,}. Load the model with --max-ctx {least} or more."
    )


def write(found: Recipe) -> Path:
    """Put settings into the client's file, of which a copy is kept, and return it."""
    path = found.file
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = found.merge(before, found.text)
        path.parent.mkdir(parents=True, exist_ok=True)
        if before and before != after:
            shutil.copy2(path, path.with_name(path.name + ".bak"))
        write_atomically(path, after.encode())
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(f"{path} cannot be changed: {error}.") from error
    return path


def _claude_code(target: Target, home: Path) -> Recipe:
    file = home / ".claude" / "lucebox.json"
    env = {
        "ANTHROPIC_BASE_URL": target.url,
        "ANTHROPIC_AUTH_TOKEN": target.key,
        "ANTHROPIC_MODEL": target.model,
        "ANTHROPIC_DEFAULT_OPUS_MODEL": target.model,
        "ANTHROPIC_DEFAULT_SONNET_MODEL": target.model,
        "ANTHROPIC_DEFAULT_HAIKU_MODEL": target.model,
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(target.answer),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    }
    return Recipe(file, _json({"env": env}), f'claude --settings "{file}"', _whole)


def _codex(target: Target, home: Path) -> Recipe:
    text = "\n".join(
        [
            "[model_providers.lucebox]",
            'name = "Lucebox"',
            f'base_url = "{target.url}/v1"',
            'wire_api = "responses"',
            "supports_websockets = false",
            f"experimental_bearer_token = {json.dumps(target.key)}",
            "",
        ]
    )
    options = {
        "model_provider": "lucebox",
        "model": target.model,
        "model_context_window": target.context,
        # Both are tools that OpenAI's own servers run.
        "web_search": "disabled",
        "features.multi_agent": False,
    }
    given = " ".join(f"-c '{name}={json.dumps(value)}'" for name, value in options.items())
    return Recipe(home / ".codex" / "config.toml", text, f"codex {given}", _toml)


def _opencode(target: Target, home: Path) -> Recipe:
    limit = {"context": target.context, "output": target.answer}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Lucebox",
        "options": {
            "baseURL": f"{target.url}/v1",
            "apiKey": target.key,
            "timeout": 600_000,
            "chunkTimeout": 60_000,
        },
        "models": {target.model: {"name": target.model, "limit": limit}},
    }
    settings = {"$schema": "https://opencode.ai/config.json", "provider": {"lucebox": provider}}
    start = f"opencode --model lucebox/{target.model}"
    return Recipe(home / ".config" / "opencode" / "opencode.json", _json(settings), start, _merged)


def _pi(target: Target, home: Path) -> Recipe:
    model = {
        "id": target.model,
        "name": target.model,
        "reasoning": False,
        "input": ["text"],
        "contextWindow": target.context,
        "maxTokens": target.answer,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {
        "baseUrl": f"{target.url}/v1",
        "api": "openai-completions",
        "apiKey": target.key,
        "models": [model],
        "compat": {"supportsUsageInStreaming": True, "maxTokensField": "max_tokens"},
    }
    settings = {"providers": {"lucebox": provider}}
    start = f"pi --provider lucebox --model {target.model}"
    return Recipe(home / ".pi" / "agent" / "models.json", _json(settings), start, _merged)


CLIENTS: Mapping[str, Callable[[Target, Path], Recipe]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "opencode": _opencode,
    "pi": _pi,
}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _whole(before: str, text: str) -> str:
    return text


def _merged(before: str, text: str) -> str:
    """`text`'s keys in the JSON object `before`; objects in it are merged too, and others replaced."""
    if not before.strip():
        return text
    try:
        old = json.loads(before)
    except ValueError as error:
        raise EngineError(
            f"The file is not plain JSON ({error}); put the settings in by hand."
        ) from error
    if not isinstance(old, dict):
        raise EngineError("The file holds no JSON object; put the settings in by hand.")
    return _json(_joined(old, json.loads(text)))


def _joined(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    out = dict(old)
    for key, value in new.items():
        before = out.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        # Lucebox's own part is replaced, so that old models go.
        out[key] = _joined(before, value) if both and key != "lucebox" else value  # type: ignore[arg-type]
    return out


def _toml(before: str, text: str) -> str:
    """`text`, which is one table, in the place of the table of that name, else at the end."""
    head = text.splitlines()[0]
    pattern = rf"(?m)^{re.escape(head)}[^\n]*\n(?:(?!\[)[^\n]*(?:\n|\Z))*"
    kept = re.sub(pattern, "", before).rstrip("\n")
    return f"{kept}\n\n{text}" if kept else text
