"""Trees, what is accepted of them, hidden rows and recordings beside the target, as on the processor."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from engine.config import Precision
from engine.ops.numpy_ops import NumpyOps
from tests.engine import test_tried as common
from tests.engine.oracle import ARCHITECTURES, record
from tests.engine.test_tried import (  # noqa: F401
    test_a_tree_gives_each_node_what_its_path_alone_gives,
    test_hidden_rows_are_the_residual_and_the_last_norm,
    test_tries_of_several_sequences_ride_with_plain_rows,
    test_what_is_not_accepted_leaves_no_trace,
)


def near(backend: str, got: np.ndarray, want: np.ndarray) -> None:
    """A branch's keys lie at other places than a chain's, so attention adds them in another order."""
    assert ((got - want) ** 2).mean() < 1e-5 * (want**2).mean()


@pytest.fixture(params=ARCHITECTURES)
def ops(request: pytest.FixtureRequest, make_ops: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = make_ops(Precision.FAST)
    record(made, request.param, capture=(1, 4))
    monkeypatch.setattr(common, "same", near)
    return request.param, "cuda", made


def test_a_block_sees_itself_whole_within_its_window(make_ops: Any) -> None:
    """Attention of drafters: rows of a block see each other both ways, and so much of the context."""
    cfg = {"causal": False}, {"causal": False, "window": 9}, {"window": 9, "window_per_row": False}
    for options in (*cfg, {"window": 70}, {"window": 3}):
        results = []
        for one in (NumpyOps(), make_ops(Precision.EXACT)):
            run, close = common.Drafting(one, options).__enter__()
            results.append(run())
            close()
        near("", results[1], results[0])
