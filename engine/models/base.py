"""What dense decoder files share: their configuration, their tensors and the rotary embedding."""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Protocol

import numpy as np

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import ModelFile, meta_float, meta_int, meta_str
from engine.ops.base import Ops, Rope, Shape


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor that a model file expects: GGUF name and shape, (out, in) for a matrix.

    An `unused` one is checked but not loaded.
    """

    name: str
    shape: tuple[int, ...]
    optional: bool = False
    unused: bool = False


@dataclass(frozen=True, slots=True)
class DenseConfig:
    """A dense decoder: RMSNorm, grouped-query attention over the whole context, SwiGLU."""

    n_layers: int
    n_embd: int
    n_ff: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_vocab: int
    max_ctx: int
    eps: float
    rope: Rope

    @classmethod
    def from_gguf(cls, file: ModelFile, interleaved: bool, experts: bool = False) -> DenseConfig:
        """Read and check `<architecture>.*`; `interleaved` is the architecture's rope pairing.

        With `experts` the feed-forward part is the architecture's own, and `n_ff` is 0.
        """
        arch, meta = file.architecture, file.meta
        n_embd = meta_int(meta, f"{arch}.embedding_length", low=1)
        n_heads = meta_int(meta, f"{arch}.attention.head_count", low=1)
        n_kv_heads = meta_int(meta, f"{arch}.attention.head_count_kv", default=n_heads, low=1)
        if n_heads % n_kv_heads:
            raise ModelFileError(
                f"{arch}.attention.head_count is {n_heads}, expected a multiple of the"
                f" {n_kv_heads} key/value heads."
            )
        head_dim = meta_int(meta, f"{arch}.attention.key_length", default=n_embd // n_heads, low=2)
        value_dim = meta_int(meta, f"{arch}.attention.value_length", default=head_dim, low=2)
        if value_dim != head_dim:
            raise UnsupportedModel(
                f"Keys have {head_dim} dims and values {value_dim}; this version needs them equal."
            )
        if not experts and meta_int(meta, f"{arch}.expert_count", default=0):
            raise UnsupportedModel(
                f"A {arch} file with experts; this version runs only its dense form."
            )
        n_rot = meta_int(meta, f"{arch}.rope.dimension_count", default=head_dim, low=2)
        if n_rot % 2 or n_rot > head_dim:
            raise ModelFileError(
                f"{arch}.rope.dimension_count is {n_rot}, expected an even number up to {head_dim}."
            )
        max_ctx = meta_int(meta, f"{arch}.context_length", low=1)
        embd = file.tensors.get("token_embd.weight")
        if embd is None or len(embd.shape) != 2:
            raise ModelFileError(
                "The file has no matrix token_embd.weight; it is not a whole model."
            )
        return cls(
            n_layers=meta_int(meta, f"{arch}.block_count", low=1, high=1024),
            n_embd=n_embd,
            n_ff=0 if experts else meta_int(meta, f"{arch}.feed_forward_length", low=1),
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            head_dim=head_dim,
            n_vocab=embd.shape[0],
            max_ctx=max_ctx,
            eps=meta_float(meta, f"{arch}.attention.layer_norm_rms_epsilon", low=0.0, high=1.0),
            rope=read_rope(file, n_rot, interleaved, max_ctx),
        )

    @property
    def shape(self) -> Shape:
        """What a backend must allocate."""
        return Shape(
            n_layers=self.n_layers,
            n_embd=self.n_embd,
            n_vocab=self.n_vocab,
            n_heads=self.n_heads,
            n_kv_heads=self.n_kv_heads,
            head_dim=self.head_dim,
        )


def dense_tensors(cfg: DenseConfig, qk_norm: bool = False) -> Iterator[TensorSpec]:
    """The tensors of a dense decoder; `qk_norm` adds the per-head norms of q and k."""
    embd, q_dim, kv_dim = cfg.n_embd, cfg.n_heads * cfg.head_dim, cfg.n_kv_heads * cfg.head_dim
    yield TensorSpec("token_embd.weight", (cfg.n_vocab, embd))
    yield TensorSpec("output_norm.weight", (embd,))
    yield TensorSpec("output.weight", (cfg.n_vocab, embd), optional=True)
    yield TensorSpec("rope_freqs.weight", (cfg.rope.n_rot // 2,), optional=True)
    for i in range(cfg.n_layers):
        block = {
            "attn_norm": (embd,),
            "attn_q": (q_dim, embd),
            "attn_k": (kv_dim, embd),
            "attn_v": (kv_dim, embd),
            "attn_output": (embd, q_dim),
            "ffn_norm": (embd,),
            "ffn_gate": (cfg.n_ff, embd),
            "ffn_up": (cfg.n_ff, embd),
            "ffn_down": (embd, cfg.n_ff),
        }
        if qk_norm:
            block |= {"attn_q_norm": (cfg.head_dim,), "attn_k_norm": (cfg.head_dim,)}
        for name, shape in block.items():
            yield TensorSpec(f"blk.{i}.{name}.weight", shape)


def read_rope(file: ModelFile, n_rot: int, interleaved: bool, max_ctx: int) -> Rope:
    """The rotary embedding of `<architecture>.rope.*`, with linear and YaRN scaling.

    YaRN: arXiv 2309.00071; `rope_freqs.weight` divides the angles (Llama 3).
    """
    arch, meta = file.architecture, file.meta
    base = meta_float(meta, f"{arch}.rope.freq_base", default=10000.0, low=1.0)
    kind = meta_str(meta, f"{arch}.rope.scaling.type", default="none")
    factor = meta_float(meta, f"{arch}.rope.scaling.factor", default=1.0, low=1e-6)
    factors = None
    if (freqs := file.tensors.get("rope_freqs.weight")) is not None:
        if freqs.type.name != "F32" or freqs.shape != (n_rot // 2,):
            raise ModelFileError(
                f"rope_freqs.weight is {freqs.type.name} {freqs.shape}, expected F32 ({n_rot // 2},)."
            )
        factors = freqs.data.view(np.float32).copy()
        if not np.all(np.isfinite(factors)) or np.any(factors <= 0):
            raise ModelFileError("rope_freqs.weight holds values that are not positive numbers.")
    if kind == "none" or factor == 1.0:
        return Rope(n_rot, base, interleaved, factors=factors)
    if kind == "linear":
        return Rope(n_rot, base, interleaved, scale=1.0 / factor, factors=factors)
    if kind == "yarn" and factors is None:
        original = meta_int(
            meta, f"{arch}.rope.scaling.original_context_length", default=max_ctx, low=1
        )
        attn = meta_float(meta, f"{arch}.rope.scaling.attn_factor", default=1.0)
        fast = meta_float(meta, f"{arch}.rope.scaling.yarn_beta_fast", default=32.0)
        slow = meta_float(meta, f"{arch}.rope.scaling.yarn_beta_slow", default=1.0)
        return Rope(
            n_rot,
            base,
            interleaved,
            magnitude=attn * (0.1 * math.log(factor) + 1.0),
            factors=yarn_factors(n_rot, base, factor, original, fast, slow),
        )
    raise UnsupportedModel(
        f"{arch}.rope.scaling.type is {kind!r}; this version knows none, linear and yarn."
    )


def yarn_factors(
    n_rot: int, base: float, factor: float, original: int, fast: float, slow: float
) -> np.ndarray:
    """Divisors of the angles (n_rot/2,): 1 for fast pairs, `factor` for slow ones, a ramp between."""

    def pair_turning(turns: float) -> float:
        return n_rot * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(pair_turning(fast)), 0)
    high = min(math.ceil(pair_turning(slow)), n_rot - 1)
    pair = np.arange(n_rot // 2, dtype=np.float64)
    slowness = np.clip((pair - low) / max(0.001, high - low), 0.0, 1.0)
    return (1.0 / (slowness / factor + (1.0 - slowness))).astype(np.float32)


class Model(Protocol):
    """What the module of an architecture offers."""

    def read_config(self, file: ModelFile) -> DenseConfig:
        """The checked configuration of a file."""
        ...

    def tensors(self, cfg: DenseConfig) -> Iterator[TensorSpec]:
        """Every tensor that the file must or may have."""
        ...

    def forward(self, ops: Ops, w: SimpleNamespace, cfg: DenseConfig) -> None:
        """The network from tokens to logits, a plain loop over layers."""
        ...


def is_known(architecture: str) -> bool:
    """Whether a model file for this `general.architecture` exists."""
    if not architecture.isidentifier() or architecture in ("base", "__init__"):
        return False
    return importlib.util.find_spec(f"engine.models.{architecture}") is not None


def model_of(architecture: str) -> Model:
    """The module named like `general.architecture`; raises `UnsupportedModel`."""
    if not is_known(architecture):
        raise UnsupportedModel(
            f"This version cannot run the architecture {architecture!r}. A newer version may; see Models"
            " for the ones that run here."
        )
    module: Model = importlib.import_module(f"engine.models.{architecture}")
    return module
