"""Templates from downloaded files: nothing of Python within reach, and no work without end."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from jinja2.exceptions import SecurityError

from engine.sandbox import Allowance, LimitReached, TemplateEnvironment

TEN_MILLION = 10_000_000


def run(source: str, rounds: int = 20_000, size: int = 1_000_000, **variables: Any) -> str:
    first = TemplateEnvironment(Allowance(0, 0), datetime.now)
    code = first.compile_template(source)
    return first.again(Allowance(rounds, size), lambda: datetime(2026, 3, 4)).run(code, variables)


def doubled(how: str) -> str:
    """A template that puts a text or list `ns.a` together with itself sixty times."""
    return (
        "{% set ns = namespace(a='aa', l=['a']) %}{% for i in range(60) %}"
        + how
        + "{% endfor %}{{ ns.a | length }}{{ ns.l | length }}"
    )


LOOPS = {
    "nested": "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
    "nested, none chosen": "{% for a in range(9999) %}{% for b in range(9999) if false %}{% endfor %}"
    "{% endfor %}",
    "recursive": "{% for x in range(999) recursive %}{% if loop.depth < 9 %}{{ loop(range(999)) }}"
    "{% endif %}{% endfor %}",
    "long bodies": "{% for a in range(9999) %}" + "{% set x = a %}" * 2000 + "{% endfor %}",
    "macros that call macros": "{% macro a0() %}{% endmacro %}"
    + "".join(
        f"{{% macro a{i}() %}}" + f"{{% set x = a{i - 1}() %}}" * 9 + "{% endmacro %}"
        for i in range(1, 9)
    )
    + "{{ a8() }}",
}


@pytest.mark.parametrize("source", LOOPS.values(), ids=LOOPS)
def test_loops_end(source: str) -> None:
    with pytest.raises(LimitReached, match="loops"):
        run(source)


TOO_LARGE = {
    "times": "{{ 'a' * 10**9 }}",
    "times, turned round": "{{ 10**9 * 'a' }}",
    "times, of a list": "{{ [1] * 10**9 }}",
    "power": "{{ 10 ** (10**9) }}",
    "percent width": "{{ '%1000000000d' % 1 }}",
    "percent star": "{{ '%*d' % (10**9, 1) }}",
    "format width": "{{ '{:>1000000000}'.format(1) }}",
    "format width by argument": "{{ '{:{w}}'.format(1, w=10**9) }}",
    "format_map": "{{ '{a:>1000000000}'.format_map({'a': 1}) }}",
    "format filter": "{{ '%1000000000s' | format('a') }}",
    "percent width of a name": "{{ '%(a)1000000000d' % {'a': 1} }}",
    "format width by text": "{{ '{:{}}'.format(1, '1000000000') }}",
    "format precision": "{{ '{:.1000000000f}'.format(1.5) }}",
    "center": "{{ 'a'.center(10**9) }}",
    "a method kept for later": "{% set f = 'a'.ljust %}{{ f(10**9) }}",
    "center filter": "{{ 'a' | center(10**9) }}",
    "map of a filter": "{{ ['a'] | map('center', 10**9) | list }}",
    "indent": "{{ 'a\nb' | indent(10**9) }}",
    "tojson": "{{ [1] | tojson(indent=10**9) }}",
    "batch": "{{ [1] | batch(10**9, 'x') | list }}",
    "date": "{{ strftime_now('%1000000000Y') }}",
    "replace": "{% set x = 'a' * 10000 %}{{ x | replace('a', x) }}",
    "replace nothing": "{% set x = 'a' * 10000 %}{{ x.replace('', x) }}",
    "join": "{% set x = 'a' * 10000 %}{{ x.join(x) }}",
    "join of numbers": "{% set x = 'a' * 10000 %}{{ range(10000) | join(x) }}",
    "join of a generator": "{% set x = 'a' * 10000 %}{{ x.join(range(10000) | map('string')) }}",
    "doubled by +": doubled("{% set ns.a = ns.a + ns.a %}"),
    "doubled by ~": doubled("{% set ns.a = ns.a ~ ns.a %}"),
    "doubled by %": doubled("{% set ns.a = '%s%s' % (ns.a, ns.a) %}"),
    "doubled by format": doubled("{% set ns.a = '{0}{0}'.format(ns.a) %}"),
    "doubled by a set block": doubled("{% set ns.a %}{{ ns.a }}{{ ns.a }}{% endset %}"),
    "doubled by replace": doubled("{% set ns.a = ns.a.replace('a', 'aa') %}"),
    "doubled list": doubled("{% set ns.l = ns.l + ns.l %}"),
    "list of itself": doubled("{% set ns.l = [ns.l, ns.l] %}"),
    "tuple of itself": doubled("{% set ns.l = (ns.l, ns.l) %}"),
    "mapping of itself": doubled("{% set ns.l = {'x': ns.l, 'y': ns.l} %}"),
    "dict of itself": doubled("{% set ns.l = dict(x=ns.l, y=ns.l) %}"),
    "squared number": doubled("{% set ns.l = 3 if i == 0 else ns.l * ns.l %}"),
    "output": "{% set x = 'a' * 10000 %}{% for i in range(9999) %}{{ x }}{% endfor %}",
    "text in a loop": "{% for i in range(9999) %}" + "x" * 1000 + "{% endfor %}",
    "text in a macro": "{% macro m() %}" + "x" * 1000 + "{% endmacro %}"
    "{% for i in range(9999) %}{{ m() }}{% endfor %}",
    "searching long lists": "{% set l = range(9999) | list %}{% for i in l %}{% if -1 in l %}{% endif %}"
    "{% endfor %}",
}


@pytest.mark.parametrize("source", TOO_LARGE.values(), ids=TOO_LARGE)
def test_nothing_large_is_built(source: str) -> None:
    with pytest.raises(LimitReached, match="too much text"):
        run(source)


@pytest.mark.parametrize(
    "form", ["('%(' * 9999) % 1", "('{a{' * 9999).format(1)", "strftime_now('%Y' * 9999)"]
)
def test_formats_are_short(form: str) -> None:
    with pytest.raises(LimitReached, match="a format has"):
        run("{{ " + form + " }}")


def test_time_ends() -> None:
    environment = TemplateEnvironment(Allowance(10**9, 10**9, seconds=0), datetime.now)
    with pytest.raises(LimitReached, match="too long"):
        environment.run(environment.compile_template(LOOPS["nested"]), {})


OUT_OF_REACH = {
    "class": "{{ ''.__class__.__mro__ }}",
    "globals": "{{ cycler.__init__.__globals__ }}",
    "function": "{{ strftime_now.__func__.__globals__ }}",
    "change a list": "{{ items.append(1) }}",
    "change a list by filter": "{{ (items | attr('append'))(1) }}",
    "change a mapping": "{{ {'a': 1}.update(b=2) }}",
    "bytes": "{{ 'a'.encode() }}",
    "bytes of a number": "{{ (5).to_bytes(9, 'big') }}",
    "translate": "{{ 'a'.translate({97: 'b'}) }}",
}


@pytest.mark.parametrize("source", OUT_OF_REACH.values(), ids=OUT_OF_REACH)
def test_out_of_reach(source: str) -> None:
    items = [1]
    with pytest.raises(SecurityError):
        run(source, items=items)
    assert items == [1]


@pytest.mark.parametrize(
    "source", ["{% include 'x' %}", "{% import 'x' as y %}", "{% extends 'x' %}"]
)
def test_no_other_files(source: str) -> None:
    with pytest.raises(TypeError, match="no loader"):
        run(source)


def test_endless_recursion_is_an_error() -> None:
    with pytest.raises(RecursionError):
        run("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", rounds=TEN_MILLION, size=TEN_MILLION)


def test_loops_keep_their_variables() -> None:
    source = (
        "{% for x in items %}{{ loop.index }}/{{ loop.length }}{{ '.' if loop.last }}"
        "{{ loop.previtem }}{{ loop.nextitem }};{% else %}none{% endfor %}"
    )
    assert run(source, items=["a", "b"]) == "1/2b;2/2.a;"
    assert run(source, items=[]) == "none"
    assert run(source, items=(c for c in "ab")) == "1/2b;2/2.a;"
    assert run("{% for a, b in {'x': 1} | items if b %}{{ a }}{% endfor %}") == "x"
    assert (
        run("{% for x in [[1, [2]]] recursive %}{{ loop(x) if x is iterable else x }}{% endfor %}")
        == "12"
    )


def test_values_keep_their_kinds() -> None:
    assert run("{{ 'a' ~ 1 ~ none ~ [1, 2] }}") == "a1None[1, 2]"
    assert run("{% set a, b = 1, (2, 3) %}{{ a }}{{ b }}") == "1(2, 3)"
    assert run("{{ {'a': [1]} }}{{ [] is sequence }}{{ {} is mapping }}") == "{'a': [1]}TrueTrue"
    assert run("{{ 3 * 'ab' }}{{ 2 ** 3 }}{{ 7 % 4 }}{{ '%s-%d' % ('a', 1) }}") == "ababab83a-1"
    assert (
        run("{{ '{:>4}'.format(1) }}{{ 'a' | center(3) }}{{ ['a', 'b'] | join('-') }}")
        == "   1 a a-b"
    )
    assert run("{{ 1 < 2 <= 2 }}{{ 'a' in 'abc' }}{{ 1 not in [2] }}") == "TrueTrueTrue"


def test_large_numbers_in_text_are_no_widths() -> None:
    number = "12345678901234567890"
    assert run("{{ '%s of 9999999999' % x }}", x=number) == f"{number} of 9999999999"
    assert run("{{ '%s %d' % (x, 9999999999) }}", x=number) == f"{number} 9999999999"
    assert run("{{ '{} {}'.format(x, 9999999999) }}", x=number) == f"{number} 9999999999"
    assert run("{{ '%s' | format(x) }}{{ 9999999999 | tojson }}", x=number) == f"{number}9999999999"
    assert (
        run("{{ x | default(9999999999) }}{{ x.split('9', 9999999999) | length }}", x="1") == "11"
    )


def test_generation_marks_are_left_out() -> None:
    assert run("a{% generation %}{{ x }}{% endgeneration %}b", x="-") == "a-b"


def test_a_render_has_its_own_allowance_and_costs_the_same_every_time() -> None:
    source = "{% for i in range(500) %}{{ i }}{% endfor %}"
    for _ in range(3):
        assert len(run(source, rounds=501, size=10_000)) == 1390
    with pytest.raises(LimitReached):
        run(source, rounds=500, size=10_000)
