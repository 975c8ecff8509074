"""Will it fit, and with which numbers does it run: estimates with their addends, and the final `Plan`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from engine.config import (
    AUTO,
    FILELESS_DRAFTERS,
    EngineConfig,
    Plan,
    Precision,
    Residency,
    Spec,
)
from engine.devices import Device
from engine.errors import BadRequest, EngineError, OutOfMemory
from engine.footprint import CHUNK, PAGE_TOKENS, Footprint
from engine.gguf import HeaderSummary, read_header
from engine.metrics import MemoryPart

DEFAULT_CTX = 16_384  # chosen for the user where memory and model allow; more is a setting away
_LEAST_CTX = 2_048  # below this an automatic context is of no use
_GOOD_CTX = 4_096  # a card that holds less context than this is left for the processor
_UNKNOWN_CTX = 4_096  # for a file that does not say what it was trained for
_GIB, _MIB = 1 << 30, 1 << 20
_MOST_RESERVE = _GIB
_CARD_CHUNK = 2_048  # a card reads prompts half as fast again in chunks of this size as of 512
_CONTEXTS = 3  # that the prefix cache in RAM has room for, if the user leaves it to us


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
    of keys and values in all layers, and of the work space; and all that the drafter `guesser` held, its part
    of `pages` included."""

    device: str
    precision: str
    max_concurrency: int
    prefill_chunk: int
    model: int
    page: int
    work: int
    draft: int = 0
    pages: int = 0
    guesser: str = ""

    @classmethod
    def of(cls, config: EngineConfig, pages: int, parts: Sequence[MemoryPart]) -> Taken | None:
        """From the memory by owner of a model that is loaded; None where that is not known."""
        owned = {p.kind: p.bytes for p in parts}
        if not pages or not all(owned.get(k) for k in ("model", "kv", "work")):
            return None
        return cls(
            config.device, str(config.precision), config.max_concurrency, config.prefill_chunk or CHUNK,
            owned["model"], owned["kv"] // pages, owned["work"], owned.get("draft", 0), pages,
            _guesser(config),
        )  # fmt: skip

    @classmethod
    def from_json(cls, found: Any) -> Taken | None:
        """From a record; None for one that is not sound."""
        try:
            made = cls(**found)
        except TypeError:
            return None
        words = type(made.device) is type(made.guesser) is str and made.precision in list(Precision)
        numbers = [(getattr(made, f.name), f.default == 0) for f in fields(cls) if f.type == "int"]
        sound = all(type(n) is int and -may_be_0 < n < 1 << 62 for n, may_be_0 in numbers)
        return made if words and sound else None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Whether a model fits a device.

    `parts` show the whole device: other programs, model, draft with all that it holds, kv, work, free,
    reserve; they sum to its memory unless the model is too large. `total` is what the model needs (its draft,
    kv and work too), `available` what it may take; `context` the tokens it would run with. `verdict` is
    "fits", "tight" or "too large". `measured` tells that the sums come from a real load.
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
    """How a model would sit on the device of `config`, or on the one chosen, and with which context.

    `leaving` bytes are given back by the model that is loaded now; `taken` corrects the sums by what a
    load like this one really took. `BadRequest` for an unknown device or a file that cannot be read.
    """
    footprint = Footprint.of(source) if isinstance(source, HeaderSummary) else source.footprint
    if footprint is None:
        raise BadRequest("There is no estimate for a file that cannot be read.")
    return _sizing(footprint, config, devices, leaving, taken)[0].estimate()


def resolve(
    config: EngineConfig, model_file: HeaderSummary, devices: Sequence[Device], leaving: int = 0
) -> Plan:
    """The plan to run `model_file` with: every number final, what was chosen for the user in `notes`.

    `leaving` bytes are given back by the model that is loaded now.

    A number that the user gave is never changed: `OutOfMemory` with the addends where it cannot fit this
    device at all, a note where it fits only when other programs make room. `BadRequest` for a device
    that is not there.
    """
    sizing, note = _sizing(Footprint.of(model_file), config, devices, leaving)
    device = sizing.device
    sizing.refuse_impossible(model_file.name)
    return Plan(
        path=model_file.path,
        device=device.id,
        threads=config.threads or device.cores,
        precision=config.precision,
        max_ctx=sizing.max_ctx,
        max_concurrency=config.max_concurrency,
        prefill_chunk=sizing.chunk,
        page_tokens=PAGE_TOKENS,
        n_pages=sizing.n_pages,
        n_slots=sizing.footprint.slots(config),
        cache_bytes=sizing.cache(devices),
        chat_template_file=config.chat_template_file,
        spec=config.spec,
        draft=_draft_path(config.draft),
        budget=config.budget,
        draft_parked=sizing.draft_parked,
        notes=(*((note,) if note else ()), *sizing.notes()),
    )


def _draft_path(draft: str | None) -> Path | None:
    """A draft's file from the root on; the name of a drafter that needs none stays as it is."""
    if not draft:
        return None
    return Path(draft) if draft in FILELESS_DRAFTERS else Path(draft).absolute()


def _sizing(
    footprint: Footprint,
    config: EngineConfig,
    devices: Sequence[Device],
    leaving: int,
    taken: Taken | None = None,
) -> tuple[_Sizing, str]:
    """The sums on the device of `config`; for "auto" on the card with most room where the model fits, else on
    the processor, and a sentence on the choice where there was one."""
    if config.device != AUTO:
        return _Sizing(footprint, config, _device(config, devices), leaving, taken), ""
    cards = [d for d in devices if d.kind != "cpu"]
    sizings = [_Sizing(footprint, config, d, leaving, taken) for d in cards if not d.problem]
    fitting = [s for s in sizings if s.suits]
    if fitting:
        best = max(fitting, key=lambda s: s.available)
        return best, f"It runs on the graphics card {best.device.name}, where it fits."
    processor = next((d for d in devices if d.kind == "cpu"), devices[0])
    note = ""
    if sizings:
        best = max(sizings, key=lambda s: s.available)
        note = (
            f"It runs on the processor: it needs {size_text(best.need)}, and of the"
            f" {size_text(best.device.memory_total)} of {best.device.name} {size_text(best.available)}"
            " can be used."
        )
    elif cards:
        note = cards[0].problem
    return _Sizing(footprint, config, processor, leaving, taken), note


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
        self.footprint, self.device = footprint, device
        self.trained = footprint.context
        self.wanted = config.max_ctx or min(self.trained or _UNKNOWN_CTX, DEFAULT_CTX)
        free = min(device.memory_total, device.memory_free + leaving)
        self.other = device.memory_total - free
        self.reserve = min(free, device.memory_total // 20, _MOST_RESERVE)
        self.available = free - self.reserve
        for chunk in self._chunks(config):
            self.chunk, self.config = chunk, replace(config, prefill_chunk=chunk)
            self._sum_up(taken)
            if self.need <= self.available and self.max_ctx >= self.wanted:
                break

    def _chunks(self, config: EngineConfig) -> tuple[int, ...]:
        """How much of a prompt a step may read: the first that leaves room for the whole context."""
        if config.prefill_chunk is not None:
            return (config.prefill_chunk,)
        return (CHUNK,) if self.device.kind == "cpu" else (_CARD_CHUNK, CHUNK)

    def _sum_up(self, taken: Taken | None) -> None:
        on_card = self.device.kind != "cpu"
        self.page = self.footprint.page(self.config, on_card)
        self.weights = self.footprint.model(self.config, on_card)
        self.work = self.footprint.work(self.config, on_card)
        self.measured = taken is not None and self._correct(taken)
        self.draft, self.draft_page = self._draft()
        if taken is not None and self.measured and taken.guesser == _guesser(self.config):
            held = taken.draft - taken.pages * self.draft_page
            self.draft = held if self.draft and held > 0 else self.draft
        self.page += self.draft_page
        self.weights += self.draft
        self.max_ctx = self._context()
        self.n_pages = self._pages()
        self.kv = self.n_pages * self.page
        self.need = self.weights + self.work + self.kv

    def _draft(self) -> tuple[int, int]:
        """Bytes of the drafter's weights, on a card its steps too, and of its keys and values of a page."""
        config, on_card = self.config, self.device.kind != "cpu"
        if config.spec is Spec.OFF or config.draft == "ngram":
            return 0, 0
        if config.draft and config.draft not in FILELESS_DRAFTERS:
            try:
                found: Footprint | None = Footprint.of(read_header(Path(config.draft)))
            except (EngineError, OSError):
                return 0, 0  # the load tells what is wrong with it
        else:
            found = (
                self.footprint.draft
                if config.draft
                else self.footprint.shipped or self.footprint.draft
            )
        if found is None:
            return 0, 0
        beside = found.beside(self.footprint, config) if on_card else 0
        return found.model(config, on_card) + beside, found.page(config, on_card)

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
        before = self.footprint.work(was, self.device.kind != "cpu")
        self.work = self.work * taken.work // max(1, before)
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

    def cache(self, devices: Sequence[Device]) -> int:
        """Bytes of RAM for prefixes: as the user says, else three contexts, or a quarter of what is free."""
        processor = next((d for d in devices if d.kind == "cpu"), devices[0])
        if (mib := self.config.prefix_cache_mib) is not None:
            return mib << 20 if mib else processor.memory_total
        free = processor.memory_free - (self.need if self.device.kind == "cpu" else 0)
        whole = -(-self.max_ctx // PAGE_TOKENS) * self.page + self.footprint.state
        return max(0, min(_CONTEXTS * whole, free // 4))

    @property
    def draft_parked(self) -> bool:
        """Whether a draft's file is given up between requests: as the user says, else where less memory than
        it takes would stay free."""
        if not self.draft or self.config.draft in FILELESS_DRAFTERS:
            return False
        if self.config.draft_residency is not Residency.AUTO:
            return self.config.draft_residency == Residency.REQUEST_SCOPED
        return self.available - self.need < self.draft

    @property
    def suits(self) -> bool:
        """Whether the device holds it with a context that is worth having."""
        enough = self.config.max_ctx is not None or self.max_ctx >= min(self.wanted, _GOOD_CTX)
        return self.need <= self.available and enough

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
        if self.draft_parked and self.config.draft_residency is Residency.AUTO:
            notes.append(
                f"Memory is short: the draft of {size_text(self.draft)} is loaded for each request, and given"
                " up after it."
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
        pages = self.n_pages * self.draft_page
        parts = (
            MemoryPart("other", "Other programs", self.other),
            MemoryPart("model", "Model weights", self.weights - self.draft),
            *((MemoryPart("draft", "Draft", self.draft + pages),) if self.draft else ()),
            MemoryPart("kv", "Context", self.kv - pages),
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


def _guesser(config: EngineConfig) -> str:
    """What tells the drafters of two loads of a file apart."""
    return "" if config.spec is Spec.OFF else config.draft or AUTO


def _device(config: EngineConfig, devices: Sequence[Device]) -> Device:
    for device in devices:
        if device.id == config.device:
            if device.problem:
                raise BadRequest(device.problem)
            return device
    raise BadRequest(
        f"Device: found {config.device!r}, expected one of {', '.join(d.id for d in devices)}."
    )
