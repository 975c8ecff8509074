"""repack.cu, embed.cu and the element reader of layout.cuh, compiled for the processor, against NumPy."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.quants import dequantize
from kernels.loader import SOURCES
from kernels.variants import PACKED
from tests.reference.blocks import random_tensor
from tests.reference.packing import FORMATS, pack

HERE = Path(__file__).parent
DRIVER = """
extern "C" void run(const u8* source, u8* packed, int rows, int columns, long long row_bytes,
                    int superblocks, int tiles) {
  gridDim = {superblocks, tiles, 1}, blockDim = {128, 1, 1};
  for (int y = 0; y < tiles; y++)
    for (int x = 0; x < superblocks; x++)
      for (int t = 0; t < 128; t++) {
        blockIdx = {x, y, 0}, threadIdx = {t, 0, 0};
        repack(source, packed, rows, columns, row_bytes);
      }
}
extern "C" void weights(const u8* packed, float* out, int superblocks, int rows) {
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < 256 * superblocks; c++)
      out[(size_t)r * 256 * superblocks + c] =
          weight_at(packed + ((size_t)(r >> 4) * superblocks + (c >> 8)) * CHUNK, r & 15, c & 255);
}
"""


EMBED = """
extern "C" void run(const u8* table, const int* tokens, float* x, int columns, int rows) {
  gridDim = {rows, (columns + 255) / 256, 1}, blockDim = {256, 1, 1};
  for (int m = 0; m < rows; m++)
    for (int y = 0; y < gridDim.y; y++)
      for (int t = 0; t < 256; t++) {
        blockIdx = {m, y, 0}, threadIdx = {t, 0, 0};
        embed(table, tokens, x, columns);
      }
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str, int], ctypes.CDLL]:
    folder = tmp_path_factory.mktemp("host")
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    assert compiler, "A C++ compiler is needed to test the layout code."

    def build(file: str, driver: str, type_id: int) -> ctypes.CDLL:
        layout = (SOURCES / "include" / "layout.cuh").read_text(encoding="utf-8")
        kernel = (SOURCES / file).read_text(encoding="utf-8")
        text = f'#include "{HERE / "host.h"}"\n' + layout.replace('#include "ptx.cuh"', "") + kernel
        text = text.replace("#pragma once", "").replace('#include "layout.cuh"', "") + driver
        source = folder / f"{file}-{type_id}.cpp"
        source.write_text(text, encoding="utf-8")
        library = folder / f"{file}-{type_id}.so"
        flags = [
            "-std=c++17",
            "-O1",
            "-shared",
            "-fPIC",
            "-ffp-contract=off",
            "-w",
            f"-DTYPE={type_id}",
        ]
        subprocess.run([compiler, *flags, "-o", str(library), str(source)], check=True, timeout=60)
        return ctypes.CDLL(str(library))

    return build


@pytest.mark.parametrize("name", FORMATS)
def test_repack_and_reader_equal_numpy(
    compiled: Callable[[str, str, int], ctypes.CDLL], name: str
) -> None:
    rng = np.random.default_rng()
    for rows, columns in (
        (16, 256),
        (37, 512),
        (16, 576 if name not in ("Q4_K", "Q5_K", "Q6_K") else 768),
    ):
        tensor = random_tensor(rng, name, rows, columns)
        tiles, superblocks = -(-rows // 16), -(-columns // 256)
        packed = np.full((tiles, superblocks, PACKED[tensor.type.id]), 0xAA, np.uint8)
        library = compiled("repack.cu", DRIVER, tensor.type.id)

        def pointer(array: np.ndarray) -> ctypes.c_void_p:
            return ctypes.c_void_p(array.ctypes.data)

        row_bytes = ctypes.c_longlong(tensor.data.shape[1])
        data = np.ascontiguousarray(tensor.data)
        library.run(pointer(data), pointer(packed), rows, columns, row_bytes, superblocks, tiles)
        np.testing.assert_array_equal(packed, pack(tensor.data, name, columns))
        out = np.empty((rows, superblocks * 256), np.float32)
        library.weights(pointer(packed), pointer(out), superblocks, rows)
        np.testing.assert_array_equal(out[:, :columns], dequantize(tensor.data, tensor.type))
        assert not out[:, columns:].any()


@pytest.mark.parametrize("name", (*FORMATS, "F32", "F16", "BF16"))
def test_embedding_equals_numpy(
    compiled: Callable[[str, str, int], ctypes.CDLL], name: str
) -> None:
    rng = np.random.default_rng()
    tensor = random_tensor(rng, name, 37, 512)
    table = pack(tensor.data, name, 512) if name in FORMATS else np.ascontiguousarray(tensor.data)
    tokens = rng.integers(0, 37, 9).astype(np.int32)
    x = np.full((9, 512), np.nan, np.float32)
    pointers = (ctypes.c_void_p(a.ctypes.data) for a in (table, tokens, x))
    compiled("embed.cu", EMBED, tensor.type.id).run(*pointers, 512, 9)
    np.testing.assert_array_equal(x, tensor.dequantize().reshape(37, 512)[tokens])
