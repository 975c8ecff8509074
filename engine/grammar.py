"""Answers held to a form: JSON by a schema, a regular expression, a Lark grammar, well-made tool calls.

llguidance tells for each step which tokens may come next. Its work on a form and on each step is limited, so
that a hostile form costs its sender an error and nobody else their time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from engine.errors import BadRequest
from engine.steering import NEVER, Mask, only
from engine.tokenizer import Tokenizer
from engine.types import Format

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

KINDS = ("json_object", "json_schema", "regex", "lark")
MAX_SOURCE = 200_000
"""Most characters of a schema, an expression or a grammar."""

MAX_DEPTH = 100
"""How deep a schema may be nested."""

_SPACE = r"(\x20|\n[\x20\t]{0,40})?"  # a small model may else write spaces for ever
LEAD = r"/[\x20\n]{0,4}/"
"""White space that may come ahead of a form, as models write it behind thinking."""

_PLACES = 400
_KEPT = 16
_KEPT_PARTS = 1000
_LIMITS: dict[str, Any] = {
    "initial_lexer_fuel": 2_000_000,
    "step_lexer_fuel": 400_000,
    "step_max_items": 50_000,
    "max_lexer_states": 100_000,
    "max_grammar_size": 300_000,
}

# Of the eight tokens of each byte; ten times as fast as choosing among logits by single bits.
_BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little")
_MASK_OF = np.where(_BITS, np.float32(0), NEVER)

Grammar = list[dict[str, Any]]
"""Grammars as llguidance takes them: the first is the whole, and names the others with @."""


class Grammars:
    """A model's vocabulary as grammars see it; built when first needed or by `build`, may be shared by
    threads.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._lock = threading.Lock()
        self._tokens: LLTokenizer | None = None
        self._made: dict[str, LLMatcher] = {}
        self._parts: dict[str, str] = {}
        self._workers = ThreadPoolExecutor(2, thread_name_prefix="grammar")

    def build(self) -> None:
        """Read the vocabulary now and not with the first form that is asked for.

        llguidance holds Python's lock for that, 0.8 s for 248,000 tokens, and all other answers wait.
        """
        self._vocabulary()

    def check(self, grammar: Grammar) -> str:
        """What is wrong with a grammar; empty if nothing is."""
        matcher = self._matcher(grammar)
        return _wrong(matcher)

    def check_part(self, schema: Mapping[str, Any]) -> str:
        """What is wrong with a schema of a tool by itself; empty if nothing is."""
        text = json.dumps(schema, ensure_ascii=False)
        with self._lock:
            found = self._parts.get(text)
        if found is None:
            part = {"name": "part", "json_schema": with_space(schema, lenient=True)}
            found = _wrong(self._make([{"name": "answer", "lark_grammar": "start: @part"}, part]))
        with self._lock:
            if len(self._parts) >= _KEPT_PARTS:
                self._parts.clear()
            self._parts[text] = found
        return found

    def follow(self, grammar: Grammar) -> Follower:
        """A follower of a sound grammar, at its beginning."""
        matcher = self._matcher(grammar).deep_copy()
        return Follower(matcher, self.tokenizer.vocab_size, self._workers)

    def _matcher(self, grammar: Grammar) -> LLMatcher:
        """At its beginning, and to be copied; agents send the same tools with every turn."""
        text = json.dumps(grammar, ensure_ascii=False)
        with self._lock:
            found = self._made.pop(text, None)
        if found is None:
            found = self._make(grammar)
        with self._lock:
            self._made[text] = found
            while len(self._made) > _KEPT:
                self._made.pop(next(iter(self._made)))
        return found

    def _make(self, grammar: Grammar) -> LLMatcher:
        from llguidance import LLMatcher, LLParserLimits

        text = json.dumps({"grammars": grammar}, ensure_ascii=False)
        limits = LLParserLimits(**_LIMITS, verbose_errors=False)
        return LLMatcher(self._vocabulary(), text, log_level=0, limits=limits)

    def close(self) -> None:
        """Let its threads end."""
        self._workers.shutdown(wait=False)

    def _vocabulary(self) -> LLTokenizer:
        from llguidance import LLTokenizer

        with self._lock:
            if self._tokens is None:
                self._tokens = LLTokenizer(
                    _Wrapper(self.tokenizer),  # type: ignore[arg-type]
                    n_vocab=self.tokenizer.vocab_size,
                    eos_token=sorted(self.tokenizer.eos_ids),
                    # Its "slices" double the time in which it holds Python's lock, and speed up little.
                    slices=[],
                )
            return self._tokens


class _Wrapper:
    """What llguidance asks of a tokenizer."""

    is_tokenizer_wrapper = True

    def __init__(self, tokenizer: Tokenizer) -> None:
        ids = range(tokenizer.vocab_size)
        self._tokenizer = tokenizer
        self.eos_token_id = min(tokenizer.eos_ids, default=0)
        self.bos_token_id = tokenizer.bos_id
        self.tokens = [tokenizer.token_bytes(i) for i in ids]
        self.special_token_ids = [
            i for i in ids if tokenizer.is_control(i) or i in tokenizer.eos_ids
        ]

    def __call__(self, text: bytes | str) -> list[int]:
        plain = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        return self._tokenizer.encode(plain, add_bos=False)


class Follower:
    """A place in a grammar. The tokens that may come next are found on another thread, while the model
    computes: the library does not hold Python's lock for that."""

    def __init__(self, matcher: LLMatcher, vocab_size: int, workers: ThreadPoolExecutor) -> None:
        self._matcher = matcher
        self.vocab_size = vocab_size
        self._workers = workers
        self._bits = np.zeros(-(-vocab_size // 32), np.int32)
        self._found: Future[None] | None = None
        self.look()

    def look(self) -> None:
        """Begin to find out what may come next."""
        self._found = self._workers.submit(_fill, self._matcher, self._bits)

    def mask(self) -> Mask:
        """The tokens that may come next, the end of the text too where it may be."""
        self._wait()
        self._check()
        return np.take(_MASK_OF, self._bits.view(np.uint8), axis=0).ravel()[: self.vocab_size]

    def take(self, token: int) -> None:
        """Go on behind a token."""
        self._wait()
        self._matcher.consume_token(token)
        self.look()

    @property
    def ended(self) -> bool:
        """Whether nothing can follow."""
        self._wait()
        return self._matcher.is_stopped()

    @property
    def whole(self) -> bool:
        """Whether the text may end here."""
        self._wait()
        return self._matcher.is_stopped() or self._matcher.is_accepting()

    def again(self) -> Follower:
        """Another follower at the beginning."""
        self._wait()
        matcher = self._matcher.deep_copy()
        matcher.reset()
        return Follower(matcher, self.vocab_size, self._workers)

    def _wait(self) -> None:
        if self._found is not None:
            self._found.exception()
            self._found = None

    def _check(self) -> None:
        if wrong := _wrong(self._matcher):
            raise BadRequest(
                "The answer's form is too complex to be followed, or it leaves no way to go on:"
                f" {wrong[:300]}. Make the schema or grammar simpler."
            )


def _wrong(matcher: LLMatcher) -> str:
    told = matcher.get_error() if matcher.is_error() else ""
    if "limits." in told:  # those of `_LIMITS`, which nobody can raise
        return "it is too complex; make it simpler"
    return told.replace("<non-verbose/>", "").strip()


def _fill(matcher: LLMatcher, bits: NDArray[np.int32]) -> None:
    """Write the mask; the job keeps both alive, also where nobody waits for it any more."""
    matcher.unsafe_compute_mask_ptr(bits.ctypes.data, bits.nbytes)


class Whole:
    """All of the answer follows a grammar."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    is_free = False

    @property
    def whole(self) -> bool:
        """Whether the grammar is fulfilled."""
        return self._follower.whole

    def mask(self) -> Mask | None:
        """The tokens that may come next."""
        return self._follower.mask()

    def take(self, token: int, text: str) -> None:
        """The token that came."""
        self._follower.take(token)


class FromOpener:
    """What follows an opener follows a grammar, up to its end; other text is free."""

    def __init__(self, follower: Follower, opener: str, again: bool, ends: frozenset[int]) -> None:
        """Not `again`: the answer must end with one of `ends` behind the first time."""
        self._first = follower
        self._vocab_size = follower.vocab_size
        self._opener = opener
        self._again = again
        self._ends = ends
        self._tail = ""
        self._active: Follower | None = None
        self._over = False

    @property
    def is_free(self) -> bool:
        """Whether all tokens may come next."""
        return self._active is None and not self._over

    @property
    def whole(self) -> bool:
        """Whether no opener waits for its end."""
        return self._active is None or self._active.whole

    def mask(self) -> Mask | None:
        """The tokens that may come next, None for all."""
        if self._over:
            return only(self._vocab_size, self._ends)
        return self._active.mask() if self._active is not None else None

    def take(self, token: int, text: str) -> None:
        """The token that came, and its text."""
        if self._active is None:
            self._tail = (self._tail + text)[-len(self._opener) :]
            if self._tail == self._opener:
                self._active, self._tail = self._first.again(), ""
            return
        if self._over:
            return
        self._active.take(token)
        if self._active.ended:
            if self._again:
                self._active = None
            else:
                self._over = True


class Without:
    """Some tokens may not come."""

    whole = True

    def __init__(self, vocab_size: int, banned: frozenset[int]) -> None:
        self._mask = np.zeros(vocab_size, np.float32)
        self._mask[list(banned)] = NEVER

    is_free = False

    def mask(self) -> Mask | None:
        """The tokens that may come next."""
        return self._mask

    def take(self, token: int, text: str) -> None:
        """Any token may follow any other."""


def form_grammar(form: Format, name: str = "form") -> dict[str, Any]:
    """The grammar of a format alone, under a name; `BadRequest` for one of the wrong kind or too large."""
    source = form.source
    if form.kind not in KINDS:
        raise BadRequest(f"The format is of kind {form.kind!r}, expected {', '.join(KINDS)}.")
    if form.kind == "json_object":
        source = {"type": "object"}
    if form.kind.startswith("json") and not isinstance(source, Mapping | bool):
        raise BadRequest(f"The JSON schema is {source!r:.60}, expected an object.")
    if not form.kind.startswith("json") and not isinstance(source, str):
        raise BadRequest(f"The {form.kind} grammar is {source!r:.60}, expected a text.")
    if _deeper_than(MAX_DEPTH, source):
        raise BadRequest(
            f"The JSON schema is nested more than {MAX_DEPTH} deep. Make it flatter, or use $ref."
        )
    try:
        size = len(source) if isinstance(source, str) else len(json.dumps(source))
    except (ValueError, TypeError) as error:
        raise BadRequest(f"The JSON schema cannot be read: {error}.") from error
    if size > MAX_SOURCE:
        raise BadRequest(
            f"The format has {size:,} characters, expected at most {MAX_SOURCE:,}. Make it smaller."
        )
    if form.kind == "lark":
        return {"name": name, "lark_grammar": source}
    if form.kind == "regex":
        from llguidance import regex_to_lark

        return {"name": name, "lark_grammar": f"start: /{regex_to_lark(source, 'd')}/"}
    return {"name": name, "json_schema": with_space(source)}


def _deeper_than(depth: int, value: Any) -> bool:
    layer = [value] if isinstance(value, Mapping | list) else []
    for _ in range(depth):
        inner = [v.values() if isinstance(v, Mapping) else v for v in layer]
        layer = [x for v in inner for x in v if isinstance(x, Mapping | list)]
        if not layer:
            return False
    return True


def with_space(schema: Mapping[str, Any] | bool, **options: Any) -> dict[str, Any]:
    """A JSON schema with our rules for white space, and more of llguidance's options."""
    mapping = dict(schema) if isinstance(schema, Mapping) else {"anyOf": [schema]}
    given = mapping.get("x-guidance")
    own = {"whitespace_pattern": _SPACE, **options}
    return mapping | {"x-guidance": own | (dict(given) if isinstance(given, Mapping) else {})}


def whole_form(grammars: Grammars, form: Format, lead: bool) -> Grammar:
    """The checked grammar of an answer in a format; with `lead`, some white space may come first.

    `BadRequest` names the place in a schema that is wrong.
    """
    inner = form_grammar(form)
    start = f"start: {LEAD if lead else ''} @form"
    grammar = [{"name": "answer", "lark_grammar": start}, inner]
    if wrong := grammars.check(grammar):
        if form.kind == "json_schema" and isinstance(form.source, Mapping):
            place, wrong = _place(grammars, form.source, wrong)
            raise BadRequest(f"The JSON schema cannot be followed at {place}: {wrong[:300]}.")
        raise BadRequest(f"The {form.kind} format cannot be followed: {wrong[:300]}.")
    return grammar


def _place(grammars: Grammars, schema: Mapping[str, Any], wrong: str) -> tuple[str, str]:
    """The JSON pointer of the innermost part of a schema that is wrong by itself, and why."""
    found = "#", wrong
    shared = {k: schema[k] for k in ("$defs", "definitions") if k in schema}
    for (pointer, part), _ in zip(_parts(schema, "#"), range(_PLACES), strict=False):
        if len(pointer) > len(found[0]) and pointer.startswith(found[0]):
            alone = form_grammar(Format("json_schema", {**part, **shared}))
            told = grammars.check([{"name": "answer", "lark_grammar": "start: @form"}, alone])
            if told:
                found = pointer, told
    return found


def _parts(schema: Any, pointer: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The schemas within a schema and where they stand, outer ones first."""
    if not isinstance(schema, Mapping):
        return
    for key in ("properties", "patternProperties", "$defs", "definitions"):
        inner = schema.get(key)
        for name, part in inner.items() if isinstance(inner, Mapping) else ():
            if isinstance(part, Mapping):
                yield f"{pointer}/{key}/{name}", part
                yield from _parts(part, f"{pointer}/{key}/{name}")
    for key in ("items", "additionalProperties", "not", "contains"):
        if isinstance(part := schema.get(key), Mapping):
            yield f"{pointer}/{key}", part
            yield from _parts(part, f"{pointer}/{key}")
    for key in ("anyOf", "oneOf", "allOf", "prefixItems"):
        inner = schema.get(key)
        for i, part in enumerate(inner if isinstance(inner, list) else ()):
            if isinstance(part, Mapping):
                yield f"{pointer}/{key}/{i}", part
                yield from _parts(part, f"{pointer}/{key}/{i}")
