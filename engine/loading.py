"""From a file to a model that is ready to run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Seq
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine import cards, placement
from engine.beside import beside
from engine.cache.fingerprint import draft_name, fingerprint_of
from engine.cache.host import HostPool
from engine.cache.memory import DeviceMemory, Memory
from engine.cache.prefix import PrefixCache
from engine.chat import ChatTemplate
from engine.config import AUTO, EngineConfig, Plan, Spec
from engine.devices import devices
from engine.draft.base import Target
from engine.draft.choosing import Chosen, begin, choose
from engine.draft.speculation import Speculation
from engine.errors import (
    BadRequest,
    KernelError,
    ModelFileError,
    OutOfMemory,
    UnsupportedModel,
)
from engine.gguf import ModelFile, open_model
from engine.grammar import Grammars
from engine.library import folder_problem, refuse_unless_chat_model
from engine.models.base import model_of
from engine.ops.base import Limits, Ops, StepInput
from engine.pages import PagePool
from engine.passes import ROWS
from engine.paths import cache_dir
from engine.runner import Flight, Runner
from engine.scheduler import MOST_GUESSED, Scheduler
from engine.state import StateSlots
from engine.tokenizer import Tokenizer
from engine.types import LoadProgress, ModelInfo, StepResult
from engine.user_text import read_text
from engine.weights import load_weights

log = logging.getLogger(__name__)

OnProgress = Callable[[LoadProgress], None]


@dataclass(slots=True, eq=False)
class LoadedModel:
    """A model with its device buffers; `close` frees them."""

    info: ModelInfo
    config: EngineConfig
    plan: Plan
    tokenizer: Tokenizer
    template: ChatTemplate
    ops: Ops
    runner: Runner
    scheduler: Scheduler
    grammars: Grammars
    speculation: Speculation | None = None

    def settle(self, flight: Flight) -> StepResult:
        """Collect a launched step, and let what it decided stand in pages and states."""
        if self.speculation is not None and flight.launched is not None:
            self.speculation.anticipate(flight.step, self.ops)
        scheduler, result = self.scheduler, self.runner.collect(flight)
        step = flight.step
        tried = [(i, span) for i, span in enumerate(step.spans) if span.draft is not None]
        for i, span in tried:
            path = result.paths[i]
            self.ops.accept(i, path[: scheduler.stays(span, len(path))])
        scheduler.computed(step.spans, result.tokens, result.errors)
        for i, span in tried:
            path = result.paths[i]
            self.ops.accept(i, path[scheduler.stays(span, len(path)) :])
        scheduler.pace(step, result.seconds)
        return result

    def logits(self, ids: Seq[int]) -> Iterator[NDArray[np.float32]]:
        """Logits of every position of `ids`, in pieces (n, n_vocab).

        Only while nothing is being generated. Raises `BadRequest` for ids that the model has not, or
        more of them than the context holds.
        """
        check_ids(ids, self.info.vocab_size)
        if len(ids) > self.plan.max_ctx:
            raise BadRequest(
                f"The text has {len(ids):,} tokens and the context holds {self.plan.max_ctx:,}."
            )
        return self.runner.logits(ids)

    def close(self) -> None:
        """Free all memory of the model."""
        self.grammars.close()
        if self.speculation is not None:
            self.speculation.close()
        self.ops.close()


def check_ids(ids: Seq[int], n_vocab: int) -> None:
    """Refuse ids outside the vocabulary, and an empty prompt."""
    if not len(ids):
        raise BadRequest("The prompt is empty; expected at least one token.")
    for token in ids:
        if not 0 <= token < n_vocab:
            raise BadRequest(f"Token id {token} is outside the vocabulary of {n_vocab:,}.")


def load_model(
    path: Path,
    config: EngineConfig | None = None,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
    leaving: int = 0,
) -> LoadedModel:
    """Open, check, place and upload a model; nothing is kept when it fails.

    Where the device is chosen here and a card fails, the processor takes over, with a note. `leaving` bytes
    would come free with the former model. Raises `ModelFileError`, `UnsupportedModel`, `OutOfMemory`,
    `BadRequest`, `KernelError` or `LoadCancelled`.
    """
    config, cancel = config or EngineConfig(), cancel or threading.Event()
    with open_model(path) as file:
        refuse_unless_chat_model(file)
        plan = placement.resolve(config, file, devices(), leaving)
        try:
            return _bring(file, config, plan, on_progress, cancel)
        except (KernelError, UnsupportedModel, OutOfMemory) as error:
            if config.device != AUTO or plan.device == "cpu":
                raise
            if leaving and isinstance(error, OutOfMemory):
                raise
            log.warning("%s is loaded on the processor: %s", path.name, error)
            note = f"It runs on the processor, since {plan.device} failed. {error}"
        plan = placement.resolve(replace(config, device="cpu"), file, devices())
        plan = replace(plan, notes=(note, *plan.notes))
        return _bring(file, config, plan, on_progress, cancel)


def _bring(
    file: ModelFile,
    config: EngineConfig,
    plan: Plan,
    on_progress: OnProgress | None,
    cancel: threading.Event,
) -> LoadedModel:
    """Carry out a plan."""
    model = model_of(file.architecture)
    cfg = model.read_config(file)
    tokenizer = Tokenizer.from_gguf(file.meta)
    if tokenizer.vocab_size > cfg.n_vocab:
        raise ModelFileError(
            f"The tokenizer has {tokenizer.vocab_size:,} tokens and the model {cfg.n_vocab:,};"
            " the file is put together from parts that do not fit."
        )
    template = ChatTemplate.from_gguf(file.meta, tokenizer, _template_file(plan))
    limits = _limits(plan)
    ops = make_ops(plan, on_progress, cancel)

    def record() -> tuple[Speculation | None, Chosen]:
        with _freed_on_failure(ops, file.path.name):
            _preparing(on_progress)
            ops.allocate(cfg.shape, limits)
            target = Target(file, cfg, weights, ops, limits, plan)
            chosen = choose(target)
            drafter = chosen.drafter
            try:
                with ops.recording(drafter.needs) if drafter else ops.recording():
                    model.forward(ops, weights, cfg)
                _warm_up(ops, _sizes(plan), on_progress)
                return (begin(drafter, target, cfg.n_vocab) if drafter else None), chosen
            except BaseException:
                if drafter is not None:
                    drafter.close()
                raise

    def undo(made: tuple[Speculation | None, Chosen]) -> None:
        if made[0] is not None:
            made[0].close()
        ops.close()

    with _freed_on_failure(ops, file.path.name):
        weights = load_weights(file, model.tensors(cfg), ops, on_progress, cancel)
    on_cpu = plan.device == "cpu"
    speculation, chosen = beside(record, cancel, undo) if on_cpu else record()
    drafter = chosen.drafter
    memory = DeviceMemory(ops, drafter.paged if drafter else None)
    draft = draft_name(drafter.name, chosen.file) if drafter and drafter.paged else ""
    fingerprint = fingerprint_of(file, plan, draft, memory.page_bytes, memory.state_bytes)
    return LoadedModel(
        info=_info(
            file, config, plan, tokenizer, template, cfg.n_vocab, (chosen.note, *_fallbacks(ops))
        ),
        config=config,
        plan=plan,
        tokenizer=tokenizer,
        template=template,
        ops=ops,
        runner=Runner(ops, limits, cfg.shape),
        scheduler=_scheduler(plan, memory, fingerprint, speculation, ops.alike()),
        grammars=Grammars(tokenizer),
        speculation=speculation,
    )


def _limits(plan: Plan) -> Limits:
    """The largest step that a plan may bring, and what it may hold."""
    guessed = MOST_GUESSED if plan.spec is not Spec.OFF else 0
    return Limits(
        rows=plan.prefill_chunk + plan.max_concurrency + guessed,
        sequences=plan.max_concurrency,
        pages=plan.n_pages,
        page_tokens=plan.page_tokens,
        pages_per_sequence=-(-plan.max_ctx // plan.page_tokens),
        slots=plan.n_slots,
        tried=guessed,
    )


def _scheduler(
    plan: Plan,
    memory: Memory,
    fingerprint: bytes,
    speculation: Speculation | None,
    alike: int | None,
) -> Scheduler:
    cache = PrefixCache(
        PagePool(plan.n_pages, plan.page_tokens),
        StateSlots(plan.n_slots) if plan.n_slots else None,
        HostPool(plan.cache_bytes),
        memory,
        fingerprint,
    )
    return Scheduler(
        cache, plan.max_concurrency, plan.prefill_chunk, plan.max_ctx, speculation, alike
    )


def _preparing(on_progress: OnProgress | None, done: int = 0, total: int = 0) -> None:
    if on_progress is not None:
        on_progress(LoadProgress("preparing", done, total))


def make_ops(plan: Plan, on_progress: OnProgress | None, cancel: threading.Event) -> Ops:
    _preparing(on_progress)
    if plan.device != "cpu":
        from engine.ops.cuda import CudaOps

        compiling = partial(_preparing, on_progress)
        return CudaOps(plan.device, plan.precision, cache_dir() / "kernels", compiling)
    # Compiling takes long the first time.
    return beside(partial(_make_cpu_ops, plan), cancel, undo=lambda ops: ops.close())


def _make_cpu_ops(plan: Plan) -> Ops:
    from engine.ops.cpu import CpuOps  # numba loads here, not with the engine
    from kernels.cpu.compiler import prune

    prune(cache_dir())
    return CpuOps(plan.threads, plan.precision)


@contextmanager
def _freed_on_failure(ops: Ops, name: str) -> Iterator[None]:
    """Free all memory of the model after any error, and say of short memory what can be done."""
    try:
        yield
    except MemoryError as error:
        ops.close()
        raise OutOfMemory(
            f"Memory ran out while {name} was loaded: {error or 'no more to be had'}."
            " Close other programs, or choose a smaller model or context."
        ) from error
    except BaseException:
        ops.close()
        raise


def _sizes(plan: Plan) -> list[int]:
    """Steps that differ in what they need at first: on a card there is a graph for each of these."""
    return [m for m in ROWS if m <= plan.prefill_chunk] if plan.device != "cpu" else [1]


def _warm_up(ops: Ops, sizes: Seq[int], on_progress: OnProgress | None) -> None:
    """Run steps of these sizes, so that compiling kernels and capturing graphs is part of the load: the
    first answer does not wait for it, and later no more memory is needed."""
    zero = np.zeros(1, dtype=np.int32)
    for done, rows in enumerate(sizes):
        if on_progress is not None:
            on_progress(LoadProgress("warming up", done, len(sizes)))
        index = np.arange(rows, dtype=np.int32)
        zeros = np.zeros_like(index)
        ops.run(StepInput(zeros, index, zeros, zero[None, :], zero, zero))
    if on_progress is not None:
        on_progress(LoadProgress("warming up", len(sizes), len(sizes)))


def _fallbacks(ops: Ops) -> tuple[str, ...]:
    """What a card does otherwise than usual, since it failed there in its self-test; logged once a load."""
    notes: tuple[str, ...] = getattr(ops, "notes", tuple)()
    for note in notes:
        log.warning("%s", note)
    return notes


def _template_file(plan: Plan) -> str | None:
    return None if plan.chat_template_file is None else read_text(plan.chat_template_file)


def _info(
    file: ModelFile,
    config: EngineConfig,
    plan: Plan,
    tokenizer: Tokenizer,
    template: ChatTemplate,
    n_vocab: int,
    more: tuple[str, ...],
) -> ModelInfo:
    warnings = tokenizer.warnings
    if template.problem:
        warnings += (f"The chat template is not valid: {template.problem}.",)
    elif not template.exists:
        warnings += ("The file has no chat template; a common one is used.",)
    return ModelInfo(
        path=file.path,
        name=file.name,
        architecture=file.architecture,
        quant=file.quant,
        n_params=file.n_params,
        file_bytes=file.file_bytes,
        max_ctx=plan.max_ctx,
        vocab_size=n_vocab,
        sampling=cards.sampling_defaults(file.meta),
        thinking=cards.thinking_limits(file.meta, config.card),
        card=cards.read_card(file.meta),
        warnings=warnings,
        notes=tuple(n for n in (*plan.notes, *more, folder_problem(cache_dir())) if n),
        device=plan.device,
        prefill_chunk=plan.prefill_chunk,
    )
