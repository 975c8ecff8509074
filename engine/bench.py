"""How fast a model runs on this PC: reading a prompt, writing, the wait for the first token, memory."""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass

import psutil

from engine.config import SamplingParams
from engine.draft.forced import forcing, without_drafts
from engine.engine import Engine
from engine.errors import BadRequest, ContextOverflow
from engine.follow import follow
from engine.footprint import Footprint
from engine.gguf import read_header
from engine.passes import Pass, Profile, pass_costs, read_bandwidth, weight_bytes
from engine.passes import profiles as kernels_of
from engine.placement import size_text
from engine.scheduler import MOST_GUESSED
from engine.types import Finished, ModelInfo, Request, Usage

_WARM_UP = 8


@dataclass(frozen=True, slots=True)
class Series:
    """One figure measured several times."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle value; 0 for none."""
        return statistics.median(self.values) if self.values else 0.0

    def facts(self) -> dict[str, object]:
        """For JSON."""
        return {"median": self.median, "values": list(self.values)}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to measure: prompts of these lengths, `n_decode` tokens written behind each of `contexts`.

    `rows` are the sizes of passes to time, `profile` asks for the time of each kernel. `drafts` lets the
    drafter of the loaded model guess while it writes; `accept` measures besides what drafts bring of which
    so many tokens are taken, the target's own included, whatever was guessed.
    """

    prompts: tuple[int, ...] = (512,)
    n_decode: int = 128
    contexts: tuple[int, ...] = (1,)
    repetitions: int = 3
    rows: tuple[int, ...] = ()
    profile: bool = False
    drafts: bool = False
    accept: int | None = None

    @property
    def longest(self) -> int:
        """Tokens of context that all of it needs."""
        behind = max(self.n_decode, *self.rows, 0) + 1 if self.n_decode or self.rows else 0
        behind += MOST_GUESSED if self.drafts or self.accept else 0
        return max(*self.prompts, max(self.contexts) + behind) + 1


@dataclass(frozen=True, slots=True)
class Prefill:
    """Reading a prompt of `n_prompt` tokens: tokens a second, and seconds to the first token."""

    n_prompt: int
    rate: Series
    first_token: Series


@dataclass(frozen=True, slots=True)
class Decode:
    """Writing behind `context` tokens, in tokens a second; `of_read` is the share of the device's read
    bandwidth that this makes, None where that is not known."""

    context: int
    rate: Series
    of_read: float | None


@dataclass(frozen=True, slots=True)
class Forced:
    """Writing behind `context` tokens with passes of `rows` rows, of which `accepted` tokens were taken, both
    means. A step, drafting included, takes as long as `steps_of_one` steps without drafts.
    """

    context: int
    rows: float
    accepted: float
    rate: Series
    step_ms: float
    draft_ms: float
    verify_ms: float
    sample_ms: float
    steps_of_one: float
    speedup: float

    def facts(self) -> dict[str, object]:
        """For JSON."""
        return {**asdict(self), "rate": self.rate.facts()}

    def text(self) -> str:
        """For people."""
        at = "" if self.context == 1 else f" at {self.context}"
        return (
            _figure(f"accept {self.accepted:.2f}{at}", self.rate, "tok/s")
            + f", {self.speedup:.2f} times plain\n{'  a step':<18}{self.step_ms:>12,.3f} ms,"
            f" {self.steps_of_one:.2f} of one: {self.rows:.1f} rows, draft {self.draft_ms:.3f}, verify"
            f" {self.verify_ms:.3f}, sample {self.sample_ms:.3f}"
        )


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured; `read` bytes a second, `weight_bytes` of a token, `peak_memory` of the process."""

    prefill: tuple[Prefill, ...]
    decode: tuple[Decode, ...]
    passes: tuple[Pass, ...]
    profiles: tuple[Profile, ...]
    read: float | None
    weight_bytes: int
    peak_memory: int
    forced: tuple[Forced, ...] = ()

    def facts(self) -> dict[str, object]:
        """For JSON."""
        none = Series(())
        first = self.prefill[0] if self.prefill else Prefill(0, none, none)
        decode = self.decode[0].rate if self.decode else none
        return {
            "n_prompt": first.n_prompt,
            "prefill_tok_s": first.rate.facts(),
            "first_token_s": first.first_token.facts(),
            "decode_tok_s": decode.facts(),
            "prefill": [
                {
                    "n_prompt": p.n_prompt,
                    "tok_s": p.rate.facts(),
                    "first_token_s": p.first_token.facts(),
                }
                for p in self.prefill
            ],
            "decode": [
                {"context": d.context, "tok_s": d.rate.facts(), "of_read": d.of_read}
                for d in self.decode
            ],
            "forced": [f.facts() for f in self.forced],
            "passes": [
                {"context": p.context, "rows": p.rows, "seconds": p.seconds} for p in self.passes
            ],
            "profiles": [
                {
                    "context": p.context,
                    "rows": p.rows,
                    "kernels": [
                        {"name": k.name, "seconds": k.seconds, "launches": k.launches}
                        for k in p.kernels
                    ],
                }
                for p in self.profiles
            ],
            "read_gb_s": self.read / 1e9 if self.read else None,
            "weight_bytes": self.weight_bytes,
            "peak_memory_bytes": self.peak_memory,
        }

    def text(self) -> str:
        """For people."""
        lines = []
        for p in self.prefill:
            lines.append(_figure(f"prefill {p.n_prompt}", p.rate, "tok/s"))
        for d in self.decode:
            share = f", {d.of_read:.1%} of read bandwidth" if d.of_read else ""
            title = "decode" if d.context == 1 else f"decode at {d.context}"
            lines.append(_figure(title, d.rate, "tok/s") + share)
        lines += [f.text() for f in self.forced]
        for p in self.prefill:
            lines.append(_figure(f"first of {p.n_prompt}", p.first_token, "s"))
        single = {p.context: p.seconds for p in self.passes if p.rows == 1}
        for one in self.passes:
            cost = (
                f", {one.seconds / single[one.context]:.2f} of one" if one.context in single else ""
            )
            title = f"pass {one.rows} at {one.context}"
            lines.append(f"{title:<18}{one.seconds * 1e3:>12,.3f} ms{cost}")
        for profile in self.profiles:
            lines.append(f"kernels of {profile.rows} rows at {profile.context}")
            for k in profile.kernels:
                each = k.seconds / k.launches
                lines.append(
                    f"  {k.name:<24}{k.seconds * 1e6:>10,.1f} us in {k.launches:>4}, {each * 1e6:,.2f} each"
                )
        if self.read:
            lines.append(f"{'read bandwidth':<18}{self.read / 1e9:>12,.0f} GB/s")
        lines.append(f"{'peak memory':<18}{size_text(self.peak_memory):>12}")
        return "\n".join(lines)


def _figure(title: str, series: Series, unit: str) -> str:
    digits = 3 if unit == "s" else 1
    low, high = min(series.values), max(series.values)
    spread = f" ({low:,.{digits}f} to {high:,.{digits}f})" if len(series.values) > 1 else ""
    return f"{title:<18}{series.median:>12,.{digits}f} {unit}{spread}"


def measure(
    engine: Engine, wanted: Wanted, on_progress: Callable[[str], None] | None = None
) -> Report:
    """Time prompts and writing in turn, round by round, then single passes.

    The engine must be served by another thread and idle. A short round that does not count goes first,
    and every prompt differs from its first token on, so nothing is reused; only what a processor writes
    behind a longer context begins with the same one each time, and keeps it. Raises `ContextOverflow` for
    numbers that the context does not hold.
    """
    status = engine.status()
    if status.model is None:
        raise BadRequest("No model is loaded. Load one first.")
    if wanted.longest > status.model.max_ctx + 1:
        raise ContextOverflow(
            f"What is to be measured needs a context of {wanted.longest:,} tokens; it is"
            f" {status.model.max_ctx:,}."
        )
    told = on_progress or (lambda text: None)
    trial = _Trial(engine, wanted, status.model)
    trial.warm_up()
    prefill: dict[int, list[Usage]] = {n: [] for n in trial.lengths}
    decode: dict[int, list[Usage]] = {c: [] for c in trial.contexts if wanted.n_decode}
    with nullcontext() if wanted.drafts else without_drafts(engine):
        for number in range(1, wanted.repetitions + 1):
            for n in prefill:
                prefill[n].append(trial.read(n))
            for context in decode:
                decode[context].append(trial.write(context))
            told(f"round {number} of {wanted.repetitions}")
    forced = []
    for context in decode if wanted.accept else ():
        told(f"{wanted.accept} tokens accepted at {context}")
        forced.append(trial.forced(context, decode[context]))
    passes = []
    for context in trial.contexts if wanted.rows else ():
        at = _behind(context)
        told(f"passes at {at}")
        passes += engine.use(lambda model, at=at: pass_costs(model, at, wanted.rows))  # type: ignore[misc]
    profiles: list[Profile] = []
    if wanted.profile:
        told("kernels")
        profiles = trial.profiles()
    header = read_header(status.model.path)
    weights = weight_bytes(header, trial.on_card)
    read = engine.use(read_bandwidth)
    kv_bytes = Footprint.of(header).kv_values * 2

    def of_read(context: int, rate: Series) -> float | None:
        """Weights once, and the keys and values of the middle of what was written."""
        size = weights + (context + wanted.n_decode / 2) * kv_bytes
        return size * rate.median / read if read else None

    def rates(usages: list[Usage], name: str) -> Series:
        return Series(tuple(getattr(usage, name) or 0.0 for usage in usages))

    written = {context: rates(found, "decode_rate") for context, found in decode.items()}
    return Report(
        tuple(
            Prefill(n, rates(found, "prefill_rate"), rates(found, "first_token_s"))
            for n, found in prefill.items()
        ),
        tuple(Decode(c, rate, of_read(c, rate)) for c, rate in written.items()),
        tuple(passes),
        tuple(profiles),
        read,
        weights,
        peak_memory(),
        tuple(forced),
    )


def _behind(context: int) -> int:
    """Tokens in front of a pass: behind a context of one there is nothing to speak of."""
    return context if context > 1 else 0


class _Trial:
    """The single runs of a measurement, each with prompts of its own."""

    def __init__(self, engine: Engine, wanted: Wanted, model: ModelInfo) -> None:
        self._engine, self._wanted = engine, wanted
        self._prompts = Prompts(ordinary_ids(engine, model.vocab_size))
        self._starts = {c: self._prompts.next(max(1, c)) for c in dict.fromkeys(wanted.contexts)}
        self.contexts = tuple(self._starts)
        self.lengths = [n for n in wanted.prompts if n]
        self.on_card = model.device != "cpu"

    def warm_up(self) -> None:
        """Run what does not count."""
        # A card times its ways to compute long prompts when it first meets them, then records them.
        for n in self.lengths * (2 if self.on_card else 1):
            self.read(n if self.on_card else min(n, _WARM_UP))
        run(self._engine, self._prompts.next(1), _WARM_UP)

    def read(self, n: int) -> Usage:
        """A prompt of `n` tokens, and the first of its answer."""
        return run(self._engine, self._prompts.next(n), 1)

    def write(self, context: int) -> Usage:
        """An answer behind a context; a processor, which is slow to read one, keeps it."""
        start = self._starts[context] if context > 1 else self._prompts.next(1)
        kept = context > 1 and not self.on_card
        return run(self._engine, start, self._wanted.n_decode + 1, again=kept)

    def forced(self, context: int, plain: list[Usage]) -> Forced:
        """Answers of whose drafts `accept` tokens a pass are taken, beside `plain` ones without any."""
        assert self._wanted.accept
        with forcing(self._engine, self._wanted.accept):
            if self.on_card:
                self.write(context)  # a card records what drafts and what verifies
            usages = [self.write(context) for _ in range(self._wanted.repetitions)]
        each = statistics.median(usage.decode_s / self._wanted.n_decode for usage in plain)
        return _forced(self._engine, context, usages, each)

    def profiles(self) -> list[Profile]:
        """The kernels of short passes behind the longest context, and of the shortest prompt."""
        at = _behind(max(self.contexts))
        found: list[Profile] = self._engine.use(lambda model: kernels_of(model, at, (1, 16)))
        if self.lengths:
            least = min(self.lengths)
            found += self._engine.use(lambda model: kernels_of(model, 0, (least,)))
        return found


def _forced(engine: Engine, context: int, usages: list[Usage], plain_s: float) -> Forced:
    """What drafts brought, compared with passes of `plain_s` seconds without any."""
    now = engine.metrics().speculation
    if now is None or not sum(usage.drafted_tokens for usage in usages):
        raise BadRequest(
            "Nothing was drafted, so nothing could be accepted. Give a draft's file with --draft."
        )
    written = sum(usage.completion_tokens - 1 for usage in usages)
    # Each pass writes what was accepted and one token more.
    passes = written - sum(usage.accepted_tokens for usage in usages)
    step_s = sum(usage.decode_s for usage in usages) / passes
    return Forced(
        context=context,
        rows=1 + sum(usage.drafted_tokens for usage in usages) / passes,
        accepted=written / passes,
        rate=Series(tuple(usage.decode_rate or 0.0 for usage in usages)),
        step_ms=step_s * 1e3,
        draft_ms=now.draft_ms,
        verify_ms=now.verify_ms,
        sample_ms=now.sample_ms,
        steps_of_one=step_s / plain_s,
        speedup=plain_s * written / passes / step_s,
    )


def run(engine: Engine, ids: list[int], n_tokens: int, again: bool = False) -> Usage:
    """Generate exactly `n_tokens` greedily after `ids`; raises what the request failed with.

    Nothing is kept for other requests but where the same ids come `again`.
    """
    sampling = SamplingParams(temperature=0.0, max_tokens=n_tokens, ignore_eos=True)
    *_, last = follow(engine, Request(ids=ids, sampling=sampling, prefix_cache=again))
    assert isinstance(last, Finished)
    return last.usage


def peak_memory() -> int:
    """Most bytes of memory that this process held so far, mapped file pages included."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def ordinary_ids(engine: Engine, vocab_size: int) -> list[int]:
    """Some hundred ids that are neither control tokens nor the end of a turn, where there are so many."""
    tokenizer = engine.tokenizer
    assert tokenizer is not None
    step = max(1, vocab_size // 1009)
    known = range(0, min(vocab_size, tokenizer.vocab_size), step)
    ids = [i for i in known if not tokenizer.is_control(i) and i not in tokenizer.eos_ids]
    return ids if len(ids) >= 64 else list(range(0, vocab_size, step))


class Prompts:
    """Random prompts that share no page, the same ones in every run."""

    def __init__(self, ids: list[int]) -> None:
        self._ids = ids
        self._rng = random.Random(1)

    def next(self, n: int) -> list[int]:
        """A prompt of `n` tokens."""
        return self._rng.choices(self._ids, k=n)
