"""repack.cu, embed.cu and the element reader of layout.cuh, compiled for the processor, against NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engine.ops.cuda_device import stored_as
from engine.quants import QuantType, by_name, dequantize
from kernels.loader import SOURCES, expand
from kernels.variants import BOOKS, F16_TILES, chunk
from tests.kernels.cuda.on_host import build, fill_codebook
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
extern "C" void run(const u8* table, const int* tokens, const int* found, int* read,
                    float* x, int columns, int rows) {
  gridDim = {rows, (columns + 255) / 256, 1}, blockDim = {256, 1, 1};
  for (int m = 0; m < rows; m++)
    for (int y = 0; y < gridDim.y; y++)
      for (int t = 0; t < 256; t++) {
        blockIdx = {m, y, 0}, threadIdx = {t, 0, 0};
        embed(table, tokens, found, read, x, columns, 1.0f);
      }
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ctypes.CDLL]:
    folder = tmp_path_factory.mktemp("host")

    def build_file(file: str, driver: str, kind: QuantType) -> ctypes.CDLL:
        type_id = stored_as(kind.id) if file == "repack.cu" or kind.name in FORMATS else kind.id
        ptx = (SOURCES / "include" / "ptx.cuh").read_text(encoding="utf-8")
        text = expand(file).replace(ptx.replace("#pragma once\n", ""), "")
        text = f'#include "{HERE / "host.h"}"\n{text}{driver}'
        source = folder / f"{file}-{type_id}-{kind.id}.cpp"
        source.write_text(text, encoding="utf-8")
        library = folder / f"{file}-{type_id}-{kind.id}.so"
        built = build(source, library, f"-DTYPE={type_id}", f"-DFROM={kind.id}")
        if type_id in BOOKS:
            fill_codebook(built, kind)
        return built

    return build_file


@pytest.mark.parametrize("name", FORMATS)
def test_repack_and_reader_equal_numpy(compiled: Callable[..., ctypes.CDLL], name: str) -> None:
    rng = np.random.default_rng()
    for rows, columns in (
        (16, 256),
        (37, 512),
        (16, 576 if by_name(name).block == 32 else 768),
        (64, 2048),  # enough for every entry of a codebook
    ):
        tensor = random_tensor(rng, name, rows, columns)
        tiles, superblocks = -(-rows // 16), -(-columns // 256)
        packed = np.full((tiles, superblocks, chunk(stored_as(tensor.type.id))), 0xAA, np.uint8)
        library = compiled("repack.cu", DRIVER, tensor.type)

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
def test_embedding_equals_numpy(compiled: Callable[..., ctypes.CDLL], name: str) -> None:
    rng = np.random.default_rng()
    tensor = random_tensor(rng, name, 37, 512)
    table = pack(tensor.data, name, 512) if name in FORMATS else np.ascontiguousarray(tensor.data)
    tokens = rng.integers(0, 37, 9).astype(np.int32)
    x = np.full((9, 512), np.nan, np.float32)
    found, read = tokens[::-1].copy(), np.zeros_like(tokens)
    sent = np.where(np.arange(9) % 3 == 1, -9 + np.arange(9), tokens).astype(np.int32)
    pointers = (ctypes.c_void_p(a.ctypes.data) for a in (table, sent, found, read, x))
    compiled("embed.cu", EMBED, tensor.type).run(*pointers, 512, 9)
    np.testing.assert_array_equal(read, tokens)
    np.testing.assert_array_equal(x, tensor.dequantize().reshape(37, 512)[tokens])


@pytest.mark.parametrize("name", ("F16", "BF16"))
def test_numbers_in_chunks_stay_the_same_and_lie_as_operands(
    compiled: Callable[..., ctypes.CDLL], name: str
) -> None:
    rng = np.random.default_rng()
    rows, columns = 37, 328
    tensor = random_tensor(rng, name, rows, columns)
    values = tensor.dequantize().reshape(rows, columns)
    tiles, superblocks = 3, 2
    packed = np.full((tiles, superblocks, chunk(F16_TILES)), 0xAA, np.uint8)
    library = compiled("repack.cu", DRIVER, tensor.type)
    data = np.ascontiguousarray(tensor.data)
    pointers = (ctypes.c_void_p(a.ctypes.data) for a in (data, packed))
    row_bytes = ctypes.c_longlong(2 * columns)
    library.run(*pointers, rows, columns, row_bytes, superblocks, tiles)
    out = np.empty((rows, superblocks * 256), np.float32)
    pointers = (ctypes.c_void_p(a.ctypes.data) for a in (packed, out))
    library.weights(*pointers, superblocks, rows)
    np.testing.assert_array_equal(out[:, :columns], values.astype(np.float16).astype(np.float32))
    assert not out[:, columns:].any()
    # A of mma.m16n8k16 (PTX ISA): word i of lane 4g + t holds row g + 8 (i & 1), k = 2t, 2t + 1 + 8 (i >> 1).
    # The F16 activations have column 4t + j + 2h as k = 2t + h + 8j, so the weights must, too.
    lanes = packed.view(np.float16).reshape(tiles, superblocks, 8, 2, 32, 4, 2)
    for lane in range(32):
        g, t = divmod(lane, 4)
        for word in range(4):
            for h in range(2):
                row, column = g + 8 * (word & 1), 4 * t + (word >> 1) + 2 * h
                assert lanes[0, 0, 3, 1, lane, word, h] == np.float16(
                    out[row, 32 * 3 + 16 + column]
                )
