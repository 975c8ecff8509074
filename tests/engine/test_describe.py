"""What `lucebox inspect` says about formats, and that no block format takes many more bits on a card."""

from __future__ import annotations

import pytest

from engine.describe import card_kernel_of
from engine.ops.cuda_device import bytes_on_card
from engine.quants import TYPES, QuantType

UNPACKED = {"NVFP4"}
"""Formats that still become 16 bits on a card."""


@pytest.mark.parametrize(
    ("name", "said"),
    (
        ("Q4_K", "blocks, 4.5 bits"), ("Q2_K", "blocks, 2.6 bits"), ("IQ2_XXS", "blocks, 2.2 bits"),
        ("TQ1_0", "blocks, 2.1 bits"), ("MXFP4", "blocks, 4.2 bits"), ("BF16", "f16, 16 bits"),
        ("NVFP4", "f16, 16 bits"), ("F32", "f32, 32 bits"),
    ),
)  # fmt: skip
def test_the_kernel_of_a_card_is_named(name: str, said: str) -> None:
    assert card_kernel_of(name) == said


@pytest.mark.parametrize("kind", [k for k in TYPES.values() if k.block > 1 and k.can_dequantize])
def test_blocks_stay_blocks_on_a_card(kind: QuantType) -> None:
    there = bytes_on_card((16, 256), kind.id)
    assert (there <= 1.25 * 16 * kind.row_bytes(256)) == (kind.name not in UNPACKED)
