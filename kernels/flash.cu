// softmax(q k / sqrt(d)) v over pages for long steps, for the `combine` of attention.cu; blocks may share the pages of a tile.
//
// Grid (key/value heads x head groups, 1, tiles), WARPS warps. A tile is up to 16 TILES WARPS (query, head) rows of one
// sequence that share a key/value head, as in attention.cu; a warp has 16 TILES of them, so that a fragment of keys or values
// read from shared memory serves TILES products. Keys and values go through a ring in shared memory, STEP tokens a stage. Pieces
// of 16 bytes of odd tokens' keys change places 64 bytes apart, so that a quarter warp reads all banks. The tiles that see most
// come first. A row's weights are relative to a whole number above a score that was once its largest (attention.cu says why);
// only where one is LATE above that, all of the row shrinks. So a usual stage needs no row's largest score, and its products
// begin at minus the old one. Tensor cores add up the weights too, which leaves other units to the powers of two.
// H200, 2026-12-01, 2,048 queries behind 0 and 14,336 tokens: 32 heads of 128 over 8 108 and 1,299 us a layer (397 TFLOP/s), 24
// of 256 over 4 211 and 2,491 us (311), 32 of 64 over 8 66 and 767 us (336).
#include "pages.cuh"

constexpr int SLABS = HEAD_DIM / 32, GROUPS = HEAD_DIM / 16, HALF = STEP * HEAD_DIM * 2, STAGE = 2 * HALF, ROWS = 16 * TILES;
constexpr int KEPT = SLABS - Q_SHARED;
constexpr float NEVER = -1e30f, LATE = 8;
DEVICE int after(int slot) { return slot + STAGE < STAGES * STAGE ? slot + STAGE : 0; }
typedef float Scores[TILES][STEP / 8][4];

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
flash(const u16* __restrict__ queries, const u16* __restrict__ keys, const u16* __restrict__ values,
      const int4* __restrict__ tiles, Rows rows, View view, int n_heads, int n_kv_heads, int tile_heads,
      float* __restrict__ sums, float2* __restrict__ stats) {
  extern __shared__ __align__(128) u8 ring[];
  const int4 tile = tiles[gridDim.z - 1 - blockIdx.z];
  const int n_rows = tile.y & 255, share = tile.y >> 8;
  const int group = n_heads / n_kv_heads, kv = blockIdx.x % n_kv_heads, first_head = blockIdx.x / n_kv_heads * tile_heads;
  const int heads = min(tile_heads, group - first_head);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int4 span = rows.spans[tile.w];
  const int seen = view.causal ? tile.z : span.w + span.y;
  if (n_rows == 0) {
    wait_for_previous();
    return;
  }
  auto place_of = [&](int i, int m) { return m * n_heads + kv * group + first_head + i % heads; };
  // Registers are short: what the rows of a tile see, and as `first`, which is the same for all of them, which head of `sums` and
  // `stats` is theirs: two blocks with 48 KB of stages just fit 100 KB.
  __shared__ Sight sights[ROWS * WARPS];
  auto result_of = [&](int n, int r) { return sights[ROWS * warp + 16 * n + 8 * r + g].first; };
  for (int i = ROWS * warp + lane; i < ROWS * (warp + 1); i += 32) {
    const int query = i / heads;
    Sight sight = rows.sight(tile.x + min(query, n_rows - 1), view);
    if (query >= n_rows) sight.limit = -1;
    sight.first = query < n_rows ? place_of(i, rows.result(tile.x + query, share)) : -1;
    sights[i] = sight;
  }
  __syncwarp();
  wait_for_previous();
  let_next_start();

  // Places below `clear` are seen by all rows, but for a window. Trees have up to 32 rows.
  const int clear = !view.causal ? seen : span.y > 32 ? tile.z - n_rows + 1 : span.w;
  // Each share is as many pages of all that the sequence has.
  const int shares = rows.shares[tile.x] & 15, each = ((span.w + span.y + PAGE - 1) / PAGE + shares - 1) / shares * PAGE;
  const int begin = max(rows.lowest(tile, view) / STEP * STEP, share * each), end = min(seen, (share + 1) * each);
  const int* const pages = rows.page_table + (size_t)tile.w * rows.pages_per_sequence;
  // Of the next stage; its page is asked for one stage before.
  int page = begin < end ? pages[begin / PAGE] : 0, next = begin, slot = 0;
  auto fetch = [&]() {
    if (next < end) {
      const size_t base = ((size_t)page * n_kv_heads + kv) * (PAGE * HEAD_DIM) + (next % PAGE) * HEAD_DIM;
      u8* to = ring + slot;
#pragma unroll
      for (int i = 0; i < HALF / 16 / (32 * WARPS); i++) {
        const int piece = threadIdx.x + 32 * WARPS * i;
        copy16(to + 16 * (piece ^ ((piece / (HEAD_DIM / 8) & 1) << 2)), keys + base + 8 * piece);
        copy16(to + HALF + 16 * piece, values + base + 8 * piece);
      }
      next += STEP, slot = after(slot);
      if (next < end) page = pages[next / PAGE];
    }
    copies_commit();
  };
#pragma unroll
  for (int i = 0; i < STAGES - 1; i++) fetch();
  // Queries stay in registers, but for Q_SHARED slabs, which each lane has in shared memory behind the ring.
  uint4 q[KEPT ? KEPT : 1][TILES][2];
  auto q_shared = [&](int i, int n, int r) -> uint4& {
    return ((uint4*)(ring + STAGES * STAGE))[(((warp * Q_SHARED + i) * TILES + n) * 2 + r) * 32 + lane];
  };
#pragma unroll
  for (int n = 0; n < TILES; n++) {
    const uint4* from[2];
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int i = ROWS * warp + 16 * n + 8 * r + g, query = min(i / heads, n_rows - 1);
      from[r] = (const uint4*)(queries + (size_t)place_of(i, tile.x + query) * HEAD_DIM);
    }
#pragma unroll
    for (int i = 0; i < SLABS; i++) {
      const uint4 words[2] = {from[0][4 * i + t], from[1][4 * i + t]};
      const uint4 low = make_uint4(words[0].x, words[1].x, words[0].y, words[1].y);
      const uint4 high = make_uint4(words[0].z, words[1].z, words[0].w, words[1].w);
      if (i >= Q_SHARED) q[max(i - Q_SHARED, 0)][n][0] = low, q[max(i - Q_SHARED, 0)][n][1] = high;
      else q_shared(i, n, 0) = low, q_shared(i, n, 1) = high;
    }
  }
  float o[TILES][2 * GROUPS][4], high[TILES][2], sum[TILES][2];
#pragma unroll
  for (int n = 0; n < TILES; n++) {
    sum[n][0] = sum[n][1] = 0;
#pragma unroll
    for (int r = 0; r < 2; r++) high[n][r] = result_of(n, r) < 0 ? 0 : NEVER;
#pragma unroll
    for (int i = 0; i < 2 * GROUPS; i++)
#pragma unroll
      for (int k = 0; k < 4; k++) o[n][i][k] = 0;
  }

  int now = 0;
  auto multiply = [&](int from, Scores& s) {
    const u8* key = ring + from + HEAD_DIM * 2 * g;
#pragma unroll
    for (int n = 0; n < TILES; n++)
#pragma unroll
      for (int c = 0; c < STEP / 8; c++)
#pragma unroll
        for (int k = 0; k < 4; k++) s[n][c][k] = high[n][k >> 1] > NEVER ? -high[n][k >> 1] : 0;
#pragma unroll
    for (int i = 0; i < SLABS; i++) {
      uint4 a[TILES][2];
#pragma unroll
      for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int r = 0; r < 2; r++) a[n][r] = i < Q_SHARED ? q_shared(i, n, r) : q[max(i - Q_SHARED, 0)][n][r];
#pragma unroll
      for (int c = 0; c < STEP / 8; c++) {
        const uint4 k = *(const uint4*)(key + 8 * c * HEAD_DIM * 2 + 16 * ((4 * i + t) ^ ((g & 1) << 2)));
#pragma unroll
        for (int n = 0; n < TILES; n++) {
          mma_f16(s[n][c], (const u32(&)[4])a[n][0], k.x, k.y);
          mma_f16(s[n][c], (const u32(&)[4])a[n][1], k.z, k.w);
        }
      }
    }
  };
  auto add = [&](int token, int from, Scores& s) {
    if (view.window || token + STEP > clear)
#pragma unroll
      for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
          Sight sight = sights[ROWS * warp + 16 * n + 8 * r + g];
          sight.first = clear;  // which is `span.w` for trees, and of no use to others
#pragma unroll
          for (int c = 0; c < STEP / 8; c++)
#pragma unroll
            for (int e = 0; e < 2; e++)
              if (!sight.of(token + 8 * c + 2 * t + e)) s[n][c][2 * r + e] = NEVER * 2;
        }
    float top = NEVER;
    bool late = false;
#pragma unroll
    for (int n = 0; n < TILES; n++) {
      late |= high[n][0] <= NEVER || high[n][1] <= NEVER;
#pragma unroll
      for (int c = 0; c < STEP / 8; c++)
#pragma unroll
        for (int k = 0; k < 4; k++) top = fmaxf(top, s[n][c][k]);
    }
    if (__any_sync(~0u, late || top > LATE)) {
      float most[TILES][2];
#pragma unroll
      for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
          most[n][r] = NEVER * 2;
#pragma unroll
          for (int c = 0; c < STEP / 8; c++) most[n][r] = fmaxf(most[n][r], fmaxf(s[n][c][2 * r], s[n][c][2 * r + 1]));
          most[n][r] = quad_max(most[n][r]);
        }
#pragma unroll
      for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int r = 0; r < 2; r++) {
          const bool first = high[n][r] <= NEVER, seen_one = most[n][r] > NEVER;
          const float by = seen_one && (first || most[n][r] > LATE) ? ceilf(most[n][r]) : 0, shrink = first ? 1 : power_of_2(-by);
          if (seen_one) high[n][r] = first ? by : high[n][r] + by;
          sum[n][r] *= shrink;
#pragma unroll
          for (int c = 0; c < STEP / 8; c++) s[n][c][2 * r] -= by, s[n][c][2 * r + 1] -= by;
#pragma unroll
          for (int i = 0; i < 2 * GROUPS; i++) o[n][i][2 * r] *= shrink, o[n][i][2 * r + 1] *= shrink;
        }
    }
    const u8* value = ring + from + HALF;
#pragma unroll
    for (int half = 0; half < STEP / 16; half++) {
      u32 weights[TILES][4];
#pragma unroll
      for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
          const float* two = &s[n][2 * half + (k >> 1)][2 * (k & 1)];
          weights[n][k] = half2_at_once(power_of_2(two[0]), power_of_2(two[1]));
        }
#pragma unroll
      for (int n = 0; n < TILES; n++) {
        constexpr u32 ONES = 0x3c003c00u;
        float all[4] = {sum[n][0], 0, sum[n][1], 0};
        mma_f16(all, weights[n], ONES, ONES);
        sum[n][0] = all[0], sum[n][1] = all[2];
      }
#pragma unroll
      for (int i = 0; i < GROUPS; i++) {
        const uint4 words = *(const uint4*)(value + 16 * ((GROUPS * half + i) * 32 + lane));
#pragma unroll
        for (int n = 0; n < TILES; n++) {
          mma_f16(o[n][2 * i], weights[n], words.x, words.y);
          mma_f16(o[n][2 * i + 1], weights[n], words.z, words.w);
        }
      }
    }
  };

#pragma unroll 1
  for (int token = begin; token < end; token += STEP) {
    copies_wait<STAGES - 2>();
    __syncthreads();
    fetch();
    if (token + STEP > end) {
      // Slots beyond the sequence may hold anything, and 0 * NaN is NaN.
      for (int i = threadIdx.x; i < HALF / 16; i += 32 * WARPS) {
        const int left = end - token - i / (HEAD_DIM * 2) * 16 - i % 4 * 2;
        u32* const words = (u32*)(ring + now + HALF + 16 * i);
#pragma unroll
        for (int k = 0; k < 4; k++) {
          const int of_word = left - (k & 1) * 8;
          words[k] &= of_word >= 2 ? ~0u : of_word == 1 ? 0xffffu : 0u;
        }
      }
      __syncthreads();
    }
    Scores s;
    multiply(now, s);
    add(token, now, s);
    now = after(now);
  }
#pragma unroll
  for (int n = 0; n < TILES; n++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int result = result_of(n, r);
      if (result < 0) continue;
      const size_t at = result;
      if (t == 0) stats[at] = make_float2(high[n][r], sum[n][r]);
      float* to = sums + at * HEAD_DIM + 2 * t;
#pragma unroll
      for (int i = 0; i < 2 * GROUPS; i++) *(float2*)(to + 8 * i) = make_float2(o[n][i][2 * r], o[n][i][2 * r + 1]);
    }
}
