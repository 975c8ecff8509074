"""matmul.cu with several products in one launch, run on the processor, as its readers see the results."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from engine.ops.cuda_buffers import (
    Buffer,
    Launch,
    Pass,
    Sides,
    product_of,
    put_together,
    sizes,
    together,
)
from engine.ops.cuda_device import Weight
from engine.ops.cuda_recorder import Recorder
from engine.ops.two_level import two_level
from engine.quants import by_name, dequantize
from kernels.loader import SOURCES, expand
from kernels.variants import INT8, Variant
from tests.kernels.cuda.on_host import build
from tests.kernels.cuda.test_cuda_plans import reader
from tests.kernels.cuda.test_cuda_unit_on_host import HERE, int8_blocks
from tests.reference.blocks import random_tensor
from tests.reference.packing import pack

__all__ = ["reader"]
PROCESSORS, SUPERBLOCKS = 5, 3
PARTS = (("Q4_K", 144), ("Q6_K", 80), ("Q8_0", 20), ("Q4_K", 16))


def compiled(variant: Variant, folder: Path) -> ctypes.CDLL:
    """A variant of matmul.cu for the processor."""
    text = expand(variant.file)
    for name, after in (("ptx", None), ("activation", "// Where a kernel puts")):
        header = (SOURCES / "include" / f"{name}.cuh").read_text(encoding="utf-8")
        whole = header.replace("#pragma once\n", "").replace('#include "ptx.cuh"\n', "")
        cut = whole if after is None else whole[whole.index(after) :]
        assert cut in text
        text = text.replace(cut, "")
    (folder / "headers.h").write_text(text, encoding="utf-8")
    library = folder / "matmul.so"
    defines = [f"-D{name}={value}" for name, value in variant.defines]
    return build(HERE / "unit.cpp", library, "-pthread", f"-I{folder}", *defines)


@pytest.mark.parametrize("arch", (75, 90))
@pytest.mark.parametrize("m", (1, 11, 17, 22))
def test_products_in_one_launch_equal_numpy(
    reader: ctypes.CDLL,
    tmp_path: Path,
    m: int,
    arch: int,
) -> None:
    rng = np.random.default_rng()
    columns = 256 * SUPERBLOCKS
    rows = np.zeros((24, columns), np.float32)
    rows[:m] = rng.standard_normal((m, columns))
    p = Pass(m, INT8, 1, 1)
    blocks = np.stack(
        [int8_blocks(rows[:, 256 * s : 256 * s + 256])[: p.groups] for s in range(SUPERBLOCKS)]
    )
    keep: list[np.ndarray] = []
    launches, start, want = [], 0, []
    for name, height in PARTS:
        tensor = random_tensor(rng, name, height, columns)
        keep.append(np.ascontiguousarray(pack(tensor.data, name, columns)))
        weight = Weight(keep[-1].ctypes.data, height, columns, by_name(name).id, 0)
        launches.append(Launch((weight,), start))
        start += height
        want.append(dequantize(tensor.data, tensor.type).astype(np.float64))
    put_together(launches, arch)
    assert len(launches[0].beside) == len(PARTS)
    y = Buffer(start, launches=tuple(launches))
    y.sizes = sizes(y, 64, arch, PROCESSORS)
    memory = np.full(sum(y.sizes.values()) // 4, np.nan, np.float32)
    y.address = memory.ctypes.data
    x = SimpleNamespace(at=lambda form: blocks.ctypes.data)
    launched: list[tuple[Any, ...]] = []
    card = SimpleNamespace(arch=arch, processors=PROCESSORS, kernel=lambda *args: args)
    recorder: Any = SimpleNamespace(card=card, _launch=lambda *args: launched.append(args))
    Recorder._matmul_fused(recorder, x, y, launches[0].beside, p)  # type: ignore[arg-type]
    ((_, grid, threads, (sides,)),) = launched
    assert isinstance(sides, Sides) and threads == 128
    build, cuts = together(launches, p, arch, PROCESSORS)
    assert grid[0] == sum(cut.blocks for cut in cuts) <= PROCESSORS * build.blocks
    compiled(build.variant, tmp_path).run(ctypes.byref(sides), grid[0])
    product = product_of(y, p, arch, PROCESSORS)
    seen, weights = two_level(rows)[:m], np.vstack(want)
    exact, scale = seen @ weights.T, np.abs(seen) @ np.abs(weights).T
    found, whole, shared = np.empty((m, start)), (ctypes.c_float * 12)(), (ctypes.c_float * 8)()
    for row in range(m):
        for at in range(0, start, 4):
            reader.sums(
                ctypes.byref(product), row, at, 1, ctypes.byref(whole), ctypes.byref(shared)
            )
            found[row, at : at + 4] = whole[8:]
    assert np.abs(found - exact).max() <= 1e-6 * scale.max()
