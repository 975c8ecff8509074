// The recurrence of Gated DeltaNet (delta.cu) in steps of few rows, token by token, so that a row's bits do not depend on the others.
//
// A block has 16 columns of the state of a value head, a lane an eighth of a column; three blocks a multiprocessor wait for each
// other's sums. Rows that are tried may be a tree. They are gone through in the order of `visits`: what has no children comes right
// behind its parent and leaves no state, and a branch that comes later starts from the state in front of the tree, which is moved down
// its path by the d that were found there.
// H200, 2026-12-01, 48 heads over 16 keys, what it adds to the graph of a 27B's layer at 8 / 16 / 24 / 32 rows: 7.1 / 10.6 / 14.2 /
// 17.2 us (`python -m tests.gpu.measure MODEL.gguf --profile --profiled 8,16,24,32`).
#include "delta.cuh"

constexpr int COLUMNS = 16, SLICES = DIM / COLUMNS, TOKENS = 16, ROWS = 2 * TOKENS;
constexpr int LEAF = 1 << 5, BACK = 1 << 6;  // engine/ops/visits.py

struct Row {
  float4 k[4], q[4];
};

// Grid (n_v * SLICES, sequences), 128 threads. A row of blocks more zeroes the activations of rows that belong to nobody, where there
// is a gate. Spans of `least` rows that are not tried are left to delta_chunk.cu.
extern "C" __global__ void __launch_bounds__(128, 3)
recur(const int4* __restrict__ spans, const int* __restrict__ visits, const u32* __restrict__ masks, float* __restrict__ states,
      float* __restrict__ tails, Values s, int least, Product mixed, Gate gate, int rows, const int* __restrict__ positions,
      Activation out) {
  __shared__ __align__(16) float keys[ROWS][DIM], queries[ROWS][DIM], values[ROWS][COLUMNS];
  __shared__ float decay[ROWS], rate[ROWS], product[ROWS];
  __shared__ u32 visit[ROWS], mask[ROWS], order;
  const bool is_rest = gate.arrived && blockIdx.y == gridDim.y - 1;
  const int4 span = is_rest ? make_int4(0, 0, 0, 0) : spans[blockIdx.y];
  const int head = blockIdx.x / SLICES, slice = blockIdx.x % SLICES, key_head = head % s.n_k;
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
  auto state_of = [&](int slot) {
    return states + (((size_t)slot * s.n_v + head) * DIM + COLUMNS * slice + column) * DIM + 4 * i;
  };
  const float* state = state_of(source_of(span));
  Columns<1> columns;
  columns.load(state, span.w == 0);  // this layer's states were last written a step ago
  if (tried && (int)threadIdx.x < min(span.y, ROWS)) {
    visit[threadIdx.x] = visits[span.x + threadIdx.x];
    mask[threadIdx.x] = masks[span.x + threadIdx.x];
  }
  wait_for_previous();
  let_next_start();

  auto fetch = [&](int first, int n) {
    const int at = (first - span.x) % ROWS, m = first + threadIdx.x;
    const bool has = (int)threadIdx.x < n;
    const float log_g = has ? s.log_g[m * s.n_v + head] : 0, b = has ? s.b[m * s.n_v + head] : 0;
    const float kq = has ? s.kq[m * s.n_k + key_head] : 0;
    for (int t = warp; t < n; t += 4) {
      const size_t from = ((size_t)(first + t) * s.n_k + key_head) * DIM + 4 * lane;
      copy16(&keys[at + t][4 * lane], s.k + from);
      copy16(&queries[at + t][4 * lane], s.q + from);
    }
    if (const int t = threadIdx.x / 4, d = 4 * (threadIdx.x % 4); t < n)
      copy16(&values[at + t][d], s.v + ((size_t)(first + t) * s.n_v + head) * DIM + COLUMNS * slice + d);
    if (has) decay[at + threadIdx.x] = expf(log_g), rate[at + threadIdx.x] = b, product[at + threadIdx.x] = kq;
    copies_commit();
  };
  const size_t to = (size_t)head * DIM + COLUMNS * slice + column;
  auto get = [&](Row& row, u32 code) {
    load_row(row.k, &keys[code % ROWS][4 * i]);
    load_row(row.q, &queries[code % ROWS][4 * i]);
  };
  auto go = [&](const Row& row, u32 code, int base) {
    const int at = code % ROWS;
    if (code & BACK) {
      columns.load(state, span.w == 0);
      __syncwarp();
      for (u32 left = mask[at] & ~(1u << at); left; left &= left - 1) {
        const int past = __ffs(left) - 1;
        float4 key[4];
        load_row(key, &keys[past][4 * i]);
        columns.move({decay[past]}, key, {values[past][column]});
      }
    }
    const float v[1] = {values[at][column]}, g[1] = {decay[at]}, b[1] = {rate[at]};
    float d[1], o[1];
    columns.look(row.k, row.q, v, g, b, product[at], d, o);
    if (!(code & LEAF)) columns.move(g, row.k, d);
    const size_t m = base + at;
    if (i == 0) s.o[m * s.n_v * DIM + to] = o[0];
    if (!tried) return;
    if (i == 1) s.d[m * s.n_v * DIM + to] = d[0];
    __syncwarp();  // all lanes have read the value, in whose place its d is for `BACK`
    if (i == 2) values[at][column] = d[0];
  };

  // Up to ROWS rows come at once; of more, the next TOKENS while those in front of them are gone through.
  const int step = span.y <= ROWS ? ROWS : TOKENS;
  fetch(span.x, min(span.y, ROWS));
#pragma unroll 1
  for (int first = span.x; first < end; first += step) {
    const bool more = first > span.x && first + step < end;
    if (more) fetch(first + step, min(step, end - first - step));
    if (more) copies_wait<1>();
    else copies_wait<0>();
    __syncthreads();
    const int from = (first - span.x) % ROWS, last = from + min(step, end - first) - 1, base = first - from;
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
    columns.store(state_of(slot_of(span)));
    const size_t tail = (size_t)(s.taps - 1) * (2 * s.n_k + s.n_v) * DIM;
    for (int c = 128 * blockIdx.x + threadIdx.x; c < (2 * s.n_k + s.n_v) * DIM; c += 128 * gridDim.x)
      move_tail(tails + slot_of(span) * tail, tails + source_of(span) * tail, s, span, blockIdx.y, c);
  }
  if (!gate.arrived || !is_last(gate.arrived + blockIdx.y * (s.n_v / 2) + head / 2, 2 * SLICES, &order)) return;
  for (int m = span.x + warp; m < end; m += 4)
    gate_row(s.o, mixed, (2 * s.n_k + s.n_v) * DIM, gate.norm, m, head / 2, s.n_v * DIM, gate.eps, out);
}
