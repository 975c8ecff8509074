"""`train_draft`: from a target GGUF to a drafter for it, with progress, checkpoints and resume."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor

from engine import files
from engine.chat import ChatTemplate
from engine.convert.config import TrainConfig
from engine.convert.drafts import SCHEMES, draft_keys, scheme_type
from engine.convert.quantize import quantize
from engine.convert.train.texts import Text, Writer, stop_token
from engine.convert.train.torch_dflash import TorchDflash
from engine.convert.train.torch_llama import TorchTarget
from engine.convert.writer import Key, Output, write_gguf
from engine.draft.config import DraftConfig, usual_layers
from engine.draft.files import LLAMA_CPP, open_draft
from engine.errors import BadRequest, LoadCancelled
from engine.gguf import ModelFile, open_model
from engine.gguf import Tensor as FileTensor
from engine.models.base import DenseConfig
from engine.quants import by_name
from engine.tokenizer import Tokenizer

OnProgress = Callable[[str, float, str], None]
"""Gets the stage ("writing", "training", "measuring"), its share done, and a word about it."""

WARM_UP = 100
"""Steps until the full learning rate."""

CHECKPOINT_S = 60.0
WHOLE_BLOCKS = 0.7
"""Share of the training steps with blocks of full length."""

MEASURE_TOKENS = 160
"""Length of the answers whose drafting is measured."""


@dataclass(frozen=True, slots=True)
class Trained:
    """A finished drafter: mean accepted tokens a pass, the target's own included, by category."""

    path: Path
    acceptance: dict[str, float]
    by_position: list[float]
    steps: int
    texts: int
    answer_tokens: int
    seconds: dict[str, float]


class Trainer:
    """Everything of one training; `work` holds the texts and the checkpoints."""

    def __init__(
        self,
        file: ModelFile,
        config: TrainConfig,
        work: Path,
        on_progress: OnProgress,
        cancel: threading.Event,
    ) -> None:
        self.config, self.work = config, work
        self.on_progress, self.cancel = on_progress, cancel
        cuda = torch.cuda.is_available()
        self.device = torch.device("cuda" if cuda else "cpu")
        self.dtype = torch.bfloat16 if cuda else torch.float32
        torch.manual_seed(config.seed)
        self.file = file
        self.target = TorchTarget(file, self.device, self.dtype)
        self.tokenizer = Tokenizer.from_gguf(file.meta)
        template = ChatTemplate.from_gguf(file.meta, self.tokenizer)
        self.stop = stop_token(file.meta, self.tokenizer)
        self.writer = Writer(self.target, self.tokenizer, template, self.stop, config.text_tokens)
        self.cfg = draft_config(self.target.cfg, config, spare_token(self.tokenizer))
        self.model = TorchDflash(self.cfg).to(self.device)
        matrices = [p for p in self.model.parameters() if p.dim() == 2]
        vectors = [p for p in self.model.parameters() if p.dim() != 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
            lr=config.learning_rate,
            betas=(0.9, 0.95),
            weight_decay=0.05,
        )
        self.step, self.seconds = 0, {"writing": 0.0, "training": 0.0}

    def check(self) -> None:
        """Raise `LoadCancelled` once a stop was asked for."""
        if self.cancel.is_set():
            raise LoadCancelled("The training was stopped; start it again to go on.")

    # ---- texts ---------------------------------------------------------------------------------

    def write_texts(self) -> list[Text]:
        """The training texts: those of an earlier run, and new ones until there are enough."""
        kept = self.work / "texts.npz"
        texts: list[Text] = load_texts(kept) if kept.exists() else []
        n, batch = self.config.texts, self.config.write_batch
        began, saved = time.monotonic(), len(texts)
        while len(texts) < n and not self._out_of(began, self.config.write_minutes):
            self.check()
            self.on_progress("writing", len(texts) / n, f"{len(texts):,} of {n:,} texts")
            texts += self.writer.conversations(min(batch, n), self.config.seed + len(texts))
            if len(texts) - saved >= 4 * batch:
                save_texts(kept, texts)
                saved = len(texts)
        save_texts(kept, texts)
        self.seconds["writing"] += time.monotonic() - began
        return texts

    def _out_of(self, began: float, minutes: float) -> bool:
        return minutes > 0 and time.monotonic() - began > 60 * minutes

    # ---- training ------------------------------------------------------------------------------

    def train(self, texts: Sequence[Text]) -> None:
        """Train until the steps or the minutes are used up; the learning rate falls to nothing by then."""
        c = self.config
        ids, starts, ends = tensors(texts, c.text_tokens, self.stop, self.device)
        began = saved = time.monotonic()
        spent = self.seconds["training"]
        shown, losses, weights = began, [], self._weights()
        while self.step < c.steps:
            self.check()
            done = self.step / c.steps
            if c.train_minutes:
                elapsed = time.monotonic() - began + spent
                done = max(done, elapsed / (60 * c.train_minutes))
                if done >= 1:
                    break
            self._set_rate(done)
            losses.append(self._learn(ids, starts, ends, weights))
            self.step += 1
            now = time.monotonic()
            if now - shown > 2 or self.step == c.steps:
                loss = torch.stack(losses).mean().item()
                self.on_progress("training", done, f"step {self.step:,}, loss {loss:.3f}")
                shown, losses = now, []
            if now - saved > CHECKPOINT_S:
                self.seconds["training"] = spent + now - began
                self.save()
                saved = now
        self.seconds["training"] = spent + time.monotonic() - began
        self.save()

    def _set_rate(self, done: float) -> None:
        warm = min(1.0, (self.step + 1) / WARM_UP)
        for group in self.optimizer.param_groups:
            group["lr"] = self.config.learning_rate * warm * 0.5 * (1 + math.cos(math.pi * done))

    def _weights(self) -> Tensor:
        """Later tokens of a block count less: they matter only where the earlier ones are right."""
        k = torch.arange(self.cfg.block - 1, device=self.device)
        return torch.exp(-k / self.config.loss_decay)

    def _learn(self, ids: Tensor, starts: Tensor, ends: Tensor, weights: Tensor) -> Tensor:
        c = self.config
        random = torch.Generator().manual_seed(c.seed * 1_000_003 + self.step)
        rows = torch.randint(len(ids), (min(c.batch, len(ids)),), generator=random).to(self.device)
        tokens, start, end = ids[rows].long(), starts[rows, None], ends[rows, None]
        share = torch.rand((len(rows), c.anchors), generator=random).to(self.device)
        anchors = (start - 1 + share * (end - start)).long().clamp(min=1)
        features = self.target.features(tokens, self.cfg.capture)
        size = self._size(random)
        hidden = self._draft(features, anchors, tokens, size)
        at = anchors[:, :, None] + 1 + torch.arange(size - 1, device=self.device)
        wanted = at < end[:, :, None]
        labels = tokens.gather(1, at.clamp(max=tokens.shape[1] - 1).flatten(1)).view_as(at)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            scores = self.target.logits(hidden[:, :, 1:][wanted].to(self.dtype))
        loss = F.cross_entropy(scores.float(), labels[wanted], reduction="none")
        weight = weights[: size - 1].expand_as(at)[wanted]
        total: Tensor = (loss * weight).sum() / weight.sum().clamp(min=1e-6)
        self.optimizer.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        return total.detach()

    def _size(self, random: torch.Generator) -> int:
        """Whole blocks mostly, and shorter ones, which a policy may ask for."""
        whole = self.cfg.block
        if whole < 4 or torch.rand((), generator=random) < WHOLE_BLOCKS:
            return whole
        return int(torch.randint(3, whole, (), generator=random))

    def _draft(self, features: Tensor, anchors: Tensor, tokens: Tensor, size: int) -> Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            out: Tensor = self.model(
                features, anchors, self.target.token_embd, tokens.gather(1, anchors), size
            )
        return out

    # ---- measuring -----------------------------------------------------------------------------

    @torch.no_grad()
    def measure(self) -> tuple[dict[str, float], list[float]]:
        """Mean tokens a pass on held-out prompts at temperature 0 by category, and acceptance by place."""
        found: dict[str, float] = {}
        hits = np.zeros((0, self.cfg.block - 1), bool)
        for kind, prompts in self.writer.held_out.items():
            self.check()
            self.on_progress("measuring", len(found) / len(self.writer.held_out), kind)
            asked = prompts[: self.config.measured]
            texts = self.writer.answers(asked, [0.0] * len(asked), self.config.seed)
            passes = tokens = 0
            for text in texts:
                ends = min(len(text.ids), text.start + MEASURE_TOKENS)
                lengths, rows = self._accepted(text.ids[:ends], text.start)
                hits = np.concatenate([hits, rows])
                passes, tokens = passes + len(lengths), tokens + sum(lengths)
            found[kind] = tokens / max(passes, 1)
        return found, [float(x) for x in hits.mean(0)] if len(hits) else []

    def _accepted(self, ids: list[int], start: int) -> tuple[list[int], NDArray[np.bool_]]:
        """Tokens of each pass while `ids` is written, its first one being known; and which guesses held."""
        block, n = self.cfg.block, len(ids)
        if n - start < 2:
            return [], np.zeros((0, block - 1), bool)
        tokens = torch.tensor([ids], device=self.device)
        anchors = torch.arange(start, n - 1, device=self.device)[None]
        features = self.target.features(tokens, self.cfg.capture)
        hidden = self._draft(features, anchors, tokens, block)[0, :, 1:]
        guesses = self.target.logits(hidden.to(self.dtype)).argmax(-1).cpu().numpy()
        lengths, held, at = [], [], start
        while at < n - 1:
            truth = np.array(ids[at + 1 : at + block])
            right = guesses[at - start][: len(truth)] == truth
            accepted = int(np.logical_and.accumulate(right).sum())
            lengths.append(min(accepted + 1, n - 1 - at))
            if len(truth) == block - 1:
                held.append(np.logical_and.accumulate(right))
            at += accepted + 1
        return lengths, np.array(held, bool).reshape(-1, block - 1)

    # ---- checkpoints and the file --------------------------------------------------------------

    def save(self) -> None:
        """Keep weights, optimiser and progress; safetensors and JSON, nothing that runs code."""
        from safetensors.torch import save

        state = {f"model.{k}": v.contiguous() for k, v in self.model.state_dict().items()}
        for name, p in self.model.named_parameters():
            for key, value in self.optimizer.state.get(p, {}).items():
                state[f"optimizer.{name}.{key}"] = torch.as_tensor(value).contiguous()
        files.write_atomically(self.work / "checkpoint.safetensors", save(state))
        progress = {"step": self.step, "seconds": self.seconds, "config": asdict(self.config)}
        files.write_atomically(self.work / "progress.json", json.dumps(progress).encode())

    def resume(self) -> bool:
        """Go on from a checkpoint of the same settings, if there is one."""
        from safetensors.torch import load_file

        try:
            progress = json.loads((self.work / "progress.json").read_text(encoding="utf-8"))
            state = load_file(self.work / "checkpoint.safetensors", device=str(self.device))
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:
            raise BadRequest(f"The checkpoint in {self.work} cannot be read: {error}.") from error
        shape = ("layers", "n_ff", "captures", "block", "window")
        then, now = progress["config"], asdict(self.config)
        if any(then.get(k) != now[k] for k in shape):
            raise BadRequest(
                f"The checkpoint in {self.work} is of a draft of another shape; give another --work."
            )
        self.model.load_state_dict(
            {k.removeprefix("model."): v for k, v in state.items() if k.startswith("model.")}
        )
        for name, p in self.model.named_parameters():
            start = f"optimizer.{name}."
            kept = {k.removeprefix(start): v for k, v in state.items() if k.startswith(start)}
            if kept:
                kept["step"] = kept["step"].cpu()
                self.optimizer.state[p] = kept
        self.step, self.seconds = progress["step"], progress["seconds"]
        return True

    def start_from(self, path: Path) -> None:
        """Begin with the weights of a finished draft; `BadRequest` for one of another shape."""
        draft = open_draft(path)
        state = self.model.state_dict()
        for name, p in state.items():
            found = draft.tensors.get(file_name(name))
            if found is None or found.shape != tuple(p.shape):
                raise BadRequest(
                    f"{path.name} has {found.shape if found else 'no'} {file_name(name)}, expected"
                    f" {tuple(p.shape)}; choose the same layers and widths as it has."
                )
            state[name] = torch.from_numpy(found.dequantize())
        self.model.load_state_dict(state)

    def export(self, out: Path, scheme: str) -> None:
        """Write the drafter as llama.cpp's GGUF, with the target's tokenizer."""
        outputs = []
        for name, p in self.model.state_dict().items():
            values, name = p.detach().float().cpu().numpy(), file_name(name)
            plain = FileTensor(name, values.shape, by_name("F32"), values.view(np.uint8))
            kind = scheme_type(plain, SCHEMES[scheme])
            outputs.append(Output(name, values.shape, kind, _packed(values, kind)))
        target = self.file.name
        kind = by_name("F16")
        keys = draft_keys(self.cfg, "llama.cpp", f"{target} DFlash draft", self.file, kind)
        keys = [k for k in keys if k.name != "general.file_type"]
        keys.append(Key("general.file_type", "uint32", SCHEMES[scheme].file_type))
        write_gguf(out, LLAMA_CPP, keys, outputs)


def file_name(name: str) -> str:
    """A parameter's name in the file."""
    name = name.replace("enc_output_norm", "enc.output_norm")
    return name if name.endswith(".weight") else f"{name}.weight"


def _packed(values: NDArray[np.float32], kind: Any) -> Callable[[], NDArray[np.uint8]]:
    return lambda: quantize(values, kind)


def train_draft(
    target: Path,
    out: Path,
    config: TrainConfig,
    work: Path | None = None,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
    start: Path | None = None,
) -> Trained:
    """Train a DFlash drafter for `target` on text that it writes itself, and write it to `out`.

    `start` is a draft of the same shape whose weights to begin with.

    `work` (default: `out` with ".train" after it) keeps texts and checkpoints; a later call with the same
    settings goes on from there. Raises `UnsupportedModel` for a target that it cannot run,
    `LoadCancelled` when stopped.
    """
    report = on_progress or (lambda stage, share, word: None)
    work = work or out.with_name(out.name + ".train")
    work.mkdir(parents=True, exist_ok=True)
    with open_model(target) as file:
        trainer = Trainer(file, config, work, report, cancel or threading.Event())
        if not trainer.resume() and start is not None:
            trainer.start_from(start)
        texts = trainer.write_texts()
        if not texts:
            raise BadRequest("The target wrote no text to learn from.")
        trainer.train(texts)
        trainer.export(out, config.scheme)
        acceptance, by_position = trainer.measure()
        return Trained(
            path=out,
            acceptance=acceptance,
            by_position=by_position,
            steps=trainer.step,
            texts=len(texts),
            answer_tokens=sum(len(t.ids) - t.start for t in texts),
            seconds=trainer.seconds,
        )


def draft_config(target: DenseConfig, config: TrainConfig, mask: int) -> DraftConfig:
    """The drafter's shape: the target's width and heads, and a few layers over a window."""
    n = config.layers
    captures = min(config.captures, target.n_layers)
    capture = usual_layers(target.n_layers, captures)
    if len({*capture}) != captures or min(capture) < 0 or max(capture) >= target.n_layers:
        capture = tuple(int(i) for i in np.linspace(0, target.n_layers - 1, captures).round())
    return DraftConfig(
        dialect="llama.cpp",
        n_layers=n,
        n_embd=target.n_embd,
        n_ff=config.n_ff or 2 * target.n_embd,
        n_heads=target.n_heads,
        n_kv_heads=target.n_kv_heads,
        head_dim=target.head_dim,
        n_features=captures * target.n_embd,
        n_capture=captures,
        block=config.block,
        mask=mask,
        capture=capture,
        target_layers=0,
        rope_base=10000.0,
        eps=1e-6,
        windows=(config.window,) * n,
        causal=(False,) * n,
        window_per_row=True,
        n_vocab=target.n_vocab,
        max_ctx=target.max_ctx,
    )


def spare_token(tokenizer: Tokenizer) -> int:
    """A token that stands for "not known yet": the last control token that ends nothing."""
    spare = [
        i
        for i in range(tokenizer.vocab_size)
        if tokenizer.is_control(i) and i not in tokenizer.eos_ids and i != tokenizer.bos_id
    ]
    return spare[-1] if spare else tokenizer.vocab_size - 1


def tensors(
    texts: Sequence[Text], width: int, stop: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Ids (N, width) int32, and where the answers begin and end (N,), of answers of two tokens or more."""
    usable = [t for t in texts if len(t.ids) - t.start >= 2]
    ids = np.full((len(usable), width), stop, np.int32)
    for row, text in zip(ids, usable, strict=True):
        row[: len(text.ids)] = text.ids
    bounds = np.array([[t.start, len(t.ids)] for t in usable], np.int64).reshape(-1, 2)
    starts, ends = (torch.from_numpy(b).to(device) for b in bounds.T.copy())
    return torch.from_numpy(ids).to(device), starts, ends


def save_texts(path: Path, texts: Sequence[Text]) -> None:
    """Keep texts as plain arrays."""
    import io

    buffer = io.BytesIO()
    lengths = np.array([len(t.ids) for t in texts], np.int32)
    ids = np.concatenate([np.array(t.ids, np.int32) for t in texts]) if texts else lengths
    starts = np.array([t.start for t in texts], np.int32)
    np.savez(buffer, ids=ids, lengths=lengths, starts=starts)
    files.write_atomically(path, buffer.getvalue())


def load_texts(path: Path) -> list[Text]:
    """Texts of `save_texts`; a damaged file counts as none."""
    try:
        with np.load(path, allow_pickle=False) as data:
            ids, lengths, starts = data["ids"], data["lengths"], data["starts"]
    except (OSError, ValueError, KeyError, EOFError):
        return []
    cuts = np.cumsum(lengths)[:-1]
    return [
        Text(row.tolist(), int(start))
        for row, start in zip(np.split(ids, cuts), starts, strict=True)
    ]
