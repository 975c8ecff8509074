"""Every block format against values of ggml itself."""

from __future__ import annotations

from pathlib import Path

import gguf.quants
import numpy as np
import pytest

from engine import quants
from engine.errors import UnsupportedModel
from tests.tools.make_iq_grids import tables

ORACLE = np.load(Path(__file__).parents[1] / "fixtures" / "quants.npz")
CASES = sorted(key for key in ORACLE if key.startswith("raw"))


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a.view(np.uint32), b.view(np.uint32))


@pytest.mark.parametrize("case", CASES)
def test_equals_ggml_bit_for_bit(case: str) -> None:
    kind = quants.by_name(case.partition("_")[2])
    want = ORACLE[case.replace("raw", "deq", 1)]
    assert same_bits(quants.dequantize(ORACLE[case], kind).ravel(), want.ravel())


def test_the_oracle_holds_every_type_that_models_use() -> None:
    names = {case.partition("_")[2] for case in CASES}
    assert len(names) == 25
    others = {"F64", "I8", "I16", "I32", "I64", "NVFP4"}
    assert {t.name for t in quants.TYPES.values() if t.can_dequantize} == names | others


def test_nvfp4_equals_gguf_with_all_scales_and_codes() -> None:
    blocks = np.random.default_rng(5).integers(0, 256, (256, 36), dtype=np.uint8)
    blocks[:, 0] = np.arange(256)
    want = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.NVFP4)
    assert same_bits(quants.dequantize(blocks, quants.by_name("NVFP4")), want.astype(np.float32))


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("F64", "<f8"), ("I8", "i1"), ("I16", "<i2"), ("I32", "<i4"), ("I64", "<i8")],
)
def test_plain_numbers(name: str, dtype: str) -> None:
    values = np.array([[-3, 0, 7, 100]], dtype)
    got = quants.dequantize(values.view(np.uint8), quants.by_name(name))
    assert got.dtype == np.float32 and got.tolist() == [[-3.0, 0.0, 7.0, 100.0]]


def test_sizes_are_those_of_gguf() -> None:
    for number, (block, size) in gguf.constants.GGML_QUANT_SIZES.items():
        kind = quants.TYPES[int(number)]
        assert (kind.name, kind.block) == (number.name, block)
        if kind.name not in ("Q8_1",):  # the package counts its two halves as whole floats
            assert kind.bytes == size


def test_codebooks_are_those_of_gguf() -> None:
    for name, table in tables().items():
        assert np.array_equal(quants.grid(name), table)
    assert quants.grid("IQ1_M") is not None and not quants.grid("IQ1_S").flags.writeable


def test_leading_shape_is_kept_and_views_are_taken() -> None:
    kind = quants.by_name("Q4_0")
    rows = np.repeat(ORACLE["raw_Q4_0"], 2, axis=0).reshape(2, 2, -1)
    got = quants.dequantize(rows[:, ::-1], kind)
    assert got.shape == (2, 2, 1024)
    assert same_bits(got[1, 0], ORACLE["deq_Q4_0"][1])


def test_more_than_one_chunk_at_a_time() -> None:
    row = ORACLE["raw_Q6_K"][:1]
    got = quants.dequantize(np.repeat(row, 1100, axis=0), quants.by_name("Q6_K"))
    assert same_bits(got, np.repeat(ORACLE["deq_Q6_K"][:1], 1100, axis=0))


def test_infinite_and_nan_scales_pass_without_a_warning() -> None:
    block = np.zeros((1, 34), np.uint8)
    block[0, :2] = np.frombuffer(np.float16(np.inf).tobytes(), np.uint8)
    block[0, 2] = 1
    got = quants.dequantize(block, quants.by_name("Q8_0"))
    assert got[0, 0] == np.inf and np.isnan(got[0, 1])


def test_types_of_known_size_only_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedModel, match="Q8_K"):
        quants.dequantize(np.zeros((1, 292), np.uint8), quants.by_name("Q8_K"))


@pytest.mark.parametrize("shape", [(1, 17), ()])
def test_half_blocks_are_an_error(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="whole blocks"):
        quants.dequantize(np.zeros(shape, np.uint8), quants.by_name("Q4_0"))


def test_unknown_names() -> None:
    with pytest.raises(KeyError):
        quants.by_name("Q9_9")
    assert quants.by_name("Q4_K").bits == 4.5 and quants.by_name("Q4_K").row_bytes(512) == 288
