"""The likeliest tokens that the card finds are those of its logits."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.engine.oracle import expected, record, step


@pytest.mark.parametrize("architecture", ("llama", "qwen35"))
def test_the_likeliest_tokens_are_those_of_the_logits(make_ops: Any, architecture: str) -> None:
    ops = make_ops()
    record(ops, architecture)
    ids = expected(architecture)["ids_200"].tolist()
    for n in (1, 7, 32):
        one = step((ids[:n], 0, [3, 1]))
        want = ops.run(one).copy()
        assert ops.run(replace(one, likeliest=True)).shape == (0, want.shape[1])
        np.testing.assert_array_equal(ops.likeliest(), want.argmax(axis=1))
        np.testing.assert_array_equal(ops.logits(), want)
    long = step((ids, 0, [3, 1, 0, 2]), all_logits=False)
    want = ops.run(long).argmax(axis=1)
    ops.run(replace(long, likeliest=True))
    np.testing.assert_array_equal(ops.likeliest(), want)
