// Packed chunks to operands of the tensor cores.
#include "layout.cuh"

// The bytes that the four nibbles of `low` half `s` choose.
DEVICE u32 table_bytes(u32 low, int s) {
  const u32 within = low & 0x77777777u, half = ((low >> 1) & 0x44444444u) | 0x32103210u;
  const u32 below = bytes_of(TABLE_0, TABLE_4, s ? within >> 16 : within);
  const u32 above = bytes_of(TABLE_8, TABLE_12, s ? within >> 16 : within);
  return bytes_of(below, above, s ? half >> 16 : half);
}

// Unsigned codes of slab `s` of a pair: `low` has the bits of `layout.cuh` (Q8_0: the slab itself), `high` the
// bits above for `slab` = 2i + s. Signed bytes, of Q8_0 and of tables, are 128 higher.
DEVICE u32 codes(u32 low, u32 high, int s, int slab) {
  if (TYPE == Q8_0) return low ^ 0x80808080u;
  if (TABLE) return table_bytes(low, s) ^ 0x80808080u;
  if (TWO_BITS) {
    u32 code = (low >> (2 * (slab & 3))) & 0x03030303u;
    if (TYPE == Q3_K) code |= (slab < 2 ? high << (2 - slab) : high >> (slab - 2)) & 0x04040404u;
    return code;
  }
  u32 code = (low >> (4 * s)) & 0x0f0f0f0fu;
  if (FIVE_BITS) code |= (slab < 4 ? high << (4 - slab) : high >> (slab - 4)) & 0x10101010u;
  if (TYPE == Q6_K) {
    const int at = 2 * (slab & 3);
    code |= (at <= 4 ? high << (4 - at) : high >> (at - 4)) & 0x30303030u;
  }
  return code;
}

// What integer codes are multiplied by in `signed_codes`, so that shifts alone make them signed.
constexpr float CODE_SCALE = TYPE == Q4_0 ? 16 : TYPE == Q5_0 ? 8 : TYPE == Q6_K ? 4 : 1;

// Codes as signed bytes, times CODE_SCALE.
DEVICE u32 signed_codes(u32 low, u32 high, int s, int slab) {
  if (TYPE == Q8_0) return low;
  if (TABLE) return table_bytes(low, s);
  if (TYPE == Q4_0) return ((s ? low : low << 4) & 0xf0f0f0f0u) ^ 0x80808080u;
  if (TYPE == Q5_0) {
    const u32 nibbles = (s ? low >> 1 : low << 3) & 0x78787878u;
    return (nibbles | ((high << (7 - slab)) & 0x80808080u)) ^ 0x80808080u;
  }
  if (TYPE == Q6_K) {
    const int at = 2 * (slab & 3);
    return ((s ? low >> 2 : low << 2) & 0x3c3c3c3cu) | (((at < 6 ? high << (6 - at) : high) & 0xc0c0c0c0u) ^ 0x80808080u);
  }
  if (TYPE == Q3_K || TYPE == TQ2_0)  // less ZERO, without carries into the next byte
    return (codes(low, high, s, slab) + (0x80 - ZERO) * 0x01010101u) ^ 0x80808080u;
  return codes(low, high, s, slab);
}

// Four codes as f16: x = codes 0 and 2, y = codes 1 and 3, less ZERO.
DEVICE uint2 f16_codes(u32 unsigned_codes) {
  constexpr int zero = TYPE == Q8_0 || TABLE || BOOK ? 128 : ZERO;
  const u32 bias = half2_twice(1024.0f + zero);
  uint2 d;
  d.x = half2_sub((unsigned_codes & 0x00ff00ffu) | 0x64006400u, bias);
  d.y = half2_sub(((unsigned_codes >> 8) & 0x00ff00ffu) | 0x64006400u, bias);
  return d;
}
