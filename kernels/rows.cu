// Activations in the F16 form to f16 rows with one factor each, for a library's matrix product.
//
// The factor is the largest E of the row, a power of two like all of them, so values only lose what is far below the row's largest.
// Grid (ceil(superblocks / 4), groups of 8 rows), 128 threads: a warp takes 256 columns of 8 rows. Columns keep the order of
// the form.
#include "activation.cuh"

extern "C" __global__ void __launch_bounds__(128)
to_rows(const u8* __restrict__ x, int groups, int superblocks, int M, u16* __restrict__ rows, float* __restrict__ factors) {
  __shared__ float partial[16][8], highest[8];
  const int group = blockIdx.y, superblock = 4 * blockIdx.x + (threadIdx.x >> 5);
  const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
  auto block_of = [&](int s) { return x + ((size_t)s * groups + group) * F16_BLOCK; };
  float high = 0;
  wait_for_previous();
  for (int s = threadIdx.x >> 3; s < superblocks; s += 16) high = fmaxf(high, ((const float*)(block_of(s) + F16_E))[threadIdx.x & 7]);
  partial[threadIdx.x >> 3][threadIdx.x & 7] = high;
  __syncthreads();
  if (threadIdx.x < 8) {
#pragma unroll
    for (int i = 0; i < 16; i++) high = fmaxf(high, partial[i][threadIdx.x]);
    highest[threadIdx.x] = high;
    const int m = 8 * group + threadIdx.x;
    if (blockIdx.x == 0 && m < M) factors[m] = high;
  }
  __syncthreads();
  const int m = 8 * group + g;
  if (superblock >= superblocks || m >= M) return;
  const u8* block = block_of(superblock);
  const u32 ratio = half2_twice(((const float*)(block + F16_E))[g] / highest[g]);
  u16* to = rows + ((size_t)m * superblocks + superblock) * 256 + 8 * t;
#pragma unroll
  for (int slab = 0; slab < 8; slab++) {
    uint4 v = ((const uint4*)(block + 512 * slab))[lane];
    v.x = half2_mul(v.x, ratio), v.y = half2_mul(v.y, ratio), v.z = half2_mul(v.z, ratio), v.w = half2_mul(v.w, ratio);
    *(uint4*)(to + 32 * slab) = v;
  }
}
