// A warp as 32 threads that runs a unit of a product, or with SIDES a block of four that runs matmul.cu. `headers.h` has the
// kernels' text, TYPE, FORM, NT and TILES are the test's. The tensor cores' instructions are done as PTX defines them: each thread gives and takes its own registers.
#include "host.h"
#include <cmath>
#include <algorithm>
#include <pthread.h>
struct Operands { u32 a[4], b[2]; int n, c[4]; float f[4]; };
static Operands of_warps[4][32];
static pthread_barrier_t barriers[4], of_block;
static thread_local int me, warp_of_me;
#define operands of_warps[warp_of_me]
#define barrier barriers[warp_of_me]
static inline float half_of(const u32* words, int i) { return f16_to_f32((u16)(words[i >> 1] >> (16 * (i & 1)))); }

// Byte k of row `row` of A from the registers of all lanes (PTX ISA: words 0, 1 have k < 16), and of column `column` of B.
static inline int byte_of_a(int row, int k) {
  return (signed char)(operands[4 * (row & 7) + (k & 15) / 4].a[(row >> 3) + 2 * (k >> 4)] >> (8 * (k & 3)));
}
static inline int byte_of_b(int column, int k) {
  return (signed char)(operands[4 * column + (k & 15) / 4].b[k >> 4] >> (8 * (k & 3)));
}
static inline float half_of_a(int row, int k) {
  return half_of(&operands[4 * (row & 7) + (k & 7) / 2].a[(row >> 3) + 2 * (k >> 3)], k & 1);
}
static inline float half_of_b(int column, int k) { return half_of(&operands[4 * column + (k & 7) / 2].b[k >> 3], k & 1); }

template <class Give, class Take>
static inline void together(Give give, Take take) {
  give(operands[me]);
  pthread_barrier_wait(&barrier);
  for (int k = 0; k < 4; k++) take(k, me / 4 + 8 * (k >> 1), 2 * (me & 3) + (k & 1));
  pthread_barrier_wait(&barrier);
}
static void mma_s8(int (&c)[4], const u32* a, int words, u32 b0, u32 b1) {
  together([&](Operands& o) { for (int i = 0; i < words; i++) o.a[i] = a[i]; o.b[0] = b0, o.b[1] = b1; },
           [&](int i, int row, int column) {
             c[i] = 0;
             for (int k = 0; k < 8 * words; k++) c[i] += byte_of_a(row, k) * byte_of_b(column, k);
           });
}
template <int START = 0>
static void mma_s8_k32(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) { mma_s8(c, a, 4, b0, b1); }
static void mma_s8_k16(int (&c)[4], u32 a0, u32 a1, u32 b0) {
  const u32 a[2] = {a0, a1};
  mma_s8(c, a, 2, b0, 0);
}
static void mma_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
  together([&](Operands& o) { for (int i = 0; i < 4; i++) o.a[i] = a[i]; o.b[0] = b0, o.b[1] = b1; },
           [&](int i, int row, int column) {
             for (int k = 0; k < 16; k++) c[i] += half_of_a(row, k) * half_of_b(column, k);
           });
}

#ifdef SIDES
#undef __launch_bounds__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__
#define __align__(n)
extern "C" { alignas(128) u8 ring[1 << 18]; }
#define __syncwarp() pthread_barrier_wait(&barrier)
static inline void __syncthreads() { pthread_barrier_wait(&of_block); }
static inline void __stcg(float* to, float v) { *to = v; }
static inline uint4 __ldcg(const uint4* from) { return *from; }
static inline void copy16(void* to, const void* from) { memcpy(to, from, 16); }
static inline void copies_commit() {}
template <int PENDING> static inline void copies_wait() {}
using std::min;
#endif
#include "headers.h"

#ifndef SIDES
struct Work { int lane; const u8 *chunks, *blocks; float* y; };
static void* one_lane(void* p) {
  const Work& work = *(Work*)p;
  me = work.lane;
  Lane l;
  l.lane = me, l.g = me >> 2, l.t = me & 3, l.weights = work.chunks, l.activations = work.blocks;
  Sums acc;
  acc.clear();
  unit(acc, l);
  for (int w = 0; w < TILES; w++)
    for (int n = 0; n < NT; n++)
      for (int k = 0; k < 4; k++)
        work.y[(16 * w + l.g + 8 * (k >> 1)) * 8 * NT + 8 * n + 2 * l.t + (k & 1)] = acc.at[w][n][k];
  return nullptr;
}
extern "C" void run(const u8* chunks, const u8* blocks, float* y) {
  pthread_t threads[32];
  Work works[32];
  pthread_barrier_init(&barrier, nullptr, 32);
  for (int i = 0; i < 32; i++) works[i] = {i, chunks, blocks, y}, pthread_create(&threads[i], nullptr, one_lane, &works[i]);
  for (int i = 0; i < 32; i++) pthread_join(threads[i], nullptr);
  pthread_barrier_destroy(&barrier);
}
#else
struct Thread { int index; const Sides* sides; int block; };
static void* one_thread(void* p) {
  const Thread& thread = *(Thread*)p;
  me = thread.index & 31, warp_of_me = thread.index >> 5;
  threadIdx = {thread.index, 0, 0}, blockIdx = {thread.block, 0, 0};
  matmul(*thread.sides);
  return nullptr;
}
extern "C" void run(const Sides* sides, int blocks) {
  pthread_t threads[128];
  Thread all[128];
  for (auto& one : barriers) pthread_barrier_init(&one, nullptr, 32);
  pthread_barrier_init(&of_block, nullptr, 128);
  for (int b = 0; b < blocks; b++) {
    memset(ring, 0xff, sizeof ring);
    for (int i = 0; i < 128; i++) all[i] = {i, sides, b}, pthread_create(&threads[i], nullptr, one_thread, &all[i]);
    for (int i = 0; i < 128; i++) pthread_join(threads[i], nullptr);
  }
}
#endif
