"""Random blocks of every format."""

from __future__ import annotations

import numpy as np

from engine.gguf import Tensor
from engine.quants import by_name

SCALES: dict[str, tuple[tuple[int, float], ...]] = {
    "Q4_0": ((0, 4e-3),), "Q4_1": ((0, 4e-3), (2, 1e-2)), "Q5_0": ((0, 4e-3),),
    "Q5_1": ((0, 4e-3), (2, 1e-2)), "Q8_0": ((0, 3e-4),), "Q2_K": ((80, 2e-3), (82, 3e-3)),
    "Q3_K": ((108, 5e-4),), "Q4_K": ((0, 7e-5), (2, 5e-4)), "Q5_K": ((0, 7e-5), (2, 5e-4)),
    "Q6_K": ((208, 2e-5),), "IQ4_NL": ((0, 4e-4),), "IQ4_XS": ((0, 2e-5),), "MXFP4": (),
    "NVFP4": (),
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
    elif name == "NVFP4":
        data[:, :4] = rng.integers(8, 16, (n, 4))
    return Tensor("w", (rows, columns), kind, data.reshape(rows, -1))
