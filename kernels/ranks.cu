// The likeliest tokens of each row of logits, and the sum over all: what a drafter's block is read for.
//
// A logit v counts as cap * tanh(scale * v / cap), without a `cap` as scale * v, scale > 0. Candidates are 64-bit keys as in sample.cu:
// the logit's bits in an order of integers, and below them the column, so that of equal logits the lower id is the greater key; 0 is
// none, which NaN are.
#include "ptx.cuh"

typedef unsigned long long u64;

constexpr int RANKED = 8, PIECES = 32;

// Of a row: ids and logits, greatest first, and the logarithm of the sum of all exp(logit); id -1 where there is none.
struct Ranked {
  int id[RANKED];
  float logit[RANKED], total;
};

// A sum of exp(v - top), in an order that is always the same.
struct Sum {
  float top, sum;
  DEVICE_METHOD void add(float v) {
    if (v > top) sum *= __expf(top - v), top = v;
    sum += __expf(v - top);
  }
  DEVICE_METHOD void meet(float other_top, float other_sum) {
    const float both = fmaxf(top, other_top);
    sum = sum * __expf(top - both) + other_sum * __expf(other_top - both);
    top = both;
  }
};

// Of PIECES parts of a row: its RANKED greatest keys, and its sum.
struct Piece {
  u64 key[RANKED];
  Sum sum;
};

constexpr float LEAST = -3e38f;

DEVICE float counted(float v, float scale, float cap) { return cap > 0 ? cap * tanhf(scale * v / cap) : scale * v; }

DEVICE u64 key_of(float v, int column) {
  u32 bits = v == 0 ? 0 : __float_as_uint(v);  // no minus 0
  bits = bits >> 31 ? ~bits : bits | 0x80000000u;
  return v == v ? (u64)bits << 32 | ~(u32)column : 0;
}

DEVICE float logit_of(u64 key) {
  const u32 bits = (u32)(key >> 32);
  return __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits);
}

// Takes the greatest of a warp's first keys: whose it was goes on with its next one.
DEVICE u64 take_greatest(u64 (&keys)[RANKED]) {
  u64 best = keys[0];
#pragma unroll
  for (int o = 16; o; o >>= 1) best = max(best, __shfl_xor_sync(~0u, best, o));
  if (best == keys[0]) {
#pragma unroll
    for (int i = 0; i + 1 < RANKED; i++) keys[i] = keys[i + 1];
    keys[RANKED - 1] = 0;
  }
  return best;
}

DEVICE void meet_warp(Sum& sum) {
#pragma unroll
  for (int o = 16; o; o >>= 1) {
    const float top = __shfl_xor_sync(~0u, sum.top, o), other = __shfl_xor_sync(~0u, sum.sum, o);
    sum.meet(top, other);
  }
}

// Grid (PIECES, rows), 256 threads.
extern "C" __global__ void __launch_bounds__(256)
rank_pieces(const float* __restrict__ logits, int width, float scale, float cap, Piece* __restrict__ pieces) {
  __shared__ Piece of_warp[8];
  const int r = blockIdx.y, each = (width + PIECES - 1) / PIECES, begin = blockIdx.x * each, end = min(width, begin + each);
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  wait_for_previous();
  let_next_start();
  u64 keys[RANKED] = {};
  Sum sum = {LEAST, 0};
#pragma unroll 4
  for (int c = begin + threadIdx.x; c < end; c += 256) {
    const float v = logits[(size_t)r * width + c];
    u64 key = key_of(v, c);
    if (v == v) sum.add(fmaxf(counted(v, scale, cap), LEAST));
    if (key <= keys[RANKED - 1]) continue;
#pragma unroll
    for (int i = 0; i < RANKED; i++) {
      const u64 had = keys[i];
      keys[i] = max(had, key), key = min(had, key);
    }
  }
  meet_warp(sum);
#pragma unroll
  for (int i = 0; i < RANKED; i++) {
    const u64 best = take_greatest(keys);
    if (lane == 0) of_warp[warp].key[i] = best;
  }
  if (lane == 0) of_warp[warp].sum = sum;
  __syncthreads();
  if (warp) return;
#pragma unroll
  for (int i = 0; i < RANKED; i++) keys[i] = lane < 8 ? of_warp[lane].key[i] : 0;
  sum = lane < 8 ? of_warp[lane].sum : Sum{LEAST, 0};
  meet_warp(sum);
  Piece& out = pieces[r * PIECES + blockIdx.x];
#pragma unroll
  for (int i = 0; i < RANKED; i++) {
    const u64 best = take_greatest(keys);
    if (lane == 0) out.key[i] = best;
  }
  if (lane == 0) out.sum = sum;
}

// Grid (rows), 32 threads.
extern "C" __global__ void __launch_bounds__(32)
rank(const Piece* __restrict__ pieces, float scale, float cap, Ranked* __restrict__ ranked) {
  const Piece& mine = pieces[blockIdx.x * PIECES + threadIdx.x];
  wait_for_previous();
  let_next_start();
  u64 keys[RANKED];
#pragma unroll
  for (int i = 0; i < RANKED; i++) keys[i] = mine.key[i];
  Sum sum = mine.sum;
  meet_warp(sum);
  Ranked& out = ranked[blockIdx.x];
#pragma unroll
  for (int i = 0; i < RANKED; i++) {
    const u64 best = take_greatest(keys);
    if (threadIdx.x) continue;
    out.id[i] = best ? (int)~(u32)best : -1;
    out.logit[i] = best ? counted(logit_of(best), scale, cap) : LEAST;
  }
  if (threadIdx.x == 0) out.total = sum.top + logf(sum.sum);
}
