"""Chat messages and tools as OpenAI's chat dialect has them, made plain for templates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from pydantic import Field

from engine.api.errors import ApiError, refused
from engine.api.schemas import Body, Many
from engine.types import ToolChoice

TEXT_PARTS = ("text", "input_text", "output_text")
# What a server said of a text is not needed, and a wish to have it cached is met anyway.
_TEXT_FIELDS = frozenset(
    ("type", "text", "annotations", "logprobs", "cache_control", "prompt_cache_breakpoint")
)
_IMAGES = ("image", "image_url", "input_image")


class CalledFunction(Body):
    """The function of a call, with its arguments as JSON text or as an object."""

    name: str
    arguments: str | dict[str, Any] = "{}"


class ToolCall(Body):
    """A call that an assistant message holds."""

    id: str | None = None
    type: Literal["function"] = "function"
    index: int | None = None
    function: CalledFunction


class Message(Body):
    """One chat message."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Many[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: Many[ToolCall] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: list[dict[str, Any]] | None = None
    refusal: str | None = None
    annotations: list[dict[str, Any]] | None = None
    provider_specific_fields: dict[str, Any] | None = None


class Function(Body):
    """A function that the model may call."""

    name: str = Field(pattern=r"^[A-Za-z0-9_.:/-]{1,128}$")
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Body):
    """A tool; functions are the only kind there is."""

    type: Literal["function"]
    function: Function
    cache_control: dict[str, Any] | None = None


def plain_messages(given: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages for a template: leading system texts are one message, developers are the system."""
    plain: list[dict[str, Any]] = []
    for n, message in enumerate(given):
        found = _plain(message, f"messages.{n}.content")
        before = plain[-1] if plain else None
        if before and len(plain) == 1 and before["role"] == found["role"] == "system":
            texts = (_as_text(before["content"]), _as_text(found["content"]))
            before["content"] = "\n\n".join(text for text in texts if text)
        else:
            plain.append(found)
    return plain


def plain_tools(given: Sequence[Tool] | None) -> list[dict[str, Any]]:
    """Tools for templates and parsers; a name may be declared once only."""
    tools: list[dict[str, Any]] = []
    seen: set[str] = set()
    for n, tool in enumerate(given or ()):
        if tool.function.name in seen:
            raise refused(f"tools.{n}.function.name", f"{tool.function.name!r} is declared twice")
        seen.add(tool.function.name)
        function: dict[str, Any] = {
            "name": tool.function.name,
            "description": tool.function.description or "",
            "parameters": tool.function.parameters or {"type": "object", "properties": {}},
        }
        if tool.function.strict is not None:
            function["strict"] = tool.function.strict
        tools.append({"type": "function", "function": function})
    return tools


def tool_choice(given: Any, tools: Sequence[dict[str, Any]]) -> ToolChoice:
    """Which tools may be called; `given` is a word, or names functions in the forms of OpenAI's dialects."""
    if given is None or isinstance(given, str):
        if given == "required" and not tools:
            raise _bad_choice("tool_choice: required, but there are no tools.")
        return ToolChoice(given or "auto")
    mode, named = "required", [given]
    if given.get("type") == "allowed_tools":
        allowed = given.get("allowed_tools", given)
        mode, named = allowed.get("mode", "auto"), allowed.get("tools") or []
    names = [_function_name(one) for one in named]
    if not names or mode not in ("auto", "required") or None in names:
        raise _bad_choice(
            'tool_choice: expected "auto", "none", "required" or functions by their names.'
        )
    for name in names:
        if name not in {tool["function"]["name"] for tool in tools}:
            raise _bad_choice(f"tool_choice: no tool is called {str(name)[:100]!r}.")
    return ToolChoice(mode, tuple(str(name) for name in names))


def _function_name(given: Any) -> str | None:
    """The name in {"type": "function", "function": {"name": ...}}, or without the inner object."""
    if not isinstance(given, dict) or given.get("type") != "function":
        return None
    inner = given.get("function", given)
    name = inner.get("name") if isinstance(inner, dict) else None
    return name if isinstance(name, str) else None


def _bad_choice(message: str) -> ApiError:
    return ApiError(400, message, "invalid_value", "tool_choice")


def text_of_parts(parts: Sequence[dict[str, Any]], where: str) -> Iterator[str]:
    """The texts of content parts; a part that is no text is refused by its place and type."""
    for n, part in enumerate(parts):
        kind, text = part.get("type"), part.get("text")
        if kind in TEXT_PARTS and (unknown := part.keys() - _TEXT_FIELDS):
            raise refused(f"{where}.{n}.{min(unknown)}", "texts have no such field here")
        if kind == "refusal" and isinstance(part.get("refusal"), str):
            yield part["refusal"]
        elif kind in TEXT_PARTS and isinstance(text, str):
            yield text
        elif kind in _IMAGES:
            raise refused(f"{where}.{n}", "this model reads no images, only text")
        elif kind in TEXT_PARTS:
            raise refused(f"{where}.{n}.text", "expected a text")
        else:
            raise refused(
                f"{where}.{n}", f"a part of type {str(kind)[:40]!r} cannot be read, only text"
            )


def _plain(message: Message, where: str) -> dict[str, Any]:
    content: Any = message.content
    if isinstance(content, list):
        texts = list(text_of_parts(content, where))
        content = [{"type": "text", "text": text} for text in texts]
        if len(texts) < 2:
            content = "".join(texts)
    role = "system" if message.role == "developer" else message.role
    found: dict[str, Any] = {"role": role, "content": content}
    if content is None and message.refusal is not None:
        found["content"] = message.refusal
    if content is None and role != "assistant" and message.refusal is None:
        raise refused(where, f"expected a text in a message of the role {message.role}")
    if message.name is not None:
        found["name"] = message.name
    if role == "tool":
        if message.tool_call_id is not None:
            found["tool_call_id"] = message.tool_call_id
        return found
    if message.tool_calls:
        if role != "assistant":
            raise refused(
                where.replace("content", "tool_calls"), "only messages of the assistant have calls"
            )
        found["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in message.tool_calls
        ]
    reasoning = message.reasoning_content or message.reasoning
    if reasoning:
        found["reasoning_content"] = reasoning
    return found


def _as_text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content)
    return content or ""
