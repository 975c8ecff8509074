// x += y, then h = weight * x, written in the forms that the next products read, and the sums of x^2 of 256 columns each.
//
// RMSNorm's factor 1 / sqrt(mean(x^2) + eps) is one number a row, so it can wait: the readers of the next product apply it
// (include/product.cuh), and no block has to see a whole row.
// Grid (superblocks, M), or (superblocks, M / 2) of add_norm_two: a block takes 256 columns of a row, or two. `columns` is a multiple of 8.
// H200, 2026-11-30: 1.9 us in the graph of an 8B at M = 1, 4,096 columns and eight parts.
#include "activation.cuh"
#include "product.cuh"

// A block's R rows: 1 or 8 warps share the parts of all, warp r then does the rest of row r. Where nothing is to be added `y.count`
// is 0 and y.y is x. `squares` (M, superblocks).
template <int R>
DEVICE void norm(float* __restrict__ x, const Product& y, const float* __restrict__ weight, int columns, float* __restrict__ squares,
                 const Activation& out) {
  const int superblock = blockIdx.x, superblocks = gridDim.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int m = R * blockIdx.y + min(warp, R - 1), column = 256 * superblock + 8 * lane;
  const bool inside = column < columns;
  Addends addends[R];
  addends_from(y, R * blockIdx.y, inside ? column : 0, addends);
  const bool last = inside && warp < R;  // of the warps that do the rest
  const float4 wa = load4(weight + column, last), wb = load4(weight + column + 4, last);
  const float w[8] = {wa.x, wa.y, wa.z, wa.w, wb.x, wb.y, wb.z, wb.w};
  wait_to_read(out);
  float v[8] = {}, sum = 0;
  const float y_squares = read_squares(y, m);
  float* at = x + (size_t)m * columns + column;
  const float4 a = load4(at, last), b = load4(at + 4, last);
  reads_are_out(out);
  if (!add_up_together<8, 8>(addends, v)) return;
  const float factor = y.count ? factor_of(y, y_squares) : 0;
  if (inside) {
    v[0] = a.x + factor * v[0], v[1] = a.y + factor * v[1], v[2] = a.z + factor * v[2], v[3] = a.w + factor * v[3];
    v[4] = b.x + factor * v[4], v[5] = b.y + factor * v[5], v[6] = b.z + factor * v[6], v[7] = b.w + factor * v[7];
    if (y.count) {
      *(float4*)at = make_float4(v[0], v[1], v[2], v[3]);
      *(float4*)(at + 4) = make_float4(v[4], v[5], v[6], v[7]);
    }
  } else {
#pragma unroll
    for (int j = 0; j < 8; j++) v[j] = 0;
  }
#pragma unroll
  for (int j = 0; j < 8; j++) {
    sum += v[j] * v[j];
    v[j] *= w[j];
  }
#pragma unroll
  for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
  if (lane == 0) squares[m * superblocks + superblock] = sum;
  write_activation(out, m, superblock, v);
}

extern "C" __global__ void __launch_bounds__(256, 2)
add_norm(float* __restrict__ x, Product y, const float* __restrict__ weight, int columns, float* __restrict__ squares,
         Activation out) {
  norm<1>(x, y, weight, columns, squares, out);
}

extern "C" __global__ void __launch_bounds__(256, 2)
add_norm_two(float* __restrict__ x, Product y, const float* __restrict__ weight, int columns, float* __restrict__ squares,
             Activation out) {
  norm<2>(x, y, weight, columns, squares, out);
}

constexpr int ROWS = 2;

// The same for many rows where y lies whole: grid (superblocks, ceil(M / (4 ROWS))), 128 threads, a warp 256 columns of ROWS rows.
extern "C" __global__ void __launch_bounds__(128, 8)
add_norm_rows(float* __restrict__ x, Product y, const float* __restrict__ weight, int columns, float* __restrict__ squares, int M,
              Activation out) {
  const int superblock = blockIdx.x, superblocks = gridDim.x, lane = threadIdx.x & 31;
  const int first = ROWS * (4 * blockIdx.y + (threadIdx.x >> 5)), column = piece_column(superblock);
  const bool inside[2] = {column < columns, column + 16 < columns};
  const float* factors = factors_at(y, 256 * superblock);
  float4 old[ROWS][2], added[ROWS][2];
  float y_squares[ROWS], factor[ROWS];
  wait_for_previous();
  let_next_start();
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int m = min(first + r, M - 1);
    const float *from = x + (size_t)m * columns + column, *from_y = y.y + (size_t)m * y.width + column;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      old[r][i] = load4(from + 16 * i, inside[i]);
      added[r][i] = load4(from_y + 16 * i, inside[i] && y.count);
    }
    y_squares[r] = read_squares(y, m);
    factor[r] = factors ? load1(factors + m, true) : 1;
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    if (first + r >= M) return;
    const float f = factor[r] * factor_of(y, y_squares[r]);
    float v[8], sum = 0;
    float* to = x + (size_t)(first + r) * columns + column;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      const float4 a = old[r][i], b = added[r][i];
      const float4 z = make_float4(a.x + f * b.x, a.y + f * b.y, a.z + f * b.z, a.w + f * b.w);
      const float4 w = load4(weight + column + 16 * i, inside[i]);
      if (inside[i] && y.count) *(float4*)(to + 16 * i) = z;
      sum += (z.x * z.x + z.y * z.y) + (z.z * z.z + z.w * z.w);
      v[4 * i] = z.x * w.x, v[4 * i + 1] = z.y * w.y, v[4 * i + 2] = z.z * w.z, v[4 * i + 3] = z.w * w.w;
    }
#pragma unroll
    for (int o = 16; o; o >>= 1) sum += __shfl_xor_sync(~0u, sum, o);
    if (lane == 0) squares[(first + r) * superblocks + superblock] = sum;
    write_pieces(out, first + r, superblock, v);
  }
}
