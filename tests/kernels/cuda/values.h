// What CUDA and ptx.cuh know of types and numbers, for all ways to run kernels on the processor.
#pragma once
#include <cstdint>
#include <cstring>
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
#define DEVICE static inline
#define DEVICE_METHOD inline
#define __global__
#define __device__
#define __restrict__
#define __launch_bounds__(...)
#define __align__(n)
struct uint2 { u32 x, y; };
struct uint4 { u32 x, y, z, w; };
struct int4 { int x, y, z, w; };
struct float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct Index { int x, y, z; };
DEVICE uint2 make_uint2(u32 a, u32 b) { return {a, b}; }
DEVICE uint4 make_uint4(u32 a, u32 b, u32 c, u32 d) { return {a, b, c, d}; }
DEVICE int4 make_int4(int a, int b, int c, int d) { return {a, b, c, d}; }
DEVICE float2 make_float2(float a, float b) { return {a, b}; }
DEVICE float4 make_float4(float a, float b, float c, float d) { return {a, b, c, d}; }
template <typename T> DEVICE T __ldg(const T* p) { return *p; }
DEVICE float __uint_as_float(u32 u) { float f; memcpy(&f, &u, 4); return f; }
DEVICE u32 __float_as_uint(float f) { u32 u; memcpy(&u, &f, 4); return u; }
DEVICE float f16_to_f32(u16 h) { _Float16 f; memcpy(&f, &h, 2); return (float)f; }
DEVICE u16 f32_to_f16(float f) { const _Float16 h = (_Float16)f; u16 bits; memcpy(&bits, &h, 2); return bits; }
DEVICE float half2_low(u32 h) { return f16_to_f32((u16)h); }
DEVICE float half2_high(u32 h) { return f16_to_f32((u16)(h >> 16)); }
DEVICE u32 half2_of(float low, float high) { return f32_to_f16(low) | (u32)f32_to_f16(high) << 16; }
DEVICE u32 __byte_perm(u32 a, u32 b, u32 selector) {
  const unsigned long long both = (unsigned long long)b << 32 | a;
  u32 d = 0;
  for (int i = 0; i < 4; i++) d |= (u32)(both >> (8 * (selector >> (4 * i) & 7)) & 255) << (8 * i);
  return d;
}
DEVICE u32 bytes_of(u32 a, u32 b, u32 selector) {
  u32 d = 0;
  for (int i = 0; i < 4; i++) {
    const u32 at = selector >> (4 * i) & 15, word = at & 4 ? b : a;
    u32 byte = word >> (8 * (at & 3)) & 255;
    if (at & 8) byte = byte & 128 ? 255 : 0;  // what prmt does, which nobody wants here
    d |= byte << (8 * i);
  }
  return d;
}
DEVICE const u16* kept(const u16* p) { return p; }
DEVICE u32 word_of(const uint4& v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }
DEVICE int byte_at(u32 word, int i) { return (word >> (8 * i)) & 255; }
DEVICE float bf16_to_f32(u16 h) {
  const u32 bits = (u32)h << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
template <int I>
DEVICE int signed_byte_at(u32 word) { return (signed char)(word >> (8 * I)); }
DEVICE u32 half2_twice(float f) { return half2_of(f, f); }
DEVICE u32 half2_sub(u32 a, u32 b) {
  return half2_of(half2_low(a) - half2_low(b), half2_high(a) - half2_high(b));
}
DEVICE u32 half2_fma(u32 a, u32 b, u32 c) {  // in double, so that it is rounded once
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
// Products and floats start at 0 here, not at what is 1.5 * 2^23 as a float.
constexpr int FLOAT_ZERO = 0;
static float to_float(int c) { return (float)c; }
static int times(int i, float f) { return i * (int)f; }
