// From the product q|k|v to attention's inputs: per-head RMSNorm where the model has one, rope, keys and values to their pages.
//
// Grid (n_heads + 2 n_kv_heads, M), one warp a head.
// Queries become f16 [m][head][HEAD_DIM], times log2(e) / sqrt(HEAD_DIM). A row at position -1 pads a bucket: nothing is stored.
#include "pages.cuh"
#include "product.cuh"

// `frequencies` are the pairs' angles for each position over pi, in double: angle / pi modulo 2 stays exact at any position.
extern "C" __global__ void __launch_bounds__(32)
rope_store(Product qkv, const int* __restrict__ positions, const int* __restrict__ sequence,
           const int* __restrict__ page_table, int pages_per_sequence, const float* __restrict__ q_norm,
           const float* __restrict__ k_norm, float eps, const double* __restrict__ frequencies, int n_rot, int interleaved,
           float magnitude, int n_heads, int n_kv_heads, u16* __restrict__ queries, u16* __restrict__ keys,
           u16* __restrict__ values) {
  let_next_start();
  wait_for_previous();
  __shared__ float head[HEAD_DIM];
  const int h = blockIdx.x, m = blockIdx.y, lane = threadIdx.x;
  const bool is_query = h < n_heads, is_value = h >= n_heads + n_kv_heads;
  const int position = positions[m];
  float square = 0;
  for (int d = 4 * lane; d < HEAD_DIM; d += 128) {
    const float4 v = load4(qkv, m, h * HEAD_DIM + d);
    *(float4*)(head + d) = v;
    square += v.x * v.x + v.y * v.y + v.z * v.z + v.w * v.w;
  }
#pragma unroll
  for (int o = 16; o; o >>= 1) square += __shfl_xor_sync(~0u, square, o);
  const float* norm = is_query ? q_norm : is_value ? nullptr : k_norm;
  const float scale = norm ? rsqrtf(square / HEAD_DIM + eps) : 1.0f;
  __syncwarp();

  auto dim = [&](int d) { return norm ? norm[d] * (head[d] * scale) : head[d]; };
  u16* to = queries + ((size_t)m * n_heads + h) * HEAD_DIM;
  int token = 0;
  if (!is_query) {
    if (position < 0) return;
    const int page = page_table[(size_t)sequence[m] * pages_per_sequence + position / PAGE];
    token = position % PAGE;
    const int kv = h - n_heads - (is_value ? n_kv_heads : 0);
    to = (is_value ? values : keys) + ((size_t)page * n_kv_heads + kv) * (PAGE * HEAD_DIM);
  }
  const float factor = is_query ? 1.4426950408889634f * rsqrtf((float)HEAD_DIM) : 1.0f;
  for (int i = lane; i < HEAD_DIM / 2; i += 32) {  // pairs: the rotated ones, then the rest
    int d0 = 2 * i, d1 = 2 * i + 1;
    float a, b;
    if (!is_value && i < n_rot / 2) {
      if (!interleaved) d0 = i, d1 = i + n_rot / 2;
      const double turns = position * frequencies[i];
      float sine, cosine;
      sincospif((float)(turns - 2 * rint(turns / 2)), &sine, &cosine);
      sine *= magnitude, cosine *= magnitude;
      const float u = dim(d0), v = dim(d1);
      a = u * cosine - v * sine, b = u * sine + v * cosine;
    } else {
      a = dim(d0), b = dim(d1);
    }
    const u16 first = f32_to_f16(a * factor), second = f32_to_f16(b * factor);
    if (is_value) {
      to[value_at(token, d0)] = first, to[value_at(token, d1)] = second;
    } else {
      u16* row = is_query ? to : to + token * HEAD_DIM;
      row[d0] = first, row[d1] = second;
    }
  }
}
