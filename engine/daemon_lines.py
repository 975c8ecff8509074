"""The lines that `lucebox daemon` reads: which fields each operation has, and of what type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

from pydantic import Field, ValidationError, create_model

from engine.api.errors import of_faults
from engine.api.messages import Message, Tool, plain_messages, plain_tools
from engine.api.schemas import Body, Many, Number, Stop, biases, stops
from engine.config import SamplingParams
from engine.errors import BadRequest
from engine.user_text import decoded, parsed

_HINTS: Mapping[str, Any] = {
    **{name: hint | None for name, hint in get_type_hints(SamplingParams).items()},
    "stop": Stop,
    "logit_bias": dict[str, Number] | None,
}
_FIELDS: dict[str, Any] = {name: (hint, None) for name, hint in _HINTS.items()}
_Sampling = create_model("_Sampling", __base__=Body, **_FIELDS)


class Line(Body):
    """What all lines have; the answer bears the same `id`."""

    op: str
    id: str | int | None = None


class Named(Line):
    """A snapshot."""

    name: str = Field(min_length=1)


class Keep(Named):
    """What was generated under the id `of`, by default the latest, is to be a snapshot."""

    of: str | int | None = None


class Writing(Line, _Sampling):  # type: ignore[misc, valid-type]  # fields are those of SamplingParams
    """A text is wanted."""

    prompt: str | None = None

    def sampling(self) -> dict[str, Any]:
        """The fields of `SamplingParams` that were given; `ApiError` for what cannot be read."""
        found = {name: value for name in _HINTS if (value := getattr(self, name)) is not None}
        if "stop" in found:
            found["stop"] = stops(found["stop"])
        if "logit_bias" in found:
            found["logit_bias"] = biases(found["logit_bias"])
        return found


class Generate(Writing):
    """One of `prompt`, `messages` and `ids`; `tools` are for messages."""

    messages: Many[Message] | None = None
    ids: list[int] | None = None
    tools: Many[Tool] | None = None

    def check(self) -> None:
        """`BadRequest` where there is more or less than one of the three, or tools without messages."""
        given = [name for name in ("prompt", "messages", "ids") if getattr(self, name) is not None]
        if len(given) != 1:
            found = " and ".join(given) or "none"
            raise BadRequest(f"Expected one of prompt, messages and ids; found {found}.")
        if self.tools and self.messages is None:
            raise BadRequest("tools: they are for messages, which are missing.")

    def chat(self) -> dict[str, Any]:
        """Messages and tools as a template reads them; `ApiError` for those that it cannot."""
        messages = plain_messages(self.messages) if self.messages is not None else None
        return {"messages": messages, "tools": plain_tools(self.tools) or None}


class Restore(Named, Writing):
    """A text is wanted behind a snapshot and, where it is given, a prompt."""


OPERATIONS: Mapping[str, type[Line]] = {
    "generate": Generate,
    "restore": Restore,
    "cancel": Line,
    "snapshot": Keep,
    "list": Line,
    "free": Named,
    "park": Line,
    "unpark": Line,
    "quit": Line,
}


def read(line: bytes) -> Line:
    """A line by its operation; `BadLine` for what is none."""
    try:
        command = parsed(decoded(line, "The line"), "The line")
    except BadRequest as error:
        raise BadLine(None, str(error)) from None
    given = command if isinstance(command, dict) else {}
    kind = OPERATIONS.get(given["op"]) if isinstance(given.get("op"), str) else None
    if kind is None:
        names = ", ".join(OPERATIONS)
        raise BadLine(given.get("id"), f'Expected an object with "op", one of {names}.')
    try:
        return kind.model_validate(command)
    except ValidationError as error:
        raise BadLine(given.get("id"), str(of_faults(error.errors(), command))) from None


class BadLine(Exception):
    """A line that cannot be carried out; `given` is the id that it bears."""

    def __init__(self, given: Any, message: str) -> None:
        super().__init__(message)
        self.given = given
