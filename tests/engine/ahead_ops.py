"""The operations on the CPU as a backend that chooses tokens itself and can be a step ahead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import loading
from engine.ops.base import StepInput
from engine.ops.choosing import chosen
from engine.ops.cpu import CpuOps


class AheadOps(CpuOps):
    """Does all at once, and gives nothing that is not the last or the one before it."""

    ahead = 0
    """Steps that took their tokens from the one before."""

    _n = 0
    _found: NDArray[np.int32] | None = None
    _last: NDArray[np.float32] | None = None

    def run(self, step: StepInput, recording: Any = None) -> NDArray[np.float32]:
        self._found = None
        assert (step.tokens >= 0).all()
        self._last = super().run(step, recording)
        return self._last

    def first_bad_layer(self, step: StepInput) -> int | None:
        self._found = None
        assert (step.tokens >= 0).all()
        return super().first_bad_layer(step)

    def launch(self, step: StepInput) -> tuple[int, NDArray[np.int32]]:
        tokens = step.tokens
        if (unknown := tokens < 0).any():
            assert self._found is not None, "something else ran since"
            tokens = tokens.copy()
            tokens[unknown] = np.maximum(self._found[-1 - tokens[unknown]], 0)
            type(self).ahead += 1
        logits = self.run(replace(step, tokens=tokens))
        self._found = chosen(logits, step.choices, tokens)
        self._n += 1
        return self._n, self._found

    def collect(self, launched: tuple[int, NDArray[np.int32]]) -> NDArray[np.int32]:
        n, found = launched
        assert n >= self._n - 1, "its place has another step's tokens"
        return found

    def logits(self) -> NDArray[np.float32]:  # type: ignore[override]
        assert self._last is not None
        return self._last


def go_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Models on the processor are a step ahead from now on."""
    monkeypatch.setattr(AheadOps, "ahead", 0)
    monkeypatch.setattr(
        loading, "make_ops", lambda plan, *_: AheadOps(plan.threads, plan.precision)
    )


@pytest.fixture
def ahead(monkeypatch: pytest.MonkeyPatch) -> type[AheadOps]:
    """Models on the processor are a step ahead while this is in use."""
    go_ahead(monkeypatch)
    return AheadOps
