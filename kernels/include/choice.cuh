// How the token of a row is chosen: `CHOICE` of engine/ops/choosing.py.
#pragma once

struct Choice {
  int n_vocab, top_k;
  double rest[4];
};
