// x += y, then h = weight * x / sqrt(mean(x^2) + eps), written in the forms that the next products read.
//
// Grid (M), 512 threads: a block holds its row in registers, a warp 256 columns at a time. Up to 16,384 columns.
#include "activation.cuh"
#include "product.cuh"

constexpr int WARPS = 16, MOST = 4;

// `y.count` is 0 where nothing is to be added.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
add_norm(float* __restrict__ x, Product y, const float* __restrict__ weight, float eps, int columns, Activation out) {
  let_next_start();
  wait_for_previous();
  __shared__ float sums[WARPS];
  const int m = blockIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float v[MOST][8], sum = 0;
#pragma unroll
  for (int i = 0; i < MOST; i++) {
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
      const int column = 256 * (warp + WARPS * i) + 8 * lane + j;
      float4 a = make_float4(0, 0, 0, 0);
      if (column < columns) {
        float4* at = (float4*)(x + (size_t)m * columns + column);
        a = *at;
        if (y.count) {
          const float4 b = load4(y, m, column);
          a.x += b.x, a.y += b.y, a.z += b.z, a.w += b.w;
          *at = a;
        }
      }
      v[i][j] = a.x, v[i][j + 1] = a.y, v[i][j + 2] = a.z, v[i][j + 3] = a.w;
      sum += a.x * a.x + a.y * a.y + a.z * a.z + a.w * a.w;
    }
    if (256 * (warp + WARPS * (i + 1)) >= columns) break;
  }
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  sum = 0;
#pragma unroll
  for (int i = 0; i < WARPS; i++) sum += sums[i];
  const float scale = rsqrtf(sum / columns + eps);
#pragma unroll
  for (int i = 0; i < MOST; i++) {
    const int superblock = warp + WARPS * i;
    if (256 * superblock >= columns) break;
    float h[8];
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
      const int column = 256 * superblock + 8 * lane + j;
      const float4 w = column < columns ? *(const float4*)(weight + column) : make_float4(0, 0, 0, 0);
      h[j] = w.x * (v[i][j] * scale), h[j + 1] = w.y * (v[i][j + 1] * scale);
      h[j + 2] = w.z * (v[i][j + 2] * scale), h[j + 3] = w.w * (v[i][j + 3] * scale);
    }
    write_activation(out, m, superblock, h);
  }
}
