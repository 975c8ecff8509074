// y = W x for weights that are numbers: F32, F16 or BF16 rows as in the file, activations and sums in float32.
//
// For routers, and small and oracle models; no tensor cores. `matmul_float`: grid (ceil(rows / 4), ceil(M / 8)), 128 threads, a warp
// takes one row of W for 8 batch rows. `matmul_float_short`: grid (rows, ceil(M / 8)), 128 threads, four warps share the columns
// of a row. `matmul_float_tiles`: grid (ceil(rows / 64), ceil(M / 64)), 512 threads, a block 64 rows of W for 64 batch rows. Each adds
// in one order for all M.
#include "ptx.cuh"

enum { F32 = 0, F16 = 1, BF16 = 30 };
constexpr int BATCH = 8;

DEVICE float2 weights_at(const u8* row, int k) {
  if (TYPE == F32) return *(const float2*)(row + 4 * (size_t)k);
  const u32 pair = *(const u32*)(row + 2 * (size_t)k);
  if (TYPE == F16) return make_float2(half2_low(pair), half2_high(pair));
  return make_float2(bf16_to_f32((u16)pair), bf16_to_f32((u16)(pair >> 16)));
}

// `columns` is even; `x` (M, columns); row r of the product goes to y[m * stride + r].
extern "C" __global__ void __launch_bounds__(128)
matmul_float(const u8* __restrict__ w, const float* __restrict__ x, float* __restrict__ y, int rows, int columns, int stride,
             int M) {
  let_next_start();
  wait_for_previous();
  const int row = 4 * blockIdx.x + (threadIdx.x >> 5), lane = threadIdx.x & 31, m0 = BATCH * blockIdx.y;
  if (row >= rows) return;
  const u8* from = w + (size_t)row * columns * (TYPE == F32 ? 4 : 2);
  const float* from_x = x + (size_t)m0 * columns;
  const int left = M - 1 - m0;  // rows beyond the last repeat it and are not stored
  float sum[BATCH];
#pragma unroll
  for (int i = 0; i < BATCH; i++) sum[i] = 0;
#pragma unroll 2
  for (int k = 2 * lane; k < columns; k += 64) {
    const float2 v = weights_at(from, k);
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      const float2 a = *(const float2*)(from_x + min(i, left) * columns + k);
      sum[i] = fmaf(v.y, a.y, fmaf(v.x, a.x, sum[i]));
    }
  }
#pragma unroll
  for (int i = 0; i < BATCH; i++) {
#pragma unroll
    for (int o = 16; o; o >>= 1) sum[i] += __shfl_xor_sync(~0u, sum[i], o);
    if (lane == 0 && i <= left) y[(size_t)(m0 + i) * stride + row] = sum[i];
  }
}

extern "C" __global__ void __launch_bounds__(128, 4)
matmul_float_short(const u8* __restrict__ w, const float* __restrict__ x, float* __restrict__ y, int rows, int columns, int stride,
                   int M) {
  __shared__ float others[3][BATCH];
  const int row = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5, m0 = BATCH * blockIdx.y;
  const u8* from = w + (size_t)row * columns * (TYPE == F32 ? 4 : 2);
  const float* from_x = x + (size_t)m0 * columns;
  const int batch = min(BATCH, M - m0);
  float2 first[4];  // weights depend on no other kernel
#pragma unroll
  for (int i = 0; i < 4; i++) {
    const int k = 2 * (threadIdx.x + 128 * i);
    first[i] = k < columns ? weights_at(from, k) : make_float2(0, 0);
  }
  wait_for_previous();
  let_next_start();
  float sum[BATCH];
#pragma unroll
  for (int j = 0; j < BATCH; j++) sum[j] = 0;
  auto add = [&](const float2& v, int k) {
#pragma unroll
    for (int j = 0; j < BATCH; j++)
      if (j < batch) {
        const float2 a = *(const float2*)(from_x + (size_t)j * columns + k);
        sum[j] = fmaf(v.y, a.y, fmaf(v.x, a.x, sum[j]));
      }
  };
#pragma unroll
  for (int i = 0; i < 4; i++)
    if (2 * (threadIdx.x + 128 * i) < columns) add(first[i], 2 * (threadIdx.x + 128 * i));
#pragma unroll 4
  for (int k = 2 * (threadIdx.x + 512); k < columns; k += 256) add(weights_at(from, k), k);
#pragma unroll
  for (int j = 0; j < BATCH; j++) {
#pragma unroll
    for (int o = 16; o; o >>= 1) sum[j] += __shfl_xor_sync(~0u, sum[j], o);
    if (lane == 0 && warp) others[warp - 1][j] = sum[j];
  }
  __syncthreads();
  if (warp || lane) return;
#pragma unroll
  for (int j = 0; j < BATCH; j++)
    if (j < batch) y[(size_t)(m0 + j) * stride + row] = ((sum[j] + others[0][j]) + others[1][j]) + others[2][j];
}

// A thread has 4 x 4 of the tile, of every other 16 columns; the next ones are on their way while those in shared memory are
// multiplied.
extern "C" __global__ void __launch_bounds__(512, 1)
matmul_float_tiles(const u8* __restrict__ w, const float* __restrict__ x, float* __restrict__ y, int rows, int columns,
                   int stride, int M) {
  constexpr int DEPTH = 16, WIDTH = 64 + 4;
  __shared__ __align__(16) float part[2][2][2][DEPTH][WIDTH];  // of each half of the threads, twice, of w and of x
  const int half = threadIdx.x >> 8, i = threadIdx.x & 255, row0 = 64 * blockIdx.x, m0 = 64 * blockIdx.y;
  const int mine = i >> 2, k0 = 4 * (i & 3) + DEPTH * half;  // rows beyond the last repeat it and are not stored
  const u8* from = w + (size_t)min(row0 + mine, rows - 1) * columns * (TYPE == F32 ? 4 : 2);
  const float* from_x = x + (size_t)min(m0 + mine, M - 1) * columns;
  float4 of_w, of_x;
  auto fetch = [&](int k) {
    of_w = of_x = make_float4(0, 0, 0, 0);
    if (k + k0 >= columns) return;
    const float2 a = weights_at(from, k + k0), b = weights_at(from, k + k0 + 2);
    of_w = make_float4(a.x, a.y, b.x, b.y);
    of_x = *(const float4*)(from_x + k + k0);
  };
  auto put = [&](int buffer) {
    float *to = &part[half][buffer][0][4 * (i & 3)][mine], *to_x = &part[half][buffer][1][4 * (i & 3)][mine];
    to[0] = of_w.x, to[WIDTH] = of_w.y, to[2 * WIDTH] = of_w.z, to[3 * WIDTH] = of_w.w;
    to_x[0] = of_x.x, to_x[WIDTH] = of_x.y, to_x[2 * WIDTH] = of_x.z, to_x[3 * WIDTH] = of_x.w;
  };
  wait_for_previous();
  let_next_start();
  const int r = 4 * (i & 15), m = 4 * (i >> 4);
  float sum[4][4] = {};
  fetch(0);
  put(0);
  __syncthreads();
  for (int k = 0, buffer = 0; k < columns; k += 2 * DEPTH, buffer ^= 1) {
    fetch(k + 2 * DEPTH);
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      const float4 a = *(const float4*)&part[half][buffer][0][d][r], b = *(const float4*)&part[half][buffer][1][d][m];
      const float of_row[4] = {a.x, a.y, a.z, a.w}, of_m[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int j = 0; j < 4; j++)
#pragma unroll
        for (int n = 0; n < 4; n++) sum[j][n] = fmaf(of_row[n], of_m[j], sum[j][n]);
    }
    put(buffer ^ 1);
    __syncthreads();
  }
  float4* others = (float4*)part;
  if (half)
#pragma unroll
    for (int j = 0; j < 4; j++) others[256 * j + i] = make_float4(sum[j][0], sum[j][1], sum[j][2], sum[j][3]);
  __syncthreads();
  if (half) return;
#pragma unroll
  for (int j = 0; j < 4; j++) {
    const float4 other = others[256 * j + i];
    const float all[4] = {sum[j][0] + other.x, sum[j][1] + other.y, sum[j][2] + other.z, sum[j][3] + other.w};
#pragma unroll
    for (int n = 0; n < 4; n++)
      if (m0 + m + j < M && row0 + r + n < rows) y[(size_t)(m0 + m + j) * stride + row0 + r + n] = all[n];
  }
}
