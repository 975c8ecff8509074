"""Random blocks of every format."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.gguf import Tensor
from engine.quants import by_name

SCALES: dict[str, tuple[tuple[int, float], ...]] = {
    "Q4_0": ((0, 4e-3),), "Q4_1": ((0, 4e-3), (2, 1e-2)), "Q5_0": ((0, 4e-3),),
    "Q5_1": ((0, 4e-3), (2, 1e-2)), "Q8_0": ((0, 3e-4),), "Q2_K": ((80, 2e-3), (82, 3e-3)),
    "Q3_K": ((108, 5e-4),), "Q4_K": ((0, 7e-5), (2, 5e-4)), "Q5_K": ((0, 7e-5), (2, 5e-4)),
    "Q6_K": ((208, 2e-5),), "IQ4_NL": ((0, 4e-4),), "IQ4_XS": ((0, 2e-5),), "MXFP4": (),
    "NVFP4": (), "TQ1_0": ((52, 3e-2),), "TQ2_0": ((64, 3e-2),), "IQ2_XXS": ((0, 1e-3),),
    "IQ2_XS": ((0, 1e-3),), "IQ2_S": ((0, 1e-3),), "IQ3_XXS": ((0, 2e-4),), "IQ3_S": ((0, 2e-4),),
    "IQ1_S": ((0, 4e-3),), "IQ1_M": (),
}  # fmt: skip
"""Where a block has f16 scales, and of what size they are."""


def random_tensor(rng: np.random.Generator, name: str, rows: int, columns: int) -> Tensor:
    """Valid random blocks with weights of about 0.03; columns are rounded up to whole blocks."""
    kind = by_name(name)
    columns = -(-columns // kind.block) * kind.block
    if kind.block == 1:
        values = (rng.standard_normal((rows, columns)) * 0.03).astype(np.float32)
        if name == "BF16":
            data = (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        else:
            data = values.astype(np.float16 if name == "F16" else np.float32).view(np.uint8)
        return Tensor("w", (rows, columns), kind, data)
    n = rows * columns // kind.block
    data = rng.integers(0, 256, (n, kind.bytes), dtype=np.uint8)

    def scales(at: int, size: float) -> None:
        values = (rng.uniform(0.5, 1.5, n) * rng.choice((-1, 1), n) * size).astype(np.float16)
        data[:, at : at + 2] = values[:, None].view(np.uint8)

    for at, size in SCALES[name]:
        scales(at, size)
    if name == "MXFP4":
        data[:, 0] = rng.integers(116, 124, n)
    elif name == "IQ1_M":  # an f16 of 4e-3 in the high nibbles of four words
        d = np.float16(4e-3).view(np.uint16)
        for i in range(4):
            data[:, 49 + 2 * i] = data[:, 49 + 2 * i] & 15 | (int(d) >> 4 * i & 15) << 4
    elif name == "NVFP4":
        data[:, :4] = rng.integers(8, 16, (n, 4))
    return Tensor("w", (rows, columns), kind, data.reshape(rows, -1))


def extreme(w: Tensor, fill: int) -> Tensor:
    """`w` with that byte everywhere but in its scales of floats: codes and whole scales at their limits."""
    kind = w.type
    data = w.data.reshape(-1, kind.bytes).copy()
    kept = [i for at, _ in SCALES[kind.name] for i in (at, at + 1)]
    kept += {"MXFP4": [0], "IQ1_M": [49, 51, 53, 55]}.get(kind.name, [])
    data[:, [i for i in range(kind.bytes) if i not in kept]] = fill
    return replace(w, data=data.reshape(w.data.shape))
