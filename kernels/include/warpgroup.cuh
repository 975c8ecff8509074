// Products of four warps together, which only cards of compute capability 9.0 have: A in registers, B in shared memory, read once
// for all of them. Other cards multiply warp by warp (`mma_f16`).
#pragma once
#include "ptx.cuh"

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define WARPGROUPS

// Where B lies: squares of 8 columns x 8 k, 16 bytes a column; the next 8 k are `beyond` bytes on, the next 8 columns `beside`.
struct SharedOperand {
  unsigned long long bits;
  DEVICE_METHOD SharedOperand(const void* shared, int beyond, int beside)
      : bits((u32)__cvta_generic_to_shared(shared) >> 4 | (unsigned long long)(beyond >> 4) << 16 | (unsigned long long)(beside >> 4) << 32) {}
  DEVICE_METHOD unsigned long long at(int bytes) const { return bits + (bytes >> 4); }
};

// Between registers written as usual and `multiply`, and around what it is still busy with: all but the last PENDING groups are done.
DEVICE void products_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void products_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING>
DEVICE void products_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
// What other threads copied into shared memory becomes visible to `multiply`.
DEVICE void show_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// c = (more ? c : 0) + A (16 x 16 a warp) B (16 x 8 N), f16 in, f32 sums; a and c as those of `mma_f16`.
#define SUMS(n) "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3])
#define MULTIPLY(N, SHAPE, D, A, B, MORE, ...)                                                                              \
  DEVICE void multiply(float (&c)[N][4], const u32 (&a)[4], unsigned long long b, int more) {                              \
    asm volatile("{.reg .pred p; setp.ne.b32 p, " MORE ", 0; wgmma.mma_async.sync.aligned." SHAPE ".f32.f16.f16 {" D "},{" A  \
                 "}," B ",p,1,1,0;}"                                                                                         \
                 : __VA_ARGS__                                                                                               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(more));                                          \
  }
#define FOUR "%0,%1,%2,%3"
#define EIGHT FOUR ",%4,%5,%6,%7"
#define SIXTEEN_ EIGHT ",%8,%9,%10,%11,%12,%13,%14,%15"
MULTIPLY(1, "m64n8k16", FOUR, "%4,%5,%6,%7", "%8", "%9", SUMS(0))
MULTIPLY(2, "m64n16k16", EIGHT, "%8,%9,%10,%11", "%12", "%13", SUMS(0), SUMS(1))
MULTIPLY(3, "m64n24k16", EIGHT ",%8,%9,%10,%11", "%12,%13,%14,%15", "%16", "%17", SUMS(0), SUMS(1), SUMS(2))
MULTIPLY(4, "m64n32k16", SIXTEEN_, "%16,%17,%18,%19", "%20", "%21", SUMS(0), SUMS(1), SUMS(2), SUMS(3))
MULTIPLY(8, "m64n64k16", SIXTEEN_ ",%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31", "%32,%33,%34,%35", "%36", "%37",
         SUMS(0), SUMS(1), SUMS(2), SUMS(3), SUMS(4), SUMS(5), SUMS(6), SUMS(7))
#undef SIXTEEN_
#undef EIGHT
#undef FOUR
#undef MULTIPLY
#undef SUMS
#endif
