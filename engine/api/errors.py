"""What clients are told when something is wrong, in the form that their dialect expects."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from engine.api.wire import json_bytes
from engine.errors import BadRequest, ContextOverflow, EngineError, NoModel, OutOfMemory

log = logging.getLogger(__name__)

RETRY_AFTER_S = 2

_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class ApiError(Exception):
    """A refusal with its HTTP status; `code` and `param` are OpenAI's machine-readable parts."""

    def __init__(
        self,
        status: int,
        message: str,
        code: str | None = None,
        param: str | None = None,
        retry_after: int | None = None,
        anthropic: str | None = None,
    ) -> None:
        """`retry_after` in seconds; `anthropic` is the message where that dialect words it otherwise."""
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self.anthropic = anthropic or message


class ErrorFacts(BaseModel):
    """What an error tells in OpenAI's dialect."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """An error in OpenAI's dialect."""

    error: ErrorFacts


class AnthropicErrorFacts(BaseModel):
    """What an error tells in Anthropic's dialect."""

    type: str
    message: str


class AnthropicErrorBody(BaseModel):
    """An error in Anthropic's dialect."""

    type: str
    error: AnthropicErrorFacts
    request_id: str


Responses = dict[int | str, dict[str, Any]]


def _responses(model: type[BaseModel]) -> Responses:
    return {
        status: {"model": model} for status in (400, 401, 403, 404, 405, 408, 413, 431, 500, 503)
    }


RESPONSES = _responses(ErrorBody)
"""The errors of every path, for the schema."""

ANTHROPIC_RESPONSES = _responses(AnthropicErrorBody)
"""The errors of the paths of Anthropic's dialect, for the schema."""


def refused(name: str, why: str) -> ApiError:
    """The refusal of one field by its name."""
    return ApiError(400, f"{name}: {why}", "unsupported_parameter", name)


def as_api_error(error: Exception) -> ApiError:
    """What a client is told of any error; the context's overflow in the words that clients search for."""
    match error:
        case ApiError():
            return error
        case ContextOverflow(prompt_tokens=n, max_ctx=most):
            return ApiError(
                400,
                f"This model's maximum context length is {most} tokens. However, your messages resulted in"
                f" {n} tokens. Please reduce the length of the messages.",
                "context_length_exceeded",
                "messages",
                anthropic=f"prompt is too long: {n} tokens > {most} maximum",
            )
        case NoModel():
            return ApiError(503, str(error), "no_model", retry_after=RETRY_AFTER_S)
        case BadRequest():
            return ApiError(400, str(error))
        case OutOfMemory():
            return ApiError(503, str(error), "resource_exhausted", retry_after=RETRY_AFTER_S)
        case EngineError():
            return ApiError(500, str(error), "engine_failed")
    log.error("A request failed in a way that was not foreseen", exc_info=error)
    return ApiError(
        500,
        "The server failed in a way that was not foreseen; its log has the details.",
        "internal",
    )


def openai_body(error: ApiError) -> dict[str, Any]:
    """The error as the OpenAI SDK reads it."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return {
        "error": {
            "message": str(error), "type": kind, "param": error.param, "code": error.code,
        }
    }  # fmt: skip


def anthropic_body(error: ApiError) -> dict[str, Any]:
    """The error as the Anthropic SDK reads it."""
    kind = _ANTHROPIC.get(error.status, "api_error" if error.status >= 500 else _ANTHROPIC[400])
    return {
        "type": "error",
        "error": {"type": kind, "message": error.anthropic},
        "request_id": f"req_{secrets.token_hex(12)}",
    }


def speaks_anthropic(path: str) -> bool:
    """Whether a path belongs to Anthropic's dialect."""
    return path == "/v1/messages" or path.startswith("/v1/messages/")


def error_body(path: str, error: ApiError) -> bytes:
    """The body of an error for a client of `path`."""
    return json_bytes((anthropic_body if speaks_anthropic(path) else openai_body)(error))


def error_headers(error: ApiError) -> dict[str, str]:
    """The headers that go with an error."""
    return {"retry-after": str(error.retry_after)} if error.retry_after is not None else {}


def error_response(request: Request, error: ApiError) -> Response:
    """The whole answer that an error makes."""
    return Response(
        error_body(request.url.path, error),
        error.status,
        headers=error_headers(error),
        media_type="application/json",
    )


def of_validation(error: RequestValidationError) -> ApiError:
    """What is wrong with a request, by the field's name."""
    faults: Sequence[Mapping[str, Any]] = error.errors()
    first = faults[0]
    if first["type"] == "json_invalid":
        return ApiError(
            400, f"The body is not JSON: {first['ctx']['error']} at character {first['loc'][-1]}."
        )
    if first["loc"][0] != "body":  # a parameter in the path
        return _invalid([str(part) for part in first["loc"][1:]], first["type"], first["msg"])
    return of_faults([{**fault, "loc": fault["loc"][1:]} for fault in faults], error.body)


def of_faults(faults: Sequence[Mapping[str, Any]], body: Any) -> ApiError:
    """The first of pydantic's faults in `body`, by the field's name.

    Where a value may be of several kinds, each kind has its faults; then those count that lie deepest in it,
    and a wrong value before a wrong type.
    """
    places = [_place(fault, body) for fault in faults]
    where, plain = places[0]
    if not where:
        return ApiError(
            400, "The body is no JSON object; expected one, sent as content-type application/json."
        )
    field = faults[0]["loc"][:plain]
    ranks = {
        n: (len(places[n][0]), not fault["type"].endswith("_type"))
        for n, fault in enumerate(faults)
        if fault["loc"][:plain] == field
    }
    best = max(ranks, key=ranks.__getitem__)
    where = places[best][0]
    texts = [
        str(faults[n]["msg"]).removeprefix("Value error, ")
        for n, rank in ranks.items()
        if rank == ranks[best] and places[n][0] == where
    ]
    first, *others = dict.fromkeys(texts)
    return _invalid(where, faults[best]["type"], ", or ".join([first, *map(_unprefixed, others)]))


def _unprefixed(text: str) -> str:
    return text.removeprefix("Input should be ")


def _place(fault: Mapping[str, Any], body: Any) -> tuple[list[str], int]:
    """Where in a body a fault is, without pydantic's labels for kinds of values, and where they begin."""
    where: list[str] = []
    plain: int | None = None
    for n, part in enumerate(fault["loc"]):
        try:
            body = body[part]
        except (KeyError, IndexError, TypeError):
            plain = n if plain is None else plain
            if fault["type"] != "missing" or n + 1 < len(fault["loc"]):
                continue
        where.append(str(part))
    return where, len(fault["loc"]) if plain is None else plain


def _invalid(where: Sequence[str], kind: str, text: str) -> ApiError:
    name = ".".join(where)
    if kind == "extra_forbidden":
        return ApiError(
            400, f"{name}: there is no such field here. Leave it out.", "unknown_parameter", name
        )
    return ApiError(400, f"{name}: {text}.".replace("..", "."), "invalid_value", name)
