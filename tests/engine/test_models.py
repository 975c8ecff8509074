"""Every architecture against transformers, on the NumPy reference and on the CPU backend."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from engine.config import Precision
from engine.errors import UnsupportedModel
from engine.models.base import is_known, model_of, yarn_factors
from engine.ops.base import Ops
from engine.ops.cpu import CpuOps
from engine.ops.numpy_ops import NumpyOps
from tests.engine.oracle import ARCHITECTURES, expected, record, step

BACKENDS = {
    "numpy": NumpyOps,
    "cpu": lambda: CpuOps(2, Precision.EXACT),
}
TOLERANCE = 2e-3
"""Largest logit difference, as a share of the logits' standard deviation."""


@pytest.fixture(params=[(a, b) for a in ARCHITECTURES for b in BACKENDS], ids="-".join)
def loaded(request: pytest.FixtureRequest) -> Iterator[tuple[str, Ops]]:
    architecture, backend = request.param
    ops = BACKENDS[backend]()
    record(ops, architecture)
    yield architecture, ops
    ops.close()


@pytest.fixture(params=ARCHITECTURES)
def fast(request: pytest.FixtureRequest) -> Iterator[tuple[str, Ops]]:
    ops = CpuOps(2, Precision.FAST)
    record(ops, request.param)
    yield request.param, ops
    ops.close()


def test_logits_equal_transformers(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    truth = expected(architecture)
    for n in (1, 7, 64, 200):
        want = truth[f"logits_{n}"]
        got = ops.run(step((truth[f"ids_{n}"].tolist(), 0, [3, 1, 0, 2])))
        assert got.shape == want.shape
        assert np.abs(got - want).max() < TOLERANCE * want.std()


def test_greedy_tokens_equal_transformers(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    truth = expected(architecture)
    ids = truth["ids_7"].tolist()
    start, new = 0, ids
    tokens = []
    for _ in range(48):
        token = int(ops.run(step((new, start, [5, 6]), all_logits=False))[0].argmax())
        start, new = start + len(new), [token]
        tokens.append(token)
    assert tokens == truth["greedy"].tolist()


def same_in_chunks(architecture: str, ops: Ops) -> None:
    ids = expected(architecture)["ids_200"].tolist()
    whole = ops.run(step((ids, 0, [0, 1, 2, 3]))).copy()
    done = 0
    for size in (1, 63, 1, 70, 65):
        got = ops.run(step((ids[done : done + size], done, [4, 5, 6, 7])))
        np.testing.assert_array_equal(got, whole[done : done + size])
        done += size


def same_in_batches(architecture: str, ops: Ops) -> None:
    truth = expected(architecture)
    texts = [truth[f"ids_{n}"].tolist() for n in (64, 7, 1)]
    alone = [ops.run(step((ids, 0, [9, 10]))).copy() for ids in texts]
    together = ops.run(step(*((ids, 0, [2 * i]) for i, ids in enumerate(texts))))
    np.testing.assert_array_equal(together, np.concatenate(alone))


def test_chunked_prefill_equals_whole(loaded: tuple[str, Ops]) -> None:
    same_in_chunks(*loaded)


def test_batch_rows_equal_single_rows(loaded: tuple[str, Ops]) -> None:
    same_in_batches(*loaded)


def test_fast_precision_keeps_both_promises(fast: tuple[str, Ops]) -> None:
    same_in_chunks(*fast)
    same_in_batches(*fast)


def test_fast_precision_stays_near_exact(fast: tuple[str, Ops]) -> None:
    architecture, ops = fast
    truth = expected(architecture)
    got = ops.run(step((truth["ids_200"].tolist(), 0, [0, 1, 2, 3])))
    want = truth["logits_200"]
    assert ((got - want) ** 2).mean() / (want**2).mean() < 2e-3


def test_the_first_bad_layer_is_found(loaded: tuple[str, Ops]) -> None:
    architecture, ops = loaded
    ids = expected(architecture)["ids_7"].tolist()
    assert ops.first_bad_layer(step((ids, 0, [0]))) is None


def test_unknown_architectures_are_refused_by_name() -> None:
    for name in ("base", "nonsense", "../llama", "__init__", ""):
        assert not is_known(name)
        with pytest.raises(UnsupportedModel):
            model_of(name)


def test_yarn_leaves_fast_pairs_and_divides_slow_ones() -> None:
    factors = yarn_factors(128, 1e6, factor=4.0, original=32768, fast=32.0, slow=1.0)
    assert factors[0] == 1.0 and factors[-1] == 4.0
    assert np.all(np.diff(factors) >= 0)
