"""Activations as kernels write them, run on the processor, against blocks made by NumPy."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np

from kernels.loader import SOURCES
from tests.kernels.cuda.on_host import build
from tests.kernels.cuda.test_cuda_unit_on_host import HERE, f16_blocks, int8_blocks

KERNEL = """
extern "C" void run(const float* x, u8* int8, u8* f16, int M) {
  launch({1, 1, 1}, 32, [&] {
    for (int m = 0; m < M; m++) {
      float v[8];
      for (int i = 0; i < 8; i++) v[i] = x[256 * m + 8 * threadIdx.x + i];
      write_int8(int8 + m / 8 * INT8_BLOCK, m % 8, v);
      write_f16(f16 + m / 8 * F16_BLOCK, m % 8, v);
    }
  });
}
"""


def test_a_warp_writes_both_forms(tmp_path: Path) -> None:
    rng = np.random.default_rng()
    x = rng.standard_normal((16, 256)).astype(np.float32) * 10.0 ** rng.integers(-3, 4, (16, 1))
    x = x.astype(np.float32)
    x[3] = 0
    header = (SOURCES / "include" / "activation.cuh").read_text(encoding="utf-8")
    header = header.replace("#pragma once\n", "").replace('#include "ptx.cuh"\n', "")
    source = tmp_path / "activations.cpp"
    source.write_text(f'#include "{HERE / "lockstep.h"}"\n{header}{KERNEL}', encoding="utf-8")
    int8, f16 = np.zeros((2, 2656), np.uint8), np.zeros((2, 4128), np.uint8)
    build(source, tmp_path / "activations.so").run(
        *(ctypes.c_void_p(a.ctypes.data) for a in (x, int8, f16)), len(x)
    )
    np.testing.assert_array_equal(int8, int8_blocks(x))
    e = np.abs(x).max(axis=1, keepdims=True)
    e[3] = 2.0**-95
    e = 2 ** np.floor(np.log2(e))
    want = f16_blocks(x / e)
    want[:, 4096:] = e.astype(np.float32).reshape(2, 8).view(np.uint8)
    np.testing.assert_array_equal(f16, want)
