// Stands in for ptx.cuh, so that layout code runs on the processor.
#include <cstdint>
#include <cstring>
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
#define DEVICE static inline
#define DEVICE_METHOD inline
#define __global__
#define __device__
#define __ldg(p) (*(p))
#define __restrict__
#define __launch_bounds__(n)
struct uint2 { u32 x, y; };
struct uint4 { u32 x, y, z, w; };
struct float4 { float x, y, z, w; };
struct float2 { float x, y; };
static inline uint4 make_uint4(u32 x, u32 y, u32 z, u32 w) { return {x, y, z, w}; }
static inline u32 __byte_perm(u32 a, u32 b, u32 selector) {
  const unsigned long long both = (unsigned long long)b << 32 | a;
  u32 d = 0;
  for (int i = 0; i < 4; i++) d |= (u32)(both >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
  return d;
}
static inline u32 bytes_of(u32 a, u32 b, u32 selector) {
  u32 d = 0;
  for (int i = 0; i < 4; i++) {
    const u32 at = selector >> (4 * i) & 15, word = at & 4 ? b : a;
    u32 byte = word >> (8 * (at & 3)) & 255;
    if (at & 8) byte = byte & 128 ? 255 : 0;  // what prmt does, which nobody wants here
    d |= byte << (8 * i);
  }
  return d;
}
static inline const u16* kept(const u16* p) { return p; }
static inline u32 word_of(const uint4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
struct Index { int x, y, z; };
static thread_local Index blockIdx, threadIdx, blockDim, gridDim;

static inline float f16_to_f32(u16 h) {
  const u32 sign = (u32)(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 1023;
  float f;
  if (exponent == 0) {
    f = (float)fraction * 0x1p-24f;
    u32 bits;
    memcpy(&bits, &f, 4);
    bits |= sign;
    memcpy(&f, &bits, 4);
    return f;
  }
  const u32 bits = sign | (exponent == 31 ? 255u << 23 : (exponent + 112) << 23) | fraction << 13;
  memcpy(&f, &bits, 4);
  return f;
}
static inline float half2_low(u32 h) { return f16_to_f32((u16)h); }
static inline float half2_high(u32 h) { return f16_to_f32((u16)(h >> 16)); }
static inline int byte_at(u32 word, int i) { return (word >> (8 * i)) & 255; }
static inline float bf16_to_f32(u16 h) {
  const u32 bits = (u32)h << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
static inline u16 f32_to_f16(float f) {
  const _Float16 h = (_Float16)f;
  u16 bits;
  memcpy(&bits, &h, 2);
  return bits;
}
static inline float __uint_as_float(u32 bits) {
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
template <int I>
static inline int signed_byte_at(u32 word) { return (signed char)(word >> (8 * I)); }
static inline u32 half2_of(float low, float high) { return f32_to_f16(low) | (u32)f32_to_f16(high) << 16; }
static inline u32 half2_twice(float f) { return half2_of(f, f); }
static inline u32 half2_sub(u32 a, u32 b) {
  return half2_of(half2_low(a) - half2_low(b), half2_high(a) - half2_high(b));
}
static inline u32 half2_fma(u32 a, u32 b, u32 c) {  // in double, so that it is rounded once
  u32 d = 0;
  for (int i = 0; i < 2; i++) {
    const double v = (double)f16_to_f32(a >> (16 * i)) * f16_to_f32(b >> (16 * i)) + f16_to_f32(c >> (16 * i));
    const _Float16 h = (_Float16)v;
    u16 bits;
    memcpy(&bits, &h, 2);
    d |= (u32)bits << (16 * i);
  }
  return d;
}
static inline int max(int a, int b) { return a > b ? a : b; }
static inline void __syncwarp() {}
static inline void let_next_start() {}
static inline void wait_for_previous() {}
