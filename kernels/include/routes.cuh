// Which experts the rows of a step take, in short steps: 8 rows, a group of activations, at a time.
//
// A tile of work is an expert and the rows of one group that take it, by expert; a group has `most` of them, which are enough for
// all. A product has a place for each of a row's `used` experts and behind them one for the shared expert.
#pragma once
#include "product.cuh"

constexpr int MOST_EXPERTS = 1024, MOST_USED = 31, GROUP = 8;
constexpr u32 NOBODY = 255;

struct Routes {
  int* expert;     // (groups, most), -1 for none
  uint2* places;   // (groups, most), byte g: the place that row g of the group has for this expert, NOBODY for none
  float* weights;  // (M, used + 1), of the places
  float* factors;  // (M), of the norm
  int used, most;
  // By a warp: lane j has the weight of place j.
  DEVICE_METHOD void keep(int m, float weight, float factor) const {
    const int lane = threadIdx.x & 31;
    if (lane <= used) weights[m * (used + 1) + lane] = weight;
    if (lane == 0) factors[m] = factor;
  }
};

DEVICE u32 place_of(const uint2& places, int g) { return (u32)byte_at(g < 4 ? places.x : places.y, g & 3); }

DEVICE u32 warp_max(u32 v) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(~0u, v);
#else
#pragma unroll
  for (int o = 16; o; o >>= 1) v = max(v, __shfl_xor_sync(~0u, v, o));
  return v;
#endif
}

// Of n scores times `factor` the `used` largest, lower numbers first among equals, by a warp: lane j gets the expert of rank j and
// its share of the softmax over them. A lane has the scores COUNT lane .. COUNT lane + COUNT - 1.
template <int COUNT>
DEVICE void choose(const float (&scores)[COUNT], float factor, int n, int used, int& expert, float& weight) {
  const int lane = threadIdx.x & 31;
  u32 key[COUNT];  // ordered like the scores; 0: none, or taken
#pragma unroll
  for (int i = 0; i < COUNT; i++) {
    const float s = factor * scores[i];
    const u32 bits = s == 0 ? 0 : __float_as_uint(s);
    key[i] = COUNT * lane + i >= n ? 0 : s != s ? 1 : bits >> 31 ? ~bits : bits | 1u << 31;
  }
  u32 mine = 0;
  for (int j = 0; j < used; j++) {
    u32 high[4] = {};
#pragma unroll
    for (int i = 0; i < COUNT; i++) high[i & 3] = max(high[i & 3], key[i]);
    const u32 own = max(max(high[0], high[1]), max(high[2], high[3])), top = warp_max(own);
    const int winner = __ffs(__ballot_sync(~0u, own == top)) - 1;
    int at = 0;
#pragma unroll
    for (int i = COUNT - 1; i >= 0; i--)
      if (key[i] == top) at = i;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
      if (lane == winner && i == at) key[i] = 0;
    const int e = __shfl_sync(~0u, COUNT * lane + at, winner);
    if (lane == j) expert = e, mine = top;
  }
  const float score = __uint_as_float(mine >> 31 ? mine ^ 1u << 31 : ~mine);
  const float highest = __shfl_sync(~0u, score, 0), share = expf(score - highest);
  float total = 0;
  for (int j = 0; j < used; j++) total += __shfl_sync(~0u, share, j);
  weight = share / total;
}

// The same for row m, whose scores are `score_of(m, e)` times the norm's factor, number n that of the shared expert's gate: lane j
// gets the weight of place j, and of `used`, too.
template <int COUNT, class Read>
DEVICE void choose_row(const Read& score_of, const Product& norm, int n, int used, int m, int& expert, float& weight, float& factor) {
  const int lane = threadIdx.x & 31;
  float scores[COUNT];
#pragma unroll
  for (int i = 0; i < COUNT; i++) scores[i] = COUNT * lane + i < n ? score_of(m, COUNT * lane + i) : 0;
  const float gate = score_of(m, n), squares = read_squares(norm, m);
  factor = factor_of(norm, squares);
  choose(scores, factor, n, used, expert, weight);
  if (lane == used) weight = 1 / (1 + __expf(-factor * gate));
}

// 256 threads: warp r takes row r of `group`, whose scores are `score_of(m, e)` times the norm's factor, number n that of the
// shared expert's gate. With `chosen` (M, used) it gets the experts, -1 for padding; else the group's tiles are made.
template <class Read>
DEVICE void route_group(const Read& score_of, const Product& norm, const int* positions, int n, int M, int group, int* chosen,
                        const Routes& routes) {
  __shared__ u32 taken[MOST_EXPERTS / 32];
  __shared__ uint2 places[256];
  __shared__ int expert_of[256];
  const int lane = threadIdx.x & 31, row = threadIdx.x >> 5, m = GROUP * group + row, used = routes.used;
  if (threadIdx.x < MOST_EXPERTS / 32) taken[threadIdx.x] = 0;
  places[threadIdx.x] = make_uint2(~0u, ~0u);
  __syncthreads();
  const bool wanted = m < M && positions[m] >= 0;
  int expert = 0;
  if (m < M) {
    float weight, factor;
    if (n <= 256) choose_row<8>(score_of, norm, n, used, m, expert, weight, factor);
    else choose_row<MOST_EXPERTS / 32>(score_of, norm, n, used, m, expert, weight, factor);
    routes.keep(m, weight, factor);
    if (lane < used) {
      if (chosen) chosen[m * used + lane] = wanted ? expert : -1;
      else if (wanted) atomicOr(&taken[expert >> 5], 1u << (expert & 31));
    }
  }
  if (chosen) return;
  __syncthreads();
  if (wanted && lane < used) {
    int at = __popc(taken[expert >> 5] & ((1u << (expert & 31)) - 1));
    for (int w = 0; w < expert >> 5; w++) at += __popc(taken[w]);
    expert_of[at] = expert;
    ((u8*)&places[at])[row] = (u8)lane;
  }
  int count = 0;
  for (int w = 0; w < (n + 31) / 32; w++) count += __popc(taken[w]);
  __syncthreads();
  if ((int)threadIdx.x >= routes.most) return;
  const int at = group * routes.most + threadIdx.x;
  routes.expert[at] = (int)threadIdx.x < count ? expert_of[threadIdx.x] : -1;
  routes.places[at] = places[threadIdx.x];
}
