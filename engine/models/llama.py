"""Llama and SmolLM2: `general.architecture` = llama."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

from engine.gguf import ModelFile
from engine.models.base import DenseConfig, TensorSpec, dense_tensors
from engine.ops.base import Ops


def read_config(file: ModelFile) -> DenseConfig:
    """The converter permutes the rows of q and k, so pairs are adjacent: (2i, 2i+1)."""
    return DenseConfig.from_gguf(file, interleaved=True)


def tensors(cfg: DenseConfig) -> Iterator[TensorSpec]:
    """Every tensor that the file must or may have."""
    return dense_tensors(cfg)


def forward(ops: Ops, w: SimpleNamespace, cfg: DenseConfig) -> None:
    """Tokens to logits."""
    x = ops.embed(w.token_embd)
    h = ops.norm(x, w.blk[0].attn_norm, cfg.eps)
    next_norms = [b.attn_norm for b in w.blk[1:]] + [w.output_norm]
    for i, (b, next_norm) in enumerate(zip(w.blk, next_norms, strict=True)):
        a = ops.attend(ops.linear(h, b.attn_q, b.attn_k, b.attn_v), i, cfg.rope)
        h = ops.add_norm(x, ops.linear(a, b.attn_output), b.ffn_norm, cfg.eps)
        f = ops.swiglu(ops.linear(h, b.ffn_gate, b.ffn_up))
        h = ops.add_norm(x, ops.linear(f, b.ffn_down), next_norm, cfg.eps)
        ops.end_layer(i, x)
    ops.head(h, w.output)
