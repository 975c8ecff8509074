// From the product q|k|v to attention's inputs (include/heads.cuh): queries to f16 [m][head][HEAD_DIM], keys and values to their pages.
//
// rope_store: grid (n_heads + 2 n_kv_heads, M), one warp a head. Without queries, n_heads = 0, it only stores. A row at position -1
// pads a bucket: nothing is stored. Steps of few rows do without it, see attention.cu.
// H200, 2026-11-29: 4.0 us for 48 heads of 128, by itself.
#include "heads.cuh"

extern "C" __global__ void __launch_bounds__(32)
rope_store(Product qkv, Rows rows, Heads heads, u16* __restrict__ queries, u16* __restrict__ keys, u16* __restrict__ values) {
  __shared__ float room[HEAD_DIM];
  const int h = blockIdx.x, m = blockIdx.y, position = rows.positions[m];
  const bool is_query = heads.is_query(h);
  Head head;
  head.prepare(qkv, heads, m, h, position);
  u16* query = queries + ((size_t)m * heads.n_heads + h) * HEAD_DIM;
  KvPlace place = {};
  if (!is_query && position >= 0) place = place_of(rows, heads, m, h, keys, values);
  wait_for_previous();
  let_next_start();
  if (!is_query && position < 0) return;
  head.finish(qkv, heads, m, h, room, [&](int d, u16 bits) {
    if (is_query) query[d] = bits;
    else place(d, bits);
  });
}

// Moves keys and values of the tried rows that stand to places in a row: grid (kv heads, layers), 128 threads. path.row[i] of a
// sequence, counted from its first, goes to the place of its row begin + i, which lies no further back. A layer's pages
// lie `layer` halves behind those of the layer before, values behind keys.
struct Path {
  int count, row[32];
};

extern "C" __global__ void __launch_bounds__(128)
move_rows(Rows rows, int sequence, Path path, int begin, int n_kv_heads, u16* __restrict__ pages, long long layer) {
  u16 *keys = pages + 2 * blockIdx.y * layer, *values = keys + layer;
  const int first = rows.spans[sequence].w;
  wait_for_previous();
  auto base = [&](int place) {
    return ((size_t)rows.page(sequence, place / PAGE) * n_kv_heads + blockIdx.x) * (PAGE * HEAD_DIM);
  };
  for (int i = 0; i < path.count; i++) {
    const int source = first + path.row[i], target = first + begin + i;
    if (source == target) continue;
    const size_t from = base(source), to = base(target);
    for (int d = threadIdx.x; d < HEAD_DIM; d += 128) {
      keys[to + target % PAGE * HEAD_DIM + d] = keys[from + source % PAGE * HEAD_DIM + d];
      values[to + value_at(target % PAGE, d)] = values[from + value_at(source % PAGE, d)];
    }
    __syncthreads();
  }
}
