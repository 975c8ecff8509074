// Mixture of experts around the products: which experts a row takes, rows sorted by expert, and the weighted sum.
//
// route: the best experts of each row. plan: each (row, expert) pair gets a place; an expert's places begin at a multiple of
// `columns`, the batch rows of a tile of experts.cu. gather: activations to their places. weigh: the sum for each row. Where in its
// tile a pair lies changes no bit of it, so places are handed out by counters.
#include "activation.cuh"
#include "product.cuh"

constexpr int MOST_EXPERTS = 1024, MOST_USED = 32;

// Grid (M), 128 threads. `scores` are n columns, then the shared expert's gate. Of the largest scores, lower numbers first among
// equals, `chosen` (M, used) and softmax weights of sum 1; `shared` the gate's sigmoid. Padding chooses -1. A score's rank
// is how many come before it.
extern "C" __global__ void __launch_bounds__(128)
route(Product scores, const int* __restrict__ positions, int n, int used, int* __restrict__ chosen, float* __restrict__ weights,
      float* __restrict__ shared) {
  __shared__ __align__(16) float score[MOST_EXPERTS + 4], best[MOST_USED];
  const int m = blockIdx.x;
  const bool wanted = positions[m] >= 0;
  wait_for_previous();
  let_next_start();
  const float factor = factor_of(scores, read_squares(scores, m));
  for (int e = threadIdx.x; e < (n + 3) / 4 * 4; e += 128) {
    const float s = e < n ? factor * add_up(addends_of(scores, m, e)) : 0;
    score[e] = e < n && s == s ? s : -3e38f;
  }
  const float gate = factor * (threadIdx.x == 0 ? add_up(addends_of(scores, m, n)) : 0);
  __syncthreads();
  for (int e = threadIdx.x; e < n; e += 128) {
    const float mine = score[e];
    int rank = 0;
    for (int i = 0; i < n; i += 4) {
      const float4 s = *(const float4*)&score[i];
      rank += (s.x > mine || (s.x == mine && i < e)) + (s.y > mine || (s.y == mine && i + 1 < e)) +
              (s.z > mine || (s.z == mine && i + 2 < e)) + (s.w > mine || (s.w == mine && i + 3 < e));
    }
    if (rank >= used) continue;
    best[rank] = mine;
    chosen[m * used + rank] = wanted ? e : -1;
  }
  __syncthreads();
  if ((int)threadIdx.x < used) {
    float total = 0;
    for (int j = 0; j < used; j++) total += expf(best[j] - best[0]);
    weights[m * used + threadIdx.x] = expf(best[threadIdx.x] - best[0]) / total;
  }
  if (threadIdx.x == 0) shared[m] = 1 / (1 + __expf(-gate));
}

// One block of 1,024 threads. `places` (pairs), `rows` (tiles x columns): the row m at a place, -1 for none; `tile_expert`.
extern "C" __global__ void __launch_bounds__(1024)
plan(const int* __restrict__ chosen, int pairs, int used, int n, int columns, int tiles, int* __restrict__ places,
     int* __restrict__ rows, int* __restrict__ tile_expert) {
  __shared__ int count[MOST_EXPERTS], next[MOST_EXPERTS], warp_sum[32];
  const int i = threadIdx.x, lane = i & 31;
  count[i] = 0;
  wait_for_previous();
  let_next_start();
  __syncthreads();
  for (int p = i; p < pairs; p += 1024)
    if (chosen[p] >= 0) atomicAdd(&count[chosen[p]], 1);
  for (int p = i; p < tiles * columns; p += 1024) rows[p] = -1;
  __syncthreads();
  const int of_expert = i < n ? (count[i] + columns - 1) / columns : 0;
  int sum = of_expert;
#pragma unroll
  for (int o = 1; o < 32; o <<= 1) {
    const int below = __shfl_up_sync(~0u, sum, o);
    if (lane >= o) sum += below;
  }
  if (lane == 31) warp_sum[i >> 5] = sum;
  __syncthreads();
  int before = 0, all = 0;
  for (int w = 0; w < 32; w++) {
    if (w < i >> 5) before += warp_sum[w];
    all += warp_sum[w];
  }
  const int first = before + sum - of_expert;
  next[i] = first * columns;
  for (int t = 0; t < of_expert; t++) tile_expert[first + t] = i;
  for (int t = all + i; t < tiles; t += 1024) tile_expert[t] = -1;
  __syncthreads();
  for (int p = i; p < pairs; p += 1024) {
    if (chosen[p] < 0) continue;
    const int place = atomicAdd(&next[chosen[p]], 1);
    places[p] = place;
    rows[place] = p / used;
  }
}

// Grid (superblocks, ceil(places / 4)), 128 threads, a warp a place: h (., columns), with its norm's factor, to the form that is read.
extern "C" __global__ void __launch_bounds__(128)
gather_rows(const float* __restrict__ h, Product norm, const int* __restrict__ rows, int places, int columns, Activation out) {
  const int superblock = blockIdx.x, place = 4 * blockIdx.y + (threadIdx.x >> 5), column = 256 * superblock + 8 * (threadIdx.x & 31);
  wait_for_previous(out);
  const int m = place < places ? rows[place] : -1;
  if (m < 0) return;
  const float factor = factor_of(norm, read_squares(norm, m));
  float v[8] = {};
  if (column < columns) {
    const float4 a = *(const float4*)(h + (size_t)m * columns + column), b = *(const float4*)(h + (size_t)m * columns + column + 4);
    v[0] = factor * a.x, v[1] = factor * a.y, v[2] = factor * a.z, v[3] = factor * a.w;
    v[4] = factor * b.x, v[5] = factor * b.y, v[6] = factor * b.z, v[7] = factor * b.w;
  }
  write_activation(out, place, superblock, v);
}

// Grid (ceil(columns / 512), M), 128 threads, 4 columns each: `down` (places, columns), and the shared expert's result.
extern "C" __global__ void __launch_bounds__(128)
weigh(const float* __restrict__ down, const int* __restrict__ places, const int* __restrict__ chosen,
      const float* __restrict__ weights, int used, Product shared, const float* __restrict__ shared_weight, int columns,
      float* __restrict__ out) {
  const int m = blockIdx.y, column = 4 * (128 * blockIdx.x + threadIdx.x);
  const Addends addends = addends_of(shared, m, column < columns ? column : 0);
  wait_for_previous();
  let_next_start();
  const float factor = factor_of(shared, read_squares(shared, m)) * shared_weight[m];
  if (column >= columns) return;
  float sum[4];
  add_up(addends, sum);
#pragma unroll
  for (int i = 0; i < 4; i++) sum[i] *= factor;
  for (int j = 0; j < used; j++) {
    if (chosen[m * used + j] < 0) break;
    const float w = weights[m * used + j];
    const float4 y = *(const float4*)(down + (size_t)places[m * used + j] * columns + column);
    sum[0] = fmaf(w, y.x, sum[0]), sum[1] = fmaf(w, y.y, sum[1]), sum[2] = fmaf(w, y.z, sum[2]), sum[3] = fmaf(w, y.w, sum[3]);
  }
  *(float4*)(out + (size_t)m * columns + column) = make_float4(sum[0], sum[1], sum[2], sum[3]);
}
