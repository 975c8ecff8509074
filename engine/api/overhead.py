"""What the API costs: the time between a client and the engine, without any computing."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from engine.api import caller
from engine.api.served import Served
from engine.api.server import Server
from engine.bench import Series
from engine.chat import ChatTemplate
from engine.config import SamplingParams, ServerConfig
from engine.engine import Engine, Status
from engine.errors import EngineError
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
            path, "bench", "", "", 0, 0, 1 << 20, self._tokens.vocab_size, SamplingParams()
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
    """Time `rounds` requests over the loopback address, each with a new prompt of `PROMPT_TOKENS`.

    What comes has come when it lies in the socket of the client, which is another process.
    """
    engine = _Instant(path)
    server = Server(ServerConfig(port=0), [Served(engine)])
    server.start()
    requests: list[float] = []
    tokens: list[float] = []
    try:
        with _caller(server.port) as ask:
            for n in range(-2, rounds):  # the first ones warm up
                if on_round is not None:
                    on_round(max(0, n))
                engine.n_tokens = _TOKENS if n == rounds - 1 else 1
                engine.sent.clear()
                began, *seen = ask(_prompt(engine.tokenizer, n))
                if n >= 0:
                    requests.append((seen[0] - began) * 1e3)
                tokens = [(b - a) * 1e3 for a, b in zip(engine.sent, seen, strict=True)]
    finally:
        server.stop()
    return Overhead(Series(tuple(requests)), Series(tuple(tokens)))


@contextlib.contextmanager
def _caller(port: int) -> Iterator[Callable[[str], list[float]]]:
    """Asks of another process a chat that begins with a prompt; gives what `caller` writes."""
    # Where cores are few, looking all the time would keep the server from them.
    look = "spin" if (os.cpu_count() or 1) > 2 else "wait"
    command = [sys.executable, "-I", caller.__file__, str(port), look]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        to, answers = process.stdin, process.stdout

        def ask(prompt: str) -> list[float]:
            messages = [{"role": "user", "content": prompt}]
            print(json.dumps({"messages": messages, "stream": True}), file=to, flush=True)
            if not (line := answers.readline()):
                raise EngineError("The client that measures the API has ended.")
            found: list[float] = json.loads(line)
            return found

        yield ask
        to.close()


def _prompt(tokenizer: Tokenizer, seed: int) -> str:
    choose, words = random.Random(seed), ["the"]
    while (n := len(tokenizer.encode(" ".join(words)))) < PROMPT_TOKENS:
        more = max(1, (PROMPT_TOKENS - n) // 4)
        words += (
            "".join(choose.choices("aeiounrstl", k=choose.randint(2, 9))) for _ in range(more)
        )
    return " ".join(words)
