"""Runs chat templates from downloaded files: jinja2's sandbox, the environment of transformers, and limits.

jinja2's sandbox keeps templates away from Python's insides, but lets them loop and build values without
end. Here every loop round, call and built value is charged to an `Allowance`, so that a render stops by
itself, at the same place every time and on every machine.
"""

from __future__ import annotations

import copy
import functools
import json
import re
import time
from collections.abc import Callable
from datetime import datetime
from types import BuiltinMethodType, CodeType
from typing import Any, NoReturn

import jinja2
from jinja2 import nodes
from jinja2.defaults import DEFAULT_FILTERS
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

_SCANNED_PER_CHARGE = 16
_STATEMENTS_PER_ROUND = 64
_PER_ITEM = 16
_MAX_FORM = 10_000
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
_DENIED = frozenset(("translate", "maketrans", "expandtabs", "encode", "to_bytes"))
_NUMBERS = re.compile(r"\d+")
_PERCENT = re.compile(r"%(?:\([^)]*\))?[^a-zA-Z%]*")
_BRACES = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")


class LimitReached(Exception):
    """A template did more than its allowance; never seen by templates, they cannot catch."""


class Refused(Exception):
    """A template called `raise_exception`; the message is the template's own."""


class Allowance:
    """What one render may still do: `rounds` of loops and calls, `size` in characters built.

    An item of a list counts as 16 characters. `seconds` of the thread's time stop what the others miss.
    """

    def __init__(self, rounds: int, size: int, seconds: float = 10.0) -> None:
        self._rounds = rounds
        self._size = size
        self._end = time.thread_time() + seconds

    def round(self, value: Any = None, statements: int = 0, size: int = 0) -> Any:
        """Charge one round of a loop or one call, that does so much; returns `value`."""
        self._rounds -= 1 + statements // _STATEMENTS_PER_ROUND
        if self._rounds < 0:
            raise LimitReached("it loops without end")
        if self._rounds % 256 == 0:
            self._check_time()
        self.charge(size)
        return value

    def charge(self, size: int) -> None:
        """Charge `size` characters, before they are built where that can be known."""
        self._size -= size
        if self._size < 0:
            raise LimitReached("it builds too much text")
        if size > 10_000:
            self._check_time()

    def scan(self, value: Any) -> Any:
        """Charge for looking through `value`; returns it."""
        if isinstance(value, str):
            self.charge(len(value) // _SCANNED_PER_CHARGE)
        elif isinstance(value, list | tuple | dict):
            self.charge(len(value))
        return value

    def made(self, value: Any) -> Any:
        """Charge for a value that was built; returns it."""
        self.charge(self.weigh(value))
        return value

    def weigh(self, value: Any) -> int:
        """The size of `value`, counting again what occurs again."""
        if isinstance(value, str):
            return len(value)
        total, rest = 0, [value]
        while rest:
            item = rest.pop()
            if isinstance(item, str):
                total += len(item)
            elif isinstance(item, list | tuple):
                total += _PER_ITEM * len(item)
                rest.extend(item)
            elif isinstance(item, dict):
                total += _PER_ITEM * len(item)
                rest.extend(item)
                rest.extend(item.values())
            elif isinstance(item, int):
                total += item.bit_length() // 8
            if total > self._size:
                raise LimitReached("it builds too much text")
        return total

    def _check_time(self) -> None:
        if time.thread_time() > self._end:
            raise LimitReached("it takes too long")


class TemplateEnvironment(ImmutableSandboxedEnvironment):
    """The environment that chat templates expect, with the allowance of one render."""

    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def __init__(self, allowance: Allowance, now: Callable[[], datetime]) -> None:
        # What is not computed at compile time is charged at run time.
        super().__init__(
            trim_blocks=True, lstrip_blocks=True, extensions=[_Generation, loopcontrols],
            optimized=False, finalize=_charge_output, cache_size=0,
        )  # fmt: skip
        del self.globals["lipsum"]
        self.globals["raise_exception"] = _raise_exception
        self._begin(allowance, now)

    def again(self, allowance: Allowance, now: Callable[[], datetime]) -> TemplateEnvironment:
        """This environment for another render; making a new one takes many times as long."""
        other = copy.copy(self)
        other._begin(allowance, now)
        return other

    def _begin(self, allowance: Allowance, now: Callable[[], datetime]) -> None:
        self.allowance = allowance
        self._now = now
        self.filters = {
            **_FILTERS,
            "_round": allowance.round,
            "_scanned": allowance.scan,
            "_made": allowance.made,
            "_joined": self._join,
        }
        self.globals = {**self.globals, "strftime_now": self._strftime_now}

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
            self.allowance.charge(_growth(left, "%", [right]))
        return self.allowance.made(super().call_binop(context, operator, left, right))

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        """Charge calls, and those of text's own methods before they are made."""
        __self.allowance.round()
        if isinstance(__obj, BuiltinMethodType):
            args = _listed(__obj.__name__, args)
            __self.check(__obj.__self__, __obj.__name__, args, kwargs)
        result = super().call(__context, __obj, *args, **kwargs)
        return __self.allowance.made(result)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Also deny methods whose results could be large without a hint in their arguments."""
        return attr not in _DENIED and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """Charge for the widths in a format before it is used."""
        safe = super().wrap_str_format(value)
        if safe is None:
            return None

        def charged(*args: Any, **kwargs: Any) -> str:
            self.check(value.__self__, "str.format", args, kwargs)
            return safe(*args, **kwargs)

        return charged

    def check(self, value: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Charge for what a text method or a filter will make of `value`."""
        self.allowance.scan(value)
        self.allowance.charge(_growth(value, name, [*args, *kwargs.values()]))

    def _strftime_now(self, form: str) -> str:
        self.allowance.charge(_width(form, []))
        return self._now().strftime(form)

    def _join(self, parts: list[Any]) -> str:
        for part in parts:
            self.allowance.made(part)
        return "".join(map(str, parts))


def _charged(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that charges what it does to the environment that it is used in."""
    wanted = getattr(function, "jinja_pass_arg", None)

    @functools.wraps(function)
    def charged(context: Context, *args: Any, **kwargs: Any) -> Any:
        environment = context.environment
        assert isinstance(environment, TemplateEnvironment)
        environment.allowance.round()
        args = _listed(name, args)
        if args:
            environment.check(args[0], name, args[1:], kwargs)
        if wanted is not None:
            args = (_passed(wanted.name, context), *args)
        return environment.allowance.made(function(*args, **kwargs))

    return jinja2.pass_context(charged)


def _passed(wanted: str, context: Context) -> Any:
    """What jinja2 hands to a filter ahead of its arguments."""
    return {
        "context": context, "eval_context": context.eval_ctx, "environment": context.environment,
    }[wanted]  # fmt: skip


def _listed(name: str, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """`args` in which what `join` joins has a length."""
    if name != "join" or not args or isinstance(args[0], str | list | tuple):
        return args
    return (list(args[0]), *args[1:])


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
    if name in ("%", "format", "str.format"):
        return _width(str(value), given, braces=name == "str.format")
    if name not in _WIDENING:
        return 0
    numbers = [0, *(abs(v) for v in given if isinstance(v, int)), *(len(t) for t in texts)]
    lines = len(value) if isinstance(value, str | list | tuple | dict) else 1
    if isinstance(value, str) and name != "wordwrap":
        lines = value.count("\n") + 1
    return lines * max(numbers)


def _width(form: str, given: list[Any], braces: bool = False) -> int:
    """At most what the widths in `form` add; they may stand in the `given` values if it says so."""
    if len(form) > _MAX_FORM:
        raise LimitReached(f"a format has {len(form):,} characters, more than {_MAX_FORM:,}")
    fields = (_BRACES if braces else _PERCENT).findall(form)
    values: list[Any] = [int(d[:18]) for field in fields for d in _NUMBERS.findall(field)]
    if any(field.find("{", 1) > 0 or "*" in field for field in fields):
        flat = [w for v in given for w in (v if isinstance(v, list | tuple) else [v])]
        values += flat
        values += [int(d[:18]) for v in flat if isinstance(v, str) for d in _NUMBERS.findall(v)]
    return sum(abs(v) for v in values if isinstance(v, int))


class _Charging(NodeTransformer):
    """Puts charges around what jinja2 has no hook for: loops, literals, `~`, comparisons."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        statements, text = _size_of(node.body)
        self.generic_visit(node)
        node.body.insert(0, _round(statements, text))
        if node.test is not None:
            node.test = _filtered(node.test, "_round", nodes.Const(0), nodes.Const(0))
        return node

    def visit_Macro(self, node: nodes.Macro) -> nodes.Node:
        return self._body(node)

    def visit_CallBlock(self, node: nodes.CallBlock) -> nodes.Node:
        return self._body(node)

    def visit_Block(self, node: nodes.Block) -> nodes.Node:
        return self._body(node)

    def _body(self, node: nodes.Macro | nodes.CallBlock | nodes.Block) -> nodes.Node:
        statements, text = _size_of(node.body)
        self.generic_visit(node)
        node.body.insert(0, _round(statements, text))
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


def _size_of(body: list[nodes.Node]) -> tuple[int, int]:
    """How many nodes are in `body`, and characters of plain text."""
    found = [inner for node in body for inner in (node, *node.find_all(nodes.Node))]
    return len(found), sum(len(n.data) for n in found if isinstance(n, nodes.TemplateData))


def _round(statements: int, size: int) -> nodes.Node:
    charge = _filtered(nodes.Const(None), "_round", nodes.Const(statements), nodes.Const(size))
    return nodes.ExprStmt(charge)


def _filtered(node: nodes.Node, name: str, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, [*args], [], None, None, lineno=node.lineno)


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


_FILTERS = {
    name: _charged(name, function)
    for name, function in {**DEFAULT_FILTERS, "tojson": _tojson}.items()
    if name != "urlize"
}
