// A block's share of a product of packed weights: units in a row, from tile to tile without draining its ring.
//
// Put in once for each format of a launch, in a namespace of its own; TYPE, FORM, NT, TILES and STAGES are that format's.
#define STREAM
#include "unit.cuh"

constexpr int WEIGHT_STAGE = CHUNK * TILES * WARPS;
constexpr int STAGE = WEIGHT_STAGE + ACTIVATION * (ONE_ROW ? WARPS : NT);
constexpr int BLOCK_OF_8 = FORM == 8 ? INT8_BLOCK : F16_BLOCK;

DEVICE void stream(const Side& s, int block, int groups, int M, u8* ring) {
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  const int first = block * s.L, last = min(s.units, first + s.L);

  // Copying runs STAGES - 1 units ahead of computing, so it has a place of its own.
  int next_sb, next_tile;
  const u8 *from_weights[TILES], *from_activations;
  const int activation_step = groups * BLOCK_OF_8;
  auto aim = [&]() {
    const int group = next_tile / s.batch_tiles, batch = next_tile - group * s.batch_tiles;
#pragma unroll
    for (int w = 0; w < TILES; w++) {
      const int tile = min((group * WARPS + warp) * TILES + w, s.row_tiles - 1);
      const u8* base = tile < s.ends[0] ? s.weights[0] : tile < s.ends[1] ? s.weights[1] : s.weights[2];
      const int from = tile < s.ends[0] ? 0 : tile < s.ends[1] ? s.ends[0] : s.ends[1];
      from_weights[w] = base + ((size_t)(tile - from) * s.superblocks + next_sb) * CHUNK + 16 * lane;
    }
    from_activations = s.x + (size_t)next_sb * activation_step + batch * NT * BLOCK_OF_8;
  };
  auto copy_weights = [&](int slot) {
#pragma unroll
    for (int w = 0; w < TILES; w++) {
      u8* to = ring + slot * STAGE + (warp * TILES + w) * CHUNK + 16 * lane;
#pragma unroll
      for (int i = 0; i < CHUNK; i += 512)
        if (i + 512 <= CHUNK || i + 16 * lane < CHUNK) copy16(to + i, from_weights[w] + i);
    }
  };
  // This thread's 16-byte pieces of a stage's activations: of one row, one a lane of each warp. Of a single group only rows below M
  // are copied: lanes 4g.. of the fragments, words of the sums.
  constexpr int THREADS = ONE_ROW ? 32 : 32 * WARPS, PIECES = ONE_ROW ? ROW_BLOCK / 16 : ACTIVATION * NT / 16;
  constexpr int TURNS = (PIECES + THREADS - 1) / THREADS;
  constexpr int FRAGMENTS = FORM == 8 ? INT8_SUMS / 16 : F16_E / 16, BY_ROW = FORM == 8 ? INT8_E / 16 : FRAGMENTS;
  const int thread = ONE_ROW ? lane : threadIdx.x;
  const int of_row = lane < 16 ? 512 * (lane >> 2) + 16 * (lane & 3) : lane < 18 ? INT8_SUMS + 16 * (lane - 16)
                     : lane < 19 ? INT8_E : INT8_F + 64 * (lane - 19);
  u32 pieces = 0;
#pragma unroll
  for (int i = 0; i < TURNS; i++) {
    const int at = thread + THREADS * i;
    const int g = !ONE_ROW && NT == 1 && at < BY_ROW ? (at < FRAGMENTS ? (at & 31) >> 2 : (at - FRAGMENTS) >> 1) : 0;
    if (at < PIECES && g < M) pieces |= 1u << i;
  }
  auto piece_from = [&](const u8* from, int i) {
    const int at = thread + THREADS * i;
    return from + (ONE_ROW ? of_row : 16 * at + (BLOCK_OF_8 - ACTIVATION) * (at / (ACTIVATION / 16)));
  };
  auto piece_to = [&](int slot, int i) {
    return ring + slot * STAGE + WEIGHT_STAGE + (ONE_ROW ? warp * ACTIVATION : 0) + 16 * (thread + THREADS * i);
  };
  auto copy_activations = [&](int slot, const u8* from) {
#pragma unroll
    for (int i = 0; i < TURNS; i++)
      if (pieces >> i & 1) copy16(piece_to(slot, i), piece_from(from, i));
  };
  auto advance = [&](int unit) {
#pragma unroll
    for (int w = 0; w < TILES; w++) from_weights[w] += CHUNK;
    from_activations += activation_step;
    if (++next_sb == s.superblocks) {
      next_sb = 0;
      next_tile++;
      if (unit + 1 < last) aim();
    }
  };

  // Weights depend on no other kernel: the ring fills with them while the producer of x still runs. In short steps the first
  // activations go through registers, so that the first unit need not wait for what is for all others.
  constexpr int DIRECT = NT <= 4;
  int tile = first / s.superblocks, sb = first - tile * s.superblocks, begin = sb, slot = 0, batch = tile % s.batch_tiles;
  const u8* activations = nullptr;
  if (first < last) {
    next_tile = tile, next_sb = sb;
    aim();
    activations = from_activations;
#pragma unroll 1
    for (int i = 0; i < STAGES - 1; i++) {
      if (first + i < last) copy_weights(i);
      copies_commit();
      advance(first + i);
    }
  }
  wait_for_previous();
  if (first >= last) return;
  uint4 firsts[DIRECT ? TURNS : 1];
#pragma unroll
  for (int i = 0; i < DIRECT * TURNS; i++)
    if (pieces >> i & 1) firsts[i] = __ldcg((const uint4*)piece_from(activations, i));
#pragma unroll 1
  for (int i = 0, at = sb; i < STAGES - 1; i++) {
    if (i >= DIRECT) {
      if (first + i < last) copy_activations(i, activations);
      copies_commit();
    }
    activations += activation_step;
    if (++at == s.superblocks) {
      at = 0, batch = batch + 1 == s.batch_tiles ? 0 : batch + 1;
      activations = s.x + batch * NT * BLOCK_OF_8;
    }
  }
#pragma unroll
  for (int i = 0; i < DIRECT * TURNS; i++)
    if (pieces >> i & 1) *(uint4*)piece_to(0, i) = firsts[i];

  Lane l;
  l.lane = lane, l.g = lane >> 2, l.t = lane & 3;
  Sums acc;
  acc.clear();
#pragma unroll 1
  for (int unit_index = first; unit_index < last; unit_index++) {
    if (DIRECT && unit_index == first) copies_wait<2 * STAGES - 4>();
    else copies_wait<STAGES - 2>();
    if (ONE_ROW) __syncwarp();
    else __syncthreads();
    const int next = unit_index + STAGES - 1, next_slot = slot ? slot - 1 : STAGES - 1;
    if (next < last) {
      copy_weights(next_slot);
      copy_activations(next_slot, from_activations);
    }
    copies_commit();
    advance(next);
    l.weights = ring + slot * STAGE + warp * TILES * CHUNK;
    l.activations = ring + slot * STAGE + WEIGHT_STAGE + (ONE_ROW ? warp * ACTIVATION : 0);
    unit(acc, l);
    if (++slot == STAGES) slot = 0;
    if (++sb < s.superblocks && unit_index + 1 < last) continue;

    // Lane 4g+t has columns 8n + 2t, 8n + 2t + 1 and rows g, g + 8 of each row tile: to y, or to the part of a split tile.
    const bool whole = begin == 0 && sb == s.superblocks;
    const int group = tile / s.batch_tiles, m = (tile - group * s.batch_tiles) * 8 * NT + 2 * l.t, row = 16 * warp * TILES + l.g;
    int step = 16 * WARPS * TILES, left = 16 * TILES;
    float* to = s.parts + (size_t)(2 * block + (begin == 0)) * (step * 8 * NT) + 2 * l.t * step + row;
    if (whole) {
      step = s.stride, left = s.rows - 16 * WARPS * TILES * group - row;
      to = s.y + (size_t)m * step + s.rows - left;
    }
#pragma unroll
    for (int n = 0; n < NT; n++)
#pragma unroll
      for (int j = 0; j < 2; j += STEP) {
        if (m + 8 * n + j >= M) continue;
        float* at = to + (size_t)(8 * n + j) * step;
#pragma unroll
        for (int w = 0; w < TILES; w++) {
          if (16 * w < left) __stcg(at + 16 * w, acc.at[w][n][j]);
          if (16 * w + 8 < left) __stcg(at + 16 * w + 8, acc.at[w][n][2 + j]);
        }
      }
    acc.clear();
    if (sb == s.superblocks) sb = 0, tile++;
    begin = sb;
  }
}
