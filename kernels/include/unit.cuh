// One step of a product: 256 columns of TILES row tiles of packed weights a warp, times 8 NT batch rows.
//
// TYPE, FORM (8: int8 activations in two levels, 16: f16), NT and TILES are the variant's. Chunks and activation blocks may lie
// in shared or in global memory.
#pragma once
#include "activation.cuh"
#include "fragment.cuh"

constexpr int ACTIVATION = FORM == 8 ? INT8_BLOCK : F16_BLOCK;
constexpr bool HAS_MINS = K_QUANT || HAS_OFFSETS;
constexpr float WEIGHT_SCALE = TYPE == F16_TILES ? 1 : 64;  // keeps small f16 weights out of the subnormals

struct Sums {
  float at[TILES][NT][4];
  DEVICE_METHOD void clear() {
#pragma unroll
    for (int w = 0; w < TILES; w++)
#pragma unroll
      for (int n = 0; n < NT; n++)
#pragma unroll
        for (int k = 0; k < 4; k++) at[w][n][k] = 0;
  }
};

struct Lane {
  int g, t, lane;
  const u8* weights;      // this warp's chunks of the stage
  const u8* activations;  // the stage's activation blocks

  DEVICE_METHOD const u8* chunk(int w) const { return weights + w * CHUNK; }
  DEVICE_METHOD uint4 head(int w, int r) const { return ((const uint4*)chunk(w))[g + 8 * r]; }
  DEVICE_METHOD uint4 offsets(int w, int r) const { return ((const uint4*)(chunk(w) + 256))[g + 8 * r]; }
  DEVICE_METHOD float d6(int w, int r) const { return f16_to_f32(((const u16*)(chunk(w) + 256))[g + 8 * r]); }
  DEVICE_METHOD uint4 low(int w, int i) const { return ((const uint4*)(chunk(w) + HEAD + HIGH + 512 * i))[lane]; }
  DEVICE_METHOD uint4 high(int w, int i) const { return ((const uint4*)(chunk(w) + HEAD + 512 * i))[lane]; }
  DEVICE_METHOD const u8* block(int n) const { return activations + n * ACTIVATION; }
  DEVICE_METHOD uint4 x(int n, int i) const { return ((const uint4*)(block(n) + 512 * i))[lane]; }
};

// The low words of a slab pair and the bits above them, of one row tile.
struct Quants {
  uint4 low[TYPE == Q8_0 ? 2 : 1], high;
  DEVICE_METHOD Quants(const Lane& l, int w, int i) {
    if (TYPE == Q8_0) {
      low[0] = l.low(w, 2 * i);
      low[TYPE == Q8_0] = l.low(w, 2 * i + 1);
    } else {
      low[0] = l.low(w, i);
    }
    high = make_uint4(0, 0, 0, 0);
    if (HIGH) high = l.high(w, TYPE == Q6_K ? i >> 1 : 0);
  }
  DEVICE_METHOD u32 low_word(int s, int r) const { return word_of(low[TYPE == Q8_0 ? s : 0], r); }
};

#if FORM == 8
// One unit with int8 activations.
DEVICE void unit(Sums& acc, const Lane& l) {
  int whole[TILES][NT][4];  // K-quants: exact integer sums of scale * f * code * q
  Sums sums;
  uint4 head[TILES][2];
  sums.clear();
#pragma unroll
  for (int w = 0; w < TILES; w++) {
    head[w][0] = l.head(w, 0), head[w][1] = l.head(w, 1);
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int k = 0; k < 4; k++) whole[w][n][k] = 0;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
    uint4 x[NT];
    u32 f[NT];
#pragma unroll
    for (int n = 0; n < NT; n++) {
      x[n] = l.x(n, i);
      f[n] = ((const u32*)(l.block(n) + INT8_F + 16 * i))[l.t];
    }
#pragma unroll
    for (int w = 0; w < TILES; w++) {
      const Quants quants(l, w, i);
#pragma unroll
      for (int s = 0; s < 2; s++) {
        const int slab = 2 * i + s;
        u32 a[4];
#pragma unroll
        for (int r = 0; r < 4; r++) a[r] = signed_codes(quants.low_word(s, r), word_of(quants.high, r), s, slab);
        int scale[2];
        float d[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
          if (K_QUANT) scale[r] = byte_at(k_scales(head[w][r], slab >> 2), slab & 3);
          if (!K_QUANT && TYPE != Q6_K) {
            const u32 pair = word_of(head[w][r], i);
            d[r] = s ? half2_high(pair) : half2_low(pair);
          }
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
          const u32 x0 = s ? x[n].z : x[n].x, x1 = s ? x[n].w : x[n].y;
          const int f0 = byte_at(f[n], 2 * s), f1 = byte_at(f[n], 2 * s + 1);
          int c[4];
          if constexpr (TYPE == Q6_K) {
            const u32 s0 = word_of(head[w][0], i), s1 = word_of(head[w][1], i);
            int e[4];
            mma_s8_k16(c, a[0], a[1], x0);
            mma_s8_k16(e, a[2], a[3], x1);
            const int p0 = s ? signed_byte_at<2>(s0) : signed_byte_at<0>(s0);
            const int p1 = s ? signed_byte_at<3>(s0) : signed_byte_at<1>(s0);
            const int q0 = s ? signed_byte_at<2>(s1) : signed_byte_at<0>(s1);
            const int q1 = s ? signed_byte_at<3>(s1) : signed_byte_at<1>(s1);
            sums.at[w][n][0] += (float)(f0 * (p0 * c[0] + p1 * e[0]));
            sums.at[w][n][1] += (float)(f1 * (p0 * c[1] + p1 * e[1]));
            sums.at[w][n][2] += (float)(f0 * (q0 * c[2] + q1 * e[2]));
            sums.at[w][n][3] += (float)(f1 * (q0 * c[3] + q1 * e[3]));
          } else {
            mma_s8_k32(c, a, x0, x1);
            if constexpr (K_QUANT) {
              whole[w][n][0] += scale[0] * f0 * c[0];
              whole[w][n][1] += scale[0] * f1 * c[1];
              whole[w][n][2] += scale[1] * f0 * c[2];
              whole[w][n][3] += scale[1] * f1 * c[3];
            } else {
              sums.at[w][n][0] += d[0] * (float)(f0 * c[0]);
              sums.at[w][n][1] += d[0] * (float)(f1 * c[1]);
              sums.at[w][n][2] += d[1] * (float)(f0 * c[2]);
              sums.at[w][n][3] += d[1] * (float)(f1 * c[3]);
            }
          }
        }
      }
    }
    // 8 slabs of 15 * 127 * 32 * 63 * 64 stay below 2^31, of Q5_K's 31 only 4.
    if (K_QUANT && (i == 3 || (i == 1 && TYPE == Q5_K))) {
#pragma unroll
      for (int w = 0; w < TILES; w++)
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
          for (int k = 0; k < 4; k++) {
            sums.at[w][n][k] += (float)whole[w][n][k];
            whole[w][n][k] = 0;
          }
    }
  }
#pragma unroll
  for (int w = 0; w < TILES; w++) {
    // Lane t has the minima of slabs 2t and 2t+1: one f16 product of k = slab does all eight.
    u32 mins[4] = {0, 0, 0, 0};
    float d[2], dmin[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      if (TYPE == Q6_K) {
        d[r] = l.d6(w, r);
      } else if (K_QUANT) {
        d[r] = half2_low(head[w][r].x);
        dmin[r] = -64 * half2_high(head[w][r].x);
        const u32 m = k_mins(head[w][r], l.t >> 1);
        const u32 pair = __byte_perm(m, 0x64646464u, (l.t & 1) ? 0x4342 : 0x4140);
        mins[r] = mins[r + 2] = half2_sub(pair, half2_twice(1024));
      } else {
        d[r] = 1 / CODE_SCALE;
        dmin[r] = 64;
        if (HAS_OFFSETS) mins[r] = mins[r + 2] = ((const u32*)(l.chunk(w) + 256 + 16 * (l.g + 8 * r)))[l.t];
      }
    }
#pragma unroll
    for (int n = 0; n < NT; n++) {
      const float2 e = ((const float2*)(l.block(n) + INT8_E))[l.t];
      float m[4] = {0, 0, 0, 0};
      if (HAS_MINS) {
        const uint2 b = ((const uint2*)(l.block(n) + INT8_SUMS))[l.lane];
        mma_f16(m, mins, b.x, b.y);
      }
#pragma unroll
      for (int k = 0; k < 4; k++) {
        const float v = d[k >> 1] * sums.at[w][n][k];
        acc.at[w][n][k] += (k & 1 ? e.y : e.x) * (HAS_MINS ? v + dmin[k >> 1] * m[k] : v);
      }
    }
  }
}
#else
// The heads of a row tile that `slab_weights` reads once a unit.
struct Heads {
  uint4 row[2];
  DEVICE_METHOD Heads(const Lane& l, int w) {
    if (TYPE != F16_TILES) row[0] = l.head(w, 0), row[1] = l.head(w, 1);
  }
};

// Slab 2i + s of row tile w as the A operands of two mma.m16n8k16, times WEIGHT_SCALE.
DEVICE void slab_weights(u32 (&a)[2][4], const Lane& l, const Heads& heads, int w, int i, int s) {
  const int slab = 2 * i + s;
  if constexpr (TYPE == F16_TILES) {
    const uint4 first = l.low(w, 2 * slab), second = l.low(w, 2 * slab + 1);
    a[0][0] = first.x, a[0][1] = first.y, a[0][2] = first.z, a[0][3] = first.w;
    a[1][0] = second.x, a[1][1] = second.y, a[1][2] = second.z, a[1][3] = second.w;
  } else {
    const Quants quants(l, w, i);
    u32 scale[2][2], offset[2];  // [k half][row], [row]
#pragma unroll
    for (int r = 0; r < 2; r++) {
      offset[r] = 0;
      if (K_QUANT) {
        const uint4& h = heads.row[r];
        const float sc = (float)byte_at(k_scales(h, slab >> 2), slab & 3), mn = (float)byte_at(k_mins(h, slab >> 2), slab & 3);
        scale[0][r] = scale[1][r] = half2_twice(WEIGHT_SCALE * half2_low(h.x) * sc);
        offset[r] = half2_twice(-WEIGHT_SCALE * half2_high(h.x) * mn);
      } else if (TYPE == Q6_K) {
        const u32 sc = word_of(heads.row[r], i);
        const float d = WEIGHT_SCALE * l.d6(w, r);
        scale[0][r] = half2_twice(d * (float)(s ? signed_byte_at<2>(sc) : signed_byte_at<0>(sc)));
        scale[1][r] = half2_twice(d * (float)(s ? signed_byte_at<3>(sc) : signed_byte_at<1>(sc)));
      } else {
        const u32 pair = word_of(heads.row[r], i);
        scale[0][r] = scale[1][r] = half2_twice(WEIGHT_SCALE * (s ? half2_high(pair) : half2_low(pair)));
        if (HAS_OFFSETS) {
          const u32 m = word_of(l.offsets(w, r), i);
          offset[r] = half2_twice(WEIGHT_SCALE * (s ? half2_high(m) : half2_low(m)));
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const uint2 code = f16_codes(codes(quants.low_word(s, r), word_of(quants.high, r), s, slab));
      a[r >> 1][r & 1] = half2_fma(code.x, scale[r >> 1][r & 1], offset[r & 1]);
      a[r >> 1][2 + (r & 1)] = half2_fma(code.y, scale[r >> 1][r & 1], offset[r & 1]);
    }
  }
}

// One unit with f16 activations.
DEVICE void unit(Sums& acc, const Lane& l) {
  Sums c;
  c.clear();
  const Heads first(l, 0), last(l, TILES - 1);
#pragma unroll
  for (int i = 0; i < 4; i++) {
#pragma unroll
    for (int s = 0; s < 2; s++) {
      u32 a[TILES][2][4];
#pragma unroll
      for (int w = 0; w < TILES; w++) slab_weights(a[w], l, w ? last : first, w, i, s);
#pragma unroll
      for (int n = 0; n < NT; n++) {
        const uint4 b = l.x(n, 2 * i + s);
#pragma unroll
        for (int w = 0; w < TILES; w++) {
          mma_f16(c.at[w][n], a[w][0], b.x, b.y);
          mma_f16(c.at[w][n], a[w][1], b.z, b.w);
        }
      }
    }
  }
#pragma unroll
  for (int n = 0; n < NT; n++) {
    const float2 e = ((const float2*)(l.block(n) + F16_E))[l.t];
    const float e0 = e.x / WEIGHT_SCALE, e1 = e.y / WEIGHT_SCALE;
#pragma unroll
    for (int w = 0; w < TILES; w++)
#pragma unroll
      for (int k = 0; k < 4; k++) acc.at[w][n][k] += (k & 1 ? e1 : e0) * c.at[w][n][k];
  }
}
#endif
