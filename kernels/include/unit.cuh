// One step of a product: 256 columns of TILES row tiles of packed weights a warp, times 8 NT batch rows.
//
// TYPE, FORM (8: int8 activations in two levels, 16: f16), NT and TILES are the variant's. Chunks and activation blocks may lie
// in shared or in global memory.
#include "activation.cuh"
#include "fragment.cuh"

#ifndef ONE
#define ONE 0
#endif
constexpr bool ONE_ROW = ONE && FORM == 8;  // whose activations are a block of a row, of which each warp has its own
// Of several batch rows, K-quants' scales of 16 rows times the factors f of 8 batch rows are a product of tensor cores, too, and f as
// floats is not read, where registers do for that.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ <= 800 || !defined(STREAM)
constexpr bool OUTER = false;
#else
constexpr bool OUTER = K_QUANT && FORM == 8 && !ONE;
#endif
constexpr int ACTIVATION = ONE_ROW ? ROW_BLOCK : FORM != 8 ? F16_BLOCK : OUTER ? INT8_F : INT8_BLOCK;
constexpr int STEP = ONE ? 2 : 1;  // of a lane's sums: where there is but one batch row, the second column is none
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
  DEVICE_METHOD uint4 head(int w, int r) const {
    if (ROW_HEAD == 16) return ((const uint4*)chunk(w))[g + 8 * r];
    if (ROW_HEAD == 4) return make_uint4(((const u32*)chunk(w))[g + 8 * r], 0, 0, 0);
    const uint2 half = ((const uint2*)chunk(w))[g + 8 * r];
    return make_uint4(half.x, half.y, 0, 0);
  }
  DEVICE_METHOD uint4 offsets(int w, int r) const { return ((const uint4*)(chunk(w) + 256))[g + 8 * r]; }
  DEVICE_METHOD float d(int w, int r) const { return D_SCALE * f16_to_f32(((const u16*)(chunk(w) + 16 * ROW_HEAD))[g + 8 * r]); }
  DEVICE_METHOD u32 d_dmin(int w, int r) const { return ((const u32*)(chunk(w) + 256))[g + 8 * r]; }
  DEVICE_METHOD uint4 low(int w, int i) const { return ((const uint4*)(chunk(w) + HEAD + HIGH + 512 * i))[lane]; }
  DEVICE_METHOD uint4 high(int w) const { return ((const uint4*)(chunk(w) + HEAD))[lane]; }
  DEVICE_METHOD const u8* block(int n) const { return activations + n * ACTIVATION; }
  DEVICE_METHOD uint4 h(int n, int slab) const { return ((const uint4*)(block(n) + 512 * slab))[lane]; }
  DEVICE_METHOD uint2 q(int n, int i, int s) const {
    return ONE_ROW ? ((const uint2*)(block(n) + 64 * i))[2 * t + s] : ((const uint2*)(block(n) + 512 * i))[2 * lane + s];
  }
  DEVICE_METHOD float2 f(int n, int i, int s) const {
    return ONE_ROW ? ((const float2*)(block(n) + ROW_F))[2 * i + s] : ((const float2*)(block(n) + INT8_F + 64 * i))[2 * t + s];
  }
  DEVICE_METHOD u32 factors(int n) const { return ((const u32*)(block(n) + INT8_FACTORS))[2 * g + (t & 1)]; }
  DEVICE_METHOD uint2 sums(int n) const {
    return ONE_ROW ? ((const uint2*)(block(n) + ROW_SUMS))[t] : ((const uint2*)(block(n) + INT8_SUMS))[lane];
  }
  DEVICE_METHOD float2 e(int n) const { return ONE_ROW ? *(const float2*)(block(n) + ROW_E) : ((const float2*)(block(n) + INT8_E))[t]; }
};

// The low words of a slab pair and the bits above them, of one row tile; of Q6_K the pieces of four slabs, which two pairs have in
// common. Of a codebook's formats: low words of indices (x and y are the slabs), signs, and the bits above.
struct Quants {
  static constexpr int PIECES = TYPE == Q6_K ? 3 : TYPE == Q8_0 ? 2 : 1;
  uint4 low[PIECES], high;
  u32 above;
  const u16* book;
  DEVICE_METHOD Quants(const Lane& l, int w, int i) {
    if (BOOK) {
      const uint2 indices = *(const uint2*)book_indices(l.chunk(w), l.lane, i);
      low[0] = make_uint4(indices.x, indices.y, 0, 0);
      if (SIGNS) high = *(const uint4*)book_signs(l.chunk(w), l.lane);
      if (ABOVE) above = *(const u32*)book_above(l.chunk(w), l.lane, i);
      book = book_of(l.t);
      return;
    }
#pragma unroll
    for (int p = 0; p < PIECES; p++) low[p] = l.low(w, PIECES * (TWO_BITS || TYPE == Q6_K ? i >> 1 : i) + p);
    high = make_uint4(0, 0, 0, 0);
    if (HIGH) high = l.high(w);
  }
  DEVICE_METHOD u32 low_word(int p, int r) const { return word_of(low[PIECES > 1 ? p : 0], r); }

  // Word r of slab `slab` = 2i + s as signed bytes times CODE_SCALE, and as `f16_codes` takes it.
  DEVICE_METHOD u32 signed_word(int s, int r, int slab) const {
    if (BOOK) return book_bytes(book, s ? low[0].y : low[0].x, above, word_of(high, r), slab, r);
    if (TYPE == Q6_K) return six_bits(low_word(0, r), low_word(1, r), low_word(2, r), slab & 3);
    return signed_codes(low_word(s, r), word_of(high, r), s, slab);
  }
  DEVICE_METHOD u32 f16_word(int s, int r, int slab) const {
    if (TYPE == Q6_K) return signed_word(s, r, slab);
    return BOOK ? signed_word(s, r, slab) ^ 0x80808080u : codes(low_word(s, r), word_of(high, r), s, slab);
  }
};

// The whole number that scales columns 16 `half` .. of `slab`; `head` is of the row.
DEVICE int scale_of(const uint4& head, int slab, int half) {
  if (TYPE == TQ2_0) return 1;
  if (K_QUANT) return byte_at(k_scales(head, slab >> 2), slab & 3);
  if (BOOK) {
    const int i = SIXTEEN ? 2 * slab + half : slab;
    const u32 nibbles = (word_of(head, i >> 3) >> (4 * (i & 1))) & (IQ1 ? 0x07070707u : 0x0f0f0f0fu);
    return byte_at(2 * nibbles + 0x01010101u, (i & 7) >> 1);
  }
  const int at = ROW_HEAD == 16 ? 2 * slab + half : slab, b = at & 3;
  const u32 word = word_of(head, at >> 2);
  if (TYPE == Q2_K) return byte_at(word & 0x0f0f0f0fu, b);
  return b == 0 ? signed_byte_at<0>(word) : b == 1 ? signed_byte_at<1>(word) : b == 2 ? signed_byte_at<2>(word) : signed_byte_at<3>(word);
}

// The number that scales `slab` of a 32-wide format.
DEVICE float factor_of(const uint4& head, int slab) {
  if (TYPE == MXFP4) return half_e8m0(byte_at(word_of(head, slab >> 2), slab & 3));
  const u32 pair = word_of(head, slab >> 1);
  return slab & 1 ? half2_high(pair) : half2_low(pair);
}

#if FORM == 8
// Slabs whose sums of scale * f * code * q are exact in 32 bits: 8 of 15 * 127 * 32 * 63 * 64 (Q4_K) and less, of Q5_K's 31 only 4,
// of 43 and 31 (IQ2) or 62 and 31 (IQ3_XXS), too, of IQ4_XS's 127 and 32 only 2. Of Q6_K's 32 and 128 a slab's sum of scale * code * q
// is exact as a float, which is cheaper. 1: each slab has a float scale.
constexpr int EXACT = TYPE == Q4_K || TWO_BITS || IQ1 || TYPE == IQ3_S ? 8
                      : TYPE == Q5_K || BOOK                           ? 4
                      : TYPE == IQ4_XS                                 ? 2
                      : TYPE == Q6_K                                   ? 0
                                                                       : 1;
constexpr bool HALVES = TYPE == Q3_K || TYPE == Q6_K || SIXTEEN;  // a scale for 16 columns, so a product for each half of a slab

// One unit with int8 activations.
DEVICE void unit(Sums& acc, const Lane& l) {
  int whole[TILES][NT][4];    // exact sums of scale * f * code * q
  int minimum[TILES][NT][4];  // Q2_K: of minimum * f * q
  Sums sums;
  uint4 head[TILES][2];
  u32 scales[TILES][2], factors[NT];
  const u32 first_half = l.t == 0 ? ~0u : 0, second_half = l.t == 1 ? ~0u : 0;
  sums.clear();
  if (OUTER)
#pragma unroll
    for (int n = 0; n < NT; n++) factors[n] = l.factors(n);
#pragma unroll
  for (int w = 0; w < TILES; w++) {
    head[w][0] = l.head(w, 0), head[w][1] = l.head(w, 1);
    if (OUTER) scales[w][0] = k_scales(head[w][0], l.t & 1), scales[w][1] = k_scales(head[w][1], l.t & 1);
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int k = 0; k < 4; k += STEP) whole[w][n][k] = minimum[w][n][k] = 0;
  }
#pragma unroll
  for (int i = 0; i < 4; i++) {
#pragma unroll
    for (int w = 0; w < TILES; w++) {
      const Quants quants(l, w, i);
#pragma unroll
      for (int s = 0; s < 2; s++) {
        const int slab = 2 * i + s;
        u32 a[4];
#pragma unroll
        for (int r = 0; r < 4; r++) a[r] = quants.signed_word(s, r, slab);
        int scale[2][2];  // [row][k half]
        float d[2];
        u32 m[4];
#pragma unroll
        for (int r = 0; r < 2; r++) {
          if (EXACT != 1) scale[r][0] = scale_of(head[w][r], slab, 0), scale[r][1] = scale_of(head[w][r], slab, 1);
          else d[r] = factor_of(head[w][r], slab);
        }
        if (TYPE == Q2_K) {  // 15 * 3 fits a byte
#pragma unroll
          for (int r = 0; r < 4; r++) {
            a[r] *= scale[r & 1][r >> 1];
            m[r] = __byte_perm((word_of(head[w][r & 1], i) >> 4) & 0x0f0f0f0fu, 0, 0x1111 * (2 * s + (r >> 1)));
          }
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
          const uint2 x = l.q(n, i, s);
          if constexpr (OUTER) {
            int c[4], by[4];
            const u32 only = (slab < 4 ? first_half : second_half) & 0xffu << (8 * (slab & 3));
            mma_s8_k16(by, scales[w][0], scales[w][1], factors[n] & only);
            mma_s8_k32(c, a, x.x, x.y);
#pragma unroll
            for (int k = 0; k < 4; k++) whole[w][n][k] += by[k] * c[k];
            continue;
          }
          const float2 f = l.f(n, i, s);
          const int f0 = times(1, f.x), f1 = times(1, f.y);
          int c[4], e[4];
          if constexpr (TYPE == Q2_K) {
            mma_s8_k32(c, a, x.x, x.y);
            mma_s8_k32(e, m, x.x, x.y);
#pragma unroll
            for (int k = 0; k < 4; k += STEP) {
              whole[w][n][k] += (k & 1 ? f1 : f0) * c[k];
              minimum[w][n][k] += (k & 1 ? f1 : f0) * e[k];
            }
          } else if constexpr (HALVES) {
            mma_s8_k16(c, a[0], a[1], x.x);
            mma_s8_k16(e, a[2], a[3], x.y);
#pragma unroll
            for (int k = 0; k < 4; k += STEP) {
              const int both = scale[k >> 1][0] * c[k] + scale[k >> 1][1] * e[k];
              if (EXACT == 0) sums.at[w][n][k] = fmaf(k & 1 ? f.y : f.x, (float)both, sums.at[w][n][k]);
              else whole[w][n][k] += (k & 1 ? f1 : f0) * both;
            }
          } else if constexpr (EXACT != 1) {
            mma_s8_k32(c, a, x.x, x.y);
#pragma unroll
            for (int k = 0; k < 4; k += STEP) {
              const int by = scale[k >> 1][0];
              whole[w][n][k] += (SIGNED_SCALES ? by * (k & 1 ? f1 : f0) : times(by, k & 1 ? f.y : f.x)) * c[k];
            }
          } else {
            mma_s8_k32<FLOAT_ZERO>(c, a, x.x, x.y);
#pragma unroll
            for (int k = 0; k < 4; k += STEP)
              sums.at[w][n][k] = fmaf(d[k >> 1] * (k & 1 ? f.y : f.x), to_float(c[k]), sums.at[w][n][k]);
          }
        }
      }
    }
    if (EXACT > 1 && (2 * i + 2) % (EXACT > 1 ? EXACT : 1) == 0) {
#pragma unroll
      for (int w = 0; w < TILES; w++)
#pragma unroll
        for (int n = 0; n < NT; n++)
#pragma unroll
          for (int k = 0; k < 4; k += STEP) {
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
      if (D_BEHIND) {
        d[r] = l.d(w, r) / CODE_SCALE;
      } else if (TYPE == Q2_K) {
        const u32 pair = l.d_dmin(w, r);
        d[r] = half2_low(pair), dmin[r] = -half2_high(pair);
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
      const float2 e = l.e(n);
      float m[4] = {0, 0, 0, 0};
      if (HAS_MINS) {
        const uint2 b = l.sums(n);
        mma_f16(m, mins, b.x, b.y);
      }
#pragma unroll
      for (int k = 0; k < 4; k += STEP) {
        const float v = d[k >> 1] * sums.at[w][n][k], low = TYPE == Q2_K ? (float)minimum[w][n][k] : m[k];
        acc.at[w][n][k] += (k & 1 ? e.y : e.x) * (HAS_MINS || TYPE == Q2_K ? v + dmin[k >> 1] * low : v);
      }
    }
  }
}
#else
// The heads of a row tile that `slab_weights` reads once a unit.
struct Heads {
  uint4 row[2];
  DEVICE_METHOD Heads(const Lane& l, int w) {
    if (ROW_HEAD) row[0] = l.head(w, 0), row[1] = l.head(w, 1);
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
    u32 scale[2][2], offset[2][2];  // [k half][row]
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const uint4& h = heads.row[r];
      offset[0][r] = offset[1][r] = 0;
      if (K_QUANT) {
        scale[0][r] = scale[1][r] = half2_twice(WEIGHT_SCALE * half2_low(h.x) * (float)scale_of(h, slab, 0));
        offset[0][r] = offset[1][r] = half2_twice(-WEIGHT_SCALE * half2_high(h.x) * (float)byte_at(k_mins(h, slab >> 2), slab & 3));
      } else if (TYPE == Q2_K || D_BEHIND) {
        const u32 pair = TYPE == Q2_K ? l.d_dmin(w, r) : 0;
        const float d = WEIGHT_SCALE * (TYPE == Q2_K ? half2_low(pair) : l.d(w, r));
#pragma unroll
        for (int half = 0; half < 2; half++) {
          scale[half][r] = half2_twice(d * (float)scale_of(h, slab, half));
          if (TYPE == Q2_K)
            offset[half][r] = half2_twice(-WEIGHT_SCALE * half2_high(pair) * (float)byte_at((word_of(h, i) >> 4) & 0x0f0f0f0fu, 2 * s + half));
        }
      } else {
        scale[0][r] = scale[1][r] = half2_twice(WEIGHT_SCALE * factor_of(h, slab));
        if (HAS_OFFSETS) {
          const u32 m = word_of(l.offsets(w, r), i);
          offset[0][r] = offset[1][r] = half2_twice(WEIGHT_SCALE * (s ? half2_high(m) : half2_low(m)));
        }
      }
    }
#pragma unroll
    for (int r = 0; r < 4; r++) {
      const uint2 code = f16_codes(quants.f16_word(s, r, slab));
      a[r >> 1][r & 1] = half2_fma(code.x, scale[r >> 1][r & 1], offset[r >> 1][r & 1]);
      a[r >> 1][2 + (r & 1)] = half2_fma(code.y, scale[r >> 1][r & 1], offset[r >> 1][r & 1]);
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
        const uint4 b = l.h(n, 2 * i + s);
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
