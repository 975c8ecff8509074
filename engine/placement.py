"""Will it fit, and with which numbers does it run: estimates with their addends, and the final `Plan`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from engine.config import EngineConfig, Plan, Precision, Spec
from engine.devices import Device
from engine.errors import BadRequest, EngineError, OutOfMemory
from engine.gguf import HeaderSummary, read_header
from engine.ops.cuda_device import bytes_on_card
from engine.scheduler import MOST_GUESSED
from engine.types import MemoryPart

PAGE_TOKENS = 64
DEFAULT_CTX = 16_384  # chosen for the user where memory and model allow; more is a setting away
_LEAST_CTX = 2_048  # below this an automatic context is of no use
_UNKNOWN_CTX = 4_096  # for a file that does not say what it was trained for
_GIB, _MIB = 1 << 30, 1 << 20
_MOST_RESERVE = _GIB
_CHECKPOINTS = 8  # recurrent states that remember prefixes
_BYTES_PER_WORD = 512  # what a tokenizer holds for each word of its vocabulary, measured
_BYTES_PER_VALUE = 5.5  # an intermediate value: float32 and, for fast products, its 8-bit code
# Bytes that the CPU keeps for a block of the file's; scales of 4 and 6 bits grow to 8. Matrices of other
# types become f16, or f32 for exact products. `kernels.cpu` has the last word; a test compares.
_KEPT = {
    "F32": 4, "F16": 2, "BF16": 2, "Q4_0": 18, "Q4_1": 20, "Q5_0": 22, "Q5_1": 24, "Q8_0": 34,
    "Q2_K": 100, "Q3_K": 114, "Q4_K": 148, "Q5_K": 180, "Q6_K": 210, "IQ4_NL": 18, "IQ4_XS": 138,
    "MXFP4": 17,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Footprint:
    """What of a file decides over memory; 0 where the file does not say.

    `weights` bytes of matrices as they are kept, and `loose` weights that are kept as plain floats;
    `context` tokens of training, `kv_values` keys and values of a token in all layers, `state` bytes of
    recurrent state a sequence, `row` bytes of intermediate values a token, `n_vocab` words. `tried_row` are
    bytes that recurrent layers keep of a guessed token until it is verified. `draft` has the weights, loose
    weights, keys and values of the file's own draft layer.
    """

    weights: int
    loose: int
    context: int
    kv_values: int
    row: int
    n_vocab: int
    state: int = 0
    tried_row: int = 0
    draft: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def of(cls, header: HeaderSummary, on_card: bool = False) -> Footprint:
        """Read it from a header, as the processor or a graphics card keeps it; never raises, whatever the
        file holds."""
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
        weights, loose = [0, 0], [0, 0]  # of the model, and of its draft layer
        # Of the blocks after the layers the first may draft, and the others are not loaded.
        after = tuple(f"blk.{i}." for i in range(layers, min(blocks, layers + 8)))
        for name, info in header.infos.items():
            place = int(name.startswith(after[:1]))
            if name.startswith(after[1:]):
                continue
            # The processor keeps rows by sixteen.
            rows = max(1, math.prod(info.shape[:-1]))
            n_blocks = info.n_bytes // info.type.bytes // rows * (-(-rows // 16) * 16)
            if on_card:
                weights[place] += bytes_on_card(info.shape, info.type.id)
            elif len(info.shape) == 1:
                weights[place] += 4 * info.shape[0]
            elif info.type.name in _KEPT:
                weights[place] += _KEPT[info.type.name] * n_blocks
            else:
                loose[place] += info.type.block * n_blocks
        own_kv = kv_heads * (key + value) if weights[1] and type(kv_heads) is int else 0
        values = 7 * embd + 5 * heads * key + 3 * ff + _more_values(header)
        return cls(
            weights=weights[0],
            loose=loose[0],
            draft=(weights[1], loose[1], own_kv),
            context=_number(meta, f"{arch}.context_length"),
            kv_values=all_kv_heads * (key + value),
            state=_state_bytes(header),
            tried_row=_tried_bytes(header),
            row=int(values * _BYTES_PER_VALUE),
            n_vocab=len(words) if isinstance(words, list) else 0,
        )

    def model(self, config: EngineConfig) -> int:
        """Bytes of the weights."""
        return self.weights + self.loose * _float_bytes(config)

    def page(self, config: EngineConfig, on_card: bool = False) -> int:
        """Bytes of one page of keys and values, all layers; a card always keeps f16."""
        return self.kv_values * PAGE_TOKENS * (2 if on_card else _float_bytes(config))

    def slots(self, config: EngineConfig) -> int:
        """Recurrent states: one for each sequence at once, the others remember prefixes."""
        return config.max_concurrency + _CHECKPOINTS if self.state else 0

    def work(self, config: EngineConfig) -> int:
        """Bytes of step buffers, logits, recurrent states and vocabulary."""
        guessed = MOST_GUESSED if config.spec is not Spec.OFF else 0
        rows = config.prefill_chunk + config.max_concurrency + guessed
        logits = max(config.max_concurrency, guessed) * self.n_vocab * 4
        states = self.slots(config) * self.state + guessed * self.tried_row
        return rows * self.row + logits + states + self.n_vocab * _BYTES_PER_WORD


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


def _float_bytes(config: EngineConfig) -> int:
    """f16 for fast products; exact ones keep f32 throughout."""
    return 4 if config.precision is Precision.EXACT else 2


@runtime_checkable
class HasFootprint(Protocol):
    """Anything that knows its footprint, such as a library entry."""

    @property
    def footprint(self) -> Footprint | None:
        """None where the file cannot be read."""
        ...


@dataclass(frozen=True, slots=True)
class Taken:
    """What the last load of a file really took, and how it was loaded: bytes of the weights, of one page
    of keys and values in all layers, and of the work space."""

    device: str
    precision: str
    max_concurrency: int
    prefill_chunk: int
    model: int
    page: int
    work: int

    @classmethod
    def of(cls, config: EngineConfig, pages: int, parts: Sequence[MemoryPart]) -> Taken | None:
        """From the memory by owner of a model that is loaded; None where that is not known."""
        owned = {p.kind: p.bytes for p in parts}
        if not pages or not all(owned.get(k) for k in ("model", "kv", "work")):
            return None
        return cls(
            config.device, str(config.precision), config.max_concurrency, config.prefill_chunk,
            owned["model"], owned["kv"] // pages, owned["work"],
        )  # fmt: skip

    @classmethod
    def from_json(cls, found: Any) -> Taken | None:
        """From a record; None for one that is not sound."""
        try:
            made = cls(**found)
        except TypeError:
            return None
        words = type(made.device) is str and made.precision in list(Precision)
        numbers = [getattr(made, f.name) for f in fields(cls) if f.type == "int"]
        sound = all(type(n) is int and 0 < n < 1 << 62 for n in numbers)
        return made if words and sound else None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Whether a model fits a device.

    `parts` show the whole device: other programs, model, draft, kv, work, free, reserve; they sum to its
    memory unless the model is too large. `total` is what the model needs (its draft, kv and work too),
    `available` what it may take; `context` the tokens it would run with. `verdict` is "fits", "tight" or
    "too large". `measured` tells that the sums come from a real load.
    """

    parts: tuple[MemoryPart, ...]
    total: int
    available: int
    verdict: str
    explanation: str
    context: int
    device: Device
    measured: bool = False


def estimate(
    source: HeaderSummary | HasFootprint,
    config: EngineConfig,
    devices: Sequence[Device],
    leaving: int = 0,
    taken: Taken | None = None,
) -> Estimate:
    """How a model would sit on the device of `config`, with the context it would get.

    `leaving` bytes are given back by the model that is loaded now; `taken` corrects the sums by what a
    load like this one really took. `BadRequest` for an unknown device or a file that cannot be read.
    """
    footprint = Footprint.of(source) if isinstance(source, HeaderSummary) else source.footprint
    if footprint is None:
        raise BadRequest("There is no estimate for a file that cannot be read.")
    return _Sizing(footprint, config, _device(config, devices), leaving, taken).estimate()


def resolve(
    config: EngineConfig, model_file: HeaderSummary, devices: Sequence[Device], leaving: int = 0
) -> Plan:
    """The plan to run `model_file` with: every number final, what was chosen for the user in `notes`.

    `leaving` bytes are given back by the model that is loaded now.

    A number that the user gave is never changed: `OutOfMemory` with the addends where it cannot fit this
    device at all, a note where it fits only when other programs make room. `BadRequest` for a device
    that is not there.
    """
    device = _device(config, devices)
    footprint = Footprint.of(model_file, on_card=device.kind != "cpu")
    sizing = _Sizing(footprint, config, device, leaving)
    sizing.refuse_impossible(model_file.name)
    return Plan(
        path=model_file.path,
        device=device.id,
        threads=config.threads or device.cores,
        precision=config.precision,
        max_ctx=sizing.max_ctx,
        max_concurrency=config.max_concurrency,
        prefill_chunk=config.prefill_chunk,
        page_tokens=PAGE_TOKENS,
        n_pages=sizing.n_pages,
        n_slots=sizing.footprint.slots(config),
        chat_template_file=config.chat_template_file,
        spec=config.spec,
        draft=Path(config.draft).absolute() if config.draft else None,
        budget=config.budget,
        notes=sizing.notes(),
    )


def size_text(n: int) -> str:
    """Bytes for people: "4.7 GB", "94 MB" (1 GB = 2^30 bytes)."""
    return f"{n / _GIB:,.1f} GB" if n >= _GIB else f"{n / _MIB:,.0f} MB"


class _Sizing:
    """The sums behind an estimate and a plan."""

    def __init__(
        self,
        footprint: Footprint,
        config: EngineConfig,
        device: Device,
        leaving: int,
        taken: Taken | None = None,
    ) -> None:
        self.footprint, self.config, self.device = footprint, config, device
        self.trained = footprint.context
        self.wanted = config.max_ctx or min(self.trained or _UNKNOWN_CTX, DEFAULT_CTX)
        free = min(device.memory_total, device.memory_free + leaving)
        self.other = device.memory_total - free
        self.reserve = min(free, device.memory_total // 20, _MOST_RESERVE)
        self.available = free - self.reserve
        self.page = footprint.page(config, on_card=device.kind != "cpu")
        self.weights, self.work = footprint.model(config), footprint.work(config)
        self.measured = taken is not None and self._correct(taken)
        self.draft, draft_page = self._draft()
        self.page += draft_page
        self.weights += self.draft
        self.max_ctx = self._context()
        self.n_pages = self._pages()
        self.kv = self.n_pages * self.page
        self.need = self.weights + self.work + self.kv

    def _draft(self) -> tuple[int, int]:
        """Bytes of the drafter's weights, and of its keys and values of a page."""
        config, on_card = self.config, self.device.kind != "cpu"
        weights, loose, kv_values = self.footprint.draft
        if config.spec is Spec.OFF:
            return 0, 0
        if config.draft:
            try:
                found = Footprint.of(read_header(Path(config.draft)), on_card)
            except (EngineError, OSError):
                return 0, 0  # the load tells what is wrong with it
            return found.model(config), found.page(config, on_card)
        if on_card:
            return weights, kv_values * PAGE_TOKENS * 2
        return (
            weights + loose * _float_bytes(config),
            kv_values * PAGE_TOKENS * _float_bytes(config),
        )

    def _correct(self, taken: Taken) -> bool:
        """Use what a load really took, if it was one of this kind; whether it was."""
        if (taken.device, taken.precision) != (self.device.id, self.config.precision):
            return False
        was = replace(
            self.config,
            max_concurrency=taken.max_concurrency,
            prefill_chunk=taken.prefill_chunk,
        )
        self.weights, self.page = taken.model, taken.page
        self.work = self.work * taken.work // max(1, self.footprint.work(was))
        return True

    def _context(self) -> int:
        """The user's number, else as much of the default as memory holds."""
        if self.config.max_ctx is not None or not self.page:
            return self.wanted
        room = max(0, self.available - self.weights - self.work)
        fits = room // self.page * PAGE_TOKENS
        return min(self.wanted, max(fits, _LEAST_CTX))

    def _pages(self) -> int:
        """One whole context, and a quarter of one for each further sequence while there is room."""
        one = -(-self.max_ctx // PAGE_TOKENS)
        more = (self.config.max_concurrency - 1) * -(-one // 4)
        if not self.page:
            return one + more
        left = self.available - self.weights - self.work - one * self.page
        return one + max(0, min(more, left // self.page))

    def refuse_impossible(self, name: str) -> None:
        """Raise `OutOfMemory` if the device cannot hold it: a processor's other programs may give way, a
        card's memory is what is free."""
        one = -(-self.max_ctx // PAGE_TOKENS) * self.page
        need = self.weights + self.work + one
        total = self.device.memory_total if self.device.kind == "cpu" else self.available
        if need <= total:
            return
        reserve = self.reserve if self.device.kind == "cpu" else 0
        room = total - reserve - self.weights - self.work
        most = room // self.page * PAGE_TOKENS if self.page else 0
        cure = (
            f"Choose a context of at most {most:,} tokens"
            if most >= PAGE_TOKENS
            else "Choose a smaller model or quantisation"
        )
        raise OutOfMemory(
            f"{name} with a context of {self.max_ctx:,} tokens needs {size_text(need)} "
            f"(weights {size_text(self.weights)}, context {size_text(one)}, work space "
            f"{size_text(self.work)}); {self.device.name} has "
            f"{size_text(self.device.memory_total)}, of which {size_text(self.device.memory_free)} "
            f"are free. {cure}."
        )

    def notes(self) -> tuple[str, ...]:
        """What was chosen for the user, or may surprise."""
        notes = []
        if self.config.max_ctx is None and self.max_ctx < self.wanted:
            notes.append(
                f"The context is {self.max_ctx:,} tokens, not {self.wanted:,}: more does not fit the "
                f"{size_text(self.available)} that are free."
            )
        elif self.config.max_ctx is None and self.max_ctx < self.trained:
            notes.append(
                f"The context is {self.max_ctx:,} of the {self.trained:,} tokens that the model can "
                "take; the settings of the model change it."
            )
        if self.trained and self.max_ctx > self.trained:
            notes.append(
                f"The context of {self.max_ctx:,} tokens is more than the {self.trained:,} that the "
                "model was made for; answers get worse beyond that."
            )
        if self.need > self.available:
            notes.append(
                f"The model needs {size_text(self.need)} and {size_text(self.available)} are free; it "
                "may be slow until other programs give memory back."
            )
        return tuple(notes)

    def estimate(self) -> Estimate:
        """The parts, the verdict and a sentence with the numbers."""
        if self.need > self.available:
            verdict = "too large"
        elif self.need > self.available * 0.9 or self.max_ctx < self.wanted:
            verdict = "tight"
        else:
            verdict = "fits"
        kv = f"context {size_text(self.kv)} for {self.max_ctx:,} tokens"
        if not self.page:
            kv = "context unknown, since the file does not say"
        text = (
            f"Needs {size_text(self.need)}: weights {size_text(self.weights)}, {kv}, work space "
            f"{size_text(self.work)}. {size_text(self.available)} of "
            f"{size_text(self.device.memory_total)} can be used; other programs hold "
            f"{size_text(self.other)}."
        )
        if verdict == "too large":
            text += f" {size_text(self.need - self.available)} are missing."
        elif self.max_ctx < self.wanted:
            text += f" A context of {self.wanted:,} tokens would not fit."
        parts = (
            MemoryPart("other", "Other programs", self.other),
            MemoryPart("model", "Model weights", self.weights - self.draft),
            *((MemoryPart("draft", "Draft", self.draft),) if self.draft else ()),
            MemoryPart("kv", "Context", self.kv),
            MemoryPart("work", "Work space", self.work),
            MemoryPart("free", "Free", max(0, self.available - self.need)),
            MemoryPart("reserve", "Kept free", self.reserve),
        )
        return Estimate(
            parts,
            self.need,
            self.available,
            verdict,
            text,
            self.max_ctx,
            self.device,
            self.measured,
        )


def _device(config: EngineConfig, devices: Sequence[Device]) -> Device:
    for device in devices:
        if device.id == config.device:
            return device
    raise BadRequest(
        f"Device: found {config.device!r}, expected one of {', '.join(d.id for d in devices)}."
    )


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
