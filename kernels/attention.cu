// softmax(q k / sqrt(d)) v over pages, for any number of queries of any number of sequences.
//
// attention: grid (tiles, key/value heads x head groups, splits), 128 threads. A tile is up to 16 (query, head) rows of one
// sequence that share a key/value head: int4 {first batch row, batch rows, tokens seen by the last, sequence}; an empty
// tile has no rows. Tiles come first, so that blocks that read the same pages run at the same time. Split s takes pages s,
// s + splits, ..; of each page a warp takes 16 tokens, with softmax statistics of its own, so that warps meet only at the end.
// The order of sums depends on the split count alone: a row's bits do not depend on the batch. S = Q K^T and O = P V are f16
// mma.m16n8k16 with f32 sums, loads go straight to operand registers. Weights are relative to a whole number, so that another
// one, of another split or of flash.cu, rounds them alike; and what is added up are the rounded ones.
// combine: grid (superblocks, M), up to 4 warps, which share the splits: adds the splits, or with `splits` 0 what blocks of
// flash.cu share, and writes the next product's activations.
// H200, 2026-11-29, 32 heads of 128 over 8: 4.3 us at 128 tokens; at 32,768 about 41 us a layer with combine (134 MB, 74 % of
// read bandwidth); prompt of 2,048: 256 us a layer.
#include "activation.cuh"
#include "pages.cuh"
#include "product.cuh"

constexpr int WARPS = 4, SLABS = HEAD_DIM / 32, GROUPS = HEAD_DIM / 16;
constexpr bool IN_REGISTERS = HEAD_DIM <= 128;  // queries, and values from the start of a page on
constexpr float NEVER = -1e30f;

// `sums` [m][head][split][HEAD_DIM], `stats` [m][head][split]{largest score, sum}; scores are in powers of two.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
attention(const u16* __restrict__ queries, const u16* __restrict__ keys, const u16* __restrict__ values,
          const int4* __restrict__ tiles, Rows rows, View view, int n_heads, int n_kv_heads, int tile_heads,
          float* __restrict__ sums, float2* __restrict__ stats) {
  const int4 tile = tiles[blockIdx.x];
  const int4 span = rows.spans[tile.w];
  const int seen = view.causal ? tile.z : span.w + span.y;  // by the tile's last row
  const int split = blockIdx.z, splits = gridDim.z, pages = (seen + PAGE - 1) / PAGE;
  if (tile.y == 0 || split >= pages) return;  // others wait for the kernel in front, so whoever waits for this one has done so
  const int group = n_heads / n_kv_heads, kv = blockIdx.y % n_kv_heads, first_head = blockIdx.y / n_kv_heads * tile_heads;
  const int heads = min(tile_heads, group - first_head);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;

  // Row i of the tile is head i % heads of query i / heads.
  int row_m[2], row_head[2];
  Sight sight[2];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    const int i = g + 8 * r, query = i / heads;
    row_m[r] = query < tile.y ? tile.x + query : -1;
    row_head[r] = kv * group + first_head + i % heads;
    sight[r] = rows.sight(max(row_m[r], tile.x), view);
    if (query >= tile.y) sight[r].limit = -1;
  }
  const int lowest = rows.lowest(tile, view);
  wait_for_previous();
  let_next_start();
  uint4 q[IN_REGISTERS ? SLABS : 1][2];
  __shared__ uint4 q_shared[IN_REGISTERS ? 1 : SLABS][2][32];
#pragma unroll
  for (int i = 0; i < SLABS; i++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      uint4 words = make_uint4(0, 0, 0, 0);
      if (row_m[r] >= 0)
        words = ((const uint4*)(queries + ((size_t)row_m[r] * n_heads + row_head[r]) * HEAD_DIM))[4 * i + t];
      if (IN_REGISTERS) q[i * IN_REGISTERS][r] = words;
      else if (warp == 0) q_shared[i * !IN_REGISTERS][r][lane] = words;
    }
  if (!IN_REGISTERS) __syncthreads();

  float o[2 * GROUPS][4], high[2] = {NEVER, NEVER}, sum[2] = {0, 0};
#pragma unroll
  for (int i = 0; i < 2 * GROUPS; i++)
#pragma unroll
    for (int k = 0; k < 4; k++) o[i][k] = 0;

#pragma unroll 1
  for (int p = split; p < pages; p += splits) {
    if (PAGE * (p + 1) <= lowest) continue;
    const int token = PAGE * p + 16 * warp;
    if (token >= seen) break;
    const int page = rows.page(tile.w, p);
    const size_t base = ((size_t)page * n_kv_heads + kv) * (PAGE * HEAD_DIM);
    const uint4* key = (const uint4*)(keys + base + (size_t)(16 * warp) * HEAD_DIM);
    const uint4* value = (const uint4*)(values + base + (size_t)(16 * warp) * HEAD_DIM);
    uint4 v[IN_REGISTERS ? GROUPS : 1];
    if (IN_REGISTERS)
#pragma unroll
      for (int i = 0; i < GROUPS; i++) v[i] = __ldg(value + 32 * i + lane);

    float s[2][4] = {};
#pragma unroll
    for (int i = 0; i < SLABS; i++) {
      const uint4 q0 = IN_REGISTERS ? q[i * IN_REGISTERS][0] : q_shared[i * !IN_REGISTERS][0][lane],
                  q1 = IN_REGISTERS ? q[i * IN_REGISTERS][1] : q_shared[i * !IN_REGISTERS][1][lane];
      const u32 a0[4] = {q0.x, q1.x, q0.y, q1.y}, a1[4] = {q0.z, q1.z, q0.w, q1.w};
#pragma unroll
      for (int n = 0; n < 2; n++) {
        const uint4 k = __ldg(key + (8 * n + g) * (HEAD_DIM / 8) + 4 * i + t);
        mma_f16(s[n], a0, k.x, k.y);
        mma_f16(s[n], a1, k.z, k.w);
      }
    }
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float most = NEVER;
#pragma unroll
      for (int n = 0; n < 2; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          if (!sight[r].of(token + 8 * n + 2 * t + e)) s[n][2 * r + e] = NEVER * 2;
          most = fmaxf(most, s[n][2 * r + e]);
        }
      most = fmaxf(ceilf(quad_max(most)), high[r]);
      const float shrink = exp2f(high[r] - most);
      high[r] = most;
      sum[r] *= shrink;
#pragma unroll
      for (int i = 0; i < 2 * GROUPS; i++) o[i][2 * r] *= shrink, o[i][2 * r + 1] *= shrink;
#pragma unroll
      for (int n = 0; n < 2; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) s[n][2 * r + e] = exp2f(s[n][2 * r + e] - most);
    }
    u32 weights[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
      const float* two = &s[k >> 1][2 * (k & 1)];
      weights[k] = half2_of(two[0], two[1]);
      sum[k & 1] += half2_low(weights[k]) + half2_high(weights[k]);
    }
    // Slots beyond the sequence may hold anything, and 0 * NaN is NaN.
    u32 keep[2] = {~0u, ~0u};
    if (token + 16 > seen)
#pragma unroll
      for (int n = 0; n < 2; n++) {
        const int left = seen - (token + 8 * n + 2 * t);
        keep[n] = left >= 2 ? ~0u : left == 1 ? 0xffffu : 0u;
      }
#pragma unroll
    for (int i = 0; i < GROUPS; i++) {
      const uint4 words = IN_REGISTERS ? v[i * IN_REGISTERS] : __ldg(value + 32 * i + lane);
      mma_f16(o[2 * i], weights, words.x & keep[0], words.y & keep[1]);
      mma_f16(o[2 * i + 1], weights, words.z & keep[0], words.w & keep[1]);
    }
  }

  // Warps meet in shared memory, SLOTS of them at a time; the sums are in the order of the warps.
  constexpr int SLOTS = IN_REGISTERS ? WARPS : 1, STRIDE = HEAD_DIM + 8, EACH = 16 * HEAD_DIM / (4 * 32 * WARPS);
  __shared__ float2 warp_stats[WARPS][16];
  __shared__ __align__(16) float total[SLOTS][16][STRIDE];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    sum[r] = quad_sum(sum[r]);
    if (t == 0) warp_stats[warp][g + 8 * r] = make_float2(high[r], sum[r]);
  }
  __syncthreads();
  float share[2];
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float most = NEVER;
#pragma unroll
    for (int w = 0; w < WARPS; w++) most = fmaxf(most, warp_stats[w][g + 8 * r].x);
    share[r] = exp2f(high[r] - most);
    if (warp == 0 && t == 0 && row_m[r] >= 0) {
      float all = 0;
#pragma unroll
      for (int w = 0; w < WARPS; w++) all += warp_stats[w][g + 8 * r].y * exp2f(warp_stats[w][g + 8 * r].x - most);
      stats[((size_t)row_m[r] * n_heads + row_head[r]) * splits + split] = make_float2(most, all);
    }
  }
  const int floats = heads * tile.y * HEAD_DIM;
  float4 all[EACH];
#pragma unroll
  for (int i = 0; i < EACH; i++) all[i] = make_float4(0, 0, 0, 0);
#pragma unroll
  for (int wave = 0; wave < WARPS; wave += SLOTS) {
    if (wave) __syncthreads();
    if (warp >= wave && warp < wave + SLOTS)
#pragma unroll
      for (int r = 0; r < 2; r++)
        if (row_m[r] >= 0)
#pragma unroll
          for (int i = 0; i < 2 * GROUPS; i++)
            *(float2*)&total[warp - wave][g + 8 * r][8 * i + 2 * t] = make_float2(o[i][2 * r] * share[r], o[i][2 * r + 1] * share[r]);
    __syncthreads();
#pragma unroll
    for (int i = 0; i < EACH; i++) {
      const int at = 4 * (threadIdx.x + 32 * WARPS * i);
      if (at >= floats) break;
#pragma unroll
      for (int w = 0; w < SLOTS; w++) {
        const float4 part = *(const float4*)&total[w][at / HEAD_DIM][at % HEAD_DIM];
        all[i].x += part.x, all[i].y += part.y, all[i].z += part.z, all[i].w += part.w;
      }
    }
  }
#pragma unroll
  for (int i = 0; i < EACH; i++) {
    const int at = 4 * (threadIdx.x + 32 * WARPS * i), row = at / HEAD_DIM;
    if (at >= floats) break;
    const size_t m = tile.x + row / heads, h = kv * group + first_head + row % heads;
    *(float4*)(sums + ((m * n_heads + h) * splits + split) * HEAD_DIM + at % HEAD_DIM) = all[i];
  }
}

// `columns` = n_heads * HEAD_DIM. Rows at position -1 become zeros. With gates the result is multiplied by their sigmoid; they
// are every other head of the product's queries.
extern "C" __global__ void __launch_bounds__(128, 4)
combine(const float* __restrict__ sums, const float2* __restrict__ stats, Rows rows, View view, int splits, int columns, Product qkv,
        int gated, Activation out) {
  __shared__ float others[3][18][32];
  const int superblock = blockIdx.x, m = blockIdx.y, lane = threadIdx.x & 31;
  const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5, column = 256 * superblock + 8 * lane;
  const int limit = rows.positions[m] < 0 ? -1 : rows.sight(m, view).limit, used = splits ? min(splits, limit / PAGE + 1) : rows.shares[m] & 15;
  const bool wanted = column < columns && limit >= 0;
  wait_for_previous(out);

  // What was added so far shrinks when a larger score comes.
  float v[8] = {}, gate[8] = {}, most = NEVER, sum = 0;
  auto add = [&](float score, float weight, const float4& a, const float4& b) {
    const float higher = fmaxf(most, score), shrink = power_of_2(most - higher), share = power_of_2(score - higher);
    most = higher;
    sum = sum * shrink + weight * share;
    v[0] = v[0] * shrink + a.x * share, v[1] = v[1] * shrink + a.y * share;
    v[2] = v[2] * shrink + a.z * share, v[3] = v[3] * shrink + a.w * share;
    v[4] = v[4] * shrink + b.x * share, v[5] = v[5] * shrink + b.y * share;
    v[6] = v[6] * shrink + b.z * share, v[7] = v[7] * shrink + b.w * share;
  };
  if (wanted) {
    const int head = column / HEAD_DIM, heads = columns / HEAD_DIM;
    constexpr int BATCH = 4;  // all of them are asked for before the first is added
#pragma unroll 1
    for (int first = warp; first < used; first += BATCH * warps) {
      float2 stat[BATCH];
      float4 a[BATCH], b[BATCH];
#pragma unroll
      for (int i = 0; i < BATCH; i++) {
        const int s = first + i * warps;
        const int some = min(s, used - 1);
        const size_t at = splits ? ((size_t)m * heads + head) * splits + some : (size_t)rows.result(m, some) * heads + head;
        const float* from = sums + at * HEAD_DIM + column % HEAD_DIM;
        stat[i] = __ldcg(stats + at);
        a[i] = load4(from, s < used), b[i] = load4(from + 4, s < used);
      }
#pragma unroll
      for (int i = 0; i < BATCH; i++)
        if (first + i * warps < used) add(stat[i].x, stat[i].y, a[i], b[i]);
    }
  }
  if (gated && warp == warps - 1) {  // which has the fewest splits
    const int at = wanted ? column : 0;
    const float squares = read_squares(qkv, m);
    add_up(addends_of(qkv, m, (2 * (at / HEAD_DIM) + 1) * HEAD_DIM + at % HEAD_DIM), gate);
    const float factor = factor_of(qkv, squares);
#pragma unroll
    for (int i = 0; i < 8; i++) gate[i] *= factor;
  }
  if (warps > 1) {
    if (warp > 0) {
      float* to = &others[warp - 1][0][lane];
      to[0] = most, to[32] = sum;
#pragma unroll
      for (int i = 0; i < 8; i++) to[32 * (2 + i)] = v[i], to[32 * (10 + i)] = gate[i];
    }
    __syncthreads();
    if (warp > 0) return;
#pragma unroll 1
    for (int w = 0; w < warps - 1; w++) {
      const float* from = &others[w][0][lane];
      add(from[0], from[32], make_float4(from[64], from[96], from[128], from[160]),
          make_float4(from[192], from[224], from[256], from[288]));
    }
#pragma unroll
    for (int i = 0; i < 8; i++) gate[i] = others[warps - 2][10 + i][lane];
  }
  const float whole = wanted ? __fdividef(1.0f, sum) : 0;
#pragma unroll
  for (int i = 0; i < 8; i++) {
    v[i] *= whole;
    if (gated && wanted) v[i] *= __fdividef(1.0f, 1 + __expf(-gate[i]));
  }
  write_activation(out, m, superblock, v);
}

constexpr int ROWS = 2;

// The same for many rows, of a product that lies whole where there are gates: grid (superblocks, ceil(M / (4 ROWS))), 128 threads,
// a warp 256 columns of ROWS rows.
extern "C" __global__ void __launch_bounds__(128, 7)
combine_rows(const float* __restrict__ sums, const float2* __restrict__ stats, Rows rows, int columns, int M, Product qkv, int gated,
             Activation out) {
  const int superblock = blockIdx.x, first = ROWS * (4 * blockIdx.y + (threadIdx.x >> 5)), column = piece_column(superblock);
  const int head = min(column, columns - 1) / HEAD_DIM;  // of both pieces
  const float* factors = gated ? factors_at(qkv, (2 * head + 1) * HEAD_DIM) : nullptr;
  wait_for_previous();
  let_next_start();
  float4 part[ROWS][2], gate[ROWS][2];
  float squares[ROWS], factor[ROWS], whole[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int m = min(first + r, M - 1);
    const bool is_there = rows.positions[m] >= 0;
    const float *from = sums + (size_t)m * columns + column, *of_gate = qkv.y + (size_t)m * qkv.width + column + (head + 1) * HEAD_DIM;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const bool inside = is_there && column + 16 * i < columns;
      part[r][i] = load4(from + 16 * i, inside), gate[r][i] = load4(of_gate + 16 * i, inside && gated);
    }
    const int heads = columns / HEAD_DIM, shares = is_there ? rows.shares[m] & 15 : 0;
    float2 all = is_there ? __ldcg(stats + (size_t)m * heads + head) : make_float2(0, 1);
#pragma unroll 1
    for (int s = 1; s < shares; s++) {
      const size_t at = (size_t)rows.result(m, s) * heads + head;
      const float2 more = __ldcg(stats + at);
      const float higher = fmaxf(all.x, more.x), shrink = power_of_2(all.x - higher), share = power_of_2(more.x - higher);
      all = make_float2(higher, all.y * shrink + more.y * share);
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const float4 v = load4(sums + at * HEAD_DIM + column % HEAD_DIM + 16 * i, column + 16 * i < columns);
        float4& p = part[r][i];
        p = make_float4(p.x * shrink + v.x * share, p.y * shrink + v.y * share, p.z * shrink + v.z * share, p.w * shrink + v.w * share);
      }
    }
    whole[r] = is_there ? __fdividef(1.0f, all.y) : 0;
    squares[r] = gated ? read_squares(qkv, m) : 0, factor[r] = factors ? load1(factors + m, true) : 1;
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    if (first + r >= M) return;
    const float f = gated ? factor[r] * factor_of(qkv, squares[r]) : 0;
    const float4 a = part[r][0], b = part[r][1], c = gate[r][0], d = gate[r][1];
    const float g[8] = {c.x, c.y, c.z, c.w, d.x, d.y, d.z, d.w};
    float v[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
    for (int j = 0; j < 8; j++) {
      v[j] *= whole[r];
      if (gated) v[j] = __fdividef(v[j], 1 + __expf(-f * g[j]));
    }
    write_pieces(out, first + r, superblock, v);
  }
}
