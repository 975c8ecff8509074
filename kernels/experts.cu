// y = W x of the experts that rows have chosen, the rows sorted by expert (moe.cu): steps of more than 32 rows, in the F16 form.
//
// Grid (blocks of 64 TILES rows of up to two matrices side by side, tiles of 8 NT batch rows), 128 threads. All batch rows of a tile
// have one expert; it comes from the device, so a launch has as many tiles as there can be, and those without an expert
// end at once. A block goes through all columns, so nothing is split.
#include "unit.cuh"

constexpr int WARPS = 4;
constexpr int WEIGHT_STAGE = CHUNK * TILES * WARPS;
constexpr int STAGE = WEIGHT_STAGE + ACTIVATION * NT;

// An expert has `row_tiles` tiles of 16 rows in each matrix; w1 may be null.
extern "C" __global__ void __launch_bounds__(32 * WARPS, 2)
experts(const u8* __restrict__ w0, const u8* __restrict__ w1, int row_tiles, const int* __restrict__ tile_expert,
        const u8* __restrict__ x, int x_groups, float* __restrict__ y, int stride, int superblocks) {
  extern __shared__ __align__(128) u8 ring[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int groups = (row_tiles + WARPS * TILES - 1) / (WARPS * TILES), matrix = blockIdx.x / groups;
  const int first_tile = ((blockIdx.x - matrix * groups) * WARPS + warp) * TILES;
  wait_for_previous();
  let_next_start();
  const int expert = tile_expert[blockIdx.y];
  if (expert < 0) return;

  const u8* from_weights[TILES];
#pragma unroll
  for (int w = 0; w < TILES; w++)
    from_weights[w] = (matrix ? w1 : w0) + ((size_t)expert * row_tiles + min(first_tile + w, row_tiles - 1)) * superblocks * CHUNK + 16 * lane;
  const u8* from_x = x + (size_t)blockIdx.y * NT * ACTIVATION;
  auto fetch = [&](int sb) {
    if (sb < superblocks) {
      u8* to = ring + sb % STAGES * STAGE;
#pragma unroll
      for (int w = 0; w < TILES; w++)
#pragma unroll
        for (int i = 0; i < CHUNK; i += 512)
          if (i + 512 <= CHUNK || i + 16 * lane < CHUNK)
            copy16(to + (warp * TILES + w) * CHUNK + 16 * lane + i, from_weights[w] + (size_t)sb * CHUNK + i);
      for (int at = 16 * threadIdx.x; at < ACTIVATION * NT; at += 16 * 32 * WARPS)
        copy16(to + WEIGHT_STAGE + at, from_x + (size_t)sb * x_groups * ACTIVATION + at);
    }
    copies_commit();
  };
#pragma unroll
  for (int s = 0; s < STAGES - 1; s++) fetch(s);
  Lane l;
  l.lane = lane, l.g = lane >> 2, l.t = lane & 3;
  Sums acc;
  acc.clear();
#pragma unroll 1
  for (int sb = 0; sb < superblocks; sb++) {
    copies_wait<STAGES - 2>();
    __syncthreads();
    fetch(sb + STAGES - 1);
    l.weights = ring + sb % STAGES * STAGE + warp * TILES * CHUNK;
    l.activations = ring + sb % STAGES * STAGE + WEIGHT_STAGE;
    unit(acc, l);
  }
#pragma unroll
  for (int w = 0; w < TILES; w++) {
    if (first_tile + w >= row_tiles) break;
    const int row = 16 * (matrix * row_tiles + first_tile + w) + l.g;
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int k = 0; k < 4; k++)
        y[((size_t)blockIdx.y * 8 * NT + 8 * n + 2 * l.t + (k & 1)) * stride + row + 8 * (k >> 1)] = acc.at[w][n][k];
  }
}
