"""Drafts with a given number of accepted tokens, whatever was guessed: to measure what they bring."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from engine.engine import Engine
from engine.loading import LoadedModel
from engine.runner import Runner, choose
from engine.types import Draft, Span


class ForcedRunner(Runner):
    """A runner whose target takes `accept` tokens of each verified draft, its own one included."""

    def __init__(self, runner: Runner, accept: int) -> None:
        super().__init__(runner.ops, runner.limits, runner.shape)
        self.on_wait = runner.on_wait
        self._accept = accept

    def choose(
        self, span: Span, logits: Any, sampler: Any
    ) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Choose as usual, which takes its time, and then take the draft's tokens all the same."""
        tokens, path = choose(span, logits, sampler)
        return forced(span.draft, tokens[-1], self._accept) if span.draft else (tokens, path)


def forced(draft: Draft, last: int, accept: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """`accept` tokens, or as many as there are on the draft's first path and one more; and their rows."""
    tokens: list[int] = []
    path = [0]
    while len(tokens) < accept - 1 and path[-1] - 1 in draft.parents[path[-1] :]:
        node = draft.parents.index(path[-1] - 1, path[-1])
        tokens.append(draft.tokens[node])
        path.append(node + 1)
    return (*tokens, last), tuple(path)


@contextmanager
def forcing(engine: Engine, accept: int) -> Iterator[None]:
    """Meanwhile an idle engine accepts so much of each draft."""
    kept: list[Runner] = []

    def begin(model: LoadedModel) -> None:
        kept.append(model.runner)
        model.runner = ForcedRunner(model.runner, accept)

    def end(model: LoadedModel) -> None:
        model.runner = kept[0]

    engine.use(begin)
    try:
        yield
    finally:
        engine.use(end)


@contextmanager
def without_drafts(engine: Engine) -> Iterator[None]:
    """Meanwhile an idle engine neither drafts nor spends any time on a drafter."""
    kept: list[Any] = []

    def begin(model: LoadedModel) -> None:
        kept.append((model.speculation, model.scheduler.guesser))
        model.speculation = model.scheduler.guesser = None

    def end(model: LoadedModel) -> None:
        model.speculation, model.scheduler.guesser = kept[0]

    engine.use(begin)
    try:
        yield
    finally:
        engine.use(end)
