"""The tokens that the card chooses are those of its logits, and a step can go on from them unread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.ops.base import Shape, StepInput
from engine.ops.choosing import Changes, Choice, Penalties, chosen
from tests.engine.oracle import LIMITS, expected, record, step

KNOWN = 500  # of 512 tokens


def choosing(one: StepInput, n_vocab: int = KNOWN) -> StepInput:
    return replace(one, choices=[Choice(n_vocab)] * len(one.logit_rows))


@pytest.mark.parametrize("architecture", ("llama", "qwen35"))
def test_the_likeliest_tokens_are_those_of_the_logits(make_ops: Any, architecture: str) -> None:
    ops = make_ops()
    record(ops, architecture)
    ids = expected(architecture)["ids_200"].tolist()
    steps = [step((ids[:n], 0, [3, 1])) for n in (1, 7, 32)]
    for one in (*steps, step((ids, 0, [3, 1, 0, 2]), all_logits=False)):
        want = ops.run(one).copy()
        for n_vocab in (KNOWN, 3):
            launched = ops.launch(choosing(one, n_vocab))
            best = chosen(want, [Choice(n_vocab)] * len(want))
            np.testing.assert_array_equal(ops.collect(launched), best)
            np.testing.assert_array_equal(ops.logits(), want)


@pytest.mark.parametrize("architecture", ("llama", "qwen35"))
def test_steps_go_on_from_tokens_that_nobody_read(make_ops: Any, architecture: str) -> None:
    ops = make_ops()
    record(ops, architecture)
    ids, pages = expected(architecture)["ids_7"].tolist(), ([3, 1], [2, 5])
    texts: list[list[int]] = []
    for unread in (False, True):
        first = ops.launch(
            choosing(step((ids, 0, pages[0]), (ids[:5], 0, pages[1]), all_logits=False))
        )
        found, running = [], first
        for n in range(40):
            tokens = [-1, -2] if unread else ops.collect(running).tolist()
            # The second one changes its row, and leaves at last.
            spans = [([tokens[1]], 5 + n, pages[1]), ([tokens[0]], 7 + n, pages[0])]
            if n % 2:
                spans = [([tokens[1]], 7 + n, pages[0]), ([tokens[0]], 5 + n, pages[1])]
            after = ops.launch(choosing(step(*spans)))
            found.append(ops.collect(running).tolist())
            running = after
        last = ops.launch(
            choosing(step(([-1] if unread else ops.collect(running).tolist()[:1], 47, pages[0])))
        )
        found += [ops.collect(running).tolist(), ops.collect(last).tolist()]
        texts.append(found)
    assert texts[0] == texts[1]


def changes(rng: np.random.Generator, n: int, row: int, best: int) -> Changes:
    """For tokens beside the likeliest one, and for that where `row` is odd."""
    ids = rng.permutation(n)[: min(n, int(rng.choice((0, 1, 300, 2048))))].astype(np.int32)
    ids = np.append(ids[ids != best][:2047], best).astype(np.int32)
    ids = ids if row % 2 and best < n else ids[:-1]
    penalties = Penalties(float(rng.choice((0.7, 1.3))), 0.5, 0.123)
    newest = (-1 - row, int(best), None)[row % 3]
    counts = rng.integers(0, 4, len(ids)).astype(np.int32)
    return Changes(ids, counts, rng.standard_normal(len(ids)), penalties, newest)


def masks(rng: np.random.Generator, n: int, row: int) -> Any:
    """All tokens, half of them, three, or none may come."""
    may = rng.random(n) < (1.0, 0.5, 3 / n, 0.0)[row % 4]
    return lambda: np.packbits(may, bitorder="little")


@pytest.mark.parametrize("n_vocab", (300, 2048, 32000, 151_936, 600_001))
def test_drawn_tokens_are_those_of_the_reference(make_ops: Any, n_vocab: int) -> None:
    ops = make_ops()
    ops.allocate(Shape(1, 256, n_vocab, 4, 2, 64), LIMITS)
    rng = np.random.default_rng(n_vocab)
    for scale in (0.05, 1.0, 6.0):
        logits = (rng.standard_normal((32, n_vocab)) * scale).astype(np.float32)
        logits[8:16] = logits[8:16].round(1)
        logits[16] = -0.0
        logits[17, : n_vocab - 20] = -np.inf
        logits[18, n_vocab - 1] = np.nan
        ks = [0, 1, 2, 40, 255, 256]
        tokens = rng.integers(0, n_vocab, 32).astype(np.int32)
        best = logits.argmax(axis=1).astype(np.int32)
        tokens[20:24] = best[20:24]
        choices = [
            Choice(
                n_vocab - 9, max(ks[row % len(ks)], row >= 16), float(rng.choice((1e-6, 0.6, 1.0, 2.0))),
                float(rng.choice((0.0, 0.5, 0.95, 1.0))), float(rng.choice((0.0, 0.05))), float(rng.random()),
                changes(rng, n_vocab - 9, row, best[row]) if row >= 20 else None,
                masks(rng, n_vocab - 9, row) if row >= 16 else None,
                row % 4 == 0,
            )
            for row in range(32)
        ]  # fmt: skip
        got = ops.tokens_of(logits, choices, tokens)
        assert got.tolist() == chosen(logits, choices, tokens).tolist()
