"""Write a random DFlash draft at a real one's shapes, to measure what drafting costs beside a random model.

    python -m tests.bench.synth_draft --preset qwen35-27b --out DRAFT.gguf
    python -m engine.cli bench MODEL.gguf --draft DRAFT.gguf --verify --accept 5

The bytes read and the operations done are the real draft's; its guesses mean nothing, which is what
`--accept` is for. The same preset and scheme always give the same file.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.convert.drafts import SCHEMES, draft_keys, draft_name, scheme_type
from engine.convert.quantize import quantize
from engine.convert.writer import Key, Output, write_gguf
from engine.draft.config import DraftConfig, usual_layers
from engine.draft.files import DraftFile, open_draft, tensor_specs
from engine.gguf import Tensor
from engine.quants import QuantType, by_name

_POOL = 1 << 12  # blocks that are really random
_SCALE = 0.03


def published(depth: int, n_embd: int, n_ff: int) -> DraftConfig:
    """The drafts of Qwen3.6: five layers of their target's width, four of them over a window."""
    capture = usual_layers(depth, 5, qwen35=True)
    return DraftConfig(
        dialect="Lucebox",
        n_layers=5,
        n_embd=n_embd,
        n_ff=n_ff,
        n_heads=32,
        n_kv_heads=8,
        head_dim=128,
        n_features=5 * n_embd,
        n_capture=5,
        block=16,
        mask=248_070,
        capture=capture,
        target_layers=0,
        rope_base=1e7,
        eps=1e-6,
        windows=(2048, 2048, 2048, 2048, 0),
        causal=(True, True, True, True, False),
        window_per_row=False,
        n_vocab=248_320,
        max_ctx=262_144,
    )


PRESETS = {
    "qwen35-27b": published(64, 5120, 17_408),
    "qwen35moe-35b-a3b": published(40, 2048, 6144),
    "qwen35-0.8b": published(24, 1024, 3584),
}


def write(out: Path, cfg: DraftConfig, scheme: str) -> DraftFile:
    """The draft in Lucebox's dialect; matrices as `quantize_draft` would store them."""
    rng = np.random.default_rng(7)
    pools: dict[str, NDArray[np.uint8]] = {}

    def rows(shape: tuple[int, ...], kind: QuantType) -> NDArray[np.uint8]:
        n = math.prod(shape[:-1]) * kind.row_bytes(shape[-1])
        return np.resize(pools[kind.name], n).reshape(*shape[:-1], -1)

    outputs = []
    for spec in tensor_specs(replace(cfg, n_vocab=0)):
        kind = by_name("F32")
        if len(spec.shape) == 2:
            stub = Tensor(spec.name, spec.shape, kind, np.zeros(0, np.uint8))
            kind = scheme_type(stub, SCHEMES[scheme])
        if kind.name not in pools:
            values = rng.standard_normal((_POOL, kind.block)).astype(np.float32) * _SCALE
            # Of all vectors norms are the only ones.
            pools[kind.name] = quantize(np.ones_like(values) if kind.block == 1 else values, kind)
        outputs.append(
            Output(
                draft_name(spec.name, "lucebox"), spec.shape, kind, partial(rows, spec.shape, kind)
            )
        )
    keys = draft_keys(cfg, "lucebox", "synthetic draft", None, by_name("F16"))
    keys = [k for k in keys if k.name != "general.file_type"]
    keys.append(Key("general.file_type", "uint32", SCHEMES[scheme].file_type))
    write_gguf(out, "dflash-draft", keys, outputs)
    return open_draft(out)


def main() -> None:
    """Write one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", choices=PRESETS, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scheme", choices=("q8_0", "q4_k_m", "q4_0"), default="q8_0")
    args = parser.parse_args()
    made = write(args.out, PRESETS[args.preset], args.scheme)
    print(f"{args.out}: {made.n_bytes:,} bytes, reads layers {made.config.capture}")


if __name__ == "__main__":
    main()
