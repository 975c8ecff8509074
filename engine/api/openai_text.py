"""`/v1/completions`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import Field

from engine.api import logprobs
from engine.api.errors import refused
from engine.api.gather import Answer, gather, openai_usage
from engine.api.openai_chat import StreamOptions, check_stream, failure
from engine.api.schemas import MOST_CHOICES, Number, SamplingFields, Stop, biases, refuse_all, stops
from engine.api.turn import STREAMS, Ask, Delta, Ended, Turn, respond
from engine.api.wire import DONE, frame
from engine.pieces import Content
from engine.tokenizer import Tokenizer

router = APIRouter()

_USUAL_TOKENS = 16
_REFUSED = {
    "suffix": "filling in the middle takes the model's own markers in the prompt",
    "thinking": "a text completion has no thinking of its own; use /v1/chat/completions",
    "reasoning": "a text completion has no thinking of its own; use /v1/chat/completions",
    "reasoning_effort": "a text completion has no thinking; use /v1/chat/completions",
    "chat_template_kwargs": "a text completion has no template; use /v1/chat/completions",
}


class CompletionBody(SamplingFields):
    """A request to go on with a text."""

    model: str = ""
    prompt: str | list[str] | list[int] | list[list[int]] = Field(
        description="One text or several, or their token ids; the model's markers in a text count."
    )
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = Field(1, ge=1, le=MOST_CHOICES)
    best_of: int | None = Field(None, ge=1, le=MOST_CHOICES)
    max_tokens: int | None = Field(None, ge=-1, le=16_777_216)
    stop: Stop = None
    logit_bias: dict[str, Number] | None = None
    logprobs: int | None = Field(None, ge=0, le=20)
    echo: bool | None = None
    suffix: str | None = None
    user: str | None = None

    def ask(self, ids: list[int]) -> Ask:
        """What is asked for with one of the prompts."""
        sampling = self.sampling()
        most = _USUAL_TOKENS if self.max_tokens is None else self.max_tokens
        if most >= 0:
            sampling["max_tokens"] = most
        if ends := stops(self.stop):
            sampling["stop"] = ends
        if self.logit_bias:
            sampling["logit_bias"] = biases(self.logit_bias)
        return Ask(
            model=self.model,
            ids=ids,
            sampling=sampling,
            n=self.n,
            logprobs=self.logprobs,
            **self.caching(),
        )

    def check(self) -> None:
        """Refuse what cannot be honoured."""
        refuse_all(self.__dict__, _REFUSED)
        if self.best_of is not None and self.best_of != self.n:
            raise refused("best_of", "answers are not ranked; leave it out, or make it equal to n")
        if self.echo and self.logprobs is not None:
            raise refused("echo", "log-probabilities of the prompt are not known; leave one out")
        check_stream(self.stream_options, self.stream)
        if isinstance(self.prompt, list) and not self.prompt:
            raise refused("prompt", "the list is empty; expected at least one text")
        if (
            isinstance(self.prompt, list)
            and len(self.prompt) > MOST_CHOICES
            and _is_many(self.prompt)
        ):
            raise refused("prompt", f"found {len(self.prompt)}, expected at most {MOST_CHOICES}")


@router.post("/v1/completions", responses=STREAMS)
async def create_completion(body: CompletionBody, request: Request) -> Response:
    """Go on with one text or several."""
    body.check()
    served = request.app.state.models.look(body.model)
    tokenizer, _ = served.texts()
    prompts = await asyncio.to_thread(_ids, tokenizer, body.prompt)
    asks = [body.ask(ids) for ids in prompts]
    echoes = [tokenizer.decode(ids) if body.echo else "" for ids in prompts for _ in range(body.n)]

    async def whole(turn: Turn) -> dict[str, Any]:
        answers = await gather(turn)
        choices = [_choice(i, a, echoes[i], body) for i, a in enumerate(answers)]
        return {**_head(turn), "choices": choices, "usage": openai_usage(turn)}

    return await respond(
        request, asks, body.stream, whole, lambda turn: _frames(turn, echoes, body), failure
    )


def _ids(tokenizer: Tokenizer, prompt: Any) -> list[list[int]]:
    prompts = prompt if _is_many(prompt) else [prompt]
    return [tokenizer.encode(p, special=True) if isinstance(p, str) else list(p) for p in prompts]


def _is_many(prompt: Any) -> bool:
    return isinstance(prompt, list) and not isinstance(prompt[0], int)


def _head(turn: Turn) -> dict[str, Any]:
    return {
        "id": f"cmpl-{turn.id}",
        "object": "text_completion",
        "created": turn.created,
        "model": turn.model,
        "system_fingerprint": turn.fingerprint,
    }


def _choice(index: int, answer: Answer, echo: str, body: CompletionBody) -> dict[str, Any]:
    wanted = body.logprobs is not None
    return {
        "index": index,
        "text": echo + answer.content,
        "logprobs": logprobs.of_text(answer.logprobs, 0) if wanted else None,
        "finish_reason": answer.end.reason,
    }


async def _frames(turn: Turn, echoes: list[str], body: CompletionBody) -> AsyncIterator[bytes]:
    head = _head(turn)
    with_usage = bool(body.stream_options and body.stream_options.include_usage)
    none: dict[str, Any] = {"usage": None} if with_usage else {}
    written = [0] * len(echoes)

    def chunk(index: int, text: str, reason: str | None = None, rows: Any = ()) -> bytes:
        choice = {"index": index, "text": text, "logprobs": None, "finish_reason": reason}
        if body.logprobs is not None and rows:
            choice["logprobs"] = logprobs.of_text(rows, written[index])
        written[index] += len(text)
        return frame({**head, "choices": [choice], **none})

    for index, echo in enumerate(echoes):
        if echo:
            yield chunk(index, echo)
    async for event in turn.events():
        if isinstance(event, Delta) and isinstance(event.piece, Content):
            yield chunk(event.choice, event.piece.text, rows=event.logprobs)
        elif isinstance(event, Ended):
            yield chunk(event.choice, "", event.reason)
    if with_usage:
        yield frame({**head, "choices": [], "usage": openai_usage(turn)})
    yield DONE
