"""Command line flags for the settings of `engine.config`, and files that commands read."""

from __future__ import annotations

import argparse
import dataclasses
import enum
import sys
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine import user_text
from engine.config import Info, settings_of
from engine.errors import BadRequest
from engine.parser import whole
from engine.reasoning import EFFORTS

_ENDLESS = 2**53


def add_settings(
    parser: argparse.ArgumentParser,
    cls: type,
    but: tuple[str, ...] = (),
    action: Any = "store",
    **defaults: str,
) -> None:
    """Add a flag for every setting of a dataclass that has one; absent flags stay None.

    A list's flag may be given several times. `action` is what a flag with one value does. `defaults` are what
    this command takes in place of the settings' own, for the help.
    """
    group = parser.add_argument_group(_spaced(cls.__name__))
    hints = typing.get_type_hints(cls)
    known = {field.name: field.default for field in dataclasses.fields(cls)} | defaults
    for name, info in settings_of(cls).items():
        if not info.flag or name in but:
            continue
        kind = _kind(hints[name])
        if kind is bool:
            both = argparse.BooleanOptionalAction if known[name] is True else "store_true"
            group.add_argument(info.flag, dest=name, action=both, default=None, help=info.help)
            continue
        many = typing.get_origin(hints[name]) is list
        group.add_argument(
            info.flag,
            dest=name,
            action="append" if many else action,
            type=_reader(kind, types.NoneType in typing.get_args(hints[name])),
            choices=info.choices or None,
            metavar=None if info.choices else _metavar(info, kind),
            help=_help(info, None if many else known[name]),
        )


def add_wishes(command: argparse.ArgumentParser) -> None:
    """Add the flags for what an answer must be."""
    group = command.add_argument_group("answer")
    form = group.add_mutually_exclusive_group()
    form.add_argument("--json-schema", metavar="FILE", help="the answer is JSON of this schema")
    form.add_argument("--regex", metavar="TEXT", help="the answer matches this expression")
    form.add_argument("--grammar", metavar="FILE", help="the answer follows this Lark grammar")
    group.add_argument("--tools", metavar="FILE", help="a JSON list of tools, with --chat")
    group.add_argument(
        "--tool-choice", metavar="NAME", help="auto, none, required or a tool's name; default auto"
    )
    group.add_argument(
        "--logprobs",
        type=int,
        metavar="N",
        help="log-probabilities, and N alternatives; with --json",
    )
    group.add_argument(
        "--reasoning-effort", metavar="NAME", help=f"how much to think: {', '.join(EFFORTS)}"
    )
    group.add_argument(
        "--thinking-budget", type=int, metavar="TOKENS", help="most tokens for thinking"
    )


def chosen(args: argparse.Namespace, cls: type) -> dict[str, Any]:
    """The settings of a dataclass that were given on the command line."""
    hints = typing.get_type_hints(cls)
    values = {name: getattr(args, name, None) for name in settings_of(cls)}
    return {
        name: value if isinstance(value, list) else _kind(hints[name])(value)
        for name, value in values.items()
        if value is not None
    }


def file_path(name: str, what: str) -> Path:
    """The file or folder that an argument names, from the root on; `what` it is for, in the error."""
    if not name:
        raise BadRequest(f"The name of the {what} is empty; expected the path of a file.")
    return Path(name).absolute()


def read_text(source: str) -> str:
    """The text of a file, or of stdin for "-"; raises `BadRequest`."""
    if source != "-":
        return user_text.read_text(source)
    if sys.stdin is None:
        raise BadRequest("stdin is closed; expected text on it.")
    return user_text.decoded(sys.stdin.buffer.read(), "stdin")


def refuse_bytes(*texts: str | None) -> None:
    """Raise `BadRequest` for a text of the command line that is no UTF-8 (Python makes surrogates of it)."""
    for text in texts:
        try:
            (text or "").encode("utf-8")
        except UnicodeEncodeError as error:
            raise BadRequest(
                f"A text is not UTF-8 at character {error.start:,}. Write it as UTF-8; a prompt may also"
                ' come from a UTF-8 file on stdin, for "-".'
            ) from error


def read_json(source: str) -> Any:
    """The JSON value in a file or on stdin ("-"); raises `BadRequest`."""
    return user_text.parsed(read_text(source), _named(source))


def read_ids(source: str) -> list[int]:
    """A JSON list of token ids; raises `BadRequest`."""
    found = read_json(source)
    if not isinstance(found, list) or not all(type(item) is int for item in found):
        raise BadRequest(f"{_named(source)}: expected a JSON list of token ids, such as [1, 2, 3].")
    return found


def read_messages(source: str) -> tuple[list[Any], list[Any] | None]:
    """Chat messages and tools: a JSON list of messages, or an object with "messages" and "tools"."""
    found = read_json(source)
    if isinstance(found, list):
        return found, None
    messages = found.get("messages") if isinstance(found, dict) else None
    tools = found.get("tools") if isinstance(found, dict) else None
    if not isinstance(messages, list) or not isinstance(tools, (list, types.NoneType)):
        raise BadRequest(
            f'{_named(source)}: expected a JSON list of messages such as {{"role": "user", "content": '
            '"Hello"}, or an object with the lists "messages" and "tools".'
        )
    return messages, tools


def _named(source: str) -> str:
    return "stdin" if source == "-" else source


def _reader(kind: Any, optional: bool) -> Callable[[str], Any]:
    """What makes a value of a flag's text; "auto" leaves an optional number to us."""
    if issubclass(kind, enum.Enum):
        return str
    if kind is int and optional:
        return _int_or_auto
    reader: Callable[[str], Any] = kind
    return reader


def _int_or_auto(text: str) -> int | None:
    return None if text == "auto" else whole(text)


def _kind(hint: Any) -> Any:
    """The type in a hint such as `int | None`."""
    options = [t for t in typing.get_args(hint) if t is not types.NoneType]
    return options[0] if options else hint


def _help(info: Info, default: Any) -> str:
    limits = ""
    if info.low is not None and info.high is not None and info.high < _ENDLESS:
        limits = f" {_number(info.low)} to {_number(info.high)}."
    known = f" Default {default}." if default is not None else ""
    return f"{info.help}{limits}{known}".replace("%", "%%")


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"


def _metavar(info: Info, kind: type) -> str:
    return info.unit.upper() if info.unit.isalpha() else "N" if kind is not str else "TEXT"


def _spaced(name: str) -> str:
    names = {"EngineConfig": "engine", "SamplingParams": "sampling", "ServerConfig": "server",
             "DiskCacheConfig": "disk cache"}  # fmt: skip
    return names.get(name, name)
