"""The packed weight layout: packing loses nothing, and lanes hold what the tensor core expects."""

from __future__ import annotations

import numpy as np
import pytest

from engine.ops.cuda_device import stored_as
from engine.ops.two_level import two_level
from engine.quants import by_name, dequantize
from kernels.variants import chunk
from tests.reference.blocks import random_tensor
from tests.reference.packing import FORMATS, codes_of, pack, signed_words, weights_of

SHAPES = ((16, 256), (33, 512), (48, 1024))


def matrix_operand(lanes: np.ndarray) -> np.ndarray:
    """A (16, 32) of mma.m16n8k32 from its registers: (lanes, registers, bytes). PTX ISA, fragments."""
    a = np.empty((16, 32), np.int32)
    for lane in range(32):
        group, thread = lane >> 2, lane & 3
        for i in range(16):
            row = group if i < 4 or 8 <= i < 12 else group + 8
            column = thread * 4 + (i & 3) + (16 if i >= 8 else 0)
            a[row, column] = lanes[lane, i // 4, i % 4]
    return a


def batch_operand(q: np.ndarray) -> np.ndarray:
    """The registers of B (32, 8) of mma.m16n8k32 for q (8 rows, 32 columns)."""
    lanes = np.empty((32, 2, 4), np.int32)
    for lane in range(32):
        group, thread = lane >> 2, lane & 3
        for i in range(8):
            row = thread * 4 + (i & 3) + (16 if i >= 4 else 0)
            lanes[lane, i // 4, i % 4] = q[group, row]
    return lanes


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A B from the registers, the way the instruction defines it: (16, 8)."""
    column = np.empty((32, 8), np.int32)
    for lane in range(32):
        group, thread = lane >> 2, lane & 3
        for i in range(8):
            column[thread * 4 + (i & 3) + (16 if i >= 4 else 0), group] = b[lane, i // 4, i % 4]
    return matrix_operand(a) @ column


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_packing_keeps_every_weight_bit_for_bit(name: str, shape: tuple[int, int]) -> None:
    tensor = random_tensor(np.random.default_rng(), name, *shape)
    chunks = pack(tensor.data, name, shape[1])
    assert chunks.shape[2] == chunk(stored_as(tensor.type.id))
    weights = weights_of(chunks, name)
    np.testing.assert_array_equal(weights[: shape[0]], dequantize(tensor.data, tensor.type))
    assert not weights[shape[0] :].any()


@pytest.mark.parametrize("name", [n for n in FORMATS if by_name(n).block == 32])
def test_columns_beyond_the_matrix_are_zero(name: str) -> None:
    tensor = random_tensor(np.random.default_rng(), name, 20, 576)
    weights = weights_of(pack(tensor.data, name, 576), name)
    np.testing.assert_array_equal(weights[:20, :576], dequantize(tensor.data, tensor.type))
    assert not weights[:, 576:].any()


@pytest.mark.parametrize("name", FORMATS)
def test_lanes_hold_the_operand_of_the_tensor_core(name: str) -> None:
    rng = np.random.default_rng()
    tensor = random_tensor(rng, name, 16, 256)
    chunks = pack(tensor.data, name, 256)
    codes = codes_of(chunks, name)
    lanes = signed_words(chunks, name)[0, 0]
    q = rng.integers(-127, 128, (8, 256)).astype(np.int32)
    for slab in range(8):
        columns = slice(32 * slab, 32 * slab + 32)
        got = product(lanes[slab], batch_operand(q[:, columns]))
        np.testing.assert_array_equal(got, codes[:, columns] @ q[:, columns].T)


def test_two_level_activations_are_as_good_as_a_scale_for_32() -> None:
    rng = np.random.default_rng()
    x = rng.standard_normal((16, 1024)).astype(np.float32)
    x[:, rng.integers(0, 1024, 20)] *= 50

    def error(y: np.ndarray) -> float:
        return float(np.linalg.norm(y - x) / np.linalg.norm(x))

    blocks = x.reshape(16, -1, 32)
    scale = np.abs(blocks).max(axis=2, keepdims=True) / 127
    plain = (np.rint(blocks / scale) * scale).reshape(x.shape)
    assert error(two_level(x)) < 1.1 * error(plain)
