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
