// Stands in for ptx.cuh, so that layout code runs on the processor.
#include "values.h"
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
static thread_local Index blockIdx, threadIdx, blockDim, gridDim;
static inline int byte_at(u32 word, int i) { return (word >> (8 * i)) & 255; }
static inline float bf16_to_f32(u16 h) {
  const u32 bits = (u32)h << 16;
  float f;
  memcpy(&f, &bits, 4);
  return f;
}
template <int I>
static inline int signed_byte_at(u32 word) { return (signed char)(word >> (8 * I)); }
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
