// The packed layout of a weight matrix; TYPE is ggml's number of the block format.
//
// A chunk is 16 rows x 256 columns, the bytes of the GGUF blocks in another order: HEAD bytes of scales, HIGH
// bytes of bits above the fourth, QUANT bytes of quants. Chunks lie [row tile][superblock]; rows and columns
// beyond the matrix are zero bytes. Quants are in the order of the A operand of mma.m16n8k32: lane 4g+t, word r
// holds row g + 8 (r & 1), columns 4t..4t+3 + 16 (r >> 1) of a slab of 32, 16 bytes a lane.
//   QUANT: 512 bytes for slabs 2i (low nibbles) and 2i+1 (high nibbles), i = 0..3; Q8_0: 512 bytes a slab.
//   HIGH:  Q5_*: 512 bytes, bit j of a byte belongs to slab j. Q6_K: twice 512 bytes, bits 2s, 2s+1 to slab 4i+s.
//   F16_TILES (F16 and BF16): only QUANT, twice 512 bytes a slab: halves of 16 columns as the A operand of mma.m16n8k16 with
//   columns in the order 4t, 4t+2 | 4t+1, 4t+3: word 2j + i holds row g + 8i, columns 4t+j and 4t+j+2.
//   HEAD:  Q4_K, Q5_K: the blocks' first 16 bytes (d, dmin, scales), row by row. Q6_K: 16 scales a row, then 16 d.
//          32-wide formats: 8 f16 d a row; Q4_1, Q5_1: then 8 f16 m a row.
#pragma once
#include "ptx.cuh"

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8, Q4_K = 12, Q5_K = 13, Q6_K = 14, BF16 = 30,
       F16_TILES = 1001 };

#if TYPE != 0 && TYPE != 1 && TYPE != 30
constexpr bool K_QUANT = TYPE == Q4_K || TYPE == Q5_K;
constexpr bool FIVE_BITS = TYPE == Q5_0 || TYPE == Q5_1 || TYPE == Q5_K;
constexpr bool HAS_OFFSETS = TYPE == Q4_1 || TYPE == Q5_1;
constexpr int HEAD = TYPE == F16_TILES ? 0 : TYPE == Q6_K ? 288 : HAS_OFFSETS ? 512 : 256;
constexpr int HIGH = TYPE == Q6_K ? 1024 : FIVE_BITS ? 512 : 0;
constexpr int QUANT = TYPE == F16_TILES ? 8192 : TYPE == Q8_0 ? 4096 : 2048;
constexpr int CHUNK = HEAD + HIGH + QUANT;

// Codes are stored unsigned; a weight is scale * (code - ZERO) (+ or - an offset). Q8_0's are signed bytes.
constexpr int ZERO = TYPE == Q4_0 ? 8 : TYPE == Q5_0 ? 16 : TYPE == Q6_K ? 32 : 0;

// The six-bit scales of a K-quant header: four bytes for slabs 4 `half` .. 4 `half` + 3.
DEVICE u32 k_scales(const uint4& head, int half) {
  return half == 0 ? head.y & 0x3f3f3f3fu : (head.w & 0x0f0f0f0fu) | ((head.y >> 2) & 0x30303030u);
}

DEVICE u32 k_mins(const uint4& head, int half) {
  return half == 0 ? head.z & 0x3f3f3f3fu : ((head.w >> 4) & 0x0f0f0f0fu) | ((head.z >> 2) & 0x30303030u);
}

// One code of a chunk: row 0..15, column 0..255.
DEVICE int code_at(const u8* chunk, int row, int column) {
  const int slab = column >> 5, k = column & 31;
  const int at = 16 * (4 * (row & 7) + ((k & 15) >> 2)) + 4 * ((row >> 3) + 2 * (k >> 4)) + (k & 3);
  if (TYPE == Q8_0) return (signed char)chunk[HEAD + 512 * slab + at];
  int code = (chunk[HEAD + HIGH + 512 * (slab >> 1) + at] >> (4 * (slab & 1))) & 15;
  if (FIVE_BITS) code |= ((chunk[HEAD + at] >> slab) & 1) << 4;
  if (TYPE == Q6_K) code |= ((chunk[HEAD + 512 * (slab >> 2) + at] >> (2 * (slab & 3))) & 3) << 4;
  return code - ZERO;
}

// One weight of a chunk, as exact as float32 allows.
DEVICE float weight_at(const u8* chunk, int row, int column) {
  const int slab = column >> 5;
  if (TYPE == F16_TILES) {
    const int k = column & 31, lane = 4 * (row & 7) + ((k & 15) >> 2);
    return f16_to_f32(((const u16*)chunk)[((2 * slab + (k >> 4)) * 32 + lane) * 8 + 2 * ((row >> 3) + 2 * (k & 1)) + ((k & 3) >> 1)]);
  }
  const float code = (float)code_at(chunk, row, column);
  if (K_QUANT) {
    const uint4 head = ((const uint4*)chunk)[row];
    const float scale = half2_low(head.x) * (float)byte_at(k_scales(head, slab >> 2), slab & 3);
    return scale * code - half2_high(head.x) * (float)byte_at(k_mins(head, slab >> 2), slab & 3);
  }
  if (TYPE == Q6_K) {
    const float d = f16_to_f32(((const u16*)(chunk + 256))[row]);
    return d * (float)(signed char)chunk[16 * row + (column >> 4)] * code;
  }
  const float d = f16_to_f32(((const u16*)chunk)[8 * row + slab]);
  return HAS_OFFSETS ? d * code + f16_to_f32(((const u16*)(chunk + 256))[8 * row + slab]) : d * code;
}
#endif
