// What the kernels of Gated DeltaNet share: where a step's values lie, and the arithmetic of a row, written so that it is the same
// to the last bit in every kernel that does a part of it.
#pragma once
#include "activation.cuh"
#include "product.cuh"

constexpr int DIM = 128;

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

// The slot that a span's state goes to, and the one that it is in before the span; whether another span of the step leaves it there.
DEVICE int slot_of(const int4& span) { return span.z >> 2 & 0x3fff; }
DEVICE int source_of(const int4& span) { return span.z >> 16; }
DEVICE bool is_later(const int4& span) { return span.z & 2; }

// Spans of `least` rows that are not tried are taken in chunks (delta_chunk.cu).
DEVICE bool is_chunked(const int4& span, int least) { return !(span.z & 1) && span.y >= least; }

// Their q and k go as f16 high parts, then low parts, times these.
constexpr float LIFT_K = 1024, LIFT_Q = 8192;

DEVICE void split(float x, float y, u32& high, u32& low) {
  high = half2_of(x, y);
  low = half2_of(x - half2_low(high), y - half2_high(high));
}

DEVICE void tap(float4& sum, const float4& x, float w0, float w1, float w2, float w3) {
  sum.x = fmaf(x.x, w0, sum.x), sum.y = fmaf(x.y, w1, sum.y), sum.z = fmaf(x.z, w2, sum.z), sum.w = fmaf(x.w, w3, sum.w);
}

DEVICE float sigmoid(float x) { return 1 / (1 + __expf(-x)); }
DEVICE float4 silu(const float4& x) { return make_float4(silu(x.x), silu(x.y), silu(x.z), silu(x.w)); }

DEVICE float4 scaled(const float4& x, float f) {
  return make_float4(__fmul_rn(f, x.x), __fmul_rn(f, x.y), __fmul_rn(f, x.z), __fmul_rn(f, x.w));
}

// Four columns of N rows at once, of those that are not negative, as `add_up` gives them, times their factors. The first BATCH
// addends of all go out before any is waited for.
template <int BATCH, int N>
DEVICE void add_up_rows(const Product& p, const int (&rows)[N], Addends (&a)[N], float4 (&x)[N]) {
  float squares[N];
  Coming<4, BATCH> coming[N];
#pragma unroll
  for (int j = 0; j < N; j++) {
    if (rows[j] < 0) a[j].count = 0;
    squares[j] = read_squares(p, max(rows[j], 0));
    coming[j] = Coming<4, BATCH>(a[j]);
  }
#pragma unroll
  for (int j = 0; j < N; j++) {
    if (rows[j] < 0) continue;
    float v[4];
    coming[j].add_up(a[j], v);
    x[j] = scaled(make_float4(v[0], v[1], v[2], v[3]), factor_of(p, squares[j]));
  }
}

// The dot product of two rows of DIM, which a warp holds in fours.
DEVICE float dot_of(const float4& x, const float4& y) {
  float sum = fmaf(x.w, y.w, fmaf(x.z, y.z, fmaf(x.y, y.y, __fmul_rn(x.x, y.x))));
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  return sum;
}

DEVICE float4 unit(const float4& x, float eps, float length) {
  return scaled(x, __fmul_rn(rsqrtf(__fadd_rn(dot_of(x, x), eps)), length));
}

DEVICE float log_decay(float alpha, float dt_bias, float a) {
  const float x = __fadd_rn(alpha, dt_bias);
  return __fmul_rn(a, x > 20 ? x : log1pf(expf(x)));
}

// The tail after a step of rows `first` .. `first` + rows - 1, of which `raw` has the last ones, `old` before it: one thread a channel.
DEVICE void move_tail(float* tail, const float* old, const Values& s, const int4& span, int sequence, int channel) {
  const int qkv = (2 * s.n_k + s.n_v) * DIM, keep = s.taps - 1;
  for (int i = 0; i < keep; i++) {  // rising, so that what is still to be read is not overwritten
    const int after = keep - 1 - i;  // rows of the new tail that follow
    const int source = i + span.y;
    float x;
    if (after < span.y) x = s.raw[(size_t)raw_row(s, span.x + span.y - 1 - after, sequence, after) * qkv + channel];
    else x = span.w + span.y - 1 - after < 0 ? 0 : old[(size_t)source * qkv + channel];
    tail[(size_t)i * qkv + channel] = x;
  }
}

// A warp has 4 EACH columns dv of a state: lane 8c + i the elements dk = 32j + 4i .. + 3 of columns EACH c + e, as s[e][j].
template <int EACH>
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
    for (int j = 0; j < 4; j++) tap(sum, s[e][j], x[j].x, x[j].y, x[j].z, x[j].w);
    return (sum.x + sum.y) + (sum.z + sum.w);
  }
  // What a row makes of it.
  DEVICE_METHOD void move(const float (&g)[EACH], const float4 (&k)[4], const float (&d)[EACH]) {
#pragma unroll
    for (int e = 0; e < EACH; e++)
#pragma unroll
      for (int j = 0; j < 4; j++) {
        s[e][j] = scaled(s[e][j], g[e]);
        tap(s[e][j], k[j], d[e], d[e], d[e], d[e]);
      }
  }
  // The d and o of a row behind this state.
  DEVICE_METHOD void look(const float4 (&k)[4], const float4 (&q)[4], const float (&v)[EACH], const float (&g)[EACH],
                          const float (&b)[EACH], float kq, float (&d)[EACH], float (&o)[EACH]) const {
    float of_k[EACH], of_q[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) of_k[e] = dot(e, k), of_q[e] = dot(e, q);
#pragma unroll
    for (int n = 1; n < 8; n <<= 1)
#pragma unroll
      for (int e = 0; e < EACH; e++)
        of_k[e] += __shfl_xor_sync(~0u, of_k[e], n), of_q[e] += __shfl_xor_sync(~0u, of_q[e], n);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      d[e] = __fmul_rn(b[e], fmaf(-g[e], of_k[e], v[e]));
      o[e] = fmaf(kq, d[e], __fmul_rn(g[e], of_q[e]));
    }
  }
};

DEVICE void load_row(float4 (&x)[4], const float* from) {
#pragma unroll
  for (int j = 0; j < 4; j++) x[j] = *(const float4*)(from + 32 * j);
}

// Columns 8 lane .. + 7 of two heads' o, normed and times silu(z): `z` lacks `factor` yet.
DEVICE void gated(float (&x)[8], const float (&z)[8], float factor, const float4& w0, const float4& w1, float eps) {
  const float w[8] = {w0.x, w0.y, w0.z, w0.w, w1.x, w1.y, w1.z, w1.w};
  float square = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) square = fmaf(x[i], x[i], square);
#pragma unroll
  for (int o = 1; o < DIM / 8; o <<= 1) square += __shfl_xor_sync(~0u, square, o);
  const float scale = rsqrtf(__fadd_rn(square / DIM, eps));
#pragma unroll
  for (int i = 0; i < 8; i++) x[i] = __fmul_rn(__fmul_rn(__fmul_rn(x[i], scale), w[i]), silu(__fmul_rn(factor, z[i])));
}

// The same bits as `add_up_together` of four warps, by one.
DEVICE void add_up_in_turn(const Addends& a, float (&v)[8]) {
  const Addends shares[4] = {share_of(a, 0, 4), share_of(a, 1, 4), share_of(a, 2, 4), share_of(a, 3, 4)};
  Coming<8, 1> coming[4] = {shares[0], shares[1], shares[2], shares[3]};
  coming[0].add_up(shares[0], v);
#pragma unroll
  for (int w = 1; w < 4; w++) {
    float part[8];
    coming[w].add_up(shares[w], part);
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] += part[i];
  }
}

// Norm and gate of row m's heads 2 `superblock` and the next, by one warp, into the activation.
DEVICE void gate_row(const float* o, const Product& mixed, int z, const float* norm, int m, int superblock, int width, float eps,
                     const Activation& out) {
  const int column = 256 * superblock + 8 * (threadIdx.x & 31);
  const float4 *of_norm = (const float4*)(norm + column % DIM), w0 = of_norm[0], w1 = of_norm[1];
  const float4 *from = (const float4*)(o + (size_t)m * width + column), a = __ldcg(from), b = __ldcg(from + 1);
  float x[8] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}, v[8];
  const float squares = read_squares(mixed, m);
  add_up_in_turn(addends_of(mixed, m, z + column), v);
  gated(x, v, factor_of(mixed, squares), w0, w1, eps);
  write_activation(out, m, superblock, x);
}

// How many rows of a sequence the block that is the last of two heads may gate: null counters, one for two heads of each
// sequence, leave that to `gate`.
struct Gate {
  u32* arrived;
  const float* norm;
  float eps;
};

// Whether this block is the last of `n` that count; all that they wrote is then seen. `order` is shared.
DEVICE bool is_last(u32* counter, u32 n, u32* order) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) *order = atomicInc(counter, n - 1);
  __syncthreads();
  if (*order != n - 1) return false;
  __threadfence();
  return true;
}
