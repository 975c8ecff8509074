"""Kernels for the many rows of prompts, on the processor thread by thread, against those of short steps."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from engine.gguf import Tensor
from engine.ops.base import Limits, Rope, Shape, StepInput
from engine.ops.cuda import CudaOps
from engine.ops.cuda_buffers import Pass, Product
from engine.quants import TYPES
from kernels.variants import F16
from tests.kernels.cuda.test_cuda_ops_without_card import Notes
from tests.reference.blocks import random_tensor

ROWS = 83
LIMITS = Limits(rows=128, sequences=2, pages=10, page_tokens=64, pages_per_sequence=5)
TABLE = np.array([[7, 2, 9, 0, 4], [1, 3, 5, 6, 8]], np.int32)


def step(*spans: tuple[int, int, int]) -> StepInput:
    """Spans of (sequence, start, tokens)."""
    positions = np.concatenate([start + np.arange(n) for _, start, n in spans]).astype(np.int32)
    sequence = np.repeat([s for s, *_ in spans], [n for *_, n in spans]).astype(np.int32)
    return StepInput(np.zeros(len(positions), np.int32), positions, sequence, TABLE, positions[:1])


def floats(address: int, *shape: int) -> np.ndarray:
    """Numbers that lie on the card."""
    n = int(np.prod(shape))
    return np.ctypeslib.as_array((ctypes.c_float * n).from_address(address)).reshape(shape)


def numbers(ops: CudaOps, values: np.ndarray) -> Any:
    values = values.astype(np.float32)
    return ops.upload(Tensor("x", values.shape, TYPES[0], values.view(np.uint8)))


class Model:
    """One layer of attention and a feed-forward part, whose products are `values`, not multiplied."""

    def __init__(
        self, heads: int, kv_heads: int, dim: int, gated: bool, rope: Rope, depth: int = 256
    ) -> None:
        self.rng = rng = np.random.default_rng()
        ops = self.ops = CudaOps()
        embd, ff = 600, 328
        shape = Shape(1, embd, 8, heads, kv_heads, dim)
        ops.allocate(shape, LIMITS)
        norms = [numbers(ops, rng.uniform(0.5, 1.5, n)) for n in (embd, embd, dim, dim)]

        def product(x: Any, *rows: int) -> Any:
            kinds = ("Q8_0", "Q8_0", "Q4_K")  # so that it has one part or two
            tensors = [random_tensor(rng, k, n, depth) for k, n in zip(kinds, rows, strict=False)]
            return ops.linear(x, *map(ops.upload, tensors))

        with ops.recording():
            x = self.x = ops.embed(numbers(ops, np.ones((8, embd))))
            h = ops.norm(x, norms[0], 1e-5)
            q, kv = heads * dim * (1 + gated), kv_heads * dim
            qkv = product(h, q, kv, kv)
            self.qk = norms[2:] if rng.integers(2) else (None, None)
            a = self.a = ops.attend(qkv, 0, rope, *self.qk, 1e-5, gated=gated)
            o = product(a, embd)
            a.forms.add(32)
            h2 = ops.add_norm(x, o, norms[1], 1e-5)
            gate_up = product(h2, ff, ff)
            act = ops.swiglu(gate_up)
            down = product(act, embd)
            last = ops.add_norm(x, down, norms[0], 1e-5)
            ops.head(last, numbers(ops, np.ones((8, embd))))
        self.outputs = [h, a, h2, act]
        self.products = [qkv, o, gate_up, down]
        self.values = {b: rng.standard_normal((ROWS, b.width)) for b in (x, *self.products)}
        for b in self.products:  # a library leaves factors to the readers
            for launch in b.launches:
                launch.factors = ops.card.put(2.0 ** rng.integers(-2, 3, ROWS).astype(np.float32))
        keys = ops._kv, 2 * ops._layer_bytes
        queries = ops._queries, ROWS * heads * dim * 2
        self.places = [keys, queries]

    def run(self, a_step: StepInput) -> list[np.ndarray]:
        """All that the kernels write."""
        ops, m = self.ops, len(a_step.tokens)
        for address, size in self.places:
            ctypes.memset(address, 0, size)
        tiles = ops._step.send(a_step, m)
        n = ops.shape.n_heads
        rng = np.random.default_rng(1)
        floats(ops._sums, m, n * ops.shape.head_dim)[:] = rng.standard_normal(
            (m, n * ops.shape.head_dim)
        )
        floats(ops._stats, m, n, 2)[:] = rng.uniform(1, 2, (m, n, 2))
        p = Pass(m, F16, tiles, 0, 0, 2)
        for node in ops._tapes[0].nodes[:-1]:
            for buffer, values in self.values.items():
                at = buffer.at("y" if buffer.launches else "32")
                if buffer in node.buffers and not (
                    buffer is self.x and node.buffers[-1] is not self.outputs[0]
                ):
                    floats(at, m, buffer.width)[:] = values[:m]
                    for name, size in buffer.sizes.items():
                        if name.startswith("parts"):
                            left = np.random.default_rng(2).standard_normal(size // 4)
                            floats(buffer.at(name), size // 4)[:] = left
            if node.buffers[-1] not in self.products and node.buffers != (self.x,):
                node.launch(p)
        found = [floats(self.x.at("32"), m, self.x.width).copy()]
        for out in self.outputs:
            found.append(halves(out, p))
            if 32 in out.forms:
                found.append(floats(out.at("32"), m, out.width).copy())
            if out.eps:
                found.append(floats(out.at("squares"), m, -(-out.width // 256)).copy())
        for address, size in self.places:
            raw = (ctypes.c_char * size).from_address(address).raw
            found.append(np.frombuffer(raw, np.float16).astype(np.float32))
        return found


def halves(buffer: Any, p: Pass) -> np.ndarray:
    """Rows of the F16 form."""
    superblocks, groups = -(-buffer.width // 256), p.groups
    size = superblocks * groups * 4128
    raw = np.frombuffer((ctypes.c_char * size).from_address(buffer.at("16")).raw, np.uint8)
    blocks = raw.reshape(superblocks, groups, 4128)
    h = blocks[:, :, :4096].copy().view(np.float16).reshape(superblocks, groups, 8, 8, 4, 8)
    e = blocks[:, :, 4096:].copy().view(np.float32)
    rows = np.einsum("sgarpi,sgr->grsapi", h.astype(np.float32), e)
    return rows.reshape(groups * 8, -1)[: p.rows]


@pytest.mark.parametrize(
    ("shape", "gated", "rope"),
    (
        ((5, 2, 128), False, Rope(128, 1e4, False)),
        ((4, 1, 256), True, Rope(64, 1e4, False)),
        ((6, 3, 64), False, Rope(64, 1e4, True)),
        ((3, 1, 64), True, Rope(60, 1e4, False)),
    ),
    ids=str,
)
def test_many_rows_are_as_few(
    card: Notes, monkeypatch: pytest.MonkeyPatch, shape: Any, gated: bool, rope: Rope
) -> None:
    model = Model(*shape, gated, rope)
    a_step = step((0, 16, 50), (1, 3, ROWS - 50))
    card.launches.clear()
    many = model.run(a_step)
    assert {"rope_store_rows", "combine_rows", "add_norm_rows", "swiglu_rows"} <= {
        name for name, *_ in card.launches
    }

    def never(product: Product) -> bool:
        return False

    monkeypatch.setattr("engine.ops.cuda.is_whole", never)
    monkeypatch.setattr("engine.ops.cuda_attention.is_whole", never)
    card.launches.clear()
    few = model.run(a_step)
    assert not any(name.endswith("_rows") for name, *_ in card.launches)
    for got, want in zip(many, few, strict=True):
        assert np.isfinite(want).all() and np.abs(want).max() > 0.01
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-3 * np.abs(want).max())
        assert np.linalg.norm(got - want) < 3e-4 * np.linalg.norm(want)


def test_blocks_of_several_rows_add_as_those_of_one(
    card: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model(6, 2, 128, False, Rope(128, 1e4, False), depth=2048)
    for buffer in model.products:
        for launch in buffer.launches:
            launch.factors = 0
    p = Pass(16, F16, 0, 0)
    counts = {part.units for b in model.products for part in model.ops._product(b, p).part}
    assert max(counts) > 0, "no product is split"
    a_step = step((0, 16, 5), (1, 3, 11))
    several = model.run(a_step)
    names = {name: grid for name, grid, *_ in card.launches}
    assert names["add_norm_two"][1] == 8 and names["swiglu_four"][1] == 4
    monkeypatch.setattr(Pass, "several", False)
    card.launches.clear()
    for got, want in zip(several, model.run(a_step), strict=True):
        assert np.isfinite(want).all() and np.abs(want).max() > 0.01
        np.testing.assert_array_equal(got, want)
    assert {"add_norm", "swiglu"} <= {name for name, *_ in card.launches}
