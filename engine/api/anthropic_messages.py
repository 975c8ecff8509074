"""Messages and tools of Anthropic's dialect, in OpenAI's chat form, which templates read.

Format: https://docs.anthropic.com/en/api/messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from engine.api.errors import refused
from engine.api.messages import Function, Tool, plain_tools
from engine.api.schemas import Body, Many
from engine.types import ToolChoice

BILLING = "x-anthropic-billing-header:"
"""Claude Code writes such a text into its system prompt, another one in every request."""


class CacheControl(Body):
    """Where a client wants a prefix kept; every prefix is kept here, so there is nothing to do."""

    type: Literal["ephemeral"] = "ephemeral"
    ttl: str | None = None
    scope: str | None = None


class TextBlock(Body):
    """A text."""

    type: Literal["text"]
    text: str
    citations: list[dict[str, Any]] | None = Field(None, max_length=0)
    cache_control: CacheControl | None = None


class ImageBlock(Body):
    """An image; refused."""

    type: Literal["image"]
    source: dict[str, Any] | None = None
    cache_control: CacheControl | None = None


class DocumentBlock(Body):
    """A document; only one that is plain text can be read."""

    type: Literal["document"]
    source: dict[str, Any]
    title: str | None = None
    context: str | None = None
    citations: dict[str, Any] | None = None
    cache_control: CacheControl | None = None


class ToolUseBlock(Body):
    """A call of the assistant."""

    type: Literal["tool_use"]
    id: str
    name: str
    input: dict[str, Any] = Field(default_factory=dict)
    caller: dict[str, Any] | None = None
    cache_control: CacheControl | None = None


class ToolResultBlock(Body):
    """What a call gave."""

    type: Literal["tool_result"]
    tool_use_id: str
    content: (
        str | list[Annotated[TextBlock | ImageBlock | DocumentBlock, Field(discriminator="type")]]
    ) = ""
    is_error: bool | None = None
    cache_control: CacheControl | None = None


class ThinkingBlock(Body):
    """Thinking of the assistant; the signature is ours and says nothing."""

    type: Literal["thinking"]
    thinking: str
    signature: str | None = None


class RedactedBlock(Body):
    """Thinking of another server that only it can read."""

    type: Literal["redacted_thinking"]
    data: str


Block = Annotated[
    TextBlock
    | ImageBlock
    | DocumentBlock
    | ToolUseBlock
    | ToolResultBlock
    | ThinkingBlock
    | RedactedBlock,
    Field(discriminator="type"),
]


class Message(Body):
    """One message."""

    role: Literal["user", "assistant", "system"]
    content: str | Many[Block]


class AnthropicTool(Body):
    """A tool of the client; tools that Anthropic's own servers run have other types."""

    type: str = "custom"
    name: str = Field(pattern=r"^[A-Za-z0-9_.:/-]{1,128}$")
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    strict: bool | None = None
    eager_input_streaming: bool | None = None
    input_examples: list[dict[str, Any]] | None = None
    defer_loading: Literal[False] | None = None
    allowed_callers: list[str] | None = None
    cache_control: CacheControl | None = None


class AnthropicChoice(Body):
    """Which tools may be called."""

    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


def chat_messages(
    system: str | Sequence[TextBlock] | None,
    messages: Sequence[Message],
    thoughts: int | None = None,
) -> list[dict[str, Any]]:
    """The conversation in OpenAI's form; of only the last `thoughts` answers that think, with thinking."""
    if messages[-1].role == "assistant":
        raise refused(
            f"messages.{len(messages) - 1}",
            "the last message must be the user's; an answer cannot be begun",
        )
    texts = [system] if isinstance(system, str) else [block.text for block in system or ()]
    chat: list[dict[str, Any]] = []
    lead = [text for text in map(_without_billing, texts) if text]
    for n, message in enumerate(messages):
        if message.role == "system" and not chat:
            lead += [text for text in map(_without_billing, _texts(message, n)) if text]
        elif message.role == "system":
            chat.append({"role": "system", "content": "\n\n".join(_texts(message, n))})
        elif message.role == "assistant":
            chat.append(_assistant(message, n))
        else:
            chat += _user(message, n)
    if thoughts is not None:
        thinking = [m for m in chat if "reasoning_content" in m]
        for message_ in thinking[: len(thinking) - thoughts]:
            del message_["reasoning_content"]
    return [{"role": "system", "content": "\n\n".join(lead)}, *chat] if lead else chat


def chat_tools(given: Sequence[AnthropicTool] | None) -> list[dict[str, Any]]:
    """Tools in OpenAI's form; `ApiError` for those that need Anthropic's servers."""
    tools = []
    for n, tool in enumerate(given or ()):
        if tool.type != "custom" or tool.input_schema is None:
            raise refused(
                f"tools.{n}",
                f"{tool.name!r} of the type {tool.type[:60]!r} runs on Anthropic's servers or has no"
                " input_schema; only custom tools with a schema can be called here",
            )
        function = Function(
            name=tool.name,
            description=tool.description,
            parameters=tool.input_schema,
            strict=tool.strict,
        )
        tools.append(Tool(type="function", function=function))
    return plain_tools(tools)


def chat_choice(
    given: AnthropicChoice | None, tools: Sequence[dict[str, Any]]
) -> tuple[ToolChoice, bool]:
    """Which tools may be called, and whether several at once."""
    if given is None:
        return ToolChoice(), True
    names = {tool["function"]["name"] for tool in tools}
    if given.type == "tool" and given.name not in names:
        raise refused("tool_choice.name", f"no tool is called {str(given.name)[:100]!r}")
    if given.type == "any" and not tools:
        raise refused("tool_choice", "any, but there are no tools")
    mode = "required" if given.type in ("any", "tool") else given.type
    chosen = (str(given.name),) if given.type == "tool" else None
    return ToolChoice(mode, chosen), given.disable_parallel_tool_use is not True


def _assistant(message: Message, n: int) -> dict[str, Any]:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    blocks = message.content
    for i, block in enumerate([] if isinstance(blocks, str) else blocks):
        match block:
            case TextBlock():
                texts.append(block.text)
            case ThinkingBlock():
                thoughts.append(block.thinking)
            case RedactedBlock():
                pass  # nobody here could read it, and it was never written here
            case ToolUseBlock():
                function = {"name": block.name, "arguments": block.input}
                calls.append({"id": block.id, "type": "function", "function": function})
            case _:
                raise _misplaced(n, i, block.type, "assistant")
    found: dict[str, Any] = {
        "role": "assistant",
        "content": blocks if isinstance(blocks, str) else "".join(texts),
    }
    if reasoning := "\n".join(filter(None, thoughts)):
        found["reasoning_content"] = reasoning
    if calls:
        found["tool_calls"] = calls
    return found


def _user(message: Message, n: int) -> Iterator[dict[str, Any]]:
    """A user's message: results are messages of their own, texts between them are the user's."""
    if isinstance(message.content, str):
        yield {"role": "user", "content": message.content}
        return
    texts: list[str] = []
    for i, block in enumerate(message.content):
        where = f"messages.{n}.content.{i}"
        match block:
            case TextBlock() | ImageBlock() | DocumentBlock():
                texts.append(_text(block, where))
            case ToolResultBlock():
                if texts:
                    yield _said(texts)
                    texts = []
                content = block.content
                if not isinstance(content, str):
                    content = "\n".join(
                        _text(part, f"{where}.content.{j}") for j, part in enumerate(content)
                    )
                if block.is_error and not content:
                    content = "Error"
                yield {"role": "tool", "tool_call_id": block.tool_use_id, "content": content}
            case _:
                raise _misplaced(n, i, block.type, "user")
    if texts or not message.content:
        yield _said(texts)


def _said(texts: Sequence[str]) -> dict[str, Any]:
    if len(texts) == 1:
        return {"role": "user", "content": texts[0]}
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def _texts(message: Message, n: int) -> list[str]:
    if isinstance(message.content, str):
        return [message.content]
    return [_text(block, f"messages.{n}.content.{i}") for i, block in enumerate(message.content)]


def _text(block: Any, where: str) -> str:
    match block:
        case TextBlock():
            return block.text
        case DocumentBlock(source={"type": "text", "data": str(text)}):
            head = [part for part in (block.title, block.context) if part]
            return "\n\n".join([*head, text])
        case DocumentBlock():
            raise refused(f"{where}.source", "only documents of the type text can be read")
        case ImageBlock():
            raise refused(where, "this model reads no images, only text")
    raise refused(where, f"a block of the type {block.type!r} cannot stand here")


def _misplaced(n: int, i: int, kind: str, role: str) -> Exception:
    return refused(
        f"messages.{n}.content.{i}",
        f"a block of the type {kind!r} cannot stand in a message of the {role}",
    )


def _without_billing(text: str) -> str:
    """The text without Claude Code's billing line, which would make every prompt's beginning another."""
    if BILLING not in text:
        return text
    return "\n".join(line for line in text.split("\n") if not line.startswith(BILLING))
