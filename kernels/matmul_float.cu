// y = W x for weights that are numbers: F32, F16 or BF16 rows as in the file, activations and sums in float32.
//
// For routers, and small and oracle models; no tensor cores. `matmul_float`: grid (ceil(rows / 4), ceil(M / 8)), 128 threads, a warp
// takes one row of W for 8 batch rows. `matmul_float_short`: grid (rows, ceil(M / 8)), 128 threads, four warps share the columns
// of a row. Both add in one order for all M.
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
