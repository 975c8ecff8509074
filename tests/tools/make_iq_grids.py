"""Writes resources/quants/iq_grids.npz, the codebooks of the IQ types, from the development package `gguf`.

The tables are part of the file format (ggml-common.h). Run again only when a type is added:

    python tests/tools/make_iq_grids.py
"""

from __future__ import annotations

from pathlib import Path

import gguf.quants
import numpy as np

OUT = Path(__file__).resolve().parents[2] / "resources" / "quants" / "iq_grids.npz"
NAMES = ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S")


def tables() -> dict[str, np.ndarray]:
    """Every codebook by type name: int8 (entries, weights each)."""
    out = {}
    for name in NAMES:
        kind = getattr(gguf.quants, name)
        kind.init_grid()
        out[name] = kind.grid[0, 0].astype(np.int8)
    return out


if __name__ == "__main__":
    OUT.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(OUT, **tables())
    print(OUT.name, OUT.stat().st_size, "bytes")
