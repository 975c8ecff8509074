"""How soon an agent's next turn begins whose chat so far is known, against what is new of it alone."""

from __future__ import annotations

import http.client
import json
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from engine.api.served import Served
from engine.api.server import Server
from engine.bench import Series
from engine.config import ServerConfig
from engine.engine import Engine
from engine.errors import BadRequest

CONTEXT = 8000
ROOM = 512
"""Tokens of context that a turn needs besides what is known and what is new."""

_ANSWER = 16
_PATIENCE_S = 600.0
_WORDS = "the of and to in is it for that was on are with as his they be at one have this from"

Chat = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class CachedTurn:
    """A turn of `prompt_tokens`, of which `new_tokens` were not known, and a chat of about as many alone, of
    `alone_tokens`: milliseconds to the first piece of text."""

    prompt_tokens: int
    new_tokens: int
    alone_tokens: int
    turn_ms: Series
    alone_ms: Series

    @property
    def ratio(self) -> float:
        """How many times as long the turn takes."""
        return self.turn_ms.median / self.alone_ms.median

    def facts(self) -> dict[str, object]:
        """For JSON."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "new_tokens": self.new_tokens,
            "alone_tokens": self.alone_tokens,
            "turn_ms": self.turn_ms.facts(),
            "alone_ms": self.alone_ms.facts(),
            "ratio": self.ratio,
        }


def measure(
    engine: Engine,
    context: int,
    new: int,
    rounds: int,
    on_round: Callable[[int], None] | None = None,
) -> CachedTurn:
    """Time `rounds` turns of about `new` tokens behind a chat of about `context`, over the loopback address.

    A turn as agents make them: the chat, its answer and then a tool's result. Alone it is a first message
    that makes a prompt of about as many tokens as were new of the turn. Both differ each time. Raises
    `BadRequest` for what the server refuses.
    """
    server = Server(ServerConfig(port=0), [Served(engine, "bench")])
    server.start()
    assert engine.tokenizer is not None
    words = Words(engine.tokenizer.encode)
    chat: Chat = [{"role": "user", "content": words.about(context)}]
    turns: list[_Timed] = []
    alone: list[_Timed] = []
    try:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=_PATIENCE_S)
        first = _ask(connection, chat, _ANSWER)
        chat.append({"role": "assistant", "content": first.text})
        more = 0
        for n in range(rounds + 1):
            if on_round is not None:
                on_round(n)
            told, other = (
                {"role": "user", "content": words.about(length)} for length in (new, new + more)
            )
            turns.append(_ask(connection, [*chat, told]))
            alone.append(_ask(connection, [other]))
            if n == 0:
                more = max(1 - new, turns[0].new_tokens - alone[0].prompt_tokens)
        connection.close()
    finally:
        server.stop()
    return CachedTurn(
        turns[-1].prompt_tokens,
        turns[-1].new_tokens,
        alone[-1].prompt_tokens,
        Series(tuple(t.ms for t in turns[1:])),  # the first ones warm up
        Series(tuple(t.ms for t in alone[1:])),
    )


class Words:
    """Texts of common words, none of which begin alike."""

    def __init__(self, encode: Callable[[str], Sequence[Any]]) -> None:
        self._encode = encode
        self._rng = random.Random(1)

    def about(self, n: int) -> str:
        """A text of about `n` tokens."""
        found = [str(self._rng.randrange(10**6)), *self._rng.choices(_WORDS.split(), k=n)]
        while (much := len(self._encode(" ".join(found)))) > n and len(found) > 1:
            del found[max(1, min(len(found) - 1, len(found) * n // much)) :]
        return " ".join(found)


@dataclass(frozen=True, slots=True)
class _Timed:
    ms: float
    text: str
    prompt_tokens: int
    cached_tokens: int

    @property
    def new_tokens(self) -> int:
        return self.prompt_tokens - self.cached_tokens


def _ask(connection: http.client.HTTPConnection, chat: Chat, n: int = 1) -> _Timed:
    body = {
        "messages": chat, "stream": True, "stream_options": {"include_usage": True}, "max_tokens": n,
        "temperature": 0, "ignore_eos": True, "reasoning_effort": "none",
    }  # fmt: skip
    data = json.dumps(body).encode()
    start = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", data, {"content-type": "application/json"})
    response = connection.getresponse()
    ms, text = 0.0, ""
    usage: dict[str, Any] = {}
    for line in response:
        told = line.removeprefix(b"data: ").strip()
        if response.status != 200 or b'"error"' in told[:10]:
            raise BadRequest(f"The server refused a turn: {told.decode()[:300]}")
        if not told.startswith(b"{"):
            continue
        chunk = json.loads(told)
        for choice in chunk["choices"]:
            if choice["finish_reason"] or choice["delta"].get("content"):
                ms = ms or (time.perf_counter() - start) * 1e3
            text += choice["delta"].get("content") or ""
        usage = chunk["usage"] or usage
    details = usage["prompt_tokens_details"]
    return _Timed(ms, text, usage["prompt_tokens"], details["cached_tokens"])
