"""An engine that writes what a test says, in the pieces that it says."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from engine.chat import ChatTemplate
from engine.config import EngineConfig, SamplingParams
from engine.engine import Engine, Status
from engine.gguf import read_header
from engine.output import output_parser
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
from tests.engine.oracle import model_path

PROMPT_TOKENS = 10
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "parameters": {"type": "object", "properties": {"where": {"type": "string"}}},
    },
}


def says(*texts: str) -> Callable[[Request], Iterable[str]]:
    return lambda request: texts


def slowly(*texts: str) -> Callable[[Request], Iterable[str]]:
    """Each text in an event of its own; without waits the API joins them."""

    def reply(request: Request) -> Iterator[str]:
        for text in texts:
            time.sleep(0.02)
            yield text

    return reply


class ScriptedEngine(Engine):
    """Answers each request with the texts of `reply(request)`, one token each.

    While `hold` is set nothing is written. `cancelled` are the requests that were cancelled before their
    end.
    """

    def __init__(
        self,
        reply: Callable[[Request], Iterable[str]],
        name: str = "Scripted",
        max_concurrency: int = 4,
        prompt_end: str = "",
    ) -> None:
        super().__init__()
        self._reply = reply
        self._prompt_end = prompt_end
        self._own_config = EngineConfig(max_concurrency=max_concurrency)
        self._info = ModelInfo(
            Path(f"{name}.gguf"), name, "llama", "F32", 1, 1, 4096, 512, SamplingParams()
        )
        self.hold = threading.Event()
        self.requests: list[Request] = []
        self.cancelled: list[int] = []
        self._stops: dict[int, threading.Event] = {}

    @property
    def config(self) -> EngineConfig:
        return self._own_config

    @functools.cached_property
    def tokenizer(self) -> Tokenizer:
        return Tokenizer.from_gguf(read_header(model_path("llama")).meta)

    @functools.cached_property
    def chat_template(self) -> ChatTemplate:
        return ChatTemplate.from_gguf(read_header(model_path("llama")).meta, self.tokenizer)

    def status(self) -> Status:
        return Status("ready", self._info, 0, 0)

    def submit(self, request: Request, on_event: OnEvent) -> int:
        self.requests.append(request)
        request_id = len(self.requests)
        stop = self._stops[request_id] = threading.Event()
        work = (request_id, request, on_event, stop)
        threading.Thread(target=self._write, args=work, daemon=True).start()
        return request_id

    def cancel(self, request_id: int) -> None:
        self._stops[request_id].set()

    def _write(
        self, request_id: int, request: Request, on_event: OnEvent, stop: threading.Event
    ) -> None:
        on_event(Accepted(request_id, PROMPT_TOKENS, self._prompt_end))
        on_event(Started(request_id, PROMPT_TOKENS, 0))
        parser = output_parser(self._prompt_end, request.tools, request.parallel_tool_calls)
        n = 0
        for text in self._reply(request):
            while self.hold.is_set() and not stop.wait(0.01):
                pass
            if stop.is_set():
                self.cancelled.append(request_id)
                on_event(Finished(request_id, FinishReason.CANCELLED, Usage(PROMPT_TOKENS)))
                return
            n += 1
            on_event(TextDelta(request_id, text, (1,), tuple(parser.push(text))))
        if rest := parser.finish():
            on_event(TextDelta(request_id, "", (), tuple(rest)))
        usage = Usage(PROMPT_TOKENS, completion_tokens=n, first_token_s=0.1, decode_s=0.1)
        on_event(Finished(request_id, FinishReason.STOP, usage))
