// Gated DeltaNet in prompts (arXiv 2412.06464, section 3.3): CHUNK rows at once on the tensor cores, to f32's accuracy.
//
// With G the sums of log g from a chunk's first row on, and S the state before it, of a head:
//   A_ij = b_i exp(G_i - G_j) k_i k_j, j < i;   T = (I + A)^-1;   P_ij = exp(G_i - G_j) q_i k_j, j <= i
//   d = T (b (v - exp(G) S^T k));   o = exp(G) S^T q + P d;   S <- exp(G_last) S + sum_j exp(G_last - G_j) k_j d_j^T
// prepare makes T and P of all chunks at once; chunks walks along a sequence's chunks with the state in registers: a warp has 16 of its
// columns, as S^T, so that sums of one product are the A operand of the next and warps need nothing of each other. Numbers go in as
// f16 high + low parts, times a power of two, three products each. T and P are at most 1, k and q of unit length, so theirs are
// fixed: LIFT_K, LIFT_Q; others go by the largest of a row. k and q come so from delta_rows.cu.
// Spans of less than `least` rows and tried ones are left to `recur`.
// A chunk's work, for a head: T, then P, as B operands [8 rows i][16 columns j <= i], a lane's {high of j 2t, 8 + 2t; low likewise} of
// row g; then exp(G), b and exp(G_last - G) of each row.
// H200, 2026-11-30, 48 heads, 2,048 rows: prepare 68 us, chunks 264.
#include "delta.cuh"

constexpr int TILES = CHUNK / 8, SIDE = CHUNK * 4 * DIM;
constexpr int TRIANGLE = 512 * (CHUNK / 16) * (CHUNK / 16 + 1), WORK = 2 * TRIANGLE + 12 * CHUNK, STAGE = 2 * SIDE + WORK;
constexpr int STRIDE = CHUNK + 4;

DEVICE int chunks_of(const int4& span, int least) { return is_chunked(span, least) ? (span.y + CHUNK - 1) / CHUNK : 0; }

// Rows of a key head's k or q in shared memory: 256 bytes of high parts, 256 of low ones, of which pieces of 16 bytes change places so
// that eight rows' lie in different banks.
DEVICE u8* piece_of(u8* side, int row, int low, int piece) { return side + 512 * row + 256 * low + 16 * (piece ^ (row & 7)); }

DEVICE void fetch_side(u8* side, const float* from, int first, int rows, int n_k, int key_head) {
  const int warp = threadIdx.x >> 5, warps = blockDim.x >> 5, piece = threadIdx.x & 31;
  const u8* at = (const u8*)(from + ((size_t)(first + warp) * n_k + key_head) * DIM) + 16 * piece;
  const size_t next = (size_t)warps * n_k * DIM * 4;
#pragma unroll 4
  for (int row = warp; row < CHUNK; row += warps, at += next) {
    u8* to = piece_of(side, row, piece >> 4, piece & 15);
    if (row < rows) copy16(to, at);
    else *(uint4*)to = make_uint4(0, 0, 0, 0);
  }
}

// c += x y of split numbers for N tiles at once, so that few products in a row wait for each other: y is {high of both halves of k,
// low of both}.
template <int N, int MOST>
DEVICE void mma_split(float (&c)[MOST][4], int from, const u32 (&high)[4], const u32 (&low)[4], const u32 (&y)[N][4]) {
#pragma unroll
  for (int n = 0; n < N; n++) mma_f16(c[from + n], low, y[n][0], y[n][1]);
#pragma unroll
  for (int n = 0; n < N; n++) mma_f16(c[from + n], high, y[n][2], y[n][3]);
#pragma unroll
  for (int n = 0; n < N; n++) mma_f16(c[from + n], high, y[n][0], y[n][1]);
}

// 16 rows as the A operand, 8 rows as the B operand, 16 of their columns.
DEVICE void load_a(u32 (&x)[4], u8* side, int row, int step, int low) {
  const int lane = threadIdx.x & 31;
  load_matrices(x, piece_of(side, row + (lane & 15), low, 2 * step + (lane >> 4)));
}

DEVICE void load_b(u32 (&y)[4], u8* side, int row, int step, int lane) {
  load_matrices(y, piece_of(side, row + (lane & 7), lane >> 4, 2 * step + (lane >> 3 & 1)));
}

// Eight columns of 16 rows, which are the k of the B operand.
DEVICE void load_b_turned(u32 (&y)[4], u8* side, int row, int piece, int lane) {
  load_matrices_turned(y, piece_of(side, row + (lane & 15), lane >> 4, piece));
}

// Where the 8x16 tile of rows 8a, columns 16b of a triangle lies.
DEVICE int triangle_at(int a, int b) { return 512 * ((a >> 1) * ((a >> 1) + 1) + (a & 1) * ((a >> 1) + 1) + b); }

// k k and q k of 16 rows from `row` on with the first N tiles of 8 rows.
template <int N>
DEVICE void products_of(float (&of_keys)[TILES][4], float (&of_queries)[TILES][4], u8* keys, u8* queries, int row) {
  const int lane = threadIdx.x & 31;
#pragma unroll 1
  for (int step = 0; step < DIM / 16; step++) {
    u32 high[4], low[4], y[N][4];
    load_a(high, keys, row, step, 0);
    load_a(low, keys, row, step, 1);
#pragma unroll
    for (int n = 0; n < N; n++) load_b(y[n], keys, 8 * n, step, lane);
    mma_split(of_keys, 0, high, low, y);
    load_a(high, queries, row, step, 0);
    load_a(low, queries, row, step, 1);
    mma_split(of_queries, 0, high, low, y);
  }
}

// Grid (n_v, chunks at most), 2 CHUNK threads: T, P and the decays of a chunk of a head. Warp w makes rows 16w .. + 15 of k k and q k.
extern "C" __global__ void __launch_bounds__(2 * CHUNK)
prepare(const int4* __restrict__ spans, int n_sequences, int least, Values s, u8* __restrict__ work) {
  extern __shared__ __align__(128) u8 ring[];
  __shared__ float of_high[CHUNK], of_low[CHUNK], rate[CHUNK];
  u8 *keys = ring, *queries = ring + SIDE;
  float *inverse = (float*)ring, *turned = (float*)(ring + SIDE);  // T [row][column], then A [column][row]
  const int head = blockIdx.x, key_head = head % s.n_k, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  int4 span = make_int4(0, 0, 0, 0);
  int chunk = blockIdx.y;
  for (int i = 0; i < n_sequences; i++) {
    span = spans[i];
    const int count = chunks_of(span, least);
    if (chunk < count) break;
    chunk -= count;
    span.y = 0;
  }
  wait_for_previous();
  let_next_start();
  if (span.y == 0) return;
  const int first = span.x + CHUNK * chunk, rows = min(CHUNK, span.x + span.y - first);
  u8* to = work + ((size_t)blockIdx.y * s.n_v + head) * WORK;
  fetch_side(keys, s.k, first, rows, s.n_k, key_head);
  fetch_side(queries, s.q, first, rows, s.n_k, key_head);
  copies_commit();
  if (warp == 0) {
    // In double: the difference of two large sums may be small.
    constexpr int N = CHUNK / 32;
    double sum[N];
#pragma unroll
    for (int r = 0; r < N; r++) {
      const int row = N * lane + r, m = first + min(row, rows - 1);
      const float log_g = row < rows ? s.log_g[m * s.n_v + head] : 0;
      sum[r] = (r ? sum[r - 1] : 0) + (double)log_g;
      rate[row] = row < rows ? s.b[m * s.n_v + head] : 0;
    }
    double whole = sum[N - 1];
#pragma unroll
    for (int o = 1; o < 32; o <<= 1) {
      const double other = __shfl_up_sync(~0u, whole, o);
      if (lane >= o) whole += other;
    }
    const double end = __shfl_sync(~0u, whole, 31);
    float* decays = (float*)(to + 2 * TRIANGLE);
#pragma unroll
    for (int r = 0; r < N; r++) {
      const double here = whole - sum[N - 1] + sum[r];
      const int row = N * lane + r;
      of_high[row] = (float)here;
      of_low[row] = (float)(here - (double)of_high[row]);
      decays[row] = expf((float)here);
      decays[CHUNK + row] = rate[row];
      decays[2 * CHUNK + row] = expf((float)(end - here));
    }
  }
  copies_wait<0>();
  __syncthreads();

  float of_keys[TILES][4] = {}, of_queries[TILES][4] = {};
  if (warp < CHUNK / 32) products_of<TILES / 2>(of_keys, of_queries, keys, queries, 16 * warp);
  else products_of<TILES>(of_keys, of_queries, keys, queries, 16 * warp);
  __syncthreads();
#pragma unroll
  for (int n = 0; n < TILES; n++) {
    if (n > 2 * warp + 1) break;
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = 16 * warp + g + 8 * (e >> 1), j = 8 * n + 2 * t + (e & 1);
      const float decay = j <= i ? expf((of_high[i] - of_high[j]) + (of_low[i] - of_low[j])) : 0;
      of_queries[n][e] = decay * of_queries[n][e] * (1 / LIFT_K);  // still times LIFT_Q
      turned[STRIDE * j + i] = j < i ? rate[i] * decay * of_keys[n][e] * (1 / (LIFT_K * LIFT_K)) : 0;
    }
  }
#pragma unroll
  for (int b = 0; b < TILES / 2; b++) {
    if (b > warp) break;
#pragma unroll
    for (int half = 0; half < 2; half++) {
      uint4 words;
      split(of_queries[2 * b][2 * half], of_queries[2 * b][2 * half + 1], words.x, words.z);
      split(of_queries[2 * b + 1][2 * half], of_queries[2 * b + 1][2 * half + 1], words.y, words.w);
      *(uint4*)(to + TRIANGLE + triangle_at(2 * warp + half, b) + 16 * lane) = words;
    }
  }
  __syncthreads();

  // T by columns, 16 rows at a time: first what the rows above take from them, by two threads a column, then among themselves.
  const int column = threadIdx.x % CHUNK, half = threadIdx.x / CHUNK;
#pragma unroll 1
  for (int block = 0; block < CHUNK; block += 16) {
    float x[16];
#pragma unroll
    for (int r = 0; r < 8; r++) x[r] = block + 8 * half + r == column ? 1 : 0;
#pragma unroll 2
    for (int k = 0; k < block; k++) {
      const float y = inverse[STRIDE * k + column];
      const float4 *from = (const float4*)(turned + STRIDE * k + block + 8 * half), u = from[0], w = from[1];
      x[0] -= u.x * y, x[1] -= u.y * y, x[2] -= u.z * y, x[3] -= u.w * y;
      x[4] -= w.x * y, x[5] -= w.y * y, x[6] -= w.z * y, x[7] -= w.w * y;
    }
#pragma unroll
    for (int r = 0; r < 8; r++) inverse[STRIDE * (block + 8 * half + r) + column] = x[r];
    __syncthreads();
    if (half == 0) {
#pragma unroll
      for (int r = 0; r < 16; r++) x[r] = inverse[STRIDE * (block + r) + column];
#pragma unroll
      for (int k = 0; k < 15; k++)
#pragma unroll
        for (int r = k + 1; r < 16; r++) x[r] -= turned[STRIDE * (block + k) + block + r] * x[k];
#pragma unroll
      for (int r = 1; r < 16; r++) inverse[STRIDE * (block + r) + column] = x[r];
    }
    __syncthreads();
  }
#pragma unroll
  for (int half = 0; half < 2; half++)
    for (int b = 0; b <= warp; b++) {
      const float* from = inverse + STRIDE * (16 * warp + 8 * half + g) + 16 * b + 2 * t;
      uint4 words;
      split(LIFT_K * from[0], LIFT_K * from[1], words.x, words.z);
      split(LIFT_K * from[8], LIFT_K * from[9], words.y, words.w);
      *(uint4*)(to + triangle_at(2 * warp + half, b) + 16 * lane) = words;
    }
}

// The power of two that takes the largest of a row's numbers, of which four lanes each have a part, to 4096 .. 8191; and its inverse.
DEVICE void lift_of(float high, float& lift, float& inverse) {
  const u32 exponent = max(__float_as_uint(quad_max(high)) >> 23, 13u);
  lift = __uint_as_float((266 - exponent) << 23);
  inverse = __uint_as_float((exponent - 12) << 23);
}

template <int N>
DEVICE void lifts_of(const float (&x)[N][4], float (&lift)[2], float (&inverse)[2]) {
#pragma unroll
  for (int r = 0; r < 2; r++) {
    float high = 0;
#pragma unroll
    for (int n = 0; n < N; n++) high = fmaxf(high, fmaxf(fabsf(x[n][2 * r]), fabsf(x[n][2 * r + 1])));
    lift_of(high, lift[r], inverse[r]);
  }
}

// The same number, of which the compiler knows nothing: or addresses of all loads stay in registers.
DEVICE int again(int x) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(x));
#endif
  return x;
}

// A branch that is never taken, as decays are not negative: moving products over it, the compiler would need more registers than there are.
DEVICE void in_order(float decay, int place) {
  if (decay == -1.0f - place) __trap();
}

// Sums of two tiles of columns as the A operand.
DEVICE void split_a(const float (&x)[4], const float (&y)[4], const float (&lift)[2], u32 (&high)[4], u32 (&low)[4]) {
  split(lift[0] * x[0], lift[0] * x[1], high[0], low[0]);
  split(lift[1] * x[2], lift[1] * x[3], high[1], low[1]);
  split(lift[0] * y[0], lift[0] * y[1], high[2], low[2]);
  split(lift[1] * y[2], lift[1] * y[3], high[3], low[3]);
}

// S^T times a chunk's keys or queries, lifted as both are.
DEVICE void times_state(float (&sum)[TILES][4], const float (&S)[DIM / 8][4], const float (&lift)[2], u8* side, int lane, float decay) {
#pragma unroll
  for (int n = 0; n < TILES; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) sum[n][e] = 0;
#pragma unroll
  for (int step = 0; step < DIM / 16; step++) {
    in_order(decay, step);
    u32 high[4], low[4];
    split_a(S[2 * step], S[2 * step + 1], lift, high, low);
    u32 y[TILES][4];
#pragma unroll
    for (int n = 0; n < TILES; n++) load_b(y[n], side, 8 * n, step, lane);
    mma_split(sum, 0, high, low, y);
  }
}

constexpr int SOME = 4;  // tiles at once

// Tiles `from` .. + SOME - 1 of a triangle's rows times d, which the A operand holds.
DEVICE void times_triangle(float (&sum)[SOME][4], int from, const u32 (&high)[TILES / 2][4], const u32 (&low)[TILES / 2][4],
                           const u8* triangle, int lane) {
#pragma unroll
  for (int n = 0; n < SOME; n++)
#pragma unroll
    for (int e = 0; e < 4; e++) sum[n][e] = 0;
#pragma unroll
  for (int b = 0; b <= (from + SOME - 1) / 2; b++) {
    u32 y[SOME][4];
#pragma unroll
    for (int n = 0; n < SOME; n++) {
      uint4 words = make_uint4(0, 0, 0, 0);
      if (b <= (from + n) / 2) words = *(const uint4*)(triangle + triangle_at(from + n, b) + 16 * lane);
      y[n][0] = words.x, y[n][1] = words.y, y[n][2] = words.z, y[n][3] = words.w;
    }
    if (2 * b <= from) {
      mma_split(sum, 0, high[b], low[b], y);
    } else {
      const u32 last[2][4] = {{y[2][0], y[2][1], y[2][2], y[2][3]}, {y[3][0], y[3][1], y[3][2], y[3][3]}};
      mma_split(sum, 2, high[b], low[b], last);
    }
  }
}

// The span of a step that goes on in chunks from the state that `span` leaves; -1 for none.
DEVICE int next_of(const int4& span, const int4* spans, int least) {
  int found = -1;
  for (int i = 0; i < (int)gridDim.y; i++) {
    const int4 other = spans[i];
    if (is_later(other) && is_chunked(other, least) && source_of(other) == slot_of(span)) found = i;
  }
  return found;
}

// Grid (2 n_v, sequences), 128 threads: a warp takes 16 columns dv of a head. Registers hold S^T: of rows g and g + 8 of the warp's 16,
// columns 2t and 2t + 1 of each tile of 8 dk or 8 rows of the chunk.
extern "C" __global__ void __launch_bounds__(128, 1)
chunks(const int4* __restrict__ spans, int least, float* __restrict__ states, float* __restrict__ tails, Values s,
       const u8* __restrict__ work) {
  extern __shared__ __align__(128) u8 ring[];
  int number = blockIdx.y;
  int4 span = spans[number];
  const int head = blockIdx.x >> 1, key_head = head % s.n_k, warp = threadIdx.x >> 5, g = (threadIdx.x & 31) >> 2;
  const int column = 64 * (blockIdx.x & 1) + 16 * warp + g;
  if (chunks_of(span, least) == 0 || is_later(span)) {  // which the blocks of the part before it do
    wait_for_previous();
    return;
  }
  auto state_at = [&](int block, int slot) {
    const int warp = threadIdx.x >> 5, row = 64 * (block & 1) + 16 * warp + (threadIdx.x >> 2 & 7);
    return states + (((size_t)slot * s.n_v + (block >> 1)) * DIM + row) * DIM + 2 * (threadIdx.x & 3);
  };
  const float* state = state_at(blockIdx.x, source_of(span));
  float S[DIM / 8][4];
#pragma unroll
  for (int n = 0; n < DIM / 8; n++)
#pragma unroll
    for (int r = 0; r < 2; r++) {
      float2 x = make_float2(0, 0);
      if (span.w > 0) x = *(const float2*)(state + 8 * r * DIM + 8 * n);
      S[n][2 * r] = x.x, S[n][2 * r + 1] = x.y;
    }
  wait_for_previous();
  let_next_start();

#pragma unroll 1
  do {
    const int count = chunks_of(span, least);
    int before = 0;
    for (int i = 0; i < number; i++) before += chunks_of(spans[i], least);
    auto fetch = [&](int chunk) {
      u8* to = ring + chunk % STAGES * STAGE;
      const int first = span.x + CHUNK * chunk, rows = min(CHUNK, span.x + span.y - first);
      fetch_side(to, s.k, first, rows, s.n_k, key_head);
      fetch_side(to + SIDE, s.q, first, rows, s.n_k, key_head);
      const u8* from = work + ((size_t)(before + chunk) * s.n_v + head) * WORK;
      for (int p = threadIdx.x; p < WORK / 16; p += 128) copy16(to + 2 * SIDE + 16 * p, from + 16 * p);
      copies_commit();
    };
    if (STAGES > 1) fetch(0);
#pragma unroll 1
    for (int chunk = 0; chunk < count; chunk++) {
      if (STAGES == 1) fetch(chunk);
      copies_wait<0>();
      __syncthreads();
      if (STAGES > 1 && chunk + 1 < count) fetch(chunk + 1);
      u8 *keys = ring + chunk % STAGES * STAGE, *queries = keys + SIDE;
      const u8 *of_t = keys + 2 * SIDE, *of_p = of_t + TRIANGLE;
      const float *decay = (const float*)(of_p + TRIANGLE), *rate = decay + CHUNK, *rest = decay + 2 * CHUNK;
      const int first = span.x + CHUNK * chunk, rows = span.x + span.y - first;
      const size_t at = ((size_t)first * s.n_v + head) * DIM + column;
      const int lane = again(threadIdx.x & 31), t = lane & 3;
      const int next_row = again(s.n_v * DIM), own = 2 * t * next_row;
      const float* of_v = s.v + at;
      float* of_o = s.o + at;
      float d[TILES][4], sum[TILES][4], lift[2], inverse[2];
#pragma unroll
      for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int row = 8 * n + 2 * t + (e & 1);
          d[n][e] = row < rows ? of_v[own + (8 * n + (e & 1)) * next_row + 8 * (e >> 1)] : 0;
        }
      lifts_of(S, lift, inverse);
      in_order(decay[0], 20);
      times_state(sum, S, lift, keys, lane, decay[0]);
#pragma unroll
      for (int n = 0; n < TILES; n++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int row = 8 * n + 2 * t + (e & 1);
          d[n][e] = rate[row] * (d[n][e] - decay[row] * (inverse[e >> 1] * (1 / LIFT_K) * sum[n][e]));
        }

      float lift_d[2], inverse_d[2];
      u32 high[TILES / 2][4], low[TILES / 2][4];
      in_order(decay[0], 21);
      lifts_of(d, lift_d, inverse_d);
#pragma unroll
      for (int b = 0; b < TILES / 2; b++) split_a(d[2 * b], d[2 * b + 1], lift_d, high[b], low[b]);
#pragma unroll
      for (int from = 0; from < TILES; from += SOME) {
        float part[SOME][4];
        times_triangle(part, from, high, low, of_t, lane);
#pragma unroll
        for (int n = 0; n < SOME; n++)
#pragma unroll
          for (int e = 0; e < 4; e++) d[from + n][e] = inverse_d[e >> 1] * (1 / LIFT_K) * part[n][e];
      }

      in_order(decay[0], 22);
      times_state(sum, S, lift, queries, lane, decay[0]);
      in_order(decay[0], 23);
      lifts_of(d, lift_d, inverse_d);
#pragma unroll
      for (int b = 0; b < TILES / 2; b++) split_a(d[2 * b], d[2 * b + 1], lift_d, high[b], low[b]);
#pragma unroll
      for (int from = 0; from < TILES; from += SOME) {
        float part[SOME][4];
        times_triangle(part, from, high, low, of_p, lane);
#pragma unroll
        for (int n = 0; n < SOME; n++)
#pragma unroll
          for (int e = 0; e < 4; e++) {
            const int a = from + n, row = 8 * a + 2 * t + (e & 1);
            const float x = (1 / LIFT_Q) * (decay[row] * inverse[e >> 1] * sum[a][e] + inverse_d[e >> 1] * part[n][e]);
            if (row < rows) of_o[own + (8 * a + (e & 1)) * next_row + 8 * (e >> 1)] = x;
            d[a][e] *= rest[row];
          }
      }

      in_order(decay[0], 24);
      lifts_of(d, lift_d, inverse_d);
#pragma unroll
      for (int b = 0; b < TILES / 2; b++) split_a(d[2 * b], d[2 * b + 1], lift_d, high[b], low[b]);
      in_order(decay[0], 25);
      const float whole = decay[CHUNK - 1];
#pragma unroll
      for (int from = 0; from < DIM / 8; from += SOME) {
        in_order(decay[0], 30 + from);
        float part[SOME][4] = {};
#pragma unroll
        for (int b = 0; b < TILES / 2; b++) {
          u32 y[SOME][4];
#pragma unroll
          for (int n = 0; n < SOME; n++) load_b_turned(y[n], keys, 16 * b, from + n, lane);
          mma_split(part, 0, high[b], low[b], y);
        }
#pragma unroll
        for (int n = 0; n < SOME; n++)
#pragma unroll
          for (int e = 0; e < 4; e++)
            S[from + n][e] = fmaf(whole, S[from + n][e], inverse_d[e >> 1] * (1 / LIFT_K) * part[n][e]);
      }
      if (STAGES == 1) __syncthreads();
    }
    __syncthreads();
    float* to = state_at(again(blockIdx.x), slot_of(span));
#pragma unroll
    for (int n = 0; n < DIM / 8; n++)
#pragma unroll
      for (int r = 0; r < 2; r++) *(float2*)(to + 8 * r * DIM + 8 * n) = make_float2(S[n][2 * r], S[n][2 * r + 1]);
    const int qkv = (2 * s.n_k + s.n_v) * DIM;
    const size_t tail = (size_t)(s.taps - 1) * qkv;
    for (int c = 128 * blockIdx.x + threadIdx.x; c < qkv; c += 128 * gridDim.x)
      move_tail(tails + slot_of(span) * tail, tails + source_of(span) * tail, s, span, number, c);
    number = next_of(span, spans, least);
    if (number >= 0) span = spans[number];
  } while (number >= 0);
}
