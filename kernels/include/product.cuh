// The result of a matrix product, as its consumer reads it: the parts of split tiles are added here.
//
// matmul.cu gives each block `units` (superblock, tile) steps in a row. A tile that one block finished lies in
// `y`; of another, block b left its part in `parts`, and the sum of the parts in the order of b is the same for every M.
#pragma once
#include "ptx.cuh"

// Rows [.., row_end) of a product: one launch. `units` is 0 where all lies in `y`.
struct Part {
  const float* parts;
  int row_end, superblocks, units, tiles, columns, column_tiles;
};

// y (M, width); the launches' rows lie side by side.
struct Product {
  const float* y;
  int width, count;
  Part part[3];
};

// Where the parts of element (m, row) lie: `first` is null where y holds the whole.
struct PartRange {
  const float* first;
  int count;
  size_t step;
};

DEVICE PartRange parts_of(const Product& p, int m, int row) {
  PartRange range = {nullptr, 0, 0};
  // Written out: an index into a kernel parameter would copy it to local memory.
  const bool second = p.count > 1 && row >= p.part[0].row_end, third = p.count > 2 && row >= p.part[1].row_end;
  const Part part = third ? p.part[2] : second ? p.part[1] : p.part[0];
  if (part.units == 0) return range;
  row -= third ? p.part[1].row_end : second ? p.part[0].row_end : 0;
  const int tile = row >> 4, group = tile / part.tiles, column = m % part.columns;
  const int unit = (group * part.column_tiles + m / part.columns) * part.superblocks;
  const int first = unit / part.units, last = (unit + part.superblocks - 1) / part.units;
  if (first == last) return range;
  // A block has two slots: for a tile that it begins (1) and for one that it goes on with (0).
  const bool begins = first * part.units <= unit;
  const size_t slot = (size_t)part.tiles * part.columns * 16;
  const size_t at = (size_t)(tile % part.tiles) * part.columns * 16 + (size_t)column * 16 + (row & 15);
  range.first = part.parts + (size_t)(2 * first + begins) * slot + at;
  range.step = 2 * slot;
  range.count = last - first + 1;
  return range;
}

// Element i >= 1 of the range is in slot 0 of its block, the first one in slot 1 (it begins the tile).
DEVICE const float* part_at(const PartRange& r, int i) { return i == 0 ? r.first : r.first + i * r.step - r.step / 2; }

DEVICE float load1(const Product& p, int m, int row) {
  const PartRange r = parts_of(p, m, row);
  if (!r.first) return p.y[(size_t)m * p.width + row];
  float sum = 0;
#pragma unroll 4
  for (int i = 0; i < r.count; i++) sum += __ldcg(part_at(r, i));
  return sum;
}

// Rows row .. row + 3; row and the width are multiples of 4.
DEVICE float4 load4(const Product& p, int m, int row) {
  const PartRange r = parts_of(p, m, row);
  if (!r.first) return *(const float4*)(p.y + (size_t)m * p.width + row);
  float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 4
  for (int i = 0; i < r.count; i++) {
    const float4 v = __ldcg((const float4*)part_at(r, i));
    sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w;
  }
  return sum;
}
