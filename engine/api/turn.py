"""One request of a client, whatever its dialect, on its way through an engine.

A dialect (`openai_chat`, `openai_text`, `openai_responses`, `anthropic`) is a router that

1. reads its own body into one `Ask` (chat messages and tools always in OpenAI's chat form), raising
   `ApiError` or `refused(field, why)` for what cannot be honoured;
2. returns `await respond(request, [ask], stream, whole, frames)`: `whole(turn)` gives the JSON of a whole
   answer, usually from `await gather(turn)`, and `frames(turn)` yields the bytes of server-sent events,
   usually `frame(json, event_name)` for each event of `turn.events()`.

`respond` does the rest: it waits for a model, submits, answers an unsound request with its error before
anything is sent, cancels at the engine's next step when the client leaves, and sends `: keep-alive`.

`turn.events()` yields, in order: `Opened` once; then for each choice any number of `Delta` (a piece of
`engine.output`: Reasoning, Content, ToolCallStart, ToolCallArguments, ToolCallEnd) and one `Ended`. It
raises `ApiError` when an answer fails. `turn.usage()` is right after the last event; `usage.timings` makes
the timings that all dialects share.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import Request as HttpRequest
from fastapi import Response

from engine.api.channel import Channel, Item
from engine.api.errors import ApiError, as_api_error
from engine.api.served import Models, Served
from engine.api.wire import EventStream, JsonResponse, until_left
from engine.config import SamplingParams
from engine.output import Content, OutputParser, Part, Piece, ToolCallStart, output_parser
from engine.types import (
    Accepted,
    Event,
    Failed,
    Finished,
    FinishReason,
    Request,
    Started,
    TextDelta,
    Usage,
)
from engine.version import version

STOP, LENGTH, TOOL_CALLS = "stop", "length", "tool_calls"


@dataclass(frozen=True, slots=True)
class Thinking:
    """How much a model may think; None leaves it to the server and the model."""

    enabled: bool | None = None
    effort: str | None = None
    budget_tokens: int | None = None
    reply_budget: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """What a client wants, checked for its form; exactly one of `messages`, `text` and `ids` is given.

    `sampling` holds the fields of `SamplingParams` that the client chose; the model's own fill the rest.
    `tool_choice` is auto, none, required or a tool's name behind "=". `logprobs` is how many alternatives
    are wanted for each token, None for no log-probabilities at all.
    """

    model: str = ""
    messages: Sequence[Mapping[str, Any]] | None = None
    text: str | None = None
    ids: Sequence[int] | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: str = "auto"
    parallel_tool_calls: bool = True
    response_format: Mapping[str, Any] | None = None
    thinking: Thinking = Thinking()
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    n: int = 1
    logprobs: int | None = None


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
    logprobs: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Ended:
    """A choice is done: `reason` is stop, length or tool_calls, `stop` the stop string that ended it."""

    choice: int
    reason: str
    stop: str | None
    usage: Usage


TurnEvent = Opened | Delta | Ended


@dataclass(slots=True, eq=False)
class _Choice:
    ask: Ask
    request_id: int
    parser: OutputParser | None = None
    accepted: bool = False
    usage: Usage | None = None
    prompt_tokens: int = 0
    reasoning_tokens: int = 0
    n_calls: int = 0
    cut: bool = False
    unplaced: list[Any] = field(default_factory=list)


class Turn:
    """The choices of one client's request while they are written; used on the API's loop only."""

    def __init__(self, models: Models, served: Served, asks: Sequence[Ask]) -> None:
        self.id = secrets.token_hex(12)
        self.created = int(time.time())
        self.model = served.name
        self.served = served
        self._models = models
        self._channel = Channel(self._cancel_all)
        self._backlog: list[Item] = []
        self._error: ApiError | None = None
        self._closed = False
        self._opened = False
        self._all = [ask for ask in asks for _ in range(ask.n)]
        self.choices: list[_Choice] = []
        served.turns.add(self)

    async def start(self) -> None:
        """Submit all choices and wait until the engine has accepted each of them."""
        info, engine = self.served.info, self.served.engine
        drawn = secrets.randbits(62)
        for index, ask in enumerate(self._all):
            sampling = self._sampling(ask, info.sampling)
            if ask.n > 1:
                # Choices of one prompt differ, and are the same again for the same seed.
                seed = drawn if sampling.seed is None else sampling.seed
                sampling = replace(sampling, seed=(seed + index) % 2**63)
            request = Request(
                messages=ask.messages,
                text=ask.text,
                ids=ask.ids,
                sampling=sampling,
                tools=list(ask.tools) if ask.tools and ask.tool_choice != "none" else None,
                template_kwargs=self._template_kwargs(ask),
            )
            choice = _Choice(ask, engine.submit(request, self._channel.listener(index)))
            self.choices.append(choice)
        while not all(choice.accepted for choice in self.choices):
            for index, event in await self._take():
                if isinstance(event, Failed):
                    raise as_api_error(event.error)
                if isinstance(event, Accepted):
                    self._accept(self.choices[index], event)
                else:
                    self._backlog.append((index, event))

    async def events(self) -> AsyncIterator[TurnEvent]:
        """What happens to the choices, in order, until all have ended; `ApiError` when one fails."""
        while any(choice.usage is None for choice in self.choices):
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
            completion_tokens=sum(u.completion_tokens for u in ends),
        )

    @property
    def fingerprint(self) -> str:
        """What wrote the answer, as OpenAI's `system_fingerprint`."""
        return f"lucebox-{version()}"

    @property
    def reasoning_tokens(self) -> int:
        """Tokens of all choices that were spent on thinking."""
        return sum(choice.reasoning_tokens for choice in self.choices)

    @property
    def agent_turn_cache_hit(self) -> bool:
        """Whether the state after an earlier answer with a tool call was used, and not only its prompt's."""
        for choice in self.choices:
            for message in reversed(choice.ask.messages or ()):
                for call in message.get("tool_calls") or ():
                    before = self.served.calls.get(str(call.get("id")))
                    if before is not None and choice.usage is not None:
                        return choice.usage.reused_tokens > before
        return False

    def _sampling(self, ask: Ask, usual: SamplingParams) -> SamplingParams:
        sampling = replace(usual, **ask.sampling)
        most = self._models.config.max_tokens
        if most is not None:
            sampling = replace(sampling, max_tokens=min(most, sampling.max_tokens or most))
        return sampling

    def _template_kwargs(self, ask: Ask) -> dict[str, Any]:
        kwargs: dict[str, Any] = {}
        enabled = ask.thinking.enabled
        if enabled is None and self._models.config.thinking != "model":
            enabled = self._models.config.thinking == "on"
        if enabled is not None and ask.messages is not None:
            kwargs["enable_thinking"] = enabled
        if ask.thinking.effort is not None:
            kwargs["reasoning_effort"] = ask.thinking.effort
        return {**kwargs, **ask.template_kwargs}

    def _accept(self, choice: _Choice, event: Accepted) -> None:
        ask = choice.ask
        choice.accepted = True
        choice.prompt_tokens = event.prompt_tokens
        if ask.messages is not None:
            tools = ask.tools if ask.tool_choice != "none" else ()
            choice.parser = output_parser(event.prompt_end, tools, ask.parallel_tool_calls)

    async def _take(self) -> list[Item]:
        items = await self._channel.take()
        if not items:
            raise self._error or ApiError(503, "The client took nothing for too long.", "stalled")
        return items

    def _read(self, index: int, event: Event) -> list[TurnEvent]:
        choice = self.choices[index]
        if choice.usage is not None:
            return []
        match event:
            case Started(prompt_tokens=prompt, reused_tokens=reused) if not self._opened:
                self._opened = True
                return [Opened(prompt, reused)]
            case TextDelta():
                return list(self._pieces(index, choice, event))
            case Finished(reason=FinishReason.CANCELLED) if not choice.cut:
                raise ApiError(503, "The model was taken away before the answer was done.", "gone")
            case Finished(reason=reason, stop=stop, usage=usage):
                return self._finish(index, choice, reason, stop, usage)
            case Failed(error=error):
                raise as_api_error(error)
        return []

    def _pieces(self, index: int, choice: _Choice, event: TextDelta) -> list[TurnEvent]:
        parser = choice.parser
        if parser is None:
            return [Delta(index, Content(event.text))] if event.text else []
        if parser.part is Part.REASONING:
            choice.reasoning_tokens += len(event.tokens)
        found = self._deltas(index, choice, parser.push(event.text))
        if parser.done and not choice.cut:
            # Nothing behind the first call is wanted.
            choice.cut = True
            self.served.engine.cancel(choice.request_id)
        return found

    def _deltas(self, index: int, choice: _Choice, pieces: Sequence[Piece]) -> list[TurnEvent]:
        for piece in pieces:
            if isinstance(piece, ToolCallStart):
                choice.n_calls += 1
                self.served.remember_call(piece.id, choice.prompt_tokens)
        return [Delta(index, piece) for piece in pieces]

    def _finish(
        self, index: int, choice: _Choice, reason: FinishReason, stop: str | None, usage: Usage
    ) -> list[TurnEvent]:
        choice.usage = usage
        rest = choice.parser.finish() if choice.parser is not None else []
        found = self._deltas(index, choice, rest)
        told = LENGTH if reason is FinishReason.LENGTH else TOOL_CALLS if choice.n_calls else STOP
        return [*found, Ended(index, told, stop, usage)]

    def _cancel_all(self) -> None:
        for choice in self.choices:
            if choice.usage is None:
                self.served.engine.cancel(choice.request_id)


def _joined(items: list[Item]) -> list[Item]:
    """Neighbouring text of one choice as one event: a reader that is late gets fewer and larger pieces."""
    out: list[Item] = []
    for index, event in items:
        if out and isinstance(event, TextDelta):
            before_index, before = out[-1]
            if before_index == index and isinstance(before, TextDelta):
                event = replace(
                    before, text=before.text + event.text, tokens=before.tokens + event.tokens
                )
                out.pop()
        out.append((index, event))
    return out


async def open_turn(models: Models, asks: Sequence[Ask]) -> Turn:
    """A turn that the engine has accepted, on the model that `asks` name."""
    n = sum(ask.n for ask in asks)
    served = await models.take(asks[0].model, n)
    turn = Turn(models, served, asks)
    try:
        await turn.start()
    except BaseException as error:
        turn.close()
        if isinstance(error, Exception):
            raise as_api_error(error) from error
        raise
    return turn


Whole = Callable[[Turn], Coroutine[Any, Any, dict[str, Any]]]
Frames = Callable[[Turn], AsyncIterator[bytes]]
Failure = Callable[[ApiError], bytes]


async def respond(
    request: HttpRequest, asks: Sequence[Ask], stream: bool, whole: Whole, frames: Frames, failure: Failure
) -> Response:  # fmt: skip
    """The whole answer to a request, or its stream; `failure` makes the last frame of a stream that fails."""
    turn = await until_left(request, open_turn(request.app.state.models, asks))
    if turn is None:
        return Response(status_code=499)
    if stream:
        return EventStream(frames(turn), lambda e: failure(as_api_error(e)), turn.close)
    try:
        result = await until_left(request, whole(turn))
    finally:
        turn.close()
    return Response(status_code=499) if result is None else JsonResponse(result)
