"""A unit of a product, compiled for the processor as 32 threads, against NumPy on the same activations.

`unit.cpp` does the tensor cores' part, so that what is tested is all between a packed chunk and the sums:
layouts, unpacking, scales, minima and exact sums.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.ops.cuda_device import stored_as
from engine.ops.two_level import _factor, _levels, two_level
from engine.quants import QuantType, by_name, dequantize
from kernels.loader import SOURCES
from kernels.variants import BOOKS
from tests.kernels.cuda.on_host import build, fill_codebook
from tests.reference.blocks import extreme, random_tensor
from tests.reference.packing import FORMATS, pack

HERE = Path(__file__).parent
GROUPS = 2


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ctypes.CDLL]:
    folder = tmp_path_factory.mktemp("unit")

    def build_unit(kind: QuantType, form: int) -> ctypes.CDLL:
        type_id = stored_as(kind.id)
        texts = []
        for name in ("activation", "layout", "fragment", "unit"):
            text = (SOURCES / "include" / f"{name}.cuh").read_text(encoding="utf-8")
            book = (SOURCES / "include" / "codebook.cuh").read_text(encoding="utf-8")
            text = text.replace('#include "codebook.cuh"\n', book)
            lines = (
                s for s in text.splitlines(True) if not s.startswith(("#include", "#pragma once"))
            )
            # Of activations only where they lie; how they are written needs a real warp.
            texts.append("".join(lines).partition("// Where a kernel puts")[0])
        (folder / "headers.h").write_text("".join(texts), encoding="utf-8")
        library = folder / f"unit-{type_id}-{form}.so"
        defines = [f"-DTYPE={type_id}", f"-DFORM={form}", f"-DNT={GROUPS}", "-DTILES=2"]
        built = build(HERE / "unit.cpp", library, "-pthread", f"-I{folder}", *defines)
        if type_id in BOOKS:
            fill_codebook(built, kind)
        return built

    return build_unit


def int8_blocks(x: np.ndarray) -> np.ndarray:
    """Activation blocks of one superblock (activation.cuh) for x (rows, 256): (groups, 2656) bytes."""
    levels, ratio, e = _levels(x)
    f = _factor(ratio)[:, 0]
    q = np.clip(np.rint(levels), -127, 127).astype(np.int8)[:, 0]
    groups = len(x) // 8
    blocks = np.zeros((groups, 2656), np.uint8)
    for n in range(groups):
        for g in range(8):
            row = 8 * n + g
            sums = (q[row].sum(axis=1, dtype=np.float32) * f[row] / 64).astype(np.float32)
            upper = sums.astype(np.float16)
            lower = (sums - upper.astype(np.float32)).astype(np.float16)
            for t in range(4):
                lane, pair = 4 * g + t, slice(2 * t, 2 * t + 2)
                for i in range(4):
                    words = [
                        q[row, 2 * i + s, 16 * h + 4 * t :][:4] for s in (0, 1) for h in (0, 1)
                    ]
                    at = 512 * i + 16 * lane
                    blocks[n, at : at + 16] = np.concatenate(words).view(np.uint8)
                halves = np.concatenate([upper[pair], lower[pair]])
                blocks[n, 2048 + 8 * lane :][:8] = halves.view(np.uint8)
            blocks[n, 2304 + 4 * g :][:4] = e[row, 0].astype(np.float32).view(np.uint8)
            for slab in range(8):
                at = 2400 + 4 * (16 * (slab >> 1) + 4 * (g >> 1) + 2 * (slab & 1) + (g & 1))
                blocks[n, at : at + 4] = f[row, slab : slab + 1].view(np.uint8)
            blocks[n, 2336 + 8 * g :][:8] = f[row].astype(np.uint8)
    return blocks


def f16_blocks(x: np.ndarray) -> np.ndarray:
    """The same in the F16 form, with E = 1: (groups, 4128) bytes."""
    blocks = np.zeros((GROUPS, 4128), np.uint8)
    h = x.astype(np.float16)
    for n in range(GROUPS):
        for g in range(8):
            for t in range(4):
                for slab in range(8):
                    k = 32 * slab + 4 * t + np.array([0, 2, 1, 3, 16, 18, 17, 19])
                    at = 512 * slab + 16 * (4 * g + t)
                    blocks[n, at : at + 16] = h[8 * n + g, k].view(np.uint8)
        blocks[n, 4096:] = np.ones(8, np.float32).view(np.uint8)
    return blocks


@pytest.mark.parametrize("form", (8, 16))
@pytest.mark.parametrize("name", FORMATS)
def test_a_unit_equals_numpy(compiled: Callable[..., ctypes.CDLL], name: str, form: int) -> None:
    rng = np.random.default_rng()
    library = compiled(by_name(name), form)
    for fill in (None, 0x00, 0x7F, 0x80, 0xFF):
        w = random_tensor(rng, name, 32, 256)
        x = rng.standard_normal((8 * GROUPS, 256)).astype(np.float32)
        x[:, rng.integers(0, 256, 3)] *= 50
        if fill is not None:
            w = extreme(w, fill)
        weights = dequantize(w.data, w.type).astype(np.float64)
        if fill is not None:  # activations at their limit and of one sign with the weights
            x = np.where(weights[: 8 * GROUPS] < 0, np.float32(-1), np.float32(1))
        seen = two_level(x) if form == 8 else x.astype(np.float16).astype(np.float64)
        blocks = int8_blocks(x) if form == 8 else f16_blocks(x)
        chunks = np.ascontiguousarray(pack(w.data, name, 256))
        y = np.full((32, 8 * GROUPS), np.nan, np.float32)
        library.run(*(ctypes.c_void_p(a.ctypes.data) for a in (chunks, blocks, y)))
        want = weights @ seen.T
        scale = np.abs(weights) @ np.abs(seen).T
        assert np.abs(y - want).max() <= (1e-6 if form == 8 else 2e-3) * scale.max(), fill
