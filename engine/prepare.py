"""From a request to what the serving thread needs for it: tokens, and what its answer must be."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.errors import BadRequest, ContextOverflow, EngineError, NoModel, as_engine_error
from engine.grammar import (
    LEAD,
    FromOpener,
    Grammar,
    Grammars,
    Whole,
    Without,
    form_grammar,
    whole_form,
    with_space,
)
from engine.loading import LoadedModel, check_ids
from engine.output import OutputParser
from engine.reasoning import MARKS, Marks, known_to, opened_by
from engine.steering import Constraint, Steering
from engine.tokenizer import Tokenizer
from engine.toolcalls.calls import declared, of_type
from engine.toolcalls.grammars import CallGrammar, Style, opener_of, style_of
from engine.toolcalls.marks import markers
from engine.types import Format, Request

log = logging.getLogger(__name__)

MAX_LOGPROBS = 100

_PROMPT_END = 16
_MODES = ("auto", "required", "none")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request ready to be begun; `prompt_end` is the last of its prompt's text.

    `parser` is there for chats; `shown` are the control tokens that belong to its text.
    """

    ids: list[int]
    prompt_end: str
    parser: OutputParser | None = None
    steering: Steering | None = None
    shown: frozenset[int] = frozenset()


def prepare(model: LoadedModel, request: Request) -> Prepared:
    """Render, encode and check a request; raises `BadRequest` or `TemplateError`."""
    _check(request)
    tokenizer = model.tokenizer
    _check_size(request, tokenizer, model.plan.max_ctx)
    if request.messages is None:
        ids = list(request.ids or ())
        if request.text is not None:
            ids = tokenizer.encode(request.text)
        check_ids(ids, model.info.vocab_size)
        end = tokenizer.decode(ids[-_PROMPT_END:], special=True)
        steering = None
        if request.format is not None:
            whole = Whole(model.grammars.follow(whole_form(model.grammars, request.format, False)))
            detokenizer = tokenizer.detokenizer(at_start=False)
            steering = Steering(tokenizer.vocab_size, detokenizer, _Text(), whole)
        return Prepared(ids, end, steering=steering)
    kwargs = {**request.thinking.template_kwargs, **request.template_kwargs}
    ids = model.template.encode(request.messages, request.tools, True, **kwargs)
    check_ids(ids, model.info.vocab_size)
    end = tokenizer.decode(ids[-_PROMPT_END:], special=True)
    opened = opened_by(end)
    may_call = _callable(request)
    parser = OutputParser(opened, may_call, request.parallel_tool_calls)
    shown = frozenset(t for t in map(tokenizer.marker_id, _markers()) if t is not None)
    steering = _steering(model, request, may_call, opened, end, len(ids), shown)
    return Prepared(ids, end, parser, steering, shown)


def prepared(model: LoadedModel | None, request: Request) -> Prepared | EngineError:
    """What is needed to begin a request, or why there is none."""
    try:
        if model is None:
            raise NoModel("No model is loaded. Load one first.")
        return prepare(model, request)
    except Exception as error:
        if not isinstance(error, EngineError):
            log.exception("A request could not be prepared")
        return as_engine_error(error)


class _Text(OutputParser):
    """Text outside a chat has no marks."""

    def push(self, text: str) -> list[Any]:
        """No pieces: nobody asks for them."""
        return []


def _markers() -> list[str]:
    return [*markers(), *(m.close for m in MARKS), *(m.open.removesuffix("thought") for m in MARKS)]


def _check(request: Request) -> None:
    given = [x for x in (request.messages, request.text, request.ids) if x is not None]
    if len(given) != 1:
        raise BadRequest(
            f"A request needs one of messages, text and ids; found {len(given)} of them."
        )
    if request.logprobs is not None and not 0 <= request.logprobs <= MAX_LOGPROBS:
        raise BadRequest(
            f"Log-probabilities of {request.logprobs} tokens, expected 0 to {MAX_LOGPROBS}."
        )
    choice = request.tool_choice
    if choice.mode not in _MODES:
        raise BadRequest(f"The tool choice is {choice.mode!r}, expected {', '.join(_MODES)}.")
    known = declared(request.tools or ())
    for name in choice.names or ():
        if name not in known:
            raise BadRequest(
                f"The tool choice names {name!r}, expected one of the tools: {', '.join(known) or 'none'}."
            )
    if choice.mode == "required" and not known:
        raise BadRequest("A tool call is required, but the request has no tools.")
    forced = request.format is not None or choice.mode == "required"
    if forced and request.sampling.ignore_eos:
        raise BadRequest("An answer in a given form has an end; leave ignore_eos out.")


def _check_size(request: Request, tokenizer: Tokenizer, max_ctx: int) -> None:
    """Refuse what cannot fit before it is encoded: that takes minutes and gigabytes of a giant."""
    texts: list[Any] = [request.text or ""]
    for message in request.messages or ():
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content}]
        texts += (part.get("text") for part in parts if isinstance(part, Mapping))
    size = sum(len(text) for text in texts if isinstance(text, str))
    if (least := -(-size // tokenizer.longest)) >= max_ctx:
        raise ContextOverflow(
            f"The prompt has at least {least:,} tokens and the context holds {max_ctx:,}, answer included."
            " Shorten the conversation or load the model with a larger context.",
            least,
            max_ctx,
        )


def _callable(request: Request) -> list[Mapping[str, Any]]:
    """The tools that may be called."""
    if request.tool_choice.mode == "none":
        return []
    names = request.tool_choice.names
    known = (t for t in request.tools or () if isinstance(t, Mapping))
    return [t for t in known if names is None or set(declared([t])) & set(names)]


def _steering(
    model: LoadedModel, request: Request, tools: list[Mapping[str, Any]], opened: Marks | None,
    end: str, n_prompt: int, shown: frozenset[int],
) -> Steering | None:  # fmt: skip
    tokenizer = model.tokenizer
    room = model.plan.max_ctx - n_prompt
    if request.sampling.max_tokens is not None:
        room = min(room, request.sampling.max_tokens)
    until = model.info.thinking.think_until(request.thinking, room)
    marks = opened or known_to(model.template.text)
    may_think = marks is not None and not any(end.rstrip().endswith(m.close) for m in MARKS)
    constraint = _constraint(model, request, tools, may_think)
    if constraint is None and (until is None or not may_think):
        return None
    closing: list[int] = []
    opening: list[int] = []
    if marks is not None and may_think:
        hint = model.info.thinking.terminator
        text = hint if marks.close in hint else marks.close
        closing = tokenizer.encode(text, special=True, add_bos=False)
        if opened is None:
            found = tokenizer.encode(marks.open, special=True, add_bos=False)
            # Where it is no token of its own, its beginning could begin anything.
            if tokenizer.marker_id(tokenizer.token_text(found[0])) is not None:
                opening = found
    return Steering(
        tokenizer.vocab_size, tokenizer.detokenizer(shown=shown), OutputParser(opened), constraint,
        until if closing else None, closing, opening,
    )  # fmt: skip


def _constraint(
    model: LoadedModel, request: Request, tools: list[Mapping[str, Any]], may_think: bool
) -> Constraint | None:
    grammars, choice = model.grammars, request.tool_choice
    form = request.format
    style = style_of(model.template.text)
    if form is not None:
        grammar = whole_form(grammars, form, may_think)
        if tools and choice.mode == "auto":
            calls = call_grammar(grammars, style, tools, request.parallel_tool_calls, model, form)
            grammar = calls or grammar
        elif tools:
            grammar = _needed(grammars, style, tools, request.parallel_tool_calls, model)
        return Whole(grammars.follow(grammar))
    if choice.mode == "required":
        return Whole(
            grammars.follow(_needed(grammars, style, tools, request.parallel_tool_calls, model))
        )
    opener = opener_of(style)
    if choice.mode == "none" and request.tools and opener:
        banned = opener_tokens(model.tokenizer, opener)
        return Without(model.tokenizer.vocab_size, banned) if banned else None
    if not tools or not opener:
        return None
    grammar_ = call_grammar(grammars, style, tools, True, model, behind_opener=True)
    if grammar_ is None:
        return None
    return FromOpener(
        grammars.follow(grammar_), opener, request.parallel_tool_calls, model.tokenizer.eos_ids
    )


def _needed(
    grammars: Grammars, style: Style, tools: list[Mapping[str, Any]], parallel: bool, model: LoadedModel
) -> Grammar:  # fmt: skip
    grammar = call_grammar(grammars, style, tools, parallel, model)
    if grammar is None:
        raise BadRequest(
            "The tools cannot be made into a grammar, so that a call cannot be required: their schemas"
            " are too large. Offer fewer tools, or leave the choice to the model."
        )
    return grammar


def call_grammar(
    grammars: Grammars,
    style: Style,
    tools: list[Mapping[str, Any]],
    parallel: bool,
    model: LoadedModel,
    form: Format | None = None,
    behind_opener: bool = False,
) -> Grammar | None:
    """A checked grammar of calls, or of an answer in `form` instead; None where there can be none.

    What a schema of a tool asks beyond what can be followed is not looked at, and in a part that is wrong
    nothing but its type; none is where all together are too large. `BadRequest` for a tool that is strict.
    """
    known = declared(tools)
    for schemas, careful in ((known, True), (known, False), ({name: {} for name in known}, False)):
        parts: list[dict[str, Any]] = []

        def keep(schema: Any, careful: bool = careful, parts: list[Any] = parts) -> str:
            name = f"json_{len(parts)}"
            plain = schema if careful else _followed(grammars, schema)
            parts.append({"name": name, "json_schema": with_space(plain, lenient=True)})
            return name

        calls = CallGrammar(
            style, schemas, grammars.tokenizer, "```json" in model.template.text, parallel, keep
        )
        start = calls.start if behind_opener else calls.whole
        if form is not None:
            start = f"({start} | @form)"
            parts.append(form_grammar(form))
        if not behind_opener:
            start = f"{LEAD} {start}"
        grammar = [{"name": "answer", "lark_grammar": calls.lark(start)}, *parts]
        if not grammars.check(grammar):
            return grammar
        _check_strict(grammars, tools)
    return None


def _followed(grammars: Grammars, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """A schema as far as it can be followed: of properties that are wrong only their types are left."""
    if not grammars.check_part(schema):
        return schema
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
        kept = {
            key: part if not grammars.check_part({**part, **shared}) else of_type(part)
            for key, part in properties.items()
            if isinstance(part, Mapping)
        }
        if not grammars.check_part(looser := {**schema, "properties": kept}):
            return looser
    return of_type(schema)


def _check_strict(grammars: Grammars, tools: list[Mapping[str, Any]]) -> None:
    for tool in tools:
        inner = tool.get("function", tool)
        schema = inner.get("parameters")
        wrong = grammars.check_part(schema) if isinstance(schema, Mapping) else ""
        if wrong and inner.get("strict"):
            raise BadRequest(
                f"The tool {inner.get('name')!r} is strict, but its schema cannot be followed:"
                f" {wrong[:300]}. Change the schema, or leave strict out."
            )


def opener_tokens(tokenizer: Tokenizer, opener: str) -> frozenset[int]:
    """The tokens of an opener that stand for nothing else."""
    whole = tokenizer.marker_id(opener)
    if whole is not None:
        return frozenset({whole})
    inside = tokenizer.marker_id(opener.strip("<>").removesuffix("tool_calls"))
    return frozenset({inside} if inside is not None else ())
