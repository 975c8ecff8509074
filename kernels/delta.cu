// Gated DeltaNet (arXiv 2412.06464): from the product q|k|v|z|alpha|beta to the activations of the output matrix.
//
// convolve: causal convolution, silu, unit length of q and k, gates. recur: S <- g S + k d^T with d = b (v - g S^T k), and
// o = S^T q = g S_before^T q + (k q) d, so that both reductions of a token are made at once. gate: RMSNorm(o) silu(z).
// States are f32 [slot][value head][dv][dk], tails [slot][taps - 1][q|k|v], oldest first: the rows before the convolution.
// Value head j goes with key head j % n_k. A token is a step of one loop, in prompts too: its bits do not depend on the batch.
// Sequence s of a step is int4 {first row, rows, 2 slot + tried, position of the first row}. Rows that are only tried leave
// states and tails as they are; what `commit` needs to move them on later is kept in a log.
// H200, 2026-11-30, 48 heads, by itself: 7.6 us (recur) at M = 1, 13 at 16, 0.83 ms for 2,048 tokens of a prompt.
#include "activation.cuh"
#include "product.cuh"

constexpr int DIM = 128, TOKENS = 16, EACH = 2, COLUMNS = 16 * EACH;

// What a layer keeps of a step: rows m of q, k (n_k heads), v (n_v), log g, b (n_v) and k q (n_k), d (n_v heads) where rows are
// tried; and `raw` rows q|k|v before the convolution, by `raw_row`.
struct Values {
  float *q, *k, *v, *log_g, *b, *kq, *d, *raw, *o;
  int n_k, n_v, taps, all;
};

// All raw rows are kept, or the last taps - 1 of each sequence.
DEVICE int raw_row(const Values& s, int m, int sequence, int rows_after) {
  return s.all ? m : sequence * (s.taps - 1) + rows_after;
}

constexpr int MOST_TAPS = 8;

// Grid (n_k + n_v / 2, ceil(M / rows)), 64 threads: a warp takes a head of `rows` rows, q and k of one key head together. before[m] is
// the row in front of m in its sequence, -1 where that is not in the step.
extern "C" __global__ void __launch_bounds__(64, 8)
convolve(Product mixed, const int* __restrict__ positions, const int* __restrict__ sequence, const int* __restrict__ before,
         const int4* __restrict__ spans, const float* __restrict__ tails, const float* __restrict__ conv1d,
         const float* __restrict__ dt_bias, const float* __restrict__ a, float eps, int M, int rows, Values s) {
  __shared__ float4 query[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const bool is_value = (int)blockIdx.x >= s.n_k;
  const int value_head = 2 * (blockIdx.x - s.n_k) + warp, head = is_value ? 2 * s.n_k + value_head : blockIdx.x + warp * s.n_k;
  const int qkv = (2 * s.n_k + s.n_v) * DIM, channel = head * DIM + 4 * lane, gates = qkv + s.n_v * DIM + value_head;
  float taps[4][4];  // of up to four; [how far back][channel]
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) taps[j][i] = j < s.taps ? conv1d[(channel + i) * s.taps + s.taps - 1 - j] : 0;
  // Of a single row all that depends on no other kernel is fetched before waiting for one.
  const int only = rows == 1 && positions[blockIdx.y] >= 0 ? blockIdx.y : -1;
  float4 old[3];
  if (only >= 0) {
    const int4 span = spans[sequence[only]];
    int row = only, missing = 0;
#pragma unroll
    for (int j = 1; j < 4; j++) {
      row = row < 0 ? -1 : before[row];
      if (row < 0 && j < s.taps && j <= positions[only])
        (missing == 0 ? old[0] : missing == 1 ? old[1] : old[2]) = *(const float4*)(tails + ((size_t)(span.z >> 1) * (s.taps - 1) + s.taps - 2 - missing) * qkv + channel);
      missing += row < 0;
    }
  }
  wait_for_previous();
  let_next_start();

  float4 window[4];  // the last rows, while they follow each other
  int held = -1;     // the row that window[0] belongs to
  auto input = [&](int row, int missing, const int4& span) {  // row -1: `missing` rows before the step's first
    if (row < 0 && only >= 0 && missing < 3) return missing == 0 ? old[0] : missing == 1 ? old[1] : old[2];
    if (row < 0) return *(const float4*)(tails + ((size_t)(span.z >> 1) * (s.taps - 1) + s.taps - 2 - missing) * qkv + channel);
    float x[4];
    const float factor = factor_of(mixed, read_squares(mixed, row));
    add_up<4, 6>(addends_of(mixed, row, channel), x);
    return make_float4(factor * x[0], factor * x[1], factor * x[2], factor * x[3]);
  };
#pragma unroll 1
  for (int m = rows * blockIdx.y; m < min(M, rows * (int)blockIdx.y + rows); m++) {
    const int position = positions[m];
    if (position < 0) continue;
    const int4 span = spans[sequence[m]];
    const int last = span.x + span.y - 1;
    float4 sum = make_float4(0, 0, 0, 0), x = input(m, 0, span);
    if (s.all || last - m < s.taps - 1)
      *(float4*)(s.raw + (size_t)raw_row(s, m, sequence[m], last - m) * qkv + channel) = x;
    const bool follows = held >= 0 && before[m] == held && s.taps <= 4;
    if (follows) {
#pragma unroll
      for (int j = 3; j > 0; j--) window[j] = window[j - 1];
      window[0] = x;
    }
    int row = m, missing = 0;
#pragma unroll
    for (int j = 0; j < MOST_TAPS; j++) {
      if (j >= s.taps || j > position) break;
      if (j > 0 && !(follows && j < 4)) {
        row = row < 0 ? -1 : before[row];
        x = input(row, missing, span);
        if (row < 0) missing++;
      } else if (j > 0) {
        x = window[j & 3];
      }
      if (j < 4) {
        window[j] = x;
        sum.x = fmaf(x.x, taps[j][0], sum.x), sum.y = fmaf(x.y, taps[j][1], sum.y);
        sum.z = fmaf(x.z, taps[j][2], sum.z), sum.w = fmaf(x.w, taps[j][3], sum.w);
      } else {
        const float* w = conv1d + channel * s.taps + s.taps - 1 - j;
        sum.x = fmaf(x.x, w[0], sum.x), sum.y = fmaf(x.y, w[s.taps], sum.y);
        sum.z = fmaf(x.z, w[2 * s.taps], sum.z), sum.w = fmaf(x.w, w[3 * s.taps], sum.w);
      }
    }
    held = m;
    sum.x /= 1 + __expf(-sum.x), sum.y /= 1 + __expf(-sum.y), sum.z /= 1 + __expf(-sum.z), sum.w /= 1 + __expf(-sum.w);
    if (is_value) {
      *(float4*)(s.v + ((size_t)m * s.n_v + value_head) * DIM + 4 * lane) = sum;
      const float factor = factor_of(mixed, read_squares(mixed, m));
      if (lane == 0) {
        const float x = factor * add_up(addends_of(mixed, m, gates)) + dt_bias[value_head];
        s.log_g[m * s.n_v + value_head] = a[value_head] * (x > 20 ? x : log1pf(expf(x)));
      } else if (lane == 1) {
        s.b[m * s.n_v + value_head] = 1 / (1 + __expf(-factor * add_up(addends_of(mixed, m, gates + s.n_v))));
      }
      continue;
    }
    float square = sum.x * sum.x + sum.y * sum.y + sum.z * sum.z + sum.w * sum.w;
#pragma unroll
    for (int o = 16; o; o >>= 1) square += __shfl_xor_sync(~0u, square, o);
    const float scale = rsqrtf(square + eps) * (warp ? 1 : rsqrtf((float)DIM));
    sum.x *= scale, sum.y *= scale, sum.z *= scale, sum.w *= scale;
    *(float4*)((warp ? s.k : s.q) + ((size_t)m * s.n_k + blockIdx.x) * DIM + 4 * lane) = sum;
    if (warp == 0) query[lane] = sum;
    __syncthreads();
    if (warp) {
      const float4 y = query[lane];
      float dot = sum.x * y.x + sum.y * y.y + sum.z * y.z + sum.w * y.w;
#pragma unroll
      for (int o = 16; o; o >>= 1) dot += __shfl_xor_sync(~0u, dot, o);
      if (lane == 0) s.kq[m * s.n_k + blockIdx.x] = dot;
    }
    __syncthreads();
  }
}

// A warp has 4 EACH columns dv of a state: lane 8c + i the elements dk = 32j + 4i .. + 3 of columns EACH c + e, as s[e][j].
struct Columns {
  float4 s[EACH][4];
  DEVICE_METHOD void load(const float* from, bool zero) {
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
      for (int j = 0; j < 4; j++) s[e][j] = zero ? make_float4(0, 0, 0, 0) : *(const float4*)(from + e * DIM + 32 * j);
  }
  DEVICE_METHOD void store(float* to) const {
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
      for (int j = 0; j < 4; j++) *(float4*)(to + e * DIM + 32 * j) = s[e][j];
  }
  DEVICE_METHOD float dot(int e, const float4 (&x)[4]) const {
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll
    for (int j = 0; j < 4; j++)
      sum.x = fmaf(s[e][j].x, x[j].x, sum.x), sum.y = fmaf(s[e][j].y, x[j].y, sum.y), sum.z = fmaf(s[e][j].z, x[j].z, sum.z),
      sum.w = fmaf(s[e][j].w, x[j].w, sum.w);
    return (sum.x + sum.y) + (sum.z + sum.w);
  }
  DEVICE_METHOD void move(float g, const float4 (&k)[4], const float (&d)[EACH]) {
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
      for (int j = 0; j < 4; j++)
        s[e][j].x = fmaf(k[j].x, d[e], g * s[e][j].x), s[e][j].y = fmaf(k[j].y, d[e], g * s[e][j].y),
        s[e][j].z = fmaf(k[j].z, d[e], g * s[e][j].z), s[e][j].w = fmaf(k[j].w, d[e], g * s[e][j].w);
  }
};

DEVICE void load_row(float4 (&x)[4], const float* from) {
#pragma unroll
  for (int j = 0; j < 4; j++) x[j] = *(const float4*)(from + 32 * j);
}

DEVICE float column_sum(float v) {
  v += __shfl_xor_sync(~0u, v, 1);
  v += __shfl_xor_sync(~0u, v, 2);
  return v + __shfl_xor_sync(~0u, v, 4);
}

// The tail after a step of rows `first` .. `first` + rows - 1, of which `raw` has the last ones: one thread a channel.
DEVICE void move_tail(float* tail, const Values& s, const int4& span, int sequence, int channel) {
  const int qkv = (2 * s.n_k + s.n_v) * DIM, keep = s.taps - 1;
  for (int i = 0; i < keep; i++) {  // rising, so that what is still to be read is not overwritten
    const int after = keep - 1 - i;  // rows of the new tail that follow
    const int source = i + span.y;
    float x;
    if (after < span.y) x = s.raw[(size_t)raw_row(s, span.x + span.y - 1 - after, sequence, after) * qkv + channel];
    else x = span.w + span.y - 1 - after < 0 ? 0 : tail[(size_t)source * qkv + channel];
    tail[(size_t)i * qkv + channel] = x;
  }
}

// Grid (n_v * DIM / COLUMNS, sequences), 128 threads: 16 columns of a head.
extern "C" __global__ void __launch_bounds__(128)
recur(const int4* __restrict__ spans, const int* __restrict__ before, const u32* __restrict__ masks, float* __restrict__ states,
      float* __restrict__ tails, Values s) {
  __shared__ __align__(16) float keys[2][TOKENS][DIM], queries[2][TOKENS][DIM], values[2][TOKENS][COLUMNS];
  __shared__ float gate[2][TOKENS], rate[2][TOKENS], product[2][TOKENS];
  const int4 span = spans[blockIdx.y];
  const int head = blockIdx.x / (DIM / COLUMNS), slice = blockIdx.x % (DIM / COLUMNS), key_head = head % s.n_k;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, i = lane & 7, column = EACH * (4 * warp + (lane >> 3));
  const int slot = span.z >> 1, end = span.x + span.y;
  const bool tried = span.z & 1;
  if (span.y == 0) {
    wait_for_previous();
    return;
  }
  float* state = states + (((size_t)slot * s.n_v + head) * DIM + COLUMNS * slice + column) * DIM + 4 * i;
  Columns columns;
  columns.load(state, span.w == 0);  // this layer's states were last written a step ago
  wait_for_previous();
  let_next_start();

  auto fetch = [&](int first, int at) {
    const int n = min(TOKENS, end - first);
    for (int p = threadIdx.x; p < n * (DIM / 4); p += 128) {
      const int t = p / (DIM / 4), d = 4 * (p % (DIM / 4));
      const size_t from = ((size_t)(first + t) * s.n_k + key_head) * DIM + d;
      copy16(&keys[at][t][d], s.k + from);
      copy16(&queries[at][t][d], s.q + from);
    }
    if (threadIdx.x < n * (COLUMNS / 4)) {
      const int t = threadIdx.x / (COLUMNS / 4), d = 4 * (threadIdx.x % (COLUMNS / 4));
      copy16(&values[at][t][d], s.v + ((size_t)(first + t) * s.n_v + head) * DIM + COLUMNS * slice + d);
    }
    if (threadIdx.x >= 96 && (int)threadIdx.x - 96 < n) {
      const int t = threadIdx.x - 96, m = first + t;
      gate[at][t] = expf(s.log_g[m * s.n_v + head]);
      rate[at][t] = s.b[m * s.n_v + head];
      product[at][t] = s.kq[m * s.n_k + key_head];
    }
    copies_commit();
  };

  fetch(span.x, 0);
  int at = 0;
#pragma unroll 1
  for (int first = span.x; first < end; first += TOKENS, at ^= 1) {
    if (first + TOKENS < end) {
      fetch(first + TOKENS, at ^ 1);
      copies_wait<1>();
    } else {
      copies_wait<0>();
    }
    __syncthreads();
    const int n = min(TOKENS, end - first);
    float4 k[4], q[4];
    load_row(k, &keys[at][0][4 * i]);
    load_row(q, &queries[at][0][4 * i]);
#pragma unroll 2
    for (int t = 0; t < n; t++) {
      const int row = first + t;
      if (tried && row > span.x && before[row] != row - 1) {  // another branch: from the state on down its own path
        columns.load(state, span.w == 0);
        const u32 path = masks[row] & ~(1u << (row - span.x));
        for (u32 left = path; left; left &= left - 1) {
          const int a = __ffs(left) - 1, in = a / TOKENS & 1;
          const float* past = s.d + ((size_t)(span.x + a) * s.n_v + head) * DIM + COLUMNS * slice + column;
          float4 key[4];
          float d[EACH];
          load_row(key, &keys[in][a % TOKENS][4 * i]);
#pragma unroll
          for (int e = 0; e < EACH; e++) d[e] = past[e];
          columns.move(gate[in][a % TOKENS], key, d);
        }
      }
      // The next row's key and query are on their way while this one's sums go round.
      float4 next_k[4], next_q[4];
      const int next = min(t + 1, n - 1);
      load_row(next_k, &keys[at][next][4 * i]);
      load_row(next_q, &queries[at][next][4 * i]);
      const float g = gate[at][t], b = rate[at][t], kq = product[at][t];
      float of_k[EACH], of_q[EACH], d[EACH], o[EACH];
#pragma unroll
      for (int e = 0; e < EACH; e++) of_k[e] = columns.dot(e, k), of_q[e] = columns.dot(e, q);
#pragma unroll
      for (int e = 0; e < EACH; e++) of_k[e] = column_sum(of_k[e]), of_q[e] = column_sum(of_q[e]);
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        d[e] = b * (values[at][t][column + e] - g * of_k[e]);
        o[e] = fmaf(kq, d[e], g * of_q[e]);
      }
      columns.move(g, k, d);
      if (i == 0) {
        const size_t to = ((size_t)row * s.n_v + head) * DIM + COLUMNS * slice + column;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
          s.o[to + e] = o[e];
          if (tried) s.d[to + e] = d[e];
        }
      }
      if (tried) __syncwarp();
#pragma unroll
      for (int j = 0; j < 4; j++) k[j] = next_k[j], q[j] = next_q[j];
    }
    __syncthreads();
  }
  if (tried) return;
  columns.store(state);
  const size_t tail = (size_t)slot * (s.taps - 1) * (2 * s.n_k + s.n_v) * DIM;
  for (int c = 128 * blockIdx.x + threadIdx.x; c < (2 * s.n_k + s.n_v) * DIM; c += 128 * gridDim.x)
    move_tail(tails + tail, s, span, blockIdx.y, c);
}

// Lets `path` of a sequence's tried rows, which a short step left in its logs, stand: grid (n_v * DIM / COLUMNS, layers), 128 threads.
// A layer's values, states and tails lie so many bytes, floats and floats behind those of the layer before.
struct Path {
  int count, row[32];
};

extern "C" __global__ void __launch_bounds__(128)
commit(const int4* __restrict__ spans, int sequence, Path path, float* __restrict__ states, long long layer_states,
       float* __restrict__ tails, long long layer_tails, Values s, long long layer_values) {
  const int4 span = spans[sequence];
  const int head = blockIdx.x / (DIM / COLUMNS), slice = blockIdx.x % (DIM / COLUMNS), key_head = head % s.n_k;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, i = lane & 7, column = EACH * (4 * warp + (lane >> 3)), slot = span.z >> 1;
  auto of_layer = [&](const float* p) { return (const float*)((const u8*)p + blockIdx.y * layer_values); };
  const float *keys = of_layer(s.k), *ds = of_layer(s.d), *log_g = of_layer(s.log_g), *raw = of_layer(s.raw);
  states += blockIdx.y * layer_states, tails += blockIdx.y * layer_tails;
  wait_for_previous();
  float* state = states + (((size_t)slot * s.n_v + head) * DIM + COLUMNS * slice + column) * DIM + 4 * i;
  Columns columns;
  columns.load(state, span.w == 0 && path.row[0] == 0);
  for (int p = 0; p < path.count; p++) {
    const int m = span.x + path.row[p];
    const float* past = ds + ((size_t)m * s.n_v + head) * DIM + COLUMNS * slice + column;
    float4 k[4];
    float d[EACH];
    load_row(k, keys + ((size_t)m * s.n_k + key_head) * DIM + 4 * i);
#pragma unroll
    for (int e = 0; e < EACH; e++) d[e] = past[e];
    columns.move(expf(log_g[m * s.n_v + head]), k, d);
  }
  columns.store(state);
  const int qkv = (2 * s.n_k + s.n_v) * DIM, keep = s.taps - 1;
  float* tail = tails + (size_t)slot * keep * qkv;
  const bool fresh = span.w == 0 && path.row[0] == 0;
  for (int c = 128 * blockIdx.x + threadIdx.x; c < qkv; c += 128 * gridDim.x)
    for (int at = 0; at < keep; at++) {  // rising, so that what is still to be read is not overwritten
      const int after = keep - 1 - at;
      float x = 0;
      if (after < path.count) x = raw[(size_t)(span.x + path.row[path.count - 1 - after]) * qkv + c];
      else if (!fresh) x = tail[(size_t)(at + path.count) * qkv + c];
      tail[(size_t)at * qkv + c] = x;
    }
}

// Grid (superblocks, M), up to 4 warps, which share the addends of z. `z` is its first column in the product; `columns` =
// n_v * DIM.
extern "C" __global__ void __launch_bounds__(128, 4)
gate(const float* __restrict__ o, Product mixed, int z, const float* __restrict__ norm, const int* __restrict__ positions,
     int columns, float eps, Activation out) {
  const int superblock = blockIdx.x, m = blockIdx.y, lane = threadIdx.x & 31, column = 256 * superblock + 8 * lane;
  const bool inside = column < columns && positions[m] >= 0;
  const Addends addends = addends_of(mixed, m, z + (column < columns ? column : 0));
  const float4 *of_norm = (const float4*)(norm + column % DIM), w0 = of_norm[0], w1 = of_norm[1];
  wait_for_previous(out);
  float v[8], x[8] = {};
  const float squares = read_squares(mixed, m);
  if (inside) {
    const float4 *from = (const float4*)(o + (size_t)m * columns + column), a = from[0], b = from[1];
    x[0] = a.x, x[1] = a.y, x[2] = a.z, x[3] = a.w, x[4] = b.x, x[5] = b.y, x[6] = b.z, x[7] = b.w;
  }
  if (!add_up_together(addends, v)) return;
  const float factor = factor_of(mixed, squares), w[8] = {w0.x, w0.y, w0.z, w0.w, w1.x, w1.y, w1.z, w1.w};
  float square = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) square += x[i] * x[i];
#pragma unroll
  for (int o = 1; o < DIM / 8; o <<= 1) square += __shfl_xor_sync(~0u, square, o);
  const float scale = rsqrtf(square / DIM + eps);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const float gate = factor * v[i];
    v[i] = inside ? x[i] * scale * w[i] * (gate / (1 + __expf(-gate))) : 0;
  }
  write_activation(out, m, superblock, v);
}
