// The result of a matrix product, as its consumer reads it: the parts of split tiles are added here.
//
// matmul.cu gives each block `units` (tile, superblock) steps in a row. A tile that one block finished lies in `y`; of
// another, block b left its part in `parts`, and the sum of the parts in the order of b is the same for every M.
#pragma once
#include "ptx.cuh"

// Rows [.., row_end) of a product: one launch. `units` is 0 where all lies in `y`; row m then is the sum of 1 + `more` rows of
// y, one after the other, and `parts` are the factors that these still lack, null for none.
struct Part {
  const float* parts;
  int row_end, superblocks, units, tiles, columns, column_tiles, more;
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
  const float* factors;  // of each, null for 1
  int factor_step;
};

// The launch that a row is of, and the row that it begins with.
struct Found {
  Part part;
  int first;
};

DEVICE Found part_of(const Product& p, int row) {
  // Written out: an index into a kernel parameter would copy it to local memory.
  const bool second = p.count > 1 && row >= p.part[0].row_end, third = p.count > 2 && row >= p.part[1].row_end;
  const bool fourth = p.count > 3 && row >= p.part[2].row_end;
  return {fourth ? p.part[3] : third ? p.part[2] : second ? p.part[1] : p.part[0],
          fourth ? p.part[2].row_end : third ? p.part[1].row_end : second ? p.part[0].row_end : 0};
}

DEVICE Addends addends_in(const Found& in, const Product& p, int m, int row) {
  const Part& part = in.part;
  if (part.units == 0) {
    const size_t first = (size_t)m * (1 + part.more);
    const float* at = p.y + first * p.width + row;
    return {at, at, p.width, 1 + part.more, part.parts ? part.parts + first : nullptr, 1};
  }
  const Addends whole = {p.y + (size_t)m * p.width + row, nullptr, 0, 1, nullptr, 0};
  row -= in.first;
  const int tile = row >> 4, group = tile / part.tiles, column_tile = m / part.columns;
  const int unit = (group * part.column_tiles + column_tile) * part.superblocks;
  const int first = unit / part.units, last = (unit + part.superblocks - 1) / part.units;
  if (first == last) return whole;
  // A block has two slots: 0 for a tile that it goes on with, 1 for one that it begins.
  const int rows = 16 * part.tiles, slot = rows * part.columns;
  const int at = (m - column_tile * part.columns) * rows + row - group * rows;
  const float* begin = part.parts + (size_t)(2 * first) * slot + at;
  return {begin + slot, begin, 2 * slot, last - first + 1, nullptr, 0};
}

DEVICE Addends addends_of(const Product& p, int m, int row) { return addends_in(part_of(p, row), p, m, row); }

// Those of the batch row `by` rows on in the same tile of the product, 8 n rows, which are as far apart as their numbers.
DEVICE Addends beside(const Found& in, const Product& p, Addends a, int by) {
  const Part& part = in.part;
  const int apart = part.units == 0 ? (1 + part.more) * p.width : a.count == 1 ? p.width : 16 * part.tiles;
  a.first += by * apart, a.others += by * apart;
  if (a.factors) a.factors += by * (1 + part.more);
  return a;
}

// Those of R batch rows, 1, 2, 4 or 8, from `m` on, a multiple of R.
template <int R>
DEVICE void addends_from(const Product& p, int m, int row, Addends (&a)[R]) {
  const Found in = part_of(p, row);
  a[0] = addends_in(in, p, m, row);
#pragma unroll
  for (int r = 1; r < R; r++) a[r] = beside(in, p, a[0], r);
}

// Those of batch rows m, m + 1, m - 3 and, unless it is in the next tile of the product than that, m - 2, for an even m.
DEVICE void addends_around(const Product& p, int m, int row, Addends (&a)[4]) {
  const Found in = part_of(p, row);
  a[0] = addends_in(in, p, m, row), a[1] = beside(in, p, a[0], 1);
  a[2] = in.part.units && m % in.part.columns < 3 && m >= 3 ? addends_in(in, p, m - 3, row) : beside(in, p, a[0], -3);
  a[3] = beside(in, p, a[2], 1);
}

// What another kernel has left at `at`, zeros where it is not `wanted`. Volatile, so that such loads go out in the order in which
// they are written, all before the first is waited for: a round trip to memory is most of what the readers of a product take.
DEVICE float4 load4(const float* at, bool wanted) {
#ifdef __CUDA_ARCH__
  float4 v;
  asm volatile("{.reg .pred p; setp.ne.s32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0;\n"
               "@p ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];}"
               : "=&f"(v.x), "=&f"(v.y), "=&f"(v.z), "=&f"(v.w) : "l"(at), "r"((int)wanted));
  return v;
#else  // tests on the processor
  return wanted ? *(const float4*)at : float4{};
#endif
}

DEVICE float load1(const float* at, bool wanted) {
#ifdef __CUDA_ARCH__
  float v;
  asm volatile("{.reg .pred p; setp.ne.s32 p, %2, 0; mov.b32 %0, 0; @p ld.global.cg.f32 %0, [%1];}"
               : "=&f"(v) : "l"(at), "r"((int)wanted));
  return v;
#else
  return wanted ? *at : 0;
#endif
}

// Addends of N elements on their way: the first BATCH of them.
template <int N, int BATCH>
struct Coming {
  float4 part[BATCH][N / 4];

  DEVICE_METHOD Coming() {}

  // None where `count` is 0.
  DEVICE_METHOD Coming(const Addends& a) {
#pragma unroll
    for (int i = 0; i < BATCH; i++)
#pragma unroll
      for (int j = 0; j < N / 4; j++) part[i][j] = load4((i ? a.others + (size_t)i * a.step : a.first) + 4 * j, i < a.count);
  }

  // v = the sum in order of them and of those that did not fit.
  DEVICE_METHOD void add_up(const Addends& a, float (&v)[N]) {
    float4 sum[N / 4];
    scale(a, 0);
#pragma unroll
    for (int j = 0; j < N / 4; j++) sum[j] = part[0][j];
#pragma unroll
    for (int i = 1; i < BATCH; i++) add(sum, part[i]);
#pragma unroll 1
    for (int first = BATCH; first < a.count; first += BATCH) {
#pragma unroll
      for (int i = 0; i < BATCH; i++)
#pragma unroll
        for (int j = 0; j < N / 4; j++)
          part[i][j] = load4(a.others + (size_t)(first + i) * a.step + 4 * j, first + i < a.count);
      scale(a, first);
#pragma unroll
      for (int i = 0; i < BATCH; i++) add(sum, part[i]);
    }
#pragma unroll
    for (int j = 0; j < N / 4; j++) v[4 * j] = sum[j].x, v[4 * j + 1] = sum[j].y, v[4 * j + 2] = sum[j].z, v[4 * j + 3] = sum[j].w;
  }

  DEVICE_METHOD void scale(const Addends& a, int first) {
    if (!a.factors) return;
    float factor[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; i++) factor[i] = load1(a.factors + (first + i) * a.factor_step, first + i < a.count);
#pragma unroll
    for (int i = 0; i < BATCH; i++)
#pragma unroll
      for (int j = 0; j < N / 4; j++) {
        float4& v = part[i][j];
        v.x *= factor[i], v.y *= factor[i], v.z *= factor[i], v.w *= factor[i];
      }
  }

  static DEVICE_METHOD void add(float4 (&sum)[N / 4], const float4 (&other)[N / 4]) {
#pragma unroll
    for (int j = 0; j < N / 4; j++)
      sum[j].x += other[j].x, sum[j].y += other[j].y, sum[j].z += other[j].z, sum[j].w += other[j].w;
  }
};

// v = elements 0 .. N - 1 from the place that `a` was found for, which is a multiple of 4.
template <int N, int BATCH = N >= 8 ? 4 : 8>
DEVICE void add_up(const Addends& a, float (&v)[N]) {
  Coming<N, BATCH>(a).add_up(a, v);
}

// Every `parts`-th addend from number `part` on; none where the count is 0.
DEVICE Addends share_of(const Addends& a, int part, int parts) {
  return {part == 0 ? a.first : a.others + (size_t)part * a.step, a.others + (size_t)part * a.step, a.step * parts,
          (a.count - part + parts - 1) / parts, a.factors ? a.factors + part * a.factor_step : nullptr, parts * a.factor_step};
}

// The same of R rows with the parts shared out among up to WARPS warps of a block: warp w adds parts w, w + warps, .., then warp r
// row r's sums of all in their order. The other warps leave.
template <int N, int WARPS = 4, int R>
DEVICE bool add_up_together(const Addends (&a)[R], float (&v)[N]) {
  constexpr int OWN = R == 1;  // what warp 0 adds it keeps
  constexpr int BATCH = 16 / WARPS > R ? 16 / WARPS / R : 1;
  __shared__ float4 shares[R][WARPS - OWN][N / 4][32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
  Addends mine[R];
  Coming<N, BATCH> coming[R];
#pragma unroll
  for (int r = 0; r < R; r++) {
    mine[r] = share_of(a[r], warp, warps);
    coming[r] = Coming<N, BATCH>(mine[r]);
  }
#pragma unroll
  for (int r = 0; r < R; r++) {
    coming[r].add_up(mine[r], v);
    if (warp < OWN) continue;
#pragma unroll
    for (int j = 0; j < N / 4; j++) shares[r][warp - OWN][j][lane] = make_float4(v[4 * j], v[4 * j + 1], v[4 * j + 2], v[4 * j + 3]);
  }
  if (R == 1 && warps == 1) return true;
  __syncthreads();
  if (warp >= R) return false;
#pragma unroll
  for (int w = OWN; w < WARPS; w++) {
    if (w >= warps) break;
#pragma unroll
    for (int j = 0; j < N / 4; j++) {
      const float4 part = shares[warp * !OWN][w - OWN][j][lane];
      const float one[4] = {part.x, part.y, part.z, part.w};
#pragma unroll
      for (int i = 0; i < 4; i++) v[4 * j + i] = w ? v[4 * j + i] + one[i] : one[i];
    }
  }
  return true;
}

DEVICE float add_up(const Addends& a) {
  constexpr int BATCH = 8;
  float sum = load1(a.first, true);
  if (a.factors) sum *= load1(a.factors, true);
#pragma unroll 1
  for (int first = 1; first < a.count; first += BATCH) {
    float part[BATCH];
#pragma unroll
    for (int i = 0; i < BATCH; i++) {
      part[i] = load1(a.others + (size_t)(first + i) * a.step, first + i < a.count);
      if (a.factors) part[i] *= load1(a.factors + (first + i) * a.factor_step, first + i < a.count);
    }
#pragma unroll
    for (int i = 0; i < BATCH; i++) sum += part[i];
  }
  return sum;
}

// The factor of row m that the norm left out, in two steps, so that other loads can go out between them: each lane of a
// warp reads its squares, then the warp adds them up.
DEVICE float read_squares(const Product& p, int m) {
  const int lane = threadIdx.x & 31, n = p.squares ? p.n_squares : 0;
  const float* from = p.squares + (size_t)m * n;
  float sum = load1(from + lane, lane < n);
#pragma unroll 1
  for (int i = lane + 32; i < n; i += 32) sum += __ldcg(from + i);
  return sum;
}

DEVICE float factor_of(const Product& p, float squares) {
  if (!p.squares) return 1;
#pragma unroll
  for (int o = 16; o; o >>= 1) squares += __shfl_xor_sync(~0u, squares, o);
  return rsqrtf(squares / p.columns + p.eps);
}

// Of a product that lies whole in `y`, as those of many rows mostly do: the factor of row m at a column, with the norm's, by a warp.
DEVICE const float* factors_at(const Product& p, int row) {
  const bool second = p.count > 1 && row >= p.part[0].row_end, third = p.count > 2 && row >= p.part[1].row_end;
  const bool fourth = p.count > 3 && row >= p.part[2].row_end;
  return fourth ? p.part[3].parts : third ? p.part[2].parts : second ? p.part[1].parts : p.part[0].parts;
}
