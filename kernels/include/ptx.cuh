// What the kernels need of PTX: 16-bit floats as bits, tensor core products, asynchronous copies.
// No CUDA header is included, so that NVRTC alone can compile. A half2 travels as a u32.
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;

#define DEVICE static __device__ __forceinline__
#define DEVICE_METHOD __device__ __forceinline__

DEVICE float f16_to_f32(u16 h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}

DEVICE u16 f32_to_f16(float f) {
  u16 h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}

DEVICE float bf16_to_f32(u16 h) { return __uint_as_float((u32)h << 16); }

DEVICE u32 pack2(u16 low, u16 high) { return (u32)low | ((u32)high << 16); }
DEVICE u32 half2_of(float low, float high) { return pack2(f32_to_f16(low), f32_to_f16(high)); }
// `half2_of` in one instruction, where the card has it.
DEVICE u32 half2_at_once(float low, float high) {
#if __CUDA_ARCH__ >= 800
  u32 d;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(high), "f"(low));
  return d;
#else
  return half2_of(low, high);
#endif
}

DEVICE u32 half2_twice(float f) { return half2_of(f, f); }
DEVICE float half2_low(u32 h) { return f16_to_f32((u16)h); }
DEVICE float half2_high(u32 h) { return f16_to_f32((u16)(h >> 16)); }

DEVICE u32 half2_add(u32 a, u32 b) {
  u32 d;
  asm("add.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

DEVICE u32 half2_sub(u32 a, u32 b) {
  u32 d;
  asm("sub.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

DEVICE u32 half2_mul(u32 a, u32 b) {
  u32 d;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}

DEVICE u32 half2_fma(u32 a, u32 b, u32 c) {
  u32 d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

DEVICE int byte_at(u32 word, int i) { return (int)__byte_perm(word, 0, 0x4440 | i); }

// Sign-extends a byte; __byte_perm drops the selector bit that asks for it.
template <int I>
DEVICE int signed_byte_at(u32 word) {
  int d;
  constexpr u32 selector = I == 0 ? 0x8880 : I == 1 ? 0x9991 : I == 2 ? 0xaaa2 : 0xbbb3;
  asm("prmt.b32 %0, %1, %1, %2;" : "=r"(d) : "r"(word), "n"(selector));
  return d;
}

// The bytes of `b`:`a` that the nibbles of `selector` name, each below 8; __byte_perm would mask them.
DEVICE u32 bytes_of(u32 a, u32 b, u32 selector) {
  u32 d;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
  return d;
}

// The same address, which the compiler adds to no more than once.
DEVICE const u16* kept(const u16* p) {
  asm("" : "+l"(p));
  return p;
}

DEVICE u32 word_of(const uint4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// Integers as floats without a conversion, of which a card does few at a time: 1.5 * 2^23 plus a small integer, as bits, is that
// sum as a float.
constexpr int FLOAT_ZERO = 0x4b400000;

DEVICE float to_float(int biased) { return __int_as_float(biased) - __int_as_float(FLOAT_ZERO); }

// i f for a small i of at least 0 and a whole f: bits of small integers are those of the smallest floats, whose products go where
// cards have more room than for those of integers.
DEVICE int times(int i, float f) { return __float_as_int(__int_as_float(i) * f); }

// c = START + A (16x32) B (32x8), signed bytes. Lane 4g+t holds A rows g and g+8, B column g, and of c the
// rows g (c[0], c[1]) and g+8 (c[2], c[3]), columns 2t and 2t+1.
template <int START = 0>
DEVICE void mma_s8_k32(int (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%10,%10,%10,%10};"
      : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1), "r"(START));
#else
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%4,%4};"
      : "=r"(c[0]), "=r"(c[1]) : "r"(a[0]), "r"(b0), "r"(START));
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%4,%4};"
      : "=r"(c[2]), "=r"(c[3]) : "r"(a[1]), "r"(b0), "r"(START));
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};"
      : "+r"(c[0]), "+r"(c[1]) : "r"(a[2]), "r"(b1));
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%0,%1};"
      : "+r"(c[2]), "+r"(c[3]) : "r"(a[3]), "r"(b1));
#endif
}

// The same with 16 columns of A, START 0.
DEVICE void mma_s8_k16(int (&c)[4], u32 a0, u32 a1, u32 b0) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5},{%6},{%7,%7,%7,%7};"
      : "=r"(c[0]), "=r"(c[1]), "=r"(c[2]), "=r"(c[3]) : "r"(a0), "r"(a1), "r"(b0), "r"(0));
#else
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%4,%4};"
      : "=r"(c[0]), "=r"(c[1]) : "r"(a0), "r"(b0), "r"(0));
  asm("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%0,%1},{%2},{%3},{%4,%4};"
      : "=r"(c[2]), "=r"(c[3]) : "r"(a1), "r"(b0), "r"(0));
#endif
}

// c += A (16x16) B (16x8), f16 in, f32 sums. a[0], a[1]: rows g, g+8, k 2t and 2t+1; a[2], a[3]: k 2t+8
// and 2t+9; b0, b1 likewise.
DEVICE void mma_f16(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[0]), "r"(a[1]), "r"(b0));
  asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a[2]), "r"(a[3]), "r"(b1));
#endif
}

DEVICE float power_of_2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

DEVICE float quad_max(float v) {  // over the 4 lanes that share a row of a product
  v = fmaxf(v, __shfl_xor_sync(~0u, v, 1));
  return fmaxf(v, __shfl_xor_sync(~0u, v, 2));
}

DEVICE float quad_sum(float v) {
  v += __shfl_xor_sync(~0u, v, 1);
  return v + __shfl_xor_sync(~0u, v, 2);
}

// Four 8x8 matrices of 16-bit numbers: lane 8i + r tells where row r of number i lies and gets of each row g the numbers 2t, 2t + 1;
// turned, of each column g the rows 2t, 2t + 1.
DEVICE void load_matrices(u32 (&d)[4], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"((u32)__cvta_generic_to_shared(shared)) : "memory");
}

DEVICE void load_matrices_turned(u32 (&d)[4], const void* shared) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : "r"((u32)__cvta_generic_to_shared(shared)) : "memory");
}

// 16 bytes from global to shared memory, behind the back of the registers where the card can do that.
DEVICE void copy16(void* shared, const void* global) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"((u32)__cvta_generic_to_shared(shared)),
               "l"(global) : "memory");
#else
  *(uint4*)shared = *(const uint4*)global;
#endif
}

// Has the line of 128 bytes brought to L2.
DEVICE void prefetch(const void* global) { asm volatile("prefetch.global.L2 [%0];" ::"l"(global)); }

DEVICE void copies_commit() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int PENDING>
DEVICE void copies_wait() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

// Programmatic dependent launch: the next kernel may start now, but must not read before this one's end. Early, a product
// fetches weights meanwhile; late, this kernel's own reads are not held up by that. Attention's kernels are
// faster late.
DEVICE void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Every kernel waits, so that whoever waits for it has waited for all before it.
DEVICE void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
