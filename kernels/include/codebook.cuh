// Formats whose codes are indices into a codebook, the IQ2, IQ3 and IQ1 families: the rest of layout.cuh, which includes this.
//
// An index stands for 8 weights (IQ3: 4), so that lanes 2p and 2p + 1 share one: INDEX_LANES have their own.
//   HEAD:  scales of four bits, 8 a row for 32 columns each or 16 for 16 columns each, then 16 f16 d. A scale is 2 n + 1.
//   HIGH:  512 bytes of signs, of which IQ1 has none: bit 16 (j >> 2) + 4 b + (j & 3) of word r of a lane is that of byte b in
//          slab j. Then the bits of the indices above the eighth, ABOVE of them for word r in slab j, at 4 ABOVE j + ABOVE r
//          of the words [32 bits][index lane]; IQ1's highest says that delta is below zero.
//   QUANT: 8 bytes for each [slab pair][index lane]: the low bytes of the indices of words 0..3 in slab 2i, then in 2i+1.

#ifndef CODEBOOK
#define CODEBOOK codebook
#endif

// Four weights of an entry are four nibbles n that stand for these numbers. IQ1 adds or takes delta, an eighth: 8 n - 8 +- 1.
constexpr u32 LEVELS_0 = IQ1 ? 0x000901f9 : IQ2 ? 0x002b1908 : TYPE == IQ3_XXS ? 0x1c140c04 : 0x07050301;
constexpr u32 LEVELS_4 = IQ1 ? 0x0007fff7 : IQ2 ? 0x00d5e7f8 : TYPE == IQ3_XXS ? 0x3e342c24 : 0x0f0d0b09;  // IQ2: below zero
constexpr u32 BELOW_0 = TYPE == IQ3_XXS ? 0xe4ecf4fc : 0xf9fbfdff, BELOW_4 = TYPE == IQ3_XXS ? 0xc2ccd4dc : 0xf1f3f5f7;

constexpr int ENTRIES = IQ1 ? 2048 : TYPE == IQ2_S ? 1024 : TYPE == IQ2_XS || TYPE == IQ3_S ? 512 : 256;
extern "C" {
__device__ u16 CODEBOOK[BOOK ? SHARE * ENTRIES : 1];  // the host fills it: SHARE words of four nibbles an entry
}

// The half of each entry that lane 4g + t needs.
DEVICE const u16* book_of(int t) { return kept(CODEBOOK + (SHARE == 2 ? t & 1 : 0)); }

// Signed bytes of word r of slab `slab` in a lane: `book` is its `book_of`, `index` has the slab's low bytes, `above` the
// word of the bits above them, `signs` the lane's word r of signs.
DEVICE u32 book_bytes(const u16* book, u32 index, u32 above, u32 signs, int slab, int r) {
  int entry = byte_at(index, r);
  const int from = 4 * ABOVE * slab % 32 + ABOVE * r - 8;
  const u32 field = from < 0 ? above << -from : above >> from;  // its lowest bit is the ninth
  if (ABOVE) entry |= (int)(field & (IQ1 ? 0x700 : ((1 << ABOVE) - 1) << 8));
  const u32 chosen = __ldg(book + SHARE * entry);
  if (IQ1) return bytes_of(LEVELS_0, LEVELS_4, chosen + (field >> 11 & 1) * 0x4444u);
  const int at = 16 * (slab >> 2) + (slab & 3) - 2;
  const u32 minus = (at < 0 ? signs << -at : signs >> at) & 0x4444u;
  if (IQ2) return bytes_of(LEVELS_0, LEVELS_4, chosen | minus);
  return bytes_of(bytes_of(LEVELS_0, LEVELS_4, chosen), bytes_of(BELOW_0, BELOW_4, chosen), minus | 0x3210u);
}

// Where a lane's parts of a chunk lie: 8 bytes of indices of slabs 2i and 2i+1, the bits above them, and its signs.
DEVICE const u8* book_indices(const u8* chunk, int lane, int i) { return chunk + HEAD + HIGH + 8 * (i * INDEX_LANES + lane / SHARE); }
DEVICE const u8* book_above(const u8* chunk, int lane, int i) {
  return chunk + HEAD + SIGNS + 4 * ((i * ABOVE >> 2) * INDEX_LANES + lane / SHARE);
}
DEVICE const u8* book_signs(const u8* chunk, int lane) { return chunk + HEAD + 16 * lane; }

// One code of a chunk.
DEVICE int book_code(const u8* chunk, int row, int column) {
  const int slab = column >> 5, k = column & 31, lane = 4 * (row & 7) + ((k & 15) >> 2), r = (row >> 3) + 2 * (k >> 4);
  const u32 index = ((const u32*)book_indices(chunk, lane, slab >> 1))[slab & 1];
  const u32 above = ABOVE ? *(const u32*)book_above(chunk, lane, slab >> 1) : 0;
  const u32 signs = SIGNS ? ((const u32*)book_signs(chunk, lane))[r] : 0;
  return (signed char)byte_at(book_bytes(book_of(lane & 3), index, above, signs, slab, r), k & 3);
}
