"""Random blocks of every format."""

from __future__ import annotations

import numpy as np

from engine.gguf import Tensor
from engine.quants import by_name


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

    if name in ("Q4_K", "Q5_K"):
        scales(0, 7e-5)
        scales(2, 5e-4)
    elif name == "Q6_K":
        scales(208, 2e-5)
    else:
        scales(0, 3e-4 if name == "Q8_0" else 4e-3)
        if name in ("Q4_1", "Q5_1"):
            scales(2, 1e-2)
    return Tensor("w", (rows, columns), kind, data.reshape(rows, -1))
