// softmax(q k / sqrt(d)) v over pages for short steps: any number of queries of any number of sequences.
//
// attention: grid (key/value heads x head groups, splits, tiles), 8 warps. A tile is up to ROWS = 16 TILES (query, head) rows of one
// sequence that share a key/value head: int4 {first batch row, batch rows, tokens seen by the last, sequence}; an empty tile has no
// rows. Split s takes pages s, s + splits, .., in steps of STEP tokens through a ring in shared memory, so that a page is fetched once
// for all rows; what earlier steps left there is fetched while the kernel in front still runs. Of a step, a warp scores 16 tokens for
// every SCORERS-th 16 rows, then adds 32 dims of the values for every ADDERS-th. The order of sums depends on STEP and the split
// count alone: a row's bits do not depend on the batch; `fmaf` leaves the compiler no choice that could differ between builds. S = Q K^T and O = P V are f16 mma.m16n8k16 with f32 sums.
// WHOLE, for a few rows, does the work of rope_store and combine too: every block makes its own queries, the block with a new
// row's page makes and stores its key and value, and the last block of a row to end adds the splits.
// combine: grid (superblocks, M), up to 4 warps, which share the splits: adds the splits and writes the next product's activations.
#include "activation.cuh"
#include "heads.cuh"

constexpr int WARPS = 8, THREADS = 32 * WARPS, ROWS = 16 * TILES, TEAM = 4, TEAMS = WARPS / TEAM;
constexpr int SLABS = HEAD_DIM / 32, STRIPES = STEP / 16, SCORERS = WARPS / STRIPES, SCORED = (TILES + SCORERS - 1) / SCORERS;
constexpr int DIM_WARPS = HEAD_DIM / 32, ADDERS = WARPS / DIM_WARPS, ADDED = (TILES + ADDERS - 1) / ADDERS;
constexpr int HALF = STEP * HEAD_DIM * 2, STAGE = 2 * HALF, SUBS = PAGE / STEP;
constexpr int Q_STRIDE = HEAD_DIM + 32, P_STRIDE = STEP + 8;  // halves; rows lie in different banks
constexpr float NEVER = -1e30f;

// The key's or value's halves 8 i .. of a token in a stage. Pieces of odd tokens' keys change places 64 bytes apart, so that a
// quarter warp reads all banks.
DEVICE int key_piece(int token, int i) { return (token * (HEAD_DIM / 8) + i) ^ ((token & 1) << 2); }

// Queries' sums over the tokens of a split: [m][head][split][HEAD_DIM], with [m][head][split]{largest score, sum}.
struct Splits {
  float* sums;
  float2* stats;
  int count;
};

// 256 columns of row m, which sees places up to `limit`, from the splits; `warps` of a block share them, this is number `warp`, and
// each passes the barrier. Rows with limit -1 become zeros. With gates the result is multiplied by their sigmoid; they are every
// other head of the product's queries. `real` is false for a team without work.
DEVICE void combine_row(const Splits& splits, const Product& qkv, int gated, const Activation& out, int m, int superblock, int limit,
                        bool real, int warp, int warps, float (*others)[18][32]) {
  const int lane = threadIdx.x & 31, column = 256 * superblock + 8 * lane, used = min(splits.count, limit / PAGE + 1);
  const bool wanted = real && column < out.columns && limit >= 0;
  float v[8] = {}, most = NEVER, sum = 0, gate[8] = {};
  // What was added so far shrinks when a larger score comes.
  auto add = [&](float score, float weight, const float4& a, const float4& b) {
    const float higher = fmaxf(most, score), shrink = exp2f(most - higher), share = exp2f(score - higher);
    most = higher;
    sum = fmaf(sum, shrink, weight * share);
    v[0] = fmaf(v[0], shrink, a.x * share), v[1] = fmaf(v[1], shrink, a.y * share);
    v[2] = fmaf(v[2], shrink, a.z * share), v[3] = fmaf(v[3], shrink, a.w * share);
    v[4] = fmaf(v[4], shrink, b.x * share), v[5] = fmaf(v[5], shrink, b.y * share);
    v[6] = fmaf(v[6], shrink, b.z * share), v[7] = fmaf(v[7], shrink, b.w * share);
  };
  if (wanted) {
    const size_t row = ((size_t)m * out.columns + column) / HEAD_DIM * splits.count;
    const float* from = splits.sums + row * HEAD_DIM + column % HEAD_DIM;
    constexpr int AT_ONCE = 4;
#pragma unroll 1
    for (int first = warp; first < used; first += AT_ONCE * warps) {
      float2 stat[AT_ONCE];
      float4 a[AT_ONCE], b[AT_ONCE];
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++) {
        const int s = first + i * warps;
        stat[i] = __ldcg(splits.stats + row + min(s, used - 1));
        a[i] = load4(from + s * HEAD_DIM, s < used), b[i] = load4(from + s * HEAD_DIM + 4, s < used);
      }
#pragma unroll
      for (int i = 0; i < AT_ONCE; i++)
        if (first + i * warps < used) add(stat[i].x, stat[i].y, a[i], b[i]);
    }
  }
  if (gated && warp == warps - 1 && real) {
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
    if (warp > 0 || !real) return;
    for (int w = 0; w < warps - 1; w++) {
      const float* from = &others[w][0][lane];
      add(from[0], from[32], make_float4(from[64], from[96], from[128], from[160]),
          make_float4(from[192], from[224], from[256], from[288]));
    }
#pragma unroll
    for (int i = 0; i < 8; i++) gate[i] = others[warps - 2][10 + i][lane];
  }
#pragma unroll
  for (int i = 0; i < 8; i++) {
    v[i] = wanted ? v[i] / sum : 0;
    if (gated && wanted) v[i] /= 1 + __expf(-gate[i]);
  }
  write_activation(out, m, superblock, v);
}

// `ended` counts blocks, and is zero before and after: one for each tile and head. Without WHOLE, `queries` are there already.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
attention(Product qkv, Rows rows, View view, Heads heads, const int4* __restrict__ tiles, int tile_heads, int M, const u16* __restrict__ queries, u16* keys, u16* values, Splits splits, u32* ended, Activation out) {
  extern __shared__ __align__(128) u8 ring[];
  u16* q_shared = (u16*)(ring + STAGES * STAGE);
  u16* p_shared = q_shared + ROWS * Q_STRIDE;
  float* most_of = (float*)(p_shared + ROWS * P_STRIDE);  // [stripe][row], then the sums
  float* shrink_of = most_of + STRIPES * ROWS;
  Sight* sights = (Sight*)(shrink_of + ROWS);
  float* rooms = (float*)(sights + ROWS);               // WHOLE: of a warp's head
  u16* fresh = (u16*)(rooms + (WHOLE ? WARPS * HEAD_DIM : 0));  // WHOLE: new rows' keys and values

  const int4 tile = tiles[blockIdx.z], span = rows.spans[tile.w];
  const int seen = view.causal ? tile.z : span.w + span.y;  // by the tile's last row
  const int split = blockIdx.y, pages = (seen + PAGE - 1) / PAGE, used = min(splits.count, pages);
  if (tile.y == 0 || split >= pages) return;  // others wait for the kernel in front, so that whoever waits for this one has done so
  const int n_heads = heads.n_heads, n_kv_heads = heads.n_kv_heads, group = n_heads / n_kv_heads, head_groups = gridDim.x / n_kv_heads;
  const int kv = blockIdx.x / head_groups, head_group = blockIdx.x % head_groups, first_head = kv * group + head_group * tile_heads;
  const int tile_width = min(tile_heads, group - head_group * tile_heads), in_tile = tile.y * tile_width;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;

  // Row i of the tile is head i % tile_width of query i / tile_width. Its steps: the SUBS of page split, of page split + splits, ..
  const int lowest = rows.lowest(tile, view), low_page = lowest / PAGE;
  const int low_turn = low_page <= split ? 0 : (low_page - split + splits.count - 1) / splits.count;
  const int turns = (pages - split + splits.count - 1) / splits.count, last_page = split + (turns - 1) * splits.count;
  const int end = SUBS * (turns - 1) + min(SUBS, (seen - PAGE * last_page + STEP - 1) / STEP);
  auto token_of = [&](int step) { return PAGE * (split + step / SUBS * splits.count) + STEP * (step % SUBS); };
  auto fetch = [&](int step) {
    if (step < end) {
      const int token = token_of(step);
      const size_t base = ((size_t)rows.page(tile.w, token / PAGE) * n_kv_heads + kv) * (PAGE * HEAD_DIM) + (size_t)(token % PAGE) * HEAD_DIM;
      u8* to = ring + step % STAGES * STAGE;
#pragma unroll
      for (int i = 0; i < HALF / 16 / THREADS; i++) {
        const int piece = threadIdx.x + THREADS * i;
        copy16(to + 16 * key_piece(piece / (HEAD_DIM / 8), piece % (HEAD_DIM / 8)), keys + base + 8 * piece);
        copy16(to + HALF + 16 * piece, values + base + 8 * piece);
      }
    }
    copies_commit();
  };
  const int begin = SUBS * low_turn;
  int fetched = begin;
#pragma unroll 1
  for (; fetched < begin + STAGES && (WHOLE || token_of(fetched) + STEP <= span.w); fetched++) fetch(fetched);

  // New rows whose keys and values this block needs, and the heads that it makes: queries, then keys and values in turn.
  int new_row = 0, new_rows = 0;
  Head head;
  int item = warp, item_m = 0, item_head = 0, items = 0;
  auto prepare = [&]() {
    if (item >= items) return;
    const int other = item - in_tile;
    item_m = other < 0 ? tile.x + item / tile_width : span.x + new_row + other / 2;
    item_head = other < 0 ? first_head + item % tile_width : n_heads + (other & 1) * n_kv_heads + kv;
    head.prepare(qkv, heads, item_m, item_head, rows.positions[item_m]);
  };
  if (WHOLE) {
    for (int r = 0; r < span.y; r++) {
      const int place = span.w + r;
      if (place >= seen || place / PAGE % splits.count != split) continue;
      if (new_rows++ == 0) new_row = r;
    }
    items = in_tile + 2 * new_rows;
    prepare();
  }
  if (threadIdx.x < ROWS) {
    const int query = threadIdx.x / tile_width;
    Sight sight = rows.sight(tile.x + min(query, tile.y - 1), view);
    if (query >= tile.y) sight.limit = -1;
    sights[threadIdx.x] = sight;
  }
#ifndef EARLY
#define EARLY 0
#endif
  if (EARLY == 1) let_next_start();
  wait_for_previous();
  if (EARLY == 0) let_next_start();
#pragma unroll 1
  for (; fetched < begin + STAGES; fetched++) fetch(fetched);
  if (WHOLE) {
    for (int i = threadIdx.x; i < (ROWS - in_tile) * (HEAD_DIM / 8); i += THREADS)
      *(uint4*)(q_shared + (in_tile + i / (HEAD_DIM / 8)) * Q_STRIDE + 8 * (i % (HEAD_DIM / 8))) = make_uint4(0, 0, 0, 0);
    while (item < items) {
      const int other = item - in_tile;
      u16* to = other < 0 ? q_shared + item * Q_STRIDE : fresh + other * HEAD_DIM;
      KvPlace place = {};
      const bool stored = other >= 0 && head_group == 0 && item_m >= tile.x && item_m < tile.x + tile.y;
      if (stored) place = place_of(rows, heads, item_m, item_head, keys, values);
      head.finish(qkv, heads, item_m, item_head, rooms + warp * HEAD_DIM, [&](int d, u16 bits) {
        to[d] = bits;
        if (stored) place(d, bits);
      });
      item += WARPS;
      prepare();
    }
  } else {
#pragma unroll
    for (int i = 0; i < ROWS * (HEAD_DIM / 8) / THREADS; i++) {
      const int piece = threadIdx.x + THREADS * i, row = piece / (HEAD_DIM / 8), part = piece % (HEAD_DIM / 8);
      uint4 words = make_uint4(0, 0, 0, 0);
      if (row < in_tile)
        words = ((const uint4*)(queries + ((size_t)(tile.x + row / tile_width) * n_heads + first_head + row % tile_width) * HEAD_DIM))[part];
      *(uint4*)(q_shared + row * Q_STRIDE + 8 * part) = words;
    }
  }

  const int row_tiles = (in_tile + 15) / 16, stripe = warp % STRIPES, scorer = warp / STRIPES;
  const int dim_warp = warp % DIM_WARPS, adder = warp / DIM_WARPS;
  float o[ADDED][4][4], high[SCORED][2], sum[SCORED][2];
#pragma unroll
  for (int a = 0; a < ADDED; a++)
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
      for (int k = 0; k < 4; k++) o[a][i][k] = 0;
#pragma unroll
  for (int c = 0; c < SCORED; c++) high[c][0] = high[c][1] = NEVER, sum[c][0] = sum[c][1] = 0;

#pragma unroll 1
  for (int step = begin; step < end; step++) {
    const int token = token_of(step);
    u8* stage = ring + step % STAGES * STAGE;
    if (STAGES == 1 && step > begin) {
      __syncthreads();
      fetch(step);
    }
    copies_wait<(STAGES > 1 ? STAGES - 2 : 0)>();
    __syncthreads();
    if (STAGES > 1 && step > begin) fetch(step + STAGES - 1);
    if (WHOLE && token + STEP > span.w + new_row && token < span.w + new_row + new_rows) {
      for (int i = threadIdx.x; i < new_rows * HEAD_DIM; i += THREADS) {
        const int r = i / HEAD_DIM, d = i % HEAD_DIM, at = span.w + new_row + r - token;
        if (at < 0 || at >= STEP) continue;
        ((u16*)stage)[8 * key_piece(at, d / 8) + d % 8] = fresh[2 * r * HEAD_DIM + d];
        ((u16*)(stage + HALF))[value_at(at, d)] = fresh[(2 * r + 1) * HEAD_DIM + d];
      }
      __syncthreads();
    }

    // Scores of 16 tokens.
    float s[SCORED][2][4];
#pragma unroll
    for (int c = 0; c < SCORED; c++)
#pragma unroll
      for (int k = 0; k < 4; k++) s[c][0][k] = s[c][1][k] = 0;
#pragma unroll
    for (int i = 0; i < SLABS; i++) {
      const uint4 k0 = ((const uint4*)stage)[key_piece(16 * stripe + g, 4 * i + t)];
      const uint4 k1 = ((const uint4*)stage)[key_piece(16 * stripe + 8 + g, 4 * i + t)];
#pragma unroll
      for (int c = 0; c < SCORED; c++) {
        const int row = 16 * (c * SCORERS + scorer);
        if (row >= in_tile) break;
        const uint4 q0 = *(const uint4*)(q_shared + (row + g) * Q_STRIDE + 32 * i + 8 * t);
        const uint4 q1 = *(const uint4*)(q_shared + (row + 8 + g) * Q_STRIDE + 32 * i + 8 * t);
        const u32 a0[4] = {q0.x, q1.x, q0.y, q1.y}, a1[4] = {q0.z, q1.z, q0.w, q1.w};
        mma_f16(s[c][0], a0, k0.x, k0.y);
        mma_f16(s[c][1], a0, k1.x, k1.y);
        mma_f16(s[c][0], a1, k0.z, k0.w);
        mma_f16(s[c][1], a1, k1.z, k1.w);
      }
    }
    const bool check = view.window || token + STEP > span.w;  // all rows see what lies below their step, but for a window
#pragma unroll
    for (int c = 0; c < SCORED; c++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const int row = 16 * (c * SCORERS + scorer) + g + 8 * r;
        if (row - g - 8 * r >= in_tile) break;
        float most = NEVER;
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
          for (int e = 0; e < 2; e++) {
            if (check && !sights[row].of(token + 16 * stripe + 8 * n + 2 * t + e)) s[c][n][2 * r + e] = NEVER * 2;
            most = fmaxf(most, s[c][n][2 * r + e]);
          }
        most = quad_max(most);
        if (t == 0) most_of[stripe * ROWS + row] = most;
      }
    __syncthreads();
#pragma unroll
    for (int c = 0; c < SCORED; c++)
#pragma unroll
      for (int r = 0; r < 2; r++) {
        const int row = 16 * (c * SCORERS + scorer) + g + 8 * r;
        if (row - g - 8 * r >= in_tile) break;
        float most = high[c][r];
#pragma unroll
        for (int i = 0; i < STRIPES; i++) most = fmaxf(most, most_of[i * ROWS + row]);
        const float shrink = exp2f(high[c][r] - most);
        high[c][r] = most;
        if (stripe == 0 && t == 0) shrink_of[row] = shrink;
        float added = 0;
#pragma unroll
        for (int n = 0; n < 2; n++) {
          const float a = exp2f(s[c][n][2 * r] - most), b = exp2f(s[c][n][2 * r + 1] - most);
          added += a + b;
          *(u32*)(p_shared + row * P_STRIDE + 16 * stripe + 8 * n + 2 * t) = half2_of(a, b);
        }
        sum[c][r] = fmaf(sum[c][r], shrink, added);
      }
    __syncthreads();

    // 32 dims of the values.
#pragma unroll
    for (int a = 0; a < ADDED; a++) {
      const int row = 16 * (a * ADDERS + adder) + g;
      if (row - g >= in_tile) break;
      const float low = shrink_of[row], upper = shrink_of[row + 8];
      if (__any_sync(~0u, low != 1 || upper != 1))
#pragma unroll
        for (int i = 0; i < 4; i++) o[a][i][0] *= low, o[a][i][1] *= low, o[a][i][2] *= upper, o[a][i][3] *= upper;
    }
#pragma unroll
    for (int i = 0; i < STRIPES; i++) {
      uint4 v[2];
      // Slots beyond the sequence may hold anything, and 0 * NaN is NaN.
      u32 keep[2] = {~0u, ~0u};
      if (token + STEP > seen)
#pragma unroll
        for (int n = 0; n < 2; n++) {
          const int left = seen - (token + 16 * i + 8 * n + 2 * t);
          keep[n] = left >= 2 ? ~0u : left == 1 ? 0xffffu : 0u;
        }
#pragma unroll
      for (int j = 0; j < 2; j++) {
        v[j] = ((const uint4*)(stage + HALF))[(2 * DIM_WARPS * i + 2 * dim_warp + j) * 32 + lane];
        v[j].x &= keep[0], v[j].y &= keep[1], v[j].z &= keep[0], v[j].w &= keep[1];
      }
#pragma unroll
      for (int a = 0; a < ADDED; a++) {
        const int row = 16 * (a * ADDERS + adder) + g;
        if (row - g >= in_tile) break;
        const u32* p = (const u32*)(p_shared + row * P_STRIDE + 16 * i + 2 * t);
        const u32 weights[4] = {p[0], p[4 * P_STRIDE], p[4], p[4 * P_STRIDE + 4]};
#pragma unroll
        for (int j = 0; j < 2; j++) {
          mma_f16(o[a][2 * j], weights, v[j].x, v[j].y);
          mma_f16(o[a][2 * j + 1], weights, v[j].z, v[j].w);
        }
      }
    }
  }
  copies_wait<0>();
  if (EARLY == 2) let_next_start();

  auto slot_of = [&](int row) {
    return ((size_t)(tile.x + row / tile_width) * n_heads + first_head + row % tile_width) * splits.count + split;
  };
#pragma unroll
  for (int a = 0; a < ADDED; a++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int row = 16 * (a * ADDERS + adder) + g + 8 * r;
      if (row >= in_tile) continue;
      float* to = splits.sums + slot_of(row) * HEAD_DIM + 32 * dim_warp + 2 * t;
#pragma unroll
      for (int i = 0; i < 4; i++) *(float2*)(to + 8 * i) = make_float2(o[a][i][2 * r], o[a][i][2 * r + 1]);
    }
#pragma unroll
  for (int c = 0; c < SCORED; c++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int row = 16 * (c * SCORERS + scorer) + g + 8 * r;
      if (row - g - 8 * r >= in_tile) break;
      const float all = quad_sum(sum[c][r]);
      if (t == 0) most_of[stripe * ROWS + row] = all;
    }
  __syncthreads();
#pragma unroll
  for (int c = 0; c < SCORED; c++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      const int row = 16 * (c * SCORERS + scorer) + g + 8 * r;
      if (row >= in_tile || stripe || t) continue;
      float all = 0;
#pragma unroll
      for (int i = 0; i < STRIPES; i++) all += most_of[i * ROWS + row];
      splits.stats[slot_of(row)] = make_float2(high[c][r], all);
    }
  if (!WHOLE) return;

  // The heads whose columns fill whole superblocks together are added up by the last of their blocks.
  int together = 1;
  while (together * group * HEAD_DIM % 256) together *= 2;
  const int set = kv / together, set_heads = min(together, n_kv_heads - set * together), others = used * set_heads * head_groups;
  __shared__ u32 ticket;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    ticket = atomicInc(ended + blockIdx.z * n_kv_heads + set, others - 1);
    __threadfence();
  }
  __syncthreads();
  if (ticket != others - 1) return;
  const int width = together * group * HEAD_DIM, first = set * width / 256;
  const int superblocks = (min(out.columns, (set + 1) * width) + 255) / 256 - first, team = warp / TEAM;
  const bool pads = blockIdx.z == 0;
  for (int i = team; i - team < tile.y * superblocks; i += TEAMS) {
    const int query = min(i / superblocks, tile.y - 1);
    combine_row(splits, qkv, heads.gated, out, tile.x + query, first + i % superblocks, sights[query * tile_width].limit,
                i < tile.y * superblocks, warp % TEAM, TEAM, (float(*)[18][32])ring + (TEAM - 1) * team);
    __syncthreads();
  }
  if (!pads) return;
  const float nothing[8] = {};
  for (int i = warp; i < M * superblocks; i += WARPS)
    if (rows.positions[i / superblocks] < 0) write_activation(out, i / superblocks, first + i % superblocks, nothing);
}

extern "C" __global__ void __launch_bounds__(128, 4)
combine(Product qkv, Rows rows, View view, int gated, Splits splits, Activation out) {
  __shared__ float others[TEAM - 1][18][32];
  const int m = blockIdx.y, limit = rows.positions[m] < 0 ? -1 : rows.sight(m, view).limit;
  wait_for_previous(out);
  combine_row(splits, qkv, gated, out, m, blockIdx.x, limit, true, threadIdx.x >> 5, blockDim.x >> 5, others);
}
