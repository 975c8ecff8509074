"""What a DFlash draft is: read from GGUF metadata or config.json, and fitted to its target."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.errors import ModelFileError, UnsupportedModel
from engine.gguf import meta_array, meta_bool, meta_float, meta_int
from engine.ops.base import Rope, Shape

_USUAL_MASK = 248070  # Qwen3.5


@dataclass(frozen=True, slots=True)
class Conv:
    """DFlash 2: causal convolutions inside the block over `kernel` rows; `group` columns share a kernel."""

    kernel: int
    group: int


@dataclass(frozen=True, slots=True)
class Selector:
    """DFlash 2: chooses among the `top_k` likeliest tokens by codebooks of `rank` numbers."""

    rank: int
    top_k: int


@dataclass(frozen=True, slots=True)
class DraftConfig:
    """A DFlash drafter (arXiv 2602.06036).

    `block` tokens a pass, the last known one included. `capture` are the target's layers whose output is
    read, () until `fitted` where the file names none. `windows` are 0 for full attention. A row at
    position q of a layer with window w sees context from q - w + 1 on, or from P - w on for all rows
    where not `window_per_row` (P is the block's first position). `gate` is the width of the attention
    gates, 0 without. `rope_base` is 0 until `fitted` where the file names none. `unsaid` names what else the
    file does not say: "block size", "mask token", "norm epsilon", "embedding scale", "windows".
    """

    dialect: str
    n_layers: int
    n_embd: int
    n_ff: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    n_features: int
    n_capture: int
    block: int
    mask: int
    capture: tuple[int, ...]
    target_layers: int
    rope_base: float
    eps: float
    windows: tuple[int, ...]
    causal: tuple[bool, ...]
    window_per_row: bool
    n_vocab: int
    max_ctx: int
    embedding_scale: float = 1.0
    logit_scale: float = 1.0
    softcap: float = 0.0
    aux_norms: bool = False
    gate: int = 0
    normed_context: bool = False
    conv: Conv | None = None
    selector: Selector | None = None
    qwen35: bool = False
    unsaid: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()

    @property
    def rope(self) -> Rope:
        """Half-split over the whole head."""
        return Rope(self.head_dim, self.rope_base, interleaved=False)

    def fitted(self, target: Shape, rope_base: float, name: str = "the target") -> DraftConfig:
        """The configuration for a target, with guesses for what the file does not say.

        Raises `UnsupportedModel` with both numbers where the draft is not for this target.
        """

        def refuse(ours: str, theirs: str) -> UnsupportedModel:
            return UnsupportedModel(
                f"The draft does not fit {name}: it was made for {ours}, and the target has {theirs}."
                " Choose the draft that was trained for this model."
            )

        warnings = list(self.warnings)
        if self.n_embd != target.n_embd:
            raise refuse(f"a hidden size of {self.n_embd:,}", f"{target.n_embd:,}")
        if self.n_features != self.n_capture * target.n_embd:
            raise refuse(f"features of {self.n_features:,}", f"{target.n_embd:,} a layer")
        if self.n_vocab and self.n_vocab != target.n_vocab:
            raise refuse(f"a vocabulary of {self.n_vocab:,}", f"{target.n_vocab:,}")
        if self.mask >= target.n_vocab and "mask token" in self.unsaid:
            raise UnsupportedModel(
                f"The draft does not say its mask token, and the usual one, {self.mask:,}, is none of the"
                f" {target.n_vocab:,} tokens of {name}. Get a version of the draft that names it:"
                " mask_token_id in its config.json."
            )
        if not 0 <= self.mask < target.n_vocab:
            raise refuse(f"the mask token {self.mask:,}", f"{target.n_vocab:,} tokens")
        capture = self.capture
        if not capture:
            capture = usual_layers(target.n_layers, self.n_capture, self.qwen35)
            shown = ", ".join(map(str, capture))
            warnings.append(f"The draft does not say which layers it reads; {shown} are a guess.")
        if max(capture) >= target.n_layers:
            raise refuse(f"outputs of layer {max(capture)}", f"layers 0 to {target.n_layers - 1}")
        if self.target_layers and self.target_layers != target.n_layers:
            raise refuse(f"a model of {self.target_layers} layers", str(target.n_layers))
        base = self.rope_base
        if not base:
            base = rope_base
            warnings.append(
                f"The draft does not say its rope base; the target's {base:g} is a guess."
            )
        return replace(self, capture=capture, rope_base=base, warnings=tuple(warnings))


def usual_layers(depth: int, n: int, qwen35: bool = False) -> tuple[int, ...]:
    """The target layers that a draft which names none most likely reads."""
    if n == 1:
        return (depth // 2,)
    if qwen35:
        step = (depth - 2) // (n - 1)
        return tuple(1 + k * step for k in range(n))
    return tuple(round(1 + k * (depth - 4) / (n - 1)) for k in range(n))


class Keys:
    """Typed look-ups that know each dialect's names. `warnings` are what the user is to be told of them, and
    `unsaid` names what is a guess.
    """

    def __init__(self, meta: Mapping[str, Any], dialect: str, where: str) -> None:
        self.dialect, self.where = dialect, where
        self.warnings: list[str] = []
        self.unsaid: set[str] = set()
        self.hf = dialect == "Hugging Face"
        self.arch = "" if self.hf else str(meta.get("general.architecture"))
        if self.hf:
            inner = meta.get("dflash_config")
            rope = meta.get("rope_parameters")
            # The reference looks in dflash_config first.
            self.meta: Mapping[str, Any] = {
                **meta,
                **(rope if isinstance(rope, dict) else {}),
                **(inner if isinstance(inner, dict) else {}),
            }
        else:
            self.meta = meta

    def _find(self, hf: str, gguf: tuple[str, ...]) -> str | None:
        names: tuple[str, ...] = (hf,)
        if not self.hf:
            names = tuple(g if g.startswith("tokenizer.") else f"{self.arch}.{g}" for g in gguf)
        return next((n for n in names if n and self.meta.get(n) is not None), None)

    def whole(
        self,
        hf: str,
        *gguf: str,
        guess: int | None = None,
        what: str = "",
        low: int = 1,
        high: int | None = None,
    ) -> int:
        """A whole number; a missing one is `guess`, or refused without.

        With `what`, its name, the user is told that it is a guess.
        """
        if (key := self._find(hf, gguf)) is None:
            return self._missing(hf, gguf, guess, what)
        return meta_int(self.meta, key, low=low, high=high, where=self.where)

    def number(self, hf: str, *gguf: str, guess: float | None = None, what: str = "") -> float:
        """A number from 0 on, as `whole`."""
        if (key := self._find(hf, gguf)) is None:
            return self._missing(hf, gguf, guess, what)
        return meta_float(self.meta, key, low=0.0, where=self.where)

    def flag(self, hf: str, *gguf: str) -> bool | None:
        """A truth value, a number that stands for one, or None where it is missing."""
        if (key := self._find(hf, gguf)) is None:
            return None
        if type(self.meta[key]) is int:
            return bool(self.meta[key])
        return meta_bool(self.meta, key, where=self.where)

    def numbers(self, hf: str, *gguf: str) -> tuple[int, ...]:
        """A list of whole numbers, () where it is missing."""
        if (key := self._find(hf, gguf)) is None:
            return ()
        return tuple(meta_array(self.meta, key, int, where=self.where))

    def flags(self, *gguf: str) -> tuple[bool, ...]:
        """A list of truth values, () where it is missing."""
        if (key := self._find("", gguf)) is None:
            return ()
        return tuple(meta_array(self.meta, key, bool, where=self.where))

    def words(self, hf: str) -> tuple[str, ...]:
        """A list of words of config.json, () where it is missing."""
        if not self.hf or self.meta.get(hf) is None:
            return ()
        return tuple(meta_array(self.meta, hf, str, where=self.where))

    def n_tokens(self) -> int:
        """The vocabulary that the file says it is for, 0 where it does not."""
        if (n := self.whole("vocab_size", "vocab_size", guess=0)) or self.hf:
            return n
        tokens = self.meta.get("tokenizer.ggml.tokens")
        return len(tokens) if isinstance(tokens, list) else 0

    def _missing(self, hf: str, gguf: tuple[str, ...], guess: Any, what: str) -> Any:
        name = hf if self.hf else f"{self.arch}.{gguf[0]}"
        if guess is None:
            raise ModelFileError(
                f"{self.where}: the metadata has no {name}. The draft is incomplete or made by a faulty"
                " tool; get another version of it."
            )
        if what:
            self.unsaid.add(what)
            self.warnings.append(f"The draft does not say its {what}; {guess:g} is a guess.")
        return guess


def read_config(keys: Keys, shapes: Mapping[str, tuple[int, ...]]) -> DraftConfig:
    """The checked configuration; what the metadata leave out comes from `shapes`, or is guessed."""
    n_layers, n_embd, n_heads, n_kv_heads, head_dim = _dims(keys)
    n_features, capture = _features(keys, shapes, n_embd)
    windows, causal = _attention(keys, n_layers)
    selector = _selector(keys, shapes)
    gate = shapes.get("blk.0.attn_gate.weight", (0,))[0]
    if gate not in (0, n_heads, n_heads * head_dim):
        raise ModelFileError(
            f"{keys.where}: attention gates of {gate} numbers, expected {n_heads} or"
            f" {n_heads * head_dim}."
        )
    n_vocab = keys.n_tokens()
    if selector is not None:
        n_vocab = shapes.get("selector_predecessor.weight", (n_vocab,))[0]
    gemma = keys.arch == "gemma4-dflash-draft"
    aux = "aux_norm.0.weight" in shapes
    if keys.hf and isinstance(scaling := keys.meta.get("rope_scaling"), dict):
        keys.warnings.append(f"The draft's rope scaling {scaling} is not applied.")
    return DraftConfig(
        dialect=keys.dialect,
        n_layers=n_layers,
        n_embd=n_embd,
        n_ff=keys.whole("intermediate_size", "feed_forward_length"),
        n_heads=n_heads,
        n_kv_heads=n_kv_heads,
        head_dim=head_dim,
        n_features=n_features,
        n_capture=n_features // n_embd,
        block=keys.whole(
            "block_size", "dflash.block_size", "block_size", guess=16, what="block size", low=2,
            high=256,
        ),
        mask=keys.whole(
            "mask_token_id", "dflash.mask_token_id", "tokenizer.ggml.mask_token_id",
            guess=_USUAL_MASK, what="mask token", low=0,
        ),
        capture=capture,
        target_layers=keys.whole("num_target_layers", guess=0) if keys.hf else 0,
        rope_base=keys.number("rope_theta", "rope.freq_base", guess=0.0),
        eps=keys.number(
            "rms_norm_eps", "attention.layer_norm_rms_epsilon", guess=1e-6, what="norm epsilon"
        ),
        windows=windows,
        causal=causal,
        window_per_row=keys.dialect != "Lucebox",
        n_vocab=n_vocab,
        max_ctx=keys.whole("max_position_embeddings", "context_length", guess=1 << 30),
        embedding_scale=keys.number(
            "input_embedding_scale", "embedding_scale", guess=math.sqrt(n_embd) if gemma else 1.0,
            what="embedding scale" if gemma else "",
        ),
        logit_scale=keys.number("output_multiplier", "logit_scale", guess=1.0),
        softcap=keys.number("final_logit_softcapping", "final_logit_softcapping", guess=0.0),
        aux_norms=aux,
        gate=gate,
        normed_context=bool(gate) or aux or bool(keys.flag("", "dflash.context_kv_layer_norm")),
        conv=_conv(keys, shapes, n_embd),
        selector=selector,
        qwen35=keys.arch == "qwen35-dflash-draft",
        unsaid=frozenset(keys.unsaid),
        warnings=tuple(keys.warnings),
    )  # fmt: skip


def _features(
    keys: Keys, shapes: Mapping[str, tuple[int, ...]], n_embd: int
) -> tuple[int, tuple[int, ...]]:
    """Width of what is read of the target, and its layers, () where the file names none."""
    if (fc := shapes.get("fc.weight")) is None:
        raise ModelFileError(
            f"{keys.where}: there is no tensor fc.weight, which every DFlash draft has. It is another model,"
            " or a part of a draft; choose the whole draft."
        )
    if len(fc) != 2 or fc[1] < 1 or fc[1] % n_embd:
        raise ModelFileError(
            f"{keys.where}: fc.weight is {fc}, expected columns in multiples of {n_embd:,}."
        )
    n_features, n_capture = fc[1], fc[1] // n_embd
    claimed = keys.whole("", "dflash.n_target_features", guess=n_features)
    if claimed != n_features:
        keys.warnings.append(
            f"The draft claims {claimed:,} features and its weights have {n_features:,}."
        )
    capture = keys.numbers("target_layer_ids", "dflash.target_layer_ids", "target_layers")
    if keys.dialect == "llama.cpp":
        capture = tuple(layer - 1 for layer in capture)  # it counts the layer that reads the output
    if capture and (len(capture) != n_capture or len({*capture}) != n_capture or min(capture) < 0):
        raise ModelFileError(
            f"{keys.where}: the draft reads layers {list(capture)}, expected {n_capture} different ones"
            f" for {n_features:,} features."
        )
    return n_features, capture


def _selector(keys: Keys, shapes: Mapping[str, tuple[int, ...]]) -> Selector | None:
    if "selector_hidden.weight" not in shapes:
        return None
    rank = keys.whole("selector_rank", "selector_rank")
    return Selector(rank, keys.whole("selector_top_k", "selector_top_k", high=64))


def _conv(keys: Keys, shapes: Mapping[str, tuple[int, ...]], n_embd: int) -> Conv | None:
    if "blk.0.attn_conv_base" not in shapes:
        return None
    kernel = keys.whole("conv_kernel_size", "conv_kernel_size", high=16)
    conv = Conv(kernel, keys.whole("conv_group_size", "conv_group_size"))
    if n_embd % conv.group:
        raise ModelFileError(
            f"{keys.where}: groups of {conv.group} columns do not divide {n_embd:,}."
        )
    return conv


def _dims(keys: Keys) -> tuple[int, int, int, int, int]:
    n_embd = keys.whole("hidden_size", "embedding_length")
    n_heads = keys.whole("num_attention_heads", "attention.head_count")
    n_kv_heads = keys.whole("num_key_value_heads", "attention.head_count_kv", guess=n_heads)
    head_dim = keys.whole("head_dim", "attention.key_length", guess=n_embd // n_heads)
    value_dim = keys.whole("", "attention.value_length", guess=head_dim)
    if n_heads % n_kv_heads or head_dim % 2 or value_dim != head_dim:
        raise ModelFileError(
            f"{keys.where}: {n_heads} heads over {n_kv_heads} key/value heads of {head_dim} and"
            f" {value_dim} numbers; expected whole groups and one even size."
        )
    return (
        keys.whole("num_hidden_layers", "block_count", high=64),
        n_embd,
        n_heads,
        n_kv_heads,
        head_dim,
    )


def _attention(keys: Keys, n_layers: int) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Window and causality of each layer.

    A sliding layer is causal inside the block and a full one is not, unless the file says so for all:
    `is_causal` of config.json, or `attention.causal` of llama.cpp's files. Lucebox writes
    `attention.causal` too and means the context; it is not read there.
    """
    window = keys.whole("sliding_window", "attention.sliding_window", guess=0, low=0)
    if keys.hf:
        kinds = keys.words("layer_types")
        sliding = tuple(kind == "sliding_attention" for kind in kinds)
        if not kinds and keys.flag("use_sliding_window") and window:
            sliding = (True,) * n_layers
        elif not kinds:
            sliding = (False,) * n_layers
    else:
        sliding = keys.flags("attention.sliding_window_pattern")
        if not sliding and window:
            sliding = (True,) * (n_layers - 1) + (False,)
            keys.unsaid.add("windows")
            keys.warnings.append(
                "The draft does not say which layers slide; all but the last is a guess."
            )
        elif not sliding:
            sliding = (False,) * n_layers
    if len(sliding) != n_layers:
        raise ModelFileError(
            f"{keys.where}: a sliding pattern of {len(sliding)} layers, expected {n_layers}."
        )
    if any(sliding) and not window:
        raise ModelFileError(f"{keys.where}: layers slide over a window that is not given.")
    windows = tuple(window if s else 0 for s in sliding)
    said = None
    if keys.dialect != "Lucebox":
        said = keys.flag("is_causal", "attention.causal")
    return windows, tuple(s if said is None else said for s in sliding)
