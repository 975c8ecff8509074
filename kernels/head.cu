// What stands around the output matrix: the rows whose logits are wanted, and their whole logits.
#include "activation.cuh"
#include "product.cuh"

// Row r of `out` is row wanted[r] of h (., columns). Grid (ceil(superblocks / 4), rows), 128 threads.
extern "C" __global__ void __launch_bounds__(128)
gather(const float* __restrict__ h, const int* __restrict__ wanted, int columns, Activation out) {
  let_next_start();
  wait_for_previous();
  const int superblock = 4 * blockIdx.x + (threadIdx.x >> 5), r = blockIdx.y;
  if (256 * superblock >= columns) return;
  const float* from = h + (size_t)wanted[r] * columns;
  float v[8];
#pragma unroll
  for (int j = 0; j < 8; j += 4) {
    const int column = 256 * superblock + 8 * (threadIdx.x & 31) + j;
    const float4 a = column < columns ? *(const float4*)(from + column) : make_float4(0, 0, 0, 0);
    v[j] = a.x, v[j + 1] = a.y, v[j + 2] = a.z, v[j + 3] = a.w;
  }
  write_activation(out, r, superblock, v);
}

// The product with its parts added. Grid (ceil(width / 256), rows), 256 threads.
extern "C" __global__ void __launch_bounds__(256) collect(Product y, float* __restrict__ out) {
  let_next_start();
  wait_for_previous();
  const int column = 256 * blockIdx.x + threadIdx.x, r = blockIdx.y;
  if (column < y.width) out[(size_t)r * y.width + column] = load1(y, r, column);
}
