// A head of the product q|k|v by a warp: RMSNorm where the model has one, then rope.
#pragma once
#include "product.cuh"

// Of a rope: `frequencies` are the pairs' angles for each position over pi, in double: angle / pi modulo 2 stays exact at any position.
struct Turn {
  const double* frequencies;
  int n_rot, interleaved;
  float magnitude;
};

// What depends on no other kernel is found first: `source` is the head's number in the product, a value has no `turn`.
struct Head {
  static constexpr int TURNS = (HEAD_DIM + 127) / 128, PAIRS = (HEAD_DIM + 63) / 64;
  Addends addends[TURNS];
  int first[PAIRS], second[PAIRS];
  float sine[PAIRS], cosine[PAIRS], weight[PAIRS][2];

  DEVICE_METHOD Head(const Product& qkv, int m, int source, int position, bool is_value, const float* norm, const Turn& turn) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int i = 0; i < TURNS; i++) addends[i] = addends_of(qkv, m, source * HEAD_DIM + min(128 * i + 4 * lane, HEAD_DIM - 4));
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {  // pairs: the rotated ones, then the rest
      const int i = min(lane + 32 * j, HEAD_DIM / 2 - 1);
      const bool rotated = !is_value && i < turn.n_rot / 2;
      first[j] = rotated && !turn.interleaved ? i : 2 * i;
      second[j] = rotated && !turn.interleaved ? i + turn.n_rot / 2 : 2 * i + 1;
      sine[j] = 0, cosine[j] = 1;
      if (rotated) {
        const double turns = position * turn.frequencies[i];
        sincospif((float)(turns - 2 * rint(turns / 2)), &sine[j], &cosine[j]);
        sine[j] *= turn.magnitude, cosine[j] *= turn.magnitude;
      }
      weight[j][0] = norm ? norm[first[j]] : 1;
      weight[j][1] = norm ? norm[second[j]] : 1;
    }
  }

  // `store`(dim, f16) takes the head times `factor`; `room` is a warp's own. Which products are added to which is written out, so that
  // all kernels round alike.
  template <typename F>
  DEVICE_METHOD void make(const Product& qkv, int m, bool has_norm, float eps, float factor, float* room, const F& store) {
    const int lane = threadIdx.x & 31;
    const float squares = read_squares(qkv, m);
    float value[TURNS][4] = {}, square = 0;
#pragma unroll
    for (int i = 0; i < TURNS; i++) add_up(addends[i], value[i]);
    const float input = factor_of(qkv, squares);
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
#pragma unroll
      for (int j = 0; j < 4; j++) {
        value[i][j] *= input;
        if (128 * i + 4 * lane < HEAD_DIM) square = fmaf(value[i][j], value[i][j], square);
      }
      const int d = 128 * i + 4 * lane;
      if (d < HEAD_DIM) *(float4*)(room + d) = make_float4(value[i][0], value[i][1], value[i][2], value[i][3]);
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) square += __shfl_xor_sync(~0u, square, o);
    const float scale = has_norm ? rsqrtf(fmaf(square, 1.0f / HEAD_DIM, eps)) : 1.0f;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
      if (lane + 32 * j >= HEAD_DIM / 2) break;
      const float u = room[first[j]] * scale * weight[j][0], v = room[second[j]] * scale * weight[j][1];
      store(first[j], f32_to_f16(fmaf(u, cosine[j], -(v * sine[j])) * factor));
      store(second[j], f32_to_f16(fmaf(u, sine[j], v * cosine[j]) * factor));
    }
  }
};

// Queries times log2(e) / sqrt(HEAD_DIM), so that scores are in powers of two.
DEVICE float query_factor() { return 1.4426950408889634f * rsqrtf((float)HEAD_DIM); }
