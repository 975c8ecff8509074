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
                            : TYPE == Q2_K ? 84
                            : TYPE == Q3_K ? 110
                            : TYPE == Q4_K ? 144
                            : TYPE == Q5_K ? 176
                            : TYPE == Q6_K ? 210
                            : TYPE == IQ4_NL ? 18
                            : TYPE == IQ4_XS ? 136
                                             : 17;
constexpr bool WIDE = K_QUANT || TWO_BITS || TYPE == Q6_K || TYPE == IQ4_XS;  // 256 weights a block, else 32
constexpr int D = TYPE == Q2_K ? 80 : TYPE == Q3_K ? 108 : TYPE == Q6_K ? 208 : 0;  // where a wide block has its f16 d

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
  if (TWO_BITS) {
    const u32 code = (block[(TYPE == Q2_K ? 16 : 32) + 32 * (k >> 7) + (k & 31)] >> (2 * ((k >> 5) & 3))) & 3;
    return TYPE == Q3_K ? code | ((block[k & 31] >> (k >> 5)) & 1) << 2 : code;
  }
  if (TYPE == IQ4_XS) return (block[8 + 16 * (k >> 5) + (k & 15)] >> (k & 16 ? 4 : 0)) & 15;
  constexpr int quants = BLOCK_BYTES - 16;
  u32 code = (block[quants + (k & 15)] >> (4 * (k >> 4))) & 15;
  if (FIVE_BITS) code |= ((block[quants - 4 + (k >> 3)] >> (k & 7)) & 1) << 4;
  return code;
}

// Scale `i` of a wide block as a byte.
DEVICE u32 source_scale(const u8* block, int i) {
  if (TYPE == Q2_K) return block[i];
  if (TYPE == Q3_K) {
    const u32 low = block[96 + (i & 7)] >> (4 * (i >> 3)), high = block[104 + (i & 3)] >> (2 * (i >> 2));
    return ((low & 15 | (high & 3) << 4) - 32) & 255;
  }
  if (TYPE == IQ4_XS) {
    const u32 low = block[4 + (i >> 1)] >> (4 * (i & 1)), high = (block[2] | block[3] << 8) >> (2 * i);
    return ((low & 15 | (high & 3) << 4) - 32) & 255;
  }
  return block[192 + i];
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
    if constexpr (WIDE) {
      constexpr int scales = 16 * ROW_HEAD, behind = TYPE == Q2_K ? 4 : 2;
      if (i < scales) return (block = block_of(i / ROW_HEAD, 0)) ? source_scale(block, i % ROW_HEAD) : 0;
      return (block = block_of((i - scales) / behind, 0)) ? block[D + (i - scales) % behind] : 0;
    }
    if (TYPE == MXFP4) return (block = block_of(i >> 3, 32 * (i & 7))) ? block[0] : 0;
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
        if (high && TYPE == Q3_K) {
          for (int s = 0; s < 8; s++) byte |= (code(row, 32 * s + k + b) >> 2) << s;
        } else if (high && TYPE == Q6_K) {
          for (int s = 0; s < 4; s++) byte |= (code(row, 32 * (4 * group + s) + k + b) >> 4) << (2 * s);
        } else if (high) {
          for (int s = 0; s < 8; s++) byte |= (code(row, 32 * s + k + b) >> 4) << s;
        } else if (TYPE == Q8_0) {
          byte = code(row, 32 * group + k + b);
        } else if (TWO_BITS) {
          for (int s = 0; s < 4; s++) byte |= (code(row, 32 * (4 * group + s) + k + b) & 3) << (2 * s);
        } else if (TABLE) {
          const int column = 64 * group + 32 * (b >> 1) + k + 2 * (b & 1);
          byte = code(row, column) | code(row, column + 1) << 4;
        } else {
          byte = (code(row, 64 * group + k + b) & 15) | ((code(row, 64 * group + 32 + k + b) & 15) << 4);
        }
        word |= byte << (8 * b);
      }
    }
    *(u32*)(chunk + at) = word;
  }
}
