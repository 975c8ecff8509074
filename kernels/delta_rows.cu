// What surrounds the recurrence of Gated DeltaNet, for many rows: as `convolve` and `gate` of delta.cu do it for a few.
//
// convolve_rows: a warp takes ROWS rows of a head with a window over those before, the next ones on their way meanwhile. H200,
// 2026-11-30, 48 heads, 2,048 rows: convolve_rows 84 us, gate_rows 48.
#include "delta.cuh"

DEVICE void store_split(float* row, const float4& x, int lane) {
  uint2 high, low;
  split(x.x, x.y, high.x, low.x);
  split(x.z, x.w, high.y, low.y);
  ((uint2*)row)[lane] = high, ((uint2*)row)[32 + lane] = low;
}

constexpr int ROWS = 16, GROUP = 4, BACK = 3;

// Four columns of rows of a product: where it lies whole, a row is at `first` + its number * width.
struct Source {
  const Product& mixed;
  const float* first;
  int column;
  bool is_whole;

  DEVICE_METHOD float4 at(int m, bool wanted) const {
    if (is_whole) return load4(first + (size_t)m * mixed.width, wanted);
    float v[4];
    Addends addends = addends_of(mixed, m, column);
    if (!wanted) addends.count = 0;
    add_up<4, 2>(addends, v);
    return make_float4(v[0], v[1], v[2], v[3]);
  }
};

// The factor of a row, made by one lane alone.
DEVICE float factor_alone(const Product& p, int m, const float* factors) {
  float sum = 0;
  if (!p.squares) return factors ? __ldcg(factors + m) : 1;
#pragma unroll 4
  for (int i = 0; i < p.n_squares; i++) sum += __ldcg(p.squares + (size_t)m * p.n_squares + i);
  return rsqrtf(sum / p.columns + p.eps) * (factors ? __ldcg(factors + m) : 1);
}

// Grid (n_k + n_v / 2 + ceil(n_v / 64), ceil(M / ROWS)), 64 threads, as `convolve`, of up to four taps. Lane r looks up what there is to
// know of row r. q and k of chunked spans are written as f16 high parts, then low parts.
extern "C" __global__ void __launch_bounds__(64, 8)
convolve_rows(Product mixed, const int* __restrict__ positions, const int* __restrict__ sequence, const int* __restrict__ before,
              const int4* __restrict__ spans, const float* __restrict__ tails, const float* __restrict__ conv1d,
              const float* __restrict__ dt_bias, const float* __restrict__ a, float eps, int M, int least, Values s) {
  __shared__ float4 query[32];
  const int qkv = (2 * s.n_k + s.n_v) * DIM, inner = s.n_v * DIM, first = ROWS * blockIdx.y, end = min(M, first + ROWS);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, own = first - BACK + lane;
  const bool is_gate = (int)blockIdx.x >= s.n_k + s.n_v / 2, is_value = (int)blockIdx.x >= s.n_k;
  const int value_head = 2 * (blockIdx.x - s.n_k) + warp, head = is_value ? 2 * s.n_k + value_head : blockIdx.x + warp * s.n_k;
  const int channel = head * DIM + 4 * lane;
  bool is_whole = true;
#pragma unroll
  for (int i = 0; i < 4; i++) is_whole = is_whole && (i >= mixed.count || mixed.part[i].units + mixed.part[i].more == 0);
  wait_for_previous();
  let_next_start();
  if (is_gate) {
    const int gate_head = 64 * (blockIdx.x - s.n_k - s.n_v / 2) + threadIdx.x, column = qkv + inner + min(gate_head, s.n_v - 1);
    const float factor = own >= 0 && own < end ? factor_alone(mixed, own, nullptr) : 0;
#pragma unroll 4
    for (int r = 0; r < ROWS; r++) {
      const int m = min(first + r, end - 1);
      const float f = __shfl_sync(~0u, factor, BACK + m - first);
      const float alpha = add_up(addends_of(mixed, m, column)), beta = add_up(addends_of(mixed, m, column + s.n_v));
      if (gate_head >= s.n_v) continue;
      s.log_g[m * s.n_v + gate_head] = log_decay(f * alpha, dt_bias[gate_head], a[gate_head]);
      s.b[m * s.n_v + gate_head] = sigmoid(f * beta);
    }
    return;
  }
  const Addends of_first = addends_of(mixed, 0, channel);
  const Source source = {mixed, of_first.first, channel, is_whole};
  float4 next[GROUP], window[2 * GROUP];  // rows .. - GROUP to .. + GROUP - 1
#pragma unroll
  for (int r = 1; r < GROUP; r++) window[GROUP + r] = source.at(max(first - GROUP + r, 0), first > 0);
#pragma unroll
  for (int r = 0; r < GROUP; r++) next[r] = source.at(min(first + r, end - 1), true);
  float taps[4][4];  // [how far back][channel]
#pragma unroll
  for (int j = 0; j < 4; j++)
#pragma unroll
    for (int i = 0; i < 4; i++) taps[j][i] = j < s.taps ? conv1d[(channel + i) * s.taps + s.taps - 1 - j] : 0;
  const bool inside = own >= first && own < end;
  const float factor = own >= 0 && own < end ? factor_alone(mixed, own, is_whole ? of_first.factors : nullptr) : 0;
  const int of_own = inside ? positions[own] : -1, number = inside ? sequence[own] : 0;
  int4 span = make_int4(0, 0, 0, 0);
  bool is_plain = s.taps == 4 && of_own >= BACK;
  if (of_own >= 0) {
    span = spans[number];
    for (int j = 0; j < BACK && is_plain; j++) is_plain = own - j >= 1 && before[own - j] == own - j - 1;
  }
  const u32 alive = __ballot_sync(~0u, of_own >= 0), plain = __ballot_sync(~0u, is_plain);
  const u32 chunked = __ballot_sync(~0u, is_chunked(span, least));
  const int after = span.x + span.y - 1 - own, raw_at = raw_row(s, own, number, after);
  const u32 kept = __ballot_sync(~0u, s.all || after < s.taps - 1);
#pragma unroll
  for (int r = 1; r < GROUP; r++) window[GROUP + r] = scaled(window[GROUP + r], __shfl_sync(~0u, factor, r - 1));
#pragma unroll 1
  for (int begin = 0; begin < end - first; begin += GROUP) {
#pragma unroll
    for (int r = 0; r < GROUP; r++) {
      window[r] = window[GROUP + r];
      window[GROUP + r] = scaled(next[r], __shfl_sync(~0u, factor, BACK + begin + r));
    }
    if (begin + GROUP < end - first)
#pragma unroll
      for (int r = 0; r < GROUP; r++) next[r] = source.at(min(first + begin + GROUP + r, end - 1), true);
#pragma unroll
    for (int r = 0; r < GROUP; r++) {
      const int m = first + begin + r, bit = BACK + begin + r;
      if (!(alive >> bit & 1)) continue;
      float4 x = window[GROUP + r], sum = make_float4(0, 0, 0, 0);
      if (kept >> bit & 1) *(float4*)(s.raw + (size_t)__shfl_sync(~0u, raw_at, bit) * qkv + channel) = x;
      tap(sum, x, taps[0][0], taps[0][1], taps[0][2], taps[0][3]);
      if (plain >> bit & 1) {
#pragma unroll
        for (int j = 1; j < 4; j++) tap(sum, window[GROUP + r - j], taps[j][0], taps[j][1], taps[j][2], taps[j][3]);
      } else {
        const int position = __shfl_sync(~0u, of_own, bit), slot = __shfl_sync(~0u, source_of(span), bit);
        const float* tail = tails + (size_t)slot * (s.taps - 1) * qkv + channel;
        int row = m, missing = 0;
#pragma unroll 1
        for (int j = 1; j < s.taps && j <= position; j++) {
          row = row < 0 ? -1 : before[row];
          if (row < 0) x = *(const float4*)(tail + (s.taps - 2 - missing++) * qkv);
          else x = scaled(source.at(row, true), factor_alone(mixed, row, is_whole ? of_first.factors : nullptr));
          const float* w = conv1d + channel * s.taps + s.taps - 1 - j;
          tap(sum, x, w[0], w[s.taps], w[2 * s.taps], w[3 * s.taps]);
        }
      }
      sum = silu(sum);
      if (is_value) {
        *(float4*)(s.v + ((size_t)m * s.n_v + value_head) * DIM + 4 * lane) = sum;
        continue;
      }
      sum = unit(sum, eps, warp ? 1 : rsqrtf((float)DIM));
      float* to = (warp ? s.k : s.q) + ((size_t)m * s.n_k + blockIdx.x) * DIM;
      if (chunked >> bit & 1) {
        store_split(to, scaled(sum, warp ? LIFT_K : LIFT_Q), lane);
        continue;
      }
      *(float4*)(to + 4 * lane) = sum;
      __syncthreads();
      if (warp == 0) query[lane] = sum;
      __syncthreads();
      const float dot = dot_of(sum, query[lane]);
      if (threadIdx.x == 32) s.kq[m * s.n_k + blockIdx.x] = dot;
    }
  }
}

constexpr int GATED = 2;

// Norm and gate of many rows: grid (n_v / 2, ceil(M / (4 GATED))), 128 threads, a warp GATED rows of two heads, whose loads go out
// together. `z` is its first column in the product.
extern "C" __global__ void __launch_bounds__(128)
gate_rows(const float* __restrict__ o, Product mixed, int z, const float* __restrict__ norm, const int* __restrict__ positions, int M,
          int columns, float eps, Activation out) {
  const int superblock = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, column = 256 * superblock + 8 * lane;
  const int first = GATED * (4 * blockIdx.y + warp);
  const float4 *of_norm = (const float4*)(norm + column % DIM), w0 = of_norm[0], w1 = of_norm[1];
  wait_for_previous(out);
  float x[GATED][8], squares[GATED];
  Addends addends[GATED];
  Coming<8, 1> coming[GATED];
#pragma unroll
  for (int r = 0; r < GATED; r++) {
    const int m = min(first + r, M - 1);
    const float* from = o + (size_t)m * columns + column;
    squares[r] = read_squares(mixed, m);
    addends[r] = addends_of(mixed, m, z + column);
    coming[r] = Coming<8, 1>(addends[r]);
    const float4 a = load4(from, true), b = load4(from + 4, true);
    x[r][0] = a.x, x[r][1] = a.y, x[r][2] = a.z, x[r][3] = a.w, x[r][4] = b.x, x[r][5] = b.y, x[r][6] = b.z, x[r][7] = b.w;
  }
#pragma unroll
  for (int r = 0; r < GATED; r++) {
    if (first + r >= M) return;
    float v[8];
    coming[r].add_up(addends[r], v);
    gated(x[r], v, factor_of(mixed, squares[r]), w0, w1, eps);
    if (positions[first + r] < 0)
#pragma unroll
      for (int i = 0; i < 8; i++) x[r][i] = 0;
    write_activation(out, first + r, superblock, x[r]);
  }
}
