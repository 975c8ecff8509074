// Stands in for ptx.cuh, so that layout code runs on the processor.
#include <cstdint>
#include <cstring>
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
#define DEVICE static inline
#define DEVICE_METHOD inline
#define __global__
#define __restrict__
#define __launch_bounds__(n)
struct uint4 { u32 x, y, z, w; };
struct float4 { float x, y, z, w; };
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
static inline void let_next_start() {}
static inline void wait_for_previous() {}
