// GGUF blocks to the packed layout of include/layout.cuh, once at load.
//
// Grid (superblocks, row tiles), 128 threads; a block writes one chunk, a thread whole words of it. `source` are
// `rows` rows of `row_bytes` bytes, `columns` weights each; bytes need no alignment. A memory-speed pass.
// F16_TILES are made from F16 or BF16, TQ2_0 from TQ2_0 or TQ1_0, as FROM says.
#include "layout.cuh"

#ifndef FROM
#define FROM TYPE
#endif

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
                            : TYPE == MXFP4 ? 17
                            : TYPE == IQ2_XXS ? 66
                            : TYPE == IQ2_XS ? 74
                            : TYPE == IQ2_S ? 82
                            : TYPE == IQ3_XXS ? 98
                            : TYPE == IQ3_S ? 110
                            : TYPE == IQ1_S ? 50
                            : TYPE == IQ1_M ? 56
                            : FROM == TQ1_0 ? 54
                                            : 66;
constexpr bool WIDE = K_QUANT || TWO_BITS || BOOK || TYPE == Q6_K || TYPE == IQ4_XS;  // 256 weights a block, else 32
// Where a wide block has its f16 d.
constexpr int D = TYPE == Q2_K ? 80 : TYPE == Q3_K ? 108 : TYPE == Q6_K ? 208 : TYPE == TQ2_0 ? BLOCK_BYTES - 2 : 0;

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
  if (FROM == TQ1_0) {  // five digits of base 3 a byte, as a fraction of 256; the last four bytes have four
    const int digit = k < 160 ? k >> 5 : k < 240 ? (k - 160) >> 4 : (k - 240) >> 2;
    const u32 power = digit == 4 ? 81 : 0x1b090301 >> 8 * digit & 255;  // of 3; an array would lie in local memory
    const int at = k < 160 ? k & 31 : k < 240 ? 32 + ((k - 160) & 15) : 48 + ((k - 240) & 3);
    return ((block[at] * power & 255) * 3) >> 8;
  }
  if (TYPE == TQ2_0) return (block[32 * (k >> 7) + (k & 31)] >> (2 * ((k >> 5) & 3))) & 3;
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

// Of a block with a codebook: the index of weights 8 `q` .. (IQ3: 4 `q` ..); IQ1's bit 11 is that of a negative delta.
DEVICE u32 source_index(const u8* block, int q) {
  if (TYPE == IQ2_XXS) return block[2 + 8 * (q >> 2) + (q & 3)];
  if (TYPE == IQ2_XS) return (block[2 + 2 * q] | block[3 + 2 * q] << 8) & 511;
  if (TYPE == IQ2_S) return block[2 + q] | ((block[66 + (q >> 2)] >> (2 * (q & 3))) & 3) << 8;
  if (TYPE == IQ3_XXS) return block[2 + q];
  if (TYPE == IQ3_S) return block[2 + q] | ((block[66 + (q >> 3)] >> (q & 7)) & 1) << 8;
  if (TYPE == IQ1_M) return block[q] | ((block[32 + (q >> 1)] >> (4 * (q & 1))) & 15) << 8;
  const u32 high = block[34 + 2 * (q >> 2)] | block[35 + 2 * (q >> 2)] << 8;
  return block[2 + q] | ((high >> (3 * (q & 3))) & 7) << 8 | (high >> 15) << 11;
}

// Whether weight k is negated. IQ2_S and IQ3_S have all signs, the others seven of eight: the number of minus signs is even.
DEVICE u32 source_sign(const u8* block, int k) {
  if (TYPE == IQ2_S || TYPE == IQ3_S) return (block[(TYPE == IQ2_S ? 34 : 74) + (k >> 3)] >> (k & 7)) & 1;
  u32 signs;
  if (TYPE == IQ2_XS) {
    signs = block[3 + 2 * (k >> 3)] >> 1;
  } else {
    const u8* word = block + (TYPE == IQ2_XXS ? 6 + 8 * (k >> 5) : 66 + 4 * (k >> 5));
    signs = (word[0] | word[1] << 8 | word[2] << 16 | (u32)word[3] << 24) >> (7 * ((k >> 3) & 3)) & 127;
  }
  u32 odd = signs ^ signs >> 4;
  odd ^= odd >> 2;
  odd ^= odd >> 1;
  return ((signs | (odd & 1) << 7) >> (k & 7)) & 1;
}

// Scale `i` of a block with a codebook, four bits.
DEVICE u32 source_nibble(const u8* block, int i) {
  if (TYPE == IQ2_XXS) return block[9 + 8 * i] >> 4;
  if (TYPE == IQ3_XXS) return block[69 + 4 * i] >> 4;
  if (TYPE == IQ1_S) return (block[35 + 2 * i] >> 4) & 7;
  if (TYPE == IQ1_M) return ((block[48 + 2 * (i >> 2)] | block[49 + 2 * (i >> 2)] << 8) >> (3 * (i & 3))) & 7;
  return (block[(TYPE == IQ2_XS ? 66 : TYPE == IQ2_S ? 74 : 106) + (i >> 1)] >> (4 * (i & 1))) & 15;
}

// Byte `i` of a wide block's f16 d, which IQ1_M has in the high nibbles of four words.
DEVICE u32 source_d(const u8* block, int i) {
  if (TYPE == IQ1_M) return block[49 + 4 * i] >> 4 | block[51 + 4 * i] >> 4 << 4;
  return block[D + i];
}

// Byte `i` of a wide block's scales.
DEVICE u32 source_scale(const u8* block, int i) {
  if (BOOK) return source_nibble(block, 2 * i) | source_nibble(block, 2 * i + 1) << 4;
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
      constexpr int each = ROW_HEAD ? ROW_HEAD : 1, scales = 16 * ROW_HEAD, behind = TYPE == Q2_K ? 4 : 2;
      if (i < scales) return (block = block_of(i / each, 0)) ? source_scale(block, i % each) : 0;
      return (block = block_of((i - scales) / behind, 0)) ? source_d(block, (i - scales) % behind) : 0;
    }
    if (TYPE == MXFP4) return (block = block_of(i >> 3, 32 * (i & 7))) ? block[0] : 0;
    return (block = block_of((i & 255) >> 4, 32 * ((i & 15) >> 1))) ? block[2 * (i >> 8) + (i & 1)] : 0;
  };

  // The word at `offset` behind the head, with a codebook; lane and r are those of the index' first weight or of the signs.
  auto book_word = [&](int offset) -> u32 {
    auto at = [&](int lane, int r, int slab, int b, bool sign) -> u32 {
      const int k = 32 * slab + 4 * (lane & 3) + 16 * (r >> 1) + b;
      const u8* block = block_of((lane >> 2) + 8 * (r & 1), k);
      return !block ? 0 : sign ? source_sign(block, k) : source_index(block, k / (4 * SHARE));
    };
    u32 word = 0;
    if (offset < SIGNS) {
      for (int i = 0; i < 32; i++)
        word |= at(offset >> 4, (offset >> 2) & 3, 4 * (i >> 4) + (i & 3), (i >> 2) & 3, true) << i;
    } else if (offset < HIGH) {
      constexpr int bits = ABOVE ? ABOVE : 1, slabs = 8 / bits;
      const int i = (offset - SIGNS) >> 2, first = i / INDEX_LANES * slabs;
      for (int j = 0; j < 4 * slabs; j++)
        word |= (at(i % INDEX_LANES * SHARE, j & 3, first + (j >> 2), 0, false) >> 8) << (bits * j);
    } else {
      const int i = (offset - HIGH) >> 2, lane = (i >> 1) % INDEX_LANES * SHARE;
      for (int r = 0; r < 4; r++) word |= (at(lane, r, 2 * ((i >> 1) / INDEX_LANES) + (i & 1), 0, false) & 255) << (8 * r);
    }
    return word;
  };

  for (int at = 4 * threadIdx.x; at < CHUNK; at += 4 * blockDim.x) {
    u32 word = 0;
    if (at < HEAD) {
      for (int b = 0; b < 4; b++) word |= head_byte(at + b) << (8 * b);
    } else if (BOOK) {
      word = book_word(at - HEAD);
    } else {
      const bool high = at < HEAD + HIGH;
      const int offset = at - HEAD - (high ? 0 : HIGH), group = offset >> 9;
      const int lane = (offset & 511) >> 4, r = (offset & 15) >> 2;
      const int row = (lane >> 2) + 8 * (r & 1), k = 4 * (lane & 3) + 16 * (r >> 1);
      for (int b = 0; b < 4; b++) {
        u32 byte = 0;
        if (high && TYPE == Q3_K) {
          for (int s = 0; s < 8; s++) byte |= (code(row, 32 * s + k + b) >> 2) << s;
        } else if (high) {
          for (int s = 0; s < 8; s++) byte |= (code(row, 32 * s + k + b) >> 4) << s;
        } else if (TYPE == Q8_0) {
          byte = code(row, 32 * group + k + b);
        } else if (TYPE == Q6_K) {
          const int piece = group % 3, column = 128 * (group / 3) + k + b;
          const u32 own = code(row, column + 32 * piece) ^ ZERO, shared = code(row, column + 96) ^ ZERO;
          byte = own << 2 | (shared >> (4 - 2 * piece) & 3);
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
