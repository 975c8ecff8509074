// What stands around the output matrix, and values that are kept: chosen rows in the forms that are read, whole products.
#include "activation.cuh"
#include "product.cuh"

// Row r of `out` is row wanted[r] (null: r) of h (., columns), and likewise of the norm's sums of squares. Grid (ceil(superblocks /
// warps), rows).
extern "C" __global__ void __launch_bounds__(128)
gather(const float* __restrict__ h, const float* __restrict__ squares, const int* __restrict__ wanted, int columns,
       float* __restrict__ squares_out, Activation out) {
  const int superblock = blockIdx.x * (blockDim.x >> 5) + (threadIdx.x >> 5), r = blockIdx.y;
  const int superblocks = (columns + 255) / 256, column = 256 * superblock + 8 * (threadIdx.x & 31);
  const size_t m = wanted ? wanted[r] : r;
  wait_for_previous(out);
  if (superblock >= superblocks) return;
  float v[8] = {};
  if (column < columns) {
    const float4 a = *(const float4*)(h + m * columns + column), b = *(const float4*)(h + m * columns + column + 4);
    v[0] = a.x, v[1] = a.y, v[2] = a.z, v[3] = a.w, v[4] = b.x, v[5] = b.y, v[6] = b.z, v[7] = b.w;
  }
  if (squares && (threadIdx.x & 31) == 0) squares_out[r * superblocks + superblock] = squares[m * superblocks + superblock];
  write_activation(out, r, superblock, v);
}

// The product with its parts added, rows `stride` floats apart. Grid (ceil(width / 1024), rows), 256 threads with 4 columns each.
extern "C" __global__ void __launch_bounds__(256) collect(Product y, float* __restrict__ out, int stride) {
  let_next_start();
  const int column = 4 * (256 * blockIdx.x + threadIdx.x), r = blockIdx.y, left = y.width - column;
  const bool together = y.width % 4 == 0 && stride % 4 == 0;  // else rows are not aligned for four at once
  const Addends addends = addends_of(y, r, left > 0 ? column : 0);
  wait_for_previous();
  const float squares = read_squares(y, r), factor = factor_of(y, squares);
  if (left <= 0) return;
  float* to = out + (size_t)r * stride + column;
  if (together) {
    float v[4];
    add_up(addends, v);
    *(float4*)to = make_float4(factor * v[0], factor * v[1], factor * v[2], factor * v[3]);
  } else {
    for (int i = 0; i < min(left, 4); i++) to[i] = factor * add_up(addends_of(y, r, column + i));
  }
}

// Of numbers as in NumPy's argmax: a greater value first, then a lower column. `bad`: NaN or plus infinity.
struct Best {
  float value;
  int column, bad;
  DEVICE_METHOD void meet(const Best& other) {
    if (other.value > value || (other.value == value && other.column < column)) value = other.value, column = other.column;
    bad |= other.bad;
  }
  DEVICE_METHOD void meet_warp() {
#pragma unroll
    for (int o = 16; o; o >>= 1)
      meet({__shfl_xor_sync(~0u, value, o), __shfl_xor_sync(~0u, column, o), __shfl_xor_sync(~0u, bad, o)});
  }
};

constexpr int PIECES = 32;

// The best of each row's 1 / PIECES, of its first `known`: grid (PIECES, rows), 256 threads.
extern "C" __global__ void __launch_bounds__(256)
best_of(const float* __restrict__ logits, int width, const int* __restrict__ known, Best* __restrict__ pieces) {
  __shared__ Best of_warp[8];
  let_next_start();
  const int r = blockIdx.y, each = (width + PIECES - 1) / PIECES, begin = blockIdx.x * each, end = min(width, begin + each);
  wait_for_previous();
  const float never = __int_as_float(0xff800000);
  const int n_vocab = known[r];
  Best best = {never, width, 0};
#pragma unroll 4
  for (int c = begin + threadIdx.x; c < end; c += 256) {
    const float v = logits[(size_t)r * width + c];
    best.meet({c < n_vocab ? v : never, c, !(v < __int_as_float(0x7f800000))});
  }
  best.meet_warp();
  if ((threadIdx.x & 31) == 0) of_warp[threadIdx.x >> 5] = best;
  __syncthreads();
  if (threadIdx.x) return;
  for (int w = 1; w < 8; w++) best.meet(of_warp[w]);
  pieces[r * PIECES + blockIdx.x] = best;
}

// `found` (rows): the likeliest token, -1 where a logit is bad or all are minus infinity. Grid (rows), 32 threads.
extern "C" __global__ void __launch_bounds__(32) likeliest(const Best* __restrict__ pieces, int* __restrict__ found) {
  let_next_start();
  wait_for_previous();
  Best best = pieces[blockIdx.x * PIECES + threadIdx.x];
  best.meet_warp();
  if (threadIdx.x == 0) found[blockIdx.x] = best.bad || best.value == __int_as_float(0xff800000) ? -1 : best.column;
}
