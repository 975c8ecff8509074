// Draws tokens from the `top_k` likeliest of a row, as engine/ops/choosing.py has it; rows without a `top_k` keep what head.cu found.
//
// Candidates are 64-bit keys: the logit's bits in an order of integers, and below them the column, so that of equal logits the lower
// id is the greater key; 0 is none. Pieces of the vocabulary are sorted, and lists of 256 are merged until one is left. What decides
// is float64: weights exp((logit - greatest) / temperature), added up in the order of the candidates.
#include "ptx.cuh"

typedef unsigned long long u64;

// How a row's token is chosen, with `n_changes` from number `first` on. A `newest` token occurred once more: an id, or -1 - m for that
// of row m of the step. `mask` is the number of the row's mask, -1 for none.
struct Choice {
  int n_vocab, top_k, first, n_changes, newest, has_newest, mask, pad;
  double temperature, top_p, min_p, u, repetition, presence, frequency;
};

// A token that occurred `count` times, and what is added to its logit.
struct Change {
  int column, count;
  double bias;
};

constexpr int MOST = 256, PIECE = 8 * MOST, LISTS = 16;  // candidates of a row, logits of a block, lists that a block merges

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

DEVICE void order(u64& a, u64& b, bool falling) {
  const u64 x = a, y = b;
  if ((x < y) == falling) a = y, b = x;
}

// Sorts each MOST of `n` keys, greatest first; 256 threads.
DEVICE void sort(u64* keys, int n) {
  for (int size = 2; size <= MOST; size <<= 1)
    for (int stride = size >> 1; stride; stride >>= 1) {
      __syncthreads();
      for (int p = threadIdx.x; p < n / 2; p += 256) {
        const int i = 2 * p - (p & (stride - 1));
        order(keys[i], keys[i + stride], size == MOST || !(i & size));
      }
    }
}

// The greatest MOST of `lists` (a power of two) sorted lists of MOST keys, sorted, in place of the first; 256 threads.
DEVICE void merge(u64* keys, int lists) {
  for (int step = 1; step < lists; step <<= 1) {
    const int pairs = lists / (2 * step), n = step * MOST;
    __syncthreads();
    for (int p = threadIdx.x; p < pairs * MOST; p += 256) {
      u64* list = keys + p / MOST * 2 * n;
      const u64 other = list[n + MOST - 1 - p % MOST];
      if (other > list[p % MOST]) list[p % MOST] = other;
    }
    for (int stride = MOST / 2; stride; stride >>= 1) {
      __syncthreads();
      for (int p = threadIdx.x; p < pairs * (MOST / 2); p += 256) {
        const int i = 2 * (p % (MOST / 2)) - (p & (stride - 1));
        u64* list = keys + p / (MOST / 2) * 2 * n;
        order(list[i], list[i + stride], true);
      }
    }
  }
  __syncthreads();
}

// Up to LISTS lists of a row, from number `first` on, and empty ones up to a power of two; how many these are.
DEVICE int load(u64* keys, const u64* lists, int first, int n) {
  const int count = min(LISTS, n - first);
  int whole = 1;
  while (whole < count) whole <<= 1;
  for (int i = 0; i < whole; i++) keys[i * MOST + threadIdx.x] = i < count ? lists[(first + i) * MOST + threadIdx.x] : 0;
  return whole;
}

// The candidates of PIECE logits: grid (ceil(width / PIECE), rows), 256 threads. `tokens` are those of a short step's rows; a mask is
// ceil(width / 32) words with a bit for each token that may come.
extern "C" __global__ void __launch_bounds__(256)
candidates(const float* __restrict__ logits, int width, const Choice* __restrict__ choices, const Change* __restrict__ changes,
           const u32* __restrict__ masks, const int* __restrict__ tokens, u64* __restrict__ lists) {
  __shared__ u64 keys[PIECE];
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
  if (threadIdx.x == 0) listed = 0;
  for (int i = threadIdx.x; i < PIECE; i += 256) {
    const int column = begin + i;
    const bool may = column < end && (!mask || mask[column >> 5] >> (column & 31) & 1);
    keys[i] = may ? key_of(row[column], column) : 0;
  }
  __syncthreads();
  for (int e = threadIdx.x; e < choice.n_changes; e += 256) {
    const Change change = changes[choice.first + e];
    const int column = change.column;
    if (column == newest) listed = 1;
    if (column < begin || column >= end || !keys[column - begin]) continue;
    keys[column - begin] = key_of(changed(row[column], choice, change.count + (column == newest), change.bias), column);
  }
  __syncthreads();
  if (threadIdx.x == 0 && !listed && newest >= begin && newest < end && keys[newest - begin])
    keys[newest - begin] = key_of(changed(row[newest], choice, 1, 0), newest);
  sort(keys, PIECE);
  merge(keys, PIECE / MOST);
  lists[(size_t)(r * gridDim.x + blockIdx.x) * MOST + threadIdx.x] = keys[threadIdx.x];
}

// Of LISTS of a row's `n` lists one: grid (ceil(n / LISTS), rows), 256 threads.
extern "C" __global__ void __launch_bounds__(256)
merge_lists(const u64* __restrict__ lists, int n, const Choice* __restrict__ choices, u64* __restrict__ merged) {
  __shared__ u64 keys[LISTS * MOST];
  let_next_start();
  wait_for_previous();
  const int r = blockIdx.y;
  if (choices[r].top_k < 1) return;
  const int count = load(keys, lists + (size_t)r * n * MOST, LISTS * blockIdx.x, n);
  merge(keys, count);
  merged[(size_t)(r * gridDim.x + blockIdx.x) * MOST + threadIdx.x] = keys[threadIdx.x];
}

// The token of a row of up to LISTS lists, unless `found` says that a logit is bad: grid (rows), 256 threads.
extern "C" __global__ void __launch_bounds__(256)
choose(const u64* __restrict__ lists, int n, const Choice* __restrict__ choices, int* __restrict__ found) {
  __shared__ u64 keys[LISTS * MOST];
  __shared__ double weights[MOST];
  let_next_start();
  wait_for_previous();
  const int r = blockIdx.x, i = threadIdx.x;
  const Choice choice = choices[r];
  if (choice.top_k < 1 || found[r] < 0) return;
  const int count = load(keys, lists + (size_t)r * n * MOST, 0, n);
  merge(keys, count);
  const int k = min(choice.top_k, MOST);
  if (!keys[0] || logit_of(keys[0]) == __uint_as_float(0xff800000u)) {
    if (i == 0) found[r] = -1;
    return;
  }
  weights[i] = i < k && keys[i] ? exp(((double)logit_of(keys[i]) - (double)logit_of(keys[0])) / choice.temperature) : 0;
  __syncthreads();
  if (i) return;
  double total = 0;
  for (int c = 0; c < k; c++) total += weights[c];
  int kept = k;
  if (choice.top_p < 1) {
    const double mass = choice.top_p * total;
    double sum = 0;
    for (kept = 1; kept < k; kept++) {
      sum += weights[kept - 1];
      if (!(sum < mass)) break;
    }
  }
  if (choice.min_p > 0) {
    const double least = choice.min_p * weights[0];
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
  found[r] = (int)~(u32)keys[at];
}
