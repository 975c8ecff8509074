// The result of a matrix product, as its consumer reads it: the parts of split tiles are added here.
//
// matmul.cu gives each block `units` (tile, superblock) steps in a row. A tile that one block finished lies in `y`; of
// another, block b left its part in `parts`, and the sum of the parts in the order of b is the same for every M.
#pragma once
#include "ptx.cuh"

// Rows [.., row_end) of a product: one launch. `units` is 0 where all lies in `y`; `parts` then are factors that the rows m
// still lack, null for none.
struct Part {
  const float* parts;
  int row_end, superblocks, units, tiles, columns, column_tiles;
};

// y (M, width); the launches' rows lie side by side. Where x came from a norm, its factor 1 / sqrt(mean + eps) is still
// to be applied: `squares` (M, n_squares) are the sums of x^2 of 256 columns each, null where there is no norm.
struct Product {
  const float* y;
  int width, count;
  Part part[4];
  const float* squares;
  int n_squares;
  float columns, eps;
};

// Where the addends of element (m, row) and of the following ones in its tile of 16 rows lie. It depends on no
// other kernel, so it is found before waiting for one.
struct Addends {
  const float *first, *others;
  int step, count;
  const float* factor;  // of a row m, null for 1
};

DEVICE Addends addends_of(const Product& p, int m, int row) {
  // Written out: an index into a kernel parameter would copy it to local memory.
  const bool second = p.count > 1 && row >= p.part[0].row_end, third = p.count > 2 && row >= p.part[1].row_end;
  const bool fourth = p.count > 3 && row >= p.part[2].row_end;
  const Part part = fourth ? p.part[3] : third ? p.part[2] : second ? p.part[1] : p.part[0];
  Addends whole = {p.y + (size_t)m * p.width + row, nullptr, 0, 1, nullptr};
  if (part.units == 0) {
    if (part.parts) whole.factor = part.parts + m;
    return whole;
  }
  row -= fourth ? p.part[2].row_end : third ? p.part[1].row_end : second ? p.part[0].row_end : 0;
  const int tile = row >> 4, group = tile / part.tiles, column_tile = m / part.columns;
  const int unit = (group * part.column_tiles + column_tile) * part.superblocks;
  const int first = unit / part.units, last = (unit + part.superblocks - 1) / part.units;
  if (first == last) return whole;
  // A block has two slots: 0 for a tile that it goes on with, 1 for one that it begins.
  const int rows = 16 * part.tiles, slot = rows * part.columns;
  const int at = (m - column_tile * part.columns) * rows + row - group * rows;
  const float* begin = part.parts + (size_t)(2 * first) * slot + at;
  return {begin + slot, begin, 2 * slot, last - first + 1, nullptr};
}

// v = elements 0 .. N - 1 from the place that `a` was found for, which is a multiple of 4.
template <int N>
DEVICE void add_up(const Addends& a, float (&v)[N]) {
  float4 sum[N / 4];
#pragma unroll
  for (int j = 0; j < N / 4; j++) sum[j] = __ldcg((const float4*)a.first + j);
#pragma unroll 4
  for (int i = 1; i < a.count; i++) {
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
      const float4 part = __ldcg((const float4*)(a.others + (size_t)i * a.step) + j);
      sum[j].x += part.x, sum[j].y += part.y, sum[j].z += part.z, sum[j].w += part.w;
    }
  }
  if (a.factor) {
    const float factor = __ldcg(a.factor);
#pragma unroll
    for (int j = 0; j < N / 4; j++) sum[j].x *= factor, sum[j].y *= factor, sum[j].z *= factor, sum[j].w *= factor;
  }
#pragma unroll
  for (int j = 0; j < N / 4; j++) v[4 * j] = sum[j].x, v[4 * j + 1] = sum[j].y, v[4 * j + 2] = sum[j].z, v[4 * j + 3] = sum[j].w;
}

// Every `parts`-th addend from number `part` on; none where the count is 0.
DEVICE Addends share_of(const Addends& a, int part, int parts) {
  return {part == 0 ? a.first : a.others + (size_t)part * a.step, a.others + (size_t)part * a.step, a.step * parts,
          (a.count - part + parts - 1) / parts, a.factor};
}

// The same with the parts shared out among the warps of a block: warp w adds parts w, w + warps, .., then warp 0 the sums of
// the others, which leave. A part costs a round trip to memory, so four warps cost a quarter.
template <int N>
DEVICE bool add_up_together(const Addends& a, float (&v)[N]) {
  __shared__ float4 others[3][N / 4][32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  const Addends mine = share_of(a, warp, warps);
  if (mine.count > 0) add_up(mine, v);
  if (warps == 1) return true;
  if (warp > 0 && mine.count > 0)
#pragma unroll
    for (int j = 0; j < N / 4; j++) others[warp - 1][j][lane] = make_float4(v[4 * j], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]);
  __syncthreads();
  if (warp > 0) return false;
  for (int w = 1; w < min(warps, a.count); w++)
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
      const float4 part = others[w - 1][j][lane];
      v[4 * j] += part.x, v[4 * j + 1] += part.y, v[4 * j + 2] += part.z, v[4 * j + 3] += part.w;
    }
  return true;
}

DEVICE float add_up(const Addends& a) {
  float sum = __ldcg(a.first);
#pragma unroll 4
  for (int i = 1; i < a.count; i++) sum += __ldcg(a.others + (size_t)i * a.step);
  return a.factor ? sum * __ldcg(a.factor) : sum;
}

// The factor of row m that the norm left out, in two steps, so that other loads can go out between them: each lane of a
// warp reads its squares, then the warp adds them up.
DEVICE float read_squares(const Product& p, int m) {
  float sum = 0;
  if (p.squares)
    for (int i = threadIdx.x & 31; i < p.n_squares; i += 32) sum += __ldcg(p.squares + m * p.n_squares + i);
  return sum;
}

DEVICE float factor_of(const Product& p, float squares) {
  if (!p.squares) return 1;
#pragma unroll
  for (int o = 16; o; o >>= 1) squares += __shfl_xor_sync(~0u, squares, o);
  return rsqrtf(squares / p.columns + p.eps);
}
