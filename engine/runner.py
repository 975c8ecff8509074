"""`Step` -> device buffers -> forward -> sampled tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Seq

import numpy as np
from numpy.typing import NDArray

from engine.errors import EngineError, NumericError
from engine.ops.base import Limits, Ops, Shape, StepInput
from engine.sampling import Sampler, has_bad
from engine.types import Step, StepResult

LOGITS_BYTES = 128 << 20


class Runner:
    """Runs steps on one device. It owns no sequence: all it knows comes with the step."""

    def __init__(self, ops: Ops, limits: Limits, shape: Shape) -> None:
        self.ops = ops
        self.limits = limits
        self.shape = shape

    def run(self, step: Step, samplers: Mapping[int, Sampler]) -> StepResult:
        """Compute a step and sample a token for each span that wants one.

        `samplers` are by request id. A span whose logits are not finite, or whose sampling fails, gets
        an error of its own; the other spans are not affected.
        """
        began = time.perf_counter()
        step_input = self._input(step)
        logits = self.ops.run(step_input)
        tokens: list[int | None] = []
        errors: dict[int, Exception] = {}
        row = 0
        for span in step.spans:
            token = None
            if span.want_logits:
                sequence = span.sequence
                try:
                    if has_bad(logits[row]):
                        raise self._numeric_error(step_input)
                    token = samplers[sequence.request_id].sample(logits[row], sequence.tokens)
                except EngineError as error:
                    errors[sequence.request_id] = error
                row += 1
            tokens.append(token)
        return StepResult(tuple(tokens), errors, time.perf_counter() - began)

    def logits(self, ids: Seq[int]) -> Iterator[NDArray[np.float32]]:
        """The logits of every position of one text, in pieces (n, n_vocab); uses pages 0, 1, ...

        Only for a runner that serves nothing else: the pages are not taken from a pool.
        """
        chunk = max(1, min(self.limits.rows, LOGITS_BYTES // (4 * self.shape.n_vocab)))
        table = np.arange(self.limits.pages_per_sequence, dtype=np.int32)[None, :]
        for start in range(0, len(ids), chunk):
            piece = np.asarray(ids[start : start + chunk], dtype=np.int32)
            rows = np.arange(len(piece), dtype=np.int32)
            slot = np.zeros(1, dtype=np.int32)
            yield self.ops.run(
                StepInput(piece, start + rows, np.zeros_like(rows), table, rows, slot)
            )

    def _input(self, step: Step) -> StepInput:
        n = step.n_tokens
        tokens = np.empty(n, dtype=np.int32)
        positions = np.empty(n, dtype=np.int32)
        sequence = np.empty(n, dtype=np.int32)
        table = np.zeros((len(step.spans), self.limits.pages_per_sequence), dtype=np.int32)
        slots = np.empty(len(step.spans), dtype=np.int32)
        logit_rows = []
        row = 0
        for i, span in enumerate(step.spans):
            end = row + len(span.tokens)
            tokens[row:end] = span.tokens
            positions[row:end] = np.arange(span.start, span.start + len(span.tokens))
            sequence[row:end] = i
            slots[i] = span.sequence.slot
            table[i, : len(span.sequence.pages)] = span.sequence.pages
            if span.want_logits:
                logit_rows.append(end - 1)
            row = end
        rows = np.array(logit_rows, dtype=np.int32)
        return StepInput(tokens, positions, sequence, table, rows, slots)

    def _numeric_error(self, step_input: StepInput) -> NumericError:
        layer = self.ops.first_bad_layer(step_input)
        if layer is None:
            where = "in the logits, though every layer's output is finite"
        elif layer < 0:
            where = "in the token embedding"
        elif layer >= self.shape.n_layers:
            where = "in the output head"
        else:
            where = f"after layer {layer} of {self.shape.n_layers}"
        return NumericError(
            f"The model produced NaN or infinity, first {where}. The file may be damaged, or its numbers"
            " overflow in fast precision: check the file's hash, or load it with --precision exact."
        )
