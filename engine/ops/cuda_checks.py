"""Small recordings that run on a card and in NumPy, one for each kernel that models use."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engine.config import Precision
from engine.errors import DeviceFault, EngineError
from engine.gguf import Tensor
from engine.ops.base import DeltaShape, Limits, Ops, Rope, Shape, StepInput
from engine.ops.choosing import Changes, Choice, Penalties, chosen
from engine.ops.cuda import CudaOps
from engine.ops.cuda_device import stored_as
from engine.ops.numpy_ops import NumpyOps
from engine.ops.two_level import steady, two_level
from engine.quants import TYPES, dequantize
from kernels import variants

_F32 = TYPES[0]
_ROWS, _WIDTH, _OUT = 96, 512, 80
_VOCABULARY = 151_936
_BATCHES = (1, 2, 8, 9, 16, 27)
_EPS = 1e-5
_INT8, _F16, _FLOAT = 3e-5, 2e-3, 3e-5
_NEAR = 3e-4  # of a level of the activations: what the norm before them may err
_ROUNDED = 8e-2  # of int8 activations beside those that are not
_CACHED = 2e-3  # of attention, whose keys and values are f16 on the card
_LIMITS = Limits(rows=256, sequences=2, pages=10, page_tokens=64, pages_per_sequence=5, slots=1)

Make = Callable[[Precision], CudaOps]
Rows = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison: `error` is |got - want| / |want|; `problem` says why it did not run to its end.

    `kernel` is what cannot be used when it fails: "int8" or "packed" products of format `type_id`, or a
    kernel for which there is no other.
    """

    name: str
    error: float
    tolerance: float
    kernel: str
    type_id: int = -1
    problem: str = ""

    @property
    def passed(self) -> bool:
        """False for NaN too."""
        return not self.problem and self.error <= self.tolerance


@dataclass(frozen=True, slots=True)
class Trial:
    """Checks that run together; `title`, `kernel` and `type_id` stand for them where the card faults."""

    title: str
    kernel: str
    run: Callable[[], list[Check]]
    type_id: int = -1


def trials(make: Make) -> list[Trial]:
    """All of them, in the order to run them in; `make` gives fresh operations of the card."""
    rng = np.random.default_rng()
    found = [
        Trial("embedding and output", "output", lambda: [_plain(make, rng)]),
        Trial("choice of tokens", "choice", lambda: [_choices(make, rng)]),
        Trial("norm and residual", "norm", lambda: [_norms(make, rng)]),
    ]
    for dim in variants.HEAD_DIMS:
        name = f"attention, heads of {dim}"
        found.append(Trial(name, name, partial(_attention, make, rng, dim, name)))
    name = "recurrent layers"
    found.append(Trial(name, name, lambda: [_recurrent(make, rng, "recurrent layers")]))
    found.append(Trial("mixture of experts", "experts", partial(_experts, make, rng)))
    for type_id in (*variants.FLOATS, *variants.PACKED):
        name = TYPES[type_id].name
        kernel = "packed" if _packed(type_id) else f"{name} numbers"
        found.append(Trial(name, kernel, partial(_format, make, rng, type_id), type_id))
    for types in variants.USUAL_SETS:
        found.append(Trial(_names(types), "together", partial(_together, make, rng, types)))
    return found


def _plain(make: Make, rng: np.random.Generator) -> Check:
    """Embedding, gathering and output of float32."""
    table = _numbers(rng, _ROWS, _WIDTH)

    def record(ops: Ops) -> None:
        ops.head(ops.embed(ops.upload(table)), ops.upload(_identity(_WIDTH)))

    return _beside_numpy(make, "embedding and output", "output", record, _WIDTH, _FLOAT, rng)


def _choices(make: Make, rng: np.random.Generator) -> Check:
    """Likeliest and drawn tokens of rows like a large model's, some of equal logits and some of none."""
    logits = (4 * rng.standard_normal((32, _VOCABULARY))).astype(np.float32)
    logits[8:16] = logits[8:16].round(1)
    logits[16], logits[17, 50:], logits[18, 7] = -0.0, -np.inf, np.nan
    tokens = logits.argmax(axis=1).astype(np.int32)
    may = np.packbits(rng.random(_VOCABULARY) < 0.1)

    def mask() -> NDArray[np.uint8]:
        return may

    ids, bias = np.arange(0, 1000, 3, dtype=np.int32), rng.standard_normal(334)
    changes = [Changes(ids, ids % 4, bias, Penalties(1.3, 0.5, 0.1), -1 - row) for row in range(32)]
    choices = [
        Choice(
            _VOCABULARY - 9,
            top_k,
            temperature,
            top_p,
            min_p,
            float(rng.random()),
            changes.pop() if top_k == 40 else None,
            mask if top_k == 256 else None,
            top_k == 256 and top_p < 1,
        )
        for top_k in (0, 1, 40, 256)
        for temperature in (1e-6, 1.0)
        for top_p in (0.5, 1.0)
        for min_p in (0.0, 0.05)
    ]
    error = 0.0
    with (
        _problems() as problems,
        _recorded(make, Precision.FAST, lambda ops: None, _VOCABULARY) as ops,
    ):
        error = float(
            np.mean(ops.tokens_of(logits, choices, tokens) != chosen(logits, choices, tokens))
        )
    said = problems[0] if problems else ""
    return Check("choice of tokens", error, 0.0, "choice", problem=said)


def _norms(make: Make, rng: np.random.Generator) -> Check:
    table, w = _numbers(rng, _ROWS, _WIDTH), _numbers(rng, _WIDTH, _WIDTH)
    first, second = _vector(rng, _WIDTH), _vector(rng, _WIDTH)

    def record(ops: Ops) -> None:
        x = ops.embed(ops.upload(table))
        y = ops.linear(ops.norm(x, ops.upload(first), _EPS), ops.upload(w))
        h = ops.add_norm(x, y, ops.upload(second), _EPS)
        ops.end_layer(0, x)
        ops.head(h, ops.upload(_identity(_WIDTH)))

    return _beside_numpy(make, "norm and residual", "norm", record, _WIDTH, _F16, rng)


def _attention(make: Make, rng: np.random.Generator, head_dim: int, name: str) -> list[Check]:
    heads, kv_heads = 4, 2
    table = _numbers(rng, _ROWS, _WIDTH)
    w = _numbers(rng, (heads + 2 * kv_heads) * head_dim, _WIDTH)
    q_norm, k_norm = _vector(rng, head_dim), _vector(rng, head_dim)
    rope = Rope(head_dim // 2, 1e4, interleaved=bool(rng.integers(2)))

    def record(ops: Ops) -> None:
        qkv = ops.linear(ops.embed(ops.upload(table)), ops.upload(w))
        a = ops.attend(qkv, 0, rope, ops.upload(q_norm), ops.upload(k_norm), _EPS)
        ops.head(a, ops.upload(_identity(heads * head_dim)))

    shape = Shape(1, _WIDTH, heads * head_dim, heads, kv_heads, head_dim)
    return [_beside_numpy(make, name, name, record, shape.n_vocab, _CACHED, rng, shape)]


def _recurrent(make: Make, rng: np.random.Generator, name: str) -> Check:
    delta = DeltaShape(n_layers=1, n_k_heads=2, n_v_heads=4, head_dim=128, conv_kernel=4)
    inner = delta.n_v_heads * delta.head_dim
    table = _numbers(rng, _ROWS, _WIDTH)
    table.data.view(np.float32)[:] *= np.float32(np.sqrt(_WIDTH))
    w = _numbers(rng, delta.qkv + inner + 2 * delta.n_v_heads, _WIDTH)
    taps = _numbers(rng, delta.qkv, delta.conv_kernel)
    bias, rate, norm = (_vector(rng, n) for n in (delta.n_v_heads, delta.n_v_heads, delta.head_dim))
    rate.data.view(np.float32)[:] *= np.float32(-0.1)

    def record(ops: Ops) -> None:
        mixed = ops.linear(ops.embed(ops.upload(table)), ops.upload(w))
        conv1d, dt_bias, a, w_norm = (ops.upload(t) for t in (taps, bias, rate, norm))
        o = ops.delta(mixed, 0, conv1d, dt_bias, a, w_norm, _EPS)
        ops.head(o, ops.upload(_identity(inner)))

    shape = Shape(2, _WIDTH, inner, 4, 1, 64, delta)
    return _beside_numpy(make, name, name, record, shape.n_vocab, _FLOAT, rng, shape)


def _experts(make: Make, rng: np.random.Generator) -> list[Check]:
    """A router's choice, and the chosen experts and a shared one in both forms of activations."""
    n, used, inner = 20, 3, 256
    table, norm = _numbers(rng, _ROWS, _WIDTH), _vector(rng, _WIDTH)
    router, gate = _numbers(rng, n, _WIDTH), _numbers(rng, 1, _WIDTH)
    sides = ((inner, _WIDTH), (inner, _WIDTH), (_WIDTH, inner))
    shared = [
        _blocks(rng, type_id, *side) for type_id, side in zip((12, 12, 8), sides, strict=True)
    ]
    stacks = []
    for rows, columns in sides:
        flat = _blocks(rng, 12, n * rows, columns)
        data = flat.data.reshape(n, rows, -1)
        stacks.append(Tensor("w", (n, rows, columns), flat.type, data))

    def record(ops: Ops) -> None:
        x = ops.embed(ops.upload(table))
        gates, ups, downs = (ops.upload(t) for t in stacks)
        of_shared = [ops.upload(t) for t in shared]
        h = ops.norm(x, ops.upload(norm), _EPS)
        y = ops.experts(h, ops.upload(router), gates, ups, downs, used, of_shared, ops.upload(gate))
        ops.head(ops.add_norm(x, y, ops.upload(norm), _EPS), ops.upload(_identity(_WIDTH)))

    def check(form: str, kernel: str, tolerance: float, precision: Precision) -> Check:
        name = f"mixture of experts, {form}"
        found = _beside_numpy(
            make, name, kernel, record, _WIDTH, tolerance, rng, precision=precision
        )
        return replace(found, type_id=12 if kernel == "int8" else -1)

    return [
        check("f16", "experts", _F16, Precision.EXACT),
        check("int8", "int8", _ROUNDED, Precision.FAST),
    ]


def _format(make: Make, rng: np.random.Generator, type_id: int) -> list[Check]:
    """Embedding of a format, and products in both forms, a batch's rows beside single ones."""
    table = _blocks(rng, type_id, _ROWS, _WIDTH)
    name = TYPES[type_id].name
    packed = _packed(type_id)

    def record(ops: Ops) -> None:
        ops.head(ops.embed(ops.upload(table)), ops.upload(_identity(_WIDTH)))

    rest = "packed" if packed else f"{name} numbers"
    found = [_beside_numpy(make, f"{name} embedding", rest, record, _WIDTH, _FLOAT, rng)]
    found += _products(make, rng, type_id, Precision.FAST)
    if type_id in variants.PACKED:
        found += _products(make, rng, type_id, Precision.EXACT)
    return [Check(c.name, c.error, c.tolerance, c.kernel, type_id, c.problem) for c in found]


def _names(types: tuple[int, ...]) -> str:
    return " beside ".join(TYPES[type_id].name for type_id in types)


def _together(make: Make, rng: np.random.Generator, types: tuple[int, int]) -> list[Check]:
    """Products of two formats, which one launch computes."""
    found = _products(make, rng, types[0], Precision.FAST, types[1])[:2]
    return [Check(c.name, c.error, c.tolerance, "together", problem=c.problem) for c in found]


def _products(
    make: Make,
    rng: np.random.Generator,
    type_id: int,
    precision: Precision,
    other: int | None = None,
) -> list[Check]:
    """silu(x G) * (x U) of normed random x: short batches, the same rows in any batch, a long one.

    G is of format `type_id`, U of `other` where that is given.
    """
    packed, name = _packed(type_id), TYPES[type_id].name
    types = (type_id, type_id if other is None else other)
    name = name if other is None else _names(types)
    gate, up = (_blocks(rng, its, _OUT, _WIDTH) for its in types)
    x = _activations(rng)
    weights = [dequantize(t.data, t.type).astype(np.float64).reshape(_OUT, -1) for t in (gate, up)]
    exact = x.astype(np.float64)
    scale = 1 / np.sqrt((exact**2).mean(axis=1, keepdims=True) + _EPS)

    def want(rows: Rows) -> Rows:
        g, u = (rows * scale @ w.T for w in weights)
        return np.asarray(g / (1 + np.exp(-g)) * u)

    def record(ops: Ops) -> None:
        h = ops.embed(ops.upload(Tensor("x", x.shape, _F32, x.view(np.uint8))))
        h = ops.norm(h, ops.upload(Tensor("n", (_WIDTH,), _F32, _ones(_WIDTH))), _EPS)
        h = ops.swiglu(ops.linear(h, ops.upload(gate), ops.upload(up)))
        ops.head(h, ops.upload(_identity(_OUT)))

    int8 = type_id in variants.PACKED and precision is Precision.FAST
    kernel = "int8" if int8 else "packed" if packed else f"{name} numbers"
    title = f"{name}, int8" if int8 else f"{name}, f16" if packed else name
    short, long, differ = np.inf, np.inf, np.inf
    with _problems() as problems, _recorded(make, precision, record, _OUT) as ops:
        tokens = rng.permutation(_ROWS)[:32]
        whole = ops.run(_step(tokens, 0)).copy()
        short = _error(whole, want(two_level(x) if int8 else exact)[tokens])
        rows = [ops.run(_step(tokens[:m], 0)).copy() for m in _BATCHES]
        differ = sum(not np.array_equal(got, whole[: len(got)]) for got in rows)
        tokens = rng.permutation(_ROWS)
        long = _error(ops.run(_step(tokens, 0)), want(exact)[tokens])
    problem = problems[0] if problems else ""
    tolerance = _INT8 if int8 else _F16 if packed else _FLOAT
    found = [
        Check(title, short, tolerance, kernel, problem=problem),
        Check(f"{title}, any batch", differ, 0.0, kernel, problem=problem),
    ]
    if int8:
        found.append(Check(f"{name}, long", long, _F16, "packed", problem=problem))
    return found


def _activations(rng: np.random.Generator) -> NDArray[np.float32]:
    """Normal (96, 512) with three high columns; one level more or less is no fault, so none is near."""
    x = rng.standard_normal((4 * _ROWS, _WIDTH)).astype(np.float32)
    x[:, rng.integers(0, _WIDTH, 3)] *= 20
    return x[steady(x, _NEAR)][:_ROWS]


def _beside_numpy(
    make: Make,
    name: str,
    kernel: str,
    record: Callable[[Ops], None],
    width: int,
    tolerance: float,
    rng: np.random.Generator,
    shape: Shape | None = None,
    precision: Precision = Precision.EXACT,
) -> Check:
    """A text read in long and short steps, on both."""
    error = 0.0
    with _problems() as problems, _recorded(make, precision, record, width, shape) as ops:
        truth = NumpyOps()
        _record(truth, record, width, shape)
        at = 0
        for m in (70, 1, 3, 7, 32, 33):
            step = _step(rng.integers(0, _ROWS, m), at)
            error = max(error, _error(ops.run(step), truth.run(step)))
            at += m
    return Check(name, error, tolerance, kernel, problem=problems[0] if problems else "")


@contextlib.contextmanager
def _problems() -> Iterator[list[str]]:
    """Failures inside as sentences; a fault of the card ends everything."""
    found: list[str] = []
    try:
        yield found
    except DeviceFault:
        raise
    except EngineError as error:
        found.append(str(error))


@contextlib.contextmanager
def _recorded(
    make: Make,
    precision: Precision,
    record: Callable[[Ops], None],
    width: int,
    shape: Shape | None = None,
) -> Iterator[CudaOps]:
    ops = make(precision)
    try:
        _record(ops, record, width, shape)
        yield ops
    finally:
        ops.close()


def _record(ops: Ops, record: Callable[[Ops], None], width: int, shape: Shape | None) -> None:
    ops.allocate(shape or Shape(1, _WIDTH, width, 4, 1, 64), _LIMITS)
    with ops.recording():
        record(ops)


def _packed(type_id: int) -> bool:
    """Whether matrices of a format lie in chunks on a card."""
    return variants.chunk(stored_as(type_id)) > 0


def _step(tokens: NDArray[np.int64], start: int) -> StepInput:
    index = np.arange(len(tokens), dtype=np.int32)
    pages = np.array([[7, 2, 9, 0, 4]], np.int32)
    slots = np.zeros(1, np.int32)
    return StepInput(
        tokens.astype(np.int32), start + index, np.zeros_like(index), pages, index, slots
    )


def _error(got: NDArray[np.float32], want: NDArray[np.floating]) -> float:
    return float(np.linalg.norm(got - want) / np.linalg.norm(want))


def _numbers(rng: np.random.Generator, rows: int, columns: int) -> Tensor:
    values = (rng.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)
    return Tensor("w", (rows, columns), _F32, values.view(np.uint8))


def _vector(rng: np.random.Generator, n: int) -> Tensor:
    values = rng.uniform(0.5, 1.5, n).astype(np.float32)
    return Tensor("n", (n,), _F32, values.view(np.uint8))


def _ones(n: int) -> NDArray[np.uint8]:
    return np.ones(n, np.float32).view(np.uint8)


def _identity(n: int) -> Tensor:
    return Tensor("one", (n, n), _F32, np.eye(n, dtype=np.float32).view(np.uint8))


def _blocks(rng: np.random.Generator, type_id: int, rows: int, columns: int) -> Tensor:
    """Random blocks of a format whose weights are neither huge nor tiny."""
    kind = TYPES[type_id]
    n = rows * columns // kind.block
    if kind.block == 1:
        values = _numbers(rng, rows, columns).dequantize()
        if type_id == 30:
            data = (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        else:
            data = values.astype(np.float16 if type_id == 1 else np.float32).view(np.uint8)
        return Tensor("w", (rows, columns), kind, data)
    good: list[NDArray[np.uint8]] = []
    while sum(map(len, good)) < n:
        some = rng.integers(0, 256, (4096, kind.bytes), dtype=np.uint8)
        with np.errstate(all="ignore"):
            high = np.abs(dequantize(some, kind).reshape(len(some), -1)).max(axis=1)
        good.append(some[np.isfinite(high) & (high > 2**-8) & (high < 1)])
    return Tensor("w", (rows, columns), kind, np.concatenate(good)[:n].reshape(rows, -1))
