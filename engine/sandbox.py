"""Runs chat templates from downloaded files: jinja2's sandbox, the environment of transformers, and limits.

jinja2's sandbox keeps templates away from Python's insides, but lets them loop and build values without
end. Here every loop round, call and built value is charged to an `Allowance`, so that a render stops by
itself, at the same place every time and on every machine.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from types import BuiltinMethodType, CodeType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

_SCANNED_PER_CHARGE = 16
_WIDENING = frozenset(
    (
        "center",
        "ljust",
        "rjust",
        "zfill",
        "indent",
        "tojson",
        "wordwrap",
        "batch",
        "slice",
        "urlize",
    )
)
_NUMBERS = re.compile(r"\d+")


class LimitReached(Exception):
    """A template did more than its allowance; never seen by templates, they cannot catch."""


class Refused(Exception):
    """A template called `raise_exception`; the message is the template's own."""


class Allowance:
    """What one render may still do: `rounds` of loops and calls, `size` in characters or items built."""

    def __init__(self, rounds: int, size: int) -> None:
        self._rounds = rounds
        self._size = size

    def round(self, size: int = 0) -> None:
        """Charge one round of a loop or one call, that builds `size` characters."""
        self._rounds -= 1
        if self._rounds < 0:
            raise LimitReached("it loops without end")
        if size:
            self.charge(size)

    def charge(self, size: int) -> None:
        """Charge `size` characters or items, before they are built where that can be known."""
        self._size -= size
        if self._size < 0:
            raise LimitReached("it builds too much text")

    def scan(self, value: Any) -> Any:
        """Charge for looking through `value`; returns it."""
        self.charge(self.weigh(value) // _SCANNED_PER_CHARGE)
        return value

    def made(self, value: Any) -> Any:
        """Charge for a value that was built; returns it."""
        self.charge(self.weigh(value))
        return value

    def weigh(self, value: Any) -> int:
        """Characters and items in `value`, counting again what occurs again."""
        if isinstance(value, str | bytes):
            return len(value)
        total, rest = 0, [value]
        while rest:
            item = rest.pop()
            if isinstance(item, str | bytes):
                total += len(item)
            elif isinstance(item, list | tuple):
                total += len(item)
                rest.extend(item)
            elif isinstance(item, dict):
                total += len(item)
                rest.extend(item)
                rest.extend(item.values())
            elif isinstance(item, int):
                total += item.bit_length() // 8
            if total > self._size:
                raise LimitReached("it builds too much text")
        return total + 1


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """The environment that chat templates expect, for one render."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self, allowance: Allowance, now: Callable[[], datetime]) -> None:
        # What is not computed at compile time is charged at run time.
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols],
            optimized=False, finalize=_charge_output, cache_size=0,
        )  # fmt: skip
        self.allowance = allowance
        self._now = now
        self.filters["tojson"] = _tojson
        self.filters = {name: self._charged(name, f) for name, f in self.filters.items()} | {
            "_each": lambda items, size: _Each(items, size, allowance),
            "_scanned": allowance.scan,
            "_made": allowance.made,
            "_joined": self._join,
        }
        del self.globals["lipsum"]
        self.globals["raise_exception"] = _raise_exception
        self.globals["strftime_now"] = self._strftime_now

    def compile_template(self, source: str) -> CodeType:
        """`source` as code that charges what it does; raises what jinja2 raises."""
        tree = _Charging().visit(self.parse(source))
        return self.compile(tree)

    def run(self, code: CodeType, variables: dict[str, Any]) -> str:
        """The text that `code` makes; raises whatever the template raises."""
        return jinja2.Template.from_code(self, code, self.make_globals(None)).render(variables)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Refuse what would be too large before it is built."""
        weigh = self.allowance.weigh
        if operator == "*":
            sized = [v for v in (left, right) if isinstance(v, str | bytes | list | tuple)]
            times = [v for v in (left, right) if isinstance(v, int)]
            self.allowance.charge(weigh(sized[0]) * max(0, *times, 1) if sized and times else 0)
            if len(times) == 2:
                self.allowance.charge(weigh(left) * weigh(right))
        elif operator == "**" and isinstance(left, int) and isinstance(right, int):
            self.allowance.charge(left.bit_length() * max(right, 0))
        elif operator == "%" and isinstance(left, str):
            self.allowance.charge(_growth(left, "format", [right]))
        return self.allowance.made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Charge calls, and those of text's own methods before they are made."""
        __self.allowance.round()
        owner = getattr(__obj, "__self__", None)
        if isinstance(owner, str):
            __self._check(owner, __obj.__name__, args, kwargs)
        elif isinstance(__obj, BuiltinMethodType):
            __self.allowance.scan(owner)
        result = super().call(__context, __obj, *args, **kwargs)
        return __self.allowance.made(result)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Also deny what turns few characters into many without saying so."""
        if isinstance(obj, str) and attr in ("translate", "expandtabs", "maketrans"):
            return False
        return super().is_safe_attribute(obj, attr, value)

    def _charged(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        n_extra = int(hasattr(function, "jinja_pass_arg"))

        @functools.wraps(function)
        def charged(*args: Any, **kwargs: Any) -> Any:
            self.allowance.round()
            if len(args) > n_extra:
                self._check(args[n_extra], name, args[n_extra + 1 :], kwargs)
            return self.allowance.made(function(*args, **kwargs))

        return charged

    def _check(self, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.allowance.scan(value)
        self.allowance.charge(_growth(value, name, [*args, *kwargs.values()]))

    def _strftime_now(self, form: str) -> str:
        self.allowance.charge(_growth(form, "strftime", []))
        return self._now().strftime(form)

    def _join(self, parts: list[Any]) -> str:
        for part in parts:
            self.allowance.made(part)
        return "".join(map(str, parts))


def _growth(value: Any, name: str, given: list[Any]) -> int:
    """At most how much longer than `value` a text method's or a filter's result is."""
    texts = [v for v in given if isinstance(v, str)]
    if name == "join":
        glue, items = (value, given[0]) if isinstance(value, str) and given else (texts, value)
        if not isinstance(items, str | list | tuple):
            return 0
        return sum(len(i) for i in items if isinstance(i, str)) + len(items) * len("".join(glue))
    if name == "replace" and len(texts) > 1:
        text, old = str(value), texts[0]
        return (text.count(old) if old else len(text) + 1) * len(texts[1])
    flat = [w for v in given for w in (v if isinstance(v, list | tuple) else [v])]
    numbers = [0, *(abs(v) for v in flat if isinstance(v, int))]
    if name in ("format", "format_map", "strftime"):
        digits = (d for text in (str(value), *texts) for d in _NUMBERS.findall(text))
        return sum(numbers) + sum(int(d[:18]) for d in digits)
    if name not in _WIDENING:
        return 0
    lines = len(value) if isinstance(value, str | list | tuple | dict) else 1
    if isinstance(value, str) and name != "wordwrap":
        lines = value.count("\n") + 1
    return lines * max(max(numbers), *(len(t) for t in texts), 0)


class _Charging(NodeTransformer):
    """Puts charges around what jinja2 has no hook for: loops, literals, `~`, comparisons."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        text = sum(len(t.data) for part in node.body for t in _text_of(part))
        node.iter = _filtered(node.iter, "_each", nodes.Const(text))
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), "_joined")

    def visit_Operand(self, node: nodes.Operand) -> nodes.Node:
        self.generic_visit(node)
        node.expr = _filtered(node.expr, "_scanned")
        return node

    def visit_List(self, node: nodes.List) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, "_made")

    def visit_Dict(self, node: nodes.Dict) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, "_made")

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(node, "_made") if node.ctx == "load" else node


def _text_of(node: nodes.Node) -> Iterator[nodes.TemplateData]:
    if isinstance(node, nodes.TemplateData):
        yield node
    else:
        yield from node.find_all(nodes.TemplateData)


def _filtered(node: nodes.Node, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, [*args], [], None, None, lineno=node.lineno)


class _Each:
    """An iterable that charges a round for each of its items."""

    def __init__(self, items: Any, size: int, allowance: Allowance) -> None:
        self._items = items
        self._size = size
        self._allowance = allowance

    def __iter__(self) -> Iterator[Any]:
        for item in self._items:
            self._allowance.round(self._size)
            yield item

    def __len__(self) -> int:
        return len(self._items)


class _Generation(Extension):
    """`{% generation %}...{% endgeneration %}`, which marks the assistant's text for training."""

    tags = {"generation"}  # noqa: RUF012

    def parse(self, parser: Parser) -> nodes.Node:
        """The block's body as it stands."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_same"), [], [], body).set_lineno(line)

    def _same(self, caller: Callable[[], str]) -> str:
        return caller()


@jinja2.pass_context
def _charge_output(context: Context, value: Any) -> Any:
    environment = context.environment
    assert isinstance(environment, TemplateEnvironment)
    return environment.allowance.made(value)


def _raise_exception(message: Any) -> NoReturn:
    raise Refused(str(message))


def _tojson(
    value: Any, ensure_ascii: bool = False, indent: int | None = None,
    separators: tuple[str, str] | None = None, sort_keys: bool = False,
) -> str:  # fmt: skip
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )
