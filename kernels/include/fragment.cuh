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
  return code;
}

// What signed codes are multiplied by, so that shifts or masks alone make them signed.
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
  if (TYPE == Q3_K || TYPE == TQ2_0)  // less ZERO, without carries into the next byte
    return (codes(low, high, s, slab) + (0x80 - ZERO) * 0x01010101u) ^ 0x80808080u;
  return codes(low, high, s, slab);
}

// Four codes as f16: x = codes 0 and 2, y = codes 1 and 3, less ZERO. Unsigned, they are the lowest bits of 1024 and more, the last of
// which is 1. Q6_K's are signed and times 4: with the sign turned round, they are those of 256 and more, where the last is a quarter.
DEVICE uint2 f16_codes(u32 word) {
  constexpr int zero = TYPE == Q8_0 || TABLE || BOOK ? 128 : ZERO;
  constexpr u32 power = TYPE == Q6_K ? 0x5c805c80 : 0x64006400;
  const u32 bias = half2_twice((TYPE == Q6_K ? 256.0f : 1024.0f) + zero);
  uint2 d;
  d.x = half2_sub((word & 0x00ff00ffu) ^ power, bias);
  d.y = half2_sub(((word >> 8) & 0x00ff00ffu) ^ power, bias);
  return d;
}
