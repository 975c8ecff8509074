"""A small model of quantised matrices, formats mixed as files mix them, against NumPy on the same weights."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from engine.config import Precision
from engine.gguf import Tensor
from engine.ops.base import Limits, Rope, Shape, StepInput
from engine.ops.numpy_ops import NumpyOps
from engine.quants import TYPES, by_name
from tests.reference.blocks import random_tensor
from tests.reference.packing import FORMATS

LIMITS = Limits(rows=256, sequences=3, pages=12, page_tokens=64, pages_per_sequence=4)
ALL = "all"
"""Every matrix of another format, all of them in turn, as files made by an importance matrix have."""

MIXES = (
    ("Q4_K", "Q4_K", "Q6_K", 768),
    ("Q8_0", "Q8_0", "Q8_0", 576),
    ("Q5_0", "Q5_K", "Q4_1", 512),
    ("Q4_0", "F16", "Q5_1", 512),
    ("IQ4_XS", "Q2_K", "Q3_K", 768),
    ("MXFP4", "IQ4_NL", "MXFP4", 576),
    (ALL, ALL, ALL, 768),
)
HEADS, KV_HEADS, VOCABULARY, FF = 9, 3, 333, 1536
NMSE = {Precision.FAST: (2e-4, 2e-3), Precision.EXACT: (1e-5, 1e-5)}
"""Of steps longer than 32 rows, where only the output matrix sees int8, and of shorter ones."""


def build(
    ops: Any, rng: np.random.Generator, mix: tuple[str, str, str, int], head_dim: int
) -> None:
    """Layers, recorded: two, or enough for all formats."""
    qk, ff, v, embd = mix
    turns = itertools.cycle(rng.permutation([*FORMATS, "F16", "BF16", "F32"]))
    n_layers = 4 if qk == ALL else 2

    def vector(n: int) -> Tensor:
        return Tensor(
            "n", (n,), TYPES[0], rng.uniform(0.5, 1.5, n).astype(np.float32).view(np.uint8)
        )

    def matrix(name: str, rows: int, columns: int) -> Any:
        name = str(next(turns)) if name == ALL else name
        if columns % by_name(name).block:
            name = "Q8_0"
        return ops.upload(random_tensor(rng, name, rows, columns))

    table = random_tensor(rng, "F32", VOCABULARY, embd)
    layers = [
        {
            "norm": ops.upload(vector(embd)),
            "norm2": ops.upload(vector(embd)),
            "head_norm": ops.upload(vector(head_dim)),
            "q": matrix(qk, HEADS * head_dim, embd),
            "k": matrix(qk, KV_HEADS * head_dim, embd),
            "v": matrix(v, KV_HEADS * head_dim, embd),
            "o": matrix(ff, embd, HEADS * head_dim),
            "gate": matrix(ff, FF, embd),
            "up": matrix(ff, FF, embd),
            "down": matrix(v, embd, FF),
        }
        for _ in range(n_layers)
    ]
    last, output, embedding = (
        ops.upload(vector(embd)),
        matrix(v, VOCABULARY, embd),
        ops.upload(table),
    )
    ops.allocate(Shape(n_layers, embd, VOCABULARY, HEADS, KV_HEADS, head_dim), LIMITS)
    rope = Rope(head_dim // 2, 1e4, interleaved=True, magnitude=1.1)
    with ops.recording():
        x = ops.embed(embedding)
        h = ops.norm(x, layers[0]["norm"], 1e-5)
        for i, w in enumerate(layers):
            a = ops.attend(
                ops.linear(h, w["q"], w["k"], w["v"]), i, rope, w["head_norm"], None, 1e-5
            )
            h = ops.add_norm(x, ops.linear(a, w["o"]), w["norm2"], 1e-5)
            f = ops.swiglu(ops.linear(h, w["gate"], w["up"]))
            following = layers[i + 1]["norm"] if i + 1 < n_layers else last
            h = ops.add_norm(x, ops.linear(f, w["down"]), following, 1e-5)
            ops.end_layer(i, x)
        ops.head(h, output)


def step(tokens: np.ndarray, start: int, sequence: int = 0) -> StepInput:
    index = np.arange(len(tokens), dtype=np.int32)
    table = np.stack([np.arange(4 * i, 4 * i + 4) for i in range(3)]).astype(np.int32)
    return StepInput(
        tokens.astype(np.int32), start + index, np.full_like(index, sequence), table, index
    )


def nmse(got: np.ndarray, want: np.ndarray) -> float:
    return float(((got - want) ** 2).mean() / (want**2).mean())


@pytest.mark.parametrize("head_dim", (64, 128))
@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: "-".join(map(str, mix)))
@pytest.mark.parametrize("precision", Precision)
def test_quantised_models_equal_numpy(
    make_ops: Any, mix: tuple[str, str, str, int], head_dim: int, precision: Precision
) -> None:
    seed = int(np.random.default_rng().integers(1 << 30))
    ops, reference = make_ops(precision), NumpyOps()
    build(ops, np.random.default_rng(seed), mix, head_dim)
    build(reference, np.random.default_rng(seed), mix, head_dim)
    tokens = np.random.default_rng(seed).integers(0, VOCABULARY, 232)
    want = reference.run(step(tokens[:200], 0))
    assert nmse(ops.run(step(tokens[:200], 0)), want) < NMSE[precision][0], seed
    want = reference.run(step(tokens[200:], 200))
    whole = ops.run(step(tokens[200:], 200)).copy()
    assert nmse(whole, want) < NMSE[precision][1], seed
    done = 0
    for size in (1, 2, 7, 16, 6):
        got = ops.run(step(tokens[200 + done : 200 + done + size], 200 + done))
        np.testing.assert_array_equal(got, whole[done : done + size])
        done += size
    assert done == 32
    memory = ops.memory()
    assert memory["model"] > 0 and ops.first_bad_layer(step(tokens[:40], 0)) is None


def test_the_layer_that_breaks_is_named(make_ops: Any) -> None:
    ops = make_ops()
    build(ops, np.random.default_rng(5), MIXES[1], 64)
    nodes = ops._tapes[0].nodes
    bad = nodes[[node.layer for node in nodes].index(0) - 1]
    launch = bad.launch

    def spoil(p: Any) -> None:
        launch(p)
        x = bad.buffers[0]
        ops.card.runtime.memsetAsync(x.at("32") + 64, 0xFF, 4, ops.card.stream.ptr)

    bad.launch = spoil
    assert ops.first_bad_layer(step(np.arange(3), 0)) == 0


def test_memory_that_is_not_there_is_refused_with_numbers(make_ops: Any) -> None:
    from engine.errors import OutOfMemory

    ops = make_ops()
    limits = Limits(rows=64, sequences=1, pages=1 << 22, page_tokens=64, pages_per_sequence=1 << 22)
    with pytest.raises(OutOfMemory, match=r"GiB.*kv"):
        ops.allocate(Shape(64, 512, 333, 9, 8, 128), limits)
    build(make_ops(), np.random.default_rng(5), MIXES[1], 64)
