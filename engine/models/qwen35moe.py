"""Qwen3.5 and 3.6 with experts: `general.architecture` = qwen35moe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace

from engine.errors import ModelFileError
from engine.gguf import ModelFile, meta_int
from engine.models.base import DenseConfig, TensorSpec
from engine.models.qwen35 import HybridConfig, hybrid_forward, hybrid_tensors, read_hybrid
from engine.ops.base import Buffer, Ops


@dataclass(frozen=True, slots=True)
class MoeConfig(HybridConfig):
    """A hybrid decoder whose feed-forward parts are `n_experts`, `n_used` of them for a token, and a
    shared one that every token passes."""

    n_experts: int
    n_used: int
    n_ff_expert: int
    n_ff_shared: int


def read_config(file: ModelFile) -> MoeConfig:
    """As qwen35, and the experts' numbers."""
    arch, meta = file.architecture, file.meta
    hybrid = read_hybrid(file, DenseConfig.from_gguf(file, interleaved=False, experts=True))
    n_experts = meta_int(meta, f"{arch}.expert_count", low=1, high=65536)
    n_used = meta_int(meta, f"{arch}.expert_used_count", low=1)
    if n_used > n_experts:
        raise ModelFileError(f"{arch}.expert_used_count is {n_used}, expected up to {n_experts}.")
    n_ff_expert = meta_int(meta, f"{arch}.expert_feed_forward_length", low=1)
    return MoeConfig(
        hybrid.dense,
        hybrid.recurrent,
        hybrid.delta,
        hybrid.n_nextn,
        n_experts,
        n_used,
        n_ff_expert,
        meta_int(meta, f"{arch}.expert_shared_feed_forward_length", default=n_ff_expert, low=1),
    )


def tensors(cfg: MoeConfig) -> Iterator[TensorSpec]:
    """Every tensor that the file must or may have."""
    embd, n, ff, shared = cfg.dense.n_embd, cfg.n_experts, cfg.n_ff_expert, cfg.n_ff_shared
    return hybrid_tensors(
        cfg,
        {
            "ffn_gate_inp.weight": (n, embd),
            "ffn_gate_exps.weight": (n, ff, embd),
            "ffn_up_exps.weight": (n, ff, embd),
            "ffn_down_exps.weight": (n, embd, ff),
            "ffn_gate_inp_shexp.weight": (1, embd),
            "ffn_gate_shexp.weight": (shared, embd),
            "ffn_up_shexp.weight": (shared, embd),
            "ffn_down_shexp.weight": (embd, shared),
        },
    )


def forward(ops: Ops, w: SimpleNamespace, cfg: MoeConfig) -> None:
    """Tokens to logits."""
    hybrid_forward(ops, w, cfg, feed_forward)


def feed_forward(ops: Ops, h: Buffer, b: SimpleNamespace, cfg: MoeConfig) -> Buffer:
    """The experts of block `b`."""
    stacks = (b.ffn_gate_exps, b.ffn_up_exps, b.ffn_down_exps)
    shared = (b.ffn_gate_shexp, b.ffn_up_shexp, b.ffn_down_shexp)
    return ops.experts(h, b.ffn_gate_inp, *stacks, cfg.n_used, shared, b.ffn_gate_inp_shexp)
