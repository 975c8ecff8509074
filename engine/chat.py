"""Chat messages to prompts, through the template that a model file carries."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from types import CodeType
from typing import Any

from jinja2 import TemplateSyntaxError, nodes
from jinja2.exceptions import SecurityError

from engine.errors import BadRequest, TemplateError
from engine.sandbox import Allowance, LimitReached, Refused, TemplateEnvironment
from engine.tokenizer import Tokenizer
from engine.toolcalls.plain import in_plain_text, knows_tools

_KEY = "tokenizer.chat_template"
_TOOL_USE = "tool_use"
_SPECIAL = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}

_CHATML = (
    "{% for message in messages %}"
    "<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_PLAIN = (
    "{% for message in messages %}{{ message.role | capitalize }}: {{ message.content }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}Assistant:{% endif %}"
)

# What any template may do, and what it may do more for each message and each character in them: some
# gather their text anew with every message.
_ROUNDS, _ROUNDS_PER_MESSAGE = 500_000, 10_000
_SIZE, _SIZE_PER_CHARACTER = 32_000_000, 16
_SECONDS, _SECONDS_PER_MESSAGE = 10.0, 0.02
_MAX_SOURCE = 1_000_000

# Templates differ in what they call the thinking of earlier turns.
_THOUGHTS = ("reasoning_content", "reasoning")

_ANOTHER = "Use another template (--chat-template-file, or Settings)."

Message = Mapping[str, Any]


class ChatTemplate:
    """One model's way to write a chat; may be shared by threads."""

    def __init__(
        self,
        sources: Mapping[str, str],
        tokenizer: Tokenizer,
        special: Mapping[str, str] | None = None,
        exists: bool = True,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`sources` by name: "default", and "tool_use" for requests with tools; `special` token texts.

        `exists` is False for a template that the file does not carry. A template that cannot be compiled
        is told by `problem`, and by every render. `text` is all of the sources.
        """
        self.exists = exists
        self.text = "\n".join(sources.values())
        self._tokenizer = tokenizer
        self._special = dict(special or {})
        self._now = now
        self._templates = {name: _Template(source) for name, source in sources.items()}
        self.problem = next((t.problem for t in self._templates.values() if t.problem), None)

    @classmethod
    def from_gguf(
        cls,
        meta: Mapping[str, Any],
        tokenizer: Tokenizer,
        override: str | None = None,
        now: Callable[[], datetime] = datetime.now,
    ) -> ChatTemplate:
        """The file's template, or `override` in its place, or a common one where there is neither."""
        special = {}
        for name, key in _SPECIAL.items():
            token = meta.get(f"tokenizer.ggml.{key}_token_id")
            if isinstance(token, int) and 0 <= token < tokenizer.vocab_size:
                special[name] = tokenizer.token_text(token)
        sources = _sources(meta)
        if override is not None:
            return cls({"default": override}, tokenizer, special, now=now)
        if sources:
            return cls(sources, tokenizer, special, now=now)
        chatml = all(
            tokenizer.marker_id(marker) is not None for marker in ("<|im_start|>", "<|im_end|>")
        )
        default = _CHATML if chatml else _PLAIN
        return cls({"default": default}, tokenizer, special, exists=False, now=now)

    def render(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **kwargs: Any,
    ) -> str:
        """The prompt as text; `kwargs` are the template's own settings, such as `enable_thinking`.

        A template that knows no tools gets them, and what came of them, in plain text.

        `BadRequest` for malformed messages, `TemplateError` if the template refuses them or fails.
        """
        template = self._choose(tools)
        plain = _plain_messages(messages, template.typed)
        if not template.knows_tools:
            plain, tools = in_plain_text(plain, tools), None
        return self._run(template, plain, tools, add_generation_prompt, kwargs)

    def encode(
        self,
        messages: Sequence[Message],
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = True,
        **kwargs: Any,
    ) -> list[int]:
        """The prompt as token ids, with the BOS token once if the model wants it; errors as in `render`.

        The template's markers become control tokens; the same text in messages, tools and `kwargs`
        stays text.
        """
        template = self._choose(tools)
        plain = _plain_messages(messages, template.typed)
        if not template.knows_tools:
            plain, tools = in_plain_text(plain, tools), None
        keep = frozenset(t for t in template.searched if self._is_harmless(t))
        try:
            shield, escaped = _unused_character([plain, tools, kwargs], template.escapes)

            def guard(text: str, keep: frozenset[str] = frozenset()) -> str:
                return self._tokenizer.control_markers.break_up(text, shield, keep)

            # A template looks for markers such as </think> in the model's own earlier answers.
            own = functools.partial(guard, keep=keep)
            guarded = [_map_text(m, own if m["role"] == "assistant" else guard) for m in plain]
            tools, kwargs = _map_text(tools, guard), _map_text(kwargs, guard)
        except RecursionError as error:
            raise BadRequest(
                "The messages or tools are nested too deeply; flatten them."
            ) from error
        text = self._run(template, guarded, tools, add_generation_prompt, kwargs)
        if escaped:
            text = text.replace(escaped, shield)
        ids = self._tokenizer.encode(text, special=True, shield=shield)
        while len(ids) > 1 and ids[0] == ids[1] == self._tokenizer.bos_id:
            del ids[0]
        return ids

    def _choose(self, tools: Sequence[Mapping[str, Any]] | None) -> _Template:
        named = self._templates.get(_TOOL_USE) if tools else None
        return named or self._templates["default"]

    def _is_harmless(self, text: str) -> bool:
        token = self._tokenizer.marker_id(text)
        return token is not None and token not in self._tokenizer.eos_ids

    def _run(
        self, template: _Template, messages: list[dict[str, Any]], tools: Any, prompt: bool,
        kwargs: Mapping[str, Any],
    ) -> str:  # fmt: skip
        variables = {
            "documents": None, **self._special, **kwargs, "tools": tools or None,
            "add_generation_prompt": prompt,
        }  # fmt: skip
        failure: Exception | None = None
        for form in _forms(messages):
            try:
                return template.render({**variables, "messages": form}, self._now)
            except (LimitReached, Refused, SecurityError, TemplateError) as error:
                raise _told(failure or error) from error
            except Exception as error:
                failure = failure or error
        assert failure is not None
        raise _told(failure) from failure


class _Template:
    """One compiled source, and what it does with messages."""

    def __init__(self, source: str) -> None:
        self.problem: str | None = None
        self.typed = False
        self.knows_tools = knows_tools(source)
        self.escapes = "ensure_ascii" in source
        self.searched: frozenset[str] = frozenset()
        self._code: CodeType | None = None
        self._environment = TemplateEnvironment(Allowance(_ROUNDS, _SIZE), datetime.now)
        if len(source) > _MAX_SOURCE:
            self.problem = f"it has {len(source):,} characters, expected at most {_MAX_SOURCE:,}"
            return
        try:
            tree = self._environment.parse(source)
            self.typed = _reads_text_parts(tree)
            self.searched = frozenset(_searched(tree))
            self._code = self._environment.compile_template(source)
        except TemplateSyntaxError as error:
            self.problem = f"line {error.lineno}: {error.message}"
        except (Exception, MemoryError) as error:
            self.problem = f"{type(error).__name__}: {error}"

    def render(self, variables: dict[str, Any], now: Callable[[], datetime]) -> str:
        """The text; raises whatever the template raises."""
        if self._code is None:
            raise TemplateError(f"The chat template is not valid: {self.problem}. {_ANOTHER}")
        n_messages = len(variables["messages"])
        size = Allowance(0, 10**9).weigh([v for v in variables.values() if v is not None])
        allowance = Allowance(
            _ROUNDS + _ROUNDS_PER_MESSAGE * n_messages,
            _SIZE + size * (_SIZE_PER_CHARACTER + 2 * n_messages),
            _SECONDS + _SECONDS_PER_MESSAGE * n_messages,
        )
        return self._environment.again(allowance, now).run(self._code, variables)


def _told(error: Exception) -> TemplateError:
    if isinstance(error, TemplateError):
        return error
    if isinstance(error, Refused):
        return TemplateError(f"The chat template refused the messages: {error}")
    if isinstance(error, LimitReached):
        return TemplateError(f"The chat template was stopped because {error}. {_ANOTHER}")
    if isinstance(error, SecurityError):
        return TemplateError(f"The chat template tried what is not allowed: {error} {_ANOTHER}")
    return TemplateError(f"The chat template failed: {type(error).__name__}: {error}. {_ANOTHER}")


def _sources(meta: Mapping[str, Any]) -> dict[str, str]:
    """The file's templates by name, if there is one to use by default."""
    names = meta.get(f"{_KEY}s")
    found = {
        name: meta[f"{_KEY}.{name}"]
        for name in (names if isinstance(names, list) else ())
        if isinstance(meta.get(f"{_KEY}.{name}"), str)
    }
    if isinstance(meta.get(_KEY), str):
        found["default"] = meta[_KEY]
    if found and "default" not in found:
        found["default"] = next(iter(found.values()))
    return {name: found[name] for name in ("default", _TOOL_USE) if name in found}


def _plain_messages(messages: Sequence[Message], typed: bool) -> list[dict[str, Any]]:
    """`messages` as templates expect them; lists of text parts become text unless they are `typed`."""
    if not messages:
        raise BadRequest("The chat has no messages, expected at least one.")
    plain = []
    names: dict[Any, Any] = {}
    for n, message in enumerate(messages, 1):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise BadRequest(f"Message {n} is {str(message)[:60]!r}, expected one with a role.")
        message = dict(message)
        if isinstance(message.get("content"), list) and not typed:
            message["content"] = _joined_parts(message["content"], n)
        if message.get("tool_calls"):
            message["tool_calls"] = [_call_with_mapping(c, n) for c in message["tool_calls"]]
            if isinstance(message.get("content"), str):
                # Templates put white space of their own ahead of calls.
                message["content"] = message["content"].rstrip()
            names |= {c.get("id"): c.get("function", c).get("name") for c in message["tool_calls"]}
        if message["role"] == "tool" and "name" not in message:
            name = names.get(message.get("tool_call_id"))
            message |= {"name": name} if isinstance(name, str) else {}
        for key, other in (_THOUGHTS, _THOUGHTS[::-1]):
            if isinstance(message.get(key), str):
                message.setdefault(other, message[key])
        plain.append(message)
    return plain


def _joined_parts(parts: Sequence[Any], n: int) -> str:
    texts = []
    for part in parts:
        if not isinstance(part, Mapping) or not isinstance(part.get("text"), str):
            kind = part.get("type", "unknown") if isinstance(part, Mapping) else type(part).__name__
            raise BadRequest(
                f"Message {n} holds a part of type {kind!r}, but this model reads text only. Remove it, "
                "or use a model that can read it."
            )
        texts.append(part["text"])
    return "\n".join(texts)


def _call_with_mapping(call: Any, n: int) -> Any:
    """A tool call whose arguments are a mapping, which clients send as JSON text."""
    if not isinstance(call, Mapping):
        raise BadRequest(f"Message {n} holds a tool call {str(call)[:60]!r}, expected an object.")
    if isinstance(call.get("function"), Mapping):
        return {**call, "function": _call_with_mapping(call["function"], n)}
    arguments = call.get("arguments")
    if not isinstance(arguments, str):
        return dict(call)
    try:
        parsed = json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise BadRequest(
            f"Message {n} calls the tool {call.get('name')!r} with arguments {arguments[:80]!r}, expected "
            "a JSON object."
        )
    return {**call, "arguments": parsed}


def _forms(messages: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """`messages` in the forms that templates take: as they are, without None, with arguments as text."""
    yield messages
    if any(message.get("content") is None for message in messages):
        messages = [{**m, "content": ""} if m.get("content") is None else m for m in messages]
        yield messages
    if any(message.get("tool_calls") for message in messages):
        yield [_with_arguments_as_text(message) for message in messages]


def _with_arguments_as_text(message: dict[str, Any]) -> dict[str, Any]:
    def as_text(call: Any) -> Any:
        if isinstance(call.get("function"), Mapping):
            return {**call, "function": as_text(call["function"])}
        if isinstance(call.get("arguments"), Mapping):
            return {**call, "arguments": json.dumps(call["arguments"], ensure_ascii=False)}
        return call

    calls = message.get("tool_calls")
    return {**message, "tool_calls": [as_text(c) for c in calls]} if calls else message


def _map_text(value: Any, change: Callable[[str], str]) -> Any:
    """`value` with `change` made to each text in it, keys of mappings too."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict | Mapping):
        return {_map_text(k, change): _map_text(v, change) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_map_text(v, change) for v in value]
    return value


def _texts(value: Any) -> list[str]:
    """All texts in `value`, keys of mappings too, in any order."""
    found: list[str] = []
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            found.append(item)
        elif isinstance(item, dict | Mapping):  # asking for dict alone is faster
            rest += item
            rest += item.values()
        elif isinstance(item, list | tuple):
            rest += item
    return found


def _unused_character(values: Sequence[Any], escapes: bool) -> tuple[str, str]:
    """A private-use character that is in none of the texts, and how JSON escapes it ("" if not needed)."""
    texts = _texts(values)
    used: set[str] = set().union(*(text for text in texts if not text.isascii()))
    for code in itertools.chain(range(0xE000, 0xF900), range(0xF0000, 0xFFFFE)):
        escaped = json.dumps(chr(code))[1:-1] if escapes else ""
        if chr(code) not in used and not (escapes and any(escaped in text for text in texts)):
            return chr(code), escaped
    raise BadRequest("The messages use every private-use character of Unicode; remove some.")


def _reads_text_parts(tree: nodes.Template) -> bool:
    """Whether a template knows content as a list of parts."""
    return any(c.value == "text" for c in tree.find_all(nodes.Const)) or any(
        g.attr == "text" for g in tree.find_all(nodes.Getattr)
    )


def _searched(tree: nodes.Template) -> Iterator[str]:
    """Texts that a template compares with, or hands to methods and filters of text."""
    for compare in tree.find_all(nodes.Compare):
        yield from _constants([compare.expr, *(operand.expr for operand in compare.ops)])
    for call in tree.find_all(nodes.Call):
        yield from _constants(call.args)
    for used in tree.find_all(nodes.Filter):
        yield from _constants(used.args)


def _constants(parts: Sequence[nodes.Node]) -> Iterator[str]:
    for part in parts:
        if isinstance(part, nodes.Const) and isinstance(part.value, str):
            yield part.value
