"""A parser of command lines that tells what is wrong with one in a sentence."""

from __future__ import annotations

import argparse
import difflib
import itertools
from collections.abc import Iterable
from typing import Any, NoReturn

EXIT_USAGE = 2


class Parser(argparse.ArgumentParser):
    """Tells a wrong command line in one sentence."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.register("type", int, whole)
        self.register("type", float, number)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse unknown arguments here: of a command's, argparse would leave that to the main parser, and
        tell first of what is missing because its flag is misspelt.
        """
        if args is not None:
            own = (lambda arg: arg != "--") if self._subparsers is None else _is_flag
            self._refuse_unknown(itertools.takewhile(own, args))
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return known, unknown

    def _refuse_unknown(self, args: Iterable[str]) -> None:
        """Of the flags; what has a space is a text, as argparse sees it."""
        flags = self._option_string_actions
        given = [arg for arg in args if _is_flag(arg) and " " not in arg]
        unknown = [arg for arg in given if arg.partition("=")[0] not in flags]
        if unknown:
            near = difflib.get_close_matches(unknown[0].partition("=")[0], flags, 1, 0.75)
            hint = f" (did you mean {near[0]}?)" if near else ""
            self.error(f"unrecognized arguments: {' '.join(unknown)}{hint}")

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and where help is, and leave with the usage code."""
        self.exit(EXIT_USAGE, f"{self.prog}: {message}. See {self.prog} --help.\n")


def _is_flag(arg: str) -> bool:
    return arg.startswith("--") and arg != "--"


def whole(text: str) -> int:
    """A whole number of a command line."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a whole number") from None


def number(text: str) -> float:
    """A number of a command line."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number") from None
