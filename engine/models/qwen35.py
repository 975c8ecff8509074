"""Qwen3.5, 3.6 and 3.8, dense: `general.architecture` = qwen35.

Most layers are Gated DeltaNet, every n-th is gated full attention. The converter has put the value heads
in tiled order (v-head j with k-head j % n_k_heads) and stores ssm_a as -exp(A_log).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import ModelFile, meta_array, meta_int
from engine.models.base import DenseConfig, TensorSpec
from engine.ops.base import Buffer, DeltaShape, Ops, Shape


@dataclass(frozen=True, slots=True)
class HybridConfig:
    """A hybrid decoder: `recurrent` says per layer whether it is DeltaNet; `n_nextn` MTP blocks follow."""

    dense: DenseConfig
    recurrent: tuple[bool, ...]
    delta: DeltaShape
    n_nextn: int

    @property
    def n_layers(self) -> int:
        """Layers of the trunk."""
        return len(self.recurrent)

    @property
    def n_vocab(self) -> int:
        """Rows of the output head."""
        return self.dense.n_vocab

    @property
    def shape(self) -> Shape:
        """What a backend must allocate."""
        return replace(self.dense.shape, n_layers=self.n_layers, delta=self.delta)


def read_config(file: ModelFile) -> HybridConfig:
    """Rope pairs are (i, i + n_rot/2) of the first n_rot dims; for text its sections do not matter."""
    return read_hybrid(file, DenseConfig.from_gguf(file, interleaved=False))


def read_hybrid(file: ModelFile, dense: DenseConfig) -> HybridConfig:
    """The recurrent part of a hybrid file; raises `ModelFileError`, `UnsupportedModel`."""
    arch, meta = file.architecture, file.meta
    n_nextn = meta_int(meta, f"{arch}.nextn_predict_layers", default=0, low=0, high=8)
    n_layers = dense.n_layers - n_nextn
    key = f"{arch}.attention.recurrent_layers"
    if key in meta:
        recurrent = tuple(bool(x) for x in meta_array(meta, key, bool))[:n_layers]
    else:
        every = meta_int(meta, f"{arch}.full_attention_interval", default=4, low=1)
        recurrent = tuple((i + 1) % every != 0 for i in range(n_layers))
    if len(recurrent) != n_layers or n_layers < 1:
        raise ModelFileError(f"{key} has {len(recurrent)} entries, expected {n_layers}.")
    head_dim = meta_int(meta, f"{arch}.ssm.state_size", low=1)
    n_k = meta_int(meta, f"{arch}.ssm.group_count", low=1)
    n_v = meta_int(meta, f"{arch}.ssm.time_step_rank", low=1)
    inner = meta_int(meta, f"{arch}.ssm.inner_size", low=1)
    if inner != n_v * head_dim or n_v % n_k:
        raise UnsupportedModel(
            f"{arch}.ssm: {n_v} value heads of {head_dim} with inner size {inner} and {n_k} key heads;"
            " expected inner size = value heads * state size, and a multiple of the key heads."
        )
    conv_kernel = meta_int(meta, f"{arch}.ssm.conv_kernel", low=2, high=8)
    delta = DeltaShape(recurrent.count(True), n_k, n_v, head_dim, conv_kernel)
    return HybridConfig(dense, recurrent, delta, n_nextn)


def tensors(cfg: HybridConfig) -> Iterator[TensorSpec]:
    """Every tensor that the file must or may have."""
    d = cfg.dense
    ffn = {
        "ffn_gate": (d.n_ff, d.n_embd),
        "ffn_up": (d.n_ff, d.n_embd),
        "ffn_down": (d.n_embd, d.n_ff),
    }
    return hybrid_tensors(cfg, {f"{name}.weight": shape for name, shape in ffn.items()})


def hybrid_tensors(cfg: HybridConfig, ffn: dict[str, tuple[int, ...]]) -> Iterator[TensorSpec]:
    """The tensors of a hybrid decoder around the feed-forward part `ffn` of each layer."""
    d, s = cfg.dense, cfg.delta
    embd, inner = d.n_embd, s.n_v_heads * s.head_dim
    q_dim, kv_dim = d.n_heads * d.head_dim, d.n_kv_heads * d.head_dim
    around = {"attn_norm.weight": (embd,), "post_attention_norm.weight": (embd,), **ffn}
    attention = {
        "attn_q.weight": (2 * q_dim, embd),
        "attn_k.weight": (kv_dim, embd),
        "attn_v.weight": (kv_dim, embd),
        "attn_q_norm.weight": (d.head_dim,),
        "attn_k_norm.weight": (d.head_dim,),
        "attn_output.weight": (embd, q_dim),
    }
    recurrent = {
        "attn_qkv.weight": (s.qkv, embd),
        "attn_gate.weight": (inner, embd),
        "ssm_alpha.weight": (s.n_v_heads, embd),
        "ssm_beta.weight": (s.n_v_heads, embd),
        "ssm_conv1d.weight": (s.qkv, s.conv_kernel),
        "ssm_dt.bias": (s.n_v_heads,),
        "ssm_a": (s.n_v_heads,),
        "ssm_norm.weight": (s.head_dim,),
        "ssm_out.weight": (embd, inner),
    }
    yield TensorSpec("token_embd.weight", (d.n_vocab, embd))
    yield TensorSpec("output_norm.weight", (embd,))
    yield TensorSpec("output.weight", (d.n_vocab, embd), optional=True)
    for i, is_recurrent in enumerate(cfg.recurrent):
        for name, shape in (around | (recurrent if is_recurrent else attention)).items():
            yield TensorSpec(f"blk.{i}.{name}", shape)
    nextn: dict[str, tuple[int, ...]] = {
        "nextn.eh_proj.weight": (embd, 2 * embd),
        "nextn.enorm.weight": (embd,),
        "nextn.hnorm.weight": (embd,),
        "nextn.shared_head_norm.weight": (embd,),
        "nextn.embed_tokens.weight": (d.n_vocab, embd),
        "nextn.shared_head_head.weight": (d.n_vocab, embd),
    }
    for i in range(cfg.n_layers, cfg.n_layers + cfg.n_nextn):
        for name, shape in (around | attention | nextn).items():
            yield TensorSpec(f"blk.{i}.{name}", shape, optional=True, unused=True)


def forward(ops: Ops, w: SimpleNamespace, cfg: HybridConfig) -> None:
    """Tokens to logits."""
    hybrid_forward(ops, w, cfg, feed_forward)


def feed_forward(ops: Ops, h: Buffer, b: SimpleNamespace, cfg: HybridConfig) -> Buffer:
    """The feed-forward part of block `b`."""
    return ops.linear(ops.swiglu(ops.linear(h, b.ffn_gate, b.ffn_up)), b.ffn_down)


def hybrid_forward(ops: Ops, w: SimpleNamespace, cfg: HybridConfig, feed_forward) -> None:  # type: ignore[no-untyped-def]
    """The layers of a hybrid decoder around `feed_forward(ops, h, block, cfg)`."""
    eps = cfg.dense.eps
    x = ops.embed(w.token_embd)
    h = ops.norm(x, w.blk[0].attn_norm, eps)
    next_norms = [b.attn_norm for b in w.blk[1:]] + [w.output_norm]
    n_delta = n_kv = 0
    for i, (b, next_norm) in enumerate(zip(w.blk, next_norms, strict=True)):
        if cfg.recurrent[i]:
            mixed = ops.linear(h, b.attn_qkv, b.attn_gate, b.ssm_alpha, b.ssm_beta)
            o = ops.delta(mixed, n_delta, b.ssm_conv1d, b.ssm_dt_bias, b.ssm_a, b.ssm_norm, eps)
            out = ops.linear(o, b.ssm_out)
            n_delta += 1
        else:
            qkv = ops.linear(h, b.attn_q, b.attn_k, b.attn_v)
            o = ops.attend(qkv, n_kv, cfg.dense.rope, b.attn_q_norm, b.attn_k_norm, eps, gated=True)
            out = ops.linear(o, b.attn_output)
            n_kv += 1
        h = ops.add_norm(x, out, b.post_attention_norm, eps)
        h = ops.add_norm(x, feed_forward(ops, h, b, cfg), next_norm, eps)
        ops.end_layer(i, x)
    ops.head(h, w.output)
