// Stands in for ptx.cuh, so that kernels whose threads meet run on the processor: a thread is a coroutine that goes on until it
// waits for others, blocks run one after the other in any order, and copies to shared memory land only when they are waited for.
#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>
#include <vector>
#include "values.h"
#define __shared__ static
using std::max;
using std::min;
static Index blockIdx, threadIdx, blockDim, gridDim;
alignas(128) u8 ring[256 << 10];  // dynamic shared memory

struct Thread {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(64 << 10);
  std::vector<std::vector<std::pair<void*, const void*>>> copies;
  bool ended;
};
struct Meeting { int arrived = 0, number = 0; };
constexpr int MOST = 320;
static Thread threads[MOST];
static Meeting of_block, of_warp[MOST / 32];
static ucontext_t scheduler;
static int current, alive, alive_in[MOST / 32];

static void pause() { swapcontext(&threads[current].context, &scheduler); }
template <typename F>
static void meet(Meeting& m, int all, const F& last) {
  const int number = m.number;
  if (++m.arrived < all) {
    while (m.number == number) pause();
    return;
  }
  last();
  m.arrived = 0, m.number++;
}
static void __syncthreads() { meet(of_block, alive, [] {}); }
template <typename F>
static void meet_warp(const F& last) { meet(of_warp[current / 32], alive_in[current / 32], last); }
static void __syncwarp() { meet_warp([] {}); }
template <typename T>
static T __shfl_xor_sync(u32, T v, int with) {
  static T all[MOST];
  all[current] = v;
  __syncwarp();
  const T other = all[current ^ with];
  __syncwarp();
  return other;
}
template <typename T>
static T __shfl_sync(u32, T v, int from) {
  static T all[MOST];
  all[current] = v;
  __syncwarp();
  const T other = all[current / 32 * 32 + from];
  __syncwarp();
  return other;
}
template <typename T>
static T __shfl_up_sync(u32, T v, int by) {
  const int lane = current % 32;
  return __shfl_sync(~0u, v, lane < by ? lane : lane - by);
}
static u32 __ballot_sync(u32, bool v) {
  u32 found = (u32)v << current % 32;
  for (int o = 1; o < 32; o <<= 1) found |= __shfl_xor_sync(~0u, found, o);
  return found;
}
static bool __any_sync(u32, bool v) {
  u32 found = v;
  for (int o = 1; o < 32; o <<= 1) found |= __shfl_xor_sync(~0u, found, o);
  return found;
}

static u32 pack2(u16 low, u16 high) { return (u32)low | (u32)high << 16; }
static u32 half2_at_once(float low, float high) { return half2_of(low, high); }
static float quad_max(float v) { v = fmaxf(v, __shfl_xor_sync(~0u, v, 1)); return fmaxf(v, __shfl_xor_sync(~0u, v, 2)); }
static float quad_sum(float v) { v += __shfl_xor_sync(~0u, v, 1); return v + __shfl_xor_sync(~0u, v, 2); }
template <typename T> static T __ldcg(const T* p) { return *p; }
static float exp_of(float x) { return expf(x); }
static float power_of_2(float x) { return exp2f(x); }
static float __fdividef(float a, float b) { return a / b; }
#define __expf exp_of
static float __fmul_rn(float x, float y) { return x * y; }
static float __fadd_rn(float x, float y) { return x + y; }
static int __ffs(u32 x) { return __builtin_ffs((int)x); }
static int __popc(u32 x) { return __builtin_popcount(x); }
static void __trap() { abort(); }
static float rsqrtf(float x) { return 1 / sqrtf(x); }
static void sine_of(float x, float* s, float* c) { *s = (float)sin(M_PI * x), *c = (float)cos(M_PI * x); }
#define sincospif sine_of
static int __float2int_rn(float f) { return (int)nearbyintf(f); }
static u32 atomicInc(u32* p, u32 last) { const u32 old = *p; *p = old >= last ? 0 : old + 1; return old; }
static u32 atomicOr(u32* p, u32 bits) { const u32 old = *p; *p |= bits; return old; }
static void __threadfence() {}
static void let_next_start() {}
static void prefetch(const void*) {}
static void wait_for_previous() {}

static void copy16(void* to, const void* from) { threads[current].copies.back().push_back({to, from}); }
static void copies_commit() { threads[current].copies.emplace_back(); }
template <int PENDING>
static void copies_wait() {
  auto& groups = threads[current].copies;
  for (; (int)groups.size() - 1 > PENDING; groups.erase(groups.begin()))
    for (auto& copy : groups.front()) memcpy(copy.first, copy.second, 16);
}

static void mma_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  static struct { float c[4]; u32 a[4], b[2]; } all[MOST];
  auto& mine = all[current];
  memcpy(mine.c, c, 16), memcpy(mine.a, a, 16), mine.b[0] = b0, mine.b[1] = b1;
  auto* warp = all + current / 32 * 32;
  meet_warp([&] {
    float A[16][16], B[16][8];
    for (int lane = 0; lane < 32; lane++)
      for (int e = 0, g = lane >> 2, t = lane & 3; e < 2; e++) {
        for (int i = 0; i < 4; i++) A[g + 8 * (i & 1)][2 * t + e + 8 * (i >> 1)] = f16_to_f32(warp[lane].a[i] >> 16 * e);
        for (int i = 0; i < 2; i++) B[2 * t + e + 8 * i][g] = f16_to_f32(warp[lane].b[i] >> 16 * e);
      }
    for (int lane = 0; lane < 32; lane++)
      for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++) warp[lane].c[i] += A[(lane >> 2) + 8 * (i >> 1)][k] * B[k][2 * (lane & 3) + (i & 1)];
  });
  memcpy(c, mine.c, 16);
}

// Signed bytes: word i of A has rows g + 8 (i & 1), columns 4t .. + 3 + 16 (i >> 1) of 8 `words`, as B its columns g.
static void mma_s8(int (&c)[4], const u32* a, int words, u32 b0, u32 b1) {
  static struct { u32 a[4], b[2]; } all[MOST];
  auto* warp = all + current / 32 * 32;
  memcpy(all[current].a, a, 4 * words), all[current].b[0] = b0, all[current].b[1] = b1;
  __syncwarp();
  for (int i = 0; i < 4; i++) {
    c[i] = 0;
    for (int k = 0; k < 8 * words; k++) {
      const int word = k >> 4, at = (k & 15) >> 2, byte = 8 * (k & 3);
      const u32 row = warp[(current % 32 & ~3) + at].a[2 * word + (i >> 1)], column = warp[4 * (2 * (current & 3) + (i & 1)) + at].b[word];
      c[i] += (signed char)(row >> byte) * (signed char)(column >> byte);
    }
  }
  __syncwarp();
}
template <int START = 0>
static void mma_s8_k32(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { mma_s8(c, a, 4, b0, b1); }
static void mma_s8_k16(int (&c)[4], u32 a0, u32 a1, u32 b0) {
  const u32 a[2] = {a0, a1};
  mma_s8(c, a, 2, b0, 0);
}

// Four 8x8 matrices, of which lane 8i + r knows where row r of number i lies.
template <bool TURNED>
static void load_some(u32 (&d)[4], const void* from) {
  for (int i = 0, g = current % 32 >> 2, t = current & 3; i < 4; i++) {
    const u16 *one = (const u16*)__shfl_sync(~0u, from, 8 * i + (TURNED ? 2 * t : g)), *two = (const u16*)__shfl_sync(~0u, from, 8 * i + 2 * t + 1);
    d[i] = TURNED ? one[g] | (u32)two[g] << 16 : one[2 * t] | (u32)one[2 * t + 1] << 16;
  }
}
static void load_matrices(u32 (&d)[4], const void* from) { load_some<false>(d, from); }
static void load_matrices_turned(u32 (&d)[4], const void* from) { load_some<true>(d, from); }

static void (*body)();
static void run_thread() {
  body();
  threads[current].ended = true, alive--, alive_in[current / 32]--;
  if (alive && of_block.arrived == alive) of_block.arrived = 0, of_block.number++;
  pause();
}

template <typename F>
static void launch(Index grid, int n, const F& kernel) {
  static const F* running;
  static std::mt19937 random(1);
  running = &kernel, body = [] { (*running)(); };
  gridDim = grid, blockDim = {n, 1, 1};
  std::vector<Index> blocks;
  for (int z = 0; z < grid.z; z++)
    for (int y = 0; y < grid.y; y++)
      for (int x = 0; x < grid.x; x++) blocks.push_back({x, y, z});
  std::shuffle(blocks.begin(), blocks.end(), random);
  std::vector<int> order;
  for (int i = 0; i < n; i++) order.push_back(i);
  for (auto& block : blocks) {
    blockIdx = block, alive = n, of_block = {};
    memset(ring, 0xff, sizeof ring);
    for (int i = 0; i < n; i++) {
      Thread& thread = threads[i];
      of_warp[i / 32] = {}, alive_in[i / 32] = 32;
      thread.ended = false, thread.copies.assign(1, {});
      getcontext(&thread.context);
      thread.context.uc_stack.ss_sp = thread.stack.data(), thread.context.uc_stack.ss_size = thread.stack.size();
      thread.context.uc_link = nullptr;
      makecontext(&thread.context, run_thread, 0);
    }
    std::shuffle(order.begin(), order.end(), random);
    while (alive)
      for (int i : order)
        if (!threads[i].ended) {
          current = i, threadIdx = {i, 0, 0};
          swapcontext(&scheduler, &threads[i].context);
        }
  }
}
