"""The tokens that the card chooses are those of its logits, and a step can go on from them unread."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.ops.base import StepInput
from engine.ops.choosing import Choice, chosen
from tests.engine.oracle import expected, record, step

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
