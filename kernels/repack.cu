// GGUF blocks to the packed layout of include/layout.cuh, once at load.
//
// Grid (superblocks, row tiles), 128 threads; a block writes one chunk, a thread whole words of it. `source` are
// `rows` rows of `row_bytes` bytes, `columns` weights each; bytes need no alignment. A memory-speed pass.
// F16_TILES are made from F16, or from BF16 where FROM says so.
#include "layout.cuh"

constexpr int BLOCK_BYTES = TYPE == Q4_0   ? 18
                            : TYPE == Q4_1 ? 20
                            : TYPE == Q5_0 ? 22
                            : TYPE == Q5_1 ? 24
                            : TYPE == Q8_0 ? 34
                            : TYPE == Q4_K ? 144
                            : TYPE == Q5_K ? 176
                                           : 210;
constexpr bool WIDE = K_QUANT || TYPE == Q6_K;  // 256 weights a block, else 32

#ifndef FROM
#define FROM 0
#endif

// The code of weight k (0..255, within a wide block; 0..31 within a narrow one).
DEVICE u32 source_code(const u8* block, int k) {
  if (TYPE == Q8_0) return block[2 + k];
  if (TYPE == Q4_K || TYPE == Q5_K) {
    const int slab = k >> 5, i = k & 31;
    u32 code = (block[(TYPE == Q4_K ? 16 : 48) + 32 * (slab >> 1) + i] >> (4 * (slab & 1))) & 15;
    if (TYPE == Q5_K) code |= ((block[16 + i] >> slab) & 1) << 4;
    return code;
  }
  if (TYPE == Q6_K) {
    const int half = k >> 7, quarter = (k >> 5) & 3, i = k & 31;
    const u32 low = block[64 * half + 32 * (quarter & 1) + i] >> (4 * (quarter >> 1));
    return (low & 15) | (((block[128 + 32 * half + i] >> (2 * quarter)) & 3) << 4);
  }
  constexpr int quants = BLOCK_BYTES - 16;
  u32 code = (block[quants + (k & 15)] >> (4 * (k >> 4))) & 15;
  if (FIVE_BITS) code |= ((block[quants - 4 + (k >> 3)] >> (k & 7)) & 1) << 4;
  return code;
}

extern "C" __global__ void __launch_bounds__(128) repack(const u8* __restrict__ source, u8* __restrict__ packed,
                                                         int rows, int columns, long long row_bytes) {
  const int superblock = blockIdx.x, tile = blockIdx.y;
  u8* chunk = packed + ((size_t)tile * gridDim.x + superblock) * CHUNK;

  // The block of row `r` that holds column k of this superblock; null outside the matrix.
  auto block_of = [&](int r, int k) -> const u8* {
    const int row = 16 * tile + r, column = 256 * superblock + k;
    if (row >= rows || column >= columns) return nullptr;
    return source + row * row_bytes + (size_t)(column / (WIDE ? 256 : 32)) * BLOCK_BYTES;
  };
  if constexpr (TYPE == F16_TILES) {
    auto value = [&](int r, int k) -> u32 {
      const int row = 16 * tile + r, column = 256 * superblock + k;
      if (row >= rows || column >= columns) return 0;
      const u8* at = source + row * row_bytes + 2 * (size_t)column;
      const u16 bits = (u16)(at[0] | at[1] << 8);
      return FROM == BF16 ? f32_to_f16(bf16_to_f32(bits)) : bits;
    };
    for (int at = 4 * threadIdx.x; at < CHUNK; at += 4 * blockDim.x) {
      const int slab = at >> 10, lane = (at & 511) >> 4, r = (at & 15) >> 2;
      const int row = (lane >> 2) + 8 * (r & 1), k = 32 * slab + 16 * ((at >> 9) & 1) + 4 * (lane & 3) + (r >> 1);
      *(u32*)(chunk + at) = value(row, k) | value(row, k + 2) << 16;
    }
    return;
  }
  auto code = [&](int r, int k) -> u32 {
    const u8* block = block_of(r, k);
    return block ? source_code(block, WIDE ? k : k & 31) : 0;
  };
  auto head_byte = [&](int i) -> u32 {
    const u8* block;
    if (K_QUANT) return (block = block_of(i >> 4, 0)) ? block[i & 15] : 0;
    if (TYPE == Q6_K && i < 256) return (block = block_of(i >> 4, 0)) ? block[192 + (i & 15)] : 0;
    if (TYPE == Q6_K) return (block = block_of((i - 256) >> 1, 0)) ? block[208 + (i & 1)] : 0;
    return (block = block_of((i & 255) >> 4, 32 * ((i & 15) >> 1))) ? block[2 * (i >> 8) + (i & 1)] : 0;
  };

  for (int at = 4 * threadIdx.x; at < CHUNK; at += 4 * blockDim.x) {
    u32 word = 0;
    if (at < HEAD) {
      for (int b = 0; b < 4; b++) word |= head_byte(at + b) << (8 * b);
    } else {
      const bool high = at < HEAD + HIGH;
      const int offset = at - HEAD - (high ? 0 : HIGH), group = offset >> 9;
      const int lane = (offset & 511) >> 4, r = (offset & 15) >> 2;
      const int row = (lane >> 2) + 8 * (r & 1), k = 4 * (lane & 3) + 16 * (r >> 1);
      for (int b = 0; b < 4; b++) {
        u32 byte = 0;
        if (high && TYPE == Q6_K) {
          for (int s = 0; s < 4; s++) byte |= (code(row, 32 * (4 * group + s) + k + b) >> 4) << (2 * s);
        } else if (high) {
          for (int s = 0; s < 8; s++) byte |= (code(row, 32 * s + k + b) >> 4) << s;
        } else if (TYPE == Q8_0) {
          byte = code(row, 32 * group + k + b);
        } else {
          byte = (code(row, 64 * group + k + b) & 15) | ((code(row, 64 * group + 32 + k + b) & 15) << 4);
        }
        word |= byte << (8 * b);
      }
    }
    *(u32*)(chunk + at) = word;
  }
}
