"""Input items and tools of OpenAI's Responses dialect, in the chat form that templates read.

Format: https://platform.openai.com/docs/api-reference/responses/create.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from engine.api.errors import refused
from engine.api.messages import Function, Tool, plain_tools, text_of_parts
from engine.api.schemas import Body, Many

_SEAL = "lucebox."
"""Before reasoning that a client asked for in encrypted form; here it has no secrets, and is only coded."""


class InputItem(Body):
    """A message, a call, a call's output or earlier reasoning; `type` may be left out of a message."""

    type: str = "message"
    id: str | None = None
    status: str | None = None
    role: Literal["system", "developer", "user", "assistant"] | None = None
    phase: str | None = None
    content: str | Many[dict[str, Any]] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | dict[str, Any] | None = None
    output: str | Many[dict[str, Any]] | None = None
    summary: list[dict[str, Any]] | None = None
    encrypted_content: str | None = None
    internal_chat_message_metadata_passthrough: dict[str, Any] | None = None


class ResponsesTool(Body):
    """A tool; functions are the only kind there is."""

    type: str
    name: str | None = Field(None, pattern=r"^[A-Za-z0-9_.:/-]{1,128}$")
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


def sealed(reasoning: str) -> str:
    """Reasoning as a text that the client brings back unread."""
    return _SEAL + base64.b64encode(reasoning.encode("utf-8", "surrogatepass")).decode()


def listed(item: dict[str, Any]) -> dict[str, Any]:
    """An item as clients read it back: the content of a message is always a list of parts."""
    if not isinstance(item.get("content"), str):
        return item
    part = {"type": "input_text", "text": item["content"]}
    if item["role"] == "assistant":
        part = {"type": "output_text", "text": item["content"], "annotations": [], "logprobs": []}
    return {"status": "completed", **item, "content": [part]}


def chat_messages(
    instructions: str | None, items: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """The conversation in chat form: leading instructions are one system message, and what the assistant
    thought, said and called in a row is one message of it.
    """
    chat: list[dict[str, Any]] = []
    lead = [instructions] if instructions else []
    for n, given in enumerate(items):
        item = InputItem.model_validate(given)
        where = f"input.{n}"
        match item.type:
            case "message":
                role = "system" if item.role in ("system", "developer") else item.role
                if role is None:
                    raise refused(f"{where}.role", "a message needs a role")
                text = _text(item.content, f"{where}.content")
                if role == "system" and not chat:
                    lead.append(text)
                elif role == "assistant":
                    _last(chat)["content"] += text
                else:
                    chat.append({"role": role, "content": text})
            case "reasoning":
                if found := _reasoning(item, where):
                    chat.append({"role": "assistant", "content": "", "reasoning_content": found})
            case "function_call":
                if item.name is None or item.call_id is None:
                    raise refused(where, "a function_call needs call_id and name")
                function = {"name": item.name, "arguments": item.arguments or "{}"}
                calls = _last(chat).setdefault("tool_calls", [])
                calls.append({"id": item.call_id, "type": "function", "function": function})
            case "function_call_output":
                if item.call_id is None:
                    raise refused(where, "a function_call_output needs call_id")
                content = _text(item.output, f"{where}.output")
                chat.append({"role": "tool", "tool_call_id": item.call_id, "content": content})
            case kind:
                raise refused(
                    f"{where}.type", f"items of the type {kind[:60]!r} cannot be read here"
                )
    if text := "\n\n".join(filter(None, lead)):
        chat.insert(0, {"role": "system", "content": text})
    if not chat:
        raise refused("input", "expected a text or at least one item")
    return chat


def chat_tools(given: Sequence[ResponsesTool] | None) -> list[dict[str, Any]]:
    """Tools in chat form; `ApiError` for those that OpenAI's own servers run."""
    tools = []
    for n, tool in enumerate(given or ()):
        if tool.type != "function" or tool.name is None:
            raise refused(
                f"tools.{n}.type",
                f"{tool.type[:60]!r} is no tool that can be called here; only functions with a name are",
            )
        function = Function(
            name=tool.name,
            description=tool.description,
            parameters=tool.parameters,
            strict=tool.strict,
        )
        tools.append(Tool(type="function", function=function))
    return plain_tools(tools)


def _last(chat: list[dict[str, Any]]) -> dict[str, Any]:
    """The assistant's message that goes on; a new one behind anybody else's."""
    if not chat or chat[-1]["role"] != "assistant":
        chat.append({"role": "assistant", "content": ""})
    return chat[-1]


def _text(content: str | list[dict[str, Any]] | None, where: str) -> str:
    if content is None:
        raise refused(where, "expected a text or parts")
    return content if isinstance(content, str) else "".join(text_of_parts(content, where))


def _reasoning(item: InputItem, where: str) -> str:
    """What was thought: its text, or what a client kept of it unread."""
    parts = item.content if isinstance(item.content, list) else []
    if text := "".join(str(p.get("text", "")) for p in parts if p.get("type") == "reasoning_text"):
        return text
    kept = item.encrypted_content or ""
    if not kept.startswith(_SEAL):
        return ""
    try:
        return base64.b64decode(kept[len(_SEAL) :], validate=True).decode("utf-8", "surrogatepass")
    except (binascii.Error, UnicodeDecodeError):
        raise refused(f"{where}.encrypted_content", "it was changed since it was written") from None
