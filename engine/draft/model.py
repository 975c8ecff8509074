"""A small model of the same vocabulary as drafter: any model that can be run, from a file of its own.

Its keys and values lie in memory of its own, in pages with the target's numbers, so known prefixes serve it
too. A model with recurrent state reads such a prefix again, and guesses on a copy of its state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.draft.base import Paged, Target
from engine.draft.guessing import guess
from engine.errors import BadRequest, UnsupportedModel
from engine.footprint import DRAFT_ROWS
from engine.gguf import ModelFile, open_model
from engine.models.base import model_of
from engine.ops.base import Rows, StepInput, no_numbers
from engine.types import Draft, Sequence
from engine.weights import load_weights


@dataclass(slots=True)
class _Known:
    """The first `n` tokens of a sequence are computed; its state is in `slot`."""

    n: int
    slot: int


class ModelDrafter:
    """A chain of guesses, or a tree from what the chain's positions say."""

    name = "model"
    needs: tuple[int, ...] = ()
    depth = 8
    branches = True
    reach = 8

    def __init__(self, target: Target, file: ModelFile) -> None:
        """Raises `UnsupportedModel` where the vocabularies differ, and what a load may raise."""
        check_vocabulary(target.file, file)
        module = model_of(file.architecture)
        cfg = module.read_config(file)
        self._recurrent = cfg.shape.delta is not None
        n = target.limits.sequences
        self._slots = list(range(n, 0, -1))  # slot 0 is for guesses
        self._most = min(target.limits.rows, DRAFT_ROWS)
        self._page = target.limits.page_tokens
        self._table = np.zeros((1, target.limits.pages_per_sequence), np.int32)
        self._known: dict[int, _Known] = {}
        slots = n + 1 if self._recurrent else 0
        limits = replace(target.limits, rows=self._most, sequences=1, slots=slots, tried=0)
        self.paged: Paged | None = (ops := target.ops.beside())
        self._ops = ops
        try:
            weights = load_weights(file, module.tensors(cfg), self._ops)
            self._ops.allocate(cfg.shape, limits)
            with self._ops.recording():
                module.forward(self._ops, weights, cfg)
        except BaseException:
            self._ops.close()
            raise

    def propose(self, sequence: Sequence, depth: int, nodes: int) -> Draft:
        known = self._known.get(sequence.request_id)
        n = len(sequence.tokens)
        self._take_pages(sequence)
        if known is None or known.n >= n or n - known.n > self._most:
            if known is not None and known.n < n:
                self._read(sequence, known, known.n + self._most)
            return Draft()
        first = self._run(sequence.tokens[known.n :], known.n, known.slot, True)
        known.n = n
        if self._recurrent:
            self._ops.copy_state(known.slot, 0)

        def follow(token: int, i: int) -> NDArray[np.float32]:
            return self._run([token], n + i, 0, True)

        return guess(sequence, depth, nodes, first, follow)

    def observe(self, sequence: Sequence, start: int, n: int, hidden: Rows | None) -> None:
        known = self._known.get(sequence.request_id)
        if known is None:
            slot = self._slots.pop() if self._recurrent else 0
            # Of what is known already full pages are whole; the last tokens of an answer were not read.
            known = _Known(0 if self._recurrent else start // self._page * self._page, slot)
            self._known[sequence.request_id] = known
        self._take_pages(sequence)
        end = start + n
        # Full pages may be shared from now on, so they must be whole.
        if end // self._page > known.n // self._page or end - known.n >= self._page:
            self._read(sequence, known, min(end, known.n + n + self._most))

    def _take_pages(self, sequence: Sequence) -> None:
        self._table[0, : len(sequence.pages)] = sequence.pages

    def _read(self, sequence: Sequence, known: _Known, end: int) -> None:
        """Compute the tokens up to `end` that are not yet."""
        while known.n < end:
            size = min(self._most, end - known.n)
            self._run(sequence.tokens[known.n : known.n + size], known.n, known.slot, False)
            known.n += size

    def _run(
        self, tokens: list[int], start: int, slot: int, want_logits: bool
    ) -> NDArray[np.float32]:
        """Rows from `start` on; the logits of the last one."""
        n = len(tokens)
        logits = self._ops.run(
            StepInput(
                np.array(tokens, np.int32),
                np.arange(start, start + n, dtype=np.int32),
                np.zeros(n, np.int32),
                self._table,
                np.full(1 if want_logits else 0, n - 1, np.int32),
                np.full(1, slot, np.int32) if self._recurrent else no_numbers(),
            )
        )
        return logits[0] if want_logits else logits

    def release(self, sequence: Sequence) -> None:
        known = self._known.pop(sequence.request_id, None)
        if known is not None and self._recurrent:
            self._slots.append(known.slot)

    def memory(self) -> int:
        return sum(self._ops.memory().values())

    def close(self) -> None:
        self._ops.close()


def check_vocabulary(target: ModelFile, draft: ModelFile) -> None:
    """Refuse a draft whose tokens mean something else; the rows of their tables may differ."""
    ours, theirs = (f.meta.get("tokenizer.ggml.tokens") for f in (target, draft))
    if not isinstance(ours, list) or not isinstance(theirs, list):
        raise UnsupportedModel(f"{draft.name} has no vocabulary to compare with {target.name}.")
    if len(ours) != len(theirs):
        raise UnsupportedModel(
            f"The draft {draft.name} has {len(theirs):,} tokens and {target.name} {len(ours):,}; a draft"
            " must have the vocabulary of its target. Choose a smaller model of the same family."
        )
    different = sum(a != b for a, b in zip(ours, theirs, strict=True))
    if different:
        raise UnsupportedModel(
            f"Of the {len(ours):,} tokens of {target.name}, {different:,} are others in the draft"
            f" {draft.name}; a draft must have the vocabulary of its target."
        )


def open_drafter(target: Target, path: Path | None) -> ModelDrafter:
    """The model in a file as a drafter."""
    if path is None:
        raise BadRequest("The draft model's file is missing.")
    with open_model(path) as file:
        return ModelDrafter(target, file)
