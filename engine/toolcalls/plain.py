"""Tools for models whose chat template knows none: told, called and answered in plain text."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

Message = Mapping[str, Any]


def knows_tools(template: str) -> bool:
    """Whether a chat template does anything with tools or calls."""
    return re.search(r"\btool(s|_calls)\b", template) is not None


def in_plain_text(
    messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None
) -> list[dict[str, Any]]:
    """`messages` with the tools in the system message, calls as JSON, and results as the user's words."""
    out: list[dict[str, Any]] = []
    names: dict[Any, str] = {}
    for message in messages:
        plain = dict(message) if isinstance(message, Mapping) else {}
        calls = plain.pop("tool_calls", None)
        if isinstance(calls, list) and calls:
            written = [_call(c) for c in calls if isinstance(c, Mapping)]
            names |= {
                c.get("id"): call["name"]
                for c, call in zip(calls, written, strict=False)
                if isinstance(c, Mapping)
            }
            text = [_text(plain["content"])] if plain.get("content") else []
            plain["content"] = "\n".join([*text, *(_json(c) for c in written)])
        elif plain.get("role") == "tool":
            name = plain.get("name") or names.get(plain.get("tool_call_id"), "the tool")
            plain = {"role": "user", "content": f"Result of {name}: {_text(plain.get('content'))}"}
            if out and out[-1]["role"] == "user":
                out[-1]["content"] = f"{_text(out[-1].get('content'))}\n{plain['content']}"
                continue
        out.append(plain)
    return _with_tools(out, tools) if tools else out


def _with_tools(
    messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    told = [t.get("function", t) for t in tools if isinstance(t, Mapping)]
    form = _json({"name": "tool name", "arguments": {"argument name": "value"}})
    text = (
        "You can use these tools, each described by one line of JSON:\n\n"
        + "\n".join(map(_json, told))
        + f"\n\nTo use one, reply with nothing but JSON like {form}. Its result will be given to you."
        " When no tool is needed, answer as usual."
    )
    if messages and messages[0].get("role") in ("system", "developer"):
        first = dict(messages[0])
        first["content"] = f"{_text(first.get('content'))}\n\n{text}".strip()
        return [first, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def _call(call: Mapping[str, Any]) -> dict[str, Any]:
    inner = call.get("function", call)
    inner = inner if isinstance(inner, Mapping) else {}
    arguments = inner.get("arguments")
    if isinstance(arguments, str):
        with contextlib.suppress(ValueError, RecursionError):
            arguments = json.loads(arguments) if arguments.strip() else {}
    return {"name": str(inner.get("name", "")), "arguments": arguments or {}}


def _text(content: Any) -> str:
    """The text of a message's content, which may come in parts."""
    if isinstance(content, list):
        return "\n".join(p["text"] for p in content if isinstance(p, Mapping) and "text" in p)
    return content if isinstance(content, str) else "" if content is None else _json(content)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
