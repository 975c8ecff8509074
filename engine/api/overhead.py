"""What the API costs: the time between a client and the engine, without any computing."""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from engine.api.served import Served
from engine.api.server import Server
from engine.bench import Series
from engine.chat import ChatTemplate
from engine.config import SamplingParams, ServerConfig
from engine.engine import Engine, Status
from engine.gguf import read_header
from engine.pieces import Content
from engine.tokenizer import Tokenizer
from engine.types import (
    Accepted,
    Finished,
    FinishReason,
    ModelInfo,
    OnEvent,
    Request,
    Started,
    TextDelta,
    Usage,
)

PROMPT_TOKENS = 1000
_TOKENS = 100
_BETWEEN_S = 0.002  # tokens that come together would share one way to the client
_PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Overhead:
    """Milliseconds: from a request to its first token, and from each token to its client."""

    request_ms: Series
    token_ms: Series


class _Instant(Engine):
    """Reads prompts as the engine does, and writes at once; `sent` are the times of its tokens."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        header = read_header(path)
        self._tokens = Tokenizer.from_gguf(header.meta)
        self._chat = ChatTemplate.from_gguf(header.meta, self._tokens)
        self._worker = ThreadPoolExecutor(1)
        self.n_tokens = 1
        self.sent: list[float] = []
        self._facts = ModelInfo(
            path, "bench", "", "", 0, 0, 1 << 20, self._tokens.vocab_size, True, SamplingParams()
        )

    @property
    def tokenizer(self) -> Tokenizer:
        return self._tokens

    @property
    def chat_template(self) -> ChatTemplate:
        return self._chat

    def status(self) -> Status:
        """Always ready."""
        return Status("ready", self._facts, 0, 0)

    def submit(self, request: Request, on_event: OnEvent) -> int:
        """Answer on a thread of its own, as the serving thread would."""
        self._worker.submit(self._write, request, on_event)
        return 1

    def cancel(self, request_id: int) -> None:
        """Nothing runs long."""

    def _write(self, request: Request, on_event: OnEvent) -> None:
        n = len(self._chat.encode(request.messages or (), None, True))
        on_event(Accepted(1, n, ""))
        on_event(Started(1, n, 0))
        for _ in range(self.n_tokens):
            self.sent.append(time.perf_counter())
            on_event(TextDelta(1, " word", (1,), (Content(" word"),)))
            time.sleep(_BETWEEN_S)
        on_event(Finished(1, FinishReason.STOP, Usage(n, completion_tokens=self.n_tokens)))


def measure(
    path: Path, rounds: int = 50, on_round: Callable[[int], None] | None = None
) -> Overhead:
    """Time `rounds` requests over the loopback address, each with a new prompt of `PROMPT_TOKENS`."""
    engine = _Instant(path)
    server = Server(ServerConfig(port=0), [Served(engine)])
    server.start()
    requests: list[float] = []
    tokens: list[float] = []
    try:
        with socket.create_connection(("127.0.0.1", server.port), _PATIENCE_S) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for n in range(-2, rounds):  # the first ones warm up
                if on_round is not None:
                    on_round(max(0, n))
                data = _request(_prompt(engine.tokenizer, n))
                engine.n_tokens = _TOKENS if n == rounds - 1 else 1
                engine.sent.clear()
                start = time.perf_counter()
                connection.sendall(data)
                seen = _arrivals(connection)
                if n >= 0:
                    requests.append((seen[0] - start) * 1e3)
                tokens = [(b - a) * 1e3 for a, b in zip(engine.sent, seen, strict=True)]
    finally:
        server.stop()
    return Overhead(Series(tuple(requests)), Series(tuple(tokens)))


def _prompt(tokenizer: Tokenizer, seed: int) -> str:
    choose, words = random.Random(seed), ["the"]
    while (n := len(tokenizer.encode(" ".join(words)))) < PROMPT_TOKENS:
        more = max(1, (PROMPT_TOKENS - n) // 4)
        words += (
            "".join(choose.choices("aeiounrstl", k=choose.randint(2, 9))) for _ in range(more)
        )
    return " ".join(words)


def _request(prompt: str) -> bytes:
    messages = [{"role": "user", "content": prompt}]
    body = json.dumps({"messages": messages, "stream": True}).encode()
    head = (
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _arrivals(connection: socket.socket) -> list[float]:
    """When each piece of text came, up to the end of the stream."""
    seen: list[float] = []
    data = b""
    while not data.endswith(b"0\r\n\r\n"):
        part = connection.recv(1 << 16)
        now = time.perf_counter()
        if not part:
            raise ConnectionError("The server closed the connection.")
        data += part
        *whole, data = data.split(b"\n\n")
        seen += [now] * sum(piece.count(b" word") for piece in whole)
    return seen
