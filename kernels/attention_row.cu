// rope_store and attention of a step of one row in one kernel, to the same bits, for up to 8 heads a key/value head.
//
// Grid (key/value heads, splits), 32 max(WARPS, heads + 2) threads, heads being those of a key/value head. Each warp makes a query of
// the product, two more in the block that has the newest page the key and the value; then WARPS warps share each page as in attention.cu.
// A block's first page is brought to L2 before the product is there.
// O^T = V^T P^T: heads are the columns, of which there are 8, so that no half of its rows is empty as in attention.cu.
#include "pages.cuh"
#include "turn.cuh"

constexpr int WARPS = HEAD_DIM == 256 ? 8 : 4, SLABS = HEAD_DIM / 32;
constexpr int EIGHTS = PAGE / 8 / WARPS, GROUPS = HEAD_DIM / 16 / WARPS;  // of a warp, as in attention.cu
constexpr int MOST_WARPS = 10;
constexpr float NEVER = -1e30f;

// `sums` [head][split][HEAD_DIM], `stats` [head][split]{largest score, sum}, as attention.cu's.
extern "C" __global__ void __launch_bounds__(32 * MOST_WARPS, 1)
attention_row(Product qkv, Rows rows, View view, int gated, const float* __restrict__ q_norm, const float* __restrict__ k_norm, float eps,
              const double* __restrict__ frequencies, int n_rot, int interleaved, float magnitude, int n_heads, int n_kv_heads,
              u16* keys, u16* values, float* __restrict__ sums, float2* __restrict__ stats) {
  __shared__ __align__(16) u16 made[MOST_WARPS][HEAD_DIM];  // queries, the key, the value
  __shared__ __align__(16) float room[MOST_WARPS][HEAD_DIM];
  __shared__ uint2 weights[PAGE / 16][32];
  __shared__ float found[WARPS][8];
  const int kv = blockIdx.x, split = blockIdx.y, splits = gridDim.y, heads = n_heads / n_kv_heads;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int position = rows.positions[0], sequence = rows.sequence[0], place = rows.places[0];
  const Sight sight = rows.sight(0, view);
  const int seen = sight.limit + 1, pages = (seen + PAGE - 1) / PAGE;
  if (position < 0 || split >= pages) return;  // others wait for the kernel in front, so whoever waits for this one has done so
  const int lowest = rows.lowest(make_int4(0, 1, seen, sequence), view), newest = place / PAGE;
  const bool has_newest = newest % splits == split;

  int p = split;
  while (PAGE * (p + 1) <= lowest) p += splits;
  auto base = [&](int p) { return ((size_t)rows.page(sequence, p) * n_kv_heads + kv) * (PAGE * HEAD_DIM); };
  uint4 k[EIGHTS][SLABS], v[PAGE / 16][GROUPS];
  auto load = [&] {
    const size_t at = base(p);
    const uint4* key = (const uint4*)(keys + at) + (8 * EIGHTS * warp + g) * (HEAD_DIM / 8) + t;
    const uint4* value = (const uint4*)(values + at) + 32 * GROUPS * warp + lane;
#pragma unroll
    for (int n = 0; n < EIGHTS; n++)
#pragma unroll
      for (int i = 0; i < SLABS; i++) k[n][i] = __ldcg(key + n * HEAD_DIM + 4 * i);
#pragma unroll
    for (int c = 0; c < PAGE / 16; c++)
#pragma unroll
      for (int i = 0; i < GROUPS; i++) v[c][i] = __ldcg(value + 2 * HEAD_DIM * c + 32 * i);
  };
  if (p < pages)
    for (int i = threadIdx.x; i < HEAD_DIM; i += blockDim.x) prefetch(keys + base(p) + 64 * i), prefetch(values + base(p) + 64 * i);

  const bool is_query = warp < heads, is_value = warp > heads;
  const float* norm = is_query ? q_norm : is_value ? nullptr : k_norm;
  // With gates the heads lie q, gate, q, gate, .. k, .. v, ..
  const int source = is_query ? (kv * heads + warp) << gated : (n_heads << gated) + kv + (is_value ? n_kv_heads : 0);
  Head head(qkv, 0, source, position, is_value, norm, {frequencies, n_rot, interleaved, magnitude});
  const size_t new_page = has_newest ? base(newest) : 0;
  wait_for_previous();
  let_next_start();
  if (is_query || (has_newest && warp < heads + 2)) {
    u16* to = (is_value ? values : keys) + new_page + (is_value ? 0 : place % PAGE * HEAD_DIM);
    head.make(qkv, 0, norm, eps, is_query ? query_factor() : 1.0f, room[warp], [&](int d, u16 bits) {
      made[warp][d] = bits;
      if (!is_query) to[is_value ? value_at(place % PAGE, d) : d] = bits;
    });
  }
  __syncthreads();
  if (warp >= WARPS) return;

  float o[GROUPS][4], high = NEVER, sum = 0;
#pragma unroll
  for (int i = 0; i < GROUPS; i++)
#pragma unroll
    for (int e = 0; e < 4; e++) o[i][e] = 0;
#pragma unroll 1
  for (; p < pages; p += splits) {
    load();
    float s[EIGHTS][4] = {};
#pragma unroll
    for (int i = 0; i < SLABS; i++) {
      const uint4 q = *(const uint4*)(made[min(g, heads - 1)] + 8 * (4 * i + t));
      const u32 a0[4] = {q.x, 0, q.y, 0}, a1[4] = {q.z, 0, q.w, 0};
#pragma unroll
      for (int n = 0; n < EIGHTS; n++) mma_f16(s[n], a0, k[n][i].x, k[n][i].y), mma_f16(s[n], a1, k[n][i].z, k[n][i].w);
    }
    float most = NEVER;
#pragma unroll
    for (int n = 0; n < EIGHTS; n++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        const int at = PAGE * p + 8 * (EIGHTS * warp + n) + 2 * t + e;
        if (at > sight.limit || at < sight.low) s[n][e] = NEVER * 2;
        most = fmaxf(most, s[n][e]);
      }
    most = quad_max(most);
    if (t == 0) found[warp][g] = most;
    __syncthreads();
    most = high;
#pragma unroll
    for (int w = 0; w < WARPS; w++) most = fmaxf(most, found[w][g]);
    most = ceilf(most);
    const float shrink = power_of_2(high - most);
    high = most;
    sum *= shrink;
#pragma unroll
    for (int n = 0; n < EIGHTS; n++) {
      const u32 two = half2_of(power_of_2(s[n][0] - most), power_of_2(s[n][1] - most));
      const int eight = EIGHTS * warp + n;
      ((u32*)&weights[eight >> 1][lane])[eight & 1] = two;
      sum += half2_low(two) + half2_high(two);
    }
    const float even = __shfl_sync(~0u, shrink, 8 * t), odd = __shfl_sync(~0u, shrink, 8 * t + 4);
#pragma unroll
    for (int i = 0; i < GROUPS; i++) o[i][0] *= even, o[i][1] *= odd, o[i][2] *= even, o[i][3] *= odd;
    __syncthreads();
#pragma unroll
    for (int c = 0; c < PAGE / 16; c++) {
      // Slots beyond the sequence may hold anything, and 0 * NaN is NaN.
      const int left = seen - (PAGE * p + 16 * c + 2 * t);
      const u32 low = left >= 2 ? ~0u : left == 1 ? 0xffffu : 0u, upper = left >= 10 ? ~0u : left == 9 ? 0xffffu : 0u;
      const uint2 w = weights[c][lane];
#pragma unroll
      for (int i = 0; i < GROUPS; i++) {
        const u32 a[4] = {v[c][i].x & low, v[c][i].z & low, v[c][i].y & upper, v[c][i].w & upper};
        mma_f16(o[i], a, w.x, w.y);
      }
    }
  }

  // A lane has dims 16 i + g and + 8 of heads 2t and 2t + 1.
  sum = quad_sum(sum);
  if (t == 0) found[warp][g] = sum;
#pragma unroll
  for (int e = 0; e < 2; e++)
    if (2 * t + e < heads) {
      float* to = sums + ((size_t)(kv * heads + 2 * t + e) * splits + split) * HEAD_DIM + 16 * GROUPS * warp + g;
#pragma unroll
      for (int i = 0; i < GROUPS; i++) to[16 * i] = o[i][e], to[16 * i + 8] = o[i][2 + e];
    }
  __syncthreads();
  if (warp == 0 && t == 0 && g < heads) {
    float all = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) all += found[w][g];
    stats[(kv * heads + g) * splits + split] = make_float2(high, all);
  }
}
