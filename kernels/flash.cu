// softmax(q k / sqrt(d)) v over pages for long steps; the result is `attention.cu`'s with one split, for its `combine`.
//
// Grid (key/value heads x head groups, 1, tiles), WARPS warps. A tile is up to 16 WARPS (query, head) rows of one sequence that share
// a key/value head, as in attention.cu; a warp has 16 of them. Keys and values go through a ring in shared memory, STEP
// tokens a stage, so that a page is fetched once for all rows. Pieces of 16 bytes of odd tokens' keys change places 64 bytes
// apart, so that a quarter warp reads all banks. The tiles that see most come first.
// H200, 2026-11-30, 32 heads of 128 over 8, prompt of 2,048: 237 us a layer, with the wait for rope.
#include "pages.cuh"

constexpr int STEP = HEAD_DIM <= 128 ? 32 : 16, STAGES = 3;
constexpr int SLABS = HEAD_DIM / 32, GROUPS = HEAD_DIM / 16, HALF = STEP * HEAD_DIM * 2, STAGE = 2 * HALF;
constexpr float NEVER = -1e30f;

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
flash(const u16* __restrict__ queries, const u16* __restrict__ keys, const u16* __restrict__ values,
      const int4* __restrict__ tiles, Rows rows, View view, int n_heads, int n_kv_heads, int tile_heads,
      float* __restrict__ sums, float2* __restrict__ stats) {
  extern __shared__ __align__(128) u8 ring[];
  const int4 tile = tiles[gridDim.z - 1 - blockIdx.z];
  const int group = n_heads / n_kv_heads, kv = blockIdx.x % n_kv_heads, first_head = blockIdx.x / n_kv_heads * tile_heads;
  const int heads = min(tile_heads, group - first_head);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  if (tile.y == 0) {
    wait_for_previous();
    return;
  }

  __shared__ Sight sights[16 * WARPS];  // registers are short
  int row_m[2], row_head[2];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int i = 16 * warp + g + 8 * r, query = i / heads;
    row_m[r] = query < tile.y ? tile.x + query : -1;
    row_head[r] = kv * group + first_head + i % heads;
    if (t) continue;
    Sight sight = rows.sight(max(row_m[r], tile.x), view);
    if (query >= tile.y) sight.limit = -1;
    sights[i] = sight;
  }
  __syncwarp();
  wait_for_previous();
  let_next_start();

  const int4 span = rows.spans[tile.w];
  const int seen = view.causal ? tile.z : span.w + span.y;
  // Places below `clear` are seen by all rows, but for a window.
  const int begin = rows.lowest(tile, view) / STEP * STEP, steps = (seen - begin + STEP - 1) / STEP,
            clear = span.w;
  auto fetch = [&](int step) {
    if (step < steps) {
      const int token = begin + STEP * step;
      const size_t base = ((size_t)rows.page(tile.w, token / PAGE) * n_kv_heads + kv) * (PAGE * HEAD_DIM) +
                          (size_t)(token % PAGE) * HEAD_DIM;
      u8* to = ring + step % STAGES * STAGE;
#pragma unroll
      for (int i = 0; i < HALF / 16 / (32 * WARPS); i++) {
        const int piece = threadIdx.x + 32 * WARPS * i;
        copy16(to + 16 * (piece ^ ((piece / (HEAD_DIM / 8) & 1) << 2)), keys + base + 8 * piece);
        copy16(to + HALF + 16 * piece, values + base + 8 * piece);
      }
    }
    copies_commit();
  };
#pragma unroll
  for (int i = 0; i < STAGES - 1; i++) fetch(i);
  uint4 q[SLABS][2];
#pragma unroll
  for (int i = 0; i < SLABS; i++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      q[i][r] = make_uint4(0, 0, 0, 0);
      if (row_m[r] >= 0) q[i][r] = ((const uint4*)(queries + ((size_t)row_m[r] * n_heads + row_head[r]) * HEAD_DIM))[4 * i + t];
    }
  float o[2 * GROUPS][4], high[2] = {NEVER, NEVER}, sum[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < 2 * GROUPS; i++)
#pragma unroll
    for (int k = 0; k < 4; k++) o[i][k] = 0;

#pragma unroll 1
  for (int step = 0; step < steps; step++) {
    copies_wait<STAGES - 2>();
    __syncthreads();
    fetch(step + STAGES - 1);
    const int token = begin + STEP * step;
    const u8 *from = ring + step % STAGES * STAGE, *key = from + HEAD_DIM * 2 * g, *value = from + HALF;
    float s[STEP / 8][4] = {};
#pragma unroll
    for (int i = 0; i < SLABS; i++) {
      const u32 a0[4] = {q[i][0].x, q[i][1].x, q[i][0].y, q[i][1].y}, a1[4] = {q[i][0].z, q[i][1].z, q[i][0].w, q[i][1].w};
#pragma unroll
      for (int n = 0; n < STEP / 8; n++) {
        const uint4 k = *(const uint4*)(key + 8 * n * HEAD_DIM * 2 + 16 * ((4 * i + t) ^ ((g & 1) << 2)));
        mma_f16(s[n], a0, k.x, k.y);
        mma_f16(s[n], a1, k.z, k.w);
      }
    }
    const bool check = view.window || token + STEP > clear;
    float shrink[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const Sight& sight = sights[16 * warp + g + 8 * r];
      float most = NEVER;
#pragma unroll
      for (int n = 0; n < STEP / 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          if (check && !sight.of(token + 8 * n + 2 * t + e)) s[n][2 * r + e] = NEVER * 2;
          most = fmaxf(most, s[n][2 * r + e]);
        }
      most = fmaxf(quad_max(most), high[r]);
      shrink[r] = exp2f(high[r] - most);
      high[r] = most;
      sum[r] *= shrink[r];
#pragma unroll
      for (int n = 0; n < STEP / 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          s[n][2 * r + e] = exp2f(s[n][2 * r + e] - most);
          sum[r] += s[n][2 * r + e];
        }
    }
    if (__any_sync(~0u, shrink[0] != 1 || shrink[1] != 1))
#pragma unroll
      for (int i = 0; i < 2 * GROUPS; i++)
#pragma unroll
        for (int k = 0; k < 4; k++) o[i][k] *= shrink[k >> 1];
#pragma unroll
    for (int half = 0; half < STEP / 16; half++) {
      const float(&u)[4] = s[2 * half], (&v)[4] = s[2 * half + 1];
      const u32 weights[4] = {half2_of(u[0], u[1]), half2_of(u[2], u[3]), half2_of(v[0], v[1]), half2_of(v[2], v[3])};
      // Slots beyond the sequence may hold anything, and 0 * NaN is NaN.
      u32 keep[2] = {~0u, ~0u};
      if (token + STEP > seen)
#pragma unroll
        for (int n = 0; n < 2; n++) {
          const int left = seen - (token + 16 * half + 8 * n + 2 * t);
          keep[n] = left >= 2 ? ~0u : left == 1 ? 0xffffu : 0u;
        }
#pragma unroll
      for (int i = 0; i < GROUPS; i++) {
        const uint4 words = *(const uint4*)(value + 16 * ((GROUPS * half + i) * 32 + lane));
        mma_f16(o[2 * i], weights, words.x & keep[0], words.y & keep[1]);
        mma_f16(o[2 * i + 1], weights, words.z & keep[0], words.w & keep[1]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < 2; r++) {
    sum[r] = quad_sum(sum[r]);
    if (row_m[r] < 0) continue;
    const size_t at = (size_t)row_m[r] * n_heads + row_head[r];
    if (t == 0) stats[at] = make_float2(high[r], sum[r]);
#pragma unroll
    for (int i = 0; i < 2 * GROUPS; i++)
      *(float2*)(sums + at * HEAD_DIM + 8 * i + 2 * t) = make_float2(o[i][2 * r], o[i][2 * r + 1]);
  }
}
