// From the product q|k|v to attention's inputs: per-head RMSNorm where the model has one, rope, keys and values to their pages.
//
// Grid (n_heads + 2 n_kv_heads, M), one warp a head. Without queries, n_heads = 0, it only stores.
// Queries become f16 [m][head][HEAD_DIM], times log2(e) / sqrt(HEAD_DIM). A row at position -1 pads a bucket: nothing is stored.
// H200, 2026-11-29: 4.0 us for 48 heads of 128, by itself.
#include "pages.cuh"
#include "product.cuh"

// `frequencies` are the pairs' angles for each position over pi, in double: angle / pi modulo 2 stays exact at any position.
extern "C" __global__ void __launch_bounds__(32)
rope_store(Product qkv, Rows rows, int gated, const float* __restrict__ q_norm, const float* __restrict__ k_norm, float eps, const double* __restrict__ frequencies, int n_rot, int interleaved,
           float magnitude, int n_heads, int n_kv_heads, u16* __restrict__ queries, u16* __restrict__ keys,
           u16* __restrict__ values) {
  __shared__ float head[HEAD_DIM];
  constexpr int TURNS = (HEAD_DIM + 127) / 128, PAIRS = (HEAD_DIM + 63) / 64;
  const int h = blockIdx.x, m = blockIdx.y, lane = threadIdx.x;
  const bool is_query = h < n_heads, is_value = h >= n_heads + n_kv_heads;
  const int position = rows.positions[m];
  const float* norm = is_query ? q_norm : is_value ? nullptr : k_norm;

  // With gates the heads lie q, gate, q, gate, .. k, .. v, ..
  const int source = !gated ? h : is_query ? 2 * h : h + n_heads;

  // All that depends on no other kernel comes before waiting for one.
  Addends addends[TURNS];
#pragma unroll
  for (int i = 0; i < TURNS; i++) addends[i] = addends_of(qkv, m, source * HEAD_DIM + min(128 * i + 4 * lane, HEAD_DIM - 4));
  u16* to = queries + ((size_t)m * n_heads + h) * HEAD_DIM;
  int token = 0;
  if (!is_query && position >= 0) {
    const int place = rows.places[m], page = rows.page(rows.sequence[m], place / PAGE);
    token = place % PAGE;
    const int kv = h - n_heads - (is_value ? n_kv_heads : 0);
    to = (is_value ? values : keys) + ((size_t)page * n_kv_heads + kv) * (PAGE * HEAD_DIM);
    if (!is_value) to += token * HEAD_DIM;
  }
  int first[PAIRS], second[PAIRS];
  float sine[PAIRS], cosine[PAIRS], weight[PAIRS][2];
#pragma unroll
  for (int j = 0; j < PAIRS; j++) {  // pairs: the rotated ones, then the rest
    const int i = min(lane + 32 * j, HEAD_DIM / 2 - 1);
    const bool rotated = !is_value && i < n_rot / 2;
    first[j] = rotated && !interleaved ? i : 2 * i;
    second[j] = rotated && !interleaved ? i + n_rot / 2 : 2 * i + 1;
    sine[j] = 0, cosine[j] = 1;
    if (rotated) {
      const double turns = position * frequencies[i];
      sincospif((float)(turns - 2 * rint(turns / 2)), &sine[j], &cosine[j]);
      sine[j] *= magnitude, cosine[j] *= magnitude;
    }
    weight[j][0] = norm ? norm[first[j]] : 1;
    weight[j][1] = norm ? norm[second[j]] : 1;
  }
  wait_for_previous();
  let_next_start();
  if (!is_query && position < 0) return;

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
      if (128 * i + 4 * lane < HEAD_DIM) square += value[i][j] * value[i][j];
    }
    const int d = 128 * i + 4 * lane;
    if (d < HEAD_DIM) *(float4*)(head + d) = make_float4(value[i][0], value[i][1], value[i][2], value[i][3]);
  }
#pragma unroll
  for (int o = 16; o; o >>= 1) square += __shfl_xor_sync(~0u, square, o);
  const float scale = norm ? rsqrtf(square / HEAD_DIM + eps) : 1.0f;
  const float factor = is_query ? 1.4426950408889634f * rsqrtf((float)HEAD_DIM) : 1.0f;
  __syncwarp();
#pragma unroll
  for (int j = 0; j < PAIRS; j++) {
    if (lane + 32 * j >= HEAD_DIM / 2) break;
    const float u = head[first[j]] * scale * weight[j][0], v = head[second[j]] * scale * weight[j][1];
    const u16 a = f32_to_f16((u * cosine[j] - v * sine[j]) * factor);
    const u16 b = f32_to_f16((u * sine[j] + v * cosine[j]) * factor);
    to[is_value ? value_at(token, first[j]) : first[j]] = a;
    to[is_value ? value_at(token, second[j]) : second[j]] = b;
  }
}

// Moves keys and values of the tried rows that stand to places in a row: grid (kv heads, layers), 128 threads. path.row[i] of a
// sequence, counted from its first, goes to the place of its row begin + i, which lies no further back. A layer's pages
// lie `layer` halves behind those of the layer before, values behind keys.
struct Path {
  int count, row[32];
};

extern "C" __global__ void __launch_bounds__(128)
move_rows(Rows rows, int sequence, Path path, int begin, int n_kv_heads, u16* __restrict__ pages, long long layer) {
  u16 *keys = pages + 2 * blockIdx.y * layer, *values = keys + layer;
  const int first = rows.spans[sequence].w;
  wait_for_previous();
  auto base = [&](int place) {
    return ((size_t)rows.page(sequence, place / PAGE) * n_kv_heads + blockIdx.x) * (PAGE * HEAD_DIM);
  };
  for (int i = 0; i < path.count; i++) {
    const int source = first + path.row[i], target = first + begin + i;
    if (source == target) continue;
    const size_t from = base(source), to = base(target);
    for (int d = threadIdx.x; d < HEAD_DIM; d += 128) {
      keys[to + target % PAGE * HEAD_DIM + d] = keys[from + source % PAGE * HEAD_DIM + d];
      values[to + value_at(target % PAGE, d)] = values[from + value_at(source % PAGE, d)];
    }
    __syncthreads();
  }
}
