// The recurrence of Gated DeltaNet (delta.cu) in steps of few rows, token by token, so that a row's bits do not depend on the others.
//
// A block has 16 columns of the states of HEADS value heads of one key head, whose keys and queries it reads once: a lane holds an
// eighth of a column of each head. Rows that are tried may be a tree. They are gone through in the order of `visits`: what has no
// children comes right behind its parent and leaves no state, and a branch that comes later starts from the state in front of the
// tree, which is moved down its path by the d that were found there.
#include "delta.cuh"

constexpr int COLUMNS = 16, SLICES = DIM / COLUMNS, TOKENS = 16, ROWS = 2 * TOKENS;
constexpr int LEAF = 1 << 5, BACK = 1 << 6;  // engine/ops/visits.py

struct Row {
  float4 k[4], q[4];
};

// Grid (n_v / HEADS * SLICES, sequences), 128 threads. A row of blocks more zeroes the activations of rows that belong to nobody,
// where there is a gate. Spans of `least` rows that are not tried are left to delta_chunk.cu.
extern "C" __global__ void __launch_bounds__(128, 2)
recur(const int4* __restrict__ spans, const int* __restrict__ visits, const u32* __restrict__ masks, float* __restrict__ states,
      float* __restrict__ tails, Values s, int least, Product mixed, Gate gate, int rows, const int* __restrict__ positions,
      Activation out) {
  __shared__ __align__(16) float keys[ROWS][DIM], queries[ROWS][DIM], values[ROWS][HEADS][COLUMNS];
  __shared__ float decay[ROWS][HEADS], rate[ROWS][HEADS], product[ROWS];
  __shared__ u32 visit[ROWS], mask[ROWS], order;
  const bool is_rest = gate.arrived && blockIdx.y == gridDim.y - 1;
  const int4 span = is_rest ? make_int4(0, 0, 0, 0) : spans[blockIdx.y];
  const int group = blockIdx.x / SLICES, slice = blockIdx.x % SLICES, key_head = group % s.n_k;
  const int head = key_head + group / s.n_k * HEADS * s.n_k;  // the first one; the others n_k apart
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, i = lane & 7, column = 4 * warp + (lane >> 3);
  const int end = span.x + span.y;
  const bool tried = span.z & 1;
  if (span.y == 0 || is_chunked(span, least)) {
    wait_for_previous();
    const float zeros[8] = {};
    if (is_rest && (int)blockIdx.x < s.n_v / 2)
      for (int m = warp; m < rows; m += 4)
        if (positions[m] < 0) write_activation(out, m, blockIdx.x, zeros);
    return;
  }
  const int apart = s.n_k * DIM * DIM;
  auto state_of = [&](int slot) {
    return states + (((size_t)slot * s.n_v + head) * DIM + COLUMNS * slice + column) * DIM + 4 * i;
  };
  const float* state = state_of(source_of(span));
  Columns<HEADS> columns;
  columns.load(state, span.w == 0, apart);  // this layer's states were last written a step ago
  if (tried && (int)threadIdx.x < min(span.y, ROWS)) {
    visit[threadIdx.x] = visits[span.x + threadIdx.x];
    mask[threadIdx.x] = masks[span.x + threadIdx.x];
  }
  wait_for_previous();
  let_next_start();

  auto fetch = [&](int first) {
    const int n = min(TOKENS, end - first), at = (first - span.x) % ROWS;
    for (int p = threadIdx.x; p < n * (DIM / 4); p += 128) {
      const int t = p / (DIM / 4), d = 4 * (p % (DIM / 4));
      const size_t from = ((size_t)(first + t) * s.n_k + key_head) * DIM + d;
      copy16(&keys[at + t][d], s.k + from);
      copy16(&queries[at + t][d], s.q + from);
    }
    for (int p = threadIdx.x; p < n * HEADS * (COLUMNS / 4); p += 128) {
      const int d = 4 * (p % (COLUMNS / 4)), e = p / (COLUMNS / 4) % HEADS, t = p / (COLUMNS / 4) / HEADS;
      copy16(&values[at + t][e][d], s.v + ((size_t)(first + t) * s.n_v + head + e * s.n_k) * DIM + COLUMNS * slice + d);
    }
    for (int p = threadIdx.x; p < n * HEADS; p += 128) {
      const int e = p % HEADS, t = p / HEADS, m = first + t, from = m * s.n_v + head + e * s.n_k;
      decay[at + t][e] = expf(s.log_g[from]);
      rate[at + t][e] = s.b[from];
      if (e == 0) product[at + t] = s.kq[m * s.n_k + key_head];
    }
    copies_commit();
  };
  // Of a row's results o of head e goes out by lane e of a column, d by lane 4 + e.
  float* const to = (i < 4 ? s.o : s.d) + (size_t)(head + (i & 3) * s.n_k) * DIM + COLUMNS * slice + column;
  const bool writes = (i & 3) < HEADS && (i < 4 || tried);
  auto get = [&](Row& row, u32 code) {
    load_row(row.k, &keys[code % ROWS][4 * i]);
    load_row(row.q, &queries[code % ROWS][4 * i]);
  };
  auto go = [&](const Row& row, u32 code, int base) {
    const int at = code % ROWS;
    float d[HEADS], o[HEADS], v[HEADS], g[HEADS], b[HEADS];
    if (code & BACK) {
      columns.load(state, span.w == 0, apart);
      __syncwarp();
      for (u32 left = mask[at] & ~(1u << at); left; left &= left - 1) {
        const int past = __ffs(left) - 1;
        float4 key[4];
        load_row(key, &keys[past][4 * i]);
#pragma unroll
        for (int e = 0; e < HEADS; e++) d[e] = values[past][e][column], g[e] = decay[past][e];
        columns.move(g, key, d);
      }
    }
#pragma unroll
    for (int e = 0; e < HEADS; e++) v[e] = values[at][e][column], g[e] = decay[at][e], b[e] = rate[at][e];
    columns.look(row.k, row.q, v, g, b, product[at], d, o);
    if (!(code & LEAF)) columns.move(g, row.k, d);
    float result = 0;
#pragma unroll
    for (int e = 0; e < HEADS; e++)
      if ((i & 3) == e) result = i < 4 ? o[e] : d[e];
    if (writes) to[(size_t)(base + at) * s.n_v * DIM] = result;
    if (!tried) return;
    __syncwarp();  // all lanes have read the values, in whose place their d are for `BACK`
    if (i == 0)
#pragma unroll
      for (int e = 0; e < HEADS; e++) values[at][e][column] = d[e];
  };

  fetch(span.x);
#pragma unroll 1
  for (int first = span.x; first < end; first += TOKENS) {
    const bool goes_on = first + TOKENS < end;
    if (goes_on) fetch(first + TOKENS);
    if (goes_on && !tried) copies_wait<1>();
    else copies_wait<0>();
    __syncthreads();
    const int from = (first - span.x) % ROWS, last = from + min(TOKENS, end - first) - 1, base = first - from;
    auto code_of = [&](int t) { return tried ? visit[min(t, last)] : (u32)min(t, last); };
    // A row's key and query are on their way while the sums of the one before it go round.
    Row even, odd;
    u32 code = code_of(from), next;
    get(even, code);
#pragma unroll 1
    for (int t = from; t <= last; t += 2) {
      next = code_of(t + 1);
      get(odd, next);
      go(even, code, base);
      if (t == last) break;
      code = code_of(t + 2);
      get(even, code);
      go(odd, next, base);
    }
    __syncthreads();
  }
  if (!tried) {
    columns.store(state_of(slot_of(span)), apart);
    const size_t tail = (size_t)(s.taps - 1) * (2 * s.n_k + s.n_v) * DIM;
    for (int c = 128 * blockIdx.x + threadIdx.x; c < (2 * s.n_k + s.n_v) * DIM; c += 128 * gridDim.x)
      move_tail(tails + slot_of(span) * tail, tails + source_of(span) * tail, s, span, blockIdx.y, c);
  }
  if (!gate.arrived) return;
  for (int e = 0; e < HEADS; e++) {
    const int superblock = (head + e * s.n_k) / 2;
    if (!is_last(gate.arrived + blockIdx.y * (s.n_v / 2) + superblock, 2 * SLICES, &order)) continue;
    for (int m = span.x + warp; m < end; m += 4)
      gate_row(s.o, mixed, (2 * s.n_k + s.n_v) * DIM, gate.norm, m, superblock, s.n_v * DIM, gate.eps, out);
  }
}
