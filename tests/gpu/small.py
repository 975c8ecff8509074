"""Runs of every kernel that are small enough for a tool which makes them a hundred times slower.

    python -m tests.gpu.small CASE

A case runs once, beside NumPy where the self-test has it, and says what was wrong; the exit code is 1 then.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from engine.config import Precision, SamplingParams
from engine.draft.base import open_drafter
from engine.ops.cuda import CudaOps
from engine.ops.cuda_checks import Check, Trial, trials
from engine.ops.cuda_library import Library
from engine.ops.cuda_trust import Distrust
from engine.paths import cache_dir
from engine.quants import TYPES
from engine.types import Sequence
from tests.bench.compare_llama_cpp import without_cublas
from tests.engine.draft.drafts import draft_path, mtp_path, target_path
from tests.engine.oracle import ARCHITECTURES, expected, record, step
from tests.engine.test_tried import PAGES, TREE, tree
from tests.gpu import test_attention, test_experts, test_quantised_models
from tests.gpu.test_likeliest import choosing
from tests.gpu.test_products import product_of
from tests.kernels.cuda.test_cuda_drafts_without_card import target_on
from tests.reference.blocks import random_tensor

Case = Callable[[], list[str]]

FEW = 4
"""Multiprocessors that are used, so that a block's share of a small matrix is longer than its ring."""

LONG = (768, 2048)
"""Rows and columns of such a matrix."""


VIEWED: tuple[tuple[tuple[int, int, int, bool], dict[str, Any]], ...] = (
    ((32, 8, 128, False), {}),
    ((24, 4, 256, True), {"window": 40}),
    ((9, 3, 64, False), {"causal": False, "window": 70}),
)
"""Shapes of `test_attention.SHAPES`, and which keys a query sees."""


def make(precision: Precision = Precision.FAST) -> CudaOps:
    """The card's operations with every kernel, whatever the self-test found."""
    return CudaOps("cuda:0", precision, cache_dir() / "kernels", distrust=Distrust())


@contextmanager
def made(precision: Precision = Precision.FAST, processors: int | None = None) -> Iterator[CudaOps]:
    """The same for a while, as on a card of so many multiprocessors."""
    ops = make(precision)
    ops.card.processors = processors or ops.card.processors
    try:
        yield ops
    finally:
        ops.close()


def finite(what: str, values: Any) -> list[str]:
    """What is wrong with numbers that nobody computed a second time."""
    return [] if np.isfinite(values).all() else [f"{what} has values that are no numbers"]


def checked(trial: Trial) -> list[str]:
    """A trial of the self-test, and with a packed format a matrix that a block takes long for."""

    def told(check: Check) -> str:
        return check.problem or f"{check.name}: error {check.error:.1e} of {check.tolerance:.1e}"

    wrong = [told(check) for check in trial.run() if not check.passed]
    return wrong + (long_products(TYPES[trial.type_id].name) if trial.type_id >= 0 else [])


def long_products(name: str) -> list[str]:
    """A matrix with all numbers of batch rows that are built apart, in both forms of activations."""
    rng, wrong = np.random.default_rng(1), []
    for precision in Precision:
        w = random_tensor(rng, name, *LONG)
        x = rng.standard_normal((64, w.shape[1])).astype(np.float32)
        with made(precision, FEW) as ops:
            run = product_of(ops, w, x)
            for m in (1, 5, 9, 17, 32, 64):
                wrong += finite(f"{name}, {precision}, {m} rows", run(np.arange(m)))
    return wrong


def attention(shape: tuple[int, int, int, bool], view: dict[str, Any]) -> list[str]:
    """Rows alone, short and long steps, several sequences, and a tree."""
    text, wrong = np.random.default_rng(1).integers(0, test_attention.N_TOKENS, 400), []
    with made(processors=FEW) as ops:
        run = test_attention.attention(ops, shape, 1, **view)
        done = 0
        for size in (100, 1, 2, 5, 16, 32, 1, 70):
            wrong += finite(f"{size} rows", run((text[done : done + size], done, 0)))
            done += size
        spans = [(text[:n], 0, i) for i, n in enumerate((9, 1, 14))]
        wrong += finite("three sequences", run(*spans))
        parents = test_attention.PARENTS
        if view.get("causal", True):
            wrong += finite("a tree", run((text[: len(parents)], 60, 0), parents=parents))
    return wrong


def mixture(name: str) -> list[str]:
    """Experts of several formats, and many of them."""
    wrong = []
    with made(processors=FEW) as ops:
        test_experts.build(ops, test_experts.MIXTURES[name], 1)
        for m in (1, 3, 4, 9, 32, 80):
            wrong += finite(f"{m} rows", ops.run(test_experts.step(np.arange(m))))
    return wrong


def dense(mix: tuple[str, str, str, int], head_dim: int) -> list[str]:
    """Layers whose matrices of different formats are multiplied by one launch."""
    wrong, done = [], 0
    with made(processors=FEW) as ops:
        test_quantised_models.build(ops, np.random.default_rng(1), mix, head_dim)
        for size in (70, 1, 2, 7, 16, 32):
            tokens = np.arange(size) % test_quantised_models.VOCABULARY
            wrong += finite(f"{size} rows", ops.run(test_quantised_models.step(tokens, done)))
            done += size
    return wrong


def by_cublas() -> list[str]:
    """A prompt whose weights become f16 for cuBLAS."""
    with mock.patch.object(Library, "is_faster", return_value=True):
        return dense(test_quantised_models.MIXES[0], 128)


def oracle(architecture: str) -> list[str]:
    """A model: prompt, short steps, tokens that the card chooses, a tree and what stands of it, pages."""
    ids, wrong = expected(architecture)["ids_200"].tolist(), []
    with made() as ops:
        record(ops, architecture, capture=(1, 4))
        done = 0
        for size in (40, 1, 3, 8, 16, 32):
            logits = ops.run(step((ids[done : done + size], done, PAGES)))
            wrong += finite(f"{size} rows", logits)
            done += size
        ops.collect(ops.launch(choosing(step(([ids[done]], done, PAGES)))))
        guesses = ids[done : done + len(TREE)]
        wrong += finite("a tree", ops.run(tree(guesses, done + 1, TREE, PAGES)))
        wrong += finite("hidden rows", np.array(ops.hidden()))
        ops.accept(0, [0, 4, 7])
        wrong += finite("behind a tree", ops.run(step(([7, 9], done + 4, PAGES))))
        ops.copy_page(2, 7)
        if ops.shape.delta is not None:
            ops.copy_state(PAGES[0], 7)
    return wrong


def drafter(kind: str) -> list[str]:
    """What a drafter makes of a few rows of its target."""
    sequence = Sequence(1, [3, 4, 5, 6], 4, SamplingParams(), pages=[0])
    with tempfile.TemporaryDirectory() as name, made() as ops:
        folder, path = Path(name), None
        if kind == "mtp":
            target = target_on(ops, mtp_path(folder))
        else:
            target = target_on(ops, target_path("dflash_qwen3"))
            path = draft_path("dflash_qwen3", kind, "hf", folder)
        made_one = open_drafter("dflash" if path else "mtp", target, path)
        width = len(made_one.needs) * ops.shape.n_embd
        made_one.observe(sequence, 0, 3, np.zeros((3, width), np.float32))
        tokens = made_one.propose(sequence, 4, 4).tokens
        made_one.close()
    return [] if tokens else ["nothing was drafted"]


def cases() -> dict[str, Case]:
    """All of them by name; those of the self-test without cuBLAS, whose kernels are not ours."""
    found: dict[str, Case] = {t.title: partial(checked, t) for t in trials(make)}
    for shape, view in VIEWED:
        found[f"attention of {shape[0]} heads of {shape[2]}"] = partial(attention, shape, view)
    for name in ("mixed", "many"):
        found[f"experts, {name}"] = partial(mixture, name)
    mixes = test_quantised_models.MIXES
    found["layers of K-quants"] = partial(dense, mixes[0], 128)
    found["layers of all formats"] = partial(dense, mixes[-1], 64)
    for architecture in ARCHITECTURES:
        found[f"model {architecture}"] = partial(oracle, architecture)
    for kind in ("full", "dflash2", "mtp"):
        found[f"draft {kind}"] = partial(drafter, kind)
    found = {name: partial(_fused, case) for name, case in found.items()}
    return found | {"layers by cuBLAS": by_cublas}


def _fused(case: Case) -> list[str]:
    with without_cublas():
        return case()


def main() -> int:
    """Run one case."""
    found = cases()
    if len(sys.argv) != 2 or sys.argv[1] not in found:
        print(f"{__doc__}\nCases: {', '.join(found)}", file=sys.stderr)
        return 2
    wrong = found[sys.argv[1]]()
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
