// Activations as the matrix products read them, written by the kernel that produces them.
//
// A block holds 256 columns of 8 rows m of the batch (which are the columns of the product); blocks lie
// [superblock][group of 8 rows], `groups` of them a superblock. Lane 4g+t of a product's warp holds row g.
// INT8 form, 2,656 bytes, x = E f q: 4 x 512 bytes of q, a lane's 16 bytes being {slab 2i: k 4t.., 16+4t..; slab 2i+1:
// likewise}; 256 bytes of the slabs' sums of f q / 64 as f16 high + low parts, lane words {high, low} of slabs 2t, 2t+1;
// 8 floats E; 64 bytes f (1..64) [row][slab]; the same as 64 floats, four of them [i][t] = (slab 2i, rows 2t, 2t+1; slab 2i+1,
// rows 2t, 2t+1).
// F16 form, 4,128 bytes, x = E h: 8 x 512 bytes of h, a lane's 16 bytes being k (4t, 4t+2), (4t+1, 4t+3), 16 + the
// same, of one slab; 8 floats E, powers of two.
#pragma once
#include "ptx.cuh"

constexpr int INT8_BLOCK = 2656, INT8_SUMS = 2048, INT8_E = 2304, INT8_FACTORS = 2336, INT8_F = 2400;
// Of the INT8 form of a single batch row, the pieces of 16 bytes that a product needs: those of q from 0 on, of the sums, E and f.
constexpr int ROW_SUMS = 256, ROW_E = 288, ROW_F = 304, ROW_BLOCK = 368;
constexpr int F16_BLOCK = 4128, F16_E = 4096;

// Where a kernel puts its result; null for a form that nobody reads. Row m of `f32` has `columns` floats. `early` says that
// the next product has many weights to fetch, so that it should start early rather than leave this kernel the memory.
struct Activation {
  float* f32;
  u8* int8;
  u8* f16;
  int columns, groups, early;
};

DEVICE void wait_for_previous(const Activation& out) {
  if (out.early) let_next_start();
  wait_for_previous();
  if (!out.early) let_next_start();
}

// The same in two steps, so that this kernel's own reads are on their way before the next product's.
DEVICE void wait_to_read(const Activation& out) {
  if (out.early) let_next_start();
  wait_for_previous();
}

DEVICE void reads_are_out(const Activation& out) {
  if (!out.early) let_next_start();
}

DEVICE float silu(float x) { return __fdividef(x, 1 + __expf(-x)); }

DEVICE void write_int8(u8* block, int g, const float (&v)[8]) {
  const int lane = threadIdx.x & 31, slab = lane >> 2;
  float high = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) high = fmaxf(high, fabsf(v[i]));
  high = quad_max(high);  // of a slab
  float highest = high;
#pragma unroll
  for (int o = 4; o < 32; o <<= 1) highest = fmaxf(highest, __shfl_xor_sync(~0u, highest, o));
  const float unit = highest * (1.0f / (127 * 64)), E = unit > 0 ? unit : 1.0f;
  const float f = fminf(fmaxf(ceilf(high / (127 * E)), 1.0f), 64.0f), inverse = 1.0f / (E * f);
  int sum = 0;
  u32 word[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const int q = max(-127, min(127, __float2int_rn(v[i] * inverse)));
    sum += q;
    word[i >> 2] |= (u32)(q & 255) << (8 * (i & 3));
  }
  sum += __shfl_xor_sync(~0u, sum, 1);
  sum += __shfl_xor_sync(~0u, sum, 2);
  const int k = 8 * (lane & 3);
  u8* to = block + 512 * (slab >> 1) + 16 * (4 * g + ((k & 15) >> 2)) + 8 * (slab & 1) + 4 * (k >> 4);
  *(u32*)to = word[0];
  *(u32*)(to + 16) = word[1];
  if ((lane & 3) == 0) {
    const float s = (float)sum * f * (1.0f / 64);
    const u16 upper = f32_to_f16(s), lower = f32_to_f16(s - f16_to_f32(upper));
    u16* sums = (u16*)(block + INT8_SUMS + 8 * (4 * g + (slab >> 1))) + (slab & 1);
    sums[0] = upper;
    sums[2] = lower;
    ((float*)(block + INT8_F))[16 * (slab >> 1) + 4 * (g >> 1) + 2 * (slab & 1) + (g & 1)] = f;
    block[INT8_FACTORS + 8 * g + slab] = (u8)(int)f;
  }
  if (lane == 0) ((float*)(block + INT8_E))[g] = E;
}

// The power of two at or below the largest magnitude that a warp holds, and its inverse; NaN and infinity stay what they are
// through it.
DEVICE void f16_scale(const float (&v)[8], float& E, float& inverse) {
  float high = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) high = fmaxf(high, fabsf(v[i]));
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) high = fmaxf(high, __shfl_xor_sync(~0u, high, o));
  const u32 exponent = min(max(__float_as_uint(high) >> 23, 32u), 222u);
  E = __uint_as_float(exponent << 23), inverse = __uint_as_float((254 - exponent) << 23);
}

DEVICE void write_f16(u8* block, int g, const float (&v)[8]) {
  const int lane = threadIdx.x & 31, slab = lane >> 2;
  float E, inverse;
  f16_scale(v, E, inverse);
  const int k = 8 * (lane & 3);
  u8* to = block + 512 * slab + 16 * (4 * g + ((k & 15) >> 2)) + 8 * (k >> 4);
#pragma unroll
  for (int i = 0; i < 2; i++) {
    uint2 words;
    words.x = half2_of(v[4 * i] * inverse, v[4 * i + 2] * inverse);
    words.y = half2_of(v[4 * i + 1] * inverse, v[4 * i + 3] * inverse);
    *(uint2*)(to + 16 * i) = words;
  }
  if (lane == 0) ((float*)(block + F16_E))[g] = E;
}

// A whole warp writes 256 columns of row m: lane l holds columns 8 l .. 8 l + 7 of `superblock`, zeros
// beyond the last.
DEVICE void write_activation(const Activation& out, int m, int superblock, const float (&v)[8]) {
  const int column = 256 * superblock + 8 * (threadIdx.x & 31);
  if (out.f32) {
    float* to = out.f32 + (size_t)m * out.columns + column;
#pragma unroll
    for (int i = 0; i < 8; i += 4)
      if (column + i < out.columns) *(float4*)(to + i) = make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
  }
  const size_t block = (size_t)superblock * out.groups + (m >> 3);
  if (out.int8) write_int8(out.int8 + block * INT8_BLOCK, m & 7, v);
  if (out.f16) write_f16(out.f16 + block * F16_BLOCK, m & 7, v);
}

// The same for many rows, whose products read f16 alone: lane 4s + t holds columns 32s + 4t .. + 3 and 32s + 16 + 4t .. + 3, so that
// what it writes is one piece.
DEVICE int piece_column(int superblock) { return 256 * superblock + 8 * (threadIdx.x & 28) + 4 * (threadIdx.x & 3); }

DEVICE void write_pieces(const Activation& out, int m, int superblock, const float (&v)[8]) {
  const int lane = threadIdx.x & 31, column = piece_column(superblock);
  if (out.f32) {
    float* to = out.f32 + (size_t)m * out.columns + column;
    if (column < out.columns) *(float4*)to = make_float4(v[0], v[1], v[2], v[3]);
    if (column + 16 < out.columns) *(float4*)(to + 16) = make_float4(v[4], v[5], v[6], v[7]);
  }
  if (!out.f16) return;
  u8* block = out.f16 + ((size_t)superblock * out.groups + (m >> 3)) * F16_BLOCK;
  float E, inverse;
  f16_scale(v, E, inverse);
  const uint4 piece = make_uint4(half2_of(v[0] * inverse, v[2] * inverse), half2_of(v[1] * inverse, v[3] * inverse),
                                 half2_of(v[4] * inverse, v[6] * inverse), half2_of(v[5] * inverse, v[7] * inverse));
  *(uint4*)(block + 512 * (lane >> 2) + 16 * (4 * (m & 7) + (lane & 3))) = piece;
  if (lane == 0) ((float*)(block + F16_E))[m & 7] = E;
}
