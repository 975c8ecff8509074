"""The DFlash drafter (arXiv 2602.06036): denoises a block of tokens at once, seeing what the target saw.

For every token that the target has computed, the outputs of some of its layers become keys and values of
the drafter, in pages that go by the same numbers as the target's: where a prefix is known to the target, its
rows are known here. A block stands after them and is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from engine.config import SamplingParams
from engine.draft.base import Paged, Target
from engine.draft.config import DraftConfig
from engine.draft.files import DraftFile, open_draft
from engine.draft.tree import BRANCHES, Candidates, grow
from engine.errors import UnsupportedModel
from engine.footprint import DRAFT_ROWS
from engine.models.base import DenseConfig
from engine.ops.base import (
    MOST_CHOSEN,
    Buffer,
    Launched,
    Ops,
    Ranks,
    Rows,
    Shape,
    StepInput,
    Weight,
)
from engine.ops.ranking import MOST_RANKED, Late, Ranked, ranked
from engine.quants import dequantize
from engine.types import Draft, Sequence

Logits = NDArray[np.float32]


def project(ops: Ops, w: SimpleNamespace, cfg: DraftConfig) -> None:
    """The target's outputs to keys and values of every layer."""
    rope = cfg.rope
    c = ops.norm(ops.linear(ops.given(cfg.n_features), w.fc), w.enc_output_norm, cfg.eps)
    for i, b in enumerate(w.blk):
        h = ops.norm(c, b.attn_norm, cfg.eps) if cfg.normed_context else c
        ops.store(ops.linear(h, b.attn_k, b.attn_v), i, rope, b.attn_k_norm, cfg.eps)


def forward(ops: Ops, w: SimpleNamespace, cfg: DraftConfig) -> None:
    """A block of tokens and masks to logits."""
    eps, rope = cfg.eps, cfg.rope
    x = ops.embed(w.token_embd)
    if cfg.embedding_scale != 1:
        ops.scale(x, cfg.embedding_scale)
    h = ops.norm(x, w.blk[0].attn_norm, eps)
    next_norms = [b.attn_norm for b in w.blk[1:]] + [w.output_norm]
    for i, (b, next_norm) in enumerate(zip(w.blk, next_norms, strict=True)):

        def attention(h: Buffer, b: SimpleNamespace = b, i: int = i) -> Buffer:
            qkv = ops.linear(h, b.attn_q, b.attn_k, b.attn_v)
            o = ops.attend(
                qkv, i, rope, b.attn_q_norm, b.attn_k_norm, eps, causal=cfg.causal[i],
                window=cfg.windows[i], window_per_row=cfg.window_per_row,
            )  # fmt: skip
            return ops.linear(o, b.attn_output)

        def feed_forward(h: Buffer, b: SimpleNamespace = b) -> Buffer:
            return ops.linear(ops.swiglu(ops.linear(h, b.ffn_gate, b.ffn_up)), b.ffn_down)

        out = _convolved(ops, b, "attn", cfg, h, attention)
        h = ops.add_norm(x, out, b.ffn_norm, eps)
        h = ops.add_norm(x, _convolved(ops, b, "ffn", cfg, h, feed_forward), next_norm, eps)
    ops.head(h, w.output)


def _convolved(
    ops: Ops,
    b: SimpleNamespace,
    part: str,
    cfg: DraftConfig,
    h: Buffer,
    inner: Callable[[Buffer], Buffer],
) -> Buffer:
    """`inner` of h; DFlash 2 has a convolution before and after it, with kernels that h decides."""
    if cfg.conv is None:
        return inner(h)
    base: Weight = getattr(b, f"{part}_conv_base")
    kernels = ops.linear(h, getattr(b, f"{part}_conv_proj"))
    taps = cfg.conv.kernel
    return ops.convolve(inner(ops.convolve(h, kernels, base, 0, taps)), kernels, base, 1, taps)


@dataclass(frozen=True, slots=True)
class _Begun:
    """A block behind the `token` at `place` that was started, and its hidden rows where these are of use."""

    place: int
    token: int
    launched: Launched
    hidden: Rows | None


class DflashDrafter:
    """A `Drafter` of a draft file that fits its target."""

    name = "dflash"

    def __init__(self, file: DraftFile, cfg: DraftConfig, target: Target) -> None:
        """`cfg` is fitted to the target, which is loaded but need not be recorded."""
        self.cfg, self.warnings = cfg, cfg.warnings
        self.needs = cfg.capture
        self.depth = self.reach = min(cfg.block, MOST_CHOSEN) - 1
        self.branches = True
        self._table, self._page = target.limits.pages_per_sequence, target.limits.page_tokens
        self._width = cfg.selector.top_k if cfg.selector else BRANCHES
        self._begun: dict[int, _Begun] = {}
        self._anticipated: dict[int, tuple[int, int]] = {}  # by request, from where on and how many
        self._selector = Selection(file, cfg) if cfg.selector is not None else None
        limits = replace(
            target.limits, rows=max(DRAFT_ROWS, cfg.block), sequences=1, slots=0, tried=0
        )
        shape = Shape(
            n_layers=cfg.n_layers,
            n_embd=cfg.n_embd,
            n_vocab=target.cfg.shape.n_vocab,
            n_heads=cfg.n_heads,
            n_kv_heads=cfg.n_kv_heads,
            head_dim=cfg.head_dim,
        )
        self.paged: Paged | None = (ops := target.ops.beside())
        self._ops = ops
        try:
            w = upload(file, self._ops, target.weights)
            self._ops.allocate(shape, limits)
            with self._ops.recording() as self._project:
                project(self._ops, w, cfg)
            with self._ops.recording((cfg.n_layers,) if self._selector else ()) as self._forward:
                forward(self._ops, w, cfg)
            can_rank = self._width <= MOST_RANKED and cfg.logit_scale > 0
            self._ranks = ops if isinstance(ops, Ranks) and can_rank else None
            if self._ranks is not None:
                self._warm_up(self._ranks)
        except BaseException:
            self._ops.close()
            raise

    def _warm_up(self, ranks: Ranks) -> None:
        """Have kernels built and graphs captured with the load, and not when the first answer waits."""
        sequence = Sequence(0, [0], 1, SamplingParams(), pages=[0])
        for rows in (1 << i for i in range(self.cfg.block.bit_length())):
            self.observe(sequence, 0, rows, np.zeros((rows, self.cfg.n_features), np.float32))
        ranks.ranked(self._launch(ranks, sequence, 0, 0).launched)

    def begin(self, sequence: Sequence, place: int, token: int) -> None:
        if self._ranks is not None and place + self.depth < len(sequence.pages) * self._page:
            self._begun[sequence.request_id] = self._launch(self._ranks, sequence, place, token)

    def propose(self, sequence: Sequence, depth: int, nodes: int) -> Draft:
        n, place, last = min(depth, self.depth), len(sequence.tokens) - 1, sequence.tokens[-1]
        hidden: Rows | None
        if self._ranks is None:
            logits, hidden = self.block(sequence, n)
            if nodes <= n and self._selector is None:
                return Draft.chain(logits.argmax(axis=1).tolist())
            found = ranked(logits, self._width)
        else:
            begun = self._begun.pop(sequence.request_id, None)
            if begun is None or (begun.place, begun.token) != (place, last):
                begun = self._launch(self._ranks, sequence, place, last)
            if nodes <= n and self._selector is None:
                late = Late(begun.launched, self._ranks.ranked)
                return replace(Draft.chain((0,) * n), late=late)
            found, hidden = self._ranks.ranked(begun.launched).first(n, self._width), begun.hidden
        if self._selector is not None:
            assert hidden is not None
            return self._selector.draft(found, np.asarray(hidden)[:n], last, nodes)
        return grow(Candidates(found.ids, found.log_p), nodes)[0]

    def _launch(self, ranks: Ranks, sequence: Sequence, place: int, token: int) -> _Begun:
        """Start a whole block: it takes no longer than a short one, and guesses better."""
        cfg, n = self.cfg, self.depth
        step = self._block(sequence, place, token, n)
        launched = ranks.rank(step, self._forward, cfg.logit_scale, cfg.softcap)
        hidden = self._ops.join([self._ops.hidden()[1 : n + 1]]) if self._selector else None
        return _Begun(place, token, launched, hidden)

    def block(self, sequence: Sequence, n: int) -> tuple[Logits, Logits | None]:
        """Scores (n, V) of the `n` tokens after the last, and their hidden rows where these are of use."""
        step = self._block(sequence, len(sequence.tokens) - 1, sequence.tokens[-1], n)
        logits = self._ops.run(step, self._forward)
        if self.cfg.logit_scale != 1:
            logits = logits * np.float32(self.cfg.logit_scale)
        if (cap := self.cfg.softcap) > 0:
            logits = np.tanh(logits / cap) * np.float32(cap)
        return logits, np.asarray(self._ops.hidden())[1:] if self._selector else None

    def anticipate(self, sequence: Sequence, start: int, n: int, hidden: Rows) -> None:
        """What will not stand lies where the next block does, which is written before it is looked at."""
        self._anticipated.pop(sequence.request_id, None)
        self.observe(sequence, start, n, hidden)
        self._anticipated[sequence.request_id] = start, n

    def observe(self, sequence: Sequence, start: int, n: int, hidden: Rows | None) -> None:
        first, most = self._anticipated.pop(sequence.request_id, (start, 0))
        if first == start and n <= most:
            return
        assert hidden is not None
        none = np.zeros(0, np.int32)
        for at in range(0, n, DRAFT_ROWS):
            rows = hidden[at : min(at + DRAFT_ROWS, n)]
            step = self._step(sequence, start + at, np.zeros(len(rows), np.int32), none)
            self._ops.run(replace(step, given=rows), self._project)

    def _block(self, sequence: Sequence, place: int, token: int, n: int) -> StepInput:
        """A token and `n` masks behind it."""
        tokens = np.full(n + 1, self.cfg.mask, np.int32)
        tokens[0] = token
        return self._step(sequence, place, tokens, np.arange(1, n + 1, dtype=np.int32))

    def _step(
        self,
        sequence: Sequence,
        start: int,
        tokens: NDArray[np.int32],
        logit_rows: NDArray[np.int32],
    ) -> StepInput:
        table = np.zeros((1, self._table), np.int32)
        table[0, : len(sequence.pages)] = sequence.pages
        positions = np.arange(start, start + len(tokens), dtype=np.int32)
        return StepInput(tokens, positions, np.zeros_like(tokens), table, logit_rows)

    def release(self, sequence: Sequence) -> None:
        """What else it knows of a sequence is in the pages, which go by the target's numbers."""
        self._begun.pop(sequence.request_id, None)
        self._anticipated.pop(sequence.request_id, None)

    def memory(self) -> int:
        return sum(self._ops.memory().values())

    def close(self) -> None:
        self._ops.close()


class Selection:
    """DFlash 2's choice among the likeliest tokens of each position, by what was chosen before it."""

    def __init__(self, file: DraftFile, cfg: DraftConfig) -> None:
        assert cfg.selector is not None
        self._hidden = file.tensors["selector_hidden.weight"].dequantize()
        self._predecessor = file.tensors["selector_predecessor.weight"]
        self._successor = file.tensors["selector_successor.weight"]

    def draft(self, found: Ranked, hidden: Logits, last: int, nodes: int) -> Draft:
        """A chain, or with more `nodes` than positions a tree around it."""
        gates = hidden @ self._hidden.T
        ids, log_p = [], []
        previous = last
        for row, candidates, gate in zip(found.logits, found.ids, gates, strict=True):
            tie = dequantize(self._predecessor.data[previous], self._predecessor.type) * gate
            codes = dequantize(self._successor.data[candidates], self._successor.type)
            score = row.astype(np.float64) + codes @ tie
            order = np.argsort(-score, kind="stable")
            score = score[order] - score.max()
            ids.append(candidates[order])
            log_p.append(score - np.log(np.exp(score).sum()))
            previous = int(ids[-1][0])
        if nodes <= len(ids):
            return Draft.chain([int(row[0]) for row in ids])
        return grow(Candidates(np.stack(ids), np.stack(log_p)), nodes)[0]


def upload(file: DraftFile, ops: Ops, target: SimpleNamespace) -> SimpleNamespace:
    """The draft's weights as a tree, `enc.output_norm` as `enc_output_norm`; the embedding and the head are
    the target's where the draft has none.
    """
    n = file.config.n_layers
    root = SimpleNamespace(
        blk=[SimpleNamespace() for _ in range(n)],
        token_embd=target.token_embd,
        output=target.output,
    )
    tensors = {
        name: replace(tensor, shape=(int(np.prod(tensor.shape)),), data=tensor.data.reshape(-1))
        if len(tensor.shape) == 3  # convolutions are read as they lie
        else tensor
        for name, tensor in file.tensors.items()
        if not name.startswith("selector_")
    }
    ops.expect(tensors.values())
    for name, tensor in tensors.items():
        owner, name = root, name.removesuffix(".weight")
        if name.startswith("blk."):
            _, index, name = name.split(".", 2)
            owner = root.blk[int(index)]
        setattr(owner, name.replace(".", "_"), ops.upload(tensor))
    return root


def fitted(file: DraftFile, target: Target) -> DraftConfig:
    """The draft's configuration for a target; refuses one that does not fit, or cannot be run yet."""
    dense = target.cfg if isinstance(target.cfg, DenseConfig) else target.cfg.dense
    cfg = file.config.fitted(target.cfg.shape, dense.rope.base, target.file.name)
    if cfg.gate or cfg.aux_norms:
        raise UnsupportedModel(
            f"{file.path.name} has {'gates' if cfg.gate else 'norms of its inputs'}, which this version"
            " cannot run; use another draft."
        )
    return cfg


def open_drafter(target: Target, path: Path | None) -> DflashDrafter:
    """A DFlash draft file for a target, see `engine.draft.files`."""
    assert path is not None
    file = open_draft(path)
    return DflashDrafter(file, fitted(file, target), target)
