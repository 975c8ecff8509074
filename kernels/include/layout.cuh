// The packed layout of a weight matrix; TYPE is ggml's number of the block format.
//
// A chunk is 16 rows x 256 columns, the bits of the GGUF blocks in another order: HEAD bytes of scales, HIGH bytes of the
// bits above those of the quants, QUANT bytes of quants. Chunks lie [row tile][superblock]; rows and columns beyond the
// matrix are zero codes and scales. Quants are in the order of the A operand of mma.m16n8k32: lane 4g+t, word r
// holds row g + 8 (r & 1), columns 4t..4t+3 + 16 (r >> 1) of a slab of 32, 16 bytes a lane.
//   QUANT: 512 bytes for slabs 2i (low nibbles) and 2i+1 (high nibbles), i = 0..3; Q8_0: 512 bytes a slab. Q2_K, Q3_K, TQ2_0: 512
//          bytes for four slabs, bits 2s, 2s+1 of a byte belong to slab 4i+s. Formats with a TABLE: the four nibbles of slab
//          2i are the low half of a word, those of slab 2i+1 the high half, so that they choose bytes for prmt as they are.
//          Q6_K: three pieces of 512 bytes for four slabs: the upper six bits of piece p are the code of slab 4i+p less 32, the lower
//          two a third of that of slab 4i+3, its upper bits in the first, so that few operations make signed bytes of them.
//   HIGH:  Q3_K, Q5_*: 512 bytes, bit j of a byte belongs to slab j.
//   F16_TILES (F16 and BF16): only QUANT, twice 512 bytes a slab: halves of 16 columns as the A operand of mma.m16n8k16 with
//   columns in the order 4t, 4t+2 | 4t+1, 4t+3: word 2j + i holds row g + 8i, columns 4t+j and 4t+j+2.
//   HEAD:  Q4_K, Q5_K: the blocks' first 16 bytes (d, dmin, scales), row by row. Q2_K: 16 scales (minima in the high nibbles)
//          a row, then 16 pairs d, dmin. Q3_K, Q6_K: 16 signed scales a row, then 16 d; IQ4_XS: 8 of them, then 16 d.
//          32-wide formats: 8 f16 d a row; Q4_1, Q5_1: then 8 f16 m a row; MXFP4: 8 exponents a row. TQ2_0: 16 d.
//   Formats with a codebook: see codebook.cuh. TQ1_0 becomes TQ2_0.
#include "ptx.cuh"

enum { F32 = 0, F16 = 1, Q4_0 = 2, Q4_1 = 3, Q5_0 = 6, Q5_1 = 7, Q8_0 = 8, Q2_K = 10, Q3_K = 11, Q4_K = 12, Q5_K = 13, Q6_K = 14,
       IQ2_XXS = 16, IQ2_XS = 17, IQ3_XXS = 18, IQ1_S = 19, IQ4_NL = 20, IQ3_S = 21, IQ2_S = 22, IQ4_XS = 23, IQ1_M = 29,
       BF16 = 30, TQ1_0 = 34, TQ2_0 = 35, MXFP4 = 39, F16_TILES = 1001 };

#if TYPE != 0 && TYPE != 1 && TYPE != 30
constexpr bool K_QUANT = TYPE == Q4_K || TYPE == Q5_K;
constexpr bool FIVE_BITS = TYPE == Q5_0 || TYPE == Q5_1 || TYPE == Q5_K;
constexpr bool TWO_BITS = TYPE == Q2_K || TYPE == Q3_K || TYPE == TQ2_0;  // and one above, in Q3_K
constexpr bool TABLE = TYPE == IQ4_NL || TYPE == IQ4_XS || TYPE == MXFP4;
constexpr bool SIGNED_SCALES = TYPE == Q3_K || TYPE == Q6_K || TYPE == IQ4_XS;
constexpr bool HAS_OFFSETS = TYPE == Q4_1 || TYPE == Q5_1;
constexpr bool IQ1 = TYPE == IQ1_S || TYPE == IQ1_M, IQ3 = TYPE == IQ3_XXS || TYPE == IQ3_S;
constexpr bool IQ2 = TYPE == IQ2_XXS || TYPE == IQ2_XS || TYPE == IQ2_S, BOOK = IQ1 || IQ2 || IQ3;
constexpr bool SIXTEEN = TYPE == IQ2_XS || TYPE == IQ2_S || TYPE == IQ1_M;  // columns that a scale is for, of these
constexpr int SHARE = IQ3 ? 1 : 2, INDEX_LANES = 32 / SHARE, SIGNS = IQ2 || IQ3 ? 512 : 0;
constexpr int ABOVE = IQ1 ? 4 : TYPE == IQ2_S ? 2 : TYPE == IQ2_XS || TYPE == IQ3_S ? 1 : 0;

// Bytes that each row has in the head, where a row's d is behind them, and what d counts: with it all scales and codes are whole.
constexpr int ROW_HEAD = TYPE == F16_TILES || TYPE == TQ2_0 ? 0
                         : BOOK                             ? (SIXTEEN ? 8 : 4)
                         : TYPE == IQ4_XS || TYPE == MXFP4  ? 8
                                                            : 16;
constexpr bool D_BEHIND = SIGNED_SCALES || BOOK || TYPE == TQ2_0;
constexpr float D_SCALE = IQ1 || IQ2 ? 0.125f : TYPE == IQ3_XXS ? 0.25f : 1;

constexpr int HEAD = 16 * ROW_HEAD + (D_BEHIND ? 32 : TYPE == Q2_K ? 64 : HAS_OFFSETS ? 256 : 0);
constexpr int HIGH = BOOK ? SIGNS + 4 * ABOVE * INDEX_LANES : FIVE_BITS || TYPE == Q3_K ? 512 : 0;
constexpr int QUANT = TYPE == F16_TILES ? 8192
                      : TYPE == Q8_0    ? 4096
                      : TYPE == Q6_K    ? 3072
                      : BOOK            ? 32 * INDEX_LANES
                      : TWO_BITS        ? 1024
                                        : 2048;
constexpr int CHUNK = HEAD + HIGH + QUANT;

// Codes are stored unsigned; a weight is scale * (code - ZERO) (+ or - an offset). Q8_0's are signed bytes, a TABLE's choose one.
constexpr int ZERO = TYPE == Q4_0 ? 8 : TYPE == Q5_0 ? 16 : TYPE == Q6_K ? 32 : TYPE == Q3_K ? 4 : TYPE == TQ2_0 ? 1 : 0;

// The signed bytes that codes 0..3, 4..7, 8..11 and 12..15 stand for: twice an E2M1 number, else IQ4's.
constexpr u32 TABLE_0 = TYPE == MXFP4 ? 0x03020100 : 0xbfad9881, TABLE_4 = TYPE == MXFP4 ? 0x0c080604 : 0xf6eaddcf;
constexpr u32 TABLE_8 = TYPE == MXFP4 ? 0xfdfeff00 : 0x26190d01, TABLE_12 = TYPE == MXFP4 ? 0xf4f8fafc : 0x71594535;

// 2^(e - 128): an E8M0 exponent, halved because the table has doubled numbers.
DEVICE float half_e8m0(int e) { return __uint_as_float(e < 2 ? 0x200000u << e : (u32)(e - 1) << 23); }

// The six-bit scales of a K-quant header: four bytes for slabs 4 `half` .. 4 `half` + 3.
DEVICE u32 k_scales(const uint4& head, int half) {
  return half == 0 ? head.y & 0x3f3f3f3fu : (head.w & 0x0f0f0f0fu) | ((head.y >> 2) & 0x30303030u);
}

DEVICE u32 k_mins(const uint4& head, int half) {
  return half == 0 ? head.z & 0x3f3f3f3fu : ((head.w >> 4) & 0x0f0f0f0fu) | ((head.z >> 2) & 0x30303030u);
}

#include "codebook.cuh"

// Of the words of three pieces: four codes less 32, times 4, as signed bytes.
DEVICE u32 six_bits(u32 first, u32 second, u32 third, int piece) {
  if (piece < 3) return (piece == 0 ? first : piece == 1 ? second : third) & 0xfcfcfcfcu;
  return ((first << 6) & 0xc0c0c0c0u) | ((second << 4) & 0x30303030u) | ((third << 2) & 0x0c0c0c0cu);
}

// One code of a chunk: row 0..15, column 0..255.
DEVICE int code_at(const u8* chunk, int row, int column) {
  if (BOOK) return book_code(chunk, row, column);
  const int slab = column >> 5, k = column & 31;
  const int at = 16 * (4 * (row & 7) + ((k & 15) >> 2)) + 4 * ((row >> 3) + 2 * (k >> 4)) + (k & 3);
  const u8* quants = chunk + HEAD + HIGH;
  if (TYPE == Q8_0) return (signed char)quants[512 * slab + at];
  if (TYPE == Q6_K) {
    const u8* piece = quants + 1536 * (slab >> 2) + at;
    return (signed char)six_bits(piece[0], piece[512], piece[1024], slab & 3) >> 2;
  }
  if (TABLE) {
    const int code = quants[512 * (slab >> 1) + (at & ~3) + 2 * (slab & 1) + ((at & 3) >> 1)] >> (4 * (at & 1)) & 15;
    const u32 word = code < 8 ? (code < 4 ? TABLE_0 : TABLE_4) : code < 12 ? TABLE_8 : TABLE_12;
    return (signed char)byte_at(word, code & 3);
  }
  int code = TWO_BITS ? (quants[512 * (slab >> 2) + at] >> (2 * (slab & 3))) & 3
                      : (quants[512 * (slab >> 1) + at] >> (4 * (slab & 1))) & 15;
  if (FIVE_BITS) code |= ((chunk[HEAD + at] >> slab) & 1) << 4;
  if (TYPE == Q3_K) code |= ((chunk[HEAD + at] >> slab) & 1) << 2;
  return code - ZERO;
}

// One weight of a chunk, as exact as float32 allows.
DEVICE float weight_at(const u8* chunk, int row, int column) {
  const int slab = column >> 5;
  if (TYPE == F16_TILES) {
    const int k = column & 31, lane = 4 * (row & 7) + ((k & 15) >> 2);
    return f16_to_f32(((const u16*)chunk)[((2 * slab + (k >> 4)) * 32 + lane) * 8 + 2 * ((row >> 3) + 2 * (k & 1)) + ((k & 3) >> 1)]);
  }
  const float code = (float)code_at(chunk, row, column);
  if (K_QUANT) {
    const uint4 head = ((const uint4*)chunk)[row];
    const float scale = half2_low(head.x) * (float)byte_at(k_scales(head, slab >> 2), slab & 3);
    return scale * code - half2_high(head.x) * (float)byte_at(k_mins(head, slab >> 2), slab & 3);
  }
  const u8* behind = chunk + 16 * ROW_HEAD;  // the row heads
  if (TYPE == Q2_K) {
    const int scale = chunk[16 * row + (column >> 4)];
    const u32 d = ((const u32*)behind)[row];
    return half2_low(d) * (float)(scale & 15) * code - half2_high(d) * (float)(scale >> 4);
  }
  if (D_BEHIND) {
    const float d = D_SCALE * f16_to_f32(((const u16*)behind)[row]);
    if (TYPE == TQ2_0) return d * code;
    if (BOOK) {
      const int i = SIXTEEN ? column >> 4 : slab, n = chunk[ROW_HEAD * row + (i >> 1)] >> (4 * (i & 1)) & (IQ1 ? 7 : 15);
      return d * (float)(2 * n + 1) * code;
    }
    return d * (float)(signed char)chunk[ROW_HEAD * row + (column >> (ROW_HEAD == 16 ? 4 : 5))] * code;
  }
  if (TYPE == MXFP4) return half_e8m0(chunk[8 * row + slab]) * code;
  const float d = f16_to_f32(((const u16*)chunk)[8 * row + slab]);
  return HAS_OFFSETS ? d * code + f16_to_f32(((const u16*)(chunk + 256))[8 * row + slab]) : d * code;
}
#endif
