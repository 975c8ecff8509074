// h = silu(gate) * up of a product gate|up, written in the forms that the next product reads.
//
// Grid (ceil(superblocks / 4), M), 128 threads: a warp takes 256 columns of a row.
#include "activation.cuh"
#include "product.cuh"

DEVICE float silu_times(float gate, float up) { return gate / (1 + __expf(-gate)) * up; }

extern "C" __global__ void __launch_bounds__(128) swiglu(Product gate_up, int columns, Activation out) {
  let_next_start();
  wait_for_previous();
  const int superblock = 4 * blockIdx.x + (threadIdx.x >> 5), m = blockIdx.y;
  if (256 * superblock >= columns) return;
  float h[8];
#pragma unroll
  for (int j = 0; j < 8; j += 4) {
    const int column = 256 * superblock + 8 * (threadIdx.x & 31) + j;
    float4 gate = make_float4(0, 0, 0, 0), up = gate;
    if (column < columns) gate = load4(gate_up, m, column), up = load4(gate_up, m, columns + column);
    h[j] = silu_times(gate.x, up.x), h[j + 1] = silu_times(gate.y, up.y);
    h[j + 2] = silu_times(gate.z, up.z), h[j + 3] = silu_times(gate.w, up.w);
  }
  write_activation(out, m, superblock, h);
}
