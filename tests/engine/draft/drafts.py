"""The oracle drafts: tiny DFlash drafters with the reference's numbers, in every dialect."""

from __future__ import annotations

import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np

from engine.draft import safetensors_file
from engine.gguf import read_header

FIXTURES = Path(__file__).parents[2] / "fixtures"
FAMILIES = {"dflash_qwen3": ("full", "swa", "dflash2"), "dflash_qwen35": ("full", "dflash2")}
_PARTS = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "post_attention_norm": "post_attention_layernorm",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "attn_conv_proj": "attention_conv.kernel_projection",
    "ffn_conv_proj": "mlp_conv.kernel_projection",
}
_WHOLE = {
    "output_norm.weight": "norm.weight",
    "enc.output_norm.weight": "hidden_norm.weight",
    "dflash.hidden_norm.weight": "hidden_norm.weight",
    "dflash_hidden_norm.weight": "hidden_norm.weight",
    "dflash.fc.weight": "fc.weight",
    "dflash_fc.weight": "fc.weight",
    "selector_hidden.weight": "candidate_selector.hidden_projection.weight",
    "selector_predecessor.weight": "candidate_selector.predecessor_codebook",
    "selector_successor.weight": "candidate_selector.successor_codebook",
}


def cases() -> list[tuple[str, str, str]]:
    """(family, kind, dialect) of every draft; the dialect "hf" is the folder itself."""
    out = []
    for family, kinds in FAMILIES.items():
        for kind in kinds:
            heads = sorted((FIXTURES / family / kind).glob("*.head"))
            out += [(family, kind, d) for d in ("hf", *(h.stem.split(".")[1] for h in heads))]
    return out


def expected(family: str, kind: str) -> dict[str, Any]:
    """The reference's numbers; names as in the oracle's README."""
    with np.load(FIXTURES / family / kind / "expected.npz") as data:
        return dict(data)


def target_path(family: str) -> Path:
    return FIXTURES / family / "target.gguf"


def mtp_path(folder: Path) -> Path:
    """A qwen35 model with a trained draft layer of its own, unpacked into `folder`."""
    path = folder / "mtp_qwen35.gguf"
    path.write_bytes(lzma.decompress((FIXTURES / "draft/mtp_qwen35.gguf.xz").read_bytes()))
    return path


def draft_path(family: str, kind: str, dialect: str, folder: Path) -> Path:
    """The draft in a dialect: the folder of safetensors, or a GGUF made in `folder`.

    A GGUF is the original header with the same numbers behind it: every weight is exact in bf16 and f16.
    """
    home = FIXTURES / family / kind
    if dialect == "hf":
        return home
    head = (home / f"draft.{dialect}.head").read_bytes()
    path = folder / f"{family}-{kind}.{dialect}.gguf"
    path.write_bytes(head + bytes(4 << 20))
    weights = safetensors_file.read_tensors(home / "model.safetensors")
    end = 0
    with path.open("r+b") as file:
        for info in read_header(path).infos.values():
            values = weights[_hf_name(info.name)].dequantize()
            assert values.shape == info.shape
            dtype = {"F16": np.float16, "F32": np.float32}[info.type.name]
            file.seek(info.offset)
            file.write(values.astype(dtype).tobytes())
            end = max(end, info.offset + info.n_bytes)
        file.truncate(-(-end // 32) * 32)
    return path


def _hf_name(name: str) -> str:
    if (found := re.fullmatch(r"blk\.(\d+)\.(.+)", name)) is None:
        return _WHOLE.get(name, name)
    part = found[2].removesuffix(".weight")
    if part in ("attn_conv_base", "ffn_conv_base"):
        owner = "attention_conv" if part.startswith("attn") else "mlp_conv"
        return f"layers.{found[1]}.{owner}.base_kernel"
    if re.fullmatch("attn_[qkv]", part):
        part = f"self_attn.{part[-1]}_proj"
    elif re.fullmatch("ffn_(gate|up|down)", part):
        part = f"mlp.{part[4:]}_proj"
    return f"layers.{found[1]}.{_PARTS.get(part, part)}.weight"
