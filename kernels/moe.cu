// Mixture of experts around the products: which experts a row takes, rows sorted by expert, and the weighted sum.
//
// Short steps: `router` multiplies and its last block routes, then experts_short.cu; add_norm adds up what comes out. Others:
// route: the best experts of each row. plan: each (row, expert) pair gets a place; an expert's places begin at a multiple of
// `columns`, the batch rows of a tile of experts.cu. gather: activations to their places. weigh: the sum for each row. Where in its
// tile a pair lies changes no bit of it, so places are handed out by counters.
#include "activation.cuh"
#include "routes.cuh"

// Grid (ceil((n + 1) / 2), groups), 256 threads: a block multiplies two rows of `w` (n, columns), of which the last is `gate`, with
// x (M, columns) of a group, and the last block of a group to come routes its rows. `scores` (M, n + 1); `arrived` (groups) is
// zero before and after. `columns` is a multiple of 4.
extern "C" __global__ void __launch_bounds__(256, 2)
router(const float* __restrict__ w, const float* __restrict__ gate, const float* __restrict__ x, Product norm,
       const int* __restrict__ positions, int n, int columns, int M, float* scores, int* arrived, Routes routes) {
  __shared__ float sums[2][4][GROUP];
  __shared__ int before;
  const int half = threadIdx.x >> 7, i = threadIdx.x & 127, group = blockIdx.y, m0 = GROUP * group;
  const int row = min(2 * (int)blockIdx.x + half, n), batch = min(GROUP, M - m0);
  const float* from = row < n ? w + (size_t)row * columns : gate;
  const float* from_x = x + (size_t)m0 * columns;
  float4 first[4];  // weights depend on no other kernel
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const int k = 4 * (i + 128 * j);
    first[j] = k < columns ? *(const float4*)(from + k) : make_float4(0, 0, 0, 0);
  }
  wait_for_previous();
  let_next_start();
  float sum[GROUP];
#pragma unroll
  for (int g = 0; g < GROUP; g++) sum[g] = 0;
  auto add = [&](int g, const float4& v, const float4& a) {
    sum[g] = fmaf(v.w, a.w, fmaf(v.z, a.z, fmaf(v.y, a.y, fmaf(v.x, a.x, sum[g]))));
  };
#pragma unroll
  for (int g = 0; g < GROUP; g += 2)  // two rows at once: a round trip to memory is most of the time
    if (g < batch) {
      float4 a[2][4];
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const int k = 4 * (i + 128 * j);
          a[h][j] = *(const float4*)(from_x + (size_t)min(g + h, batch - 1) * columns + min(k, columns - 4));
        }
#pragma unroll
      for (int h = 0; h < 2; h++)
#pragma unroll
        for (int j = 0; j < 4; j++) add(g + h, first[j], a[h][j]);
    }
  for (int k = 4 * (i + 512); k < columns; k += 512) {
    const float4 v = *(const float4*)(from + k);
#pragma unroll
    for (int g = 0; g < GROUP; g++)
      if (g < batch) add(g, v, *(const float4*)(from_x + (size_t)g * columns + k));
  }
#pragma unroll
  for (int g = 0; g < GROUP; g++) {
    if (g >= batch) break;
#pragma unroll
    for (int o = 16; o; o >>= 1) sum[g] += __shfl_xor_sync(~0u, sum[g], o);
    if ((i & 31) == 0) sums[half][i >> 5][g] = sum[g];
  }
  __syncthreads();
  if (i < batch)
    __stcg(scores + (size_t)(m0 + i) * (n + 1) + row, ((sums[half][0][i] + sums[half][1][i]) + sums[half][2][i]) + sums[half][3][i]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) before = atomicAdd(arrived + group, 1);
  __syncthreads();
  if (before + 1 < (int)gridDim.x) return;
  __threadfence();
  if (threadIdx.x == 0) arrived[group] = 0;
  auto score_of = [&](int m, int e) { return __ldcg(scores + (size_t)m * (n + 1) + e); };
  route_group(score_of, norm, positions, n, M, group, nullptr, routes);
}

// Grid (groups), 256 threads. `scores` are n columns, then the shared expert's gate.
extern "C" __global__ void __launch_bounds__(256, 2)
route(Product scores, const int* __restrict__ positions, int n, int M, int* __restrict__ chosen, Routes routes) {
  __shared__ float score[GROUP][MOST_EXPERTS + 1];
  const int row = threadIdx.x >> 5, m = GROUP * blockIdx.x + row;
  wait_for_previous();
  let_next_start();
  if (m < M)
    for (int e = threadIdx.x & 31; e <= n; e += 32) score[row][e] = add_up(addends_of(scores, m, e));
  __syncthreads();
  auto score_of = [&](int m, int e) { return score[m & (GROUP - 1)][e]; };
  route_group(score_of, scores, positions, n, M, blockIdx.x, chosen, routes);
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

// Grid (ceil(columns / 512), M), 128 threads, 4 columns each: `down` (places, columns), and the shared expert's result, times `weights`
// (M, used + 1).
extern "C" __global__ void __launch_bounds__(128)
weigh(const float* __restrict__ down, const int* __restrict__ places, const int* __restrict__ chosen,
      const float* __restrict__ weights, int used, Product shared, int columns, float* __restrict__ out) {
  const int m = blockIdx.y, column = 4 * (128 * blockIdx.x + threadIdx.x);
  const Addends addends = addends_of(shared, m, column < columns ? column : 0);
  wait_for_previous();
  let_next_start();
  const float factor = factor_of(shared, read_squares(shared, m)) * weights[m * (used + 1) + used];
  if (column >= columns) return;
  float sum[4];
  add_up(addends, sum);
#pragma unroll
  for (int i = 0; i < 4; i++) sum[i] *= factor;
  for (int j = 0; j < used; j++) {
    if (chosen[m * used + j] < 0) break;
    const float w = weights[m * (used + 1) + j];
    const float4 y = *(const float4*)(down + (size_t)places[m * used + j] * columns + column);
    sum[0] = fmaf(w, y.x, sum[0]), sum[1] = fmaf(w, y.y, sum[1]), sum[2] = fmaf(w, y.z, sum[2]), sum[3] = fmaf(w, y.w, sum[3]);
  }
  *(float4*)(out + (size_t)m * columns + column) = make_float4(sum[0], sum[1], sum[2], sum[3]);
}
