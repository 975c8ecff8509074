"""Qwen3, dense: `general.architecture` = qwen3."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

from engine.gguf import ModelFile
from engine.models.base import DenseConfig, TensorSpec, dense_tensors
from engine.ops.base import Ops


def read_config(file: ModelFile) -> DenseConfig:
    """Rope pairs are (i, i + n_rot/2)."""
    return DenseConfig.from_gguf(file, interleaved=False)


def tensors(cfg: DenseConfig) -> Iterator[TensorSpec]:
    """As llama, and the norms of each head's q and k."""
    return dense_tensors(cfg, qk_norm=True)


def forward(ops: Ops, w: SimpleNamespace, cfg: DenseConfig) -> None:
    """Tokens to logits."""
    x = ops.embed(w.token_embd)
    h = ops.norm(x, w.blk[0].attn_norm, cfg.eps)
    next_norms = [b.attn_norm for b in w.blk[1:]] + [w.output_norm]
    for i, (b, next_norm) in enumerate(zip(w.blk, next_norms, strict=True)):
        qkv = ops.linear(h, b.attn_q, b.attn_k, b.attn_v)
        a = ops.attend(qkv, i, cfg.rope, b.attn_q_norm, b.attn_k_norm, cfg.eps)
        h = ops.add_norm(x, ops.linear(a, b.attn_output), b.ffn_norm, cfg.eps)
        f = ops.swiglu(ops.linear(h, b.ffn_gate, b.ffn_up))
        h = ops.add_norm(x, ops.linear(f, b.ffn_down), next_norm, cfg.eps)
        ops.end_layer(i, x)
    ops.head(h, w.output)
