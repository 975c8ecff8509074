// y = W x for weights that are numbers: F32, F16 or BF16 rows as in the file, activations and sums in float32.
//
// Grid (ceil(rows / 4), ceil(M / 8)), 128 threads: a warp takes one row of W for 8 batch rows. Lane l adds columns
// 2l, 2l + 1, 2l + 64, .. in this order, so a batch row's bits do not depend on M. For small and oracle models; no tensor cores.
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
