// y = W x for W in the packed layout: decode and verification (INT8 form), prompts and unquantised W (F16 form).
//
// TYPE: ggml's block format; FORM: 8 = int8 activations in two levels, 16 = f16; NT: groups of 8 rows m a block;
// TILES: row tiles of 16 a warp; STAGES: of the ring in shared memory. 128 threads: 4 warps share the activations.
// A unit is 256 columns of one tile of 64 TILES rows x 8 NT batch rows. Block b does units [b L, (b + 1) L) of the sequence
// [tile][batch tile][superblock] and goes on across tiles without draining its ring. L is the same for every M up to 32,
// and the consumer adds the parts of split tiles (include/product.cuh), so a batch row's bits do not depend on M.
// Weights of up to three matrices lie one after the other in tile numbers: w[i] + tile * superblocks * CHUNK, from
// tile `ends[i - 1]` up.
// H200, 2026-11-29, graph of launches over 1 GB of weights, programmatic launch: Q4_K 24576x4096 (57 MB) 15.5 / 18.2 / 28.9 us
// at M = 1 / 16 / 32 (83 % of read bandwidth at M=1), 4096x12288 8.7 / 11.4 / 16.3, 4096x4096 4.5 / 5.5 / 8.0. F16 form, 2,048
// rows of an 8B's matrices: 330 TFLOP/s.
#include "unit.cuh"

constexpr int WARPS = 4;
constexpr int WEIGHT_STAGE = CHUNK * TILES * WARPS;
constexpr int STAGE = WEIGHT_STAGE + ACTIVATION * NT;
constexpr int BLOCKS = FORM == 8 && TILES == 1 && NT <= 2 ? 5 - NT : 2;  // that the registers of a multiprocessor must do for

// `rows` of y are written, `stride` floats apart for each batch row; `parts` is the workspace of split tiles.
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
matmul(const u8* __restrict__ w0, const u8* __restrict__ w1, const u8* __restrict__ w2, int end0, int end1, int row_tiles,
       const u8* __restrict__ x, int x_groups, float* __restrict__ y, int rows, int stride, float* __restrict__ parts,
       int superblocks, int batch_tiles, int units, int L, int M) {
  extern __shared__ __align__(128) u8 ring[];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int first = blockIdx.x * L, last = min(units, first + L);
  let_next_start();

  // Copying runs STAGES - 1 units ahead of computing, so it has a place of its own.
  int next, next_sb, next_tile, next_slot;
  const u8 *from_weights[TILES], *from_activations;
  const size_t activation_step = (size_t)x_groups * ACTIVATION;
  auto aim = [&]() {
    const int group = next_tile / batch_tiles, batch = next_tile - group * batch_tiles;
#pragma unroll
    for (int w = 0; w < TILES; w++) {
      const int tile = min((group * WARPS + warp) * TILES + w, row_tiles - 1);
      const u8* base = tile < end0 ? w0 : tile < end1 ? w1 : w2;
      const int from = tile < end0 ? 0 : tile < end1 ? end0 : end1;
      from_weights[w] = base + ((size_t)(tile - from) * superblocks + next_sb) * CHUNK + 16 * lane;
    }
    from_activations = x + next_sb * activation_step + batch * NT * ACTIVATION + 16 * threadIdx.x;
  };
  auto start = [&]() {
    next = first, next_slot = 0, next_tile = first / superblocks, next_sb = first - next_tile * superblocks;
    aim();
  };
  auto copy_weights = [&]() {
#pragma unroll
    for (int w = 0; w < TILES; w++) {
      u8* to = ring + next_slot * STAGE + (warp * TILES + w) * CHUNK + 16 * lane;
#pragma unroll
      for (int i = 0; i < CHUNK; i += 512)
        if (i + 512 <= CHUNK || i + 16 * lane < CHUNK) copy16(to + i, from_weights[w] + i);
    }
  };
  // This thread's 16-byte pieces of a stage's activations. Of a single group only rows below M are copied: lanes 4g.. of the
  // fragments, words of the sums.
  constexpr int PIECES = ACTIVATION * NT / 16, TURNS = (PIECES + 32 * WARPS - 1) / (32 * WARPS);
  constexpr int FRAGMENTS = FORM == 8 ? INT8_SUMS / 16 : F16_E / 16, BY_ROW = FORM == 8 ? INT8_E / 16 : FRAGMENTS;
  u32 pieces = 0;
#pragma unroll
  for (int i = 0; i < TURNS; i++) {
    const int at = threadIdx.x + 32 * WARPS * i;
    const int g = NT == 1 && at < BY_ROW ? (at < FRAGMENTS ? (at & 31) >> 2 : (at - FRAGMENTS) >> 1) : 0;
    if (at < PIECES && g < M) pieces |= 1u << i;
  }
  auto copy_activations = [&]() {
    u8* to = ring + next_slot * STAGE + WEIGHT_STAGE + 16 * threadIdx.x;
#pragma unroll
    for (int i = 0; i < TURNS; i++)
      if (pieces >> i & 1) copy16(to + 512 * WARPS * i, from_activations + 512 * WARPS * i);
  };
  auto advance = [&]() {
#pragma unroll
    for (int w = 0; w < TILES; w++) from_weights[w] += CHUNK;
    from_activations += activation_step;
    if (++next_sb == superblocks) {
      next_sb = 0;
      next_tile++;
      if (next + 1 < last) aim();
    }
    next++;
    if (++next_slot == STAGES) next_slot = 0;
  };

  // Weights depend on no other kernel: the ring fills with them while the producer of x still runs.
  if (first < last) {
    start();
#pragma unroll 1
    for (int s = 0; s < STAGES - 1; s++) {
      if (next < last) copy_weights();
      advance();
    }
  }
  wait_for_previous();
  if (first >= last) return;
  start();
#pragma unroll 1
  for (int s = 0; s < STAGES - 1; s++) {
    if (next < last) copy_activations();
    copies_commit();
    advance();
  }

  Lane l;
  l.lane = lane, l.g = lane >> 2, l.t = lane & 3;
  Sums acc;
  acc.clear();
  int tile = first / superblocks, sb = first % superblocks, begin = sb, slot = 0;
#pragma unroll 1
  for (int unit_index = first; unit_index < last; unit_index++) {
    copies_wait<STAGES - 2>();
    __syncthreads();
    if (next < last) {
      copy_weights();
      copy_activations();
    }
    copies_commit();
    advance();
    l.weights = ring + slot * STAGE + warp * TILES * CHUNK;
    l.activations = ring + slot * STAGE + WEIGHT_STAGE;
    unit(acc, l);
    if (++slot == STAGES) slot = 0;
    if (++sb < superblocks && unit_index + 1 < last) continue;

    const bool whole = begin == 0 && sb == superblocks;
    float* part = parts + (size_t)(2 * blockIdx.x + (begin == 0)) * (WARPS * TILES * NT * 128);
#pragma unroll
    for (int w = 0; w < TILES; w++) {
      const int in_group = warp * TILES + w, row_tile = tile / batch_tiles * WARPS * TILES + in_group;
#pragma unroll
      for (int n = 0; n < NT; n++)
#pragma unroll
        for (int k = 0; k < 4; k++) {
          const int column = 8 * n + 2 * l.t + (k & 1), m = tile % batch_tiles * 8 * NT + column;
          const int row = l.g + 8 * (k >> 1);
          if (m >= M) continue;
          if (!whole) __stcg(part + (column * WARPS * TILES + in_group) * 16 + row, acc.at[w][n][k]);
          else if (16 * row_tile + row < rows) y[(size_t)m * stride + 16 * row_tile + row] = acc.at[w][n][k];
        }
    }
    acc.clear();
    if (sb == superblocks) sb = 0, tile++;
    begin = sb;
  }
}
