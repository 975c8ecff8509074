"""Tried rows: trees in one pass, states that wait for `accept`, hidden rows, and recordings side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from engine.config import Precision
from engine.errors import KernelError
from engine.ops.base import Ops, Rope, Shape, StepInput
from engine.ops.cpu import CpuOps
from engine.ops.numpy_ops import NumpyOps
from tests.engine.oracle import ARCHITECTURES, LIMITS, expected, record, step
from tests.kernels.cpu.helpers import tensor

BACKENDS = {
    "numpy": NumpyOps,
    "exact": lambda: CpuOps(2, Precision.EXACT),
    "fast": lambda: CpuOps(2, Precision.FAST),
}
PAGES = [3, 1, 0, 2]
TREE = (-1, 0, 1, 2, 0, 1, 4, 4, 6, 3, 8)
"""Parents of a tree's nodes, node 0 its root; branches at every depth, in no order of depth."""


@pytest.fixture(
    params=[(a, b) for a in ARCHITECTURES for b in BACKENDS if b != "numpy" or "moe" not in a],
    ids="-".join,
)
def ops(request: pytest.FixtureRequest) -> Iterator[tuple[str, str, Ops]]:
    architecture, backend = request.param
    made: Ops = BACKENDS[backend]()
    record(made, architecture, capture=(1, 4))
    yield architecture, backend, made
    made.close()


def tree(tokens: list[int], start: int, parents: tuple[int, ...], pages: list[int]) -> StepInput:
    """One sequence's tree, tried; every logit wanted."""
    depth = [0] * len(parents)
    for i, p in enumerate(parents):
        depth[i] = depth[p] + 1 if p >= 0 else 0
    plain = step((tokens, start, pages))
    return replace(
        plain,
        positions=np.array([start + d for d in depth], np.int32),
        parents=np.array(parents, np.int32),
        tried=np.ones(1, np.int32),
    )


def path_to(node: int, parents: tuple[int, ...]) -> list[int]:
    path = [node]
    while parents[path[-1]] >= 0:
        path.append(parents[path[-1]])
    return path[::-1]


def same(backend: str, got: NDArray[np.float32], want: NDArray[np.float32]) -> None:
    """Bit for bit where the backend is made for it."""
    if backend == "numpy":
        np.testing.assert_allclose(got, want, atol=1e-4 * want.std(), rtol=0)
    else:
        np.testing.assert_array_equal(got, want)


def test_a_tree_gives_each_node_what_its_path_alone_gives(ops: tuple[str, str, Ops]) -> None:
    architecture, backend, made = ops
    ids = expected(architecture)["ids_64"].tolist()
    guesses = expected(architecture)["ids_200"].tolist()[100 : 100 + len(TREE)]
    for n in (60, 17):  # the first crosses a page
        made.run(step((ids[:n], 0, PAGES)))
        got = made.run(tree(guesses, n, TREE, PAGES)).copy()
        hidden = np.array(made.hidden())
        for node in (3, 5, 8, 9, 10):
            path = path_to(node, TREE)
            made.run(step((ids[:n], 0, PAGES)))
            want = made.run(step(([guesses[i] for i in path], n, PAGES)))
            same(backend, got[path], want)
            same(backend, hidden[path], np.array(made.hidden()))


def test_what_is_not_accepted_leaves_no_trace(ops: tuple[str, str, Ops]) -> None:
    architecture, backend, made = ops
    ids = expected(architecture)["ids_64"].tolist()
    guesses = expected(architecture)["ids_200"].tolist()[100 : 100 + len(TREE)]
    made.run(step((ids[:60], 0, PAGES)))
    want = made.run(step(([7, 9, 11, 13, 15], 60, PAGES))).copy()
    for path in ([0, 4, 7], [0, 1, 5], [0, 1, 2, 3, 9], [0], [0, 4, 6, 8, 10]):
        for parts in ([path], [path[:1], path[1:]], [path[:2], path[2:]]):
            made.run(step((ids[:60], 0, PAGES)))
            made.run(tree(guesses, 60, TREE, PAGES))
            for part in parts:
                made.accept(0, part)
            after = made.run(step(([7, 9], 60 + len(path), PAGES))).copy()
            made.run(step((ids[:60], 0, PAGES)))
            made.run(step(([guesses[i] for i in path], 60, PAGES)))
            same(backend, after, made.run(step(([7, 9], 60 + len(path), PAGES))))
    made.run(step((ids[:60], 0, PAGES)))
    made.run(tree(guesses, 60, TREE, PAGES))
    same(backend, made.run(step(([7, 9, 11, 13, 15], 60, PAGES))), want)


def test_tries_of_several_sequences_ride_with_plain_rows(ops: tuple[str, str, Ops]) -> None:
    architecture, backend, made = ops
    ids = expected(architecture)["ids_64"].tolist()
    starts = ((61, [3, 1]), (20, [0, 2]), (5, [5, 6]))
    texts = [ids[:start] for start, _ in starts]

    def prepare() -> None:
        made.run(step(*((t, 0, pages) for t, (_, pages) in zip(texts, starts, strict=True))))

    spans = [([11, 12, 13, 14], *starts[0]), ([21], *starts[1]), ([31, 32, 33], *starts[2])]
    prepare()
    want = made.run(step(*spans)).copy()
    prepare()
    chains = replace(step(*spans), tried=np.array([1, 0, 1], np.int32))
    same(backend, made.run(chains), want)
    made.accept(0, [0, 1])
    made.accept(2, [0, 1, 2])
    ends = ([41], 63, [3, 1]), ([42], 21, [0, 2]), ([43], 8, [5, 6])
    got = made.run(step(*ends)).copy()
    prepare()
    made.run(step(([11, 12], *starts[0]), *spans[1:]))
    same(backend, got, made.run(step(*ends)))


def test_hidden_rows_are_the_residual_and_the_last_norm(ops: tuple[str, str, Ops]) -> None:
    architecture, backend, made = ops
    truth = expected(architecture)
    ids = truth["ids_7"].tolist()
    logits = made.run(step((ids, 0, PAGES))).copy()
    rows = np.array(made.hidden())
    n = rows.shape[1] // 2
    assert rows.shape[0] == 7 and np.isfinite(rows).all() and np.abs(rows[:, :n]).max() > 0
    if backend != "fast":
        with_head = made.join([made.hidden(), made.hidden()[[2, 0]]])
        assert with_head.shape == (9, 2 * n)
        np.testing.assert_array_equal(np.asarray(with_head)[7:], rows[[2, 0]])
    # One row at a time takes other ways through the threads' own copies.
    for i, token in enumerate(ids):
        same(backend, made.run(step(([token], i, [5])))[0], logits[i])
        same(backend, np.array(made.hidden()), rows[i : i + 1])


def test_a_block_sees_itself_whole_within_its_window() -> None:
    """Attention of drafters: rows of a block see each other both ways, and so much of the context."""
    cfg = {"causal": False}, {"causal": False, "window": 9}, {"window": 9, "window_per_row": False}
    for options in (*cfg, {"window": 70}, {"window": 3}):
        results = []
        for one in (NumpyOps(), CpuOps(2, Precision.EXACT)):
            with Drafting(one, options) as (run, close):
                results.append(run())
                close()
        np.testing.assert_allclose(results[0], results[1], atol=2e-5, rtol=0)


class Drafting:
    """A layer of attention whose context is stored apart from the rows that attend, beside the target."""

    def __init__(self, target: Ops, options: dict[str, object]) -> None:
        self.target, self.options = target, options

    def __enter__(self):  # type: ignore[no-untyped-def]
        ops = self.target.beside()
        rope = Rope(64, 1e4, interleaved=False)
        ops.allocate(Shape(1, 32, 64, 4, 2, 64), LIMITS)
        embd = self.target.upload(tensor("F32", (64, 32), seed=1))
        wide = self.target.upload(tensor("F32", (512, 64), seed=2))
        context = self.target.upload(tensor("F32", (256, 32), seed=3))
        out = self.target.upload(tensor("F32", (64, 256), seed=4))
        with ops.recording() as block:
            x = ops.concat(ops.embed(embd), ops.given(32))
            y = ops.attend(ops.linear(x, wide), 0, rope, **self.options)  # type: ignore[arg-type]
            ops.head(y, out)
        with ops.recording() as appended:
            ops.store(ops.linear(ops.given(32), context), 0, rope)

        def run() -> NDArray[np.float32]:
            rng = np.random.default_rng(5)
            got = []
            for start, n in ((0, 70), (70, 1), (71, 3)):
                rows = step(([1] * n, start, [2, 0]), all_logits=False)
                given = rng.standard_normal((n, 32)).astype(np.float32)
                ops.run(replace(rows, given=given, logit_rows=rows.logit_rows[:0]), appended)
                given = rng.standard_normal((5, 32)).astype(np.float32)
                block_rows = step(([3, 4, 5, 6, 7], start + n, [2, 0]))
                got.append(ops.run(replace(block_rows, given=given), block).copy())
            return np.concatenate(got)

        return run, ops.close

    def __exit__(self, *error: object) -> None:
        self.target.close()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tried": np.ones(1, np.int32), "positions": np.arange(3, dtype=np.int32)}, "beginning"),
        ({"parents": np.array([-1, 0, 0], np.int32)}, "not tried"),
    ],
)
def test_wrong_tries_are_refused(change: dict[str, NDArray[np.int32]], words: str) -> None:
    ops = CpuOps(1, Precision.EXACT)
    record(ops, "qwen35")
    with pytest.raises(KernelError, match=words):
        ops.run(replace(step(([5, 6, 7], 4, PAGES)), **change))
    many = replace(step(([5] * 40, 4, PAGES)), tried=np.ones(1, np.int32))
    with pytest.raises(KernelError, match="40 tried rows"):
        ops.run(many)
    ops.close()
