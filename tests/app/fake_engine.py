"""An engine with the real one's interface that streams scripted tokens: for tests and demonstrations."""

from __future__ import annotations

import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.config import EngineConfig, SamplingParams
from engine.errors import BadRequest, EngineError, LoadCancelled
from engine.metrics import MemoryPart, Metrics
from engine.output import OutputParser
from engine.types import (
    Event,
    Failed,
    Finished,
    FinishReason,
    LoadProgress,
    ModelInfo,
    PrefillProgress,
    Request,
    Started,
    TextDelta,
    Usage,
)

GB = 2**30


@dataclass
class Status:
    """What the real engine's status holds."""

    state: str
    model: ModelInfo | None
    running: int
    queued: int


@dataclass
class _Job:
    request_id: int
    request: Request
    on_event: Callable[[Event], None]
    cancelled: threading.Event = field(default_factory=threading.Event)


class FakeEngine:
    """Streams `answer` word by word.

    Attributes a test may set:
        answer: the text of every answer, or a function of the request.
        token_s: seconds for each token; 0 streams as fast as it can.
        load_s: seconds that a load takes, in steps of 20 ms.
        load_error: raised by the next load, once; a file whose name holds "bad" always fails.
        load_error_drops_model: that error also takes the former model away.
        unload_s: seconds that an unload takes.
        fail_after: tokens after which a request fails with `fail_error`; None never.
        deaf: cancel and close are ignored (a hung engine).
    """

    def __init__(
        self,
        answer: str | Callable[[Request], str] = "Hello from the fake engine.",
        token_s: float = 0.0,
        load_s: float = 0.0,
    ) -> None:
        self.answer = answer
        self.token_s = token_s
        self.load_s = load_s
        self.load_error: Exception | None = None
        self.load_error_drops_model = False
        self.load_warnings: tuple[str, ...] = ()
        self.unload_s = 0.0
        self.fail_after: int | None = None
        self.fail_error: Exception = EngineError("The fake engine was told to fail.")
        self.deaf = False
        self.requests: list[Request] = []
        self.config = EngineConfig()
        self.archive: Any = None
        self.cleared = 0
        self.vocabulary_threads: list[threading.Thread] = []
        self.tokenizer: Any = None
        self.chat_template: Any = None
        self._ids = itertools.count(1)
        self._jobs: queue.Queue[_Job | None] = queue.Queue()
        self._known: dict[int, _Job] = {}
        self._model: ModelInfo | None = None
        self._closed = threading.Event()
        self._loading = False
        self._rate = 0.0
        self._context = 0
        self._running = 0

    def load(
        self,
        path: Path,
        config: EngineConfig | None = None,
        on_progress: Callable[[LoadProgress], None] | None = None,
        cancel: threading.Event | None = None,
    ) -> ModelInfo:
        """Pretend to read a file of 4 GB."""
        path = Path(path)
        self._loading = True
        try:
            steps = max(int(self.load_s / 0.02), 1)
            for i in range(steps):
                if cancel is not None and cancel.is_set():
                    raise LoadCancelled("The load was stopped.")
                if on_progress is not None:
                    on_progress(LoadProgress("reading", 4 * GB * i // steps, 4 * GB))
                if self.load_s:
                    time.sleep(0.02)
            if self.load_error is not None:
                error, self.load_error = self.load_error, None
                if self.load_error_drops_model:
                    self._model = None
                raise error
            if "bad" in path.name:
                raise EngineError(f"{path.name} is cut off: found 10 bytes, expected 4,000.")
        finally:
            self._loading = False
        self.config = config or EngineConfig()
        self._model = ModelInfo(
            path=path,
            name=path.stem,
            architecture="llama",
            quant="Q4_1",
            n_params=135_000_000,
            file_bytes=4 * GB,
            max_ctx=8192,
            vocab_size=49152,
            sampling=SamplingParams(),
            warnings=self.load_warnings,
        )
        return self._model

    def unload(self) -> None:
        """Forget the model."""
        time.sleep(self.unload_s)
        self._model = None

    def read_vocabulary(self) -> None:
        """Remember who asked for it."""
        self.vocabulary_threads.append(threading.current_thread())

    def submit(self, request: Request, on_event: Callable[[Event], None]) -> int:
        """Queue a request."""
        if self._model is None:
            raise BadRequest("No model is loaded. Load one first.")
        self.requests.append(request)
        job = _Job(next(self._ids), request, on_event)
        self._known[job.request_id] = job
        self._jobs.put(job)
        return job.request_id

    def cancel(self, request_id: int) -> None:
        """End a request at its next token."""
        if request_id in self._known and not self.deaf:
            self._known[request_id].cancelled.set()

    def serve(self) -> None:
        """Work off the queue until closed."""
        while not self._closed.is_set():
            try:
                job = self._jobs.get(timeout=0.05)
            except queue.Empty:
                continue
            if job is not None:
                self._run(job)

    def start(self) -> None:
        """Serve in a plain thread."""
        threading.Thread(target=self.serve, daemon=True).start()

    def status(self) -> Status:
        """What is loaded and running."""
        state = "loading" if self._loading else "ready" if self._model else "empty"
        return Status(state, self._model, self._running, self._jobs.qsize())

    def metrics(self) -> Metrics:
        """Plausible numbers."""
        memory: tuple[MemoryPart, ...] = ()
        if self._model is not None:
            memory = (
                MemoryPart("other", "Other programs", 3 * GB),
                MemoryPart("model", "Model", 4 * GB),
                MemoryPart("kv", "KV cache", GB),
                MemoryPart("work", "State, work", GB // 2),
                MemoryPart("free", "Free", 7 * GB),
                MemoryPart("reserve", "Reserve", GB // 2),
            )
        return Metrics(
            running=self._running,
            decode_rate=self._rate,
            first_token_s=0.2 if self._context else None,
            context_used=self._context,
            context_max=self._model.max_ctx if self._model else 0,
            memory=memory,
        )

    def keep_in(self, archive: Any) -> None:
        """Remember what would be kept on disk."""
        self.archive = archive

    def clear_cache(self) -> None:
        """Count the wish."""
        self.cleared += 1

    def close(self, timeout: float = 5.0) -> None:
        """End serving."""
        if self.deaf:
            return
        for job in list(self._known.values()):
            job.cancelled.set()
        self._closed.set()

    def _run(self, job: _Job) -> None:
        self._running = 1
        answer = self.answer(job.request) if callable(self.answer) else self.answer
        prompt = sum(len(str(m.get("content", ""))) // 4 + 4 for m in job.request.messages or ())
        job.on_event(Started(job.request_id, prompt, 0))
        job.on_event(PrefillProgress(job.request_id, prompt, prompt))
        done = 0
        began = time.monotonic()
        reason = FinishReason.STOP
        parser = OutputParser()
        for piece in _pieces(answer):
            if job.cancelled.is_set():
                reason = FinishReason.CANCELLED
                break
            if self.fail_after is not None and done >= self.fail_after:
                usage = Usage(prompt, 0, done)
                self._finish(job)
                job.on_event(Failed(job.request_id, self.fail_error, usage))
                return
            if self.token_s:
                time.sleep(self.token_s)
            done += 1
            self._context = prompt + done
            self._rate = done / max(time.monotonic() - began, 1e-6)
            pieces = tuple(parser.push(piece))
            job.on_event(TextDelta(job.request_id, piece, (done,), pieces))
        if rest := tuple(parser.finish()):
            job.on_event(TextDelta(job.request_id, "", (), rest))
        seconds = time.monotonic() - began
        self._finish(job)
        usage = Usage(
            prompt_tokens=prompt,
            completion_tokens=done,
            first_token_s=0.2,
            prefill_s=0.2,
            decode_s=seconds,
        )
        job.on_event(Finished(job.request_id, reason, usage))

    def _finish(self, job: _Job) -> None:
        self._running = 0
        self._rate = 0.0
        self._known.pop(job.request_id, None)


def _pieces(text: str) -> Iterable[str]:
    word = ""
    for character in text:
        word += character
        if character in " \n":
            yield word
            word = ""
    if word:
        yield word
