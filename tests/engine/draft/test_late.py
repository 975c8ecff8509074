"""Drafts whose tokens a backend finds while the step that verifies them is under way already."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from engine import loading
from engine.config import SamplingParams, Spec
from engine.draft.dflash import DflashDrafter
from engine.engine import Engine
from engine.follow import follow
from engine.ops.base import Rows, StepInput
from engine.ops.ranking import MOST_RANKED, Ranked, ranked
from engine.types import Format, Request, Sequence, TextDelta
from tests.engine.ahead_ops import AheadOps
from tests.engine.draft.drafts import draft_path, expected
from tests.engine.draft.test_dflash import answer, engine, load

__all__ = ["engine"]  # a fixture


class RankingOps(AheadOps):
    """The processor as a backend that ranks, and puts what it found into a step that is launched."""

    late = 0
    """Guesses that a step got so."""

    def beside(self) -> RankingOps:
        return RankingOps(self._threads, self._precision, target=self._target, beside=self)

    def rank(self, step: StepInput, recording: Any, scale: float = 1.0, cap: float = 0.0) -> Ranked:
        logits = np.asarray(self.run(step, recording)) * scale
        return ranked(cap * np.tanh(logits / cap) if cap else logits, MOST_RANKED)

    def ranked(self, launched: Ranked) -> Ranked:
        return launched

    def _with_late(self, step: StepInput) -> StepInput:
        tokens = step.tokens.copy()
        for row, n, launched in step.late:
            assert not tokens[row : row + n].any(), "they cannot be known yet"
            tokens[row : row + n] = launched.ids[:n, 0]
            type(self).late += n
        return replace(step, tokens=tokens, late=())

    def run(self, step: StepInput, recording: Any = None) -> NDArray[np.float32]:
        return super().run(self._with_late(step), recording)

    def launch(self, step: StepInput) -> Any:
        return super().launch(self._with_late(step))


@pytest.fixture(autouse=True)
def ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RankingOps, "late", 0)
    monkeypatch.setattr(
        loading, "make_ops", lambda plan, *_: RankingOps(plan.threads, plan.precision)
    )


@pytest.mark.parametrize(
    ("family", "kind"),
    [("dflash_qwen3", "full"), ("dflash_qwen3", "dflash2"), ("dflash_qwen35", "full")],
)
def test_the_text_and_the_steps_are_the_reference_s(
    engine: Engine,
    family: str,
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    truth = expected(family, kind)
    ahead: list[int] = []  # rows that were shown before it was known which of them stand
    anticipate = DflashDrafter.anticipate

    def noted(drafter: DflashDrafter, sequence: Sequence, start: int, n: int, hidden: Rows) -> None:
        ahead.append(n)
        anticipate(drafter, sequence, start, n, hidden)

    monkeypatch.setattr(DflashDrafter, "anticipate", noted)
    load(engine, family, draft_path(family, kind, "hf", tmp_path))
    tokens, produced = answer(engine, truth["prompt"].tolist(), 64)
    assert tokens == truth["greedy_tokens"].tolist()
    assert produced == truth["step_produced"].tolist()
    assert (RankingOps.late > 30) == (kind == "full")
    assert len(ahead) == len(produced) and max(ahead) > 4
    metrics = engine.metrics().speculation
    assert metrics is not None and not metrics.problem and metrics.draft_ms > 0


def test_what_needs_the_tokens_at_once_gets_them(engine: Engine, tmp_path: Path) -> None:
    """Penalties, a form and drawn tokens, beside each other and each without drafts."""
    ways: list[dict[str, Any]] = [
        {"temperature": 0.0},
        {"temperature": 0.0, "repetition_penalty": 1.3, "frequency_penalty": 0.2},
        {"temperature": 0.9, "top_k": 20, "seed": 5},
        {"temperature": 0.0, "logit_bias": {17: 4.0, 33: 2.0}},
        {"temperature": 0.0},
    ]
    truth = expected("dflash_qwen35", "full")
    prompt = truth["prompt"].tolist()
    texts = []
    for spec in (Spec.OFF, Spec.CHAIN, Spec.TREE):
        load(
            engine,
            "dflash_qwen35",
            draft_path("dflash_qwen35", "full", "hf", tmp_path),
            spec,
            None if spec is not Spec.TREE else 12,
        )
        found = []
        for i, how in enumerate(ways):
            form = Format("regex", r"([a-f0-9 ]{2,9}[-;,]){2,40}") if i == 4 else None
            sampling = SamplingParams(**how, max_tokens=40, ignore_eos=form is None)
            events = follow(engine, Request(ids=prompt, sampling=sampling, format=form))
            found.append([t for e in events if isinstance(e, TextDelta) for t in e.tokens])
        texts.append(found)
        assert (RankingOps.late > 0) == (spec is Spec.CHAIN)
        RankingOps.late = 0
    assert texts[0] == texts[1] == texts[2]
