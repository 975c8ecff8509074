"""Drafters: whoever guesses the tokens that come next, for the target to verify in one pass.

A guess costs time and never changes the text. The scheduler, the runner and the models know no drafter by
name: a drafter is the module of this package that `Speculation` is told, and `open_drafter` finds.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from engine.config import Plan
from engine.gguf import ModelFile
from engine.ops.base import Limits, Ops, Rows
from engine.types import Draft, Sequence


class Paged(Protocol):
    """Whatever has pages by the target's numbers; the functions are those of `Ops`."""

    def page_bytes(self) -> int:
        """Bytes of a page of every layer."""
        ...

    def read_page(self, page: int, to: NDArray[np.uint8]) -> None:
        """Copy a page to the host; it is there once `settle` returns."""
        ...

    def write_page(self, page: int, data: NDArray[np.uint8]) -> None:
        """Give a page the content that `read_page` had."""
        ...

    def copy_page(self, source: int, target: int) -> None:
        """Copy a page to another one."""
        ...

    def settle(self) -> None:
        """Wait until all that was read is in its place."""
        ...


class Drafter(Protocol):
    """Guesses for the sequences of one target; the serving thread alone calls it.

    `needs` are the target's layers whose output `observe` gets, as `Ops.recording` takes them. `depth` is the
    most tokens in a row that it can guess, `branches` whether it can guess trees. `reach` places after a
    sequence's last token are in `sequence.pages` whenever it is asked. `paged` is what has pages by the
    target's numbers: what is moved of the target's pages is moved of its own.
    """

    name: str
    needs: tuple[int, ...]
    depth: int
    branches: bool
    reach: int
    paged: Paged | None

    def propose(self, sequence: Sequence, depth: int, nodes: int) -> Draft:
        """Guess what follows all of `sequence.tokens`: at most `depth` tokens in a row and `nodes` in all, a
        chain where these are equal; may be empty. All but the last token are computed and were observed. A
        chain's tokens may be `late`: then the drafter is still at work when the target begins.
        """
        ...

    def observe(self, sequence: Sequence, start: int, n: int, hidden: Rows | None) -> None:
        """`n` tokens of a sequence from position `start` on are computed, with the hidden rows (n, width) of
        the layers in `needs`, in memory that the next step uses again.

        Called for prompts and accepted tokens, drafted or not, in order; a `start` before what was seen means
        that all from there on is computed anew. Where a prefix was known, `start` skips it: then nobody has
        seen its rows for this sequence, though `sequence.pages` are the pages that held it.
        """
        ...

    def release(self, sequence: Sequence) -> None:
        """Forget a sequence that has ended or has lost its pages."""
        ...

    def memory(self) -> int:
        """Bytes that it holds."""
        ...

    def close(self) -> None:
        """Free everything; the target is closed after it."""
        ...


@runtime_checkable
class Foresees(Protocol):
    """A drafter that can tell at little cost that it would guess nothing."""

    def expects(self, sequence: Sequence) -> bool:
        """Whether it would guess something after all of `sequence.tokens`."""
        ...


@runtime_checkable
class Begins(Protocol):
    """A drafter that can begin before a sequence has the tokens that it is to go on from, so that it works
    while these become text; its `observe` looks at no tokens.
    """

    def begin(self, sequence: Sequence, place: int, token: int) -> None:
        """Begin to guess what follows `token` at `place`; all before it is observed. What was begun is never
        asked for where the text goes another way."""
        ...


@runtime_checkable
class Anticipates(Protocol):
    """A drafter that can use what a running step leaves before it is known which of its rows stand, so that
    it is at work while that is read.
    """

    def anticipate(self, sequence: Sequence, start: int, n: int, hidden: Rows) -> None:
        """`n` tokens of a sequence from `start` on are being computed, and the first ones of them will stand.
        `observe`, the next that is heard of the sequence, tells how many, with the same hidden rows.
        """
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """What a drafter may use of a loaded model: its open file, its configuration as its own module reads it,
    its uploaded weights, and its operations, for `beside` and `upload`.
    """

    file: ModelFile
    cfg: Any
    weights: SimpleNamespace
    ops: Ops
    limits: Limits
    plan: Plan


def open_drafter(kind: str, target: Target, path: Path | None) -> Drafter:
    """The drafter of module `engine.draft.<kind>`: its `open_drafter(target, path)`, path the draft's file.

    Raises `ModelFileError`, `UnsupportedModel` with both numbers where it does not fit, `OutOfMemory`.
    """
    module = importlib.import_module(f"engine.draft.{kind}")
    drafter: Drafter = module.open_drafter(target, path)
    return drafter
