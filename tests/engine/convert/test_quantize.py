"""Block formats: what is written reads back close to what was meant."""

from __future__ import annotations

import numpy as np
import pytest

from engine.convert.quantize import can_quantize, quantize
from engine.quants import by_name, dequantize

LOSS = {
    "F32": 0.0, "F16": 4e-4, "BF16": 3e-3, "Q8_0": 7e-3, "Q6_K": 0.02, "Q5_K": 0.04, "Q5_1": 0.045,
    "Q5_0": 0.05, "Q4_K": 0.08, "Q4_1": 0.09, "Q4_0": 0.1,
}  # fmt: skip
"""Root mean square error as a share of that of normal numbers."""


@pytest.mark.parametrize("name", LOSS)
def test_errors_stay_within_the_format_s(name: str) -> None:
    values = np.random.default_rng(1).standard_normal((24, 512)).astype(np.float32)
    packed = quantize(values, by_name(name))
    assert packed.dtype == np.uint8 and packed.shape == (24, by_name(name).row_bytes(512))
    back = dequantize(packed, by_name(name))
    assert np.sqrt(((back - values) ** 2).mean()) <= LOSS[name]


@pytest.mark.parametrize("name", [n for n in LOSS if n.endswith("_K")])
def test_no_k_quant_is_worse_than_half_a_step(name: str) -> None:
    """Each weight is within a step of its block: the range of 32 (16) weights over the number of levels."""
    values = np.random.default_rng(2).uniform(-3, 3, (8, 256)).astype(np.float32)
    back = dequantize(quantize(values, by_name(name)), by_name(name))
    levels = {"Q4_K": 15, "Q5_K": 31, "Q6_K": 62}[name]
    assert np.abs(back - values).max() < 1.1 * 6 / levels


@pytest.mark.parametrize("name", [n for n in LOSS if n != "F32"])
def test_plain_rows(name: str) -> None:
    zeros = np.zeros((2, 256), np.float32)
    assert not dequantize(quantize(zeros, by_name(name)), by_name(name)).any()
    for value in (0.5, -0.5):
        same = np.full((1, 256), value, np.float32)
        back = dequantize(quantize(same, by_name(name)), by_name(name))
        assert np.abs(back - value).max() < 0.01
    one = zeros.copy()
    one[0, 17] = 2.0
    back = dequantize(quantize(one, by_name(name)), by_name(name))
    assert abs(back[0, 17] - 2) < 0.02 and np.abs(np.delete(back[0], 17)).max() < 0.02


def test_half_a_block_is_refused() -> None:
    with pytest.raises(ValueError, match="whole blocks"):
        quantize(np.zeros((2, 100), np.float32), by_name("Q4_K"))
    assert can_quantize("Q6_K") and not can_quantize("IQ2_XXS")
