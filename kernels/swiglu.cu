// h = silu(gate) * up of a product gate|up, written in the forms that the next product reads.
//
// Grid (superblocks, M), four warps that share the addends of 256 columns, two those of gate and two those of up; or, not
// `together`, grid (ceil(superblocks / warps), M), a warp 256 columns. swiglu_four: grid (superblocks, M / 4), the four warps share
// the addends of four rows. All add in one order. `columns` is a multiple of 8.
// H200, 2026-12-01, what it adds to the graph of an 8B's layer (12,288 columns; `python -m tests.gpu.measure MODEL.gguf --profile`): 2.2 us
// at M = 1, 4.2 at 16.
#include "activation.cuh"
#include "product.cuh"

typedef Coming<8, 1> Half;  // every other addend

DEVICE void add(float (&v)[8], const float (&other)[8]) {
#pragma unroll
  for (int j = 0; j < 8; j++) v[j] += other[j];
}

DEVICE void finish(const Product& gate_up, float squares, bool inside, float (&h)[8], const float (&up)[8], const Activation& out, int m,
                   int superblock) {
  const float factor = factor_of(gate_up, squares);
#pragma unroll
  for (int j = 0; j < 8; j++) {
    h[j] = inside ? silu(factor * h[j]) * (factor * up[j]) : 0;
  }
  write_activation(out, m, superblock, h);
}

extern "C" __global__ void __launch_bounds__(128, 4)
swiglu(Product gate_up, int columns, int together, Activation out) {
  __shared__ float4 others[3][2][32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, m = blockIdx.y;
  const int superblock = together ? blockIdx.x : blockIdx.x * (blockDim.x >> 5) + warp;
  const int column = 256 * superblock + 8 * lane;
  const bool inside = column < columns;
  const int at = inside ? column : 0, first = together && warp >= 2 ? columns + at : at;
  const Addends of_first = addends_of(gate_up, m, first), of_up = addends_of(gate_up, m, columns + at);
  wait_to_read(out);
  float h[8] = {}, up[8] = {};
  const float squares = read_squares(gate_up, m);
  if (together) {
    const Addends mine = share_of(of_first, warp & 1, 2);
    Half half(mine);
    reads_are_out(out);
    half.add_up(mine, h);
    if (warp)
#pragma unroll
      for (int j = 0; j < 2; j++) others[warp - 1][j][lane] = make_float4(h[4 * j], h[4 * j + 1], h[4 * j + 2], h[4 * j + 3]);
    __syncthreads();
    if (warp) return;
#pragma unroll
    for (int j = 0; j < 2; j++) {
      const float4 gate = others[0][j][lane], a = others[1][j][lane], b = others[2][j][lane];
      h[4 * j] += gate.x, h[4 * j + 1] += gate.y, h[4 * j + 2] += gate.z, h[4 * j + 3] += gate.w;
      up[4 * j] = a.x + b.x, up[4 * j + 1] = a.y + b.y, up[4 * j + 2] = a.z + b.z, up[4 * j + 3] = a.w + b.w;
    }
  } else {
    const Addends mine[4] = {share_of(of_first, 0, 2), share_of(of_first, 1, 2), share_of(of_up, 0, 2), share_of(of_up, 1, 2)};
    Half gate_even(mine[0]), gate_odd(mine[1]), up_even(mine[2]), up_odd(mine[3]);
    reads_are_out(out);
    if (256 * superblock >= columns) return;
    float odd[8];
    gate_even.add_up(mine[0], h), gate_odd.add_up(mine[1], odd);
    add(h, odd);
    up_even.add_up(mine[2], up), up_odd.add_up(mine[3], odd);
    add(up, odd);
  }
  finish(gate_up, squares, inside, h, up, out, m, superblock);
}

extern "C" __global__ void __launch_bounds__(128, 4)
swiglu_four(Product gate_up, int columns, Activation out) {
  constexpr int R = 4;
  __shared__ float4 shares[R][4][2][32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, m = R * blockIdx.y, superblock = blockIdx.x;
  const int column = 256 * superblock + 8 * lane;
  const bool inside = column < columns;
  const int at = (inside ? column : 0) + (warp >= 2 ? columns : 0);
  Addends mine[R];
  addends_from(gate_up, m, at, mine);
#pragma unroll
  for (int r = 0; r < R; r++) mine[r] = share_of(mine[r], warp & 1, 2);
  wait_to_read(out);
  const float squares = read_squares(gate_up, m + warp);
  Half half[R];
#pragma unroll
  for (int r = 0; r < R; r++) half[r] = Half(mine[r]);
  reads_are_out(out);
#pragma unroll
  for (int r = 0; r < R; r++) {
    float v[8];
    half[r].add_up(mine[r], v);
#pragma unroll
    for (int j = 0; j < 2; j++) shares[r][warp][j][lane] = make_float4(v[4 * j], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]);
  }
  __syncthreads();
  float h[8], up[8];
#pragma unroll
  for (int j = 0; j < 2; j++) {
    const float4 a = shares[warp][0][j][lane], b = shares[warp][1][j][lane], c = shares[warp][2][j][lane], d = shares[warp][3][j][lane];
    h[4 * j] = a.x + b.x, h[4 * j + 1] = a.y + b.y, h[4 * j + 2] = a.z + b.z, h[4 * j + 3] = a.w + b.w;
    up[4 * j] = c.x + d.x, up[4 * j + 1] = c.y + d.y, up[4 * j + 2] = c.z + d.z, up[4 * j + 3] = c.w + d.w;
  }
  finish(gate_up, squares, inside, h, up, out, m + warp, superblock);
}

constexpr int ROWS = 2;

// The same for many rows of a product that lies whole: grid (superblocks, ceil(M / (4 ROWS))), 128 threads, a warp 256 columns of
// ROWS rows, whose loads go out together.
extern "C" __global__ void __launch_bounds__(128, 8)
swiglu_rows(Product gate_up, int columns, int M, Activation out) {
  const int superblock = blockIdx.x, first = ROWS * (4 * blockIdx.y + (threadIdx.x >> 5)), column = piece_column(superblock);
  const float *of_gate = factors_at(gate_up, 256 * superblock), *of_up = factors_at(gate_up, columns + 256 * superblock);
  wait_for_previous();
  let_next_start();
  float4 gate[ROWS][2], up[ROWS][2];
  float squares[ROWS], gate_factor[ROWS], up_factor[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const int m = min(first + r, M - 1);
    const float* from = gate_up.y + (size_t)m * gate_up.width + column;
#pragma unroll
    for (int i = 0; i < 2; i++) {
      gate[r][i] = load4(from + 16 * i, column + 16 * i < columns);
      up[r][i] = load4(from + columns + 16 * i, column + 16 * i < columns);
    }
    squares[r] = read_squares(gate_up, m);
    gate_factor[r] = of_gate ? load1(of_gate + m, true) : 1, up_factor[r] = of_up ? load1(of_up + m, true) : 1;
  }
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    if (first + r >= M) return;
    const float factor = factor_of(gate_up, squares[r]), a = factor * gate_factor[r], b = factor * up_factor[r];
    const float g[8] = {gate[r][0].x, gate[r][0].y, gate[r][0].z, gate[r][0].w, gate[r][1].x, gate[r][1].y, gate[r][1].z, gate[r][1].w};
    const float u[8] = {up[r][0].x, up[r][0].y, up[r][0].z, up[r][0].w, up[r][1].x, up[r][1].y, up[r][1].z, up[r][1].w};
    float h[8];
#pragma unroll
    for (int j = 0; j < 8; j++) {
      h[j] = silu(a * g[j]) * (b * u[j]);
    }
    write_pieces(out, first + r, superblock, h);
  }
}
