// What a card can do: the rate of plain reads, and of tensor core products from registers. Bounds for all other kernels.
//
// read: any grid of 512 threads, 16 bytes a load, four loads in flight a thread. product_*: any grid of 128 threads, `rounds`
// times 8 independent tiles of 16 x 8 a warp, k 32 (int8) or 16 (f16). pause: one thread, about `ns` nanoseconds.
#include "ptx.cuh"

extern "C" __global__ void __launch_bounds__(512) read(const uint4* __restrict__ from, size_t n, u32* sink) {
  u32 sum = 0;
  size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  const size_t step = (size_t)gridDim.x * blockDim.x;
  for (; i + 3 * step < n; i += 4 * step) {
    const uint4 a = from[i], b = from[i + step], c = from[i + 2 * step], d = from[i + 3 * step];
    sum ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
  }
  if (sum == 0x12345u) *sink = sum;
}

DEVICE void add_mma_s8_k32(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
#pragma unroll
  for (int i = 0; i < 4; i++)
    asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};"
        : "+r"(c[2 * (i & 1)]), "+r"(c[2 * (i & 1) + 1]) : "r"(a[i]), "r"(i < 2 ? b0 : b1));
#endif
}

extern "C" __global__ void __launch_bounds__(128) product_int8(int rounds, u32* sink) {
  const u32 lane = threadIdx.x & 31;
  const u32 a[4] = {lane, lane * 3, lane * 5, lane * 7};
  int c[8][4];
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) c[i][j] = i + j;
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int i = 0; i < 8; i++) add_mma_s8_k32(c[i], a, a[i & 3], a[(i + 1) & 3]);
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
  if (sum == 0x12345) *sink = 1;
}

extern "C" __global__ void __launch_bounds__(128) product_f16(int rounds, u32* sink) {
  const u32 lane = threadIdx.x & 31;
  const u32 a[4] = {half2_twice(lane), half2_twice(lane + 1), half2_twice(lane + 2), half2_twice(lane + 3)};
  float c[8][4];
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 4; j++) c[i][j] = i + j;
  for (int r = 0; r < rounds; r++)
#pragma unroll
    for (int i = 0; i < 8; i++) mma_f16(c[i], a, a[i & 3], a[(i + 1) & 3]);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 8; i++) sum += c[i][0] + c[i][1] + c[i][2] + c[i][3];
  if (sum == 0.5f) *sink = 1;
}

extern "C" __global__ void pause(u32 ns) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)); while (now - begin < ns);
}
