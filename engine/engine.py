"""The engine: one serving thread that owns a model and works on all requests together."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from engine.ahead import Ahead
from engine.answer import Answer, Mail
from engine.cache import exchange
from engine.cache.snapshot import Archive, Snapshot
from engine.chat import ChatTemplate
from engine.config import EngineConfig
from engine.errors import DeviceFault, EngineError, NoModel, OutOfMemory, as_engine_error
from engine.job_thread import JobThread
from engine.loading import LoadedModel, OnProgress, load_model
from engine.memory import memory_parts, on_card
from engine.metrics import Meter, Metrics
from engine.prepare import Prepared, prepared
from engine.sampling import Sampler
from engine.scheduler import Scheduler
from engine.stops import StopMatcher
from engine.tokenizer import Tokenizer
from engine.types import (
    Failed,
    Finished,
    FinishReason,
    ModelInfo,
    OnEvent,
    Request,
    Sequence,
    Span,
    Step,
    Usage,
    request_ids,
)
from engine.writing import Writing

log = logging.getLogger(__name__)

MEMORY_EVERY_S = 1.0
CACHE_EVERY_S = 0.05

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Status:
    """What the engine is doing: `state` is one of empty, loading, ready, closed."""

    state: str
    model: ModelInfo | None
    running: int
    queued: int


class Engine:
    """Loads one model at a time and generates for any number of callers.

    `serve` runs in one thread and owns all model state; every other method may be called from any
    thread. Events reach `on_event` on the serving thread, in order; a listener must only enqueue.
    """

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._inbox: deque[Callable[[], None]] = deque()
        self._loading = threading.Lock()
        self._closing = False
        self._server: int | None = None  # set by `serve`: the id of its thread
        self._served = threading.Event()
        self._model: LoadedModel | None = None
        self._answers: dict[int, Answer] = {}
        self._ahead = Ahead()
        self._mail = Mail()
        self._submitted: dict[int, OnEvent] = {}
        self._encoder = JobThread("encoder")
        # Schemas may take seconds, and other prompts must not wait for them.
        self._former = JobThread("former")
        self._reader = JobThread("archive")
        self.archive: Archive | None = None
        self._new_id = request_ids()
        self._meter = Meter()
        self._memory_at = self._cache_at = 0.0

    # Called from any thread

    def load(
        self,
        path: Path | str,
        config: EngineConfig | None = None,
        on_progress: OnProgress | None = None,
        cancel: threading.Event | None = None,
    ) -> ModelInfo:
        """Load a model and put it in the place of the former one; blocks until it can be used.

        Until then the former model keeps working, and it stays when the load fails or is cancelled.
        Its running requests end as cancelled. Only where memory holds one of the two, the former one
        goes first, and comes back when the load fails. Not to be called from a listener.
        """
        with self._loading:
            self._refuse_closed()
            former = self._model
            try:
                model = load_model(Path(path), config, on_progress, cancel, on_card(former))
            except OutOfMemory:
                if former is None:
                    raise
                self._call(lambda: self._swap(None))
                try:
                    model = load_model(Path(path), config, on_progress, cancel)
                except EngineError:
                    again = load_model(former.info.path, former.config)
                    self._call(lambda: self._swap(again))
                    raise
            self._call(lambda: self._swap(model))
            return model.info

    def unload(self) -> None:
        """Free the model; running requests end as cancelled."""
        with self._loading:
            self._call(lambda: self._swap(None))

    def use(self, work: Callable[[LoadedModel], Result]) -> Result:
        """What `work` gives for the loaded model, run on the serving thread between two steps: to measure."""
        found: list[Result | Exception] = []

        def run() -> None:
            try:
                if self._model is None:
                    raise NoModel("No model is loaded. Load one first.")
                self._ahead.land(self._model)
                found.append(work(self._model))
            except Exception as error:
                found.append(error)

        self._call(run)
        if isinstance(found[0], Exception):
            raise found[0]
        return found[0]

    def read_vocabulary(self) -> None:
        """Read what grammars need of the model's vocabulary now, not with the first one that is asked for."""
        if (model := self._model) is not None:
            model.grammars.build()

    def keep_in(self, archive: Archive | None) -> None:
        """Keep what is known of prompts in an archive too, from now on; None for memory only."""
        self.archive = archive

    def clear_cache(self) -> None:
        """Forget what is known of prompts, the archive's part aside; what is being written goes on."""

        def clear() -> None:
            if self._model is not None:
                self._model.scheduler.cache.clear()
                self._model.tokenizer.forget()
                self._count(self._model.scheduler)

        self._call(clear)

    def snapshot(self, ids: Seq[int]) -> Snapshot | None:
        """A copy of what is known of the longest prefix of `ids`; None for nothing. Raises `BadRequest`."""
        return self.use(lambda model: exchange.take_out(model.scheduler.cache, ids))

    def restore(self, snapshot: Snapshot) -> int:
        """Bring a snapshot back, for later prompts that begin with it; how many of its tokens are known now.

        It may be fewer than there are, or 0: where RAM is short, or the model is another one.
        """
        return self.use(lambda model: exchange.take_in(model.scheduler.cache, snapshot))

    def submit(self, request: Request, on_event: OnEvent) -> int:
        """Queue a request and return its id; all that goes wrong with it arrives as `Failed`."""
        self._refuse_closed()
        request_id, now, model = self._new_id(), time.perf_counter(), self._model
        self._submitted[request_id] = on_event

        def encode() -> None:
            found = prepared(model, request)
            begin = partial(self._begin, request_id, request, model, found, now)
            self._post(lambda: self._look(request, model, found, begin))

        formed = request.format is not None or request.tools
        (self._former if formed else self._encoder).do(encode)
        return request_id

    def cancel(self, request_id: int) -> None:
        """End a request at the next step; does nothing when it has ended."""
        self._post(lambda: self._cancel(request_id))

    def status(self) -> Status:
        """What is loaded and how much is going on."""
        model = self._model
        state = "ready" if model else "empty"
        if self._closing:
            state = "closed"
        elif self._loading.locked():
            state = "loading"
        return Status(state, model.info if model else None, *self._meter.busy())

    def metrics(self) -> Metrics:
        """The numbers of this moment."""
        now = time.perf_counter()
        if now - self._memory_at > MEMORY_EVERY_S:
            self._memory_at = now
            self._meter.set(memory=memory_parts(self._model))
        return self._meter.snapshot(now)

    @property
    def tokenizer(self) -> Tokenizer | None:
        """Of the loaded model."""
        model = self._model
        return model.tokenizer if model else None

    @property
    def chat_template(self) -> ChatTemplate | None:
        """Of the loaded model."""
        model = self._model
        return model.template if model else None

    @property
    def config(self) -> EngineConfig:
        """How the loaded model runs."""
        model = self._model
        return model.config if model else EngineConfig()

    def start(self) -> None:
        """Run `serve` in a thread of its own."""
        threading.Thread(target=self.serve, name="engine", daemon=True).start()

    def close(self, timeout: float | None = 5.0) -> bool:
        """End all requests, free the model and leave `serve`; False when that took over `timeout` s."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        if self._server is None:
            self._swap(None)
            return True
        if self._server == threading.get_ident():
            return True
        return self._served.wait(timeout)

    # The serving thread

    def serve(self) -> None:
        """Work until `close`; the loop of the one thread that owns the model."""
        self._server = threading.get_ident()
        try:
            while True:
                with self._wake:
                    while not (self._inbox or self._closing or self._answers):
                        self._wake.wait()
                while self._inbox:
                    self._inbox.popleft()()
                if self._closing:
                    break
                self.step()
            for request_id in list(self._submitted):
                self._cancel(request_id)
            for thread in (self._encoder, self._former, self._reader):
                thread.close()
            self._swap(None)
        finally:
            self._served.set()

    def step(self) -> None:
        """Plan one step, run it and hand out what it gave."""
        model = self._model
        if model is None or not self._answers:
            return
        scheduler, speculation = model.scheduler, model.speculation
        spans: dict[int, Span] = {}
        try:
            flight = self._ahead.take(self._answers)
            step = flight.step if flight else self._plan(scheduler)
            self._count(scheduler, CACHE_EVERY_S)
            if step is None:
                return self._mail.deliver()
            spans = {span.sequence.request_id: span for span in step.spans}
            flight = flight or model.runner.launch(
                step, {n: self._answers[n].sampler for n in spans}
            )
            if not self._inbox:
                self._ahead.follow(model, flight, flight.samplers)
            result, step = model.settle(flight), flight.step
            spans = dict(zip(spans, step.spans, strict=True))
            if speculation is not None:
                speculation.begin(step, result, model.ops)
        except Exception as error:
            log.exception("A step failed")
            self._ahead.drop()
            # A plan moves pages; where that fails nobody knows what they hold.
            gone = not spans or isinstance(error, DeviceFault)
            for request_id in list(self._answers if gone else spans):
                self._fail(request_id, error)
            if gone:
                self._swap(None)
            return
        self._meter.step(step, result)
        for (request_id, span), tokens in zip(spans.items(), result.tokens, strict=True):
            if request_id in result.errors:
                continue  # its pages are wanted once more
            answer = self._answers[request_id]
            try:
                answer.receive(span, tokens)
                if answer.n_written == 1:
                    self._meter.first_token(answer.usage)
            except Exception as error:
                # One answer's fault is not to end the others'.
                log.exception("An answer failed")
                self._fail(request_id, error)
            self._retire(answer)
        if speculation is not None:
            live = [n in self._answers and n not in result.errors for n in spans]
            for switch in speculation.observe(step, result, model.ops, live):
                for answer in self._answers.values():
                    answer.switched(switch)
            self._meter.set(speculation=speculation.metrics)
        if result.errors:
            self._ahead.land(model)
        for request_id, fault in result.errors.items():
            self._fail(request_id, model.runner.explain(spans[request_id], fault))

    def _plan(self, scheduler: Scheduler) -> Step | None:
        """The next step, of which the listeners hear where it is their first."""
        step = scheduler.plan()
        for span in step.spans if step else ():
            self._answers[span.sequence.request_id].started()
        return step

    def _look(
        self,
        request: Request,
        model: LoadedModel | None,
        ready: Prepared | EngineError,
        begin: Callable[[], None],
    ) -> None:
        """Begin a request, once what the archive knows of it is in memory."""
        here = model is not None and model is self._model
        if self.archive is None or not here or isinstance(ready, EngineError):
            return begin()
        assert model is not None
        cache = model.scheduler.cache
        read = exchange.lacking(self.archive, cache, ready.ids) if request.prefix_cache else None
        if read is None:
            return begin()

        def take_in(found: Snapshot | None) -> None:
            if found is not None and model is self._model:
                exchange.take_in(cache, found)
            begin()

        self._reader.do(lambda: self._post(partial(take_in, read())))

    def _begin(
        self,
        request_id: int,
        request: Request,
        model: LoadedModel | None,
        ready: Prepared | EngineError,
        submitted: float,
    ) -> None:
        """Queue an encoded request, unless it was cancelled or its model has gone meanwhile."""
        on_event = self._submitted.pop(request_id, None)
        if on_event is None:
            return
        try:
            if isinstance(ready, EngineError):
                raise ready
            if model is None or model is not self._model:
                raise NoModel("The model was changed before the request began. Send it again.")
            tokenizer = model.tokenizer
            seed = secrets.randbits(63) if request.sampling.seed is None else request.sampling.seed
            sampler = Sampler(
                request.sampling, tokenizer.vocab_size, seed, ready.steering, request.logprobs
            )
            sequence = Sequence(
                request_id, ready.ids, len(ready.ids), request.sampling, seed=seed % 2**64,
                drafts=request.drafts, cached=request.prefix_cache, keeps_answer=request.agent_turn_cache,
                disk_tokens=request.disk_tokens, owner=request.owner,
            )  # fmt: skip
            # A continued text goes on in the middle; an answer has a beginning of its own.
            at_start = request.messages is not None
            writing = Writing(
                tokenizer.detokenizer(at_start=at_start, shown=ready.shown),
                StopMatcher(request.sampling.stop), ready.parser,
            )  # fmt: skip
            answer = Answer(
                sequence, sampler, writing, tokenizer.eos_ids, on_event, model.plan.max_ctx, submitted,
                self._mail,
            )  # fmt: skip
            model.scheduler.add(sequence)
        except Exception as error:
            if not isinstance(error, EngineError):
                log.exception("A request could not be begun")
            return on_event(Failed(request_id, as_engine_error(error), Usage()))
        self._answers[request_id] = answer
        answer.accepted(ready.prompt_end)
        answer.nothing_wanted()
        self._retire(answer)

    def _cancel(self, request_id: int) -> None:
        if (answer := self._answers.get(request_id)) is not None:
            answer.cancel()
            self._retire(answer)
        elif (on_event := self._submitted.pop(request_id, None)) is not None:
            on_event(Finished(request_id, FinishReason.CANCELLED, Usage()))

    def _fail(self, request_id: int, error: Exception) -> None:
        answer = self._answers[request_id]
        answer.fail(as_engine_error(error))
        self._retire(answer, sound=False)

    def _retire(self, answer: Answer, sound: bool = True) -> None:
        """Forget an answer that has ended, and give back its pages."""
        request_id = answer.sequence.request_id
        if not answer.ended or self._answers.pop(request_id, None) is None:
            return
        if not self._answers:
            self._mail.deliver()
        assert self._model is not None
        scheduler, sequence = self._model.scheduler, answer.sequence
        self._ahead.leave(sequence)
        scheduler.remove(sequence, sound)
        if self.archive is not None and sound and sequence.cached:
            kept = sequence.tokens[: sequence.disk_tokens]
            exchange.offer(self.archive, scheduler.cache, kept, self._while(self._model))
        self._count(scheduler)

    def _while(self, model: LoadedModel) -> Callable[[Callable[[], None]], None]:
        """Posts what is to be done only if this is still the loaded model."""
        return lambda work: self._post(lambda: work() if model is self._model else None)

    def _count(self, scheduler: Scheduler, cache_every_s: float = 0.0) -> None:
        """Tell the meter what the scheduler holds, and so often what its cache does."""
        self._meter.set(
            running=len(scheduler.running),
            queued=len(scheduler.waiting),
            pages_used=scheduler.pool.n_used,
        )
        if (now := time.perf_counter()) - self._cache_at >= cache_every_s:
            self._cache_at = now
            self._meter.set(cache=scheduler.cache.metrics())

    def _swap(self, model: LoadedModel | None) -> None:
        for answer in list(self._answers.values()):
            answer.cancel()
            self._retire(answer)
        self._ahead.drop()
        former, self._model = self._model, model
        if former is not None:
            former.close()
        self._meter.reset()
        self._memory_at = 0.0
        self._mail.deliver()
        if model is not None:
            model.runner.on_wait = self._mail.deliver
            drafting = model.speculation.metrics if model.speculation else None
            n, most = model.plan.n_pages, model.plan.max_ctx
            self._meter.set(context_max=most, pages_total=n, speculation=drafting)
            self._count(model.scheduler)

    # Between threads

    def _post(self, command: Callable[[], None]) -> None:
        with self._wake:
            self._inbox.append(command)
            self._wake.notify_all()

    def _call(self, command: Callable[[], None]) -> None:
        """Run a command on the serving thread and wait for it; here, when nothing serves."""
        if self._server is None:
            command()
            return
        done = threading.Event()

        def run() -> None:
            try:
                command()
            finally:
                done.set()

        self._post(run)
        while not done.wait(0.1):
            if self._served.is_set():
                raise NoModel("The engine was closed.")

    def _refuse_closed(self) -> None:
        if self._closing:
            raise NoModel("The engine is closed.")
