"""What of a model file decides over memory, and the sums for its weights, context and work space."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from engine.card_footprint import LIBRARY, WORD, draft_step_on_card, shown_to_draft, steps_on_card
from engine.config import EngineConfig, Precision, Spec
from engine.draft.shipped import shipped_draft
from engine.gguf import HeaderSummary, read_header
from engine.gguf_header import TensorInfo
from engine.ops.cuda_device import bytes_on_card
from engine.scheduler import MOST_GUESSED

PAGE_TOKENS = 64
CHUNK = 512
"""Tokens of a prompt in one step, where nobody chose."""
_CHECKPOINTS = 8  # recurrent states that remember prefixes
DRAFT_ROWS = 256
"""Rows that a draft is shown at once."""
_BYTES_PER_WORD = 512  # what a tokenizer holds for each word of its vocabulary, measured
_BYTES_PER_VALUE = 5.5  # an intermediate value: float32 and, for fast products, its 8-bit code
# Bytes that the CPU keeps for a block of the file's; scales of 4 and 6 bits grow to 8. Matrices of other
# types become f16, or f32 for exact products. `kernels.cpu` has the last word; a test compares.
_KEPT = {
    "F32": 4, "F16": 2, "BF16": 2, "Q4_0": 18, "Q4_1": 20, "Q5_0": 22, "Q5_1": 24, "Q8_0": 34,
    "Q2_K": 100, "Q3_K": 114, "Q4_K": 148, "Q5_K": 180, "Q6_K": 210, "IQ4_NL": 18, "IQ4_XS": 138,
    "MXFP4": 17,
}  # fmt: skip


@dataclass(slots=True)
class _Weights:
    """Sums over tensors: `kept` bytes and `loose` weights, as the processor has them; bytes `on_card`."""

    kept: int = 0
    loose: int = 0
    on_card: int = 0

    def add(self, info: TensorInfo) -> None:
        """Count one more."""
        # The processor keeps rows by sixteen.
        rows = max(1, math.prod(info.shape[:-1]))
        n_blocks = info.n_bytes // info.type.bytes // rows * (-(-rows // 16) * 16)
        self.on_card += bytes_on_card(info.shape, info.type.id)
        if len(info.shape) == 1:
            self.kept += 4 * info.shape[0]
        elif info.type.name in _KEPT:
            self.kept += _KEPT[info.type.name] * n_blocks
        else:
            self.loose += info.type.block * n_blocks


@dataclass(frozen=True, slots=True)
class Footprint:
    """What of a file decides over memory; 0 where the file does not say.

    `weights` bytes of matrices as the processor keeps them, and `loose` weights that it keeps as plain
    floats; `card_weights` bytes of all on a graphics card;
    `context` tokens of training, `kv_values` keys and values of a token in all layers, `state` bytes of
    recurrent state a sequence, `row` bytes of intermediate values a token, `n_vocab` words. `tried_row` are
    bytes that recurrent layers keep of a guessed token until it is verified. `draft` is that of the file's
    own draft layer, `shipped` of the draft that comes with Lucebox for it. On a card steps take `card_row`
    bytes a row, `card_step` in any case and `card_tried` for each guess; a draft reads `shown` values of a
    token of its target's layers.
    """

    weights: int
    loose: int
    context: int
    kv_values: int
    row: int
    n_vocab: int
    state: int = 0
    tried_row: int = 0
    draft: Footprint | None = None
    shipped: Footprint | None = None
    card_weights: int = 0
    card_row: int = 0
    card_step: int = 0
    card_tried: int = 0
    shown: int = 0

    @classmethod
    def of(cls, header: HeaderSummary) -> Footprint:
        """Read it from a header; never raises, whatever the file holds."""
        arch, meta = header.architecture, header.meta
        blocks = _number(meta, f"{arch}.block_count")
        layers = max(0, blocks - _number(meta, f"{arch}.nextn_predict_layers"))
        embd = _number(meta, f"{arch}.embedding_length")
        heads = _largest(meta, f"{arch}.attention.head_count")
        key = _number(meta, f"{arch}.attention.key_length") or (embd // heads if heads else 0)
        value = _number(meta, f"{arch}.attention.value_length") or key
        kv_heads = meta.get(f"{arch}.attention.head_count_kv", heads)
        if isinstance(kv_heads, list):
            all_kv_heads = sum(n for n in kv_heads if type(n) is int and 0 < n < 1 << 40)
        else:
            kv_heads = _number(meta, f"{arch}.attention.head_count_kv") or heads
            all_kv_heads = _attention_layers(header, layers) * kv_heads
        ff = _largest(meta, f"{arch}.feed_forward_length") or _number(
            meta, f"{arch}.expert_feed_forward_length"
        )
        words = meta.get("tokenizer.ggml.tokens")
        own, drafting = _Weights(), _Weights()
        # Of the blocks after the layers the first may draft, and the others are not loaded.
        after = tuple(f"blk.{i}." for i in range(layers, min(blocks, layers + 8)))
        for name, info in header.infos.items():
            if not name.startswith(after[1:]):
                (drafting if name.startswith(after[:1]) else own).add(info)
        own_kv = kv_heads * (key + value) if type(kv_heads) is int else 0
        draft = cls(
            weights=drafting.kept,
            loose=drafting.loose,
            context=0,
            kv_values=own_kv,
            row=0,
            n_vocab=0,
            card_weights=drafting.on_card,
            card_step=draft_step_on_card(header, str(layers)),
            shown=embd,
        )
        shipped = shipped_draft(header)
        n_vocab = len(words) if isinstance(words, list) else 0
        card_row, card_step, card_tried = steps_on_card(header, n_vocab)
        values = 7 * embd + 5 * heads * key + 3 * ff + _more_values(header)
        return cls(
            weights=own.kept,
            loose=own.loose,
            draft=draft if drafting.on_card else None,
            shipped=cls.of(read_header(shipped)) if shipped else None,
            card_weights=own.on_card,
            context=_number(meta, f"{arch}.context_length"),
            kv_values=all_kv_heads * (key + value),
            state=_state_bytes(header),
            tried_row=_tried_bytes(header),
            row=int(values * _BYTES_PER_VALUE),
            n_vocab=n_vocab,
            card_row=card_row,
            card_step=card_step,
            card_tried=card_tried,
            shown=shown_to_draft(header),
        )

    def model(self, config: EngineConfig, on_card: bool = False) -> int:
        """Bytes of the weights."""
        return self.card_weights if on_card else self.weights + self.loose * float_bytes(config)

    def page(self, config: EngineConfig, on_card: bool = False) -> int:
        """Bytes of one page of keys and values, all layers; a card always keeps f16."""
        return self.kv_values * PAGE_TOKENS * (2 if on_card else float_bytes(config))

    def slots(self, config: EngineConfig) -> int:
        """Recurrent states: one for each sequence at once, the others remember prefixes."""
        return config.max_concurrency + _CHECKPOINTS if self.state else 0

    def work(self, config: EngineConfig, on_card: bool = False) -> int:
        """Bytes of step buffers, logits, recurrent states and, on the processor, vocabulary."""
        guessed = MOST_GUESSED if config.spec is not Spec.OFF else 0
        rows = (config.prefill_chunk or CHUNK) + config.max_concurrency + guessed
        if on_card and self.card_row:
            states = self.slots(config) * self.state + guessed * self.card_tried
            return _whole(rows) * self.card_row + self.card_step + LIBRARY + states
        logits = max(config.max_concurrency, guessed) * self.n_vocab * 4
        states = self.slots(config) * self.state + guessed * self.tried_row
        return rows * self.row + logits + states + self.n_vocab * _BYTES_PER_WORD

    def beside(self, target: Footprint, config: EngineConfig) -> int:
        """Bytes of a draft's steps on a card, of what its target keeps for it, and of logits."""
        if not self.shown:
            states = (config.max_concurrency + 1) * self.state
            return DRAFT_ROWS * self.card_row + self.card_step + states
        kept = _whole((config.prefill_chunk or CHUNK) + config.max_concurrency + MOST_GUESSED)
        shown = 4 * kept + 6 * DRAFT_ROWS
        rows = 64 * self.card_row
        return shown * self.shown + rows + self.card_step + target.n_vocab * WORD


def _whole(rows: int) -> int:
    """Rows that buffers of a card have for so many."""
    return -(-rows // 64) * 64


def _attention_layers(header: HeaderSummary, layers: int) -> int:
    """How many of `layers` keep keys and values: in hybrid models only some."""
    arch, meta = header.architecture, header.meta
    recurrent = meta.get(f"{arch}.attention.recurrent_layers")
    if isinstance(recurrent, list):
        return sum(not r for r in recurrent[:layers])
    return layers // max(1, _number(meta, f"{arch}.full_attention_interval"))


def _more_values(header: HeaderSummary) -> int:
    """Intermediate values a token of recurrent layers, gated attention and experts."""
    arch, meta = header.architecture, header.meta

    def number(key: str) -> int:
        return _number(meta, f"{arch}.{key}")

    more = number("expert_used_count") * number("expert_feed_forward_length")
    more += number("expert_count")
    if size := number("ssm.state_size"):
        more += (2 * number("ssm.group_count") + 3 * number("ssm.time_step_rank")) * size
        more += _largest(meta, f"{arch}.attention.head_count") * number("attention.key_length")
    return more


def _state_bytes(header: HeaderSummary) -> int:
    """Matrices and convolution tails of all Gated DeltaNet layers, float32."""
    arch, meta = header.architecture, header.meta
    size = _number(meta, f"{arch}.ssm.state_size")
    n_v, n_k = (_number(meta, f"{arch}.ssm.{k}") for k in ("time_step_rank", "group_count"))
    tail = max(0, _number(meta, f"{arch}.ssm.conv_kernel") - 1)
    layers = sum(name.endswith(".ssm_conv1d.weight") for name in header.infos)
    return layers * 4 * size * (n_v * size + tail * (2 * n_k + n_v))


def _tried_bytes(header: HeaderSummary) -> int:
    """What all Gated DeltaNet layers keep of a guessed token: q, k, v and gates, float32."""
    arch, meta = header.architecture, header.meta
    size = _number(meta, f"{arch}.ssm.state_size")
    n_v, n_k = (_number(meta, f"{arch}.ssm.{k}") for k in ("time_step_rank", "group_count"))
    layers = sum(name.endswith(".ssm_conv1d.weight") for name in header.infos)
    return layers * 4 * (size * (2 * n_k + n_v) + 2 * n_v)


def float_bytes(config: EngineConfig) -> int:
    """f16 for fast products; exact ones keep f32 throughout."""
    return 4 if config.precision is Precision.EXACT else 2


def _number(meta: Mapping[str, Any], key: str) -> int:
    """A positive whole number of the metadata, else 0."""
    value = meta.get(key)
    return value if type(value) is int and 0 < value < 1 << 40 else 0


def _largest(meta: Mapping[str, Any], key: str) -> int:
    """As `_number`; the largest of a list that has one for each layer."""
    value = meta.get(key)
    if isinstance(value, list):
        return max((n for n in value if type(n) is int and 0 < n < 1 << 40), default=0)
    return _number(meta, key)
