// One head of a row, from the product q|k|v: RMSNorm where the model has one, rope, f16. A warp has a head.
//
// Queries are multiplied by log2(e) / sqrt(HEAD_DIM), so that scores are in powers of two.
#pragma once
#include "pages.cuh"
#include "product.cuh"

// `frequencies` are the pairs' angles for each position over pi, in double: angle / pi modulo 2 stays exact at any position.
// Head h is a query's up to n_heads, then a key's, then a value's. With `gated` the product's heads lie q, gate, q, gate, .. k, .. v, ..
struct Heads {
  const float *q_norm, *k_norm;
  const double* frequencies;
  float eps, magnitude;
  int n_rot, interleaved, gated, n_heads, n_kv_heads;

  DEVICE_METHOD bool is_query(int h) const { return h < n_heads; }
  DEVICE_METHOD bool is_value(int h) const { return h >= n_heads + n_kv_heads; }
  DEVICE_METHOD const float* norm_of(int h) const { return is_query(h) ? q_norm : is_value(h) ? nullptr : k_norm; }
};

struct Head {
  static constexpr int TURNS = (HEAD_DIM + 127) / 128, PAIRS = (HEAD_DIM + 63) / 64;
  Addends addends[TURNS];
  int first[PAIRS], second[PAIRS];
  float sine[PAIRS], cosine[PAIRS], weight[PAIRS][2];

  // What depends on no other kernel, for head h of row m.
  DEVICE_METHOD void prepare(const Product& qkv, const Heads& heads, int m, int h, int position) {
    const int lane = threadIdx.x & 31;
    const float* norm = heads.norm_of(h);
    const int source = !heads.gated ? h : heads.is_query(h) ? 2 * h : h + heads.n_heads;
#pragma unroll
    for (int i = 0; i < TURNS; i++) addends[i] = addends_of(qkv, m, source * HEAD_DIM + min(128 * i + 4 * lane, HEAD_DIM - 4));
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {  // pairs: the rotated ones, then the rest
      const int i = min(lane + 32 * j, HEAD_DIM / 2 - 1);
      const bool rotated = !heads.is_value(h) && i < heads.n_rot / 2;
      first[j] = rotated && !heads.interleaved ? i : 2 * i;
      second[j] = rotated && !heads.interleaved ? i + heads.n_rot / 2 : 2 * i + 1;
      sine[j] = 0, cosine[j] = 1;
      if (rotated) {
        const double turns = position * heads.frequencies[i];
        sincospif((float)fma(-2.0, rint(turns / 2), turns), &sine[j], &cosine[j]);
        sine[j] *= heads.magnitude, cosine[j] *= heads.magnitude;
      }
      weight[j][0] = norm ? norm[first[j]] : 1;
      weight[j][1] = norm ? norm[second[j]] : 1;
    }
  }

  // The rest, once the product is there; `put` takes each element's number and bits. `room` is a warp's own, in shared memory.
  template <typename Put>
  DEVICE_METHOD void finish(const Product& qkv, const Heads& heads, int m, int h, float* room, const Put& put) const {
    const int lane = threadIdx.x & 31;
    const float squares = read_squares(qkv, m);
    float value[TURNS][4] = {}, square = 0;
    if (TURNS == 1) {
      add_up(addends[0], value[0]);
    } else {  // all are asked for before the first is added
      Coming<4, 4> low(addends[0]), high(addends[TURNS - 1]);
      low.add_up(addends[0], value[0]);
      high.add_up(addends[TURNS - 1], value[TURNS - 1]);
    }
    const float input = factor_of(qkv, squares);
#pragma unroll
    for (int i = 0; i < TURNS; i++) {
      const int d = 128 * i + 4 * lane;
#pragma unroll
      for (int j = 0; j < 4; j++) {
        value[i][j] *= input;
        if (d < HEAD_DIM) square = fmaf(value[i][j], value[i][j], square);
      }
      if (d < HEAD_DIM) *(float4*)(room + d) = make_float4(value[i][0], value[i][1], value[i][2], value[i][3]);
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) square += __shfl_xor_sync(~0u, square, o);
    const float scale = heads.norm_of(h) ? rsqrtf(square / HEAD_DIM + heads.eps) : 1.0f;
    const float factor = heads.is_query(h) ? 1.4426950408889634f * rsqrtf((float)HEAD_DIM) : 1.0f;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < PAIRS; j++) {
      if (lane + 32 * j >= HEAD_DIM / 2) break;
      const float u = room[first[j]] * scale * weight[j][0], v = room[second[j]] * scale * weight[j][1];
      put(first[j], f32_to_f16(fmaf(u, cosine[j], -v * sine[j]) * factor));
      put(second[j], f32_to_f16(fmaf(u, sine[j], v * cosine[j]) * factor));
    }
    __syncwarp();
  }
};

// Where the halves of a key or value of row m go: `put` of `Head::finish`.
struct KvPlace {
  u16* to;
  int token;
  bool is_value;

  DEVICE_METHOD void operator()(int d, u16 bits) const { to[is_value ? value_at(token, d) : token * HEAD_DIM + d] = bits; }
};

DEVICE KvPlace place_of(const Rows& rows, const Heads& heads, int m, int h, u16* keys, u16* values) {
  const int place = rows.places[m], page = rows.page(rows.sequence[m], place / PAGE);
  const bool is_value = heads.is_value(h);
  const int kv = h - heads.n_heads - (is_value ? heads.n_kv_heads : 0);
  return {(is_value ? values : keys) + ((size_t)page * heads.n_kv_heads + kv) * (PAGE * HEAD_DIM), place % PAGE, is_value};
}
