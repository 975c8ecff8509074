// Keys and values in pages of 64 tokens, f16, for one layer: [page][kv head][64 x HEAD_DIM].
//
// Keys: [token][dim]. Values are in the order of the B operand of mma.m16n8k16, k being the token: [16 tokens][16 dims][lane 4g+t]
// 8 halves = dims g and 8 + g, each of tokens 2t, 2t+1, 2t+8, 2t+9.
#pragma once
#include "ptx.cuh"

constexpr int PAGE = 64;

// What a query sees: places up to `limit`, from `low` on, and of those from `first` on, where its step's rows begin, the ones of
// `mask`. The rows of a step lie at `first` + 0, 1, .., wherever they stand in a tree.
struct Sight {
  int limit, low, first;
  u32 mask;
  DEVICE_METHOD bool of(int place) const {
    const u32 bit = place - first;
    return place <= limit && place >= low && (bit >= 32 || (mask >> bit & 1));
  }
};

// `window` 0: everything; else so many places up to the row's own position, or all rows' up to their first one. Not `causal`: all
// rows of the step.
struct View {
  int window, per_row, causal;
};

// The variables of a step's rows: positions (-1: padding), their sequences, the places of their keys, and what they see.
// `spans`: {first row, rows, slots, place of the first row} of each sequence. `shares`: how many blocks of a long step share the
// pages that a row sees, and 16 times where the result of the second lies, as a row; those of the others follow.
struct Rows {
  const int *positions, *sequence, *places, *limits;
  const u32* masks;
  const int* shares;
  const int4* spans;
  const int* page_table;
  int pages_per_sequence;

  DEVICE_METHOD Sight sight(int m, const View& view) const {
    const int4 span = spans[sequence[m]];
    const int low = view.window == 0 ? 0 : view.per_row ? positions[m] - view.window + 1 : span.w - view.window;
    return {view.causal ? limits[m] : span.w + span.y - 1, low, span.w, view.causal ? masks[m] : ~0u};
  }
  // What lies below no row of an attention tile sees. Trees, whose positions go up and down, have up to 32 rows.
  DEVICE_METHOD int lowest(const int4& tile, const View& view) const {
    if (view.window == 0) return 0;
    const int4 span = spans[tile.w];
    if (!view.per_row) return max(0, span.w - view.window);
    return max(0, (span.y <= 32 ? span.w : positions[tile.x]) - view.window + 1);
  }
  // The row of `sums` and `stats` that holds what one of its blocks adds up.
  DEVICE_METHOD int result(int m, int block) const { return block ? (shares[m] >> 4) + block - 1 : m; }
  DEVICE_METHOD int page(int of_sequence, int index) const {
    return page_table[(size_t)of_sequence * pages_per_sequence + index];
  }
};

DEVICE int value_at(int token, int dim) {
  const int in_group = token & 15, d = dim & 15;
  const int lane = 4 * (d & 7) + ((in_group & 7) >> 1);
  return (((token >> 4) * (HEAD_DIM / 16) + (dim >> 4)) * 32 + lane) * 8 + 4 * (d >> 3) + 2 * (in_group >> 3) + (in_group & 1);
}
