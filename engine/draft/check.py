"""The draft doctor: how well a draft guesses for a target, and why not better.

The target writes a few short texts; the draft guesses along them as it would in use. Each thing that is
often wrong (layers, rope base, mask token, window) is changed in turn, and the probability compared that the
draft gives to the tokens that were written: it tells settings apart long before the number of accepted tokens
does. The change that helps names the cause, and if none does the draft was made for another model.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine import loading, placement
from engine.chat import ChatTemplate
from engine.config import EngineConfig, SamplingParams, Spec
from engine.devices import devices
from engine.draft.base import Target
from engine.draft.config import DraftConfig, usual_layers
from engine.draft.dflash import DflashDrafter, fitted
from engine.draft.files import DraftFile, open_draft
from engine.errors import LoadCancelled
from engine.gguf import ModelFile, open_model
from engine.models.base import model_of
from engine.ops.base import Limits, StepInput
from engine.tokenizer import Tokenizer
from engine.types import Sequence as Text
from engine.weights import load_weights

OnProgress = Callable[[int, int, str], None]

LOW = 1.6
"""Tokens a pass under which a draft is called bad: it hardly pays for itself."""

FAIR = 3.0
"""Tokens a pass from which on a draft's mask token is out of question."""

HELPS = 0.25
"""Tokens a pass that a change must bring to a bad draft, and a tenth of what there was, to be the cause."""

SURE = 3.0
"""Standard errors by which the right tokens must be likelier with a change, for it to count at all."""

QUESTIONS = (
    "Write a Python function that returns the factorial of a number.",
    "List five healthy breakfast ideas.",
    "Why is the sky blue?",
)
_ROPE_BASES = (10_000.0, 100_000.0, 500_000.0, 1_000_000.0, 5_000_000.0, 10_000_000.0)
_EVERY = 2  # tokens between two places of a text where settings are compared
_PLACES = 4  # guesses of a block whose probability counts: later ones say little
_MASKS = ("<|mask|>", "[MASK]", "<mask>", "<|fim_pad|>", "<|endoftext|>")


@dataclass(frozen=True, slots=True)
class Found:
    """What a draft did along the texts: tokens a pass with the target's own one, and acceptance by place."""

    acceptance_length: float
    by_position: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """The doctor's finding. `cause` is one of "", "layers", "rope", "mask", "window", "template", "pairing";
    `texts` are the tokens a pass on each kind of text, `tried` how many times as likely the right tokens are
    with each change.
    """

    acceptance_length: float
    by_position: tuple[float, ...]
    texts: dict[str, float]
    settings: dict[str, Any]
    warnings: tuple[str, ...]
    cause: str
    advice: str
    tried: dict[str, float]


def check_draft(
    target: Path,
    draft: Path,
    config: EngineConfig | None = None,
    ids: Sequence[int] | None = None,
    tokens: int = 48,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
) -> Report:
    """Let a draft guess while its target writes `tokens` tokens after each of some questions.

    `ids` is a text that the draft should know, whatever the chat template does to the questions. Raises
    `UnsupportedModel` with both numbers for a draft that does not fit at all, else as `load_model`.
    """
    stop = cancel or threading.Event()

    def say(done: int, total: int, what: str) -> None:
        if stop.is_set():
            raise LoadCancelled("The check was stopped.")
        if on_progress is not None:
            on_progress(done, total, what)

    file = open_draft(draft)
    config = replace(config or EngineConfig(), spec=Spec.OFF, max_concurrency=1, max_ctx=1024)
    with _Patient.opened(target, file, config, stop) as patient:
        cfg = fitted(file, patient.target)
        texts = patient.texts(ids, tokens, lambda i, n: say(i, n, "writing"))
        say(0, 1, "drafting")
        by_kind = {
            kind: patient.measure(file, cfg, [t for t in texts if t.kind == kind]).acceptance_length
            for kind in dict.fromkeys(t.kind for t in texts)
        }
        best = max(by_kind, key=lambda k: by_kind[k])
        whole = patient.measure(file, cfg, [t for t in texts if t.kind != "plain"])
        kind = "ids" if "ids" in by_kind else best
        own = [t for t in texts if t.kind == kind]
        # Layers that are off by one, and more, cost little enough to look sound; masks are many to try.
        changes = {
            name: changed
            for name, changed in patient.changes(cfg).items()
            if whole.acceptance_length < FAIR or not name.startswith("mask")
        }
        usual = patient.likelihood(file, cfg, own)
        gains = {}
        for i, (name, changed) in enumerate(changes.items()):
            say(i, len(changes), f"trying {name}")
            gains[name] = patient.likelihood(file, changed, own) - usual
        helped = None
        if (likelier := surest(gains)) is not None:
            helped = likelier, patient.measure(file, changes[likelier], own).acceptance_length
        cause, advice = judge(by_kind, by_kind[kind], helped)
        return Report(
            acceptance_length=whole.acceptance_length,
            by_position=whole.by_position,
            texts=by_kind,
            settings=patient.settings(file, cfg, texts),
            warnings=cfg.warnings,
            cause=cause,
            advice=advice,
            tried={name: round(float(np.exp(g.mean())), 3) for name, g in gains.items()},
        )


def surest(gains: dict[str, NDArray[np.float64]]) -> str | None:
    """The change that makes the right tokens likeliest, by the `gains` in log-probability at the same places;
    None where no change certainly does."""
    certain = {
        name: float(gain.mean())
        for name, gain in gains.items()
        if len(gain) > 2 and gain.mean() > SURE * gain.std(ddof=1) / len(gain) ** 0.5
    }
    return max(certain, key=lambda name: certain[name], default=None)


def judge(
    by_kind: dict[str, float], usual: float, helped: tuple[str, float] | None
) -> tuple[str, str]:
    """The likely cause of few accepted tokens, and what to do.

    `usual` are the tokens a pass on the texts that suit the draft best, `helped` is a change that makes the
    right ones likelier, and the tokens a pass with it.
    """
    if helped is not None:
        name, better = helped
        # Of a draft that guesses at random any change may look a little less wrong.
        if usual >= LOW or better > usual + max(HELPS, 0.1 * usual):
            cause, _, what = name.partition(": ")
            said = {
                "layers": "It reads the wrong layers of the model",
                "rope": "Its rope base is wrong",
                "mask": "Its mask token is wrong",
                "window": "Its attention is set wrongly",
            }[cause]
            return cause, (
                f"{said}: with {what} the right tokens are likelier ({better:.2f} tokens a pass, and"
                f" {usual:.2f} as it is). Correct the file's metadata, or convert it again from the original"
                " with `lucebox convert-draft`."
            )
    chat, known = by_kind.get("chat", usual), by_kind.get("ids", 0.0)
    plain = max(by_kind.values())
    if chat < known * 2 / 3 or (chat < LOW <= plain and plain > chat + HELPS):
        return "template", (
            f"It guesses {plain:.2f} tokens a pass in a text without the chat template and {chat:.2f} behind"
            " it: it was trained with another template, or without thinking. Try --chat-template-file, or a"
            " draft that was made for this version of the model."
        )
    if max(usual, chat) >= LOW:
        return "", "The draft guesses well."
    return "pairing", (
        f"No setting helps ({usual:.2f} tokens a pass): the draft was made for another model, or for another"
        " version of this one. Get the draft that its maker names for this file."
    )


@dataclass(frozen=True, slots=True)
class Sample:
    """A text that the target wrote from `start` on, with the outputs of the layers that were read."""

    kind: str
    ids: list[int]
    start: int
    hidden: NDArray[np.float32]


class _Patient:
    """A loaded target whose layers' outputs are kept."""

    def __init__(self, target: Target, layers: tuple[int, ...], file: ModelFile) -> None:
        self.target, self.layers = target, layers
        self.tokenizer = Tokenizer.from_gguf(file.meta)
        self.template = ChatTemplate.from_gguf(file.meta, self.tokenizer)

    @classmethod
    @contextmanager
    def opened(
        cls, path: Path, draft: DraftFile, config: EngineConfig, cancel: threading.Event
    ) -> Iterator[_Patient]:
        """Load a target so that all layers that a draft may mean can be read."""
        with open_model(path) as file:
            model = model_of(file.architecture)
            cfg = model.read_config(file)
            plan = placement.resolve(config, file, devices())
            limits = Limits(
                rows=plan.prefill_chunk,
                sequences=1,
                pages=-(-plan.max_ctx // plan.page_tokens),
                page_tokens=plan.page_tokens,
                pages_per_sequence=-(-plan.max_ctx // plan.page_tokens),
                slots=max(1, plan.n_slots),
            )
            ops = loading.make_ops(plan, None, cancel)
            try:
                weights = load_weights(file, model.tensors(cfg), ops, None, cancel)
                ops.allocate(cfg.shape, limits)
                target = Target(file, cfg, weights, ops, limits, plan)
                layers = _layers(fitted(draft, target), cfg.shape.n_layers)
                with ops.recording(layers):
                    model.forward(ops, weights, cfg)
                yield cls(target, layers, file)
            finally:
                ops.close()

    def texts(
        self, ids: Sequence[int] | None, tokens: int, on_text: Callable[[int, int], None]
    ) -> list[Sample]:
        """What the target writes: behind its template, as plain text, and after `ids`."""
        prompts = [
            ("chat", self.template.encode([{"role": "user", "content": q}])) for q in QUESTIONS
        ]
        prompts += [("plain", self.tokenizer.encode(q + "\n")) for q in QUESTIONS[:2]]
        if ids is not None:
            prompts.append(("ids", list(ids)))
        found = []
        for i, (kind, prompt) in enumerate(prompts):
            on_text(i, len(prompts))
            found.append(self._write(kind, prompt, tokens))
        return [text for text in found if len(text.ids) - text.start > 2]

    def _write(self, kind: str, prompt: list[int], tokens: int) -> Sample:
        loading.check_ids(prompt, self.target.cfg.shape.n_vocab)
        limits, ops = self.target.limits, self.target.ops
        prompt = prompt[-(limits.pages_per_sequence * limits.page_tokens - tokens - 64) :]
        ids, done, rows = list(prompt), 0, []
        table = np.arange(limits.pages_per_sequence, dtype=np.int32)[None]
        while len(ids) < len(prompt) + tokens:
            piece = np.array(ids[done : done + limits.rows], np.int32)
            places = np.arange(done, done + len(piece), dtype=np.int32)
            last = np.array([len(piece) - 1], np.int32)
            zeros = np.zeros_like(piece)
            logits = ops.run(StepInput(piece, places, zeros, table, last, zeros[:1]))
            rows.append(np.array(ops.hidden(), np.float32))
            done += len(piece)
            if done == len(ids):
                token = int(logits[0].argmax())
                if token in self.tokenizer.eos_ids:
                    break
                ids.append(token)
        return Sample(kind, ids, len(prompt), np.concatenate(rows))

    def measure(self, file: DraftFile, cfg: DraftConfig, texts: Sequence[Sample]) -> Found:
        """Draft along texts as speculative decoding would."""
        drafter = DflashDrafter(file, cfg, self.target)
        passes = gained = 0
        right, asked = np.zeros(drafter.depth), np.zeros(drafter.depth)
        try:
            for text in texts:
                at, seen = text.start, 0
                features = text.hidden[:, self._columns(cfg)]
                while at < len(text.ids) - 1:
                    sequence = self._sequence(text, at)
                    drafter.observe(sequence, seen, at - seen, features[seen:at])
                    seen = at
                    n = min(drafter.depth, len(text.ids) - 1 - at)
                    draft = drafter.propose(sequence, n, n)
                    guess = (draft.late.told(draft) if draft.late else draft).tokens
                    truth = text.ids[at + 1 : at + 1 + n]
                    accepted = 0
                    while accepted < n and guess[accepted] == truth[accepted]:
                        accepted += 1
                    asked[:n] += 1
                    right[:accepted] += 1
                    passes, gained = passes + 1, gained + accepted + 1
                    at += accepted + 1
        finally:
            drafter.close()
        shares = (right / np.maximum(asked, 1)).round(4).tolist()
        return Found(round(gained / max(passes, 1), 4), tuple(shares))

    def likelihood(
        self, file: DraftFile, cfg: DraftConfig, texts: Sequence[Sample]
    ) -> NDArray[np.float64]:
        """Mean log-probability of the tokens that follow, at every other place of the texts."""
        drafter = DflashDrafter(file, cfg, self.target)
        found = []
        try:
            for text in texts:
                features, seen = text.hidden[:, self._columns(cfg)], 0
                for at in range(text.start, len(text.ids) - 1, _EVERY):
                    sequence = self._sequence(text, at)
                    drafter.observe(sequence, seen, at - seen, features[seen:at])
                    seen = at
                    truth = np.array(text.ids[at + 1 : at + 1 + min(drafter.depth, _PLACES)])
                    # The whole block is computed: a shorter one is another one.
                    logits = drafter.block(sequence, drafter.depth)[0][: len(truth)]
                    found.append(float(np.mean(_log_softmax(logits)[np.arange(len(truth)), truth])))
        finally:
            drafter.close()
        return np.array(found)

    def _sequence(self, text: Sample, at: int) -> Text:
        """A text up to place `at`, which is not computed yet."""
        pages = list(range(self.target.limits.pages_per_sequence))
        return Text(0, text.ids[: at + 1], text.start, SamplingParams(), pages)

    def _columns(self, cfg: DraftConfig) -> NDArray[np.intp]:
        width = self.target.cfg.shape.n_embd
        starts = np.array([self.layers.index(layer) for layer in cfg.capture]) * width
        return np.asarray((starts[:, None] + np.arange(width)).reshape(-1))

    def changes(self, cfg: DraftConfig) -> dict[str, DraftConfig]:
        """The draft with each thing changed that is often wrong; "kind: what"."""
        made: dict[str, DraftConfig] = {}
        depth = self.target.cfg.shape.n_layers
        for layers in _captures(cfg, depth):
            made[f"layers: {', '.join(map(str, layers))}"] = replace(cfg, capture=layers)
        for base in _ROPE_BASES:
            if base != cfg.rope_base:
                made[f"rope: {base:g}"] = replace(cfg, rope_base=base)
        for mask in self._masks():
            if mask != cfg.mask:
                made[f"mask: {mask}"] = replace(cfg, mask=mask)
        made |= self._windows(cfg)
        return made

    def _windows(self, cfg: DraftConfig) -> dict[str, DraftConfig]:
        """The draft without its window, or with other causality inside its blocks."""
        n, made = cfg.n_layers, {}
        if any(cfg.windows):
            made["window: the whole context"] = replace(cfg, windows=(0,) * n)
        for what, causal in (
            ("window: no causality", (False,) * n),
            ("window: causality where it slides", tuple(w > 0 for w in cfg.windows)),
            ("window: causality everywhere", (True,) * n),
        ):
            if causal != cfg.causal and causal not in (m.causal for m in made.values()):
                made[what] = replace(cfg, causal=causal)
        return made

    def _masks(self) -> list[int]:
        """Tokens that drafts use as a mask: named so, or the spare ones at the end of the vocabulary."""
        tokenizer, n_vocab = self.target_tokens()
        named = [i for text in _MASKS if (i := tokenizer.marker_id(text)) is not None]
        control = [i for i in range(tokenizer.vocab_size) if tokenizer.is_control(i)]
        likely = [*named, 248_070, *control[-6:], *range(n_vocab - 10, n_vocab)]
        return [i for i in dict.fromkeys(likely) if 0 <= i < n_vocab]

    def target_tokens(self) -> tuple[Tokenizer, int]:
        """The tokenizer, and how many tokens the model has."""
        return self.tokenizer, self.target.cfg.shape.n_vocab

    def settings(
        self, file: DraftFile, cfg: DraftConfig, texts: Sequence[Sample]
    ) -> dict[str, Any]:
        """What the draft ran with, and how large the outputs are that it read (root mean square)."""
        width = self.target.cfg.shape.n_embd
        rows = np.concatenate([t.hidden[:, self._columns(cfg)] for t in texts])
        sizes = np.sqrt((rows.reshape(len(rows), -1, width) ** 2).mean(axis=(0, 2)))
        norm = file.tensors["enc.output_norm.weight"].dequantize()
        mask = self.tokenizer.token_text(cfg.mask) if cfg.mask < self.tokenizer.vocab_size else ""
        chosen = ("dialect", "block", "mask", "capture", "rope_base", "eps", "windows", "causal")
        return {
            **{k: v for k, v in asdict(cfg).items() if k in chosen},
            "mask_text": mask,
            "output_rms": [round(float(s), 4) for s in sizes],
            "norm_rms": round(float(np.sqrt((norm * norm).mean())), 4),
        }


def _log_softmax(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = logits.astype(np.float64)
    wide -= wide.max(axis=1, keepdims=True)
    return np.asarray(wide - np.log(np.exp(wide).sum(axis=1, keepdims=True)))


def _captures(cfg: DraftConfig, depth: int) -> list[tuple[int, ...]]:
    """Other layers that a draft may mean: counted from one, or those that its makers usually read."""
    n = cfg.n_capture
    moved = [tuple(layer + by for layer in cfg.capture) for by in (-1, 1)]
    usual = [usual_layers(depth, n), usual_layers(depth, n, qwen35=True)]
    turned = [cfg.capture[::-1]] if n > 1 else []
    found = [c for c in (*moved, *usual, *turned) if len({*c}) == n]
    return [c for c in dict.fromkeys(found) if c != cfg.capture and min(c) >= 0 and max(c) < depth]


def _layers(cfg: DraftConfig, depth: int) -> tuple[int, ...]:
    return tuple(sorted({layer for c in (cfg.capture, *_captures(cfg, depth)) for layer in c}))


def show(report: Report) -> str:
    """The report as lines for people."""
    s = report.settings
    lines = [
        f"{report.acceptance_length:.2f} tokens a pass",
        "accepted by place  " + "  ".join(f"{share:.0%}" for share in report.by_position),
        *(f"  {kind:<16}{value:.2f}" for kind, value in report.texts.items()),
        f"reads layers {', '.join(map(str, s['capture']))} (sizes "
        + ", ".join(f"{size:.3g}" for size in s["output_rms"])
        + ")",
        f"rope base {s['rope_base']:g}, norm epsilon {s['eps']:g}, context norm {s['norm_rms']:.3g}",
        f"mask {s['mask']} {s['mask_text']!r}, blocks of {s['block']}, windows {list(s['windows'])}",
        *(f"Note: {warning}" for warning in report.warnings),
        *(f"  with {name:<40}{value:,.2f} times as likely" for name, value in report.tried.items()),
        f"{report.cause or 'sound'}: {report.advice}",
    ]
    return "\n".join(lines)
