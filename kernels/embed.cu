// x = rows of the token embedding times `scale`, in float32. TYPE: a packed format, F32, F16 or BF16.
//
// Grid (M, ceil(columns / 256)), 256 threads, one column each. Tokens lie in device memory; -1 - r stands for `found` number r,
// the token that row r of the last step chose, and where that one chose none any other will do. `tokens_of` are those of the first 32.
#include "layout.cuh"

extern "C" __global__ void __launch_bounds__(256)
embed(const u8* __restrict__ table, const int* __restrict__ tokens, const int* __restrict__ found, int* __restrict__ tokens_of,
      float* __restrict__ x, int columns, float scale) {
  let_next_start();
  wait_for_previous();
  const int m = blockIdx.x, column = 256 * blockIdx.y + threadIdx.x;
  if (column >= columns) return;
  const int token = tokens[m];
  const size_t row = token < 0 ? max(found[-1 - token], 0) : token;
  if (m < 32 && column == 0) tokens_of[m] = (int)row;
#if TYPE == 0
  const float v = ((const float*)table)[row * columns + column];
#elif TYPE == 1
  const float v = f16_to_f32(((const u16*)table)[row * columns + column]);
#elif TYPE == 30
  const float v = bf16_to_f32(((const u16*)table)[row * columns + column]);
#else
  const u8* chunk = table + ((row >> 4) * gridDim.y + blockIdx.y) * CHUNK;
  const float v = weight_at(chunk, row & 15, threadIdx.x);
#endif
  x[(size_t)m * columns + column] = scale * v;
}
