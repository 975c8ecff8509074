// y = W x for W in the packed layout: decode and verification (INT8 form), prompts and unquantised W (F16 form).
//
// A launch has up to SIDES sides: products of the same batch rows that do not depend on one another, in up to three formats. A
// kernel is built for a set of formats, with for the i-th: TYPE_i: ggml's block format; FORM_i: 8 = int8 activations in two
// levels, 16 = f16; NT_i: groups of 8 rows m a block; TILES_i: row tiles of 16 a warp; STAGES_i: of the ring in shared memory. ONE: M is
// 1, so that a lane has sums of one column instead of two.
// 128 threads: 4 warps share the activations.
// A unit is 256 columns of one tile of 64 TILES rows x 8 NT batch rows. Block b of a side does units [b L, (b + 1) L) of the
// sequence [tile][batch tile][superblock]. L is the same for every M up to 32, and the consumer adds the parts of split tiles
// (include/product.cuh), so a batch row's bits do not depend on M.
// H200, 2026-12-01, graph of launches over 1 GB of weights, programmatic launch: Q4_K 24576x4096 (57 MB) 15.0 / 16.6 / 23.7 us
// at M = 1 / 16 / 32 (83 % of read bandwidth at M=1), 4096x12288 8.0 / 9.6 / 13.5, 4096x4096 4.1 at M = 1
// (`python -m tests.gpu.measure_formats`). F16 form, 2,048 rows of an 8B's matrices: 330 TFLOP/s.
#include "activation.cuh"

constexpr int WARPS = 4;

// Up to three matrices one below the other: chunks of `weights[i]` from tile `ends[i - 1]` on. `rows` of y are written, `stride` floats
// apart for each batch row; `parts` is the workspace of split tiles. Its blocks begin at `first_block`.
struct Side {
  const u8* weights[3];
  const u8* x;
  float *y, *parts;
  int ends[2];
  int format, first_block, row_tiles, rows, stride, superblocks, batch_tiles, units, L;
};

struct Sides {
  Side side[SIDES];
  int count, groups, M;
};

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define TYPE JOIN(TYPE_, FORMAT)
#define FORM JOIN(FORM_, FORMAT)
#define NT JOIN(NT_, FORMAT)
#define TILES JOIN(TILES_, FORMAT)
#define STAGES JOIN(STAGES_, FORMAT)
#define CODEBOOK JOIN(codebook_, FORMAT)

#define FORMAT 0
namespace format_0 {
#include "stream.cuh"
}
#undef FORMAT
#ifdef TYPE_1
#define FORMAT 1
namespace format_1 {
#include "stream.cuh"
}
#undef FORMAT
#endif
#ifdef TYPE_2
#define FORMAT 2
namespace format_2 {
#include "stream.cuh"
}
#undef FORMAT
#endif

// Blocks that the registers of a multiprocessor must do for: more where formats are unpacked slowly, which have one row tile a warp.
constexpr int BLOCKS = SIDES == 1 && FORM_0 == 8 && TILES_0 == 1 && NT_0 <= 2 ? 5 - NT_0 : 2;

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) matmul(const __grid_constant__ Sides sides) {
  extern __shared__ __align__(128) u8 ring[];
  let_next_start();
  int i = 0;
  while (SIDES > 1 && i + 1 < sides.count && (int)blockIdx.x >= sides.side[i + 1].first_block) i++;
  const Side& s = sides.side[i];
  const int block = blockIdx.x - s.first_block;
#ifdef TYPE_1
  if (s.format == 1) return format_1::stream(s, block, sides.groups, sides.M, ring);
#endif
#ifdef TYPE_2
  if (s.format == 2) return format_2::stream(s, block, sides.groups, sides.M, ring);
#endif
  format_0::stream(s, block, sides.groups, sides.M, ring);
}
