// softmax(q k / sqrt(d)) v over pages, for any number of queries of any number of sequences.
//
// attention, attention_wide: grid (tiles, key/value heads x head groups, splits), 32 WARPS threads. A tile is up to 16 or 32 (query,
// head) rows of one sequence that share a key/value head: int4 {first batch row, batch rows, tokens seen by the last, sequence}; an
// empty tile has no rows. Tiles come first, so that blocks that read the same pages run at the same time. Split s takes pages s,
// s + splits, ..; of each page a warp multiplies the keys of 16 tokens (heads of 256: 8), all find the rows' largest scores together,
// and each adds up 32 dims of all values. Keys and values go straight to operand registers, which all of the tile's rows share.
// The order of sums depends on the split count alone: a row's bits do not depend on the batch. S = Q K^T and O = P V are f16
// mma.m16n8k16 with f32 sums. Weights are relative to a whole number, so that another one, of another split or of flash.cu,
// rounds them alike; and what is added up are the rounded ones.
// combine: grid (superblocks, M), up to 4 warps, which share the splits: adds the splits, or with `splits` 0 what blocks of
// flash.cu share, and writes the next product's activations.
// H200, 2026-11-29, 32 heads of 128 over 8: 4.3 us at 128 tokens; at 32,768 about 41 us a layer with combine (134 MB, 74 % of
// read bandwidth); prompt of 2,048: 256 us a layer.
#include "activation.cuh"
#include "pages.cuh"
#include "product.cuh"

constexpr int WARPS = HEAD_DIM == 256 ? 8 : 4, SLABS = HEAD_DIM / 32;
constexpr int EIGHTS = PAGE / 8 / WARPS, GROUPS = HEAD_DIM / 16 / WARPS;  // of a warp: 8 tokens each of keys, 16 dims each of values
constexpr float NEVER = -1e30f;

// `sums` [m][head][split][HEAD_DIM], `stats` [m][head][split]{largest score, sum}; scores are in powers of two.
template <int R>
DEVICE void attend(const u16* __restrict__ queries, const u16* __restrict__ keys, const u16* __restrict__ values,
                   const int4* __restrict__ tiles, const Rows& rows, const View& view, int n_heads, int n_kv_heads, int tile_heads,
                   float* __restrict__ sums, float2* __restrict__ stats) {
  __shared__ uint4 q[R][SLABS][2][32], weights[R][PAGE / 16][32];
  __shared__ float found[WARPS][16 * R];
  __shared__ int4 row[16 * R];
  const int4 tile = tiles[blockIdx.x];
  const int split = blockIdx.z, splits = gridDim.z;
  if (tile.y == 0 || (view.causal && PAGE * split >= tile.z)) return;  // whoever waits for this kernel waits for the other blocks
  const int4 span = rows.spans[tile.w];
  const int seen = view.causal ? tile.z : span.w + span.y, lowest = rows.lowest(tile, view);  // by the tile's last row, by none
  int page = split;
  while (PAGE * (page + 1) <= lowest) page += splits;
  if (PAGE * split >= seen) return;
  const int group = n_heads / n_kv_heads, kv = blockIdx.y % n_kv_heads, first_head = blockIdx.y / n_kv_heads * tile_heads;
  const int heads = min(tile_heads, group - first_head);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;

  // Row i of the tile is head i % heads of query i / heads: what it sees, and its number among all, -1 for none.
  if (threadIdx.x < 16 * R) {
    const int i = threadIdx.x, query = i / heads, m = tile.x + query;
    const bool there = query < tile.y;
    const Sight sight = rows.sight(there ? m : tile.x, view);
    row[i] = make_int4(there ? sight.limit : -1, sight.low, sight.mask, there ? m * n_heads + kv * group + first_head + i % heads : -1);
  }

  float o[R][2 * GROUPS][4], high[R][2], sum[R][2];
#pragma unroll
  for (int r = 0; r < R; r++) {
    high[r][0] = high[r][1] = NEVER, sum[r][0] = sum[r][1] = 0;
#pragma unroll
    for (int i = 0; i < 2 * GROUPS; i++)
#pragma unroll
      for (int e = 0; e < 4; e++) o[r][i][e] = 0;
  }
  // The kernel in front writes to places of the step's rows alone: what lies before them is on its way before it ends.
  bool waited = false, is_first = true;
  if (PAGE * (page + 1) > span.w) {
    wait_for_previous();
    waited = true;
  }
#pragma unroll 1
  for (; is_first || PAGE * page < seen; page += splits) {
    uint4 k[EIGHTS][SLABS], v[PAGE / 16][GROUPS];
    const size_t base = ((size_t)rows.page(tile.w, min(page, (seen - 1) / PAGE)) * n_kv_heads + kv) * (PAGE * HEAD_DIM);
    const uint4* key = (const uint4*)(keys + base) + (8 * EIGHTS * warp + g) * (HEAD_DIM / 8) + t;
    const uint4* value = (const uint4*)(values + base) + 32 * GROUPS * warp + lane;
#pragma unroll
    for (int n = 0; n < EIGHTS; n++)
#pragma unroll
      for (int i = 0; i < SLABS; i++) k[n][i] = __ldg(key + n * HEAD_DIM + 4 * i);
#pragma unroll
    for (int c = 0; c < PAGE / 16; c++)
#pragma unroll
      for (int i = 0; i < GROUPS; i++) v[c][i] = __ldg(value + 2 * HEAD_DIM * c + 32 * i);
    if (is_first) {
      __syncthreads();
      if (!waited) wait_for_previous();
      let_next_start();
#pragma unroll
      for (int j = 0; j < 2 * SLABS * R / WARPS; j++) {
        const int number = warp + WARPS * j, r = number / (2 * SLABS), i = number / 2 % SLABS, e = number & 1;
        const int at = row[16 * r + 8 * e + g].w;
        uint4 words = make_uint4(0, 0, 0, 0);
        if (at >= 0) words = ((const uint4*)(queries + (size_t)at * HEAD_DIM))[4 * i + t];
        q[r][i][e][lane] = words;
      }
      __syncthreads();
      is_first = false;
    }

    float s[R][EIGHTS][4];
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
      for (int n = 0; n < EIGHTS; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) s[r][n][e] = 0;
#pragma unroll
      for (int i = 0; i < SLABS; i++) {
        const uint4 q0 = q[r][i][0][lane], q1 = q[r][i][1][lane];
        const u32 a0[4] = {q0.x, q1.x, q0.y, q1.y}, a1[4] = {q0.z, q1.z, q0.w, q1.w};
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) {
          mma_f16(s[r][n], a0, k[n][i].x, k[n][i].y);
          mma_f16(s[r][n], a1, k[n][i].z, k[n][i].w);
        }
      }
    }
    if (PAGE * (page + 1) > span.w || view.window) {
      const int token = PAGE * page + 8 * EIGHTS * warp + 2 * t;
#pragma unroll
      for (int r = 0; r < R; r++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          const int4 its = row[16 * r + 8 * e + g];
          const Sight sight = {its.x, its.y, span.w, (u32)its.z};
#pragma unroll
          for (int n = 0; n < EIGHTS; n++)
#pragma unroll
            for (int i = 0; i < 2; i++)
              if (!sight.of(token + 8 * n + i)) s[r][n][2 * e + i] = 2 * NEVER;
        }
    }
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        float most = NEVER;
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) most = fmaxf(most, fmaxf(s[r][n][2 * e], s[r][n][2 * e + 1]));
        most = quad_max(most);
        if (t == 0) found[warp][16 * r + 8 * e + g] = most;
      }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < R; r++) {
#pragma unroll
      for (int e = 0; e < 2; e++) {
        float most = high[r][e];
#pragma unroll
        for (int w = 0; w < WARPS; w++) most = fmaxf(most, found[w][16 * r + 8 * e + g]);
        most = ceilf(most);
        const float shrink = power_of_2(high[r][e] - most);
        high[r][e] = most;
        sum[r][e] *= shrink;
#pragma unroll
        for (int i = 0; i < 2 * GROUPS; i++) o[r][i][2 * e] *= shrink, o[r][i][2 * e + 1] *= shrink;
#pragma unroll
        for (int n = 0; n < EIGHTS; n++) {
          const u32 two = half2_of(power_of_2(s[r][n][2 * e] - most), power_of_2(s[r][n][2 * e + 1] - most));
          const int eight = EIGHTS * warp + n;
          ((u32*)&weights[r][eight >> 1][lane])[2 * (eight & 1) + e] = two;
          sum[r][e] += half2_low(two) + half2_high(two);
        }
      }
    }
    __syncthreads();
    if (PAGE * (page + 1) > seen)  // what lies there may be anything, and 0 * NaN is NaN
#pragma unroll
      for (int c = 0; c < PAGE / 16; c++) {
        const int left = seen - (PAGE * page + 16 * c + 2 * t);
        const u32 low = left >= 2 ? ~0u : left == 1 ? 0xffffu : 0u, high = left >= 10 ? ~0u : left == 9 ? 0xffffu : 0u;
#pragma unroll
        for (int i = 0; i < GROUPS; i++) v[c][i].x &= low, v[c][i].z &= low, v[c][i].y &= high, v[c][i].w &= high;
      }
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
      for (int c = 0; c < PAGE / 16; c++) {
        const uint4 w = weights[r][c][lane];
        const u32 a[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
        for (int i = 0; i < GROUPS; i++) {
          mma_f16(o[r][2 * i], a, v[c][i].x, v[c][i].y);
          mma_f16(o[r][2 * i + 1], a, v[c][i].z, v[c][i].w);
        }
      }
  }

#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      sum[r][e] = quad_sum(sum[r][e]);
      if (t == 0) found[warp][16 * r + 8 * e + g] = sum[r][e];
      const int number = row[16 * r + 8 * e + g].w;
      if (number < 0) continue;
      float* to = sums + ((size_t)number * splits + split) * HEAD_DIM + 16 * GROUPS * warp + 2 * t;
#pragma unroll
      for (int i = 0; i < 2 * GROUPS; i++) *(float2*)(to + 8 * i) = make_float2(o[r][i][2 * e], o[r][i][2 * e + 1]);
    }
  __syncthreads();
  if (warp > 0 || t > 0) return;
#pragma unroll
  for (int r = 0; r < R; r++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      const int number = row[16 * r + 8 * e + g].w;
      float all = 0;
#pragma unroll
      for (int w = 0; w < WARPS; w++) all += found[w][16 * r + 8 * e + g];
      if (number >= 0) stats[(size_t)number * splits + split] = make_float2(high[r][e], all);
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
attention(const u16* __restrict__ queries, const u16* __restrict__ keys, const u16* __restrict__ values,
          const int4* __restrict__ tiles, Rows rows, View view, int n_heads, int n_kv_heads, int tile_heads,
          float* __restrict__ sums, float2* __restrict__ stats) {
  attend<1>(queries, keys, values, tiles, rows, view, n_heads, n_kv_heads, tile_heads, sums, stats);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
attention_wide(const u16* __restrict__ queries, const u16* __restrict__ keys, const u16* __restrict__ values,
               const int4* __restrict__ tiles, Rows rows, View view, int n_heads, int n_kv_heads, int tile_heads,
               float* __restrict__ sums, float2* __restrict__ stats) {
  attend<2>(queries, keys, values, tiles, rows, view, n_heads, n_kv_heads, tile_heads, sums, stats);
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
