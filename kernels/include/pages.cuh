// Keys and values in pages of 64 tokens, f16, for one layer: [page][kv head][64 x HEAD_DIM].
//
// Keys: [token][dim]. Values are in the order of the B operand of mma.m16n8k16, k being the token: [16 tokens][16 dims][lane 4g+t]
// 8 halves = dims g and 8 + g, each of tokens 2t, 2t+1, 2t+8, 2t+9.
#pragma once
#include "ptx.cuh"

constexpr int PAGE = 64;

DEVICE int value_at(int token, int dim) {
  const int in_group = token & 15, d = dim & 15;
  const int lane = 4 * (d & 7) + ((in_group & 7) >> 1);
  return (((token >> 4) * (HEAD_DIM / 16) + (dim >> 4)) * 32 + lane) * 8 + 4 * (d >> 3) + 2 * (in_group >> 3) + (in_group & 1);
}
