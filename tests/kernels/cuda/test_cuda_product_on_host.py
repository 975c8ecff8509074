"""Where the addends of several rows of a product lie, beside those of each alone."""

from __future__ import annotations

import ctypes
from pathlib import Path

from tests.kernels.cuda.conftest import HERE, _text
from tests.kernels.cuda.on_host import build

COMPARE = """
#include <random>
static bool same(const Addends& a, const Addends& b) {
  const bool factors = a.factors == b.factors && (!b.factors || a.factor_step == b.factor_step);
  const bool others = b.count == 1 || (a.others == b.others && a.step == b.step);
  return factors && others && a.first == b.first && a.count == b.count;
}
extern "C" int differences(int seed, int* split) {
  std::mt19937 random(seed);
  auto any = [&](int first, int last) { return first + (int)(random() % (last - first + 1)); };
  static float numbers[1];
  Product p = {numbers, 0, any(1, 4)};
  for (int i = 0; i < p.count; i++) {
    const int units = any(0, 3) ? any(1, 30) : 0, columns = 8 * any(1, 4);
    p.width += 128 * any(1, 6);
    const float* parts = any(0, 1) || units ? numbers : nullptr;
    const int tiles = any(0, 1) ? 4 : 8, more = units ? 0 : any(0, 2);
    p.part[i] = {parts, p.width, any(1, 20), units, tiles, columns, (32 + columns - 1) / columns, more};
  }
  int found = 0;
  const int first = 4 * any(0, 7), pair = any(0, 1), m = first + 2 * pair, row = 4 * any(0, p.width / 4 - 1);
  const int rows[4] = {m, m + 1, first ? m - 3 : -1, first && !pair ? m - 2 : -1};
  Addends a[4];
  addends_around(p, m, row, a);
  for (int i = 0; i < 4; i++) {
    if (rows[i] < 0) continue;
    found += !same(a[i], addends_of(p, rows[i], row));
    *split += a[i].count > 1;
  }
  addends_from(p, first, row, a);
  for (int i = 0; i < 4; i++) found += !same(a[i], addends_of(p, first + i, row));
  return found;
}
"""


def test_places_of_several_rows_are_those_of_each_alone(tmp_path: Path) -> None:
    source = tmp_path / "product.cpp"
    text = _text("include/product.cuh", set())
    source.write_text(f'#include "{HERE / "lockstep.h"}"\n' + text + COMPARE)
    library, split = build(source, tmp_path / "product.so"), ctypes.c_int(0)
    found = sum(library.differences(seed, ctypes.byref(split)) for seed in range(20_000))
    assert found == 0 and split.value > 10_000
