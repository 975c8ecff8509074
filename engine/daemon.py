"""`lucebox daemon`: a model for another program, over JSON lines on stdin and stdout.

Each line in is an object with `op` and, where an answer is to be told apart, `id`. Each line out is an
object with that `id` and `event`: text, reasoning, tool_call, done, ok or error.

    {"op": "generate", "id": 1, "prompt": "Once"}            or "messages", or "ids"; sampling by its names
    {"op": "cancel", "id": 1}
    {"op": "snapshot", "name": "a", "of": 1}                 keep prompt and answer of a finished generation
    {"op": "restore", "id": 2, "name": "a", "prompt": "and"} go on from there
    {"op": "list"}  {"op": "free", "name": "a"}  {"op": "park"}  {"op": "unpark"}  {"op": "quit"}

A snapshot holds the tokens, and in RAM their keys and values and their state, also while the model is parked.
What of these cannot be brought back is computed again.
"""

from __future__ import annotations

import json
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import IO, Any

from engine import daemon_lines as lines
from engine.api.errors import ApiError
from engine.cache.snapshot import Snapshot
from engine.engine import Engine
from engine.errors import BadRequest, EngineError
from engine.pieces import Content, Reasoning, ToolCallArguments, ToolCallStart
from engine.types import Event, Failed, Finished, ModelInfo, Request, TextDelta

_LINE = 64 << 20
_KEPT = 64
_MOST_WAITING = 100_000


@dataclass(slots=True, eq=False)
class _Job:
    """A generation: what it began with, and what was written."""

    id: Any
    request: Request
    request_id: int = 0
    tokens: list[int] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    ended: bool = False


@dataclass(frozen=True, slots=True)
class _Kept:
    """Prompt and answer, and what was known of them."""

    tokens: list[int]
    known: Snapshot | None

    @property
    def facts(self) -> dict[str, int]:
        return {"tokens": len(self.tokens), "bytes": self.known.n_bytes if self.known else 0}


class Daemon:
    """One engine behind two streams of lines; `run` works until quit or the end of the input."""

    def __init__(self, engine: Engine, info: ModelInfo, output: IO[bytes]) -> None:
        self._engine = engine
        self._info = info
        self._config = engine.config
        self._output = output
        self._lines: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._jobs: OrderedDict[Any, _Job] = OrderedDict()
        self._snapshots: dict[str, _Kept] = {}
        self._gone = threading.Event()
        self._ops: Mapping[str, Callable[[Any], dict[str, Any] | None]] = {
            "generate": self._generate,
            "restore": self._restore,
            "cancel": self._cancel,
            "snapshot": self._snapshot,
            "list": self._list,
            "free": self._free,
            "park": self._park,
            "unpark": self._unpark,
        }

    def run(self, source: IO[bytes]) -> None:
        """Carry out all lines; `BrokenPipeError` when nobody reads the answers any more."""
        writer = threading.Thread(target=self._write, name="daemon", daemon=True)
        writer.start()
        self._say(None, "ok", model=self._info.name, context=self._info.max_ctx)
        while not self._gone.is_set() and (line := source.readline(_LINE)):
            if not line.strip():
                continue
            try:
                command = lines.read(line)
            except lines.BadLine as bad:
                self._say(bad.given, "error", message=str(bad))
                continue
            if command.op == "quit":
                break
            self._carry_out(command)
        for job in self._jobs.values():
            self._engine.cancel(job.request_id)
        self._lines.put(None)
        writer.join(5.0)
        if self._gone.is_set():
            raise BrokenPipeError

    def _carry_out(self, line: lines.Line) -> None:
        try:
            answer = self._ops[line.op](line)
        except (EngineError, ApiError) as error:
            self._say(line.id, "error", message=str(error))
        else:
            if answer is not None:
                self._say(line.id, "ok", **answer)

    def _generate(self, line: lines.Generate) -> None:
        line.check()
        ids = line.ids if line.prompt is None else self._encoded(line.prompt, bos=None)
        self._write_text(line, ids, **line.chat())

    def _restore(self, line: lines.Restore) -> None:
        kept = self._named(line)
        more = self._encoded(line.prompt or "", bos=False)
        if kept.known is not None:
            self._engine.restore(kept.known)
        self._write_text(line, [*kept.tokens, *more])

    def _write_text(self, line: lines.Writing, ids: list[int] | None, **chat: Any) -> None:
        if line.id in self._jobs and not self._jobs[line.id].ended:
            raise BadRequest(f"id: {line.id!r} is being generated.")
        sampling = replace(self._info.sampling, **line.sampling())
        job = _Job(line.id, Request(ids=ids, sampling=sampling, **chat))
        self._jobs[line.id] = job
        self._jobs.move_to_end(line.id)
        while len(self._jobs) > _KEPT and next(iter(self._jobs.values())).ended:
            self._jobs.popitem(last=False)
        job.request_id = self._engine.submit(job.request, lambda event: self._hear(job, event))

    def _encoded(self, text: str, bos: bool | None) -> list[int]:
        tokenizer = self._engine.tokenizer
        if tokenizer is None:
            raise BadRequest('The model is parked; send {"op": "unpark"} first.')
        return tokenizer.encode(text, special=True, add_bos=bos)

    def _hear(self, job: _Job, event: Event) -> None:
        """Called on the engine's thread: it only puts lines into the queue."""
        match event:
            case TextDelta(text=text, tokens=tokens, pieces=pieces):
                job.tokens += tokens
                job.text.append(text)
                for piece in pieces or ((Content(text),) if text else ()):
                    match piece:
                        case Content(said):
                            self._say(job.id, "text", text=said)
                        case Reasoning(said):
                            self._say(job.id, "reasoning", text=said)
                        case ToolCallStart(index=index, name=name):
                            self._say(job.id, "tool_call", index=index, name=name)
                        case ToolCallArguments(index=index, fragment=fragment):
                            self._say(job.id, "tool_call", index=index, arguments=fragment)
            case Finished(reason=reason, usage=usage):
                job.ended = True
                self._say(
                    job.id,
                    "done",
                    reason=reason.value,
                    prompt_tokens=usage.prompt_tokens,
                    reused_tokens=usage.reused_tokens,
                    completion_tokens=usage.completion_tokens,
                    prefill_tok_s=usage.prefill_rate,
                    decode_tok_s=usage.decode_rate,
                )
            case Failed(error=error):
                job.ended = True
                self._say(job.id, "error", message=str(error))

    def _cancel(self, line: lines.Line) -> dict[str, Any]:
        self._engine.cancel(self._job(line.id).request_id)
        return {}

    def _snapshot(self, line: lines.Keep) -> dict[str, Any]:
        latest = next(reversed(self._jobs), None)
        job = self._job(latest if line.of is None else line.of)
        if not job.ended:
            raise BadRequest("of: this generation has not ended.")
        request, template = job.request, self._engine.chat_template
        ids = list(request.ids or ())
        if request.messages is not None:
            if template is None:
                raise BadRequest('The model is parked; send {"op": "unpark"} first.')
            ids = template.encode(request.messages, request.tools)
        tokens = [*ids, *job.tokens]
        parked = self._engine.tokenizer is None
        kept = _Kept(tokens, None if parked else self._engine.snapshot(tokens))
        self._snapshots[line.name] = kept
        return {"name": line.name, **kept.facts}

    def _list(self, line: lines.Line) -> dict[str, Any]:
        kept = [{"name": name, **found.facts} for name, found in self._snapshots.items()]
        return {"snapshots": kept, "state": self._engine.status().state}

    def _free(self, line: lines.Named) -> dict[str, Any]:
        self._named(line)
        del self._snapshots[line.name]
        return {}

    def _park(self, line: lines.Line) -> dict[str, Any]:
        self._engine.unload()
        return {}

    def _unpark(self, line: lines.Line) -> dict[str, Any]:
        if self._engine.status().model is None:
            self._engine.load(self._info.path, self._config)
        return {}

    def _named(self, line: lines.Named) -> _Kept:
        found = self._snapshots.get(line.name)
        if found is None:
            raise BadRequest(f"name: there is no snapshot {line.name[:100]!r}.")
        return found

    def _job(self, given: str | int | None) -> _Job:
        job = self._jobs.get(given)
        if job is None:
            raise BadRequest(f"There is no generation {str(given)[:100]!r}.")
        return job

    def _say(self, given_id: Any, event: str, **facts: Any) -> None:
        line = json.dumps({"id": given_id, "event": event, **facts}, ensure_ascii=False)
        try:
            self._lines.put_nowait(line.encode("utf-8", "backslashreplace") + b"\n")
        except queue.Full:
            self._gone.set()

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                self._output.write(line)
                self._output.flush()
            except (OSError, ValueError):
                self._gone.set()
                return


def serve_lines(engine: Engine, info: ModelInfo, source: IO[bytes], output: IO[bytes]) -> None:
    """Be the daemon of `engine` until quit or the end of `source`."""
    Daemon(engine, info, output).run(source)
