"""The draft layer inside a model's own file (multi-token prediction, GGUF's nextn): drafts a chain.

Row i takes the target's last hidden state of token i and the embedding of token i + 1, and says token i + 2;
from then on it takes its own hidden state. Its keys and values lie in pages with the target's numbers, one
place lower than its token, so known prefixes serve it too.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.draft.base import Paged, Target
from engine.draft.guessing import guess
from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import ModelFile
from engine.models.base import model_of
from engine.ops.base import Ops, Rows, Shape, StepInput
from engine.types import Draft, Sequence
from engine.weights import upload

AT_ONCE = 64
"""Rows of its steps: more need room for products of a kind that a single layer gains nothing by."""
_OPTIONAL = ("nextn.embed_tokens", "nextn.shared_head_head", "nextn.shared_head_norm")


@dataclass(slots=True)
class _Known:
    """Of a sequence's `n` hidden rows those before `start` are computed, the others wait in `rows`."""

    n: int = 0
    start: int = 0
    rows: list[Rows] = field(default_factory=list)


class MtpDrafter:
    """A chain of guesses, or a tree from what the chain's positions say."""

    name = "mtp"
    depth = 6
    branches = True
    reach = 6

    def __init__(self, target: Target) -> None:
        """Raises `ModelFileError` where the file's draft layer is not whole, or `OutOfMemory`."""
        self._cfg = target.cfg
        self.needs: tuple[int, ...] = (target.cfg.n_layers,)
        self._table = np.zeros((1, target.limits.pages_per_sequence), np.int32)
        self._most = min(target.limits.rows, AT_ONCE)
        self._page = target.limits.page_tokens
        self._known: dict[int, _Known] = {}
        self.paged: Paged | None = (ops := target.ops.beside())
        self._ops = ops
        try:
            weights = load_block(target.file, target.cfg, self._ops)
            dense = target.cfg.dense
            shape = Shape(
                1, dense.n_embd, dense.n_vocab, dense.n_heads, dense.n_kv_heads, dense.head_dim
            )
            self._ops.allocate(
                shape, replace(target.limits, rows=self._most, sequences=1, slots=0, tried=0)
            )
            with self._ops.recording(capture=(1,)):
                record(self._ops, target, weights)
        except BaseException:
            self._ops.close()
            raise

    def propose(self, sequence: Sequence, depth: int, nodes: int) -> Draft:
        known = self._known.get(sequence.request_id)
        if known is None or not known.rows or known.n != len(sequence.tokens) - 1:
            return Draft()
        first, hidden = self._catch_up(sequence, known, True)

        def follow(token: int, i: int) -> NDArray[np.float32]:
            nonlocal hidden
            logits, hidden = self._run([token], known.n + i, hidden, True)
            return logits

        return guess(sequence, depth, nodes, first, follow)

    def observe(self, sequence: Sequence, start: int, n: int, hidden: Rows | None) -> None:
        assert hidden is not None
        known = self._known.setdefault(sequence.request_id, _Known())
        if start != known.n:
            # What is behind `start` was told anew, or a known prefix was skipped: the hidden state of its
            # last token is not known, so that row makes do without.
            known.rows, known.start = [], start
            if start > 0:
                known.rows.append(np.zeros((1, self._cfg.dense.n_embd), np.float32))
                known.start = start - 1
        known.rows.append(hidden)
        known.n = start + n
        # Full pages may be shared from now on, so they must be whole.
        waiting = known.n - known.start
        if known.n // self._page > known.start // self._page or waiting >= self._page:
            self._catch_up(sequence, known, False)
        else:
            known.rows[-1] = self._ops.join([hidden])  # it changes with the target's next step

    def _catch_up(
        self, sequence: Sequence, known: _Known, want_logits: bool
    ) -> tuple[NDArray[np.float32], Rows]:
        """Compute the rows that wait and whose next token is known; logits and hidden row of the last.

        Without `want_logits` the last row goes on waiting, for a draft that begins with it.
        """
        self._table[0, : len(sequence.pages)] = sequence.pages
        n = known.n - known.start - (not want_logits)
        n = min(n, len(sequence.tokens) - 1 - known.start)
        result = np.zeros(0, np.float32), known.rows[0][:0]
        for at in range(0, n, self._most):
            size = min(self._most, n - at)
            first = known.start + at
            tokens = sequence.tokens[first + 1 : first + 1 + size]
            given = self._ops.join(_part(known.rows, at, at + size))
            result = self._run(tokens, first, given, want_logits and at + size == n)
        waiting = _part(known.rows, n, known.n - known.start)
        known.rows = [self._ops.join(waiting)] if waiting else []
        known.start += n
        return result

    def _run(
        self, tokens: list[int], start: int, given: Rows, want_logits: bool
    ) -> tuple[NDArray[np.float32], Rows]:
        """Rows from `start` on; the logits of the last one, and its hidden row."""
        n = len(tokens)
        zeros = np.zeros(n, np.int32)
        logits = self._ops.run(
            StepInput(
                np.array(tokens, np.int32),
                np.arange(start, start + n, dtype=np.int32),
                zeros,
                self._table,
                np.full(1 if want_logits else 0, n - 1, np.int32),
                given=given,
            )
        )
        return (logits[0] if want_logits else logits), self._ops.join(
            [self._ops.hidden()[n - 1 : n]]
        )

    def release(self, sequence: Sequence) -> None:
        self._known.pop(sequence.request_id, None)

    def memory(self) -> int:
        return sum(self._ops.memory().values())

    def close(self) -> None:
        self._ops.close()


def _part(pieces: list[Rows], begin: int, end: int) -> list[Rows]:
    """Rows `begin` to `end` of those that lie in several pieces."""
    found = []
    for piece in pieces:
        n = len(piece)
        if begin < min(n, end):
            found.append(piece[max(0, begin) : min(n, end)])
        begin, end = begin - n, end - n
    return found


def load_block(file: ModelFile, cfg, ops: Ops) -> SimpleNamespace:  # type: ignore[no-untyped-def]
    """The tensors of the first block that drafts."""
    prefix = f"blk.{cfg.n_layers}."
    specs = [s for s in model_of(file.architecture).tensors(cfg) if s.name.startswith(prefix)]
    present = []
    for spec in specs:
        if spec.name in file.tensors:
            present.append(replace(spec, unused=False))
        elif not spec.name.removeprefix(prefix).startswith(_OPTIONAL):
            raise ModelFileError(f"its tensor {spec.name} is missing.")
    block: SimpleNamespace = upload(file, present, ops).blk[cfg.n_layers]
    return block


def record(ops: Ops, target: Target, b: SimpleNamespace) -> None:
    """The layer from tokens and hidden states to logits."""
    cfg, w, dense = target.cfg, target.weights, target.cfg.dense
    module: Any = model_of(target.file.architecture)
    eps = dense.eps
    embedded = ops.embed(getattr(b, "nextn_embed_tokens", w.token_embd))
    both = ops.concat(
        ops.norm(embedded, b.nextn_enorm, eps),
        ops.norm(ops.given(dense.n_embd), b.nextn_hnorm, eps),
    )
    x = ops.linear(both, b.nextn_eh_proj)
    h = ops.norm(x, b.attn_norm, eps)
    qkv = ops.linear(h, b.attn_q, b.attn_k, b.attn_v)
    o = ops.attend(qkv, 0, dense.rope, b.attn_q_norm, b.attn_k_norm, eps, gated=True)
    h = ops.add_norm(x, ops.linear(o, b.attn_output), b.post_attention_norm, eps)
    last_norm = getattr(b, "nextn_shared_head_norm", w.output_norm)
    h = ops.add_norm(x, module.feed_forward(ops, h, b, cfg), last_norm, eps)
    ops.end_layer(0, x)
    ops.head(h, getattr(b, "nextn_shared_head_head", w.output))


def open_drafter(target: Target, path: Path | None) -> MtpDrafter:
    """The draft layer of the target's file; raises `UnsupportedModel` where there is none."""
    if not getattr(target.cfg, "n_nextn", 0):
        raise UnsupportedModel(
            f"{target.file.path.name} has 0 draft layers of its own and mtp needs one. Choose a draft's"
            " file, or ngram, which every model can use."
        )
    return MtpDrafter(target)
