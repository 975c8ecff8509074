"""The operations on an NVIDIA card.

A recording is a list of nodes; each is one or a few kernel launches. Steps of up to 32 rows run as CUDA
graphs, for each size in `BUCKETS`; longer ones launch the same nodes one by one where a size is new
(`cuda_long.py`), with activations in f16 instead of int8. Kernels write the activations in the forms that
their readers want, so the readers of a buffer are known before anything is launched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Sequence as Seq
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.config import Precision
from engine.errors import KernelError, UnsupportedModel
from engine.ops.base import Limits, Rope, Shape, StepInput
from engine.ops.choosing import chosen
from engine.ops.cuda_attention import PAGE
from engine.ops.cuda_buffers import (
    MOST_ROWS,
    Buffer,
    Float,
    Int,
    Node,
    Pass,
    Pointer,
    Product,
    Tape,
    activation_of,
    is_whole,
)
from engine.ops.cuda_delta import DeltaOps
from engine.ops.cuda_device import SUPERBLOCK, Card, Weight, told
from engine.ops.cuda_experts import ExpertOps, Table
from engine.ops.cuda_head import Found, HeadOps
from engine.ops.cuda_library import OWN, Library
from engine.ops.cuda_long import LongSteps
from engine.ops.cuda_ranks import Ranking
from engine.ops.cuda_rows import DeviceRows, Spare, fill, joined
from engine.ops.cuda_step import BEFORE, TOKENS, part_of
from engine.ops.cuda_trust import Distrust, distrust_of
from engine.ops.cuda_weights import WeightOps
from kernels import variants
from kernels.variants import F16, INT8, Variant

BUCKETS = (1, 2, 4, 8, 16, 24, MOST_ROWS)


class CudaOps(WeightOps, LongSteps, DeltaOps, ExpertOps, HeadOps):
    """Implements `engine.ops.base.Ops` on device "cuda:N"; kernels are kept in `cache`.

    Exact precision keeps activations in f16 in short steps too. `on_progress(done, total)` hears of kernels
    that must be compiled first. `distrust` is by default what the card's last self-test found.
    """

    def __init__(
        self,
        device: str = "cuda:0",
        precision: Precision = Precision.FAST,
        cache: Path | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        distrust: Distrust | None = None,
    ) -> None:
        self.card = Card(int(device.partition(":")[2] or 0), cache, on_progress)
        self._spare, self._owner = Spare(self.card), True
        self._dependent = self.card.dependent
        if distrust is None:
            distrust = distrust_of(self.card.name, self.card.driver, cache)
        if distrust.broken:
            raise KernelError(distrust.notes()[-1])
        self.distrust = distrust
        self.card.unpacked = distrust.unpacked
        self.formats: set[int] = set()
        self._short_form = F16 if precision is Precision.EXACT else INT8
        self._cache = cache
        self._begin()

    def _begin(self) -> None:
        """Nothing is held or recorded yet."""
        self._memory = {"model": 0, "kv": 0, "work": 0}
        self._own: list[int] = []
        self._free_room = (0, 0)
        self._tapes: list[Tape] = []
        self._ropes: dict[int, tuple[Rope, int]] = {}
        self._routes: Table | None = None
        self._library: Library | None = None
        self._of_target: Library | None = None
        self._scratch = (0, 0, 0, 0)
        self._last: tuple[Tape, StepInput] | None = None
        self._hidden: DeviceRows | None = None
        self._accepted: dict[int, int] = {}
        self._wanted = 0
        self._host: NDArray[np.float32] | None = None

    def beside(self) -> CudaOps:
        ops = CudaOps.__new__(CudaOps)
        ops.card, ops._spare, ops._owner = self.card, self._spare, False
        ops._dependent, ops.distrust = self._dependent, self.distrust
        ops.formats, ops._short_form, ops._cache = set(), self._short_form, self._cache
        ops._begin()
        ops._of_target = self._library
        return ops

    # Memory

    def allocate(self, shape: Shape, limits: Limits) -> None:
        self.card.use()
        self.card.drop_staging()
        if limits.page_tokens != PAGE or shape.head_dim not in variants.HEAD_DIMS:
            raise UnsupportedModel(
                f"Heads have {shape.head_dim} dims and pages {limits.page_tokens} tokens; expected"
                f" {', '.join(map(str, variants.HEAD_DIMS))} and {PAGE}. Load the model on the processor."
            )
        self.shape, self._limits = shape, limits
        self._rows = -(-limits.rows // 64) * 64
        self._allocate_attention()
        if shape.delta is not None:
            self._allocate_states()
        # Rows that are tried come beside others, and a prompt is to be read alike with drafts and without.
        if limits.rows - limits.tried > 2 * MOST_ROWS and not self._library:
            self._library = self._of_target or self._open_library()
        self._allocate_head()
        self.card.build(variants.common())

    def _open_library(self) -> Library | None:
        library = Library.of(self.card, lambda n: self._allocate("work", n), self._cache)
        self._memory["work"] += OWN if library else 0
        return library

    def memory(self) -> dict[str, int]:
        return dict(self._memory)

    def alike(self) -> int:
        return MOST_ROWS

    def notes(self) -> tuple[str, ...]:
        """What is done otherwise than usual for this model, since the card failed there in its self-test."""
        return self.distrust.notes(frozenset(self.formats))

    def close(self) -> None:
        self._tapes.clear()
        self._last = self._hidden = None
        if self._library and self._library is not self._of_target:
            self._library.close()
        if self._owner:
            self.card.close()
        else:
            self.card.free(self._own)

    # Recording

    @contextmanager
    def recording(self, capture: Seq[int] = ()) -> Iterator[Tape]:
        tape = self._tape = Tape(tuple(capture))
        if capture:
            size = 4 * self._rows * len(capture) * self.shape.n_embd
            tape.kept = self._allocate("work", size)
        yield tape
        self._place_buffers()
        self._tapes.append(tape)

    def embed(self, token_embd: Weight) -> Buffer:
        x = Buffer(token_embd.columns, {32})
        kernel = self.card.kernel(variants.embedding(token_embd.type_id), "embed")

        def launch(p: Pass) -> None:
            grid = (p.rows, -(-x.width // 256), 1)
            args = (
                Pointer(token_embd.address),
                Pointer(self._step.at(TOKENS, p)),
                Pointer(self._found_there),
                Pointer(self._draws.tokens),
                Pointer(x.at("32")),
                Int(x.width),
                Float(x.scale),
            )
            self.card.launch(kernel, grid, 256, args)

        self._add(launch, x, layer=-1)
        return x

    def scale(self, x: Buffer, factor: float) -> None:
        x.scale *= factor

    def given(self, width: int) -> Buffer:
        x = Buffer(width, {32})
        self._tape.given.append(x)
        self._add(lambda p: self._write_forms(x, p), x)
        return x

    def concat(self, *parts: Buffer) -> Buffer:
        out = Buffer(sum(part.width for part in parts), {32})
        for part in parts:
            if not part.launches:
                part.forms.add(32)

        def launch(p: Pass) -> None:
            at = out.at("32")
            for part in parts:
                self._keep(part, at, out.width, p)
                at += 4 * part.width
            self._write_forms(out, p)

        self._add(launch, *parts, out)
        return out

    def _write_forms(self, x: Buffer, p: Pass) -> None:
        """Rows in float32 in the other forms that are read."""
        activation = activation_of(x, p)
        if activation.int8 or activation.f16:
            activation.f32 = None
            kernel = self.card.kernel(Variant("head.cu"), "gather")
            args = Pointer(x.at("32")), Pointer(), Pointer(), Int(x.width), Pointer(), activation
            self._launch_rows(kernel, x.width, p.rows, args)

    def convolve(self, x: Buffer, kernels: Buffer, base: Weight, part: int, taps: int) -> Buffer:
        out = Buffer(x.width)
        kernel = self.card.kernel(Variant("draft.cu"), "convolve_rows")
        groups = kernels.width // (2 * taps)
        for buffer in (x, kernels):
            if not buffer.launches:
                buffer.forms.add(32)

        def launch(p: Pass) -> None:
            args = (
                self._read(x, p), self._read(kernels, p), Int(part * taps * groups), Int(groups),
                Pointer(base.address + 4 * part * taps * x.width), Pointer(self._step.at(BEFORE, p)),
                Int(taps), Int(x.width), activation_of(out, p),
            )  # fmt: skip
            self._launch(kernel, (-(-x.width // SUPERBLOCK), p.rows, 1), 32, args)

        self._add(launch, x, kernels, out)
        return out

    def norm(self, x: Buffer, weight: Weight, eps: float) -> Buffer:
        return self._norm(x, None, weight, eps)

    def add_norm(self, x: Buffer, y: Buffer, weight: Weight, eps: float) -> Buffer:
        return self._norm(x, y, weight, eps)

    def _residual(self, x: Buffer) -> Buffer:
        """Rows that can be added to and normed: a product becomes such rows where it is first used so."""
        if not x.launches:
            return x
        residuals = self._tape.residuals
        if x not in residuals:
            residuals[x] = self.concat(x)
        return residuals[x]

    def _norm(self, x: Buffer, y: Buffer | None, weight: Weight, eps: float) -> Buffer:
        x = self._residual(x)
        h = Buffer(x.width, eps=eps)
        if y and not y.launches:
            y.forms.add(32)
        short, two, many = self._kernels("norm.cu", "add_norm", "add_norm_two", "add_norm_rows")

        def launch(p: Pass) -> None:
            added = Product(x.at("32"), x.width)
            if y:
                added = self._read(y, p)
                added.count = max(1, added.count)  # 0 says that nothing is added
            args: tuple[Any, ...] = (
                Pointer(x.at("32")), added, Pointer(weight.address), Int(x.width), Pointer(h.at("squares"))
            )  # fmt: skip
            if not p.short and is_whole(added):
                self._launch_many(many, h.width, p, (*args, Int(p.rows), activation_of(h, p)))
                return
            kernel, rows = (two, 2) if p.several else (short, 1)
            self._launch_shared(kernel, h.width, p, (*args, activation_of(h, p)), 8, rows)

        self._add(launch, *((x, y, h) if y else (x, h)))
        return h

    def swiglu(self, gate_up: Buffer) -> Buffer:
        h = Buffer(gate_up.width // 2)
        short, four, many = self._kernels("swiglu.cu", "swiglu", "swiglu_four", "swiglu_rows")

        def launch(p: Pass) -> None:
            product, to = self._product(gate_up, p), activation_of(h, p)
            if not p.short and is_whole(product):
                self._launch_many(many, h.width, p, (product, Int(h.width), Int(p.rows), to))
            elif p.several:
                self._launch_shared(four, h.width, p, (product, Int(h.width), to), rows=4)
            else:
                launch_it = self._launch_shared if p.short else self._launch_wide
                launch_it(short, h.width, p, (product, Int(h.width), Int(p.short), to))

        self._add(launch, gate_up, h)
        return h

    def end_layer(self, layer: int, x: Buffer) -> None:
        x = self._residual(x)
        self._add(lambda p: None, x, layer=layer)
        self._capture(layer, x)

    # Running

    def run(self, step: StepInput, recording: Tape | None = None) -> NDArray[np.float32]:
        tape = recording or self._tapes[0]
        with told():
            if (logits := self._begin_step(step, tape)) is None:
                logits = self._run(step, tape)
                self._captured(step, tape)
            return logits

    def launch(self, step: StepInput) -> Found:
        tape = self._tapes[0]
        with told():
            if (logits := self._begin_step(step, tape)) is not None:
                return Found(chosen(logits, step.choices, step.tokens))
            self._prepare(step, tape)
            wanted = len(step.logit_rows)
            if len(step.tokens) <= MOST_ROWS:
                self._launch_graph(step, tape)
            else:
                p = self._launch_body(step, tape)
                if tape.head is not None and wanted:
                    tape.head.launch(replace(p, wanted=wanted))
            self._captured(step, tape)
            self._draws.launch(self._logits_there, step.choices, self._found_there)
            return self._send_found(wanted)

    def rank(
        self, step: StepInput, recording: Tape, scale: float = 1.0, cap: float = 0.0
    ) -> Ranking:
        with told():
            self._begin_step(step, recording)
            self._prepare(step, recording)
            self._ranks.prepare()
            self._launch_graph(step, recording, (scale, cap))
            self._captured(step, recording)
            return self._ranks.send(len(step.logit_rows), scale, cap)

    def _begin_step(self, step: StepInput, tape: Tape) -> NDArray[np.float32] | None:
        """Logits, where the step had to be run in parts, and nothing is left to do."""
        self._accepted.clear()
        self.card.use()
        self._host = self._run_parts(step, tape) if self._mixed(step) else None
        return self._host

    def _captured(self, step: StepInput, tape: Tape) -> None:
        """Rows for `hidden`, if any."""
        if tape.capture:
            width = len(tape.capture) * self.shape.n_embd
            self._hidden = DeviceRows(self._spare, tape.kept, len(step.tokens), width)

    def _prepare(self, step: StepInput, tape: Tape) -> None:
        self._last = tape, step
        for buffer in tape.given:
            fill(self.card, buffer.at("32"), step.given)

    def _run(self, step: StepInput, tape: Tape) -> NDArray[np.float32]:
        self._prepare(step, tape)
        # A graph's kernels look at as many sequences as it has rows; a part of a step may have later ones.
        if (m := len(step.tokens)) <= MOST_ROWS and max(step.sequence, default=-1) < m:
            self._launch_graph(step, tape)
            return self._read_logits(len(step.logit_rows))
        return self.run_eager(step, tape=tape)

    def _mixed(self, step: StepInput) -> bool:
        """Whether tried rows are among too many others for the log that they need."""
        n = len(step.tokens)
        return bool(self._logs and step.tried.any()) and n > max(MOST_ROWS, self._limits.tried)

    def _run_parts(self, step: StepInput, tape: Tape) -> NDArray[np.float32]:
        """Rows that are not tried first, then the tried ones, which `accept` looks at."""
        tried = step.tried[step.sequence] != 0
        hidden: list[DeviceRows] = []
        logits = np.empty((len(step.logit_rows), self.shape.n_vocab), np.float32)
        wanted = np.isin(np.arange(len(tried)), step.logit_rows)
        for part in (~tried, tried):
            logits[part[step.logit_rows]] = self._run(part_of(step, part, part & wanted), tape)
            if tape.capture:
                width = len(tape.capture) * self.shape.n_embd
                rows = DeviceRows(self._spare, tape.kept, int(part.sum()), width)
                hidden.append(joined(self._spare, [rows]))
        if hidden:
            order = np.argsort(np.concatenate([np.flatnonzero(~tried), np.flatnonzero(tried)]))
            self._hidden = joined(self._spare, hidden)[order.tolist()]
        return logits

    def _launch_graph(
        self, step: StepInput, tape: Tape, ranked: tuple[float, float] | None = None
    ) -> None:
        p = self.short_pass(*self.send(step), ranked)
        key = p.rows, p.tiles, *(ranked or ())
        graph = tape.graphs.get(key) or self.graph(p, tape)
        if graph is None:
            for node in tape.nodes:
                node.launch(p)
            return
        tape.graphs[key] = graph
        graph.launch(stream=self.card.stream)

    def send(self, step: StepInput) -> tuple[int, int]:
        """Copy a short step's variables to the card; returns the rows and tiles of its graph."""
        rows = next(b for b in BUCKETS if b >= len(step.tokens))
        found = self._step.send(step, rows)
        return rows, next(b for b in BUCKETS if b >= found)

    def short_pass(self, rows: int, tiles: int, ranked: tuple[float, float] | None = None) -> Pass:
        """A short step of `rows` rows in `tiles` tiles of attention, both of `BUCKETS`."""
        sequences = min(rows, self._limits.sequences)
        return Pass(rows, self._short_form, tiles, rows, 0, sequences, ranked)

    def graph(self, p: Pass, tape: Tape | None = None) -> Any:
        """A new graph of a short step; None where the card has no memory for one."""
        return self._recorded((tape or self._tapes[0]).nodes, p)

    def _launch_body(
        self, step: StepInput, tape: Tape, after: Callable[[Node, int], None] | None = None
    ) -> Pass:
        """Launch all but the head; `after(node, rows)` runs behind each node."""
        m = len(step.tokens)
        p = self._pass_of(step)
        if after is None and self._is_replayed(p):
            self._replay(p, tape)
            return p
        for node in tape.nodes:
            if node is tape.head:
                continue
            node.launch(p)
            if after:
                after(node, m)
        return p

    def run_eager(
        self,
        step: StepInput,
        after: Callable[[Node, int], None] | None = None,
        tape: Tape | None = None,
    ) -> NDArray[np.float32]:
        """A step of any size; `after(node, rows)` runs behind each node but the head."""
        tape = tape or self._tapes[0]
        wanted = len(step.logit_rows)
        result = np.empty((wanted, self.shape.n_vocab), np.float32) if wanted > MOST_ROWS else None
        p = self._launch_body(step, tape, after)
        if tape.head is None or not wanted:
            return self._logits[:0]
        for first in range(0, wanted, MOST_ROWS):
            count = min(MOST_ROWS, wanted - first)
            tape.head.launch(replace(p, wanted=count, from_wanted=first))
            logits = self._read_logits(count)
            if result is None:
                return logits
            result[first : first + count] = logits
        assert result is not None
        return result

    def hidden(self) -> DeviceRows:
        assert self._hidden is not None, "nothing was captured"
        return self._hidden

    def join(self, parts: Seq[Any]) -> DeviceRows:
        with told():
            return joined(self._spare, parts)

    def accept(self, sequence: int, rows: Seq[int]) -> None:
        assert self._last is not None and self._last[1].tried[sequence]
        if not rows:
            return
        n = len(self._last[1].tokens)
        kept = self._accepted.get(sequence, 0)
        p = Pass(n if n > MOST_ROWS else next(b for b in BUCKETS if b >= n), F16, 0, 0)
        with told():
            self.card.use()
            self._move_rows(sequence, rows, kept, p)
            if self.shape.delta is not None:
                self._commit(sequence, rows, n)
        self._accepted[sequence] = kept + len(rows)

    def first_bad_layer(self, step: StepInput) -> int | None:
        bad: list[int] = []

        def check(node: Node, rows: int) -> None:
            if node.layer is None or bad:
                return
            x = node.buffers[0]
            values = np.empty((rows, x.width), np.float32)
            self.card.copy(values.ctypes.data, x.at("32"), values.nbytes)
            self.card.stream.synchronize()
            if not np.isfinite(values).all():
                bad.append(node.layer)

        with told():
            self.card.use()
            logits = self.run_eager(step, check)
        if not bad and not np.isfinite(logits).all():
            bad.append(self.shape.n_layers)
        return bad[0] if bad else None
