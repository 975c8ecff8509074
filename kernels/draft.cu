// The convolution of DFlash 2's drafter: y[t] = sum over i of (base[i] + own[t, i]) x[t - i], over a sequence's rows of the step.
//
// Grid (superblocks, M), one warp. `own` has its first column at `at`, and of each tap `groups` numbers, which columns share; before[m]
// is the row in front of m, -1 where that is not in the step: from there on x is zero.
#include "activation.cuh"
#include "product.cuh"

extern "C" __global__ void __launch_bounds__(32)
convolve_rows(Product x, Product own, int at, int groups, const float* __restrict__ base, const int* __restrict__ before, int taps,
              int columns, Activation out) {
  const int superblock = blockIdx.x, m = blockIdx.y, column = 256 * superblock + 8 * threadIdx.x;
  const bool inside = column < columns;
  wait_for_previous(out);
  float sum[8] = {};
  int row = m;
  for (int i = 0; i < taps && row >= 0; i++, row = before[row]) {
    const float of_x = factor_of(x, read_squares(x, row)), of_own = factor_of(own, read_squares(own, m));
    if (inside) {
      float v[8];
      add_up(addends_of(x, row, column), v);
#pragma unroll
      for (int j = 0; j < 8; j++) {
        const int group = (column + j) / (columns / groups);
        const float k = base[i * columns + column + j] + of_own * add_up(addends_of(own, m, at + i * groups + group));
        sum[j] = fmaf(k, of_x * v[j], sum[j]);
      }
    }
  }
  write_activation(out, m, superblock, sum);
}
