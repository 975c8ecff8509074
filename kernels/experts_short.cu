// The experts of short steps: y = W x where W is the expert of a tile (include/routes.cuh) and x the rows of its group that take it.
//
// TYPE, FORM: as in matmul.cu; STAGES: of a warp's own ring in shared memory, behind the activations. These stay where they are: the tensor cores
// multiply all 8 rows of the group, and those that are not the expert's are neither read nor stored.
// Grid (blocks, tiles), 128 threads. The warps of a block take 1, 2 or 4 row tiles of 16 at a time and share the columns of each, as
// many superblocks apart as warps share them; their sums are added in order, so a row's bits depend on nothing else. The blocks of a
// tile take turns: few blocks have much to fetch at once, many end soon. The first `shared_tiles` tiles are of the shared expert, one
// for each group; a tile t of the others is number t / groups of group t % groups, so that the groups' tiles of one expert run at
// about the same time.
#include "unit.cuh"
#include "routes.cuh"

// Superblocks of a warp up to which activations are kept for all turns: all warps read those of a superblock in one place.
constexpr int KEPT = 2;
constexpr int WARPS = 4;
// That the registers of a multiprocessor must do for; those of some formats do for five without spills.
constexpr bool LEAN = TYPE == Q4_K || (TYPE == Q6_K && __CUDA_ARCH__ >= 860) || TYPE == F16_TILES;
constexpr int BLOCKS = BOOK || TYPE == Q2_K || __CUDA_ARCH__ >= 1200 ? 3 : LEAN ? 5 : 4;

// An expert's matrices: `second`, if there, stands below `first`, both of `row_tiles`.
struct Stack {
  const u8 *first, *second;
  int row_tiles, superblocks;
};

// Where the rows of `expert_up` come from and those of `experts_down`: gate and up of each place, `inner` columns each.
struct Source {
  const u8* x;
  int groups;
  const float* gate_up;
  int stride, inner, shared_inner;
};

// What a launch is of: tiles of the shared expert, groups of rows, rows, and blocks of activations that shared memory has room for.
struct Work {
  int shared_tiles, groups, M, slots;
};

template <bool DOWN>
DEVICE void multiply(const Stack& routed, const Stack& shared, const Work& work, const Routes& routes, const Source& source, float* y,
                     int stride) {
  extern __shared__ __align__(128) u8 ring[];
  __shared__ float sums[2][WARPS][GROUP][16];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const bool is_shared = (int)blockIdx.y < work.shared_tiles;
  const int number = is_shared ? blockIdx.y : blockIdx.y - work.shared_tiles, group = is_shared ? number : number % work.groups;
  const u8 *first = is_shared ? shared.first : routed.first, *second = is_shared ? shared.second : routed.second;
  const int row_tiles = is_shared ? shared.row_tiles : routed.row_tiles;
  const int superblocks = is_shared ? shared.superblocks : routed.superblocks;
  const int parts = superblocks >= 4 ? 4 : superblocks >= 2 ? 2 : 1, part = warp % parts;
  const int first_tile = blockIdx.x * (WARPS / parts), step = gridDim.x * (WARPS / parts);
  const int tiles = second ? 2 * row_tiles : row_tiles;
  const int units = (superblocks - part + parts - 1) / parts;
  const bool kept = (superblocks + parts - 1) / parts <= KEPT, together = parts < WARPS;
  u8* weights = ring + work.slots * ACTIVATION + warp * CHUNK;
  int expert = 0;
  uint2 places;
  auto look = [&]() {
    if (is_shared) {
      u32 of_row[2];
#pragma unroll
      for (int i = 0; i < 2; i++) {
        const int rows = min(max(work.M - GROUP * group - 4 * i, 0), 4);  // bytes of rows beyond M stay NOBODY
        of_row[i] = rows == 4 ? routes.used * 0x01010101u : ~0u << 8 * rows | routes.used * (0x01010101u & ~(~0u << 8 * rows));
      }
      places = make_uint2(of_row[0], of_row[1]);
    } else {
      const int at = group * routes.most + number / work.groups;
      expert = __ldcg(routes.expert + at), places = __ldcg(routes.places + at);
    }
  };
  int ahead = first_tile, ahead_unit = 0;  // what is fetched next
  auto fetch_weights = [&](int slot) {
    if (ahead >= tiles) return;
    const int tile = min(ahead + warp / parts, tiles - 1), in_matrix = tile < row_tiles ? tile : tile - row_tiles;
    const size_t chunk = ((size_t)expert * row_tiles + in_matrix) * superblocks + part + ahead_unit * parts;
    const u8* from = (tile < row_tiles ? first : second) + chunk * CHUNK + 16 * lane;
    u8* to = weights + slot * WARPS * CHUNK + 16 * lane;
#pragma unroll
    for (int i = 0; i < CHUNK; i += 512)
      if (i + 512 <= CHUNK || i + 16 * lane < CHUNK) copy16(to + i, from + i);
    if (++ahead_unit == units) ahead_unit = 0, ahead += step;
  };
  // Of activations that are kept, warp w brings superblocks w, w + WARPS, ..: its own, but for `together`, where others read them, too.
  auto activations = [&](int superblock, int slot) { return ring + (kept ? superblock : warp * STAGES + slot) * ACTIVATION; };
  // 16 bytes of a block at a time: of each fragment this lane's, then those behind the fragments.
  auto fetch_activations = [&](int superblock, int slot) {
    constexpr int FRAGMENTS = FORM == 8 ? INT8_SUMS : F16_E, REST = (ACTIVATION - FRAGMENTS) / 16, SUMS = FORM == 8 ? 16 : 0;
    const u8* from = source.x + ((size_t)superblock * source.groups + group) * ACTIVATION + 16 * lane;
    u8* to = activations(superblock, slot) + 16 * lane;
    if (place_of(places, lane >> 2) != NOBODY)
#pragma unroll
      for (int i = 0; i < FRAGMENTS; i += 512) copy16(to + i, from + i);
#pragma unroll
    for (int i = 0; i < REST; i += 32)
      if (i + lane < SUMS ? place_of(places, lane >> 1) != NOBODY : i + lane < REST)
        copy16(to + FRAGMENTS + 16 * i, from + FRAGMENTS + 16 * i);
  };
  // silu(gate) * up of the tile's rows, in the form that is read.
  auto make_activations = [&](int superblock, int slot) {
    const int column = 256 * superblock + 8 * lane, inner = is_shared ? source.shared_inner : source.inner;
    u8* to = activations(superblock, slot);
#pragma unroll 2
    for (int g = 0; g < GROUP; g++) {
      const u32 place = place_of(places, g);
      if (place == NOBODY) continue;
      const int m = GROUP * group + g;
      const float* from = source.gate_up + (size_t)(m * (routes.used + 1) + place) * source.stride + column;
      float h[8] = {};
      if (column < inner) {
        const float factor = __ldcg(routes.factors + m);
#pragma unroll
        for (int j = 0; j < 8; j += 4) {
          const float4 gate = __ldcg((const float4*)(from + j)), up = __ldcg((const float4*)(from + inner + j));
          h[j] = factor * gate.x, h[j + 1] = factor * gate.y, h[j + 2] = factor * gate.z, h[j + 3] = factor * gate.w;
          h[j] *= factor * up.x / (1 + __expf(-h[j])), h[j + 1] *= factor * up.y / (1 + __expf(-h[j + 1]));
          h[j + 2] *= factor * up.z / (1 + __expf(-h[j + 2])), h[j + 3] *= factor * up.w / (1 + __expf(-h[j + 3]));
        }
      }
      if (FORM == 8) write_int8(to, g, h);
      else write_f16(to, g, h);
    }
  };

  // The shared expert's weights depend on no other kernel. The router has ended when experts_down starts, because there is a kernel
  // between them that let it start behind its own wait.
  const bool early = DOWN || is_shared;
  auto begin = [&]() {
    look();
    if (expert < 0) return;
#pragma unroll
    for (int s = 0; s < STAGES; s++) fetch_weights(s);
  };
  if (early) begin();
  wait_for_previous();
  let_next_start();
  if (!early) begin();
  if (expert < 0) return;
  if (!DOWN && kept)
    for (int s = warp; s < superblocks; s += WARPS) fetch_activations(s, 0);
#pragma unroll
  for (int s = 0; s < STAGES; s++) {
    if (!DOWN && !kept) fetch_activations(part + s % units * parts, s);
    copies_commit();
  }
  if (!DOWN && together) {
    copies_wait<STAGES - 1>();
    __syncthreads();
  }
  Lane l;
  l.lane = lane, l.g = lane >> 2, l.t = lane & 3;
  int slot = 0;
#pragma unroll 1
  for (int at = first_tile, turn = 0; at < tiles; at += step, turn++) {
    Sums acc;
    acc.clear();
#pragma unroll 1
    for (int u = 0; u < units; u++) {
      if (DOWN && !(kept && turn)) {
        const int brought = warp + u * WARPS;
        if (brought < superblocks) make_activations(brought, slot);
        if (together && u == 0) __syncthreads();  // by then all are made
      }
      copies_wait<STAGES - 1>();
      __syncwarp();
      l.weights = weights + slot * WARPS * CHUNK;
      l.activations = activations(part + u * parts, slot);
      unit(acc, l);
      __syncwarp();
      if (!DOWN && !kept && ahead < tiles) fetch_activations(part + ahead_unit * parts, slot);
      fetch_weights(slot);
      copies_commit();
      if (++slot == STAGES) slot = 0;
    }
    float(&sum)[WARPS][GROUP][16] = sums[turn & 1];
#pragma unroll
    for (int k = 0; k < 4; k++) sum[warp][2 * l.t + (k & 1)][l.g + 8 * (k >> 1)] = acc.at[0][0][k];
    __syncthreads();
    for (int w = 0; w < WARPS; w += parts) {
      const int g = threadIdx.x >> 4, row = threadIdx.x & 15, row_tile = at + w / parts;
      const u32 place = place_of(places, g);
      if (place == NOBODY || row_tile >= tiles) continue;
      float all = sum[w][g][row];
      for (int p = 1; p < parts; p++) all += sum[w + p][g][row];
      y[(size_t)((GROUP * group + g) * (routes.used + 1) + place) * stride + 16 * row_tile + row] = all;
    }
  }
}

// y (M, used + 1, stride): each place's product with x (., superblocks of `x_groups` groups).
extern "C" __global__ void __launch_bounds__(128, BLOCKS)
experts_up(Stack routed, Stack shared, Work work, Routes routes, const u8* x, int x_groups,
           float* y, int stride) {
  multiply<false>(routed, shared, work, routes, {x, x_groups, nullptr, 0, 0, 0}, y, stride);
}

// The same for silu(gate) * up, of the rows (., gate_up_stride) that `experts_up` wrote: gate, then up from column `inner`.
extern "C" __global__ void __launch_bounds__(128, BLOCKS)
experts_down(Stack routed, Stack shared, Work work, Routes routes, const float* gate_up,
             int gate_up_stride, int inner, int shared_inner, float* y, int stride) {
  const Source source = {nullptr, 0, gate_up, gate_up_stride, inner, shared_inner};
  multiply<true>(routed, shared, work, routes, source, y, stride);
}
