// Draws tokens from the `top_k` likeliest of a row, as engine/ops/choosing.py has it; rows without a `top_k` keep what head.cu found.
//
// Candidates are 64-bit keys: the logit's bits in an order of integers, and below them the column, so that of equal logits the lower
// id is the greater key; 0 is none. Pieces of the vocabulary are sorted, and lists of 256 are merged until one is left. What decides
// is float64: weights exp((logit - greatest) / temperature), added up in the order of the candidates. Where all tokens count, the sum
// of all is added up piece by piece, and 256 candidates that do not reach far enough leave the token UNDECIDED.
//
// A drawn token costs 34 us more than the likeliest one, of 151,936, and 43 with penalties (H200, 2026-11-30, decode of qwen3-0.6b-q8
// in the engine).
#include "ptx.cuh"

typedef unsigned long long u64;

// How a row's token is chosen, with `n_changes` from number `first` on. A `newest` token occurred once more: an id, or -1 - m for that
// of row m of the step. `mask` is the number of the row's mask, -1 for none. `whole`: all tokens count for top-p.
struct Choice {
  int n_vocab, top_k, first, n_changes, newest, has_newest, mask, whole;
  double temperature, top_p, min_p, u, repetition, presence, frequency;
};

// A token that occurred `count` times, and what is added to its logit.
struct Change {
  int column, count;
  double bias;
};

// Of a piece the weights' sum with its greatest logit for 1, and that logit.
struct Weight {
  double sum, top;
};

constexpr int MOST = 256, UNDECIDED = -2, PIECE = 8 * MOST, LISTS = 16;  // candidates of a row, logits of a block, lists that a block merges

DEVICE u64 key_of(float v, int column) {
  u32 bits = v == 0 ? 0 : __float_as_uint(v);  // no minus 0
  bits = bits >> 31 ? ~bits : bits | 0x80000000u;
  return (u64)bits << 32 | ~(u32)column;
}

DEVICE float logit_of(u64 key) {
  const u32 bits = (u32)(key >> 32);
  return __uint_as_float(bits >> 31 ? bits & 0x7fffffffu : ~bits);
}

// The same roundings as in choosing.py: float32 for what is multiplied, float64 for what is added.
DEVICE float changed(float v, const Choice& choice, int count, double bias) {
  if (count > 0) {
    const float by = (float)choice.repetition;
    v = v > 0 ? __fdiv_rn(v, by) : __fmul_rn(v, by);
    v = (float)__dadd_rn(v, -__dadd_rn(choice.presence, __dmul_rn(choice.frequency, count)));
  }
  return (float)__dadd_rn(v, bias);
}

// Of two keys the greater to `a`, or the lesser where not `falling`.
DEVICE void order(u64& a, u64& b, bool falling) {
  const u64 x = a, y = b;
  if ((x < y) == falling) a = y, b = x;
}

// A list of MOST keys is held by a warp: number 8 lane + j is keys[j]. Compares keys that are `stride` numbers apart.
template <int STRIDE>
DEVICE void compare(u64 (&keys)[8], bool falling) {
  if (STRIDE >= 8) {
    const bool greater = !(threadIdx.x & (STRIDE / 8)) == falling;
#pragma unroll
    for (int j = 0; j < 8; j++) {
      const u64 other = __shfl_xor_sync(~0u, keys[j], STRIDE / 8);
      if ((other > keys[j]) == greater) keys[j] = other;
    }
  } else {
#pragma unroll
    for (int j = 0; j < 8; j++)
      if (!(j & STRIDE)) order(keys[j], keys[j | STRIDE % 8], falling);
  }
}

// Makes order of keys that rise and then fall, or the other way, over `STRIDE` times two.
template <int STRIDE>
DEVICE void clean(u64 (&keys)[8], bool falling) {
  compare<STRIDE>(keys, falling);
  if constexpr (STRIDE > 1) clean<STRIDE / 2>(keys, falling);
}

// Sorts a warp's keys, greatest first: bitonic, of which the small sizes have a direction for each key.
DEVICE void sort(u64 (&keys)[8]) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int j = 0; j < 8; j += 2) order(keys[j], keys[j + 1], !(j & 2));
#pragma unroll
  for (int stride = 2; stride; stride >>= 1)
#pragma unroll
    for (int j = 0; j < 8; j++)
      if (!(j & stride)) order(keys[j], keys[j | stride], !(j & 4));
  clean<4>(keys, !(lane & 1));
  clean<8>(keys, !(lane & 2));
  clean<16>(keys, !(lane & 4));
  clean<32>(keys, !(lane & 8));
  clean<64>(keys, !(lane & 16));
  clean<128>(keys, true);
}

// The greatest MOST of a warp's list and of another one, which is read from the end.
DEVICE void merge(u64 (&keys)[8], const u64* other) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int j = 0; j < 8; j++) keys[j] = max(keys[j], other[MOST - 1 - 8 * lane - j]);
  clean<128>(keys, true);
}

DEVICE void put(const u64 (&keys)[8], u64* list) {
#pragma unroll
  for (int j = 0; j < 8; j++) list[8 * (threadIdx.x & 31) + j] = keys[j];
}

// The lists of the 8 warps of a block become that of the first one; `space` is for 4.
DEVICE void merge_warps(u64 (&keys)[8], u64 (&space)[4][MOST]) {
  const int warp = threadIdx.x >> 5;
  for (int half = 4; half; half >>= 1) {
    if (warp >= half && warp < 2 * half) put(keys, space[warp - half]);
    __syncthreads();
    if (warp < half) merge(keys, space[warp]);
    __syncthreads();
  }
}

// Of up to LISTS lists of a row, from number `first` on, that of the first warp.
DEVICE void merge_lists_of(u64 (&keys)[8], u64 (&space)[4][MOST], const u64* lists, int first, int n) {
  const int at = first + 2 * (threadIdx.x >> 5);
#pragma unroll
  for (int j = 0; j < 8; j++) keys[j] = at < n ? lists[(size_t)at * MOST + 8 * (threadIdx.x & 31) + j] : 0;
  if (at + 1 < n) merge(keys, lists + (size_t)(at + 1) * MOST);
  merge_warps(keys, space);
}

DEVICE double weight_of(u64 key, double top, const Choice& choice) { return exp((logit_of(key) - top) / choice.temperature); }

// The sum of a block's weights, in an order that is always the same.
DEVICE void add_weights(const u64 (&keys)[8], const Choice& choice, Weight* out) {
  __shared__ u64 tops[8];
  __shared__ double sums[8];
  const int warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
  u64 best = 0;
#pragma unroll
  for (int j = 0; j < 8; j++) best = max(best, keys[j]);
#pragma unroll
  for (int o = 16; o; o >>= 1) best = max(best, __shfl_xor_sync(~0u, best, o));
  if (lane == 0) tops[warp] = best;
  __syncthreads();
  for (int w = 0; w < 8; w++) best = max(best, tops[w]);
  const bool any = best && logit_of(best) != __uint_as_float(0xff800000u);
  const double top = any ? logit_of(best) : 0;
  double sum = 0;
  for (int j = 0; j < 8; j++)
    if (any && keys[j]) sum += weight_of(keys[j], top, choice);
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < 8; w++) sum += sums[w];
  *out = {sum, top};
}

// The candidates of PIECE logits: grid (ceil(width / PIECE), rows), 256 threads. `tokens` are those of a short step's rows; a mask is
// ceil(width / 32) words with a bit for each token that may come.
extern "C" __global__ void __launch_bounds__(256)
candidates(const float* __restrict__ logits, int width, const Choice* __restrict__ choices, const Change* __restrict__ changes,
           const u32* __restrict__ masks, const int* __restrict__ tokens, Weight* __restrict__ parts,
           u64* __restrict__ lists) {
  __shared__ u64 space[4][MOST];
  __shared__ float values[PIECE];
  __shared__ int listed;
  let_next_start();
  wait_for_previous();
  const int r = blockIdx.y;
  if (choices[r].top_k < 1) return;
  const Choice choice = choices[r];
  const int begin = PIECE * blockIdx.x, end = min(min(width, choice.n_vocab), begin + PIECE);
  const int newest = !choice.has_newest ? -1 : choice.newest < 0 ? tokens[-1 - choice.newest] : choice.newest;
  const float* row = logits + (size_t)r * width;
  const u32* mask = choice.mask < 0 ? nullptr : masks + (size_t)choice.mask * ((width + 31) / 32);
  if (choice.n_changes || newest >= 0) {  // the same for all threads
    for (int i = threadIdx.x; i < end - begin; i += 256) values[i] = row[begin + i];
    if (threadIdx.x == 0) listed = 0;
    __syncthreads();
    for (int e = threadIdx.x; e < choice.n_changes; e += 256) {
      const Change change = changes[choice.first + e];
      const int at = change.column - begin;
      if (change.column == newest) listed = 1;
      if (at < 0 || change.column >= end) continue;
      values[at] = changed(values[at], choice, change.count + (change.column == newest), change.bias);
    }
    __syncthreads();
    if (threadIdx.x == 0 && !listed && newest >= begin && newest < end)
      values[newest - begin] = changed(values[newest - begin], choice, 1, 0);
    __syncthreads();
    row = values - begin;
  }
  u64 keys[8];
#pragma unroll
  for (int j = 0; j < 8; j++) {
    const int column = begin + 256 * j + threadIdx.x;
    const bool may = column < end && (!mask || mask[column >> 5] >> (column & 31) & 1);
    keys[j] = may ? key_of(row[column], column) : 0;
  }
  if (choice.whole) add_weights(keys, choice, parts + r * gridDim.x + blockIdx.x);
  sort(keys);
  merge_warps(keys, space);
  if (threadIdx.x < 32) put(keys, lists + (size_t)(r * gridDim.x + blockIdx.x) * MOST);
}

// Of LISTS of a row's `n` lists one: grid (ceil(n / LISTS), rows), 256 threads.
extern "C" __global__ void __launch_bounds__(256)
merge_lists(const u64* __restrict__ lists, int n, const Choice* __restrict__ choices, u64* __restrict__ merged) {
  __shared__ u64 space[4][MOST];
  let_next_start();
  wait_for_previous();
  const int r = blockIdx.y;
  if (choices[r].top_k < 1) return;
  u64 keys[8];
  merge_lists_of(keys, space, lists + (size_t)r * n * MOST, LISTS * blockIdx.x, n);
  if (threadIdx.x < 32) put(keys, merged + (size_t)(r * gridDim.x + blockIdx.x) * MOST);
}

// The token of a row of up to LISTS lists and of `n_parts` pieces, unless `found` says that a logit is bad: grid (rows), 256 threads.
extern "C" __global__ void __launch_bounds__(256, 1)
choose(const u64* __restrict__ lists, int n, const Choice* __restrict__ choices, const Weight* __restrict__ parts, int n_parts,
       int* __restrict__ found) {
  __shared__ u64 space[4][MOST];
  __shared__ double weights[MOST], sums[256];
  let_next_start();
  wait_for_previous();
  const int r = blockIdx.x, i = threadIdx.x;
  const Choice choice = choices[r];
  if (choice.top_k < 1 || found[r] < 0) return;
  u64 keys[8];
  merge_lists_of(keys, space, lists + (size_t)r * n * MOST, 0, n);
  const u64* best = space[0];
  if (i < 32) put(keys, space[0]);
  __syncthreads();
  const int k = min(choice.top_k, MOST);
  if (!best[0] || logit_of(best[0]) == __uint_as_float(0xff800000u)) {
    if (i == 0) found[r] = -1;
    return;
  }
  const double top = logit_of(best[0]);
  weights[i] = i < k && best[i] ? weight_of(best[i], top, choice) : 0;
  if (choice.whole) {
    double sum = 0;
    for (int b = i; b < n_parts; b += 256) {
      const Weight part = parts[(size_t)r * n_parts + b];
      if (part.sum > 0) sum += part.sum * exp((part.top - top) / choice.temperature);
    }
    sums[i] = sum;
  }
  __syncthreads();
  if (i) return;
  double total = 0;
  for (int c = 0; c < (choice.whole ? 256 : k); c++) total += choice.whole ? sums[c] : weights[c];
  int kept = k;
  bool decided = !choice.whole || !best[k - 1] || logit_of(best[k - 1]) == __uint_as_float(0xff800000u);
  if (choice.top_p < 1) {
    const double mass = choice.top_p * total;
    double sum = 0;
    for (kept = 1; kept < k; kept++) {
      sum += weights[kept - 1];
      if (!(sum < mass)) break;
    }
    decided |= kept < k || sum + weights[k - 1] >= mass;
  }
  const double least = choice.min_p * weights[0];
  if (!decided && !(weights[k - 1] < least)) {
    found[r] = UNDECIDED;
    return;
  }
  if (choice.min_p > 0) {
    int n_likely = 1;
    while (n_likely < kept && weights[n_likely] >= least) n_likely++;
    kept = n_likely;
  }
  total = 0;
  for (int c = 0; c < kept; c++) total += weights[c];
  const double target = choice.u * total;
  double sum = 0;
  int at = 0;
  for (; at < kept - 1; at++) {
    sum += weights[at];
    if (sum > target || sum >= total) break;
  }
  found[r] = (int)~(u32)best[at];
}
