// Packed weights to f16 rows, times WEIGHT_SCALE, for a library's matrix product. TYPE: a packed format.
//
// [row][superblock][slab] 32 columns in the order of the F16 activations (include/activation.cuh), which rows.cu keeps. Rows and
// columns beyond the matrix are zeros. 128 threads, a warp a chunk: a lane's 8 weights of a row and slab are one 16-byte store.
// H200, 2026-11-30: 5.1 ms for all matrices of an 8B in Q4_K. With cuBLAS 31,900 tok/s for its prompts of 2,048 tokens.
#define FORM 16
#define NT 1
#define TILES 1
#include "unit.cuh"

// `chunks` chunks from `packed` on, which begin a row tile.
extern "C" __global__ void __launch_bounds__(128)
dequantise(const u8* __restrict__ packed, u16* __restrict__ rows, int superblocks, int chunks) {
  wait_for_previous();  // which may still read what was here
  const int index = 4 * blockIdx.x + (threadIdx.x >> 5);
  if (index >= chunks) return;
  Lane l;
  l.lane = threadIdx.x & 31, l.g = l.lane >> 2, l.t = l.lane & 3;
  l.weights = packed + (size_t)index * CHUNK;
  const int tile = index / superblocks, superblock = index - tile * superblocks;
  u16* to = rows + ((size_t)(16 * tile + l.g) * superblocks + superblock) * 256 + 8 * l.t;
  const size_t below = (size_t)8 * superblocks * 256;
  const Heads heads(l, 0);
#pragma unroll
  for (int slab = 0; slab < 8; slab++) {
    u32 a[2][4];
    slab_weights(a, l, heads, 0, slab >> 1, slab & 1);
    *(uint4*)(to + 32 * slab) = make_uint4(a[0][0], a[0][2], a[1][0], a[1][2]);
    *(uint4*)(to + 32 * slab + below) = make_uint4(a[0][1], a[0][3], a[1][1], a[1][3]);
  }
}
