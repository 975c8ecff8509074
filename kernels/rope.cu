// From the product q|k|v to attention's inputs: per-head RMSNorm where the model has one, rope, keys and values to their pages.
//
// Grid (n_heads + 2 n_kv_heads, M / warps of a block), up to four warps: one takes a head of a row. Without queries, n_heads = 0, it
// only stores.
// Queries become f16 [m][head][HEAD_DIM], times log2(e) / sqrt(HEAD_DIM). A row at position -1 pads a bucket: nothing is stored.
// H200, 2026-11-29: 4.0 us for 48 heads of 128, by itself.
#include "pages.cuh"
#include "turn.cuh"

extern "C" __global__ void __launch_bounds__(128)
rope_store(Product qkv, Rows rows, int gated, const float* __restrict__ q_norm, const float* __restrict__ k_norm, float eps, const double* __restrict__ frequencies, int n_rot, int interleaved,
           float magnitude, int n_heads, int n_kv_heads, u16* __restrict__ queries, u16* __restrict__ keys,
           u16* __restrict__ values) {
  __shared__ float room[4][HEAD_DIM];
  const int h = blockIdx.x, warp = threadIdx.x >> 5, m = (blockDim.x >> 5) * blockIdx.y + warp;
  const bool is_query = h < n_heads, is_value = h >= n_heads + n_kv_heads;
  const int position = rows.positions[m];
  const float* norm = is_query ? q_norm : is_value ? nullptr : k_norm;

  // With gates the heads lie q, gate, q, gate, .. k, .. v, ..
  const int source = !gated ? h : is_query ? 2 * h : h + n_heads;
  u16* to = queries + ((size_t)m * n_heads + h) * HEAD_DIM;
  int token = 0;
  if (!is_query && position >= 0) {
    const int place = rows.places[m], page = rows.page(rows.sequence[m], place / PAGE);
    token = place % PAGE;
    const int kv = h - n_heads - (is_value ? n_kv_heads : 0);
    to = (is_value ? values : keys) + ((size_t)page * n_kv_heads + kv) * (PAGE * HEAD_DIM);
    if (!is_value) to += token * HEAD_DIM;
  }
  Head head(qkv, m, source, position, is_value, norm, {frequencies, n_rot, interleaved, magnitude});
  wait_for_previous();
  let_next_start();
  if (!is_query && position < 0) return;
  head.make(qkv, m, norm, eps, is_query ? query_factor() : 1.0f, room[warp],
            [&](int d, u16 bits) { to[is_value ? value_at(token, d) : d] = bits; });
}

constexpr int COUPLES = (HEAD_DIM + 127) / 128, HEADS = 4 / COUPLES, TOGETHER = 16;

DEVICE float2 load2(const float* at, bool wanted) {
#ifdef __CUDA_ARCH__
  float2 v;
  asm volatile("{.reg .pred p; setp.ne.s32 p, %3, 0; mov.b32 %0, 0; mov.b32 %1, 0; @p ld.global.cg.v2.f32 {%0, %1}, [%2];}"
               : "=&f"(v.x), "=&f"(v.y) : "l"(at), "r"((int)wanted));
  return v;
#else
  return wanted ? *(const float2*)at : float2{};
#endif
}

// Values of TOGETHER rows of a head from row `first` on: where these are one of the groups that pages have, in 16-byte pieces.
DEVICE void store_values(const Product& qkv, const Rows& rows, int kv, int n_kv_heads, int column, int first, int M, u16* values) {
  __shared__ __align__(16) u16 tile[TOGETHER][HEAD_DIM + 8];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, own = first + (lane & (TOGETHER - 1));
  const int position = own < M ? rows.positions[own] : -1;
  const int place = position < 0 ? 0 : rows.places[own], sequence = position < 0 ? 0 : rows.sequence[own];
  const int begin = __shfl_sync(~0u, place, 0), of_first = __shfl_sync(~0u, sequence, 0);
  const bool fits = position >= 0 && place == begin + own - first && sequence == of_first && begin % TOGETHER == 0;
  const bool is_group = __ballot_sync(~0u, fits) == ~0u;
  const float* factors = factors_at(qkv, column);
#pragma unroll
  for (int r = 0; r < TOGETHER / 4; r++) {
    const int row = TOGETHER / 4 * warp + r, m = min(first + row, M - 1);
    float4 v[(HEAD_DIM + 127) / 128];
#pragma unroll
    for (int i = 0; i < (HEAD_DIM + 127) / 128; i++)
      v[i] = load4(qkv.y + (size_t)m * qkv.width + column + 128 * i + 4 * lane, 128 * i + 4 * lane < HEAD_DIM);
    const float f = factor_of(qkv, read_squares(qkv, m)) * (factors ? load1(factors + m, true) : 1);
#pragma unroll
    for (int i = 0; i < (HEAD_DIM + 127) / 128; i++)
      if (128 * i + 4 * lane < HEAD_DIM)
        *(uint2*)&tile[row][128 * i + 4 * lane] = make_uint2(half2_of(f * v[i].x, f * v[i].y), half2_of(f * v[i].z, f * v[i].w));
  }
  __syncthreads();
  auto base = [&](int place, int sequence) { return values + ((size_t)rows.page(sequence, place / PAGE) * n_kv_heads + kv) * (PAGE * HEAD_DIM); };
  if (is_group) {
    u16* to = base(begin, of_first) + begin % PAGE * HEAD_DIM;
    for (int piece = threadIdx.x; piece < 2 * HEAD_DIM; piece += 128) {
      const int dim = 16 * (piece >> 5) + (lane >> 2), token = 2 * (lane & 3);
      auto pair = [&](int t, int d) { return pack2(tile[t][d], tile[t + 1][d]); };
      *(uint4*)(to + 8 * piece) = make_uint4(pair(token, dim), pair(token + 8, dim), pair(token, dim + 8), pair(token + 8, dim + 8));
    }
    return;
  }
  for (int row = warp; row < TOGETHER; row += 4) {
    const int at = __shfl_sync(~0u, place, row), number = __shfl_sync(~0u, sequence, row);
    if (__shfl_sync(~0u, position, row) < 0) continue;
    u16* to = base(at, number);
    for (int d = lane; d < HEAD_DIM; d += 32) to[value_at(at % PAGE, d)] = tile[row][d];
  }
}

// The same for many rows of a product that lies whole: grid (M + n_kv_heads * ceil(M / TOGETHER)), 128 threads. A block takes the
// queries and keys of a row, a warp HEADS of them at once, a lane two neighbouring pairs of each, or the values of some rows of a head.
extern "C" __global__ void __launch_bounds__(128)
rope_store_rows(Product qkv, Rows rows, int gated, const float* __restrict__ q_norm, const float* __restrict__ k_norm, float eps,
                const double* __restrict__ frequencies, int n_rot, int interleaved, float magnitude, int n_heads, int n_kv_heads,
                u16* __restrict__ queries, u16* __restrict__ keys, u16* __restrict__ values, int M) {
  __shared__ float2 turn[HEAD_DIM / 2];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, k_first = n_heads * (1 + gated);
  wait_for_previous();
  let_next_start();
  if ((int)blockIdx.x >= M) {
    const int index = blockIdx.x - M, kv = index % n_kv_heads, column = (k_first + n_kv_heads + kv) * HEAD_DIM;
    store_values(qkv, rows, kv, n_kv_heads, column, TOGETHER * (index / n_kv_heads), M, values);
    return;
  }
  const int m = blockIdx.x, position = rows.positions[m];
  if ((int)threadIdx.x < HEAD_DIM / 2) {
    float sine = 0, cosine = 1;
    if ((int)threadIdx.x < n_rot / 2) {
      const double turns = position * frequencies[threadIdx.x];
      sincospif((float)(turns - 2 * rint(turns / 2)), &sine, &cosine);
      sine *= magnitude, cosine *= magnitude;
    }
    turn[threadIdx.x] = make_float2(sine, cosine);
  }
  __syncthreads();
  const float input = factor_of(qkv, read_squares(qkv, m));
  float2 at_first[COUPLES], at_second[COUPLES];
  int first[COUPLES], second[COUPLES];
  bool across[COUPLES], inside[COUPLES];  // the pairs go from `first` to `second`, or are neighbours in both
#pragma unroll
  for (int c = 0; c < COUPLES; c++) {
    const int couple = lane + 32 * c;
    inside[c] = couple < HEAD_DIM / 4;
    across[c] = !interleaved && 2 * couple < n_rot / 2;
    first[c] = inside[c] ? across[c] ? 2 * couple : 4 * couple : 0;
    second[c] = first[c] + (across[c] ? n_rot / 2 : 2);
    at_first[c] = turn[inside[c] ? 2 * couple : 0], at_second[c] = turn[inside[c] ? 2 * couple + 1 : 0];
  }
  u16* of_page = nullptr;
  if (position >= 0) {
    const int place = rows.places[m];
    of_page = keys + (size_t)rows.page(rows.sequence[m], place / PAGE) * n_kv_heads * (PAGE * HEAD_DIM) + place % PAGE * HEAD_DIM;
  }
  for (int begin = HEADS * warp; begin < n_heads + n_kv_heads; begin += 4 * HEADS) {
    float2 x[HEADS][COUPLES][2];
    float factor[HEADS];
#pragma unroll
    for (int i = 0; i < HEADS; i++) {
      const int h = min(begin + i, n_heads + n_kv_heads - 1), source = h >= n_heads ? k_first + h - n_heads : gated ? 2 * h : h;
      const float* from = qkv.y + (size_t)m * qkv.width + source * HEAD_DIM;
#pragma unroll
      for (int c = 0; c < COUPLES; c++) x[i][c][0] = load2(from + first[c], inside[c]), x[i][c][1] = load2(from + second[c], inside[c]);
      const float* factors = factors_at(qkv, source * HEAD_DIM);
      factor[i] = factors ? load1(factors + m, true) : 1;
    }
#pragma unroll
    for (int i = 0; i < HEADS; i++) {
      const int h = begin + i;
      const bool is_query = h < n_heads;
      if (h >= n_heads + n_kv_heads || (!is_query && position < 0)) break;
      const float* norm = is_query ? q_norm : k_norm;
      float f = input * factor[i];
      if (norm) {
        float square = 0;
#pragma unroll
        for (int c = 0; c < COUPLES; c++) {
          const float2 a = x[i][c][0], b = x[i][c][1];
          square += (a.x * a.x + a.y * a.y) + (b.x * b.x + b.y * b.y);
        }
#pragma unroll
        for (int o = 16; o; o >>= 1) square += __shfl_xor_sync(~0u, square, o);
        f *= rsqrtf(f * f * square / HEAD_DIM + eps);
      }
      if (is_query) f *= query_factor();
      u16* to = is_query ? queries + ((size_t)m * n_heads + h) * HEAD_DIM : of_page + (size_t)(h - n_heads) * (PAGE * HEAD_DIM);
#pragma unroll
      for (int c = 0; c < COUPLES; c++) {
        if (!inside[c]) break;
        float2 a = x[i][c][0], b = x[i][c][1], wa = make_float2(1, 1), wb = wa;
        if (norm) wa = *(const float2*)(norm + first[c]), wb = *(const float2*)(norm + second[c]);
        a = make_float2(f * a.x * wa.x, f * a.y * wa.y), b = make_float2(f * b.x * wb.x, f * b.y * wb.y);
        // Pairs are (u, v): of a and b, or both in a and both in b.
        const float u0 = a.x, v0 = across[c] ? b.x : a.y, u1 = across[c] ? a.y : b.x, v1 = b.y;
        const float2 s = at_first[c], t = at_second[c];
        const float p0 = u0 * s.y - v0 * s.x, r0 = u0 * s.x + v0 * s.y, p1 = u1 * t.y - v1 * t.x, r1 = u1 * t.x + v1 * t.y;
        *(u32*)(to + first[c]) = half2_of(p0, across[c] ? p1 : r0);
        *(u32*)(to + second[c]) = half2_of(across[c] ? r0 : p1, r1);
      }
    }
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
