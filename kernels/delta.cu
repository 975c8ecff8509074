// Gated DeltaNet (arXiv 2412.06464): from the product q|k|v|z|alpha|beta to the activations of the output matrix.
//
// convolve: causal convolution, silu, unit length of q and k, gates. recur (recur.cu): S <- g S + k d^T with d = b (v - g S^T k), and
// o = S^T q = g S_before^T q + (k q) d, so that both reductions of a token are made at once. gate: RMSNorm(o) silu(z).
// States are f32 [slot][value head][dv][dk], tails [slot][taps - 1][q|k|v], oldest first: the rows before the convolution.
// Value head j goes with key head j % n_k. A token is a step of one loop, whose bits do not depend on the batch; prompts go in chunks
// (delta_chunk.cu). row: all three for a step of one row.
// Sequence s of a step is int4 {first row, rows, 2^16 source + 4 slot + 2 later + tried, position of the first row}: the state in slot
// `source`, mostly the same, becomes that in `slot`. A later part of a sequence goes on from what the part before it leaves. Rows that are only tried leave
// states and tails as they are; what `commit` needs to move them on later is kept in a log.
// H200, 2026-12-01, 48 heads over 16 keys, what each adds to the graph of a 27B's layer (`python -m tests.gpu.measure MODEL.gguf
// --profile --profiled 1,16,24,32`): `row` 9.5 us; of 16 / 24 / 32 rows `convolve_four` 3.9 / 3.8 / 4.0, `gate_four` 2.4 / 3.2 / 2.1.
#include "delta.cuh"

constexpr int EACH = 2, COLUMNS = 16 * EACH, SLICES = DIM / COLUMNS;  // of a block of four warps

// The gates of a head of row m, by one thread of its warps.
DEVICE void make_gates(const Product& mixed, int m, int head, const float* dt_bias, const float* a, const Values& s) {
  const int column = (2 * s.n_k + 2 * s.n_v) * DIM + head;
  const bool inside = head < s.n_v;
  const Addends of_alpha = addends_of(mixed, m, column), of_beta = addends_of(mixed, m, column + s.n_v);
  const float bias = inside ? dt_bias[head] : 0, rate = inside ? a[head] : 0;
  wait_for_previous();
  let_next_start();
  const float squares = read_squares(mixed, m), alpha = inside ? add_up(of_alpha) : 0, beta = inside ? add_up(of_beta) : 0;
  const float factor = factor_of(mixed, squares);
  if (!inside) return;
  s.log_g[m * s.n_v + head] = log_decay(__fmul_rn(factor, alpha), bias, rate);
  s.b[m * s.n_v + head] = sigmoid(__fmul_rn(factor, beta));
}

// What the convolution's sums make of rows m .. m + N - 1, as far as they are `stored`: by a warp a value head, or by two the query and
// the key of a key head, which meet in `query`.
template <int N>
DEVICE void finish(float4 (&sum)[N], const bool (&stored)[N], int m, bool is_value, bool is_key, int head, float eps, const Values& s,
                   float4 (*query)[32]) {
  const int lane = threadIdx.x & 31;
  float* const to = (is_value ? s.v : is_key ? s.k : s.q) + ((size_t)m * (is_value ? s.n_v : s.n_k) + head) * DIM + 4 * lane;
#pragma unroll
  for (int r = 0; r < N; r++) {
    sum[r] = silu(sum[r]);
    if (!is_value) sum[r] = unit(sum[r], eps, is_key ? 1 : rsqrtf((float)DIM));
    if (stored[r]) *(float4*)(to + r * (is_value ? s.n_v : s.n_k) * DIM) = sum[r];
    if (!is_value && !is_key) query[r][lane] = sum[r];
  }
  if (is_value) return;
  __syncthreads();
  if (!is_key) return;
#pragma unroll
  for (int r = 0; r < N; r++) {
    const float dot = dot_of(sum[r], query[r][lane]);
    if (stored[r] && lane == 0) s.kq[(m + r) * s.n_k + head] = dot;
  }
}

// Grid (n_k + n_v / 2 + ceil(n_v / 64), M), 64 threads, for a row: a warp takes a head, q and k of one key head together; the last
// blocks take a head's gates each thread. before[m] is the row in front of m in its sequence, -1 where that is not in the step.
extern "C" __global__ void __launch_bounds__(64)
convolve(Product mixed, const int* __restrict__ positions, const int* __restrict__ sequence, const int* __restrict__ before,
         const int4* __restrict__ spans, const float* __restrict__ tails, const float* __restrict__ conv1d,
         const float* __restrict__ dt_bias, const float* __restrict__ a, float eps, Values s) {
  __shared__ float4 query[1][32];
  const int m = blockIdx.y, position = positions[m], qkv = (2 * s.n_k + s.n_v) * DIM;
  if (position < 0) {
    wait_for_previous();
    return;
  }
  if ((int)blockIdx.x >= s.n_k + s.n_v / 2) {
    make_gates(mixed, m, 64 * (blockIdx.x - s.n_k - s.n_v / 2) + threadIdx.x, dt_bias, a, s);
    return;
  }
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const bool is_value = (int)blockIdx.x >= s.n_k;
  const int value_head = 2 * (blockIdx.x - s.n_k) + warp, head = is_value ? 2 * s.n_k + value_head : blockIdx.x + warp * s.n_k;
  const int channel = head * DIM + 4 * lane;
  const int4 span = spans[sequence[m]];
  const float* tail = tails + (size_t)source_of(span) * (s.taps - 1) * qkv + channel;
  int rows[4];
  float4 x[4], sum = make_float4(0, 0, 0, 0);
  Addends addends[4];
  auto weight = [&](int j, int i) { return conv1d[(channel + i) * s.taps + s.taps - 1 - j]; };
  float taps[4][4];  // of up to four; [how far back][channel]
  int row = m, missing = 0;
#pragma unroll
  for (int j = 0; j < 4; j++) {
#pragma unroll
    for (int i = 0; i < 4; i++) taps[j][i] = j < s.taps ? weight(j, i) : 0;
    if (j > 0) row = row < 0 ? -1 : before[row];
    const bool is_there = j < s.taps && j <= position;
    rows[j] = is_there ? row : -1;
    if (is_there && row >= 0) addends[j] = addends_of(mixed, row, channel);
    if (is_there && row < 0) x[j] = *(const float4*)(tail + (s.taps - 2 - missing++) * qkv);
  }
  wait_for_previous();
  let_next_start();

  add_up_rows<3>(mixed, rows, addends, x);
  const int after = span.x + span.y - 1 - m;
  if (s.all || after < s.taps - 1) *(float4*)(s.raw + (size_t)raw_row(s, m, sequence[m], after) * qkv + channel) = x[0];
#pragma unroll
  for (int j = 0; j < 4; j++)
    if (j < s.taps && j <= position) tap(sum, x[j], taps[j][0], taps[j][1], taps[j][2], taps[j][3]);
#pragma unroll 1
  for (int j = 4; j < s.taps && j <= position; j++) {
    row = row < 0 ? -1 : before[row];
    const int one[1] = {row};
    Addends of_one[1] = {addends_of(mixed, max(row, 0), channel)};
    float4 old[1];
    if (row < 0) old[0] = *(const float4*)(tail + (s.taps - 2 - missing++) * qkv);
    add_up_rows<1>(mixed, one, of_one, old);
    tap(sum, old[0], weight(j, 0), weight(j, 1), weight(j, 2), weight(j, 3));
  }
  float4 sums[1] = {sum};
  finish<1>(sums, {true}, m, is_value, warp, is_value ? value_head : (int)blockIdx.x, eps, s, query);
}

// The same for steps of 4 n <= 32 rows and four taps: grid (n_k + n_v / 2 + ceil(n_v / 32), M / 4), 128 threads, a warp for a head of two
// rows. What is known of row r lane r looks up. Each row of the product is added up once, and once more if it is one of the three in front
// of the next four; rows further away, which trees have in their windows, by each warp for itself.
extern "C" __global__ void __launch_bounds__(128, 3)
convolve_four(Product mixed, const int* __restrict__ positions, const int* __restrict__ sequence, const int* __restrict__ before,
              const int4* __restrict__ spans, const float* __restrict__ tails, const float* __restrict__ conv1d,
              const float* __restrict__ dt_bias, const float* __restrict__ a, float eps, Values s) {
  constexpr int BACK = 3, OWN = 2;
  __shared__ float4 near[2][BACK + 2 * OWN][32], far[4][OWN][BACK][32], query[2][OWN][32];  // raw rows; those and tails
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, side = warp & 1, pair = warp >> 1;
  const int first = 2 * OWN * blockIdx.y, m = first + OWN * pair, qkv = (2 * s.n_k + s.n_v) * DIM;
  const int position_of = positions[lane], before_of = before[lane], sequence_of = sequence[lane];
  if ((int)blockIdx.x >= s.n_k + s.n_v / 2) {
    const int row = first + warp, head = 32 * (blockIdx.x - s.n_k - s.n_v / 2) + lane;
    make_gates(mixed, row, __shfl_sync(~0u, position_of, row) < 0 ? s.n_v : head, dt_bias, a, s);
    return;
  }
  if (__shfl_sync(~0u, position_of, first) < 0) {
    wait_for_previous();
    return;
  }
  const bool is_value = (int)blockIdx.x >= s.n_k;
  const int head = is_value ? 2 * (blockIdx.x - s.n_k) + side : blockIdx.x;
  const int channel = ((is_value ? 2 * s.n_k : side * s.n_k) + head) * DIM + 4 * lane;
  float4 taps[BACK + 1];  // [how far back], of four channels
  {
    const float4 *of = (const float4*)conv1d + channel, a = of[0], b = of[1], c = of[2], d = of[3];  // of a channel, oldest first
    taps[3] = make_float4(a.x, b.x, c.x, d.x), taps[2] = make_float4(a.y, b.y, c.y, d.y);
    taps[1] = make_float4(a.z, b.z, c.z, d.z), taps[0] = make_float4(a.w, b.w, c.w, d.w);
  }
  const int rows[4] = {m, m + 1, first ? m - BACK : -1, first && pair == 0 ? m - BACK + 1 : -1};
  Addends addends[4];
  addends_around(mixed, m, channel, addends);
  int window[OWN][BACK];  // rows, furthest last
  int4 span[OWN];
  int position[OWN];
  bool stored[OWN], is_far = false;
  auto step_back = [&](int row) {
    const int back = __shfl_sync(~0u, before_of, max(row, 0));
    return row < 0 ? -1 : back;
  };
#pragma unroll
  for (int r = 0; r < OWN; r++) {
    position[r] = __shfl_sync(~0u, position_of, m + r);
    stored[r] = position[r] >= 0;
    span[r] = spans[__shfl_sync(~0u, sequence_of, m + r)];
    int row = m + r, missing = 0;
#pragma unroll
    for (int j = 0; j < BACK; j++) {
      row = step_back(row);
      window[r][j] = row;
      is_far = is_far || (row >= 0 && row < first - BACK);
      if (row >= 0 || j >= position[r]) continue;
      const float* tail = tails + ((size_t)source_of(span[r]) * BACK + BACK - 1 - missing++) * qkv + channel;
      far[warp][r][j][lane] = *(const float4*)tail;
    }
  }
  wait_for_previous();
  let_next_start();

  if (is_far) {
    const Found in = part_of(mixed, channel);
    const int tile = in.part.units ? m - m % in.part.columns : 0;  // its first row
#pragma unroll 1
    for (int r = 0, row; r < OWN; r++) {
      int apart[BACK];
      Addends of_apart[BACK];
      float4 x[BACK];
      row = m + r;
#pragma unroll
      for (int j = 0; j < BACK; j++) {
        row = step_back(row);
        apart[j] = row < first - BACK ? row : -1;
        of_apart[j] = apart[j] >= tile ? beside(in, mixed, addends[0], apart[j] - m) : addends_in(in, mixed, max(apart[j], 0), channel);
      }
      add_up_rows<2>(mixed, apart, of_apart, x);
#pragma unroll
      for (int j = 0; j < BACK; j++)
        if (apart[j] >= 0) far[warp][r][j][lane] = x[j];
    }
  }
  float4 x[4], sum[OWN];
  add_up_rows<3>(mixed, rows, addends, x);
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (rows[i] >= 0) near[side][rows[i] - first + BACK][lane] = x[i];
  __syncthreads();
#pragma unroll
  for (int r = 0; r < OWN; r++) {
    const int after = span[r].x + span[r].y - 1 - m - r;
    if (stored[r] && (s.all || after < BACK))
      *(float4*)(s.raw + (size_t)raw_row(s, m + r, __shfl_sync(~0u, sequence_of, m + r), after) * qkv + channel) = x[r];
    sum[r] = make_float4(0, 0, 0, 0);
    tap(sum[r], x[r], taps[0].x, taps[0].y, taps[0].z, taps[0].w);
#pragma unroll
    for (int j = 0; j < BACK; j++) {
      if (j >= position[r]) continue;
      const int row = window[r][j];
      const float4 old = row < first - BACK || row < 0 ? far[warp][r][j][lane] : near[side][row - first + BACK][lane];
      tap(sum[r], old, taps[j + 1].x, taps[j + 1].y, taps[j + 1].z, taps[j + 1].w);
    }
  }
  finish<OWN>(sum, stored, m, is_value, side, head, eps, s, query[pair]);
}

// `convolve`, `recur` and `gate` of a step of one row, to the same bits: grid (n_v * SLICES), 128 threads. Warp 0 makes the
// query, 1 the key, 2 the block's values, 3 the gates and z. `keys` counts a key head's blocks: the last one moves its tail.
extern "C" __global__ void __launch_bounds__(128)
row(Product mixed, const int* __restrict__ positions, const int* __restrict__ sequence, const int4* __restrict__ spans,
    float* __restrict__ states, float* __restrict__ tails, const float* __restrict__ conv1d, const float* __restrict__ dt_bias,
    const float* __restrict__ a, Values s, Gate gate, u32* __restrict__ keys, Activation out) {
  __shared__ __align__(16) float query[DIM], key[DIM], value[COLUMNS], rates[2];
  __shared__ u32 order[2];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, i = lane & 7, column = EACH * (4 * warp + (lane >> 3));
  const int head = blockIdx.x / SLICES, slice = blockIdx.x % SLICES, key_head = head % s.n_k;
  const int keep = s.taps - 1, qkv = (2 * s.n_k + s.n_v) * DIM, z = qkv + 256 * (head / 2) + 8 * lane;
  const int4 span = spans[sequence[0]];
  const int position = positions[0];
  if (span.y == 0 || position < 0) {
    wait_for_previous();
    return;
  }
  // A lane has four channels of the query or key, or one of the values.
  const int channel = warp == 0   ? key_head * DIM + 4 * lane
                      : warp == 1 ? (s.n_k + key_head) * DIM + 4 * lane
                                  : (2 * s.n_k + head) * DIM + COLUMNS * slice + lane;
  float* tail = tails + (size_t)slot_of(span) * keep * qkv + channel;
  const float* weight = conv1d + (size_t)channel * s.taps + keep;
  float4 taps[4], back[4];  // [how far back]
#pragma unroll
  for (int j = 0; j < 4; j++) {
    taps[j] = back[j] = make_float4(0, 0, 0, 0);
    const bool is_there = j > 0 && j <= min(keep, position);
    if (warp < 2 && j <= keep) {
      taps[j] = make_float4(weight[-j], weight[s.taps - j], weight[2 * s.taps - j], weight[3 * s.taps - j]);
      if (is_there) back[j] = *(const float4*)(tail + (keep - j) * qkv);
    } else if (warp == 2 && j <= keep) {
      taps[j].x = weight[-j];
      if (is_there) back[j].x = tail[(keep - j) * qkv];
    }
  }
  float* state = states + (((size_t)slot_of(span) * s.n_v + head) * DIM + COLUMNS * slice + column) * DIM + 4 * i;
  Columns<EACH> columns;
  columns.load(state, span.w == 0);
  const Addends addends = addends_of(mixed, 0, warp == 3 ? qkv + s.n_v * DIM + head + (lane & 1) * s.n_v : channel);
  const float bias = dt_bias[head], rate = a[head];
  wait_for_previous(out);

  const float squares = read_squares(mixed, 0);
  if (warp < 2) {
    float x[4];
    add_up(addends, x);
    back[0] = scaled(make_float4(x[0], x[1], x[2], x[3]), factor_of(mixed, squares));
  } else {
    const float x = warp == 2 || lane < 2 ? add_up(addends) : 0;
    back[0].x = __fmul_rn(factor_of(mixed, squares), x);
  }
  if (warp < 3) {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < 4; j++)
      if (j <= min(keep, position)) tap(sum, back[j], taps[j].x, taps[j].y, taps[j].z, taps[j].w);
    if (warp < 2) *(float4*)((warp ? key : query) + 4 * lane) = unit(silu(sum), gate.eps, warp ? 1 : rsqrtf((float)DIM));
    else value[lane] = silu(sum.x);
  } else if (lane < 2) {
    const float log_g = log_decay(back[0].x, bias, rate);
    rates[lane] = lane ? sigmoid(back[0].x) : expf(log_g);
    if (lane == 0 && slice == 0) s.log_g[head] = log_g;
  }
  __syncthreads();

  float4 k[4], q[4];
  load_row(k, key + 4 * i);
  load_row(q, query + 4 * i);
  float v[EACH], d[EACH], o[EACH];
#pragma unroll
  for (int e = 0; e < EACH; e++) v[e] = value[column + e];
  const float kq = dot_of(*(const float4*)(key + 4 * lane), *(const float4*)(query + 4 * lane));
  const float g[EACH] = {rates[0], rates[0]}, b[EACH] = {rates[1], rates[1]};
  columns.look(k, q, v, g, b, kq, d, o);
  columns.move(g, k, d);
  if (i == 0) {
    const size_t to = (size_t)head * DIM + COLUMNS * slice + column;
#pragma unroll
    for (int e = 0; e < EACH; e++) s.o[to + e] = o[e], s.d[to + e] = d[e];
  }
  __threadfence();
  __syncthreads();  // the tails have been read too
  const u32 readers = (s.n_v / s.n_k + (key_head < s.n_v % s.n_k)) * SLICES;
  if (threadIdx.x == 0) order[0] = atomicInc(gate.arrived + head / 2, 2 * SLICES - 1);
  if (threadIdx.x == 32) order[1] = atomicInc(keys + key_head, readers - 1);
  float of_z[8];
  float4 norms[2];
  if (warp == 3) {
    add_up_in_turn(addends_of(mixed, 0, z), of_z);
    norms[0] = *(const float4*)(gate.norm + (8 * lane) % DIM), norms[1] = *(const float4*)(gate.norm + (8 * lane) % DIM + 4);
  }
  const bool tried = span.z & 1;
  if (!tried) columns.store(state);
  __syncthreads();
  const bool writes = warp == 2 || (warp < 2 && order[1] == readers - 1);
  if (writes && tried) {
    if (warp < 2) *(float4*)(s.raw + channel) = back[0];
    else s.raw[channel] = back[0].x;
    if (warp == 1) *(float4*)(s.k + key_head * DIM + 4 * lane) = *(const float4*)(key + 4 * lane);
  } else if (writes) {
#pragma unroll
    for (int j = 3; j >= 0; j--) {
      if (j >= keep) continue;
      if (warp < 2) *(float4*)(tail + (keep - 1 - j) * qkv) = back[j];
      else tail[(keep - 1 - j) * qkv] = back[j].x;
    }
  }
  if (warp < 3 || order[0] != 2 * SLICES - 1) return;
  __threadfence();
  const float4 *from = (const float4*)(s.o + z - qkv), x0 = __ldcg(from), x1 = __ldcg(from + 1);
  float x[8] = {x0.x, x0.y, x0.z, x0.w, x1.x, x1.y, x1.z, x1.w};
  gated(x, of_z, factor_of(mixed, squares), norms[0], norms[1], gate.eps);
  write_activation(out, 0, head / 2, x);
}

// Lets `path` of a sequence's tried rows, which a short step left in its logs, stand: grid (n_v * SLICES, layers), 128 threads.
// A layer's values, states and tails lie so many bytes, floats and floats behind those of the layer before.
struct Path {
  int count, row[32];
};

extern "C" __global__ void __launch_bounds__(128, 7)
commit(const int4* __restrict__ spans, int sequence, Path path, float* __restrict__ states, long long layer_states,
       float* __restrict__ tails, long long layer_tails, Values s, long long layer_values) {
  constexpr int TOGETHER = 16, KEEP = 4;
  __shared__ __align__(16) float keys[TOGETHER][DIM], ds[TOGETHER][COLUMNS], decay[TOGETHER];
  const int4 span = spans[sequence];
  const int head = blockIdx.x / SLICES, slice = blockIdx.x % SLICES, key_head = head % s.n_k;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, i = lane & 7, column = EACH * (4 * warp + (lane >> 3)), slot = slot_of(span);
  auto of_layer = [&](const float* p) { return (const float*)((const u8*)p + blockIdx.y * layer_values); };
  const float *of_k = of_layer(s.k), *of_d = of_layer(s.d), *log_g = of_layer(s.log_g), *raw = of_layer(s.raw);
  states += blockIdx.y * layer_states, tails += blockIdx.y * layer_tails;
  const bool fresh = span.w == 0 && path.row[0] == 0;
  wait_for_previous();
  const size_t at = (((size_t)slot * s.n_v + head) * DIM + COLUMNS * slice + column) * DIM + 4 * i;
  Columns<EACH> columns;
  columns.load(states + at, fresh);
  for (int first = 0; first < path.count; first += TOGETHER) {
    const int n = min(TOGETHER, path.count - first);
    if (first) __syncthreads();
#pragma unroll 1
    for (int p = warp; p < n; p += 4) {
      const size_t m = span.x + path.row[first + p];
      copy16(&keys[p][4 * lane], of_k + (m * s.n_k + key_head) * DIM + 4 * lane);
      if (lane < COLUMNS / 4) copy16(&ds[p][4 * lane], of_d + (m * s.n_v + head) * DIM + COLUMNS * slice + 4 * lane);
      if (lane == 0) decay[p] = expf(log_g[m * s.n_v + head]);
    }
    copies_commit();
    copies_wait<0>();
    __syncthreads();
#pragma unroll 1
    for (int p = 0; p < n; p++) {
      float4 k[4];
      const float d[EACH] = {ds[p][column], ds[p][column + 1]}, g[EACH] = {decay[p], decay[p]};
      load_row(k, &keys[p][4 * i]);
      columns.move(g, k, d);
    }
  }
  columns.store(states + at);
  const int qkv = (2 * s.n_k + s.n_v) * DIM, keep = s.taps - 1;
  float* tail = tails + (size_t)slot * keep * qkv;
  for (int c = 128 * blockIdx.x + threadIdx.x; c < qkv; c += 128 * gridDim.x)
    for (int first = 0; first < keep; first += KEEP) {  // rising, so that what is still to be read is not overwritten
      float x[KEEP];
#pragma unroll
      for (int j = 0; j < KEEP; j++) {
        const int at = first + j, after = keep - 1 - at;
        x[j] = 0;
        if (at >= keep) continue;
        if (after < path.count) x[j] = raw[(size_t)(span.x + path.row[path.count - 1 - after]) * qkv + c];
        else if (!fresh) x[j] = tail[(size_t)(at + path.count) * qkv + c];
      }
#pragma unroll
      for (int j = 0; j < KEEP; j++)
        if (first + j < keep) tail[(size_t)(first + j) * qkv + c] = x[j];
    }
}

// Grid (superblocks, M), up to 4 warps, which share the addends of z. `z` is its first column in the product; `columns` =
// n_v * DIM.
extern "C" __global__ void __launch_bounds__(128, 4)
gate(const float* __restrict__ o, Product mixed, int z, const float* __restrict__ norm, const int* __restrict__ positions,
     int columns, float eps, Activation out) {
  const int superblock = blockIdx.x, m = blockIdx.y, lane = threadIdx.x & 31, column = 256 * superblock + 8 * lane;
  const bool inside = column < columns && positions[m] >= 0;
  const Addends addends[1] = {addends_of(mixed, m, z + (column < columns ? column : 0))};
  const float4 *of_norm = (const float4*)(norm + column % DIM), w0 = of_norm[0], w1 = of_norm[1];
  wait_for_previous(out);
  float v[8], x[8] = {};
  const float squares = read_squares(mixed, m);
  if (inside) {
    const float4 *from = (const float4*)(o + (size_t)m * columns + column), a = from[0], b = from[1];
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w, x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
  }
  if (!add_up_together(addends, v)) return;
  gated(x, v, factor_of(mixed, squares), w0, w1, eps);
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = inside ? x[i] : 0;
  write_activation(out, m, superblock, v);
}

// The same for steps of 4 n rows: grid (superblocks, M / 4), a warp for a row.
extern "C" __global__ void __launch_bounds__(128)
gate_four(const float* __restrict__ o, Product mixed, int z, const float* __restrict__ norm, const int* __restrict__ positions,
          int columns, float eps, Activation out) {
  const int superblock = blockIdx.x, m = 4 * blockIdx.y + (threadIdx.x >> 5), column = 256 * superblock + 8 * (threadIdx.x & 31);
  const Addends addends = addends_of(mixed, m, z + column);
  const float4 *of_norm = (const float4*)(norm + column % DIM), w0 = of_norm[0], w1 = of_norm[1];
  const bool stored = positions[m] >= 0;
  wait_for_previous(out);
  const float squares = read_squares(mixed, m);
  const float4 *from = (const float4*)(o + (size_t)m * columns + column), a = __ldcg(from), b = __ldcg(from + 1);
  float v[8], x[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
  add_up_in_turn(addends, v);
  gated(x, v, factor_of(mixed, squares), w0, w1, eps);
#pragma unroll
  for (int i = 0; i < 8; i++) v[i] = stored ? x[i] : 0;
  write_activation(out, m, superblock, v);
}
