"""One request of a client, whatever its dialect, on its way through an engine.

A dialect (`openai_chat`, `openai_text`, `openai_responses`, `anthropic`) is a router that

1. reads its own body into one `Ask` (chat messages and tools always in OpenAI's chat form), raising
   `ApiError` or `refused(field, why)` for what cannot be honoured;
2. returns `await respond(request, [ask], stream, whole, frames)`: `whole(turn)` gives the JSON of a whole
   answer, usually from `await gather(turn)`, and `frames(turn)` yields the bytes of server-sent events,
   usually `frame(json, event_name)` for each event of `turn.events()`.

`respond` does the rest: it waits for a model, submits, answers an unsound request with its error before
anything is sent, cancels at the engine's next step when the client leaves, and sends `: keep-alive`, for
streams also while they wait for a model.

`turn.events()` yields, in order: `Opened` once; then for each choice any number of `Delta` (a piece of
`engine.pieces`: Reasoning, Content, ToolCallStart, ToolCallArguments, ToolCallEnd) and one `Ended`. It
raises `ApiError` when an answer fails. `turn.usage()` is right after the last event; `usage.timings` makes
the timings that all dialects share.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from typing import Any

from fastapi import Request as HttpRequest
from fastapi import Response

from engine.api import wire
from engine.api.channel import Channel, Item
from engine.api.errors import ApiError, as_api_error
from engine.api.journal import Live, Visit
from engine.api.logprobs import Row, row
from engine.api.served import Models, Served
from engine.api.wire import EventStream, JsonResponse, leaving, until_left
from engine.config import SamplingParams, ServerConfig
from engine.pieces import Content, Part, Piece, ToolCallStart, merged
from engine.reasoning import Thinking
from engine.types import (
    Accepted,
    Event,
    Failed,
    Finished,
    FinishReason,
    Format,
    Request,
    Started,
    TextDelta,
    ToolChoice,
    Usage,
)
from engine.version import version

STOP, LENGTH, TOOL_CALLS = "stop", "length", "tool_calls"

_EXCERPT = 200  # characters of a prompt that a table has room for


@dataclass(frozen=True, slots=True)
class Ask:
    """What a client wants, checked for its form; exactly one of `messages`, `text` and `ids` is given.

    `sampling` holds the fields of `SamplingParams` that the client chose; the model's own fill the rest.
    The other fields are those of `engine.types.Request`; `n` answers are wanted.
    """

    model: str = ""
    messages: Sequence[Mapping[str, Any]] | None = None
    text: str | None = None
    ids: Sequence[int] | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: ToolChoice = ToolChoice()
    parallel_tool_calls: bool = True
    format: Format | None = None
    thinking: Thinking = Thinking()
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    n: int = 1
    logprobs: int | None = None
    prefix_cache: bool = True
    agent_turn_cache: bool = True
    disk_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """The first prompt is admitted."""

    prompt_tokens: int
    reused_tokens: int


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of one choice's answer, and what is known of the tokens of a `Content` piece."""

    choice: int
    piece: Piece
    logprobs: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """A choice is done: `reason` is stop, length or tool_calls; `end` is what the engine tells of it."""

    choice: int
    reason: str
    end: Finished


TurnEvent = Opened | Delta | Ended


@dataclass(slots=True, eq=False)
class _Choice:
    ask: Ask
    request_id: int
    prompt_tokens: int | None = None
    usage: Usage | None = None
    n_calls: int = 0
    rows: list[Row] = field(default_factory=list)  # of tokens whose text is yet to come


class Turn:
    """The choices of one client's request while they are written; used on the API's loop only."""

    def __init__(
        self, models: Models, served: Served, asks: Sequence[Ask], client: str = ""
    ) -> None:
        self.id = secrets.token_hex(12)
        self.created = int(time.time())
        self.model = served.name
        self.served = served
        self.usual = SamplingParams()
        self.written = 0
        self.reused = 0
        self._first: tuple[float, int] | None = None  # when which token was written
        self._latest = 0.0
        self._models = models
        self._client = client
        self._channel = Channel(models.bell(), self._cancel_all)
        self._backlog: list[Item] = []
        self._error: ApiError | None = None
        self._closed = False
        self._opened = False
        self._all = [ask for ask in asks for _ in range(ask.n)]
        self.choices: list[_Choice] = []
        self._unended = len(self._all)
        served.turns.add(self)

    async def start(self) -> None:
        """Submit all choices and wait until the engine has accepted each of them."""
        # Kept: a model that is unloaded meanwhile has none that could be asked for.
        self.usual, engine = self.served.info.sampling, self.served.engine
        drawn = secrets.randbits(62)
        for index, ask in enumerate(self._all):
            sampling = self._sampling(ask)
            if ask.n > 1:
                # Choices of one prompt differ, and are the same again for the same seed.
                seed = drawn if sampling.seed is None else sampling.seed
                sampling = replace(sampling, seed=(seed + index) % 2**63)
            request = Request(
                messages=ask.messages,
                text=ask.text,
                ids=ask.ids,
                sampling=sampling,
                tools=list(ask.tools) or None,
                tool_choice=ask.tool_choice,
                parallel_tool_calls=ask.parallel_tool_calls,
                thinking=thinking_of(ask, self._models.config),
                template_kwargs=ask.template_kwargs,
                format=ask.format,
                logprobs=ask.logprobs,
                prefix_cache=ask.prefix_cache,
                disk_tokens=ask.disk_tokens,
                agent_turn_cache=ask.agent_turn_cache and self._models.config.agent_turn_cache,
                owner=self._client or "API",
            )
            choice = _Choice(ask, engine.submit(request, self._channel.listener(index)))
            self.choices.append(choice)
        while any(choice.prompt_tokens is None for choice in self.choices):
            for index, event in await self._take():
                if isinstance(event, Failed):
                    raise as_api_error(event.error)
                if isinstance(event, Accepted):
                    self.choices[index].prompt_tokens = event.prompt_tokens
                else:
                    self._backlog.append((index, event))

    async def events(self) -> AsyncIterator[TurnEvent]:
        """What happens to the choices, in order, until all have ended; `ApiError` when one fails."""
        while self._unended:
            items, self._backlog = self._backlog or await self._take(), []
            for index, event in _joined(items):
                for found in self._read(index, event):
                    yield found

    def end(self, error: ApiError) -> None:
        """End the turn with an error."""
        self._error = self._error or error
        self._cancel_all()
        self._channel.close()

    def close(self) -> None:
        """Cancel what still runs and make room for others; may be called again."""
        if self._closed:
            return
        self._closed = True
        self._channel.close()
        self._cancel_all()
        self.served.turns.discard(self)
        self._models.give(self.served, len(self._all))

    def usage(self) -> Usage:
        """Counts of all choices together, a prompt that they share counted once; times of the first."""
        ends = [choice.usage or Usage() for choice in self.choices]
        prompts: dict[int, Usage] = {}
        for choice, usage in zip(self.choices, ends, strict=True):
            prompts.setdefault(id(choice.ask), usage)
        return replace(
            ends[0],
            prompt_tokens=sum(u.prompt_tokens for u in prompts.values()),
            reused_tokens=sum(u.reused_tokens for u in prompts.values()),
            reused_answer=any(u.reused_answer for u in ends),
            completion_tokens=sum(u.completion_tokens for u in ends),
            reasoning_tokens=sum(u.reasoning_tokens for u in ends),
            drafted_tokens=sum(u.drafted_tokens for u in ends),
            accepted_tokens=sum(u.accepted_tokens for u in ends),
        )

    def told(self, live: Live, texts: bool = False) -> Live:
        """The request with what can be told of its answer now, from any thread."""
        first_at, first = self._first or (self._latest, 0)
        seconds = self._latest - first_at
        return replace(
            live,
            model=self.model,
            admitted=self._opened,
            prompt_tokens=sum(choice.prompt_tokens or 0 for choice in list(self.choices)),
            reused_tokens=self.reused,
            written_tokens=self.written,
            rate=(self.written - first) / seconds if seconds > 0 else 0.0,
            text=_excerpt(self._all[0]) if texts and self._all else "",
        )

    @property
    def fingerprint(self) -> str:
        """What wrote the answer, as OpenAI's `system_fingerprint`."""
        return f"lucebox-{version()}"

    def _sampling(self, ask: Ask) -> SamplingParams:
        sampling = replace(self.usual, **ask.sampling)
        most = self._models.config.max_tokens
        if most is not None:
            sampling = replace(sampling, max_tokens=min(most, sampling.max_tokens or most))
        return sampling

    async def _take(self) -> list[Item]:
        items = await self._channel.take()
        if not items:
            raise self._error or ApiError(
                503, "The client is too far behind the answer.", "stalled"
            )
        return items

    def _read(self, index: int, event: Event) -> list[TurnEvent]:
        choice = self.choices[index]
        if choice.usage is not None:
            return []
        match event:
            case Started(prompt_tokens=prompt, reused_tokens=reused):
                self.reused += reused
                first, self._opened = not self._opened, True
                return [Opened(prompt, reused)] if first else []
            case TextDelta(tokens=tokens, pieces=pieces, logprobs=logprobs):
                self.written += len(tokens)
                self._latest = time.monotonic()
                self._first = self._first or (self._latest, self.written)
                content = [row(found) for found in logprobs if found.part is Part.CONTENT]
                return self._deltas(index, choice, pieces, content)
            case Finished(reason=FinishReason.CANCELLED):
                raise ApiError(503, "The model was taken away before the answer was done.", "gone")
            case Finished():
                choice.usage = event.usage
                self._unended -= 1
                # Who ended in its thinking has not stopped where the form that was asked for does.
                cut = event.form_cut and event.stop is None
                told = STOP if event.reason is FinishReason.STOP and not cut else LENGTH
                if choice.n_calls and told == STOP:
                    told = TOOL_CALLS
                rest = [Delta(index, Content(""), tuple(choice.rows))] if choice.rows else []
                return [*rest, Ended(index, told, event)]
            case Failed(error=error):
                raise as_api_error(error)
        return []

    def _deltas(
        self, index: int, choice: _Choice, pieces: Sequence[Piece], rows: list[Row]
    ) -> list[TurnEvent]:
        """Pieces as events; log-probabilities go with the first text at or after them."""
        choice.rows += rows
        found: list[TurnEvent] = []
        for piece in pieces:
            if isinstance(piece, ToolCallStart):
                choice.n_calls += 1
            told: tuple[Row, ...] = ()
            if isinstance(piece, Content):
                told, choice.rows = tuple(choice.rows), []
            found.append(Delta(index, piece, told))
        return found

    def _cancel_all(self) -> None:
        for choice in self.choices:
            if choice.usage is None:
                self.served.engine.cancel(choice.request_id)


def thinking_of(ask: Ask, config: ServerConfig) -> Thinking:
    """Thinking as asked for, else as the server is set."""
    if ask.thinking.wanted is not None or ask.messages is None or config.thinking == "model":
        return ask.thinking
    return replace(ask.thinking, enabled=config.thinking == "on")


def _joined(items: list[Item]) -> list[Item]:
    """Neighbouring text of one choice as one event: a reader that is late gets fewer and larger pieces."""
    if len(items) == 1:
        return items
    out: list[Item] = []
    for (index, is_text), group in groupby(items, lambda i: (i[0], isinstance(i[1], TextDelta))):
        events = [event for _, event in group]
        out += [(index, _together(events))] if is_text else [(index, event) for event in events]
    return out


def _together(events: Sequence[Event]) -> TextDelta:
    deltas = [event for event in events if isinstance(event, TextDelta)]
    return TextDelta(
        deltas[0].request_id,
        "".join(delta.text for delta in deltas),
        tuple(chain.from_iterable(delta.tokens for delta in deltas)),
        tuple(merged(chain.from_iterable(delta.pieces for delta in deltas))),
        tuple(chain.from_iterable(delta.logprobs for delta in deltas)),
    )


async def open_turn(models: Models, asks: Sequence[Ask], visit: Visit) -> Turn:
    """A turn that the engine has accepted, on the model that `asks` name."""
    n = sum(ask.n for ask in asks)
    served = await models.take(asks[0].model, n)
    turn = visit.turn = Turn(models, served, asks, visit.client)
    try:
        await turn.start()
    except BaseException as error:
        turn.close()
        if isinstance(error, Exception):
            raise as_api_error(error) from error
        raise
    return turn


STREAMS: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {}, EventStream.media_type: {}}}
}
"""What `respond` answers with, for the schema."""

Whole = Callable[[Turn], Coroutine[Any, Any, dict[str, Any]]]
Frames = Callable[[Turn], AsyncIterator[bytes]]
Failure = Callable[[ApiError], bytes]


async def respond(
    request: HttpRequest, asks: Sequence[Ask], stream: bool, whole: Whole, frames: Frames, failure: Failure
) -> Response:  # fmt: skip
    """The whole answer to a request, or its stream; `failure` makes the last frame of a stream that fails."""
    opening = open_turn(request.app.state.models, asks, request.state.visit)
    if stream:
        return await _stream(request, asyncio.ensure_future(opening), frames, failure)
    turn = await until_left(request, opening)
    if turn is None:
        return Response(status_code=499)
    try:
        result = await until_left(request, whole(turn))
    finally:
        turn.close()
    return Response(status_code=499) if result is None else JsonResponse(result)


async def _stream(
    request: HttpRequest, opening: asyncio.Future[Turn], frames: Frames, failure: Failure
) -> Response:
    """The stream of a turn. One that waits long for its model begins before it, to be kept alive."""

    async def written() -> AsyncIterator[bytes]:
        async with contextlib.aclosing(frames(await opening)) as found:  # type: ignore[type-var]
            async for data in found:
                yield data

    def close() -> None:
        if not opening.cancel() and not opening.cancelled() and opening.exception() is None:
            opening.result().close()

    gone = leaving(request)
    try:
        await asyncio.wait(
            {opening, gone}, timeout=wire.KEEP_ALIVE_S, return_when=asyncio.FIRST_COMPLETED
        )
        if opening.done():
            opening.result()  # what is wrong with a request is told by its status
    except BaseException:
        gone.cancel()
        close()
        raise
    if gone.done():
        close()
        return Response(status_code=499)

    def broken(error: Exception) -> bytes:
        request.state.visit.fault = "failed"
        return failure(as_api_error(error))

    pieces = frames(opening.result()) if opening.done() else written()
    return EventStream(pieces, gone, broken, close, getattr(request.state, "write", None))


def _excerpt(ask: Ask) -> str:
    """The beginning of what the user wrote last, on one line."""
    text = ask.text or ""
    for message in reversed(ask.messages or ()):
        if message.get("role") == "user":
            content = message.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            text = " ".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))
            break
    return " ".join(text[: 4 * _EXCERPT].split())[:_EXCERPT]
